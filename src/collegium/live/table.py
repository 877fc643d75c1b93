"""The items an agent has in hand and those it still remembers: a row each, in arrays of one fixed size."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64

Rows = NDArray[np.intp]
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rounds = NDArray[np.int32]
Some = Rows | slice
"""Rows: a slice of those that follow each other, which costs a tenth of what an array of them does."""
_PAST = 1 << 17  # forgotten items whose identities are still known
_RERUN = np.uint64(0x5C011E61_0A6A1DED)


class ItemState(IntEnum):
    """The state of an item. Each transition is a method of `Table`, which checks where it comes from."""

    FREE = 0
    """The row is empty."""
    ANNOUNCED = 1
    """A neighbour began it; the agent waits for its own view. From FREE, by `announce`."""
    RUNNING = 2
    """In its rounds. From ANNOUNCED, by `begin`; `drop` frees the row of either."""
    DECIDED = 3
    """Decided and remembered until the row is needed. From RUNNING, by `decide`; `announce` uses the row again."""


class Message(IntEnum):
    """What is known of a neighbour's message in a round."""

    PENDING = 0
    UNCHANGED = 1
    """Silent by its rule."""
    RECEIVED = 2
    DECLINED = 3
    """It will never come, or is no longer waited for."""


class View(IntEnum):
    """The agent's own view of an item."""

    NONE = 0
    GIVEN = 1
    LATE = 2
    """It came after the agent had taken part from zero, and began the item once more."""


# As plain numbers, which arrays compare with ten times as quickly.
FREE, ANNOUNCED, RUNNING, DECIDED = map(int, ItemState)
PENDING, UNCHANGED, RECEIVED, DECLINED = map(int, Message)
NO_VIEW, GIVEN, LATE = map(int, View)


class TransitionError(RuntimeError):
    """A transition that the states do not have: a mistake in the engine."""


def rerun(ids: U64) -> U64:
    """The identities under which items run once more, after late views; twice gives the first ones back."""
    return ids ^ _RERUN


def span(rows: Rows) -> Some:
    """The same rows, as a slice where they follow each other."""
    row, n = rows.item(0), len(rows)
    if rows.item(-1) - row == n - 1 and (n < 3 or (rows[1:] - rows[:-1] == 1).all()):
        return slice(row, row + n)
    return rows


def together(rows: Rows, t: Rounds) -> tuple[Some, int | Rounds]:
    """Rows and their rounds, to index with: one number for all rounds where they are the same, and then a slice."""
    first = t.item(0)
    return (rows, t) if len(t) > 1 and (t != first).any() else (span(rows), first)


def in_round(array: NDArray[Any], t: int | Rounds, rows: Some) -> NDArray[Any]:
    """What there is of all senders in the rounds of these rows: from (T, m, N, …) to a copy of shape (m, n, …)."""
    if isinstance(t, int):
        return np.array(array[t - 1][:, rows])
    return array[t - 1, :, rows].swapaxes(0, 1)


