"""The score record: what enters the protocol, by the formulas, and files that are whole, refused or not there."""

import io
import json
import os

import numpy as np
import pytest

from collegium.agents.calibration import temperature, temperatures
from collegium.agents.scores import Scores
from collegium.errors import CollegiumError, InputFileError, ScoreError

PARTS = {"train": 12, "val": 5, "test": 7}


def record(K=3, seed=0, **changes):
    rng = np.random.default_rng(seed)
    given = {part: rng.normal(1, 3, (n, K)) for part, n in PARTS.items()}
    given |= {f"y_{part}": rng.choice([-1, 1], n) for part, n in PARTS.items()}
    return Scores(**{**given, "temperature": rng.uniform(0.5, 3, K), **changes})


def same(one, two):
    arrays = (*PARTS, *(f"y_{part}" for part in PARTS), "temperature")
    equal = all(np.array_equal(getattr(one, name), getattr(two, name)) for name in arrays)
    names = ("agent_names", "class_names", "description")
    return equal and all(getattr(one, name) == getattr(two, name) for name in names)


# Statistics


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("calibrate", [True, False])
@pytest.mark.parametrize("bounded", [True, False])
def test_statistics_by_the_formulas(part, center, calibrate, bounded):
    s = record()

    def way(f, k):
        f = f / s.temperature[k] if calibrate else f
        return (np.exp(f) - 1) / (np.exp(f) + 1) if bounded else f

    expected = np.empty((PARTS[part], 3))
    for k in range(3):
        mean = sum(way(f, k) for f in s.train[:, k]) / 12 if center else 0
        for n in range(PARTS[part]):
            expected[n, k] = way(getattr(s, part)[n, k], k) - mean
    statistics = s.statistics(part, center=center, calibrate=calibrate, bounded=bounded)
    assert statistics == pytest.approx(expected, abs=1e-13)  # sums of twelve numbers below ten
    assert statistics.dtype == np.float64


def test_statistics_are_centred_test_scores_unless_told():
    s = record()
    assert s.statistics() == pytest.approx(s.test - s.train.mean(0), abs=1e-13)
    assert s.center == pytest.approx([sum(s.train[:, k]) / 12 for k in range(3)], abs=1e-13)


@pytest.mark.parametrize("calibrate", [True, False])
@pytest.mark.parametrize("bounded", [True, False])
def test_centred_training_scores_have_mean_zero(calibrate, bounded):
    ready = record().statistics("train", calibrate=calibrate, bounded=bounded)
    assert np.abs(ready.mean(0)).max() < 1e-14


def test_statistics_are_a_copy():
    s = record()
    s.statistics("test", center=False)[:] = 99
    assert not (s.test == 99).any()


def test_other_parts_are_refused():
    with pytest.raises(ScoreError, match='part must be "train", "val" or "test"; got \'all\''):
        record().statistics("all")


def test_names_and_words():
    s = record()
    assert s.size == 3
    assert s.agent_names == ("agent 0", "agent 1", "agent 2")
    assert repr(s) == "Scores(3 agents; items: 12 train, 5 val, 7 test)"
    assert s.y_test.dtype == np.int8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val": np.zeros((5, 2))}, "2 columns, but the network has 3 agents"),
        ({"test": np.full((7, 3), np.nan)}, "contain NaN: agent 0, 7 of 7 items"),
        ({"train": np.zeros(12)}, "must have shape"),
        ({"y_val": np.ones(4)}, r"y_val must hold \+1 or -1 for each of the 5 val items"),
        ({"y_train": np.zeros(12)}, "y_train must hold"),
        ({"y_test": np.full(7, 257)}, "y_test must hold"),
        ({"temperature": np.ones(2)}, "temperature"),
        ({"temperature": np.array([1.0, 0.0, 1.0])}, "temperature"),
        ({"agent_names": ("a", "b")}, "agent"),
        ({"epochs": np.ones(5, np.int64)}, "epochs"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_parts_that_do_not_belong_together(changes, message):
    with pytest.raises(ScoreError, match=message):
        record(**changes)


# Files


def test_a_record_comes_back_as_it_was(tmp_path):
    s = record(
        agent_names=("nose", "ear", "Auge ∞"),
        class_names=("cat", "dog"),
        epochs=np.array([3, 0, 100]),
        description="3 × PatchCNN()",
    )
    s.save(tmp_path / "scores.npz")
    again = Scores.load(tmp_path / "scores.npz")
    assert same(again, s)
    assert again.epochs.tolist() == [3, 0, 100]
    assert np.array_equal(again.statistics(bounded=True), s.statistics(bounded=True))
    assert [path.name for path in tmp_path.iterdir()] == ["scores.npz"]


def test_names_of_any_form_and_places_given_as_text(tmp_path):
    s = record(val=np.empty((0, 3)), y_val=[])
    s.save(str(tmp_path / "no suffix"))
    assert same(Scores.load(str(tmp_path / "no suffix")), s)
    assert Scores.load(tmp_path / "no suffix").epochs is None


def test_a_record_replaces_an_older_one(tmp_path):
    path = tmp_path / "scores.npz"
    record(seed=1).save(path)
    record(seed=2).save(path)
    assert same(Scores.load(path), record(seed=2))


@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl-C"]
)
def test_a_write_that_fails_leaves_the_older_record(tmp_path, monkeypatch, failure):
    path = tmp_path / "scores.npz"
    record(seed=1).save(path)

    def breaks(file, **arrays):
        file.write(b"PK half of a file")
        raise failure

    monkeypatch.setattr(np, "savez_compressed", breaks)
    with pytest.raises((InputFileError, KeyboardInterrupt)) as caught:
        record(seed=2).save(path)
    assert isinstance(failure, KeyboardInterrupt) or "No space left on device" in str(caught.value)
    assert same(Scores.load(path), record(seed=1))
    assert os.listdir(tmp_path) == ["scores.npz"]


