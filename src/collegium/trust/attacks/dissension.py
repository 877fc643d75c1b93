"""Push apart what averaging brings together last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.base import Outbox
from collegium.trust.attacks.base import Attack, Sight, honest


@dataclass(frozen=True)
class Dissension(Attack):
    """Send every receiver its own message moved by size times its entry of the network's slowest direction.

    direction: one number for every agent; `Dissension.along(policy)` takes the second eigenvector. [he2022]
    """

    direction: tuple[float, ...]
    size: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.direction, tuple):
            raise RuleError(f"a direction has a finite number for every agent; got {self.direction!r:.60}")
        for entry in self.direction:
            real_number(entry, "an entry of a direction", RuleError)
        object.__setattr__(self, "size", real_number(self.size, "the size of a lie", RuleError))

    @classmethod
    def along(cls, policy: Any, size: float = 1.0) -> Dissension:
        """Along the eigenvector of A^T whose eigenvalue is the second largest in modulus, its largest entry one."""
        if not hasattr(policy, "A"):
            raise RuleError(f"a direction is that of a Policy, got {type(policy).__name__}")
        values, vectors = np.linalg.eig(np.asarray(policy.A).T)
        order = np.argsort(-np.abs(values), kind="stable")
        second = np.real(vectors[:, order[1]]) if len(values) > 1 else np.zeros(1)
        largest = np.abs(second).max(initial=0.0)
        return cls(tuple((second / largest if largest > 0 else second).tolist()), size)

    def validate(self, size: int) -> None:
        if len(self.direction) != size:
            raise RuleError(f"this attack has a direction for {len(self.direction)} agents, and the network has {size}")

    def lie(self, sight: Sight) -> Outbox:
        centre = honest(sight).mean(axis=0)
        places = {int(agent): place for place, agent in enumerate(sight.agents)}
        moved = [
            (sight.known[places[k]] if k in places else centre) + self.size * self.direction[k] * np.abs(sight.aim)
            for k in sight.seat.receivers.tolist()
        ]
        if not moved:
            return Outbox(sight.message)
        return Outbox(np.stack(moved, axis=1), own=sight.message)
