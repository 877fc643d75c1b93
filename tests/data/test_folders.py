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


def test_no_home_at_all(monkeypatch, no_data):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(DataError, match="set COLLEGIUM_DATA"):
        folders.places()


def test_a_folder_that_cannot_be_listed(tmp_path):
    with pytest.raises(InputFileError, match=r"nowhere: No such file"):
        folders.listing(tmp_path / "nowhere")
