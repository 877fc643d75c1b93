import hashlib
import shutil
import sys

import numpy as np
import pytest

from collegium.data import cifar10, modelnet
from collegium.data.inventory import take_stock
from collegium.errors import DataError, InputFileError
from tiny_data import CIFAR_FILES, cifar_file, real_data, write_cifar, write_png, write_views

INVENTORY = sys.modules["collegium.data.inventory"]


def test_digits_are_always_there(no_data):
    stock = take_stock("digits")
    assert stock.found
    assert stock.folder is None
    assert sum(stock.counts["all"].values()) == 1797
    assert stock.largest_n0 is None  # it has no training set of its own


@pytest.mark.parametrize("name", ["cifar10", "modelnet"])
def test_nothing_there(name, no_data):
    stock = take_stock(name)
    assert not stock.found
    assert stock.counts == {}
    assert "COLLEGIUM_DATA" in stock.obtain


def test_an_unknown_name():
    with pytest.raises(DataError, match="no data set 'mnist': choose among digits, cifar10, modelnet, wall_robot"):
        take_stock("mnist")


@pytest.mark.parametrize("thorough", [False, True])
def test_a_part_of_cifar(tmp_path, thorough):
    folder = write_cifar(tmp_path)
    stock = take_stock("cifar10", tmp_path, thorough=thorough)
    assert stock.counts == {
        "train": {"airplane": 5, "cat": 20, "dog": 10},
        "test": {"airplane": 1, "cat": 7, "dog": 2},
    }
    assert (stock.folder, stock.problems, stock.complete) == (folder, (), False)
    assert stock.remark == "45 images; the official set has 60000"
    assert stock.largest_n0 == (20, "cat", "dog")


