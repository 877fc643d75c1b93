"""The states of all items of one live agent: the rule itself, run on rows of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64, Draws, item_keys
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.averaging import is_degroot
from collegium.protocol.base import Floats, Inbox, Mask, Rule
from collegium.protocol.sending import encoded
from collegium.protocol.states import StateRows

Rows = NDArray[np.intp]


class ItemStates:
    """States of up to `capacity` items, one a row, whose scores have d numbers."""

    def __init__(self, rule: Rule, seat: Seat, seed: int, capacity: int, d: int = 1) -> None:
        self.rule, self.seat, self.width = rule, seat, rule.width(d)
        self._states = StateRows(rule.init(seat, np.zeros((1, d))), capacity)
        self._sent = np.zeros((capacity, self.width))
        self._keys = np.zeros(capacity, np.uint32), np.zeros(capacity, np.uint32)
        self._seed = np.array([seed], np.uint64)
        self._weights: list[float] = seat.weights.tolist()
        self.is_plain = d == 1 and is_degroot(rule)
        """Whether the rule, by its exact type, is the weighted mean and nothing else: then one item needs no arrays."""

    def begin(self, rows: Rows, ids: U64, scores: Floats) -> None:
        """New items in these rows, with the agent's own scores (n, d)."""
        self._states.set(rows, self.rule.init(self.seat, scores))
        self._sent[rows] = 0.0
        self._keys[0][rows], self._keys[1][rows] = item_keys(self._seed, ids)

    def emit(self, rows: Rows, t: int) -> tuple[NDArray[Any], Mask | None]:
        """The codes of this round's messages, one row for each item that has one, and which have (None: all)."""
        draws = Draws.of_keys((self._keys[0][rows], self._keys[1][rows]), self.seat.agent, t)
        outbox, state = self.rule.emit(self.seat, self._states.get(rows), draws)
        sent = encoded(self.rule, self.seat, outbox, draws, self.width)
        if sent.codes.ndim == 3:
            raise RuleError(f"{self.rule} sends another message to each receiver, which live agents cannot do yet")
        self._states.set(rows, state)
        self._sent[rows if sent.spoke is None else rows[sent.spoke]] = sent.values
        return sent.codes, sent.spoke

    def own(self, rows: Rows) -> Floats:
        """What this agent sent last, shape (n, w)."""
        return self._sent[rows]

    def absorb(self, rows: Rows, inbox: Inbox) -> Floats:
        """Take in a round's messages; the new statistics (n, d)."""
        state = self.rule.absorb(self.seat, self._states.get(rows), inbox)
        self._states.set(rows, state)
        return self.rule.statistic(state)

    def average(self, row: int, values: list[float]) -> float:
        """One item of a plain rule: its new statistic, which is its next message too, from all that its senders sent.

        The one exception to running the rule itself. The sum is the rule's, number for number; with arrays of one
        number, an item alone would take two thirds longer.
        """
        total = 0.0
        for weight, value in zip(self._weights, values, strict=True):
            total += weight * value
        self._states.set(row, (total,))
        self._sent[row] = total
        return total

    def statistic(self, rows: Rows) -> Floats:
        """What the agent decides by, shape (n, d)."""
        return self.rule.statistic(self._states.get(rows))
