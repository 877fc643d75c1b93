"""Which two classes of a data set are meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collegium.errors import DataError


def two_classes(classes: Any, known: Sequence[str], what: str) -> tuple[int, int]:
    """The places in `known` of two different classes, given by name or by number.

    >>> two_classes(("cat", 5), ["airplane", "automobile", "bird", "cat", "deer", "dog"], "CIFAR-10")
    (3, 5)
    """
    pair = (
        list(classes) if isinstance(classes, (Sequence, np.ndarray)) and not isinstance(classes, (str, bytes)) else []
    )
    if len(pair) != 2:
        raise DataError(f"classes must be two classes of {what}, such as {(known[0], known[1])!r}; got {classes!r}")
    first, second = (_place(one, known, what) for one in pair)
    if first == second:
        raise DataError(f"classes must be two different classes of {what}; got {known[first]} twice")
    return first, second


def _place(one: Any, known: Sequence[str], what: str) -> int:
    if isinstance(one, str) and one in known:
        return known.index(one)
    whole = isinstance(one, (int, np.integer)) and not isinstance(one, (bool, np.bool_))
    if whole and 0 <= one < len(known):
        return int(one)
    raise DataError(f"there is no class {one!r} in {what}: choose two of {', '.join(known)}")
