"""Arrays that take a while to make, kept as memory-mapped files in the cache folder."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.files import LEFTOVERS, atomic_write
from collegium.data import folders
from collegium.errors import InputFileError

_ABANDONED = 3600.0  # seconds after which nobody is still writing a file


def place(name: str, key: Iterable[object]) -> Path:
    """The file that keeps what is made from `key`: everything the array depends on."""
    digest = hashlib.sha256("\0".join(map(str, key)).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return folders.cache_folder() / f"{name}-{digest}.npy"


def kept(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8] | None:
    """The array kept there, memory-mapped and read-only; None if it is not there, not whole or not as it was written.

    A checksum stands behind the array in the file. To compare it takes 0.1 s for 339 MB.
    """
    try:
        array = np.lib.format.open_memmap(path, mode="r")
        with path.open("rb") as file:
            file.seek(array.offset + array.nbytes)
            check = file.read()
    except (OSError, ValueError, EOFError):
        return None
    right = array.shape == shape and array.dtype == np.uint8 and array.flags.c_contiguous
    return array if right and check == _checksum(array) else None


def keep(path: Path, array: NDArray[Any]) -> NDArray[Any]:
    """The same array, from now on kept in a file if one can be written; half a file is never seen."""
    try:
        for leftover in path.parent.glob(LEFTOVERS):
            if leftover.stat().st_mtime < time.time() - _ABANDONED:
                leftover.unlink()
        with atomic_write(path, parents=True, sync=True) as file:
            np.save(file, array, allow_pickle=False)
            file.write(_checksum(array))
    except (OSError, InputFileError):  # a cache that cannot be written, or is full, only costs time
        return array
    mapped = kept(path, array.shape)
    return array if mapped is None else mapped


def _checksum(array: NDArray[Any]) -> bytes:
    return zlib.crc32(np.ascontiguousarray(array).data).to_bytes(4)
