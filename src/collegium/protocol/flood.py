"""Flooding: everybody learns everybody's score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from collegium._util.arguments import whole_number
from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import RECEIVED, Floats, Inbox, Mask, Outbox, Rule, completed, message_width

_FLAGS = 32  # agents whose being known fits into one number


class Known(NamedTuple):
    values: Floats
    """Every agent's score as far as it is known, else 0, shape (n, K, w)."""
    known: Mask
    """Whose scores are known, shape (n, K)."""
    news: Mask
    """Whether something was learned since the last message, shape (n,)."""


@dataclass(frozen=True)
class Flood(Rule[Known]):
    """Everybody passes on all scores it knows, until there is nothing new: after as many rounds as the network is wide
    every agent has the scores of all, and decides by them as a centre would.

    agents: K; that of the network it runs on, if left out.
    decide: what to make of all K scores of an item: a function of an array (n, K), or (n, K, d) of several classes,
        that returns (n,) or (n, d), such as `fusion.Everybody(method)` for any fitted method of `collegium.fusion`; by
        default their mean. Until all are known, an agent goes by the mean of those it knows.

    A message has K scores and which of them are known: few rounds, large messages. It takes fewer transmissions than
    averaging on small networks. **Everybody sees everybody's score**: what averaging hides, this gives away.
    """

    agents: int | None = None
    decide: Callable[[Floats], Any] | None = None
    hands_on = True

    def __post_init__(self) -> None:
        if self.agents is not None:
            object.__setattr__(self, "agents", whole_number(self.agents, "the agents of Flood", RuleError, at_least=1))
        if self.decide is not None and not callable(self.decide):
            raise RuleError(f"decide must be a function of everybody's scores, or None; got {self.decide!r:.60}")

    def prepared(self, schedule: Any, rounds: int, rounded: bool = False) -> Flood:
        if rounded:
            raise RuleError(
                "Flood marks which scores a message has, and marks cannot be rounded: use it at full precision"
            )
        if self.agents not in (None, schedule.size):
            raise RuleError(f"Flood is for {self.agents} agents, the network has {schedule.size}")
        return replace(self, agents=schedule.size)

    def _size(self) -> int:
        if self.agents is None:
            raise RuleError("Flood must know the number of agents: write Flood(12)")
        return self.agents

    def width(self, d: int) -> int:
        return self._size() * message_width(d) + -(-self._size() // _FLAGS)

    def init(self, seat: Seat, scores: Floats) -> Known:
        n, K, w = len(scores), self._size(), message_width(scores.shape[1])
        values, known = np.zeros((n, K, w)), np.zeros((n, K), np.bool_)
        known[:, seat.agent] = seen = np.isfinite(scores[:, 0])
        values[seen, seat.agent] = scores[seen, :w]
        return Known(values, known, np.ones(n, np.bool_))

    def emit(self, seat: Seat, state: Known, draws: Draws) -> tuple[Outbox, Known]:
        n, K, _ = state.values.shape
        flags = np.zeros((n, -(-K // _FLAGS) * _FLAGS))
        flags[:, :K] = state.known
        packed = flags.reshape(n, flags.shape[1] // _FLAGS, _FLAGS) @ 2.0 ** np.arange(_FLAGS)
        message = np.concatenate([state.values.reshape(n, K * state.values.shape[2]), packed], axis=1)
        return Outbox(message, state.news), state._replace(news=np.zeros_like(state.news))

    def absorb(self, seat: Seat, state: Known, inbox: Inbox) -> Known:
        values, known = state.values.copy(), state.known.copy()
        n, K, w = values.shape
        for message, status in zip(inbox.values, inbox.status, strict=True):
            flags = message[:, K * w :]  # of a neighbour, which may send anything
            flags = np.where((flags >= 0) & (flags < 2.0**_FLAGS), flags, 0.0).astype(np.uint64)
            theirs = (flags[:, np.arange(K) // _FLAGS] >> (np.arange(K) % _FLAGS).astype(np.uint64) & np.uint64(1)) > 0
            new = theirs & ~known & (status == RECEIVED)[:, None]
            values = np.where(new[:, :, None], message[:, : K * w].reshape(n, K, w), values)
            known |= new
        return Known(values, known, state.news | (known != state.known).any(axis=1))

    def statistic(self, state: Known) -> Floats:
        values, known, _ = state
        total = np.zeros((len(values), values.shape[2]))
        for k in range(values.shape[1]):  # in this order whatever the shape of the batch
            total = total + values[:, k]
        mean = completed(total / np.maximum(known.sum(axis=1), 1)[:, None])
        complete = known.all(axis=1)
        if self.decide is None or not complete.any():
            return mean
        rows = values[complete]
        every = np.stack([completed(rows[:, k]) for k in range(rows.shape[1])], axis=1)
        decided = np.asarray(self.decide(every[:, :, 0] if every.shape[2] == 1 else every), np.float64)
        mean[complete] = decided.reshape(len(rows), mean.shape[1])
        return mean

    def message_growth(self, rounds: int) -> float:
        return 2.0**100  # of what says which scores are known, however small scores are
