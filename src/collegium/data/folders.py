"""Where data sets are looked for, where fetched ones are put, and where decoded ones are kept."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from collegium.errors import DataError, InputFileError

DATA_VARIABLE = "COLLEGIUM_DATA"
CACHE_VARIABLE = "COLLEGIUM_CACHE"


def where(name: str, root: str | os.PathLike[str] | None = None, marks: Iterable[str] = ()) -> Path | None:
    """The folder called `name`, or None: in `root` if that is given; else in COLLEGIUM_DATA, then in the user's own.

    A place may also be the folder itself: it bears the name, or holds something that one of the patterns `marks` fits.
    """
    for place in places(root):
        if is_folder(place / name):
            return place / name
        if is_folder(place):
            named = os.path.basename(os.path.abspath(place)) == name
            if named or any(next(place.glob(mark), None) for mark in marks):
                return place
    return None


def places(root: str | os.PathLike[str] | None = None) -> list[Path]:
    """The folders where data sets are looked for, the first one first."""
    if root is not None:
        if not isinstance(root, (str, os.PathLike)) or not os.fspath(root):
            raise DataError(f"root must be the path of a folder; got {root!r}")
        return [_folder(root, "")]
    own = _user_folder("XDG_DATA_HOME", ".local/share")
    chosen = os.environ.get(DATA_VARIABLE)
    found = [_folder(chosen, f"{DATA_VARIABLE} names ")] if chosen else []
    if not found and own is None:
        raise DataError(f"there is no home folder here: set {DATA_VARIABLE}")
    return found if own is None else [*found, own]


def not_found(what: str, root: str | os.PathLike[str] | None, obtain: str) -> str:
    """The sentences for a data set that is in none of the places."""
    return f"{what} was not found in {' or '.join(map(str, places(root)))}. {obtain}."


def cache_folder() -> Path:
    """Where decoded data is kept: COLLEGIUM_CACHE, else the user's cache. It may be emptied at any time."""
    chosen = os.environ.get(CACHE_VARIABLE)
    folder = _path(chosen) if chosen else _user_folder("XDG_CACHE_HOME", ".cache")
    if folder is None:
        raise DataError(f"there is no home folder here: set {CACHE_VARIABLE}")
    return folder


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; one that nobody lets us look for is refused by name, not taken for missing."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except PermissionError as problem:
        raise InputFileError(f"{path}: {problem.strerror}") from None
    except (OSError, ValueError):
        return False


def listing(folder: Path) -> list[str]:
    """The names of what a user put into a folder, sorted: not what file managers leave there."""
    try:
        return sorted(name for name in os.listdir(folder) if not is_clutter(name))
    except OSError as problem:
        raise InputFileError(f"{folder}: {problem.strerror or problem}") from None


def is_clutter(name: str) -> bool:
    """Whether it is hidden, or what macOS and Windows put beside files.

    >>> [name for name in ("00.png", "._00.png", ".DS_Store", "Thumbs.db", "__MACOSX") if not is_clutter(name)]
    ['00.png']
    """
    return name.startswith(".") or name in ("Thumbs.db", "desktop.ini", "__MACOSX")


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None


@contextmanager
def locked(folder: Path, otherwise: Exception) -> Iterator[None]:
    """Keep a folder to this process, or raise `otherwise`. The lock ends with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # not on this system: two at a time would only do the same work twice
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise otherwise from None
        yield
    finally:
        os.close(held)


def _path(written: str | os.PathLike[str]) -> Path:
    return Path(os.path.expanduser(written))


def _folder(written: str | os.PathLike[str], before: str) -> Path:
    path = _path(written)
    if os.path.isfile(path):
        raise DataError(f"{before}{path}{', which' if before else ''} is a file: name the folder that holds the data")
    return path


def _user_folder(variable: str, default: str) -> Path | None:
    base = os.environ.get(variable, "")
    if os.path.isabs(base):  # the XDG rules say to ignore any other
        return Path(base) / "collegium"
    try:
        return Path.home() / default / "collegium"
    except RuntimeError:
        return None
