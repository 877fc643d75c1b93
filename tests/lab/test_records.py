"""The store of records: the same bytes for the same job, whole or not at all, set aside if damaged."""

from dataclasses import replace

import numpy as np
import pytest

from collegium.agents import Scores
from collegium.errors import DataError, InputFileError
from collegium.lab import job as jobs
from collegium.lab.job import Job
from collegium.lab.records import MethodResult, Record, Store
from helpers import score_record

JOB = Job("digits", 60, 0, "B", epochs=2)


@pytest.fixture
def record():
    return Record(score_record(K=3, n=20), {"VFL-JT": MethodResult(np.arange(20.0), 1234, 7)})


def test_a_record_comes_back_number_for_number(record, tmp_path):
    store = Store(tmp_path / "deep")
    assert not store.has("k")
    store.put("k", record.to_bytes())
    back = store.get("k")
    np.testing.assert_array_equal(back.scores.test, record.scores.test.astype(np.float32))  # as it is kept
    np.testing.assert_array_equal(back.methods["VFL-JT"].statistic, np.arange(20.0))
    assert back.scores.test.dtype == back.methods["VFL-JT"].statistic.dtype == np.float64
    assert back.methods["VFL-JT"][1:] == (1234, 7)
    assert back.to_bytes() == record.to_bytes()
    assert store.has("k", methods=True)


def test_a_record_is_a_score_record_too(record, tmp_path):
    Store(tmp_path).put("k", record.to_bytes())
    np.testing.assert_array_equal(Scores.load(tmp_path / "k.npz").val, record.scores.val.astype(np.float32))


@pytest.mark.parametrize("score", [1e-60, -1e-60, 1e300])
def test_rounding_changes_no_sign_and_makes_no_infinity(record, score):
    test = record.scores.test.copy()
    test[3, 1] = score
    same = record._replace(scores=replace(record.scores, test=test))
    assert Record.from_bytes(same.to_bytes(), "").scores.test[3, 1] == score


def test_records_are_copied_from_store_to_store(record, tmp_path):
    here, kept, there = (Store(tmp_path / name) for name in ("here", "kept", "there"))
    for key in ("a-1", "a-2", "b-1"):
        here.put(key, record._replace(key=key).to_bytes())
    plain = record._replace(key="a-1", methods={})
    kept.put("a-1", plain.to_bytes())
    assert kept.add(here, only="a-") == ["a-1", "a-2"]  # a-1 comes with the methods that it lacked
    assert kept.has("a-1", methods=True)
    assert kept.add(here) == ["b-1"]
    assert kept.add(here) == []
    there.put("a-1", plain.to_bytes())
    kept.add(there)  # one with less does not replace one with more
    assert kept.has("a-1", methods=True)
    assert kept.path("b-1").read_bytes() == here.path("b-1").read_bytes()


def test_what_is_no_record_is_not_copied(record, tmp_path):
    here, kept = Store(tmp_path / "here"), Store(tmp_path / "kept")
    here.put("broken", record.to_bytes()[:200])
    here.put("renamed", record._replace(key="other").to_bytes())
    with pytest.warns(UserWarning, match="left out") as caught:
        assert kept.add(here) == []
    assert len(caught) == 2
    assert here.path("broken").exists()


def test_methods_are_asked_for(tmp_path, record):
    store = Store(tmp_path)
    store.put("k", record._replace(methods={}).to_bytes())
    assert store.has("k")
    assert not store.has("k", methods=True)


@pytest.mark.parametrize("harm", ["cut", "changed", "foreign", "empty", "plain scores"])
def test_damaged_records_are_set_aside_with_a_warning(record, tmp_path, harm):
    store = Store(tmp_path)
    content = record.to_bytes()
    middle = len(content) // 2
    broken = {
        "cut": content[:middle],
        "changed": content[:middle]
        + bytes(255 - byte for byte in content[middle : middle + 40])
        + content[middle + 40 :],
        "foreign": b"something else",
        "empty": b"",
    }
    if harm == "plain scores":
        record.scores.save(tmp_path / "k.npz")
    else:
        store.put("k", broken[harm])
    with pytest.warns(UserWarning, match="set aside"):
        assert not store.has("k")
    assert len(list(tmp_path.glob("k.npz.*.aside"))) == 1
    store.put("k", content)
    assert store.has("k")


def test_the_record_of_another_job_is_set_aside(record, tmp_path):
    store = Store(tmp_path)
    store.put("mine", record._replace(key="theirs").to_bytes())
    with pytest.warns(UserWarning, match="another job's record, theirs"):
        assert not store.has("mine")
    store.put("mine", record._replace(key="mine").to_bytes())
    assert store.has("mine")


def test_nothing_half_written_is_left(record, tmp_path, monkeypatch):
    store = Store(tmp_path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("collegium.lab.records.os.replace", fail)
    with pytest.raises(InputFileError, match="No space left"):
        store.put("k", record.to_bytes())
    assert list(tmp_path.iterdir()) == []


# Jobs


def test_the_same_job_gives_the_same_bytes_for_any_workers():
    one, two = (jobs.run(JOB, workers=workers).to_bytes() for workers in (1, 2))
    assert one == two
    assert Record.from_bytes(one, "").key == JOB.key


def test_repetitions_and_seeds_differ():
    first = jobs.run(JOB).scores
    for other in (Job("digits", 60, 1, "B", epochs=2), Job("digits", 60, 0, "B", seed=1, epochs=2)):
        assert not np.array_equal(jobs.run(other).scores.test, first.test)


def test_methods_do_not_change_the_scores():
    plain, full = (jobs.run(Job("digits", 60, 0, "B", methods=methods, epochs=2)) for methods in (False, True))
    np.testing.assert_array_equal(plain.scores.test, full.scores.test)
    assert set(full.methods) == {"AdaBoost", "VFL-JT", "Tuned models", "Central oracle"}
    joint = full.methods["VFL-JT"]
    assert joint.training_transmissions == 9 * joint.epochs * (2 * 48 + 12)


def test_keys_tell_apart_what_gives_other_numbers():
    base = Job("cifar10", 500, 0, "A")
    others = [
        Job("modelnet", 50, 0, "M"),
        Job("cifar10", 1000, 0, "A"),
        Job("cifar10", 500, 1, "A"),
        Job("cifar10", 500, 0, "ABCBCACAB"),
        Job("cifar10", 500, 0, "A", seed=1),
        Job("cifar10", 500, 0, "A", epochs=3),
    ]
    assert len({base.key, *(one.key for one in others)}) == 7
    assert Job("cifar10", 500, 0, "A", methods=True).key == base.key
    assert base.key.startswith("cifar10-n500-A-r0-")


def test_a_layout_of_another_size_is_refused():
    with pytest.raises(DataError, match="names 2 families, but there are 9 agents"):
        jobs.run(Job("digits", 60, 0, "AB"))
