"""The items an agent has in hand and those it still remembers: a row each, in arrays of one fixed size."""

from __future__ import annotations

from collections import OrderedDict, deque

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64

Rows = NDArray[np.intp]
FREE, VIEWLESS, TALKING, DONE = range(4)
"""Of a row: nothing in it, waiting for the agent's own view, in its rounds, decided and remembered."""
ABSENT, UNCHANGED, SAID, GIVEN_UP = range(4)
"""Of a neighbour's word: not there yet, silent by its rule, there, no longer waited for."""
NO_VIEW, VIEW, LATE_VIEW = range(3)
"""Of the agent's own view: none, in time, after it had begun from zero."""


class Table:
    """Rows for `capacity` items of T rounds, heard from H neighbours in messages of w numbers.

    A decided item stays until its row is needed.
    """

    def __init__(self, rounds: int, hears: int, capacity: int, width: int = 1) -> None:
        self.capacity = capacity
        self.id = np.zeros(capacity, np.uint64)
        self.state = np.zeros(capacity, np.uint8)
        self.view = np.zeros(capacity, np.uint8)
        self.round = np.zeros(capacity, np.int32)
        """The round whose messages the item waits for."""
        self.first = np.zeros(capacity, np.int32)
        """The first round this agent takes part in: 1, unless it came late."""
        self.born = np.zeros(capacity)
        self.since = np.zeros(capacity)
        """When the agent said its own word of this round."""
        self.ended = np.zeros(capacity)
        self.score = np.zeros(capacity)
        self.trace = np.zeros((rounds + 1, capacity))
        self.sent = np.zeros((rounds, capacity, width))
        """The codes of this agent's messages."""
        self.spoke = np.zeros((rounds, capacity), np.bool_)
        self.inbox = np.zeros((rounds, hears + 1, capacity, width))
        """Messages of the senders in the order of the rule, a place for this agent's own among them."""
        self.word = np.zeros((rounds, hears, capacity), np.uint8)
        self.asked = np.zeros((hears, capacity))
        self.missed = np.zeros((hears, capacity), np.bool_)
        self.agreed = np.zeros(capacity, np.bool_)
        self.told = np.zeros(capacity, np.bool_)
        """Whether neighbours were told of an item whose view is waited for."""
        self.active = 0
        """Items that are not decided yet."""
        self._free = deque(range(capacity))
        self._rows: dict[int, int] = {}
        self._past: OrderedDict[int, None] = OrderedDict()

    @staticmethod
    def capacity_for(rounds: int, hears: int, budget: int, width: int = 1) -> int:
        """How many rows fit into so many bytes."""
        row = (
            8 * width * rounds * (hears + 1)
            + rounds * hears
            + 8 * (rounds * (1 + width) + 1)
            + rounds
            + 9 * hears
            + 260
        )
        return max(budget // row, 64)

    def find(self, item: int) -> int:
        """The row of an item, or -1."""
        return self._rows.get(item, -1)

    def rows(self, ids: U64) -> Rows:
        """The rows of items, -1 where there is none."""
        get = self._rows.get
        return np.array([get(item, -1) for item in ids.tolist()], np.intp)

    def are_past(self, ids: U64) -> NDArray[np.bool_]:
        """Which items were decided here once and are no longer remembered."""
        return np.array([item in self._past for item in ids.tolist()], np.bool_)

    def room(self) -> int:
        """How many more items can be taken in hand."""
        return len(self._free)

    def take(self, ids: U64, now: float, round: int = 1) -> Rows:
        """Rows for new items, which wait for a view before they say their word of `round`; there must be room."""
        rows = np.array([self._free.popleft() for _ in range(len(ids))], np.intp)
        for item in self.id[rows[self.state[rows] == DONE]].tolist():
            del self._rows[item]
            self._past[item] = None
        while len(self._past) > self.capacity:
            self._past.popitem(last=False)
        self._rows.update(zip(ids.tolist(), rows.tolist(), strict=True))
        self.id[rows], self.state[rows], self.view[rows] = ids, VIEWLESS, NO_VIEW
        self.round[rows] = self.first[rows] = round
        self.born[rows] = self.since[rows] = now
        self.trace[:, rows] = np.nan
        self.spoke[:, rows] = False
        self.word[:, :, rows] = ABSENT
        self.missed[:, rows] = self.agreed[rows] = self.told[rows] = False
        self.asked[:, rows] = 0.0
        self.active += len(rows)
        return rows

    def last_received(
        self, t: int, column: int, place: int, rows: Rows
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """A neighbour's latest message up to round t, shape (n, w), and whether there is any."""
        said = self.word[:t, column][:, rows] == SAID
        latest = t - 1 - np.argmax(said[::-1], axis=0)
        return self.inbox[latest, place, rows], np.asarray(said.any(axis=0))

    def finish(self, rows: Rows, now: float) -> None:
        """These items are decided; they are remembered until their rows are needed."""
        self.state[rows], self.ended[rows] = DONE, now
        self.active -= len(rows)
        self._free.extend(rows.tolist())
