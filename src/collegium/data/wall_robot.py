"""A robot follows a wall: 24 ultrasound sensors in a ring and what it did next. [freire2009]"""

from __future__ import annotations

import numpy as np

from collegium.data import _splits, _uci
from collegium.data._uci import Readings, Root, Source
from collegium.data.dataset import Dataset
from collegium.errors import DataError

CLASSES = ("Move-Forward", "Sharp-Right-Turn", "Slight-Left-Turn", "Slight-Right-Turn")
SENSORS = tuple(f"US{k}" for k in range(1, 25))
"""US1 looks ahead; each of the others 15 degrees further than the one before it."""
FILE = "sensor_readings_24.data"
SOURCE = Source(
    "wall_robot",
    "the wall-following robot",
    "wall-robot",
    CLASSES,
    SENSORS,
    "https://archive.ics.uci.edu/static/public/194/wall+following+robot+navigation+data.zip",
    ({FILE: "1108cbbcac9c119519a3c493358d3084bc619b5aaa688212aa75a777aa7bd5fd"},),
)
SPLITS = ("random", "blocks")


def wall_robot(
    split: str = "random",
    test: float = 0.3,
    seed: int | np.random.Generator = 0,
    root: Root = None,
    blocks: int = 10,
) -> tuple[Dataset, Dataset]:
    """24 agents with one distance sensor each, views (n, 1) in metres; the robot's four movements as classes.

    The 5456 readings follow one another in time, about nine a second, and are much like their neighbours.
    `split="random"` puts the share `test` of each class to the test items, among which are then the neighbours of
    training items: errors come out too small for a robot that drives on. `split="blocks"` cuts the time into `blocks`
    pieces of the same length and tests on the share `test` of them, so that only readings at the edges have such
    neighbours; report it beside the other. The sensors are a ring, and so is their natural network:
    `topology.ring(24)`, agent k beside k - 1 and k + 1.
    """
    share, rng = _splits.share_of(test), _splits.generator(seed)
    if split not in SPLITS:
        raise DataError(f'split must be "random" or "blocks"; got {split!r}')
    folder, texts = _uci.read(SOURCE, root)
    whole = parse(texts[FILE])
    if split == "random":
        parts = _splits.at_random(whole.found, range(len(CLASSES)), CLASSES, share, rng)
    else:
        parts = _splits.by_blocks(whole.found, CLASSES, share, blocks, rng)
    how = "a random split" if split == "random" else f"a split by {blocks} blocks of time"
    return whole.datasets(SOURCE, parts, f"{how}, from {folder}")


def read(root: Root = None) -> dict[str, Readings]:
    """All readings."""
    return {"all": parse(_uci.read(SOURCE, root)[1][FILE])}


def parse(text: str) -> Readings:
    """24 distances and the movement in each line, with commas between them."""
    rows = [line.split(",") for line in text.splitlines()]
    distances = np.array([row[:-1] for row in rows], np.float64)
    found = np.array([CLASSES.index(row[-1]) for row in rows], np.intp)
    return Readings([np.ascontiguousarray(column)[:, None] for column in distances.T], found)
