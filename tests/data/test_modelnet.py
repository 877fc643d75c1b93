import os
import shutil
import sys
import time

import numpy as np
import pytest
from PIL import Image

from collegium import data
from collegium.data import _cache
from collegium.errors import DataError, InputFileError
from tiny_data import real_data, write_png, write_views

SIZE = 6
MODULE = sys.modules["collegium.data.modelnet"]


@pytest.fixture
def views(tmp_path):
    return write_views(tmp_path, SIZE)


@pytest.fixture
def decoded(monkeypatch):
    """Counts the files that were decoded."""
    seen = []
    read = MODULE.read_grey
    monkeypatch.setattr(MODULE, "read_grey", lambda path, *rest: seen.append(path) or read(path, *rest))
    return seen


def load(views, **settings):
    return data.modelnet(**({"root": views, "size": SIZE} | settings))


@pytest.mark.parametrize("background", [255, 0, 77])
@pytest.mark.parametrize("again", [False, True])
def test_views_against_the_formula(views, background, again):
    if again:
        load(views, background=background)
    for part, split, n in zip(load(views, background=background), ("train", "test"), (3, 2), strict=True):
        assert part.counts == (n, n)
        assert part.items == tuple(f"{name}_{i:04}" for name in ("dresser", "night_stand") for i in range(n))
        assert part.agent_names == tuple(f"{30 * k}°" for k in range(12))
        assert part.size == 12
        np.testing.assert_array_equal(part.y, [1] * n + [-1] * n)
        for k, view in enumerate(part.views):
            assert view.shape == (2 * n, SIZE, SIZE, 1)
            assert view.dtype == np.uint8
            assert view.flags.c_contiguous
            for i, name in enumerate(part.items):
                file = views / name[:-5] / split / name / f"{k:02}.png"
                grey, alpha = np.asarray(Image.open(file)).astype(float).transpose(2, 0, 1) / 255
                exact = 255 * grey * alpha + background * (1 - alpha)
                assert np.abs(view[i, :, :, 0] - exact).max() <= 0.5 + 1e-9


def test_the_first_class_named_is_plus_one(views):
    train, _ = load(views, classes=("night_stand", "dresser"))
    assert train.class_names == ("night_stand", "dresser")
    assert train.items[0] == "night_stand_0000"
    assert train.y[0] == 1
    with_numbers, _ = load(views, classes=("dresser", "night_stand"))
    np.testing.assert_array_equal(train.views[4][:3], with_numbers.views[4][3:])


def test_the_second_time_nothing_is_decoded(views, decoded, tmp_path):
    first, _ = load(views)
    assert len(decoded) == 12 * 10
    assert all(isinstance(view, np.memmap) for view in first.views)
    second, _ = load(views)
    assert len(decoded) == 12 * 10
    np.testing.assert_array_equal(first.views[3], second.views[3])
    with pytest.raises(ValueError, match="read-only"):
        second.views[0][0] = 0
    assert {file.suffix for file in (tmp_path / "cache").iterdir()} == {".npy"}


@pytest.mark.parametrize("change", ["background", "content", "time", "object"])
def test_whatever_changes_the_pixels_has_them_decoded_again(views, decoded, change):
    load(views)
    file = views / "dresser/train/dresser_0001/05.png"
    before = len(decoded)
    if change == "content":
        write_png(file, np.full((SIZE, SIZE, 1), 9, np.uint8), "L")
    elif change == "time":
        os.utime(file, ns=(1, 1))
    elif change == "object":
        shutil.rmtree(file.parent)
    train, _ = load(views, background=3 if change == "background" else 255)
    assert len(decoded) > before
    if change == "content":
        assert (train.views[5][1] == 9).all()


