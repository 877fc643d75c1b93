"""One agent's side of a rule for many items at once: what it says and how it listens, as `Rule` does to the last bit.

A `Talk` holds the states of all items an agent may have in hand; rows of it are items. `ByArrays` serves the built-in
rules, `ByRule` any other, one state at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U32, U64, Draws, item_keys, sender_salts, uniform_draws
from collegium.protocol import Quantised, Rule
from collegium.protocol.base import sign, weighted_sum
from collegium.rule_settings import Settings

Rows = NDArray[np.intp]
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Talk(ABC):
    """The states of one agent, an item a row."""

    @abstractmethod
    def begin(self, rows: Rows, ids: U64, scores: Doubles) -> None:
        """New items in these rows, with the agent's own local statistics."""

    @abstractmethod
    def emit(self, rows: Rows, round: int) -> tuple[Doubles | NDArray[np.uint32], Bools | None]:
        """What is said in this round: one message for each row that speaks, and which do (None: all).

        A message is a number, or the index of its level where the rule is quantised.
        """

    @abstractmethod
    def absorb(self, rows: Rows, inbox: Sequence[Doubles], weights: Sequence[float | Doubles]) -> None:
        """Hear one value per agent heard, ascending, each over all rows, with its weight."""

    @abstractmethod
    def statistic(self, rows: Rows) -> Doubles:
        """The numbers whose signs are the labels."""

    @abstractmethod
    def own(self, rows: Rows) -> Doubles:
        """What this agent said last, which is its own term in the combination."""

    def values(self, messages: Doubles | NDArray[np.uint32]) -> Doubles:
        """Messages as numbers, for a sender and a receiver alike."""
        return np.asarray(messages, np.float64)

    # The same for one row, where arrays would cost more than what they hold.

    def emit_one(self, row: int, round: int) -> float | None:
        """What is said about one item, None for silence."""
        messages, spoke = self.emit(np.array([row]), round)
        return messages[0].item() if spoke is None or spoke[0] else None

    def absorb_one(self, row: int, inbox: Sequence[float], weights: Sequence[float]) -> float:
        """Hear about one item; its new statistic."""
        rows = np.array([row])
        self.absorb(rows, [np.array([value]) for value in inbox], weights)
        return float(self.statistic(rows)[0])

    def own_one(self, row: int) -> float:
        """What this agent said last about one item."""
        return float(self.own(np.array([row]))[0])

    def value_one(self, message: float) -> float:
        """One message as a number."""
        return float(self.values(np.array([message]))[0])


def talk_of(rule: Rule, agent: int, seed: int, capacity: int) -> Talk:
    """The quickest way to follow a rule."""
    settings = rule.own_settings
    if settings is None:
        return ByRule(rule, agent, seed, capacity)
    return ByArrays(settings, agent, seed, capacity)


