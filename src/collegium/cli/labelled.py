"""Scores with labels, as `certify` and `plan` take them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.labels import to_places, to_signs
from collegium.cli import score_tables
from collegium.errors import InputFileError, LabelError

if TYPE_CHECKING:
    from collegium.agents import Scores


class Labelled(NamedTuple):
    scores: NDArray[np.float64]
    """Shape (n, K), or (n, K, C) of C > 2 classes."""
    y: NDArray[Any]
    """+1 and -1, or places 0 … C-1, shape (n,)."""
    names: tuple[str, ...]
    """Of +1 and -1, or of the places; empty where nobody said."""
    agents: tuple[str, ...]
    """The agents' names, or agent 0, agent 1, …"""

    @property
    def classes(self) -> tuple[int, ...]:
        """What y holds, in the order of `names`."""
        return (1, -1) if self.scores.ndim == 2 else tuple(range(self.scores.shape[2]))


def read_labelled(path: Path, labels: str | None, classes: str | None) -> Labelled:
    """Scores with their labels."""
    table = score_tables.read_scores(path, labels, classes)
    if table.labels is None:
        raise LabelError(f"{path} has no column named label: give --labels, a column or a file")
    agents = table.agents or tuple(f"agent {k}" for k in range(table.values.shape[1]))
    return Labelled(table.values, internal(table, table.labels), table.class_names, agents)


def internal(table: score_tables.Scores, labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as they are inside: +1 and -1, or places 0 … C-1."""
    if table.values.ndim == 2:
        return to_signs(labels, len(table.values), table.classes or None)
    return to_places(labels, len(table.values), table.values.shape[2], table.classes)


def read_record(path: Path) -> "Scores":
    """A score record, or a table whose column `part` tells train, val and test items apart."""
    from collegium.agents import Scores

    if path.suffix.lower() == ".npz":
        return Scores.load(path)
    table = score_tables.read_scores(path)
    if table.parts is None or table.labels is None:
        missing = "label" if table.labels is None else "part, which is train, val or test"
        raise InputFileError(f"{path} has no column {missing}: methods that learn need to know")
    y, rows = internal(table, table.labels), {part: table.parts == part for part in ("train", "val", "test")}
    other = set(table.parts.tolist()) - set(rows)
    if other:
        raise InputFileError(f"{path}: the part {sorted(map(str, other))[0]!r} is neither train, val nor test")
    for part, chosen in rows.items():
        if not chosen.any():
            raise InputFileError(f"{path} has no items of the part {part}: methods learn from train and val")
    known = set(y.tolist())
    if len(y[rows["train"]]) and (absent := known - set(y[rows["train"]].tolist())):
        names = dict(zip(Labelled(table.values, y, (), ()).classes, table.class_names, strict=False))
        missing = ", ".join(str(names.get(one, one)) for one in sorted(absent))
        raise InputFileError(f"{path} has no items of {missing} in the part train: methods learn from all classes")
    train, val, test = (table.values[chosen] for chosen in rows.values())
    y_train, y_val, y_test = (y[chosen] for chosen in rows.values())
    return Scores(
        train, val, test, y_train, y_val, y_test,
        agent_names=table.agents, class_names=table.class_names, description=path.name,
    )  # fmt: skip
