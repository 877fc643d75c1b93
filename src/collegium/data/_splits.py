"""Which items are to learn from and which to test on: drawn class by class, or by blocks of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number, whole_number
from collegium.errors import DataError

Rows = NDArray[np.intp]
_DRAWS = 1000


def generator(seed: Any) -> np.random.Generator:
    """The generator given, or a new one from a whole number."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(whole_number(seed, "the seed", DataError))


def share_of(test: Any) -> float:
    """The share of test items as a number above 0 and at most 1."""
    return real_number(test, "the share of test items", DataError, above=0, at_most=1)


def at_random(
    found: NDArray[Any], chosen: Sequence[int], names: Sequence[str], test: float, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    """Rows for training and test, ascending: the share `test` of each class that is chosen goes to the test.

    found: the class of every item, a place in `names`. Whichever class is chosen first, the split is the same.
    """
    training, testing = [], []
    for one in sorted(chosen):
        order = rng.permutation(np.flatnonzero(found == one))
        apart = round(test * len(order))
        if not 0 < apart < len(order):
            raise DataError(f"test={test!r} leaves no {names[one]} to {'learn from' if apart else 'test on'}")
        training.append(order[apart:])
        testing.append(order[:apart])
    return np.sort(np.concatenate(training)), np.sort(np.concatenate(testing))


def by_blocks(
    found: NDArray[Any], names: Sequence[str], test: float, blocks: int, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    """Rows for training and test, ascending: items in the order of time are cut into blocks, some go to the test.

    The blocks are as long as one another to one item. Which of them go to the test is drawn, and drawn again while a
    class is only on one side.
    """
    blocks = whole_number(blocks, "the number of blocks", DataError, at_least=2, at_most=len(found))
    apart = round(test * blocks)
    if not 0 < apart < blocks:
        raise DataError(f"test={test!r} of {blocks} blocks leaves none to {'learn from' if apart else 'test on'}")
    pieces = np.array_split(np.arange(len(found)), blocks)
    for _ in range(_DRAWS):
        order = rng.permutation(blocks)
        sides = [np.concatenate([pieces[i] for i in np.sort(part)]) for part in (order[apart:], order[:apart])]
        if all(len(np.unique(found[rows])) == len(names) for rows in sides):
            return sides[0], sides[1]
    raise DataError(
        f"no choice of {apart} of {blocks} blocks has every class to learn from and to test on: take more blocks"
    )
