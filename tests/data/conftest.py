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
