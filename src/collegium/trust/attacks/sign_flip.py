"""The opposite of every message."""

from __future__ import annotations

from dataclasses import dataclass

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.base import Outbox
from collegium.trust.attacks.base import Attack, Sight


@dataclass(frozen=True)
class SignFlip(Attack):
    """Send -eta times what the rule would send, in every round."""

    eta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", real_number(self.eta, "eta", RuleError, at_least=0))

    def lie(self, sight: Sight) -> Outbox:
        return Outbox(-self.eta * sight.message)
