"""The same lie in every round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.base import Outbox
from collegium.trust.attacks.base import Attack, Sight


@dataclass(frozen=True)
class Stubborn(Attack):
    """Send a constant in every round: averaging ends there, however small the liar's weight.

    size: how far from zero; fixed: +size for every item instead of away from the label.
    """

    size: float = 2.0
    fixed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", real_number(self.size, "the size of a lie", RuleError))

    def lie(self, sight: Sight) -> Outbox:
        return Outbox(self.size * (np.ones_like(sight.aim) if self.fixed else sight.aim))
