"""Where data sets are looked for, where fetched ones are put, and where decoded ones are kept."""

import os
from collections.abc import Iterable
from pathlib import Path

from collegium.errors import DataError, InputFileError

DATA_VARIABLE = "COLLEGIUM_DATA"
CACHE_VARIABLE = "COLLEGIUM_CACHE"


def where(name: str, root: str | os.PathLike[str] | None = None, marks: Iterable[str] = ()) -> Path | None:
    """The folder called `name`, or None: in `root` if that is given; else in COLLEGIUM_DATA, then in the user's own.

    A place may also be the folder itself: it bears the name, or holds something that one of the patterns `marks` fits.
    """
    for place in places(root):
        if os.path.isdir(place / name):  # unlike Path.is_dir, it takes a folder that may not be read for none
            return place / name
        if os.path.isdir(place):
            named = os.path.basename(os.path.abspath(place)) == name
            if named or any(next(place.glob(mark), None) for mark in marks):
                return place
    return None


def places(root: str | os.PathLike[str] | None = None) -> list[Path]:
    """The folders where data sets are looked for, the first one first."""
    if root is not None:
        if not isinstance(root, (str, os.PathLike)) or not os.fspath(root):
            raise DataError(f"root must be the path of a folder; got {root!r}")
        return [_path(root)]
    own = _user_folder("XDG_DATA_HOME", ".local/share")
    chosen = os.environ.get(DATA_VARIABLE)
    return [_path(chosen), own] if chosen else [own]


def searched(root: str | os.PathLike[str] | None = None) -> str:
    """The places of `places`, for people to read."""
    return " and ".join(map(str, places(root)))


def cache_folder() -> Path:
    """Where decoded data is kept: COLLEGIUM_CACHE, else the user's cache. It may be emptied at any time."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return _path(chosen) if chosen else _user_folder("XDG_CACHE_HOME", ".cache")


def listing(folder: Path) -> list[str]:
    """The names of everything in a folder, sorted."""
    try:
        return sorted(os.listdir(folder))
    except OSError as problem:
        raise InputFileError(f"{folder}: {problem.strerror or problem}") from None


def _path(written: str | os.PathLike[str]) -> Path:
    return Path(os.path.expanduser(written))


def _user_folder(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    if os.path.isabs(base):  # the XDG rules say to ignore any other
        return Path(base) / "collegium"
    try:
        return Path.home() / default / "collegium"
    except RuntimeError:
        raise DataError(f"there is no home folder here: set {DATA_VARIABLE} and {CACHE_VARIABLE}") from None
