"""The states of all items of one live agent: the rule itself, run on rows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64, Draws, item_keys
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.live.suspicion import Suspicion
from collegium.live.table import Rounds, Some
from collegium.protocol.averaging import Averaging, is_degroot
from collegium.protocol.base import Floats, Inbox, Mask, Rule
from collegium.protocol.sending import encoded
from collegium.protocol.states import StateRows


class ItemStates:
    """States of up to `capacity` items, one a row, whose scores have d numbers; seats: the agent's place by round."""

    def __init__(self, rule: Rule, seats: Sequence[Seat], seed: int, capacity: int, d: int = 1) -> None:
        seat = seats[0]
        self.rule, self.seats, self.width = rule, seats, rule.width(d)
        self._states = StateRows(rule.init(seat, np.zeros((1, d))), capacity)
        self._sent = np.zeros((capacity, self.width))
        self._keys = np.zeros(capacity, np.uint32), np.zeros(capacity, np.uint32)
        self._seed = np.array([seed], np.uint64)
        self._weights: list[float] = seat.weights.tolist()
        self.is_plain = is_degroot(rule)
        """Whether the rule, by its exact type, sends its statistic in every round as it is."""
        self.is_scalar = self.is_plain and d == 1 and all(one is seat for one in seats)
        """Whether, moreover, one item needs no arrays."""
        self.suspicion = Suspicion(rule, 1 + max(int(one.senders.max()) for one in seats))
        self.remembers = not isinstance(rule, Averaging)
        """Whether what the agent had may be in its statistic although it does not count itself."""

    def begin(self, rows: Some, ids: U64, scores: Floats) -> None:
        """New items in these rows, with the agent's own scores (n, d)."""
        self._states.set(rows, self.rule.init(self.seats[0], scores))
        self._sent[rows] = 0.0
        if not self.is_plain:
            self._keys[0][rows], self._keys[1][rows] = item_keys(self._seed, ids)

    def emit(self, rows: Some, t: int | Rounds) -> tuple[NDArray[Any], Mask | None]:
        """The codes of the items' messages in their rounds, shape (n, w), and which have one (None: all)."""
        if self.is_plain:
            values = self._states.get(rows)[0]
            self._sent[rows] = values
            return values, None
        if isinstance(t, int):
            return self._emit(rows, t)
        assert not isinstance(rows, slice)
        codes, spoke = np.zeros((len(rows), self.width)), np.ones(len(rows), np.bool_)
        for one in np.unique(t).tolist():
            at = np.flatnonzero(t == one)
            codes[at], mask = self._emit(rows[at], one)
            if mask is not None:
                spoke[at] = mask
        return codes, None if spoke.all() else spoke

    def _emit(self, rows: Some, t: int) -> tuple[NDArray[Any], Mask | None]:
        seat = self.seats[t - 1]
        draws = Draws.of_keys((self._keys[0][rows], self._keys[1][rows]), seat.agent, t)
        outbox, state = self.rule.emit(seat, self._states.get(rows), draws)
        sent = encoded(self.rule, seat, outbox, draws, self.width)
        if sent.codes.ndim == 3:
            raise RuleError(f"{self.rule} sends another message to each receiver, which live agents cannot do yet")
        self._states.set(rows, state)
        if sent.spoke is None:
            self._sent[rows] = sent.values
            return sent.codes, None
        last = self._sent[rows]
        last[sent.spoke] = sent.values
        self._sent[rows] = last
        codes = np.zeros((len(sent.spoke), self.width))
        codes[sent.spoke] = sent.codes
        return codes, sent.spoke

    def own(self, rows: Some) -> Floats:
        """What this agent sent last, shape (n, w)."""
        return self._sent[rows]

    def absorb(self, rows: Some, seat: Seat, inbox: Inbox) -> Floats:
        """Take in a round's messages; the new statistics (n, d)."""
        if self.suspicion.is_kept:
            self.suspicion.look(inbox, seat.senders)
        state = self.rule.absorb(seat, self._states.get(rows), inbox)
        self._states.set(rows, state)
        return self.rule.statistic(state)

    def average(self, row: int, values: list[float]) -> float:
        """One item of a scalar rule: its new statistic, which is its next message too, from all its senders' messages.

        The one exception to running the rule itself. The sum is the rule's, number for number; with arrays of one
        number, an item alone would take two thirds longer.
        """
        total = 0.0
        for weight, value in zip(self._weights, values, strict=True):
            total += weight * value
        self._states.arrays[0][row, 0] = self._sent[row, 0] = total
        return total

    def statistic(self, rows: Some) -> Floats:
        """What the agent decides by, shape (n, d)."""
        return self.rule.statistic(self._states.get(rows))