def test_the_complete_set_is_known_by_its_checksums(tmp_path, monkeypatch):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    official = {}
    for i, name in enumerate(CIFAR_FILES):
        (folder / name).write_bytes(cifar_file(range(10), seed=i))
        official[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    monkeypatch.setattr(INVENTORY, "OFFICIAL_IMAGES", 10)
    monkeypatch.setattr(INVENTORY, "OFFICIAL", official)
    stock = take_stock("cifar10", tmp_path, thorough=True)
    assert stock.complete
    assert stock.remark.startswith("the complete official set: 60 images")
    assert not take_stock("cifar10", tmp_path).complete  # nobody looked
    (folder / "data_batch_2.bin").write_bytes(cifar_file(range(10), seed=99))
    stock = take_stock("cifar10", tmp_path, thorough=True)
    assert not stock.complete
    assert "not the official ones: other checksums of data_batch_2.bin" in stock.remark


def test_every_bad_cifar_file_is_named(tmp_path):
    folder = write_cifar(tmp_path)
    (folder / "data_batch_2.bin").write_bytes(b"short")
    (folder / "test_batch.bin").unlink()
    stock = take_stock("cifar10", tmp_path, thorough=True)
    assert [problem.split("/")[-1].split()[0] for problem in stock.problems] == ["data_batch_2.bin", "test_batch.bin"]
    assert stock.counts["test"] == {}
    assert not stock.complete


def test_views(tmp_path):
    folder = write_views(tmp_path, size=224, train=2, test=1)
    shutil.rmtree(folder / "night_stand/train/night_stand_0001")
    stock = take_stock("modelnet", tmp_path, thorough=True)
    assert stock.counts == {"train": {"dresser": 2, "night_stand": 1}, "test": {"dresser": 1, "night_stand": 1}}
    assert stock.problems == ()
    assert stock.largest_n0 == (2, "dresser", "night_stand")


def test_objects_that_look_the_same_are_pointed_out(tmp_path):
    folder = write_views(tmp_path, size=224, train=2, test=1)
    assert take_stock("modelnet", tmp_path, thorough=True).notes == ()
    for like in ("night_stand/train/night_stand_0001", "dresser/test/dresser_0000"):
        shutil.rmtree(folder / like)
        shutil.copytree(folder / "dresser/train/dresser_0000", folder / like)
    stock = take_stock("modelnet", tmp_path, thorough=True)
    assert stock.problems == ()
    assert stock.notes == (
        "one object looks the same in two classes: dresser_0000 = dresser_0000 = night_stand_0001",
        "one test object looks the same as a training object: dresser_0000",
    )
    assert take_stock("modelnet", tmp_path).notes == ()  # a quick look does not see it


def test_every_bad_view_is_named(tmp_path):
    folder = write_views(tmp_path, size=224, train=2, test=1)
    damaged = folder / "dresser/train/dresser_0001/04.png"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    write_png(folder / "dresser/train/dresser_0001/07.png", np.zeros((6, 6, 1), np.uint8), "L")
    (folder / "night_stand/train/night_stand_0000/11.png").unlink()
    shutil.rmtree(folder / "night_stand/test")
    stock = take_stock("modelnet", tmp_path, thorough=True)
    for problem, name in zip(stock.problems, ["night_stand/test", "04.png", "07.png", "11.png"], strict=True):
        assert name in problem
    assert stock.counts == {"train": {"dresser": 1, "night_stand": 1}, "test": {"dresser": 1}}
    assert len(take_stock("modelnet", tmp_path).problems) == 2  # a quick look sees what is missing


@pytest.mark.data
def test_real_cifar():
    real_data("cifar-10-batches-bin")
    stock = take_stock("cifar10", thorough=True)
    assert stock.counts == {"train": {"cat": 5000, "dog": 5000}, "test": {"cat": 1000, "dog": 1000}}
    assert stock.problems == ()
    assert stock.largest_n0 == (10_000, "cat", "dog")


@pytest.mark.data
def test_real_views():
    real_data("modelnet-views")
    stock = take_stock("modelnet")
    assert stock.counts == {
        "train": {"dresser": 195, "night_stand": 199},
        "test": {"dresser": 84, "night_stand": 85},
    }
    assert stock.problems == ()
    assert stock.largest_n0 == (390, "dresser", "night_stand")


@pytest.mark.data
def test_real_views_that_look_the_same():
    real_data("modelnet-views")
    both, leaked = take_stock("modelnet", thorough=True).notes
    assert both.startswith("7 objects look the same in two classes: dresser_0024 = night_stand_0257")
    assert "test objects look the same as a training object" in leaked


@pytest.mark.parametrize(
    "closed", ["cifar-10-batches-bin", "modelnet-views", "modelnet-views/dresser", "modelnet-views/dresser/train"]
)
def test_what_may_not_be_read_is_named(tmp_path, forbid, closed):
    write_cifar(tmp_path)
    write_views(tmp_path)
    name = "cifar10" if closed.startswith("cifar") else "modelnet"
    forbid(tmp_path / closed)
    stock = take_stock(name, tmp_path)
    assert stock.found
    [problem] = stock.problems
    assert problem.startswith(f"{tmp_path / closed}")
    assert problem.endswith(": Permission denied")
    with pytest.raises(InputFileError, match=r"Permission denied"):
        {"cifar10": cifar10, "modelnet": modelnet}[name](root=tmp_path)


def test_an_object_that_may_not_be_read_is_named_and_the_others_counted(tmp_path, forbid):
    closed = write_views(tmp_path) / "dresser/train/dresser_0001"
    forbid(closed)
    stock = take_stock("modelnet", tmp_path)
    assert stock.problems == (f"{closed}: Permission denied",)
    assert stock.counts["train"] == {"dresser": 2, "night_stand": 3}


def test_a_file_that_may_not_be_read_is_named(tmp_path, forbid):
    closed = write_cifar(tmp_path) / "data_batch_2.bin"
    forbid(closed)
    assert take_stock("cifar10", tmp_path).problems == (f"{closed}: Permission denied",)
