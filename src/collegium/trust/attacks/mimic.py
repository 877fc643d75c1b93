"""Say what an honest agent says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium.protocol.base import Outbox
from collegium.trust.attacks.base import Attack, Sight, honest


@dataclass(frozen=True)
class Mimic(Attack):
    """Repeat an honest agent's message, so that it counts more than once: no rule can tell it from the truth.

    most_wrong: item by item the honest agent that is farthest in the wrong direction, else always the first one.
    [karimireddy2022]
    """

    most_wrong: bool = True

    def lie(self, sight: Sight) -> Outbox:
        said = honest(sight)
        if not self.most_wrong:
            return Outbox(said[0].copy())
        farthest = (said * sight.aim).sum(axis=2).argmax(axis=0)
        return Outbox(said[farthest, np.arange(said.shape[1])])
