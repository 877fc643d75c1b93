from pathlib import Path

import pytest

from collegium.data import folders
from collegium.errors import DataError, InputFileError


def test_the_order_of_places(monkeypatch, no_data, tmp_path):
    own = no_data / ".local/share/collegium"
    assert folders.places() == [own]
    monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path / "set"))
    assert folders.places() == [tmp_path / "set", own]
    assert folders.places("given") == [Path("given")]
    assert folders.places("~nobody of this name/x") == [Path("~nobody of this name/x")]
    monkeypatch.setenv("COLLEGIUM_DATA", "~/mine")
    assert folders.places()[0] == no_data / "mine"
    monkeypatch.setenv("COLLEGIUM_DATA", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert folders.places() == [tmp_path / "xdg/collegium"]
    monkeypatch.setenv("XDG_DATA_HOME", "relative")  # the XDG rules say to ignore it
    assert folders.places() == [own]


def test_where(monkeypatch, no_data, tmp_path):
    assert folders.where("set") is None
    own = no_data / ".local/share/collegium/set"
    own.mkdir(parents=True)
    assert folders.where("set") == own
    monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path))
    assert folders.where("set") == own
    (tmp_path / "set").write_text("a file is no folder")
    assert folders.where("set") == own
    (tmp_path / "set").unlink()
    (tmp_path / "set").mkdir()
    assert folders.where("set") == tmp_path / "set"
    assert folders.where("set", own.parent) == own
    assert folders.where("set", own) == own
    assert folders.where("set", own.parent.parent) is None
    (own.parent.parent / "mark").touch()
    assert folders.where("set", own.parent.parent, marks=("other", "m?rk")) == own.parent.parent
    assert folders.where("set", "no\0path") is None
    monkeypatch.chdir(own)
    assert folders.where("set", ".") == Path()


def test_the_cache_folder(monkeypatch, no_data, tmp_path):
    assert folders.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("COLLEGIUM_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert folders.cache_folder() == no_data / ".cache/collegium"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folders.cache_folder() == tmp_path / "xdg/collegium"


def test_no_home_at_all(monkeypatch, no_data, tmp_path):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with pytest.raises(DataError, match=r"no home folder here: set COLLEGIUM_DATA$"):
        folders.places()
    monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path))
    assert folders.places() == [tmp_path]
    assert folders.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("COLLEGIUM_CACHE")
    with pytest.raises(DataError, match=r"no home folder here: set COLLEGIUM_CACHE$"):
        folders.cache_folder()


def test_a_file_is_no_place_for_data(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=f"^{tmp_path}/file is a file: name the folder"):
        folders.places(tmp_path / "file")
    monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path / "file"))
    with pytest.raises(DataError, match=f"^COLLEGIUM_DATA names {tmp_path}/file, which is a file"):
        folders.places()


def test_what_may_not_be_read_is_not_taken_for_missing(tmp_path, forbid):
    (tmp_path / "closed" / "set").mkdir(parents=True)
    forbid(tmp_path / "closed")
    with pytest.raises(InputFileError, match="closed/set: Permission denied"):
        folders.where("set", tmp_path / "closed")
    with pytest.raises(InputFileError, match="closed: Permission denied"):
        folders.listing(tmp_path / "closed")


def test_a_folder_that_cannot_be_listed(tmp_path):
    with pytest.raises(InputFileError, match=r"nowhere: No such file"):
        folders.listing(tmp_path / "nowhere")


def test_two_at_a_time(tmp_path):
    with folders.locked(tmp_path, RuntimeError("busy")):  # noqa: SIM117
        with pytest.raises(RuntimeError, match="busy"), folders.locked(tmp_path, RuntimeError("busy")):
            pass
    with folders.locked(tmp_path, RuntimeError("still busy")):
        pass
