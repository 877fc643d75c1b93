"""Noise once, at the start: local differential privacy of everything that is ever sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number
from collegium._util.randomness import Draws
from collegium.errors import RuleError, ScoreError
from collegium.protocol.codec.base import Floats
from collegium.protocol.codec.float64 import Float64

_STEPS = 1 << 16
"""Multiples of the bound that messages of round 1 are rounded to, and noise is drawn in: so that no lowest digit of a
floating-point number tells what the noise hides."""


@dataclass(frozen=True)
class LaplaceOnce(Float64):
    r"""Messages of round 1 with Laplace noise, later ones as they are.

    A score within ±bound, as w numbers, is sent as $x_j + g\,(G_j - G'_j)$ with a grid $g = \text{bound}/2^{16}$ and
    geometric $G$, $P(G = i) \propto e^{-i g/b}$, scale $b = 2\,\text{bound}\,w/\varepsilon$. Whatever two scores an
    agent may have had, no sequence of messages is more than $e^\varepsilon$ times as likely with one as with the other:
    what comes after round 1 is made of what was sent, the agent's own term included. So $\varepsilon$ is the price of
    an item however many rounds there are, and the plain average of K agents has variance $8\,\text{bound}^2 /
    (\varepsilon^2 K)$ more (w = 1). [dwork2006]

    Only for rules whose later messages do not depend on the score itself: `Averaging` with `Always` or `Delta`, which
    checks it. Noise must be secret: a simulation draws it from its seed, a live agent makes it of a secret of its own.
    """

    epsilon: float
    bound: float
    adds_noise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real_number(self.epsilon, "epsilon", RuleError, above=0))
        object.__setattr__(self, "bound", real_number(self.bound, "the bound of scores", RuleError, above=0))

    def scale(self, width: int = 1) -> float:
        """b, the scale of the noise of each of `width` numbers."""
        return 2 * self.bound * width / self.epsilon

    def encode(self, values: Floats, draws: Draws) -> NDArray[Any]:
        if draws.round != 1:
            return values
        if (np.abs(values) > self.bound * (1 + 1e-9)).any():
            raise ScoreError(f"scores must lie within ±{self.bound:g} to be hidden by {self}")
        width, grid = values.shape[1], self.bound / _STEPS
        rate = grid / self.scale(width)
        noise = _geometric(draws, width, rate) - _geometric(draws, width, rate)
        return np.asarray((np.rint(np.clip(values, -self.bound, self.bound) / grid) + noise) * grid)

    def reach(self, score: float, width: int) -> float:
        return score + 46 * self.scale(width)  # -log of the smallest uniform number that is drawn is 45.1

    def max_score(self, growth: float, rounding: float | None = None) -> float:
        return self.bound / growth


def _geometric(draws: Draws, width: int, rate: float) -> Floats:
    """Whole numbers i with probability (1 - e^-rate) e^(-rate i), from 64 random bits each."""
    uniform = draws.uniform(width) + 2.0**-32 * (draws.uniform(width) + 2.0**-33)  # in (0, 1)
    return np.floor(-np.log(uniform) / rate)
