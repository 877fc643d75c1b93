"""States of many items as one: nested tuples of arrays with the items on axis 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def gather(state: Any, rows: NDArray[Any]) -> Any:
    """The state of some of the items."""
    if isinstance(state, tuple):
        parts = [gather(part, rows) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state[rows]


def scatter(into: Any, rows: NDArray[Any], state: Any) -> None:
    """Write the state of some items into that of all."""
    if isinstance(into, tuple):
        for target, part in zip(into, state, strict=True):
            scatter(target, rows, part)
    else:
        into[rows] = state


def room(state: Any, capacity: int) -> Any:
    """Arrays for the states of `capacity` items, of the form of `state`."""
    if isinstance(state, tuple):
        parts = [room(part, capacity) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return np.zeros((capacity, *state.shape[1:]), state.dtype)


def leaves(state: Any) -> list[Any]:
    """The arrays of a state, in order."""
    return [leaf for part in state for leaf in leaves(part)] if isinstance(state, tuple) else [state]
