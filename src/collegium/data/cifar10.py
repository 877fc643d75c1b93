"""CIFAR-10 in its official binary layout: 32×32 colour images of ten classes. [krizhevsky2009]"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data import folders, patches
from collegium.data._classes import labels_of, some_classes
from collegium.data.dataset import Dataset
from collegium.errors import DataError, InputFileError

FOLDER = "cifar-10-batches-bin"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FILES = {"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)}
SIDE = 32
RECORD = 1 + 3 * SIDE * SIDE
"""Bytes of one image: its label, then red, green and blue, each row by row."""
ARCHIVE = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
ARCHIVE_BYTES = 170_052_171
ARCHIVE_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
"""Of the archive whose MD5 is given on the makers' page as c32a1d4ab5d03f1284b67883e8d87530."""
OFFICIAL = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
"""SHA-256 of the files in it, each with 10 000 images."""
OFFICIAL_IMAGES = 10_000
OBTAIN = (
    "Get it with collegium data fetch cifar10, or unpack cifar-10-binary.tar.gz in a folder DIR and name DIR: "
    f"in {folders.DATA_VARIABLE}, as root= or with --data"
)


def cifar10(
    classes: Sequence[int | str] | None = ("cat", "dog"),
    root: str | os.PathLike[str] | None = None,
    grid: patches.Grid = (3, 3),
) -> tuple[Dataset, Dataset]:
    """Training and test images of some classes, by name or by number, cut into patches of 11, 11 and 10 pixels.

    `classes` names two or more; None means all ten. Labels are +1 and -1 for the first and the second of two classes,
    and places among `class_names` if there are more. Views are uint8 arrays (n, height, width, 3), one per patch, in
    the order of the official files. `grid=(1, 1)` gives one view, the whole image. Without `root` the data is looked
    for where `COLLEGIUM_DATA` says.
    """
    chosen = some_classes(classes, CLASSES, "CIFAR-10")
    grid = patches.check_grid(grid, SIDE, SIDE)
    folder = find(root)
    train, test = (_part(folder, split, chosen, grid) for split in FILES)
    return train, test


def find(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder with all six files, or the sentence that says what is missing and how to get it."""
    folder = where(root)
    if folder is None:
        raise DataError(folders.not_found(f"CIFAR-10 (the folder {FOLDER})", root, OBTAIN))
    missing = sorted(set(OFFICIAL) - set(folders.listing(folder)))
    if missing:
        raise DataError(f"{folder} lacks {', '.join(missing)}: move it away. {OBTAIN}.")
    return folder


def where(root: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder with the files, whole or not."""
    return folders.where(FOLDER, root, marks=OFFICIAL)


def records(path: Path) -> NDArray[np.uint8]:
    """The images of one file, memory-mapped, one per row; refused by name if it is anything but whole records."""
    if folders.is_folder(path):
        raise InputFileError(f"{path} is a folder, not a file")
    try:
        size = path.stat().st_size
        if size == 0 or size % RECORD:
            whole = "is empty" if size == 0 else f"has {size} bytes, which is no multiple of {RECORD}"
            raise InputFileError(f"{path} {whole}: it is truncated or no CIFAR-10 file")
        rows = np.memmap(path, np.uint8, mode="r", shape=(size // RECORD, RECORD))
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None
    strange = np.flatnonzero(rows[:, 0] >= len(CLASSES))
    if len(strange):
        raise InputFileError(
            f"{path}: record {strange[0]} has label {rows[strange[0], 0]}, but labels go from 0 to {len(CLASSES) - 1}: "
            "it is damaged or no CIFAR-10 file"
        )
    return rows


def counts(files: Sequence[NDArray[np.uint8]]) -> dict[str, int]:
    """How many images of each class that occurs."""
    found = sum(np.bincount(rows[:, 0], minlength=len(CLASSES)) for rows in files)
    return {name: int(n) for name, n in zip(CLASSES, np.atleast_1d(found), strict=True) if n}


def _part(folder: Path, split: str, wanted: tuple[int, ...], grid: patches.Grid) -> Dataset:
    try:
        files = [records(folder / name) for name in FILES[split]]
    except InputFileError as problem:
        raise InputFileError(f"{problem}. Move {folder} away and get it again. {OBTAIN}.") from None
    chosen = [np.flatnonzero(np.isin(rows[:, 0], wanted)) for rows in files]
    labels = np.concatenate([rows[own, 0] for rows, own in zip(files, chosen, strict=True)])
    missing = [CLASSES[one] for one in wanted if not (labels == one).any()]
    if missing:
        there = ", ".join(f"{name} ({n})" for name, n in counts(files).items())
        raise DataError(
            f"the {split} files in {folder} have no image of class {' or '.join(missing)}: they have {there}. "
            f"Choose among these, or move the folder away and get all ten. {OBTAIN}."
        )
    names = tuple(CLASSES[one] for one in wanted)
    source = f"CIFAR-10, {split} files in {folder}"
    return Dataset(_cut(files, chosen, grid), labels_of(labels, wanted), names, patches.names(grid), source)


def _cut(files: Sequence[Any], chosen: Sequence[Any], grid: patches.Grid) -> list[NDArray[np.uint8]]:
    """The patches of the chosen records, file by file, so that no more than one file's images are held twice."""
    n = sum(map(len, chosen))
    cells = patches.cells(SIDE, SIDE, grid)
    views = [np.empty((n, r.stop - r.start, c.stop - c.start, 3), np.uint8) for r, c in cells]
    start = 0
    for rows, own in zip(files, chosen, strict=True):
        planes = rows[own, 1:].reshape(-1, 3, SIDE, SIDE)
        for view, (r, c) in zip(views, cells, strict=True):
            view[start : start + len(own)] = planes[:, :, r, c].transpose(0, 2, 3, 1)
        start += len(own)
    return views
