"""Different lies to different neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.base import Outbox
from collegium.trust.attacks.base import Attack, Sight


@dataclass(frozen=True)
class TwoFaced(Attack):
    """Send +size to every other receiver and -size to the rest: neighbours that compare notes catch it."""

    size: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", real_number(self.size, "the size of a lie", RuleError, at_least=0))

    def lie(self, sight: Sight) -> Outbox:
        sides = np.where(np.arange(len(sight.seat.receivers)) % 2, -1.0, 1.0)
        return Outbox(self.size * sides[None, :, None] * np.abs(sight.aim)[:, None], own=sight.message)
