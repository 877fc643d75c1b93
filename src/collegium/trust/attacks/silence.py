"""Silence when it matters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.base import Outbox
from collegium.trust.attacks.base import Attack, Sight, honest


@dataclass(frozen=True)
class Silence(Attack):
    """Mislead once and then be silent about the items whose honest mean is within the margin; be honest about others.

    A mailbox that holds the last message goes on counting the lie, and over easy items the liar looks sound.
    """

    margin: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "margin", real_number(self.margin, "the margin", RuleError, at_least=0))

    def lie(self, sight: Sight) -> Outbox:
        close = np.abs(honest(sight).mean(axis=0)).max(axis=1) < self.margin
        if sight.round == 1:
            return Outbox(np.where(close[:, None], self.margin * sight.aim, sight.message))
        return Outbox(sight.message, ~close)
