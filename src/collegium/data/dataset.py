"""The one type of a data set: K views of the same items, their labels, and the names of everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """K private views of the same n items.

    >>> two = Dataset([np.zeros((3, 4)), np.ones((3, 2, 2))], np.array([1, -1, 1]), ("cat", "dog"), ("left", "right"))
    >>> two
    Dataset(3 items: 2 × cat, 1 × dog; 2 agents: left, right)
    >>> two.take([0, 2]).y
    array([1, 1], dtype=int8)
    """

    views: list[NDArray[Any]]
    """K arrays of any shape and type whose first axis is the items; images are (n, height, width[, channels]).

    They can be read but not written, like the labels: some are files in the cache."""
    y: NDArray[Any]
    """Labels, shape (n,): of two classes +1 (int8) for the first one named and -1 for the second; of more classes their
    places 0 … C-1 among the names."""
    class_names: tuple[str, ...]
    agent_names: tuple[str, ...]
    source: str = ""
    """Where the items came from, for people to read."""
    items: tuple[str, ...] | None = None
    """What the items are called, where they have names."""

    def __post_init__(self) -> None:
        classes = _names(self.class_names, "class_names")
        if len(classes) < 2 or len(set(classes)) < len(classes):
            raise DataError(f"class_names must name different classes, two or more; got {self.class_names!r}")
        views, y = _views(self.views), _labels(self.y, len(classes))
        for k, view in enumerate(views):
            if view.ndim < 1 or len(view) != len(y):
                raise DataError(f"view {k} has shape {view.shape}, but there are {len(y)} labels: views align by item")
        agents = _names(self.agent_names, "agent_names")
        if len(agents) != len(views):
            raise DataError(f"{len(views)} views need as many agent names, got {len(agents)}")
        twice = [name for name, n in Counter(agents).items() if n > 1]
        if twice:
            raise DataError(f"agent_names must differ from one another; got {twice[0]!r} more than once")
        items = None if self.items is None else _names(self.items, "items")
        if items is not None and len(items) != len(y):
            raise DataError(f"{len(y)} items need as many names, got {len(items)}")
        for name, value in (("views", views), ("y", y), ("class_names", classes), ("agent_names", agents)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "items", items)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def size(self) -> int:
        """The number of agents, K."""
        return len(self.views)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many items are of each class, in the order of the names."""
        C = len(self.class_names)
        return tuple(int(np.count_nonzero(self.y == label)) for label in ((1, -1) if C == 2 else range(C)))

    @property
    def largest_n0(self) -> int:
        """The size of the largest sample with as many items of one class as of any other."""
        return len(self.class_names) * min(self.counts)

    def take(self, rows: Sequence[int] | NDArray[Any]) -> Dataset:
        """The same views of some of the items, in the order given: their numbers, or True for each one wanted."""
        chosen = np.asarray(rows)
        chosen = chosen.astype(np.intp) if chosen.shape == (0,) else chosen
        if chosen.ndim != 1 or chosen.dtype.kind not in "iub":
            raise DataError("take wants a list of items' numbers, or True or False for every item")
        try:
            y = self.y[chosen]
        except IndexError as problem:
            raise DataError(f"there are {len(self)} items, counted from 0: {problem}") from None
        items = None if self.items is None else tuple(np.asarray(self.items, object)[chosen])
        views = [view[chosen] for view in self.views]
        return Dataset(views, y, self.class_names, self.agent_names, self.source, items)

    def __repr__(self) -> str:
        names, classes = self.agent_names, self.class_names
        agents = ", ".join(names) if self.size < 3 else f"{names[0]} … {names[-1]}"
        plural = "agent" if self.size == 1 else "agents"
        if len(classes) > 4:
            items = f" of {len(classes)} classes: {classes[0]} … {classes[-1]}"
        else:
            items = ": " + ", ".join(f"{n} × {name}" for n, name in zip(self.counts, classes, strict=True))
        return f"Dataset({len(self)} items{items}; {self.size} {plural}: {agents})"


def _views(views: Any) -> list[NDArray[Any]]:
    if isinstance(views, (str, bytes, dict)) or not hasattr(views, "__iter__"):
        raise DataError(f"views must be a list of arrays, one per agent; got {type(views).__name__}")
    try:
        arrays = [(view if isinstance(view, np.memmap) else np.asarray(view)).view() for view in views]
    except ValueError:
        raise DataError("a view must be one array, with rows of the same shape") from None
    if not arrays:
        raise DataError("a data set needs at least one view")
    for array in arrays:
        array.flags.writeable = False
    return arrays


def _labels(y: Any, C: int) -> NDArray[Any]:
    """Signs of two classes, places of more; a copy that cannot be written to."""
    labels = np.asarray(y)
    allowed = (-1, 1) if C == 2 else range(C)
    if labels.ndim != 1 or not np.isin(labels, allowed).all():
        meant = "+1 (first class) and -1 (second class)" if C == 2 else f"places among its {C} classes, 0 to {C - 1}"
        raise DataError(f"labels of a data set are {meant}, one per item")
    own = labels.astype(np.int8 if C == 2 else np.intp)
    own.flags.writeable = False
    return own


def _names(names: Any, what: str) -> tuple[str, ...]:
    if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
        raise DataError(f"{what} must be a list of names, got {names!r}")
    return tuple(map(str, names))
