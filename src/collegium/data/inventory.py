"""What there is of each data set on this machine, and whether it is sound."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from collegium._util.progress import progress
from collegium.data import _uci, folders
from collegium.data._png import read_grey
from collegium.data._uci import Readings, Root, Source
from collegium.data.cifar10 import FILES, OFFICIAL, OFFICIAL_IMAGES, records
from collegium.data.cifar10 import OBTAIN as CIFAR10_OBTAIN
from collegium.data.cifar10 import counts as count_images
from collegium.data.cifar10 import where as where_cifar10
from collegium.data.digits import CLASSES as DIGITS
from collegium.data.digits import read as read_digits
from collegium.data.modelnet import OBTAIN as MODELNET_OBTAIN
from collegium.data.modelnet import SIZE, SPLITS, classes_in, item
from collegium.data.modelnet import where as where_modelnet
from collegium.data.multiple_features import SOURCE as NUMERALS
from collegium.data.multiple_features import read as read_numerals
from collegium.data.occupancy import SOURCE as OFFICE
from collegium.data.occupancy import read as read_office
from collegium.data.wall_robot import SOURCE as ROBOT
from collegium.data.wall_robot import read as read_robot
from collegium.errors import CollegiumError, DataError, InputFileError

UCI: dict[str, tuple[Source, Callable[[Root], dict[str, Readings]]]] = {
    "wall_robot": (ROBOT, read_robot),
    "occupancy": (OFFICE, read_office),
    "multiple_features": (NUMERALS, read_numerals),
}
"""Data sets of the UCI repository, each with what reads all of it."""
NAMES = ("digits", "cifar10", "modelnet", *UCI)


@dataclass(frozen=True)
class Inventory:
    """One data set: where it is, how many items of each class are in each split, and what is wrong with it."""

    name: str
    folder: Path | None
    """None if it was not found, or needs no folder."""
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """Items per split and class."""
    problems: tuple[str, ...] = ()
    remark: str = ""
    complete: bool = False
    """Whether every byte is that of the official set; known only after a thorough look."""
    obtain: str = ""
    """How to get it."""
    notes: tuple[str, ...] = ()
    """What is sound but worth knowing; known only after a thorough look."""

    @property
    def found(self) -> bool:
        """Whether there is anything of it."""
        return self.folder is not None or bool(self.counts or self.problems)

    @property
    def largest_n0(self) -> tuple[int, str, str] | None:
        """The largest balanced training set of two classes, and of which two: those with the most items."""
        train = self.counts.get("train", {})
        if len(train) < 2:
            return None
        two = dict(Counter(train).most_common(2))
        first, second = (name for name in train if name in two)
        return 2 * min(two.values()), first, second


def take_stock(name: str, root: Root = None, *, thorough: bool = False) -> Inventory:
    """Look at one data set; a thorough look reads every file from beginning to end."""
    if name not in NAMES:
        raise DataError(f"there is no data set {name!r}: choose among {', '.join(NAMES)}")
    try:
        if name in UCI:
            return _text_files(*UCI[name], root)
        return {"digits": _digits, "cifar10": _cifar10, "modelnet": _modelnet}[name](root, thorough)
    except InputFileError as problem:  # a folder that may not be read
        return Inventory(name, None, problems=(str(problem),), remark="cannot be read")


def _digits(root: Root, thorough: bool) -> Inventory:
    _, labels = read_digits()
    counts = {name: int((labels == digit).sum()) for digit, name in enumerate(DIGITS)}
    remark = "comes with scikit-learn; split at random when it is loaded"
    obtain = "It comes with scikit-learn: there is nothing to get"
    return Inventory("digits", None, {"all": counts}, (), remark, complete=True, obtain=obtain)


def _cifar10(root: Root, thorough: bool) -> Inventory:
    folder = where_cifar10(root)
    if folder is None:
        return Inventory("cifar10", None, obtain=CIFAR10_OBTAIN)
    counts: dict[str, dict[str, int]] = {}
    problems, other = [], []
    images = 0
    present = folders.listing(folder)
    with progress("reading CIFAR-10", len(OFFICIAL)) as bar:
        for split, names in FILES.items():
            sound = []
            for name in names:
                try:
                    if name not in present:
                        raise DataError(f"{folder / name} is missing")
                    sound.append(records(folder / name))
                    if thorough and folders.sha256(folder / name) != OFFICIAL[name]:
                        other.append(name)
                except CollegiumError as problem:
                    problems.append(str(problem))
                bar.advance()
            counts[split] = count_images(sound) if sound else {}
            images += sum(map(len, sound))
    expected = OFFICIAL_IMAGES * len(OFFICIAL)
    if images < expected:
        remark = f"{images} images; the official set has {expected}"
    elif not thorough:
        remark = f"{images} images"
    elif other:
        remark = f"{images} images, but not the official ones: other checksums of {', '.join(other)}"
    else:
        remark = f"the complete official set: {images} images, all checksums as they should be"
    complete = thorough and not (problems or other)
    return Inventory("cifar10", folder, counts, tuple(problems), remark, complete, CIFAR10_OBTAIN)


def _modelnet(root: Root, thorough: bool) -> Inventory:
    folder = where_modelnet(root)
    if folder is None:
        return Inventory("modelnet", None, obtain=MODELNET_OBTAIN)
    counts: dict[str, dict[str, int]] = {split: {} for split in SPLITS}
    problems: list[str] = []
    objects: list[tuple[str, str, Path]] = []
    for name in classes_in(folder):
        for split in SPLITS:
            place = folder / name / split
            try:
                if not folders.is_folder(place):
                    raise DataError(f"{place} is missing")
                objects += ((name, split, place / one) for one in folders.listing(place))
            except CollegiumError as problem:
                problems.append(str(problem))
    prints: dict[str, list[tuple[str, str, str]]] = {}
    with progress("reading ModelNet", len(objects)) as bar:
        for name, split, place in objects:
            found, fingerprint = _examined(place, thorough)
            if fingerprint:
                prints.setdefault(fingerprint, []).append((name, split, place.name))
            problems += found
            counts[split][name] = counts[split].get(name, 0) + (not found)
            bar.advance()
    remark = f"{sum(sum(split.values()) for split in counts.values())} objects of 12 views"
    return Inventory("modelnet", folder, counts, tuple(problems), remark, obtain=MODELNET_OBTAIN, notes=_twins(prints))


def _text_files(source: Source, read: Callable[[Root], dict[str, Readings]], root: Root) -> Inventory:
    """A small data set: every look is thorough."""
    folder = _uci.where(source, root)
    if folder is None:
        return Inventory(source.name, None, obtain=source.obtain)
    try:
        parts = read(folder)
    except CollegiumError as problem:
        return Inventory(source.name, folder, problems=(str(problem),), remark="not whole", obtain=source.obtain)
    counts = {
        part: {name: int((whole.found == place).sum()) for place, name in enumerate(source.classes)}
        for part, whole in parts.items()
    }
    items = sum(len(whole.found) for whole in parts.values())
    split = "; split when it is loaded" if "all" in parts else ""
    remark = f"{items} items of {len(source.agents)} agents, all checksums as they should be{split}"
    return Inventory(source.name, folder, counts, (), remark, complete=True, obtain=source.obtain)


def _examined(place: Path, thorough: bool) -> tuple[list[str], str]:
    """What is wrong with an object, and a fingerprint of all its views if they were read."""
    problems = []
    try:
        files = item(place).files
    except CollegiumError as problem:
        return [str(problem)], ""
    seen = hashlib.sha256()
    for path in files if thorough else ():
        try:
            seen.update(read_grey(path, SIZE, background=255).tobytes())
        except CollegiumError as problem:
            problems.append(str(problem))
    return problems, seen.hexdigest() if thorough and not problems else ""


def _twins(prints: dict[str, list[tuple[str, str, str]]]) -> tuple[str, ...]:
    """Objects whose views are the same to the pixel: of two classes, or among those to learn from and those to test."""
    alike = [group for group in prints.values() if len(group) > 1]
    both = [group for group in alike if len({name for name, _, _ in group}) > 1]
    leaked = [one for group in alike if len({split for _, split, _ in group}) > 1 for one in group if one[1] == "test"]
    notes = []
    if both:
        pairs = ", ".join(" = ".join(one for _, _, one in group) for group in both)
        many = "one object looks" if len(both) == 1 else f"{len(both)} objects look"
        notes.append(f"{many} the same in two classes: {pairs}")
    if leaked:
        many = "one test object looks" if len(leaked) == 1 else f"{len(leaked)} test objects look"
        notes.append(f"{many} the same as a training object: {', '.join(one for _, _, one in leaked)}")
    return tuple(notes)
