"""Names of items: identities of those a user gives them, and handles, by which a sender names each of them once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64, item_ids
from collegium.errors import RuleError
from collegium.live.answers import Name
from collegium.live.wire import Run, has_twins

Rows = NDArray[np.intp]
Bools = NDArray[np.bool_]


class Handles:
    """The rows a neighbour's handles stand for. Old ones make room: what is no longer known is asked for again."""

    def __init__(self, capacity: int) -> None:
        size = 1 << max(capacity - 1, 1).bit_length()
        self._mask = size - 1
        self._handle = np.full(size, -1, np.int64)
        self._row = np.full(size, -1, np.intp)
        self._id = np.zeros(size, np.uint64)

    def learn(self, handle: int, rows: Rows, ids: U64) -> None:
        """The sender named items, in the order of its handles."""
        slots = self._slots(handle, len(rows))
        self._handle[slots] = handle + np.arange(len(rows))
        self._row[slots], self._id[slots] = rows, ids

    def find(self, handle: int, count: int) -> tuple[Rows, U64]:
        """Rows and identities of named items; row -1 where the name is not known."""
        handles, slots = handle + np.arange(count), self._slots(handle, count)
        known = self._handle[slots] == handles
        rows = self._row[slots]
        return rows if known.all() else np.where(known, rows, -1), self._id[slots]

    def find_all(self, handles: NDArray[np.int64]) -> tuple[Rows, U64]:
        """The same of any handles."""
        slots = handles & self._mask
        return np.where(self._handle[slots] == handles, self._row[slots], -1), self._id[slots]

    def find_one(self, handle: int) -> tuple[int, int]:
        """The same of one item."""
        slot = handle & self._mask
        if self._handle.item(slot) != handle:
            return -1, 0
        return self._row.item(slot), self._id.item(slot)

    def _slots(self, handle: int, count: int) -> Rows | slice:
        start = handle & self._mask
        if start + count <= len(self._handle):
            return slice(start, start + count)
        return (handle + np.arange(count)) & self._mask


def runs_of(handles: NDArray[np.uint32], rounds: NDArray[np.int32], named: Bools) -> list[Run]:
    """Stretches of consecutive handles in one round, named or not, in the given order."""
    if len(handles) == 1:
        return [Run(handles.item(), 1, rounds.item(), not named.item())]
    breaks = np.flatnonzero((np.diff(handles.astype(np.int64)) != 1) | (np.diff(rounds) != 0) | np.diff(named)) + 1
    starts, stops = [0, *breaks.tolist()], [*breaks.tolist(), len(handles)]
    return [
        Run(handles.item(start), stop - start, rounds.item(start), not named.item(start))
        for start, stop in zip(starts, stops, strict=True)
    ]


def identities(names: Sequence[Name]) -> U64:
    """64-bit identities of items, as `collaborate(items=…)` has them; numbers and texts may be mixed."""
    kinds = set(map(type, names))
    if kinds == {int}:
        with suppress(OverflowError):
            ids = np.array(names, np.uint64)
            if len(ids) == 1 or not has_twins(ids):
                return ids
    if len(kinds) <= 1:
        return item_ids(np.asarray(names, object), len(names))
    ids = np.array([item_ids(np.asarray([name], object), 1)[0] for name in names], np.uint64)
    if has_twins(ids):
        raise RuleError("items must be different")
    return ids