class Table:
    """Rows for N = `capacity` items of T rounds, heard from m senders (the agent itself among them) in messages of w
    numbers, whose statistics have d. Rows are the axis after rounds and senders: a frame fills a stretch of memory.

    waits: which senders' messages a round waits for, shape (T, m); all, if None.
    """

    def __init__(
        self, rounds: int, senders: int, capacity: int, width: int = 1, d: int = 1, waits: NDArray[Any] | None = None
    ) -> None:
        T, m, N = rounds, senders, capacity
        self.capacity, self.rounds = capacity, rounds
        self._new = np.where(np.ones((T, m), np.bool_) if waits is None else waits, PENDING, RECEIVED)[:, :, None]
        self.id = np.zeros(N, np.uint64)
        self.state = np.zeros(N, np.uint8)
        self.view = np.zeros(N, np.uint8)
        self.round = np.ones(N, np.int32)
        """The round whose messages the item waits for."""
        self.first = np.ones(N, np.int32)
        """The first round this agent takes part in: 1, unless it came late."""
        self.done = np.zeros(N, np.int32)
        """The last round that ended; its statistic is the item's."""
        self.born = np.zeros(N)
        self.since = np.zeros(N)
        """When the agent sent its own message of this round."""
        self.ended = np.zeros(N)
        self.score = np.zeros((N, d))
        self.trace = np.zeros((T + 1, N, d))
        self.sent = np.zeros((T, N, width))
        """The codes of this agent's messages."""
        self.spoke = np.zeros((T, N), np.bool_)
        self.sent_set = np.zeros((T, N), np.uint16)
        """Whose views are in this agent's messages, as an index of `Sets`."""
        self.own_set = np.zeros(N, np.uint16)
        """Whose views are in the last message it sent."""
        self.inbox = np.zeros((T, m, N, width))
        """Messages of the senders in the order of the rule; in this agent's own place, what it sent last."""
        self.message = np.zeros((T, m, N), np.uint8)
        self.inbox_set = np.zeros((T, m, N), np.uint16)
        self.evidence = np.zeros(N, np.uint16)
        """Whose views are in the statistic."""
        self.others = np.zeros(N, np.uint16)
        """Whose views came in messages."""
        self.gave_up = np.zeros((m, N), np.bool_)
        """Senders no longer waited for in this item."""
        self.missed = np.zeros((m, N), np.bool_)
        self.asked = np.zeros((m, N))
        self.asks = np.zeros((m, N), np.uint8)
        self.agreed = np.zeros(N, np.bool_)
        self.announced = np.zeros(N, np.bool_)
        """Whether an item whose view is waited for was announced to neighbours."""
        self.only_with_view = np.zeros(N, np.bool_)
        """Whether the agent takes part only if it gets a view: in what ran before."""
        self.origin = np.full(N, -1, np.int32)
        """The neighbour that began it, by number; -1: submitted here."""
        self.handle = np.zeros(N, np.uint32)
        self.named = np.zeros(N, np.bool_)
        """Whether receivers know the handle."""
        self.active = 0
        """Items announced or running."""
        self._free, self._head = np.arange(N), 0  # a ring: `room()` rows from the head on
        self._rows: dict[int, int] = {}
        self._past = np.zeros(min(_PAST, 1 << (8 * N).bit_length()), np.uint64)

    @staticmethod
    def capacity_for(rounds: int, senders: int, budget: int, width: int = 1, d: int = 1) -> int:
        """How many rows fit into so many bytes, the agent's states and keys of items included."""
        message = 8 * width + 3
        row = rounds * (senders * message + message) + 8 * d * (rounds + 3) + 11 * senders + 16 * width + 300
        return max(budget // row, 64)

    def find(self, item: int) -> int:
        """The row of an item, or -1."""
        return self._rows.get(item, -1)

    def rows(self, ids: U64) -> Rows:
        """The rows of items, -1 where there is none."""
        get = self._rows.get
        return np.array([get(item, -1) for item in ids.tolist()], np.intp)

    def are_past(self, ids: U64) -> Bools:
        """Which items were decided here once and are forgotten, as far as that is known."""
        return np.asarray((self._past[ids & np.uint64(len(self._past) - 1)] == ids) & (ids != 0))

    def room(self) -> int:
        """How many more items can be taken in hand."""
        return self.capacity - self.active

    def free(self, count: int) -> Rows:
        """The rows that will be used next."""
        return self._free.take(np.arange(self._head, self._head + count), mode="wrap")

    # ── transitions ───────────────────────────────────────────────────────────────────────────────────────────────

    def announce(self, ids: U64, now: float, round: int | NDArray[np.int32], origin: int) -> Rows:
        """Rows for new items, FREE or DECIDED before; there must be room."""
        rows = self.free(len(ids))
        if not len(rows):
            return rows
        self._check(rows, (FREE, DECIDED), "announce")
        self._head += len(ids)
        forgotten = self.id[rows[self.state[rows] == DECIDED]]
        self._past[forgotten & np.uint64(len(self._past) - 1)] = forgotten
        for item in forgotten.tolist():
            del self._rows[item]
        self._rows.update(zip(ids.tolist(), rows.tolist(), strict=True))
        at = span(rows)
        self.id[at], self.state[at], self.view[at] = ids, ANNOUNCED, NO_VIEW
        self.round[at] = self.first[at] = round
        self.done[at] = self.first[at] - 1
        self.born[at] = self.since[at] = now
        self.score[at], self.trace[:, at], self.spoke[:, at] = 0.0, np.nan, False
        self.message[:, :, at], self.inbox_set[:, :, at] = self._new, 0
        self.evidence[at], self.own_set[at], self.others[at] = 0, 0, 0
        self.gave_up[:, at] = self.missed[:, at] = False
        self.agreed[at] = self.announced[at] = self.named[at] = self.only_with_view[at] = False
        self.asked[:, at], self.asks[:, at], self.origin[at] = 0.0, 0, origin
        self.active += len(rows)
        return rows

    def begin(self, rows: Rows) -> None:
        """Own scores are known, or given up: rounds begin."""
        self._check(rows, (ANNOUNCED,), "begin")
        self.state[rows] = RUNNING

    def decide(self, rows: Rows, now: float) -> None:
        """These items are decided; they are remembered until their rows are needed."""
        self._check(rows, (RUNNING,), "decide")
        self.state[rows], self.ended[rows] = DECIDED, now
        end = self._head + self.room()
        self._free.put(np.arange(end, end + len(rows)), rows, mode="wrap")
        self.active -= len(rows)

    def drop(self, rows: Rows) -> None:
        """Items in which this agent takes no part, or no longer: then they are past, and not begun again from zero."""
        self._check(rows, (ANNOUNCED, RUNNING), "drop")
        begun = self.id[rows[self.state[rows] == RUNNING]]
        self._past[begun & np.uint64(len(self._past) - 1)] = begun
        for item in self.id[rows].tolist():
            del self._rows[item]
        self.state[rows] = FREE
        self.active -= len(rows)
        self._head -= len(rows)
        self._free.put(np.arange(self._head, self._head + len(rows)), rows, mode="wrap")

    def _check(self, rows: Rows, before: tuple[int, ...], transition: str) -> None:
        states = self.state[rows]
        allowed = states == before[0]
        for state in before[1:]:
            allowed |= states == state
        if not allowed.all():
            wrong = ItemState(int(states[~allowed][0]))
            raise TransitionError(f"an item that is {wrong.name} cannot {transition}")

    def last_received(self, rows: Some, t: int | Rounds, place: int) -> tuple[Doubles, NDArray[np.uint16], Bools]:
        """A sender's latest message up to round t of each item: the message (n, w), its set, whether there is any."""
        received = (self.message[:, place, rows] == RECEIVED) & (np.arange(self.rounds)[:, None] < t)
        received &= self._new[:, place] == PENDING  # in other rounds it is no sender of this agent
        latest = self.rounds - 1 - np.argmax(received[::-1], axis=0)
        each = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        return self.inbox[latest, place, each], self.inbox_set[latest, place, each], np.asarray(received.any(axis=0))