@pytest.mark.parametrize("harm", ["truncate", "extend", "empty", "foreign", "byte", "shape", "type", "order"])
def test_a_damaged_cache_is_made_again(views, decoded, tmp_path, harm):
    right, _ = load(views)
    pixels = np.array(right.views[7])
    for file in (tmp_path / "cache").glob("*.npy"):
        content, cube = file.read_bytes(), np.load(file)
        file.unlink()
        others = {"shape": cube[:, 1:], "type": cube.astype(np.int8), "order": np.asfortranarray(cube)}
        if harm in others:
            _cache.keep(file, others[harm])
        else:
            flipped = bytearray(content)
            flipped[-100] ^= 1
            changed = {"truncate": content[:-1], "extend": content + b"x", "empty": b"", "foreign": b"x" * len(content)}
            file.write_bytes((changed | {"byte": flipped})[harm])
    before = len(decoded)
    again, _ = load(views)
    np.testing.assert_array_equal(again.views[7], pixels)
    assert len(decoded) == 2 * before
    load(views)
    assert len(decoded) == 2 * before


@pytest.mark.parametrize("place", ["file in the way", "nowhere to write", "disk full"])
def test_a_cache_that_cannot_be_written_only_costs_time(views, decoded, tmp_path, monkeypatch, place):
    if place == "file in the way":
        (tmp_path / "blocked").write_text("no folder")
        monkeypatch.setenv("COLLEGIUM_CACHE", str(tmp_path / "blocked"))
    elif place == "nowhere to write":
        monkeypatch.setenv("COLLEGIUM_CACHE", "/proc/no such folder")
    else:
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    first, _ = load(views)
    second, _ = load(views)
    np.testing.assert_array_equal(first.views[2], second.views[2])
    assert len(decoded) == 2 * 12 * 10
    if place == "disk full":
        assert list((tmp_path / "cache").iterdir()) == []


def test_an_interruption_leaves_nothing_behind(views, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load(views)
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_a_killed_run_left_in_the_cache_is_swept_away(views, tmp_path):
    (tmp_path / "cache").mkdir()
    for name, age in ((".old.part", 7200), (".new.part", 0)):
        (tmp_path / "cache" / name).touch()
        os.utime(tmp_path / "cache" / name, (time.time() - age,) * 2)
    load(views)
    assert [file.name for file in (tmp_path / "cache").glob("*.part")] == [".new.part"]  # somebody may be writing it


def test_what_file_managers_leave_is_passed_over(views):
    right, _ = load(views)
    for place in ("", "dresser", "dresser/train", "dresser/train/dresser_0001"):
        for name in (".DS_Store", "._00.png", "Thumbs.db"):
            (views / place / name).write_bytes(b"x")
        (views / place / "__MACOSX").mkdir()
    assert load(views)[0].items == right.items


def test_a_missing_view(views):
    (views / "night_stand/test/night_stand_0001/03.png").unlink()
    (views / "night_stand/test/night_stand_0001/11.png").unlink()
    with pytest.raises(InputFileError, match=r"night_stand_0001 lacks 03\.png, 11\.png"):
        load(views)


@pytest.mark.parametrize(
    "stranger", ["dresser/train/dresser_0001/12.png", "dresser/train/dresser_0001/notes.txt", "dresser/test/notes.txt"]
)
def test_a_stranger_is_named(views, stranger):
    (views / stranger).write_text("hello")
    with pytest.raises(InputFileError, match=rf"{stranger} does not belong"):
        load(views)


@pytest.mark.parametrize("cached", [False, True])
def test_a_damaged_view_is_named_and_nothing_is_kept(views, tmp_path, cached):
    if cached:
        load(views)
    file = views / "dresser/test/dresser_0000/07.png"
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(InputFileError, match=r"dresser_0000/07\.png is truncated"):
        load(views)
    assert len(list((tmp_path / "cache").glob("*-test-*"))) == cached


def test_a_view_of_another_size(views):
    write_png(views / "dresser/train/dresser_0002/00.png", np.zeros((SIZE, SIZE + 1, 2), np.uint8), "LA")
    with pytest.raises(InputFileError, match=r"dresser_0002/00\.png is 7×6 pixels, not 6×6"):
        load(views)


def test_missing_splits_and_empty_ones(views):
    shutil.rmtree(views / "dresser/test")
    with pytest.raises(DataError, match=r"no folder .*dresser/test"):
        load(views)
    (views / "dresser/test").mkdir()
    with pytest.raises(DataError, match=r"dresser/test has no objects"):
        load(views)


def test_objects_of_the_same_name_in_both_classes(views):
    for place in list(views.glob("*/*/*")):
        place.rename(place.with_name(place.name[-4:]))
    _, test = load(views)
    assert test.items == ("dresser/0000", "dresser/0001", "night_stand/0000", "night_stand/0001")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"classes": ("dresser", "sofa")}, "no class 'sofa' in .*: choose among dresser, night_stand"),
        ({"classes": ("dresser", "dresser")}, "dresser twice"),
        ({"background": 256}, "background must be a whole number between 0 and 255"),
        ({"background": "white"}, "background must be"),
        ({"background": -1}, "background must be"),
        ({"size": 0}, "size of the views"),
        ({"size": 6.0}, "size of the views"),
    ],
)
def test_refusals(views, settings, says):
    with pytest.raises(DataError, match=says):
        load(views, **settings)