def test_the_file_appears_whole(tmp_path, monkeypatch):
    path = tmp_path / "scores.npz"
    seen = []
    replace = os.replace

    def watch(old, new):
        seen.append((path.exists(), Scores.load(old).size))
        replace(old, new)

    monkeypatch.setattr(os, "replace", watch)
    record().save(path)
    assert seen == [(False, 3)]


def test_two_records_can_be_written_at_the_same_time(tmp_path, monkeypatch):
    write = np.savez_compressed

    def interrupted(file, **arrays):
        monkeypatch.setattr(np, "savez_compressed", write)
        write(file, **arrays)
        record(seed=2).save(tmp_path / "two.npz")  # as another thread may do it, just now

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    record(seed=1).save(tmp_path / "one.npz")
    assert same(Scores.load(tmp_path / "one.npz"), record(seed=1))
    assert same(Scores.load(tmp_path / "two.npz"), record(seed=2))


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("no folder")
    for path in (tmp_path / "nowhere" / "s.npz", tmp_path / "file" / "s.npz", tmp_path / ("long" * 100), tmp_path):
        with pytest.raises(InputFileError, match=r"cannot write .*: \w+"):
            record().save(path)
    assert sorted(os.listdir(tmp_path)) == ["file"]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputFileError, match=r"there is no file .*scores\.npz"):
        Scores.load(tmp_path / "scores.npz")


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / "scores.npz"
    record().save(path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(InputFileError, match=r"scores\.npz is not a score record, or is damaged"):
            Scores.load(path)


def test_a_changed_byte_is_refused_or_means_nothing(tmp_path):
    path = tmp_path / "scores.npz"
    record().save(path)
    whole = path.read_bytes()
    refusals = []
    for place in range(0, len(whole), 23):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            assert same(Scores.load(path), record())
        except InputFileError as refusal:
            refusals.append(str(refusal))
    assert len(refusals) > len(whole) // 23 // 2
    assert all("scores.npz" in refusal for refusal in refusals)


def archive(**changes):
    """The contents of a saved record with some of them changed; None leaves one out."""
    file = io.BytesIO()
    s = record()
    about = {"format": 1, "agent_names": s.agent_names, "class_names": s.class_names, "description": "", "seed": ""}
    given = {part: getattr(s, part) for part in PARTS} | {f"y_{part}": getattr(s, f"y_{part}") for part in PARTS}
    given |= {"temperature": s.temperature, "epochs": np.zeros(3, np.int64)}
    given |= {"about": np.array(json.dumps(about))} | changes
    np.savez(file, **{name: value for name, value in given.items() if value is not None})
    return file.getvalue()


def described(**words):
    return np.array(json.dumps({"format": 1, "agent_names": ["a"] * 3, "class_names": ["+", "-"], "seed": "", **words}))


FOREIGN = {
    "text": b"agent,score\n0,1.5\n",
    "nothing": b"",
    "one array": (np.save(file := io.BytesIO(), np.zeros(3)), file.getvalue())[1],
    "another archive": (np.savez(file := io.BytesIO(), x=np.zeros(3)), file.getvalue())[1],
    "objects": (np.save(file := io.BytesIO(), np.array([{}]), allow_pickle=True), file.getvalue())[1],
    "an array missing": archive(temperature=None),
    "no description, but something else": archive(about=None, weights=np.zeros(3)),
    "no JSON": archive(about=np.array("{")),
    "a list": archive(about=np.array("[1, 2]")),
    "names missing": archive(about=np.array('{"format": 1}')),
    "another format": archive(about=described(format=7, description="")),
    "names of other agents": archive(about=described(agent_names=["a"], description="")),
    "no names": archive(about=described(agent_names=5, description="")),
    "one class": archive(about=described(class_names=["+"], description="")),
    "too few labels": archive(y_test=np.ones(3)),
    "other agents": archive(val=np.zeros((5, 2))),
    "gaps": archive(test=np.full((7, 3), np.nan)),
    "temperatures of other agents": archive(temperature=np.ones(5)),
    "numbers as texts": archive(train=np.full((12, 3), "one")),
    "a single number": archive(train=np.array(1.0)),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_refused_by_name(tmp_path, name):
    path = tmp_path / "foreign.npz"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(InputFileError, match=r"foreign\.npz"):
        Scores.load(path)


def test_the_foreign_files_differ_from_a_record_in_one_thing(tmp_path):
    (tmp_path / "s.npz").write_bytes(archive())
    assert same(Scores.load(tmp_path / "s.npz"), record())


def test_a_newer_format_is_said_to_be_one(tmp_path):
    (tmp_path / "s.npz").write_bytes(FOREIGN["another format"])
    with pytest.raises(InputFileError, match="a score record of format 7; this version reads 1"):
        Scores.load(tmp_path / "s.npz")


def test_six_arrays_of_ones_own_are_a_record(tmp_path):
    s = record()
    np.savez(tmp_path / "own.npz", **{name: getattr(s, name) for part in PARTS for name in (part, f"y_{part}")})
    own = Scores.load(tmp_path / "own.npz")
    np.testing.assert_array_equal(own.test, s.test)
    np.testing.assert_array_equal(own.temperature, temperatures(s.val, s.y_val))
    assert own.agent_names == ("agent 0", "agent 1", "agent 2")


def test_a_folder_is_no_record(tmp_path):
    with pytest.raises(CollegiumError, match="not a score record"):
        Scores.load(tmp_path)


def test_another_file_is_called_what_it_is(tmp_path):
    """Not in NumPy's words, which speak of pickles."""
    (tmp_path / "scores.npz").write_bytes(b"nothing of the kind")
    with pytest.raises(InputFileError, match=r"is not a score record, or is damaged: it is no \.npz file"):
        Scores.load(tmp_path / "scores.npz")


# More than two classes


def record_of_four(K=3, **others):
    rng = np.random.default_rng(4)
    parts = {}
    for part, n in (("train", 30), ("val", 20), ("test", 10)):
        y = rng.integers(0, 4, n)
        f = 2 * np.eye(4)[y][:, None] + rng.normal(size=(n, K, 4))
        parts |= {part: f - f.mean(axis=2, keepdims=True), f"y_{part}": y}
    return Scores(**parts, **others)


def test_a_record_of_four_classes(tmp_path):
    four = record_of_four(class_names=("a", "b", "c", "d"))
    assert (four.size, four.classes, four.center.shape) == (3, 4, (3, 4))
    expected = [temperature(four.val[:, k], four.y_val) for k in range(3)]
    np.testing.assert_allclose(four.temperature, expected)
    for bounded in (False, True):
        f = four.test / four.temperature[:, None]
        g = four.train / four.temperature[:, None]
        if bounded:
            f, g = (np.exp(x) / np.exp(x).sum(axis=2, keepdims=True) - 0.25 for x in (f, g))
        made = four.statistics("test", calibrate=True, bounded=bounded)
        np.testing.assert_allclose(made, f - g.mean(axis=0), atol=1e-12)
    four.save(tmp_path / "four.npz")
    again = Scores.load(tmp_path / "four.npz")
    assert again.class_names == ("a", "b", "c", "d")
    for part in ("train", "val", "test", "y_train", "y_val", "y_test", "temperature"):
        assert np.array_equal(getattr(again, part), getattr(four, part))


def test_a_record_of_ones_own_names_its_classes(tmp_path):
    four = record_of_four()
    arrays = {name: getattr(four, name) for name in ("train", "val", "test", "y_train", "y_val", "y_test")}
    np.savez(tmp_path / "own.npz", **arrays, classes=np.array(["n", "e", "s", "w"]))
    assert Scores.load(tmp_path / "own.npz").class_names == ("n", "e", "s", "w")
    assert four.class_names == ("0", "1", "2", "3")


def test_two_classes_of_ones_own_may_have_an_entry_each(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {part: rng.normal(size=(20, 3, 2)) for part in ("train", "val", "test")}
    arrays |= {f"y_{part}": np.arange(20) % 2 for part in ("train", "val", "test")}
    np.savez(tmp_path / "own.npz", **arrays, classes=np.array(["empty", "occupied"]))
    found = Scores.load(tmp_path / "own.npz")
    assert found.class_names == ("occupied", "empty")  # that of +1 first
    np.testing.assert_array_equal(found.test > 0, arrays["test"].argmax(axis=2) == 1)
    np.testing.assert_array_equal(found.y_test == 1, arrays["y_test"] == 1)
    np.savez(tmp_path / "own.npz", **arrays | {"y_val": np.arange(20) % 3})
    with pytest.raises(InputFileError, match=r"val must have an entry for each of two classes, .* and labels 0 and 1"):
        Scores.load(tmp_path / "own.npz")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"y_val": np.full(20, 4)}, "y_val must hold a place from 0 to 3 for each of the 20 val items"),
        ({"test": np.zeros((10, 3, 5))}, r"test must have shape \(items, 3, 4\), as train has"),
        ({"test": np.zeros((10, 3))}, r"test must have shape \(items, 3, 4\), as train has"),
        ({"class_names": ("a", "b")}, "class_names must name 4 classes"),
    ],
)
def test_records_of_four_classes_that_are_none(wrong, message):
    four = record_of_four()
    arrays = {name: getattr(four, name) for name in ("train", "val", "test", "y_train", "y_val", "y_test")}
    with pytest.raises(ScoreError, match=message):
        Scores(**arrays | wrong)
