"""Balanced samples and the part of them that is held out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.labels import to_signs
from collegium.errors import DataError

Rows = NDArray[np.int64]


def balanced(y: NDArray[np.int8], n0: int | None, rng: np.random.Generator) -> Rows:
    """`n0` random items, half of them of each class, in random order; all that can be had if `n0` is None."""
    by_class = [np.flatnonzero(y == sign) for sign in (1, -1)]
    most = 2 * min(map(len, by_class))
    n0 = most if n0 is None else whole_number(n0, "n0", DataError, at_least=2)
    if n0 > most or n0 % 2:
        raise DataError(
            f"n0 must be an even number, at most {most}: half of each class, and there are "
            f"{len(by_class[0])} and {len(by_class[1])} items; got {n0}"
        )
    chosen = np.concatenate([rng.permutation(rows)[: n0 // 2] for rows in by_class])
    return rng.permutation(chosen)


def split(y: NDArray[np.int8], validation: float, rng: np.random.Generator, stratify: bool = True) -> tuple[Rows, Rows]:
    """Random places for training and for validation, the latter the given part of all (of each class, if `stratify`).

    Both parts keep at least one item, of each class if there are two.
    """
    real_number(validation, "validation", DataError, above=0, at_most=0.9)
    signs = to_signs(y, len(y), classes=(1, -1))
    groups = [np.flatnonzero(signs == sign) for sign in (1, -1)] if stratify else [np.arange(len(signs))]
    if (stratify and min(map(len, groups)) < 2) or len(signs) < 2:
        raise DataError(
            f"{len(signs)} items are too few to hold some out for validation: at least two of each class are needed"
        )
    inside, outside = [], []
    for rows in groups:
        order = rng.permutation(rows)
        held = min(max(round(validation * len(rows)), 1), len(rows) - 1)
        outside.append(order[:held])
        inside.append(order[held:])
    return rng.permutation(np.concatenate(inside)), rng.permutation(np.concatenate(outside))
