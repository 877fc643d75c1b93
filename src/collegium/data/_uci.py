"""Small data sets of the UCI Machine Learning Repository: text files, known by their checksums."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium.data import folders
from collegium.data._classes import labels_of
from collegium.data.dataset import Dataset
from collegium.errors import DataError, InputFileError

Root = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Source:
    """A data set of the repository: where it comes from and what its files are."""

    name: str
    """As users type it."""
    title: str
    folder: str
    classes: tuple[str, ...]
    agents: tuple[str, ...]
    url: str
    """Of the archive with the files of the first layout."""
    layouts: tuple[Mapping[str, str], ...]
    """Files by name with their checksums (see `checksum`): the official ones, then others that hold the same."""

    @property
    def obtain(self) -> str:
        """How to get it."""
        return (
            f"Get it with collegium data fetch {self.name}, or unpack {self.url} into DIR/{self.folder} and name DIR: "
            f"in {folders.DATA_VARIABLE}, as root= or with --data"
        )


class Readings(NamedTuple):
    """What one or more files hold."""

    views: list[NDArray[np.float64]]
    """One per agent, (n, columns)."""
    found: NDArray[np.intp]
    """The class of each item, a place among the classes' names."""

    def dataset(self, source: Source, rows: Any, remark: str) -> Dataset:
        """The items of these rows."""
        y = labels_of(self.found[rows], range(len(source.classes)))
        views = [view[rows] for view in self.views]
        return Dataset(views, y, source.classes, source.agents, f"{source.title}, {remark}")

    def datasets(self, source: Source, parts: tuple[Any, Any], how: str) -> tuple[Dataset, Dataset]:
        """Training and test items of a split."""
        train, test = (
            self.dataset(source, rows, f"{part} items of {how}")
            for part, rows in zip(("training", "test"), parts, strict=True)
        )
        return train, test


def where(source: Source, root: Root = None) -> Path | None:
    """The folder with the files, all of them or not."""
    return folders.where(source.folder, root, marks=[name for files in source.layouts for name in files])


def read(source: Source, root: Root = None) -> tuple[Path, dict[str, str]]:
    """The folder and the text of every file by name, or the sentence that says what is missing and how to get it."""
    folder = where(source, root)
    if folder is None:
        raise DataError(folders.not_found(f"{source.title} (the folder {source.folder})", root, source.obtain))
    present = set(folders.listing(folder))
    files = max(source.layouts, key=lambda layout: len(present & layout.keys()))  # the first of equals
    missing = sorted(files.keys() - present)
    if missing:
        raise DataError(f"{folder} lacks {', '.join(missing)}: move it away. {source.obtain}.")
    try:
        return folder, {name: text_of(folder / name, digest) for name, digest in files.items()}
    except InputFileError as problem:
        raise InputFileError(f"{problem}. Move {folder} away and get it again. {source.obtain}.") from None


def text_of(path: Path, digest: str) -> str:
    """The text of a file whose checksum is as it should be; any other file is refused by name."""
    if folders.is_folder(path):
        raise InputFileError(f"{path} is a folder, not a file")
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None
    found = checksum(content)
    if found != digest:
        raise InputFileError(
            f"{path} is damaged or another file: the SHA-256 of its lines is {found}, it should be {digest}"
        )
    return content.decode("ascii")


def checksum(content: bytes) -> str:
    """The SHA-256 of lines that end in a line feed alone: some copies have carriage returns before it."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
