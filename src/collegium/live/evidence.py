"""Sets of agents whose views are in a statistic: kept once each, and known in the tables by their index."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_MOST = 1 << 12
Indices = NDArray[np.uint16]


class Sets:
    """Sets of agents as bits of whole numbers; index 0 is the empty set.

    There is room for so many. Beyond it, a set counts as empty until others are no longer used: evidence may be
    understated under attack, never overstated.
    """

    def __init__(self) -> None:
        self.members: list[int] = [0]
        self._index: dict[int, int] = {0: 0}
        self._unused: list[int] = []
        self._unions: dict[tuple[int, ...], int] = {}

    def index(self, members: int) -> int:
        """The index of a set."""
        known = self._index.get(members)
        if known is not None:
            return known
        if self._unused:
            place = self._unused.pop()
            self.members[place] = members
        elif len(self.members) < _MOST:
            place = len(self.members)
            self.members.append(members)
        else:
            return 0
        self._index[members] = place
        return place

    def union(self, indices: tuple[int, ...]) -> int:
        """The index of the union of sets."""
        known = self._unions.get(indices)
        if known is None:
            members = 0
            for index in indices:
                members |= self.members[index]
            known = self._unions[indices] = self.index(members)
            if len(self._unions) > 4 * _MOST:
                self._unions.clear()
        return known

    def unions(self, indices: Indices) -> Indices | int:
        """The unions of each item's sets, shape (m, n) to (n,); one for all where they are the same."""
        first = indices[:, :1]
        if indices.shape[1] == 1 or bool((indices == first).all()):
            return self.union(tuple(first[:, 0].tolist()))
        distinct: dict[bytes, int] = {}
        return np.array([self._of_row(row, distinct) for row in np.ascontiguousarray(indices.T)], np.uint16)

    def _of_row(self, row: Indices, distinct: dict[bytes, int]) -> int:
        key = row.tobytes()
        if key not in distinct:
            distinct[key] = self.union(tuple(row.tolist()))
        return distinct[key]

    @property
    def is_crowded(self) -> bool:
        """Whether it is time to `forget`."""
        return len(self.members) - len(self._unused) > _MOST // 2

    def forget(self, used: Iterable[Indices]) -> None:
        """Make room: only the sets with these indices are still used."""
        keep = np.zeros(len(self.members), np.bool_)
        keep[0] = True
        for indices in used:
            keep[np.unique(indices)] = True
        self._unused = np.flatnonzero(~keep).tolist()
        self._index = {self.members[place]: place for place in np.flatnonzero(keep).tolist()}
        self._unions.clear()
