"""Finite precision by adjacent-level stochastic rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.randomness import Draws
from collegium.errors import RuleError, ScoreError
from collegium.protocol.codec.base import Codec, Floats


@dataclass(frozen=True)
class Quantise(Codec):
    r"""Every number rounded at random to one of $2^b$ levels on [-bound, bound].

    A value u between the levels $v_j$ and $v_{j+1}$, a step $\Delta_b$ apart, is sent as

    $$ Q_b(u) = v_{j+1} \text{ with probability } (u - v_j)/\Delta_b, \text{ else } v_j, \qquad \mathbb E[Q_b(u)] = u $$

    with one draw per sender, item, round and coordinate. Values outside are refused, never clipped.
    [hu2026, Sec. III-D]
    """

    bits: int
    bound: float

    def __post_init__(self) -> None:
        bits = whole_number(self.bits, "bits", RuleError, at_least=1, at_most=32)
        bound = real_number(self.bound, "the bound of a quantiser", RuleError, above=0)
        if not 1e-290 <= bound <= 1e290:
            raise RuleError(
                f"a bound of {bound:g} leaves levels that cannot be told from zero or infinity: rescale the scores"
            )
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "bound", bound)

    @property
    def message_bits(self) -> int:
        return self.bits

    @property
    def levels(self) -> int:
        """L_b, how many values a number can take."""
        return 1 << self.bits

    @property
    def step(self) -> float:
        """How far two levels are apart."""
        return 2 * self.bound / (self.levels - 1)

    def encode(self, values: Floats, draws: Draws) -> NDArray[Any]:
        # Averages of values within the bound stay within it, up to rounding.
        outside = ~(np.abs(values) <= self.bound * (1 + 1e-9))
        if outside.any():
            raise ScoreError(
                f"message {values[outside][0]:.6g} lies outside the quantiser's range [-{self.bound}, {self.bound}]"
            )
        return self.index(values, draws.uniform(values.shape[-1]).reshape(values.shape))

    def index(self, values: Floats, uniform: Floats) -> NDArray[np.uint32]:
        """Which level each value is sent as, 0 … levels-1, given uniform draws."""
        place = (values + self.bound) * ((self.levels - 1) / (2 * self.bound))
        below = np.clip(np.floor(place), 0, self.levels - 2)
        return np.asarray(below + (uniform < place - below)).astype(np.uint32)

    def decode(self, codes: NDArray[Any]) -> Floats:
        return np.asarray((2.0 * codes - (self.levels - 1)) * (self.bound / (self.levels - 1)), np.float64)

    def max_score(self, growth: float, rounding: float | None = None) -> float:
        # Each round may round up by a step, and a rule that adds to what it received adds to that as well.
        return (self.bound - (growth - 1 if rounding is None else rounding) * self.step) / growth
