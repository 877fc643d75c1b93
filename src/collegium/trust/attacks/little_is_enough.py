"""A little is enough: a lie within the spread of the honest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.base import Outbox
from collegium.trust.attacks.base import Attack, Sight, honest


@dataclass(frozen=True)
class LittleIsEnough(Attack):
    """Send the honest mean and z standard deviations more in the wrong direction: no outlier, and always wrong.
    [baruch2019]"""

    z: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "z", real_number(self.z, "z", RuleError, at_least=0))

    def lie(self, sight: Sight) -> Outbox:
        said = honest(sight)
        return Outbox(np.asarray(said.mean(axis=0) + self.z * said.std(axis=0) * np.sign(sight.aim)))
