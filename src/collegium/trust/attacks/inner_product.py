"""Inner-product manipulation: the honest mean turned round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.base import Outbox
from collegium.trust.attacks.base import Attack, Sight, honest


@dataclass(frozen=True)
class InnerProduct(Attack):
    """Send -eta times the mean of the honest messages; a small eta is no outlier. [xie2020]"""

    eta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", real_number(self.eta, "eta", RuleError, at_least=0))

    def lie(self, sight: Sight) -> Outbox:
        return Outbox(np.asarray(-self.eta * honest(sight).mean(axis=0)))
