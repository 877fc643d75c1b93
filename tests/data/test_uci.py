"""What the three small data sets of the UCI repository share: where they are looked for and how they are known."""

import hashlib

import pytest

from collegium import data
from collegium.data._uci import checksum
from collegium.data.inventory import UCI, take_stock
from collegium.errors import DataError, InputFileError
from tiny_data import numeral_files

FOLDERS = {"wall_robot": "wall-robot", "occupancy": "occupancy", "multiple_features": "multiple-features"}


@pytest.mark.parametrize("name", FOLDERS)
def test_who_has_no_data_hears_what_to_fetch_and_where_to_put_it(name, no_data):
    with pytest.raises(DataError) as refusal:
        getattr(data, name)()
    source, _ = UCI[name]
    for words in (
        f"(the folder {FOLDERS[name]}) was not found in {no_data}/.local/share/collegium",
        f"collegium data fetch {name}",
        f"unpack https://archive.ics.uci.edu/static/public/{source.url.split('/')[5]}/",
        f"into DIR/{FOLDERS[name]} and name DIR: in COLLEGIUM_DATA, as root= or with --data.",
    ):
        assert words in str(refusal.value)
    stock = take_stock(name)
    assert (stock.found, stock.obtain) == (False, source.obtain)


@pytest.mark.parametrize("name", FOLDERS)
def test_where_it_is_looked_for(name, uci, put, monkeypatch, no_data):
    root = put(FOLDERS[name], uci[name])
    load = getattr(data, name)
    folder = root / FOLDERS[name]
    assert str(folder) in load(root=root)[0].source
    assert str(folder) in load(root=folder)[0].source
    folder.rename(root / "renamed")
    assert str(root / "renamed") in load(root=root / "renamed")[0].source
    with pytest.raises(DataError, match="not found"):
        load()
    monkeypatch.setenv("COLLEGIUM_DATA", str(root / "renamed"))
    assert str(root / "renamed") in load()[1].source
    with pytest.raises(DataError, match="nowhere"):
        load(root=root / "nowhere")


@pytest.mark.parametrize("name", FOLDERS)
def test_every_file_is_checked_before_it_is_read(name, uci, put):
    root = put(FOLDERS[name], uci[name])
    load = getattr(data, name)
    for file, content in uci[name].items():
        path = root / FOLDERS[name] / file
        for damaged in (content[:-1], content[: len(content) // 2], content.replace(b"0", b"1", 1), b"\xff"):
            path.write_bytes(damaged)
            with pytest.raises(InputFileError, match=rf"{file} is damaged.* get it again\. .*data fetch {name}"):
                load(root=root)
        assert [file in problem for problem in take_stock(name, root).problems] == [True]
        path.unlink()
        with pytest.raises(DataError, match=f"lacks {file}: move it away"):
            load(root=root)
        path.mkdir()
        with pytest.raises(InputFileError, match=f"{file} is a folder"):
            load(root=root)
        path.rmdir()
        path.write_bytes(content)
    load(root=root)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_file_that_may_not_be_read(name, uci, put, forbid):
    root = put(FOLDERS[name], uci[name])
    closed = root / FOLDERS[name] / next(iter(uci[name]))
    forbid(closed)
    with pytest.raises(InputFileError, match="Permission denied"):
        getattr(data, name)(root=root)


def test_line_ends_do_not_count():
    assert checksum(b"a\r\nb\r\n") == checksum(b"a\nb\n") == hashlib.sha256(b"a\nb\n").hexdigest()
    assert checksum(b"a\nb\n") != checksum(b"a\nb")


def test_the_inventory_counts(uci, put):
    for name in FOLDERS:
        root = put(FOLDERS[name], uci[name])
    robot, office, numerals = (take_stock(name, root) for name in FOLDERS)
    assert robot.counts == {"all": dict.fromkeys(data.wall_robot(root=root)[0].class_names, 100)}
    assert office.counts == {"train": {"occupied": 10, "empty": 20}, "test": {"occupied": 11, "empty": 21}}
    assert office.largest_n0 == (20, "occupied", "empty")
    assert numerals.counts == {"all": {str(digit): 200 for digit in range(10)}}
    assert all(stock.complete and not stock.problems for stock in (robot, office, numerals))
    assert "400 items of 24 agents, all checksums as they should be; split when it is loaded" in robot.remark


def test_of_two_layouts_the_one_with_more_of_its_files(uci, put):
    files = numeral_files(csv=True)
    folder = put("multiple-features", files) / "multiple-features"
    (folder / "mfeat-fou").write_bytes(b"")
    assert len(data.multiple_features(root=folder)[0]) == 1400
    (folder / "mfeat-fou.csv").unlink()
    with pytest.raises(DataError, match=r"lacks mfeat-fou\.csv: move"):
        data.multiple_features(root=folder)
