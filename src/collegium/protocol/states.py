"""States of many items as one: nested tuples of arrays with the items on axis 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def leaves(state: Any) -> list[NDArray[Any]]:
    """The arrays of a state, in order."""
    return [leaf for part in state for leaf in leaves(part)] if isinstance(state, tuple) else [state]


def builder(form: Any) -> Callable[[Iterator[Any]], Any]:
    """What puts arrays, taken in order, together to a state of the form of `form`."""
    if not isinstance(form, tuple):
        return next
    parts = [builder(part) for part in form]
    make = getattr(type(form), "_make", tuple)
    return lambda arrays: make([part(arrays) for part in parts])


class StateRows:
    """States of up to `capacity` items, one a row, of the form that a state of one item has."""

    def __init__(self, form: Any, capacity: int) -> None:
        self.arrays = [np.zeros((capacity, *leaf.shape[1:]), leaf.dtype) for leaf in leaves(form)]
        self._build = builder(form)

    def get(self, rows: Any) -> Any:
        """The state of these items."""
        return self._build(iter([array[rows] for array in self.arrays]))

    def set(self, rows: Any, state: Any) -> None:
        """Keep the state of these items."""
        for array, leaf in zip(self.arrays, leaves(state), strict=True):
            array[rows] = leaf
