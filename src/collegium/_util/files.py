"""Files that are whole or not there at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from collegium.errors import InputFileError

LEFTOVERS = ".*.part"
"""What a process that was killed while it wrote leaves beside the file."""


@contextmanager
def atomic_write(
    path: str | Path, *, parents: bool = False, sync: bool = False, mode: int = 0o666
) -> Iterator[BinaryIO]:
    """A new file to write bytes into; it takes the name `path` when all went well, and is gone otherwise.

    Nobody ever sees half of it, and a file of that name stays as it was until then. A link keeps leading where it led.
    Devices and pipes, which have no earlier content to protect, are written to directly.

    parents: make the folders above it where they are missing.
    mode: who may read and write it, less what the user's mask takes away.
    sync: wait until the disk has the content, so that not even a power cut leaves half a file under the name.
    """
    target = Path(os.path.realpath(path))
    part = target.parent / f".{token_hex(8)}.part"
    try:
        if parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            with open(path, "wb") as file:
                yield file
            return
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as problem:
        raise InputFileError(f"cannot write {path}: {problem.strerror or problem}") from None
    finally:
        with suppress(OSError):
            part.unlink()
