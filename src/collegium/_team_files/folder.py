"""The folder of a saved team: it appears whole or not at all, and a file changed since then is refused by name."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from collegium.errors import InputFileError

MANIFEST = "manifest.json"
FORMAT = 1
LEARNED = ("classes_", "temperature_", "center_", "gains_")
"""What a fitted team knows beside its models."""
HELD_OUT = ("prior_", "pool_temperature_", "largest_scores_")
"""What it knows from its labels and from scores of training or held-out items, if it has seen any."""
SEEN = ("n_features_in_", "feature_names_in_")
"""What it knows of a table, if it was fitted on one."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
_LARGEST = 1 << 26  # bytes of a manifest; one of a thousand agents has less than a hundredth of it


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill; it takes the name `target` when all went well, and is gone otherwise."""
    try:
        target = target.resolve()
        check_new(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Within the temporary folder, which only its owner may enter, a new one has the usual permissions.
        with TemporaryDirectory(prefix=".collegium-", dir=target.parent) as temporary:
            filled = Path(temporary) / "team"
            filled.mkdir()
            yield filled
            if target.exists():
                target.rmdir()  # Windows renames onto nothing that exists, not even an empty folder
            os.replace(filled, target)
    except OSError as problem:
        raise InputFileError(f"cannot write {target}: {problem.strerror or problem}") from problem


def check_new(target: Path) -> None:
    """Nothing is there yet, or an empty folder."""
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise InputFileError(f"{target} exists already: choose a new folder, or remove this one")


def write_file(path: Path, data: bytes) -> str:
    """Write a file through to the disk; its SHA-256."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return sha256(data)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def manifest_text(content: dict[str, Any]) -> bytes:
    """The manifest with a checksum over all the rest of it; the same content gives the same bytes."""
    signed = {**content, "checksum": sha256(_dump(content))}
    return _dump(signed)


def _dump(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, indent=1, allow_nan=False).encode("ascii") + b"\n"


def read_manifest(folder: Path) -> dict[str, Any]:
    """The content of the manifest, byte for byte as it was written."""
    if not folder.is_dir():
        raise InputFileError(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    path = folder / MANIFEST
    if not os.path.lexists(path):
        raise InputFileError(f"{folder} is not a saved team: it has no {MANIFEST}")
    text = _read(path, _LARGEST)
    try:
        content = json.loads(text.decode("ascii"))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise InputFileError(f"{path} is damaged: it is not the manifest that Team.save writes")
    if content.get("format") != FORMAT:
        raise InputFileError(
            f"{path} has format {str(content.get('format'))[:60]}, and this version of collegium reads format {FORMAT}"
        )
    content.pop("checksum", None)
    try:
        unchanged = text == manifest_text(content)
    except (ValueError, RecursionError):
        unchanged = False
    if not unchanged:
        raise InputFileError(f"{path} was changed since it was written: save the team again")
    return content


def read_file(folder: Path, name: Any, manifest: dict[str, Any]) -> tuple[Path, bytes]:
    """Path and content of a file that the manifest names, if it has the checksum that the manifest says."""
    checksums = manifest.get("files")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputFileError(f"{folder / MANIFEST} names a file outside its folder, {str(name)[:60]!r}")
    if not isinstance(checksums, dict) or not isinstance(checksums.get(name), str):
        raise InputFileError(f"{folder / MANIFEST} has no checksum of {name}")
    path = folder / name
    data = _read(path)
    if sha256(data) != checksums[name]:
        raise InputFileError(f"{path} was changed since it was written, or is cut off: its checksum is another")
    return path, data


def _read(path: Path, at_most: int | None = None) -> bytes:
    try:
        if not path.resolve().is_relative_to(path.parent.resolve()):
            raise InputFileError(f"{path} is a link that leads out of its folder")
        if not path.is_file():
            raise InputFileError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
        if at_most is not None and path.stat().st_size > at_most:
            raise InputFileError(f"{path} is larger than any manifest: {path.stat().st_size} bytes")
        return path.read_bytes()
    except (OSError, RuntimeError) as problem:  # RuntimeError: links that go round in circles
        raise InputFileError(f"{path}: {getattr(problem, 'strerror', None) or problem}") from None
