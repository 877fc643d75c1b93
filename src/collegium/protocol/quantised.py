"""Finite precision: any rule with messages of b bits, by adjacent-level stochastic rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from collegium._util.arguments import real_number, whole_number
from collegium._util.randomness import Draws
from collegium.errors import RuleError, ScoreError
from collegium.protocol.base import Rule
from collegium.rule_settings import Settings


@dataclass(frozen=True)
class Quantised(Rule):
    r"""A rule whose every message is rounded at random to one of $2^b$ levels on [-bound, bound].

    A value u between the levels $v_j$ and $v_{j+1}$, a step $\Delta_b$ apart, is sent as

    $$ Q_b(u) = v_{j+1} \text{ with probability } (u - v_j)/\Delta_b, \text{ else } v_j, \qquad \mathbb E[Q_b(u)] = u $$

    with one draw per sender, item and round: all neighbours hear the same value, and the sender uses it for its
    own term too. Averages of values within the bound stay within it; scores outside are refused, never clipped.
    For scores bounded by β and centred, the bound is 2β. [hu2026, Sec. III-D]

    >>> import collegium
    >>> from collegium import policy, topology
    >>> rule = Quantised(collegium.protocol.DeGroot(), bits=4, bound=2.0)
    >>> run = collegium.collaborate([[1.0, 0.3, -1.2]], policy.uniform(topology.ring(3)), rounds=5, rule=rule, rng=0)
    >>> int(run.bits[0])  # 5 rounds × 6 links × 4 bits
    120
    """

    rule: Rule
    bits: int
    bound: float

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule) or isinstance(self.rule, Quantised):
            raise RuleError(
                f"Quantised wraps a rule that is not itself quantised, such as DeGroot(); got {self.rule!r}"
            )
        bits = whole_number(self.bits, "bits", RuleError, at_least=1, at_most=32)
        bound = real_number(self.bound, "the bound of Quantised", RuleError, above=0)
        if not 1e-290 <= bound <= 1e290:
            raise RuleError(
                f"a bound of {bound:g} leaves levels that cannot be told from zero or infinity: rescale the scores"
            )
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "bound", bound)

    @property
    def levels(self) -> int:
        """L_b, how many values a message can take."""
        return 1 << self.bits

    def index(self, value: float, draw: float) -> int:
        """Which level `value` is sent as, 0 … levels-1, given a uniform draw: what goes on the wire."""
        place = (value + self.bound) * ((self.levels - 1) / (2 * self.bound))
        below = min(max(math.floor(place), 0), self.levels - 2)
        return below + (draw < place - below)

    def level(self, index: int) -> float:
        """The value of a level: what a receiver makes of the index."""
        return (2 * index - (self.levels - 1)) * (self.bound / (self.levels - 1))

    def init(self, score: float) -> Any:
        if not abs(score) <= self.bound:
            raise ScoreError(f"score {score:.6g} lies outside the quantiser's range [-{self.bound}, {self.bound}]")
        return self.rule.init(score)

    def emit(self, state: Any, rng: Draws) -> tuple[float | None, Any]:
        message, state = self.rule.emit(state, rng)
        if message is None:
            return None, state
        if not abs(message) <= self.bound * (1 + 1e-9):  # averages of values within the bound stay within it
            raise ScoreError(f"message {message:.6g} lies outside the quantiser's range [-{self.bound}, {self.bound}]")
        rounded = self.level(self.index(message, rng.uniform()))
        return rounded, self.rule.sent(state, rounded)

    def absorb(self, state: Any, inbox: Sequence[float], weights: Sequence[float]) -> Any:
        return self.rule.absorb(state, inbox, weights)

    def statistic(self, state: Any) -> float:
        return self.rule.statistic(state)

    def reach(self, rounds: int) -> float:
        growth = self.rule.message_growth(rounds)
        # Each round may round up by a step, and a rule that adds to what it heard adds to that as well.
        step = 2 * self.bound / (self.levels - 1)
        return (self.bound - (growth - 1) * step) / growth

    @property
    def message_bits(self) -> int:
        return self.bits

    @property
    def settings(self) -> Settings | None:
        inner = self.rule.own_settings
        return None if inner is None else inner._replace(levels=self.levels, bound=self.bound)
