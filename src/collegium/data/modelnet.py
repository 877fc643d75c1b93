"""ModelNet objects as twelve rendered views each, one agent per viewpoint. [wu2015]

modelnet-views/CLASS/train/OBJECT/00.png … 11.png        view k at azimuth 30·k degrees
modelnet-views/CLASS/test/OBJECT/00.png … 11.png
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium._util.progress import progress
from collegium.data import _cache, folders
from collegium.data._classes import labels_of, some_classes
from collegium.data._png import read_grey
from collegium.data.dataset import Dataset
from collegium.errors import DataError, InputFileError

FOLDER = "modelnet-views"
VIEWS = 12
FILES = tuple(f"{k:02}.png" for k in range(VIEWS))
SPLITS = ("train", "test")
SIZE = 224
OBTAIN = (
    "Get the meshes of ModelNet10 or ModelNet40 from https://modelnet.cs.princeton.edu, turn them into views with "
    f"collegium data render MESHES --to DIR/{FOLDER}, and name DIR: in {folders.DATA_VARIABLE}, as root= or with --data"
)
_VERSION = 1  # of what is kept in the cache


class Item(NamedTuple):
    """One object: its name, and its view files with their sizes and times of change."""

    name: str
    files: tuple[Path, ...]
    stamps: tuple[tuple[int, int], ...]


def modelnet(
    classes: Sequence[str] | None = ("dresser", "night_stand"),
    root: str | os.PathLike[str] | None = None,
    background: int = 255,
    size: int = SIZE,
) -> tuple[Dataset, Dataset]:
    """Training and test objects of some classes, twelve uint8 views (n, size, size, 1) each.

    `classes` names two or more; None means all that are there. Labels are +1 and -1 for the first and the second of
    two classes, and places among `class_names` if there are more.

    The renders are transparent where there is no object: there the `background` shows, a grey from 0 (black) to 255
    (white). `size` is the width and height the files must have. The first call decodes all files; later ones map
    what it left in the cache folder (`COLLEGIUM_CACHE`). Without `root` the data is looked for where
    `COLLEGIUM_DATA` says.
    """
    background = whole_number(background, "the background", DataError, at_most=255)
    size = whole_number(size, "the size of the views", DataError, at_least=1, at_most=8192)
    folder = find(root)
    known = classes_in(folder)
    if len(known) < 2:
        raise DataError(f"{folder} has views of {len(known)} classes, but two are needed. {OBTAIN}.")
    chosen = tuple(known[one] for one in some_classes(classes, known, f"{folder}"))
    train, test = (_part(folder, split, chosen, background, size) for split in SPLITS)
    return train, test


def find(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder with the views, or the sentence that says how to get them."""
    folder = where(root)
    if folder is None:
        raise DataError(folders.not_found(f"ModelNet (the folder {FOLDER})", root, OBTAIN))
    return folder


def where(root: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder with the views."""
    return folders.where(FOLDER, root, marks=(f"*/train/*/{FILES[0]}",))


def classes_in(folder: Path) -> list[str]:
    """The classes that have a folder with views."""
    names = folders.listing(folder)
    return [name for name in names if any(folders.is_folder(folder / name / split) for split in SPLITS)]


def items_in(folder: Path, name: str, split: str) -> list[Item]:
    """The objects of a class, sorted by name; one with a view missing or an unknown file is refused by name."""
    place = folder / name / split
    if not folders.is_folder(place):
        raise DataError(f"there is no folder {place}: the {split} objects of {name} are missing")
    found = [item(place / one) for one in folders.listing(place)]
    if not found:
        raise DataError(f"{place} has no objects in it")
    return found


def item(place: Path) -> Item:
    """One object from its folder."""
    if not folders.is_folder(place):
        raise InputFileError(f"{place} does not belong here: only folders of views do, one per object")
    present = folders.listing(place)
    missing = [name for name in FILES if name not in present]
    if missing:
        raise InputFileError(f"{place} lacks {', '.join(missing)}: render the object again or remove its folder")
    unknown = [name for name in present if name not in FILES]
    if unknown:
        raise InputFileError(f"{place / unknown[0]} does not belong here: views are called {FILES[0]} to {FILES[-1]}")
    files = tuple(place / name for name in FILES)
    try:
        stamps = tuple((at.st_size, at.st_mtime_ns) for at in map(os.stat, files))
    except OSError as problem:
        raise InputFileError(f"{place}: {problem.strerror or problem}") from None
    return Item(place.name, files, stamps)


def decode(items: list[Item], background: int, size: int, label: str) -> NDArray[np.uint8]:
    """All views, shape (12, n, size, size, 1): those of one agent lie together."""
    cube = np.empty((VIEWS, len(items), size, size, 1), np.uint8)
    with progress(label, VIEWS * len(items)) as bar:
        for i, item in enumerate(items):
            for k, path in enumerate(item.files):
                cube[k, i, :, :, 0] = read_grey(path, size, background)
                bar.advance()
    return cube


def _part(folder: Path, split: str, chosen: tuple[str, ...], background: int, size: int) -> Dataset:
    groups = [items_in(folder, name, split) for name in chosen]
    items = [item for group in groups for item in group]
    shape = (VIEWS, len(items), size, size, 1)
    key = (_VERSION, split, *chosen, background, shape, *((item.name, item.stamps) for item in items))
    path = _cache.place(f"modelnet-{'-'.join(chosen)}-{split}", key)
    cube = _cache.kept(path, shape)
    if cube is None:
        cube = _cache.keep(path, decode(items, background, size, f"reading {len(items)} {split} objects of ModelNet"))
    names = [item.name for item in items]
    if len(set(names)) < len(names):
        names = [f"{name}/{item.name}" for name, group in zip(chosen, groups, strict=True) for item in group]
    y = labels_of(np.repeat(np.arange(len(groups)), [len(group) for group in groups]), range(len(groups)))
    agents = tuple(f"{360 // VIEWS * k}°" for k in range(VIEWS))
    return Dataset(list(cube), y, chosen, agents, f"ModelNet views, {split} objects in {folder}", tuple(names))
