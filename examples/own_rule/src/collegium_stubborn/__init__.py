"""The model of Friedkin and Johnsen: whoever has an opinion keeps a share of it, whatever others say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from collegium.errors import RuleError
from collegium.protocol import Draws, Inbox, Outbox, Rule, Seat
from collegium.protocol.base import Floats
from collegium.protocol.combine import WeightedMean


class Opinion(NamedTuple):
    first: Floats
    now: Floats


@dataclass(frozen=True)
class Stubborn(Rule[Opinion]):
    """x_k(t) = share * x_k(0) + (1 - share) * the weighted mean of the neighbours' x(t-1)."""

    share: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise RuleError(f"share must lie between 0 and 1, got {self.share!r}")

    def init(self, seat: Seat, scores: Floats) -> Opinion:
        return Opinion(scores, scores)

    def emit(self, seat: Seat, state: Opinion, draws: Draws) -> tuple[Outbox, Opinion]:
        return Outbox(state.now), state

    def absorb(self, seat: Seat, state: Opinion, inbox: Inbox) -> Opinion:
        heard = WeightedMean()(inbox.values, inbox.weights, inbox.own)
        return state._replace(now=self.share * state.first + (1 - self.share) * heard)

    def statistic(self, state: Opinion) -> Floats:
        return state.now
