"""The paper's corruptions: a false score at the start, and then the rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from collegium import corruption
from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.trust.attacks.base import Attack, Floats

FAULTS = ("noise", "stuck", "bias", "sign-flip")


@dataclass(frozen=True)
class AtStart(Attack):
    """Noise, a score stuck at zero, a bias or a flipped sign before round 1, see `collegium.corruption`.

    fault: "noise", "stuck", "bias" or "sign-flip"; eta: its size, as there; unit: of noise and bias, by default the
        median over agents of the standard deviation of the scores at hand, which a single item does not have.
    """

    fault: Literal["noise", "stuck", "bias", "sign-flip"] = "sign-flip"
    eta: float = 1.0
    unit: float | None = None

    def __post_init__(self) -> None:
        if self.fault not in FAULTS:
            raise RuleError(f"a fault at the start is one of {', '.join(FAULTS)}; got {self.fault!r}")
        object.__setattr__(self, "eta", real_number(self.eta, "eta", RuleError))
        if self.unit is not None:
            object.__setattr__(self, "unit", real_number(self.unit, "the unit", RuleError, above=0))

    @property
    def needs_items(self) -> bool:
        """Whether its size follows from several items."""
        return self.unit is None and self.fault in ("noise", "bias")

    def start(self, scores: Floats, liars: NDArray[np.int64], seed: int) -> Floats:
        if len(scores) < 2 and self.needs_items:
            raise RuleError(f"{self.fault} at the start of a single item needs its size: give AtStart a unit")
        values = scores[:, :, 0] if scores.shape[2] == 1 else scores
        if self.fault == "noise":
            false = corruption.noise(values, liars, self.eta, seed, self.unit)
        elif self.fault == "bias":
            false = corruption.bias(values, liars, self.eta, self.unit)
        elif self.fault == "stuck":
            false = corruption.stuck(values, liars)
        else:
            false = corruption.sign_flip(values, liars, self.eta)
        return false.reshape(scores.shape)
