"""Unpacking an archive without trusting it: the files that are expected, and nothing else."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from collegium._util.progress import progress
from collegium.errors import DataError, InputFileError

_OVERHEAD = 1 << 20  # bytes of headers and padding


def unpack(
    archive: Path,
    members: Mapping[str, int],
    folder: Path,
    *,
    optional: frozenset[str] = frozenset(),
    check: Callable[[Path], object] | None = None,
) -> None:
    """Unpack a .tar.gz or a .zip into a folder.

    `members` names the files and how many bytes each may have at most; those in `optional` may be missing. In a .tar.gz
    they are all called `NAME/member`, where NAME is the name of `folder`; anything else in it, a link, a path that
    leads elsewhere, a longer file, has it refused. From a .zip they are taken by their own names, whatever folder they
    are in there, and nothing else is read. The folder appears all at once, after `check` has seen it, or not at all.
    Nobody else may be unpacking into it meanwhile.
    """
    try:
        for leftover in folder.parent.glob(f".{folder.name}-*"):  # of a run that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        workshop = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    except OSError as problem:
        raise DataError(f"cannot write into {folder.parent}: {problem.strerror or problem}") from None
    try:
        built = workshop / folder.name
        built.mkdir()
        found = (_read_zip if zipfile.is_zipfile(archive) else _read_tar)(archive, members, built)
        missing = sorted(set(members) - found - optional)
        if missing:
            raise InputFileError(f"{archive} lacks {', '.join(missing)}: it is not the archive expected")
        if check is not None:
            check(built)
        if folder.exists():
            raise DataError(f"{folder} exists already: move it away first")
        built.rename(folder)
    except OSError as problem:
        raise DataError(f"cannot unpack {archive} into {folder}: {problem.strerror or problem}") from None
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _read_tar(archive: Path, members: Mapping[str, int], built: Path) -> set[str]:
    found: set[str] = set()
    allowed = sum(members.values()) + _OVERHEAD
    try:
        with (
            archive.open("rb") as packed,
            gzip.open(packed) as content,
            progress(f"unpacking {archive.name}", archive.stat().st_size, in_bytes=True) as bar,
            tarfile.open(fileobj=_Limited(content, allowed, lambda: bar.move_to(packed.tell())), mode="r|") as tar,
        ):
            for entry in tar:
                if entry.isdir() and entry.name.removeprefix("./") in (".", built.name):
                    continue
                name = _expected(archive, entry, built.name, members)
                if name in found:
                    raise InputFileError(f"{archive} has {entry.name!r} twice: refused")
                found.add(name)
                source = tar.extractfile(entry)
                with (built / name).open("xb") as target:
                    if source is not None:
                        shutil.copyfileobj(source, target)
                if (built / name).stat().st_size != entry.size:
                    raise InputFileError(f"{archive} is truncated: {entry.name} is not whole")
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise InputFileError(f"{archive} is not a whole .tar.gz archive: {problem}") from None
    return found


def _read_zip(archive: Path, members: Mapping[str, int], built: Path) -> set[str]:
    found: set[str] = set()
    try:
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                name = entry.filename.rpartition("/")[2]
                if name not in members or name in found:
                    continue
                with packed.open(entry) as source, (built / name).open("xb") as target:
                    content = source.read(members[name] + 1)
                    if len(content) > members[name]:
                        raise InputFileError(
                            f"{archive} has {entry.filename!r} of more than {members[name]} bytes: refused"
                        )
                    target.write(content)
                found.add(name)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as problem:
        raise InputFileError(f"{archive} is not a whole .zip archive that can be read: {problem}") from None
    return found


def _expected(archive: Path, entry: tarfile.TarInfo, folder: str, members: Mapping[str, int]) -> str:
    """The name of an entry inside the folder, if it is one of those wanted."""
    top, _, name = entry.name.removeprefix("./").partition("/")
    if entry.issym() or entry.islnk():
        raise InputFileError(f"{archive} has a link in it, {entry.name!r} to {entry.linkname!r}: refused")
    if top != folder or name not in members:
        raise InputFileError(f"{archive} has {entry.name!r} in it, which does not belong there: refused")
    if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.issparse():
        raise InputFileError(f"{archive} has {entry.name!r} in it, which is not a plain file: refused")
    if not 0 <= entry.size <= members[name]:
        raise InputFileError(f"{archive} has {entry.name!r} of {entry.size} bytes, at most {members[name]} go: refused")
    return name


class _Limited(io.RawIOBase):
    """A stream that refuses to unfold into more than it should: tarfile reads some headers of any length."""

    def __init__(self, stream: gzip.GzipFile, allowed: int, moved: Callable[[], None]) -> None:
        self.stream = stream
        self.left = allowed
        self.moved = moved

    def read(self, size: int = -1) -> bytes:
        block: bytes = self.stream.read(min(size, self.left + 1) if size >= 0 else self.left + 1)
        self.left -= len(block)
        self.moved()
        if self.left < 0:
            raise tarfile.ReadError("it unfolds into far more than it should")
        return block