def test_where_it_is_looked_for(views, tmp_path, monkeypatch, no_data):
    with pytest.raises(
        DataError, match=r"the folder modelnet-views.* was not found in .*collegium data render.*COLLEGIUM_DATA"
    ):
        data.modelnet()
    monkeypatch.setenv("COLLEGIUM_DATA", str(views.parent))
    assert len(data.modelnet(size=SIZE)[0]) == 6
    moved = views.rename(tmp_path / "moved")
    assert len(load(moved)[0]) == 6
    shutil.rmtree(moved / "dresser")
    with pytest.raises(DataError, match="views of 1 class"):
        load(moved)


def test_three_classes(tmp_path):
    write_views(tmp_path, classes=("bed", "dresser", "sofa"))
    for classes, names in (
        (("sofa", "bed", "dresser"), ("sofa", "bed", "dresser")),
        (None, ("bed", "dresser", "sofa")),
    ):
        train, test = data.modelnet(classes, root=tmp_path, size=6)
        assert train.class_names == names
        assert (train.counts, test.counts) == ((3, 3, 3), (2, 2, 2))
        assert [names[place] for place in train.y] == [item.rpartition("_")[0] for item in train.items]
    assert data.modelnet(("sofa", "bed"), root=tmp_path, size=6)[0].y.tolist() == [1, 1, 1, -1, -1, -1]


@pytest.mark.data
def test_real_data(tmp_path):
    root = real_data("modelnet-views") / "modelnet-views"
    for name in ("dresser", "night_stand"):
        for split in ("train", "test"):
            (tmp_path / "few" / name / split).mkdir(parents=True)
            for place in sorted((root / name / split).iterdir())[:2]:
                (tmp_path / "few" / name / split / place.name).symlink_to(place)
    train, test = data.modelnet(root=tmp_path / "few")
    assert (train.counts, test.counts) == ((2, 2), (2, 2))
    assert train.items[:2] == ("dresser_0001", "dresser_0002")
    for part in (train, test):
        for k, view in enumerate(part.views):
            assert view.shape == (4, 224, 224, 1)
            assert (view[:, 0, 0] == 255).all()  # corners show the background
            assert view.min() < 200  # and there is an object
            for i, name in enumerate(part.items):
                file = next(root.glob(f"*/*/{name}")) / f"{k:02}.png"
                grey, alpha = np.asarray(Image.open(file)).astype(float).transpose(2, 0, 1)
                assert np.abs(view[i, :, :, 0] - (grey * alpha + 255 * (255 - alpha)) / 255).max() <= 0.5 + 1e-9