class ByArrays(Talk):
    """The built-in rules over arrays: the same operations in the same order as the rules themselves."""

    def __init__(self, settings: Settings, agent: int, seed: int, capacity: int) -> None:
        self._rule, self._agent, self._seed = settings, agent, np.uint64(seed)
        self._candidate, self._sent = np.zeros(capacity), np.zeros(capacity)
        self._score = np.zeros(capacity if settings.accumulate else 0)
        self._streak = np.zeros(capacity if settings.patience else 0, np.int32)
        self._spoken = np.zeros(capacity, np.bool_)
        self._keys = np.zeros((2, capacity if settings.levels else 0), np.uint32)
        if settings.levels:
            self._per_step = (settings.levels - 1) / (2 * settings.bound)
            self._step = settings.bound / (settings.levels - 1)
        self._salts: dict[int, tuple[U32, U32]] = {}

    def begin(self, rows: Rows, ids: U64, scores: Doubles) -> None:
        self._candidate[rows], self._sent[rows], self._spoken[rows] = scores, 0.0, False
        if self._rule.accumulate:
            self._score[rows], self._candidate[rows] = scores, 0.0
        if self._rule.patience:
            self._streak[rows] = 0
        if self._rule.levels:
            self._keys[0, rows], self._keys[1, rows] = item_keys(np.array([self._seed]), ids)

    def emit(self, rows: Rows, round: int) -> tuple[Doubles | NDArray[np.uint32], Bools | None]:
        rule, said = self._rule, self._candidate[rows]
        if rule.accumulate:
            said = said + self._score[rows]
        spoke = None
        if rule.threshold is not None:
            spoke = ~self._spoken[rows] | (np.abs(said - self._sent[rows]) > rule.threshold)
        elif rule.patience:
            settled = (self._streak[rows] >= rule.patience) & (np.abs(said) >= rule.confidence)
            spoke = ~(self._spoken[rows] & settled)
        if spoke is not None:
            if spoke.all():
                spoke = None
            else:
                rows, said = rows[spoke], said[spoke]
        messages: Doubles | NDArray[np.uint32] = said
        if rule.levels:
            messages = self._indices(rows, said, round)
            said = self.values(messages)
        self._sent[rows], self._spoken[rows] = said, True
        return messages, spoke

    def absorb(self, rows: Rows, inbox: Sequence[Doubles], weights: Sequence[float | Doubles]) -> None:
        total = np.zeros(len(rows))
        for weight, value in zip(weights, inbox, strict=True):
            total += weight * value
        if self._rule.patience:
            same = np.sign(total) == np.sign(self._candidate[rows])
            self._streak[rows] = np.where(same, self._streak[rows] + 1, 0)
        self._candidate[rows] = total

    def statistic(self, rows: Rows) -> Doubles:
        return self._candidate[rows]

    def own(self, rows: Rows) -> Doubles:
        return self._sent[rows]

    def values(self, messages: Doubles | NDArray[np.uint32]) -> Doubles:
        if not self._rule.levels:
            return np.asarray(messages, np.float64)
        return np.asarray((2 * messages.astype(np.int64) - (self._rule.levels - 1)) * self._step, np.float64)

    def emit_one(self, row: int, round: int) -> float | None:
        rule, said = self._rule, self._candidate.item(row)
        if rule.accumulate:
            said += self._score.item(row)
        if rule.threshold is not None:
            if self._spoken.item(row) and not abs(said - self._sent.item(row)) > rule.threshold:
                return None
        elif (
            rule.patience
            and self._spoken.item(row)
            and self._streak.item(row) >= rule.patience
            and abs(said) >= rule.confidence
        ):
            return None
        message: float = said
        if rule.levels:
            message = int(self._indices(np.array([row]), np.array([said]), round)[0])
            said = self.value_one(message)
        self._sent[row], self._spoken[row] = said, True
        return message

    def absorb_one(self, row: int, inbox: Sequence[float], weights: Sequence[float]) -> float:
        total = weighted_sum(inbox, weights)
        if self._rule.patience:
            same = sign(total) == sign(self._candidate.item(row))
            self._streak[row] = self._streak.item(row) + 1 if same else 0
        self._candidate[row] = total
        return total

    def own_one(self, row: int) -> float:
        return self._sent.item(row)

    def value_one(self, message: float) -> float:
        if not self._rule.levels:
            return message
        return (2 * int(message) - (self._rule.levels - 1)) * self._step

    def _indices(self, rows: Rows, said: Doubles, round: int) -> NDArray[np.uint32]:
        place = (said + self._rule.bound) * self._per_step
        below = np.clip(np.floor(place), 0, self._rule.levels - 2)
        up = self._draw(rows, round) < place - below
        return np.asarray(below.astype(np.int64) + up, np.uint32)

    def _draw(self, rows: Rows, round: int) -> Doubles:
        if round not in self._salts:
            self._salts[round] = sender_salts(np.array([self._agent]), np.array([round]))
        return uniform_draws((self._keys[0, rows], self._keys[1, rows]), self._salts[round])


class ByRule(Talk):
    """Any rule, one item at a time, by the object itself."""

    def __init__(self, rule: Rule, agent: int, seed: int, capacity: int) -> None:
        self._rule, self._agent, self._seed = rule, agent, seed
        self._states: list[Any] = [None] * capacity
        self._ids = np.zeros(capacity, np.uint64)
        self._sent = np.zeros(capacity)

    def begin(self, rows: Rows, ids: U64, scores: Doubles) -> None:
        self._ids[rows], self._sent[rows] = ids, 0.0
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
            self._states[row] = self._rule.init(score)

    def emit(self, rows: Rows, round: int) -> tuple[Doubles | NDArray[np.uint32], Bools | None]:
        said: list[float] = []
        spoke = np.ones(len(rows), np.bool_)
        for i, (row, item) in enumerate(zip(rows.tolist(), self._ids[rows].tolist(), strict=True)):
            message, self._states[row] = self._rule.emit(self._states[row], Draws(self._seed, item, self._agent, round))
            if message is None:
                spoke[i] = False
            else:
                said.append(message)
                self._sent[row] = message
        messages: Doubles | NDArray[np.uint32] = np.array(said, np.float64)
        if isinstance(self._rule, Quantised):
            top = self._rule.levels - 1
            messages = np.rint((messages / self._rule.bound * top + top) / 2).astype(np.uint32)
        return messages, None if spoke.all() else spoke

    def absorb(self, rows: Rows, inbox: Sequence[Doubles], weights: Sequence[float | Doubles]) -> None:
        shares = [np.broadcast_to(weight, len(rows)).tolist() for weight in weights]
        heard = [value.tolist() for value in inbox]
        for i, row in enumerate(rows.tolist()):
            self._states[row] = self._rule.absorb(
                self._states[row], [value[i] for value in heard], [share[i] for share in shares]
            )

    def statistic(self, rows: Rows) -> Doubles:
        return np.array([self._rule.statistic(self._states[row]) for row in rows.tolist()])

    def own(self, rows: Rows) -> Doubles:
        return self._sent[rows]

    def values(self, messages: Doubles | NDArray[np.uint32]) -> Doubles:
        if not isinstance(self._rule, Quantised):
            return np.asarray(messages, np.float64)
        return np.array([self._rule.level(index) for index in messages.tolist()], np.float64)
