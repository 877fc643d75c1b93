"""What the planner tries: networks over K agents, and rules for what they send and when they are silent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from collegium import policy, topology
from collegium.errors import CollegiumError
from collegium.policy import Policy
from collegium.protocol import DeGroot, DeltaTrigger, LabelStability, Quantised, Rule
from collegium.topology import Graph

BITS = (2, 3, 4, 6, 8, 12)
"""Message sizes that are tried beside full precision."""
DENSEST = 30
"""Links per agent above which a network is not tried."""


class Network(NamedTuple):
    """A network as the command line writes it, and its policy."""

    topology: str
    weighing: str
    policy: Policy


def networks(K: int) -> list[Network]:
    """Every kind of network over K agents, with uniform, Metropolis and Laplacian weights; no policy twice."""
    found: dict[Policy, Network] = {}
    for name, graph in _graphs(K):
        for weighing in ("uniform", "metropolis", "laplacian"):
            try:
                weighed = getattr(policy, weighing)(graph)
            except CollegiumError:  # Laplacian weights need links in both directions
                continue
            found.setdefault(weighed, Network(name, weighing, weighed))
    return list(found.values())


def _graphs(K: int) -> Iterator[tuple[str, Graph]]:
    yield f"ring:{K}", topology.ring(K)
    yield f"path:{K}", topology.path(K)
    if K > 3:
        yield f"star:{K}", topology.star(K)
    for down in range(2, int(K**0.5) + 1):
        if K % down == 0:
            yield f"grid:{down}x{K // down}", topology.grid(down, K // down)
            if down > 2:
                yield f"torus:{down}x{K // down}", topology.torus(down, K // down)
    if K > 5:
        yield (
            f"small-world:{K},neighbours=4,rewire=0.2,seed=1",
            topology.small_world(K, neighbours=4, rewire=0.2, seed=1),
        )
    for per_agent in (2, 3):
        for seed in (1, 2, 3):
            if per_agent + 1 < K:
                links = per_agent * K
                yield f"erdos-renyi:{K},links={links},seed={seed}", topology.erdos_renyi(K, links=links, seed=seed)
    if 3 < K <= DENSEST:
        yield f"complete:{K}", topology.complete(K)


def rules(scale: float, bound: float) -> tuple[list[Rule], list[Rule]]:
    """Rules at full precision, and the same with few bits: without silence, Δ-triggers, label stability.

    scale: how large scores typically are, the unit of thresholds. bound: no score is larger.
    """
    exact: list[Rule] = [DeGroot()]
    exact += [DeltaTrigger(threshold * scale) for threshold in (0.05, 0.1, 0.2, 0.4, 0.8)]
    exact += [
        LabelStability(patience, confidence * scale)
        for patience in (1, 2, 3)
        for confidence in (0.0, 0.1, 0.25, 0.5, 1.0)
    ]
    return exact, [Quantised(rule, bits, bound) for rule in exact for bits in BITS]
