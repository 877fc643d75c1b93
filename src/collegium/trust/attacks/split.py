"""A group on a cut of the network tells each side something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.base import Outbox
from collegium.trust.attacks.base import Attack, Sight


@dataclass(frozen=True)
class Split(Attack):
    """Send +size to the agents of one side and -size to those of the other, so that the sides never agree.

    sides: +1 or -1 for every agent, 0 for those that are told the truth. See `Split.of` and `placement.on_cut`.
    """

    sides: tuple[int, ...]
    size: float = 2.0

    def __post_init__(self) -> None:
        if not isinstance(self.sides, tuple) or any(side not in (-1, 0, 1) for side in self.sides):
            raise RuleError(f"sides must be +1, -1 or 0 for every agent; got {self.sides!r:.60}")
        object.__setattr__(self, "size", real_number(self.size, "the size of a lie", RuleError, at_least=0))

    @classmethod
    def of(cls, graph: Any, liars: Sequence[int], size: float = 2.0) -> Split:
        """The sides that are left when the liars are taken out: the largest part, and everybody else."""
        import networkx

        from collegium.trust._graph import require_graph  # not above: live agents have no use for graphs

        require_graph(graph, "the sides of a split are those")
        rest = graph.to_networkx().to_undirected()
        rest.remove_nodes_from([int(k) for k in liars])
        parts = sorted(networkx.connected_components(rest), key=lambda part: (-len(part), min(part)))
        if len(parts) == 1:  # no cut: halves by the second eigenvector
            order = np.argsort(networkx.fiedler_vector(rest, seed=0) if len(rest) > 1 else [0.0], kind="stable")
            nodes = np.array(list(rest))[order]
            parts = [set(nodes[: (len(nodes) + 1) // 2].tolist())]
        return cls(tuple(0 if k in liars else 1 if k in parts[0] else -1 for k in range(graph.size)), size)

    def validate(self, size: int) -> None:
        if len(self.sides) != size:
            raise RuleError(f"this attack has sides for {len(self.sides)} agents, and the network has {size}")

    def lie(self, sight: Sight) -> Outbox:
        sides = np.array(self.sides, np.float64)[sight.seat.receivers][None, :, None]
        false = self.size * sides * np.abs(sight.aim)[:, None]
        return Outbox(np.where(sides == 0, sight.message[:, None], false), own=sight.message)
