"""Which classes of a data set are meant, and how their items are labelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import DataError


def some_classes(classes: Any, known: Sequence[str], what: str) -> tuple[int, ...]:
    """The places in `known` of two or more different classes, given by name or by number; of all, if None.

    >>> some_classes(("cat", 5), ["airplane", "automobile", "bird", "cat", "deer", "dog"], "CIFAR-10")
    (3, 5)
    """
    if classes is None:
        return tuple(range(len(known)))
    listed = isinstance(classes, (Sequence, np.ndarray)) and not isinstance(classes, (str, bytes))
    wanted = list(classes) if listed else []
    if len(wanted) < 2:
        raise DataError(
            f"classes must be two classes of {what} or more, such as {(known[0], known[1])!r}; got {classes!r}"
        )
    places = tuple(_place(one, known, what) for one in wanted)
    for place in places:
        if places.count(place) > 1:
            raise DataError(f"classes must be different classes of {what}; got {known[place]} twice")
    return places


def labels_of(found: NDArray[Any], chosen: Sequence[int]) -> NDArray[Any]:
    """Labels of items whose classes are `found`: +1 and -1 for the first and second of two chosen, else their places.

    >>> labels_of(np.array([8, 3, 3]), (3, 8)), labels_of(np.array([8, 3, 5]), (3, 5, 8))
    (array([-1,  1,  1], dtype=int8), array([2, 0, 1]))
    """
    if len(chosen) == 2:
        return np.where(found == chosen[0], 1, -1).astype(np.int8)
    return np.asarray((found[:, None] == np.asarray(chosen)).argmax(axis=1), np.intp)


def _place(one: Any, known: Sequence[str], what: str) -> int:
    if isinstance(one, str) and one in known:
        return known.index(one)
    whole = isinstance(one, (int, np.integer)) and not isinstance(one, (bool, np.bool_))
    if whole and 0 <= one < len(known):
        return int(one)
    raise DataError(f"there is no class {one!r} in {what}: choose among {', '.join(known)}")
