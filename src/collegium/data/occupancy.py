"""Is anybody in the office? Five sensors, minute by minute. [candanedo2016]"""

from __future__ import annotations

import csv

import numpy as np

from collegium.data import _uci
from collegium.data._uci import Readings, Root, Source
from collegium.data.dataset import Dataset

CLASSES = ("occupied", "empty")
SENSORS = ("Temperature", "Humidity", "Light", "CO2", "HumidityRatio")
PARTS = {"train": ("datatraining.txt",), "test": ("datatest.txt", "datatest2.txt")}
"""The official files: those to test on are of other days."""
SOURCE = Source(
    "occupancy",
    "Occupancy Detection",
    "occupancy",
    CLASSES,
    SENSORS,
    "https://archive.ics.uci.edu/static/public/357/occupancy+detection.zip",
    (
        {
            "datatraining.txt": "b2c4d0ce2b9e4e453c476f7125ef31aeec2d1f5c7f5572d0e80de3df6521ab56",
            "datatest.txt": "1b92c7c1b2838963464fa891a610cf3c5db4becb7189189b29b330107a584c7f",
            "datatest2.txt": "d026d1bd5aeccd4aff4f3b3710d48e40613bd5fc370db7e61bbdcaa50d985095",
        },
    ),
)


def occupancy(root: Root = None) -> tuple[Dataset, Dataset]:
    """5 agents with one sensor each, views (n, 1); occupied is +1, empty -1.

    Training items are those of the official training file, test items those of both test files, one after the other:
    other days, and never mixed. HumidityRatio is computed from Temperature and Humidity.
    """
    folder, texts = _uci.read(SOURCE, root)
    train, test = (
        whole.dataset(SOURCE, slice(None), f"{' and '.join(PARTS[part])} in {folder}")
        for part, whole in _parts(texts).items()
    )
    return train, test


def read(root: Root = None) -> dict[str, Readings]:
    """All readings, to learn from and to test on."""
    return _parts(_uci.read(SOURCE, root)[1])


def parse(*texts: str) -> Readings:
    """A line that names the columns, then number, date, five readings and 0 or 1; the number has no name."""
    rows = [row for text in texts for row in csv.reader(text.splitlines()[1:])]
    readings = np.array([row[2:7] for row in rows], np.float64)
    found = np.array([{"1": 0, "0": 1}[row[7]] for row in rows], np.intp)
    return Readings([np.ascontiguousarray(column)[:, None] for column in readings.T], found)


def _parts(texts: dict[str, str]) -> dict[str, Readings]:
    return {part: parse(*(texts[name] for name in names)) for part, names in PARTS.items()}
