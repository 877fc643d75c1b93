"""Getting CIFAR-10 from its makers: downloaded, verified, unpacked, or left as it was."""

from __future__ import annotations

import os
from pathlib import Path

from collegium.data import folders
from collegium.data._archive import unpack
from collegium.data._download import Remote, download
from collegium.data.cifar10 import ARCHIVE, ARCHIVE_BYTES, ARCHIVE_SHA256, FOLDER, OFFICIAL, OFFICIAL_IMAGES, RECORD
from collegium.data.cifar10 import records as records_of
from collegium.data.inventory import Inventory, take_stock
from collegium.errors import DataError, InputFileError

_EXTRAS = {"batches.meta.txt": 1 << 16, "readme.html": 1 << 16}
_MEMBERS = dict.fromkeys(OFFICIAL, OFFICIAL_IMAGES * RECORD) | _EXTRAS


def fetch_cifar10(
    to: str | os.PathLike[str] | None = None, url: str = ARCHIVE, digest: str = ARCHIVE_SHA256, *, pause: float = 1.0
) -> Path:
    """Download the archive and unpack it into `to`, or where data is looked for first; the folder it made.

    An archive that is there already is used if its checksum is right. Whatever is interrupted leaves a `.part` to go
    on from and nothing half unpacked.
    """
    remote = Remote(url, digest, ARCHIVE_BYTES if digest.lower() == ARCHIVE_SHA256 else None)
    place = folders.places(to)[0]
    try:
        place.mkdir(parents=True, exist_ok=True)
        with folders.locked(place, DataError(f"another process is fetching into {place}: wait for it to end")):
            return _fetch(remote, place, pause)
    except OSError as problem:
        raise DataError(f"cannot write into the folder {place}: {problem.strerror or problem}") from None


def already_there(to: str | os.PathLike[str] | None = None) -> Inventory | None:
    """The official set to the byte, if it is there."""
    stock = take_stock("cifar10", to, thorough=True)
    return stock if stock.complete else None


def _fetch(remote: Remote, place: Path, pause: float) -> Path:
    folder = place / FOLDER
    if folder.exists():
        what = take_stock("cifar10", folder).remark
        raise DataError(f"{folder} holds something else already ({what}): move it away, or choose another place (--to)")
    archive = place / "cifar-10-binary.tar.gz"
    brought = archive.is_file() and folders.sha256(archive) == remote.sha256
    if not brought:
        download(remote, archive, pause=pause)
    try:
        unpack(archive, _MEMBERS, folder, optional=frozenset(_EXTRAS), check=_check)
    except InputFileError:
        if not brought:
            archive.unlink()
        raise
    archive.unlink()
    return folder


def _check(folder: Path) -> None:
    for name in OFFICIAL:
        records_of(folder / name)
