"""Getting data sets from their makers: downloaded, verified, unpacked, or left as they were."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from collegium.data import _uci, folders
from collegium.data._archive import unpack
from collegium.data._download import Remote, download
from collegium.data.cifar10 import ARCHIVE, ARCHIVE_BYTES, ARCHIVE_SHA256, FOLDER, OFFICIAL, OFFICIAL_IMAGES, RECORD
from collegium.data.cifar10 import records as records_of
from collegium.data.inventory import UCI, Inventory, take_stock
from collegium.errors import DataError, InputFileError

_EXTRAS = {"batches.meta.txt": 1 << 16, "readme.html": 1 << 16}
_MEMBERS = dict.fromkeys(OFFICIAL, OFFICIAL_IMAGES * RECORD) | _EXTRAS
_TEXT_BYTES = 8 << 20  # more than any text file of the repository's has


class _Parcel(NamedTuple):
    """What the archive of a data set is called, and what must be in it."""

    name: str
    folder: str
    archive: str
    members: Mapping[str, int]
    check: Callable[[Path], None]
    optional: frozenset[str] = frozenset()


def fetch_cifar10(
    to: str | os.PathLike[str] | None = None, url: str = ARCHIVE, digest: str = ARCHIVE_SHA256, *, pause: float = 1.0
) -> Path:
    """Download the archive and unpack it into `to`, or where data is looked for first; the folder it made.

    An archive that is there already is used if its checksum is right. Whatever is interrupted leaves a `.part` to go
    on from and nothing half unpacked.
    """
    remote = Remote(url, digest, ARCHIVE_BYTES if digest.lower() == ARCHIVE_SHA256 else None)
    parcel = _Parcel("cifar10", FOLDER, "cifar-10-binary.tar.gz", _MEMBERS, _check_images, frozenset(_EXTRAS))
    return _deliver(parcel, remote, to, pause)


def fetch_uci(
    name: str,
    to: str | os.PathLike[str] | None = None,
    url: str | None = None,
    digest: str | None = None,
    *,
    pause: float = 1.0,
) -> Path:
    """The same for a data set of the UCI repository: its files have known checksums, so its archive needs none."""
    source, _ = UCI[name]
    files = source.layouts[0]

    def check(folder: Path) -> None:
        for file, known in files.items():
            _uci.text_of(folder / file, known)

    remote = Remote(url or source.url, digest)
    archive = source.url.rpartition("/")[2]
    parcel = _Parcel(name, source.folder, archive, dict.fromkeys(files, _TEXT_BYTES), check)
    return _deliver(parcel, remote, to, pause)


def already_there(to: str | os.PathLike[str] | None = None, name: str = "cifar10") -> Inventory | None:
    """The official set to the byte, if it is there."""
    stock = take_stock(name, to, thorough=True)
    return stock if stock.complete else None


def _deliver(parcel: _Parcel, remote: Remote, to: str | os.PathLike[str] | None, pause: float) -> Path:
    place = folders.places(to)[0]
    try:
        place.mkdir(parents=True, exist_ok=True)
        with folders.locked(place, DataError(f"another process is fetching into {place}: wait for it to end")):
            return _fetch(parcel, remote, place, pause)
    except OSError as problem:
        raise DataError(f"cannot write into the folder {place}: {problem.strerror or problem}") from None


def _fetch(parcel: _Parcel, remote: Remote, place: Path, pause: float) -> Path:
    folder = place / parcel.folder
    if folder.exists():
        what = take_stock(parcel.name, folder).remark
        raise DataError(f"{folder} holds something else already ({what}): move it away, or choose another place (--to)")
    archive = place / parcel.archive
    brought = archive.is_file() and remote.sha256 in (None, folders.sha256(archive))
    if not brought:
        download(remote, archive, pause=pause)
    try:
        unpack(archive, parcel.members, folder, optional=parcel.optional, check=parcel.check)
    except InputFileError:
        if not brought:
            archive.unlink()
        raise
    archive.unlink()
    return folder


def _check_images(folder: Path) -> None:
    for name in OFFICIAL:
        records_of(folder / name)
