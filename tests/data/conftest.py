import builtins
import io
import os

import pytest


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
