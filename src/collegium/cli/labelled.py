"""Scores with labels, as `certify` and `plan` take them: a table, or the test items of a score record."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.labels import to_signs
from collegium.cli.tables import read_scores
from collegium.errors import InputFileError, LabelError

SCORES_HELP = "Scores, a row per item and a column per agent (CSV, NPY, Parquet), or a score record (.npz)."
LABELS_HELP = "True classes; a column named label is found by itself, and a score record has its own."
CLASSES_HELP = "Which label is +1 and which is -1."


class Labelled(NamedTuple):
    scores: NDArray[np.float64]
    signs: NDArray[np.int8]


def read_labelled(path: Path, labels: str | None, classes: str | None) -> Labelled:
    """Scores (n, K) and signs (n,); of a score record the centred statistics of the test items."""
    if path.suffix.lower() == ".npz":
        if labels is not None or classes is not None:
            raise InputFileError(f"{path} is a score record and has its own labels: leave out --labels and --classes")
        from collegium.agents import Scores

        record = Scores.load(path)
        return Labelled(record.statistics("test"), record.y_test)
    table = read_scores(path, labels)
    if table.labels is None:
        raise LabelError(f"{path} has no column named label: give --labels, a column or a file")
    names = read_classes(classes, table.labels)
    return Labelled(table.values, to_signs(table.labels, len(table.values), names))


def read_classes(written: str | None, labels: NDArray[Any] | None) -> list[Any] | None:
    """The two classes as written, numbers if the labels are numbers."""
    if written is None:
        return None
    names = [name.strip() for name in written.split(",")]
    numeric = labels is not None and labels.dtype.kind in "fiu"
    try:
        return [float(name) for name in names] if numeric else names
    except ValueError:
        raise LabelError(f"--classes {written}: the labels are numbers, so the classes must be numbers") from None
