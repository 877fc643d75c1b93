"""The items an agent has in hand and those it still remembers: a row each, in arrays of one fixed size."""

from __future__ import annotations

from collections import deque
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64

Rows = NDArray[np.intp]
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rounds = NDArray[np.int32]
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


class Table:
    """Rows for `capacity` items of T rounds, heard from m senders (the agent itself among them) in messages of w
    numbers, whose statistics have d."""

    def __init__(
        self, rounds: int, senders: int, capacity: int, width: int = 1, d: int = 1, own: int | None = None
    ) -> None:
        T, m, N = rounds, senders, capacity
        self.capacity, self.rounds, self._own = capacity, rounds, own
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
        self.trace = np.zeros((N, T + 1, d))
        self.sent = np.zeros((N, T, width))
        """The codes of this agent's messages."""
        self.spoke = np.zeros((N, T), np.bool_)
        self.sent_set = np.zeros((N, T), np.uint16)
        """Whose views are in this agent's messages, as an index of `Sets`."""
        self.own_set = np.zeros(N, np.uint16)
        """Whose views are in the last message it sent."""
        self.inbox = np.zeros((N, T, m, width))
        """Messages of the senders in the order of the rule, a place for this agent's own among them."""
        self.message = np.zeros((N, T, m), np.uint8)
        self.inbox_set = np.zeros((N, T, m), np.uint16)
        self.evidence = np.zeros(N, np.uint16)
        """Whose views are in the statistic."""
        self.gave_up = np.zeros((N, m), np.bool_)
        """Senders no longer waited for in this item."""
        self.missed = np.zeros((N, m), np.bool_)
        self.asked = np.zeros((N, m))
        self.asks = np.zeros((N, m), np.uint8)
        self.agreed = np.zeros(N, np.bool_)
        self.announced = np.zeros(N, np.bool_)
        """Whether neighbours were told of an item whose view is waited for."""
        self.only_with_view = np.zeros(N, np.bool_)
        """Whether the agent takes part only if it gets a view: in what ran before."""
        self.origin = np.full(N, -1, np.int32)
        """The neighbour that began it, by number; -1: submitted here."""
        self.handle = np.zeros(N, np.uint32)
        self.named = np.zeros(N, np.bool_)
        """Whether receivers know the handle."""
        self.active = 0
        """Items announced or running."""
        self._free = deque(range(N))
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
        return len(self._free)

    # ── transitions ───────────────────────────────────────────────────────────────────────────────────────────────

    def announce(self, ids: U64, now: float, round: int | NDArray[np.int32], origin: int) -> Rows:
        """Rows for new items, FREE or DECIDED before; there must be room."""
        rows = np.array([self._free.popleft() for _ in range(len(ids))], np.intp)
        self._check(rows, (FREE, DECIDED), "announce")
        forgotten = self.id[rows[self.state[rows] == DECIDED]]
        self._past[forgotten & np.uint64(len(self._past) - 1)] = forgotten
        for item in forgotten.tolist():
            del self._rows[item]
        self._rows.update(zip(ids.tolist(), rows.tolist(), strict=True))
        self.id[rows], self.state[rows], self.view[rows] = ids, ANNOUNCED, NO_VIEW
        self.round[rows] = self.first[rows] = round
        self.done[rows] = self.first[rows] - 1
        self.born[rows] = self.since[rows] = now
        self.score[rows], self.trace[rows], self.spoke[rows] = 0.0, np.nan, False
        self.message[rows], self.inbox_set[rows] = PENDING, 0
        if self._own is not None:
            self.message[rows, :, self._own] = RECEIVED
        self.evidence[rows], self.own_set[rows] = 0, 0
        self.gave_up[rows] = self.missed[rows] = False
        self.agreed[rows] = self.announced[rows] = self.named[rows] = self.only_with_view[rows] = False
        self.asked[rows], self.asks[rows], self.origin[rows] = 0.0, 0, origin
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
        self.active -= len(rows)
        self._free.extend(rows.tolist())

    def drop(self, rows: Rows) -> None:
        """Items in which this agent takes no part, or no longer: then they are past, and not begun again from zero."""
        self._check(rows, (ANNOUNCED, RUNNING), "drop")
        begun = self.id[rows[self.state[rows] == RUNNING]]
        self._past[begun & np.uint64(len(self._past) - 1)] = begun
        for item in self.id[rows].tolist():
            del self._rows[item]
        self.state[rows] = FREE
        self.active -= len(rows)
        self._free.extendleft(rows.tolist()[::-1])

    def _check(self, rows: Rows, before: tuple[int, ...], transition: str) -> None:
        states = self.state[rows]
        allowed = states == before[0]
        for state in before[1:]:
            allowed |= states == state
        if not allowed.all():
            wrong = ItemState(int(states[~allowed][0]))
            raise TransitionError(f"an item that is {wrong.name} cannot {transition}")

    def last_received(self, rows: Rows, t: NDArray[np.int32], place: int) -> tuple[Doubles, NDArray[np.uint16], Bools]:
        """A sender's latest message up to round t of each item: the message (n, w), its set, whether there is any."""
        rounds = np.arange(self.rounds)
        said = (self.message[rows, :, place] == RECEIVED) & (rounds < t[:, None])
        latest = self.rounds - 1 - np.argmax(said[:, ::-1], axis=1)
        return self.inbox[rows, latest, place], self.inbox_set[rows, latest, place], np.asarray(said.any(axis=1))
