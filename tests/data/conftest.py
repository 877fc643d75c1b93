import builtins
import io
import os

import pytest

from collegium.data._uci import checksum
from collegium.data.inventory import UCI
from tiny_data import numeral_files, office_files, robot_files


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """Nothing is kept in the user's cache, and no proxy stands before this machine."""
    monkeypatch.setenv("COLLEGIUM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """A user without any data: COLLEGIUM_DATA is unset and the home folder is empty."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.delenv("COLLEGIUM_DATA", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def forbid(monkeypatch):
    """Call it with a path to have it closed, for root too: it can be seen, but not opened, listed or looked into."""

    def close(forbidden):
        def guarded(call, also_itself):
            def guard(path=".", *arguments, **settings):
                name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
                if name.startswith(f"{forbidden}/") or (also_itself and name == str(forbidden)):
                    raise PermissionError(13, "Permission denied", name)
                return call(path, *arguments, **settings)

            return guard

        for module, name in ((os, "listdir"), (os, "scandir"), (os, "open"), (builtins, "open"), (io, "open")):
            monkeypatch.setattr(module, name, guarded(getattr(module, name), also_itself=True))
        monkeypatch.setattr(os, "stat", guarded(os.stat, also_itself=False))

    return close


@pytest.fixture
def uci(monkeypatch):
    """Made-up files of the three sets of the UCI repository, taken for the official ones: files by data set."""
    made = {"wall_robot": [robot_files()], "occupancy": [office_files()]}
    made["multiple_features"] = [numeral_files(), numeral_files(csv=True)]
    for name, layouts in made.items():
        for known, files in zip(UCI[name][0].layouts, layouts, strict=True):
            assert known.keys() == files.keys()
            for file, content in files.items():
                monkeypatch.setitem(known, file, checksum(content))
    return {name: layouts[0] for name, layouts in made.items()}


@pytest.fixture
def put(tmp_path):
    """Call it with a folder and files to have them written below the test's own folder, which it returns."""

    def write(folder, files):
        (tmp_path / "data" / folder).mkdir(parents=True)
        for name, content in files.items():
            (tmp_path / "data" / folder / name).write_bytes(content)
        return tmp_path / "data"

    return write
