"""The states of all items of one live agent: the rule itself, run on rows of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64, Draws, item_keys
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.averaging import Averaging, is_degroot
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
        self.is_plain = is_degroot(rule)
        """Whether the rule, by its exact type, sends its statistic in every round as it is."""
        self.is_scalar = self.is_plain and d == 1
        """Whether, moreover, one item needs no arrays."""
        self.remembers = not isinstance(rule, Averaging)
        """Whether what the agent had may be in its statistic although it does not count itself."""

    def begin(self, rows: Rows, ids: U64, scores: Floats) -> None:
        """New items in these rows, with the agent's own scores (n, d)."""
        self._states.set(rows, self.rule.init(self.seat, scores))
        self._sent[rows] = 0.0
        self._keys[0][rows], self._keys[1][rows] = item_keys(self._seed, ids)

    def emit(self, rows: Rows, rounds: NDArray[np.int32]) -> tuple[NDArray[Any], Mask | None]:
        """The codes of the items' messages in their rounds, shape (n, w), and which have one (None: all)."""
        if self.is_plain:
            values = self._states.get(rows)[0]
            self._sent[rows] = values
            return values, None
        first = int(rounds[0])
        if len(rounds) == 1 or bool((rounds == first).all()):
            return self._emit(rows, first)
        codes, spoke = np.zeros((len(rows), self.width)), np.ones(len(rows), np.bool_)
        for t in np.unique(rounds).tolist():
            at = np.flatnonzero(rounds == t)
            codes[at], mask = self._emit(rows[at], t)
            if mask is not None:
                spoke[at] = mask
        return codes, None if spoke.all() else spoke

    def _emit(self, rows: Rows, t: int) -> tuple[NDArray[Any], Mask | None]:
        draws = Draws.of_keys((self._keys[0][rows], self._keys[1][rows]), self.seat.agent, t)
        outbox, state = self.rule.emit(self.seat, self._states.get(rows), draws)
        sent = encoded(self.rule, self.seat, outbox, draws, self.width)
        if sent.codes.ndim == 3:
            raise RuleError(f"{self.rule} sends another message to each receiver, which live agents cannot do yet")
        self._states.set(rows, state)
        if sent.spoke is None:
            self._sent[rows] = sent.values
            return sent.codes, None
        self._sent[rows[sent.spoke]] = sent.values
        codes = np.zeros((len(rows), self.width))
        codes[sent.spoke] = sent.codes
        return codes, sent.spoke

    def own(self, rows: Rows) -> Floats:
        """What this agent sent last, shape (n, w)."""
        return self._sent[rows]

    def absorb(self, rows: Rows, inbox: Inbox) -> Floats:
        """Take in a round's messages; the new statistics (n, d)."""
        state = self.rule.absorb(self.seat, self._states.get(rows), inbox)
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
        self._states.set(row, (total,))
        self._sent[row] = total
        return total

    def statistic(self, rows: Rows) -> Floats:
        """What the agent decides by, shape (n, d)."""
        return self.rule.statistic(self._states.get(rows))
