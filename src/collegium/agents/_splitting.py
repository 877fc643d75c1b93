"""Balanced samples, the part of them that is held out, and parts that are held out in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number, whole_number
from collegium.errors import DataError

Rows = NDArray[np.int64]


def balanced(y: NDArray[Any], n0: int | None, rng: np.random.Generator) -> Rows:
    """`n0` random items, as many of each class, in random order; all that can be had if `n0` is None.

    y: +1 and -1, or places 0 … C-1.
    """
    by_class = _by_class(y)
    C, most = len(by_class), len(by_class) * min(map(len, by_class))
    n0 = most if n0 is None else whole_number(n0, "n0", DataError, at_least=2)
    if n0 > most or n0 % C:
        *counts, last = map(str, map(len, by_class))
        kind, share = ("an even number", "half") if C == 2 else (f"a multiple of {C}", f"one part in {C}")
        raise DataError(
            f"n0 must be {kind}, at most {most}: {share} of each class, and there are "
            f"{', '.join(counts)} and {last} items; got {n0}"
        )
    chosen = np.concatenate([rng.permutation(rows)[: n0 // C] for rows in by_class])
    return rng.permutation(chosen)


def split(y: NDArray[Any], validation: float, rng: np.random.Generator, stratify: bool = True) -> tuple[Rows, Rows]:
    """Random places for training and for validation, the latter the given part of all (of each class, if `stratify`).

    Both parts keep at least one item, of each class if there are several. y: +1 and -1, or places 0 … C-1.
    """
    real_number(validation, "validation", DataError, above=0, at_most=0.9)
    y = np.asarray(y)
    groups = _by_class(y) if stratify else [np.arange(len(y))]
    if (stratify and min(map(len, groups)) < 2) or len(y) < 2:
        raise DataError(
            f"{len(y)} items are too few to hold some out for validation: at least two of each class are needed"
        )
    inside, outside = [], []
    for rows in groups:
        order = rng.permutation(rows)
        held = min(max(round(validation * len(rows)), 1), len(rows) - 1)
        outside.append(order[:held])
        inside.append(order[held:])
    return rng.permutation(np.concatenate(inside)), rng.permutation(np.concatenate(outside))


def folds(y: NDArray[Any], count: int, rng: np.random.Generator) -> Iterator[tuple[Rows, Rows]]:
    """Items to learn from and items held out, `count` times: each is held out once, each class in equal parts."""
    turn = np.empty(len(y), np.int64)
    begun = 0
    for rows in _by_class(y):
        turn[rng.permutation(rows)] = (begun + np.arange(len(rows))) % count
        begun += len(rows)  # so that parts of small classes do not all fall into the first
    for k in range(count):
        yield np.flatnonzero(turn != k), np.flatnonzero(turn == k)


def _by_class(y: NDArray[Any]) -> list[Rows]:
    """The items of +1 and of -1, or of each place."""
    order = (1, -1) if np.isin(y, (1, -1)).all() else np.unique(y)
    return [np.flatnonzero(y == one) for one in order]
