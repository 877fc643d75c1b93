"""What the planner tries: networks over K agents, and rules for what they send and when they are silent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from collegium import policy, schedule, topology
from collegium.errors import CollegiumError
from collegium.planner.reach import width
from collegium.policy import Policy
from collegium.protocol import (
    Chebyshev,
    DeGroot,
    DeltaTrigger,
    Flood,
    LabelStability,
    PushSum,
    Quantised,
    Rule,
    RunningSums,
)
from collegium.schedule import Schedule
from collegium.topology import Graph

BITS = (2, 3, 4, 6, 8, 12)
"""Message sizes that are tried beside full precision."""
DENSEST = 30
"""Links per agent above which a network is not tried."""
MOST_WEIGHED = 400
"""Undirected links above which the fastest weights are not tried: finding them would take longer than all else."""


class Network(NamedTuple):
    """A network as the command line writes it, and its policy or schedule."""

    topology: str
    weighing: str
    policy: Schedule


def quick(tried: list[Network], rounds: int, bound: float) -> Iterator[tuple[Network, Rule, int]]:
    """Ways to average in few rounds, or without weights by accident, with their rules and rounds.

    Exact and one-peer exponential schedules, eigenvalue steps and Chebyshev where links go both ways, push-sum where
    they do not, and flooding. Running sums are push-sum as long as nothing is lost.

    tried: the networks. rounds: the most. bound: no score is larger; messages of few bits are those of exact schedules
    alone, which never exceed it.
    """
    K = tried[0].policy.size
    exact = schedule.exact(K)
    if exact.rounds <= rounds:
        for rule in (exact.rule, *(Quantised(exact.rule, bits, bound) for bits in BITS)):
            yield Network(f"exact:{K}", "own weights", exact), rule, exact.rounds
    yield Network(f"one-peer-exponential:{K}", "own weights", schedule.one_peer_exponential(K)), DeGroot(), rounds
    for one in tried:
        if not isinstance(one.policy, Policy):
            continue
        if one.weighing == "uniform" and K <= DENSEST:  # weights play no part
            yield one, Flood(K), min(width(one.policy), rounds)
        if not one.policy.graph.is_undirected:
            if one.weighing == "uniform":
                yield one, PushSum(), rounds
            continue
        with suppress(CollegiumError):  # where rounding would spoil it
            steps = schedule.eigenvalue_steps(one.policy)
            if 1 < steps.rounds <= rounds:
                yield Network(f"eigenvalue-steps:{one.topology}", one.weighing, steps), steps.rule, steps.rounds
        if one.policy.slem > 1e-6:  # else one round of DeGroot is exact
            yield one, Chebyshev(), rounds


def lossy(tried: list[Network], rounds: int) -> Iterator[tuple[Network, Rule, int]]:
    """What is tried beside DeGroot where messages are lost: running sums, which make up for it, and flooding.

    Flooding tells what it knows once, so a lost message can leave an agent without some scores; the mean of the others
    is often near.
    """
    for one in tried:
        if one.weighing == "uniform":  # weights play no part
            yield one, RunningSums(), rounds
            if one.policy.size <= DENSEST:
                yield one, Flood(one.policy.size), rounds


def networks(K: int) -> list[Network]:
    """Every kind of network over K agents, with uniform, Metropolis, Laplacian and fastest weights; no policy twice."""
    found: dict[Schedule, Network] = {}
    for name, graph in _graphs(K):
        for weighing in ("uniform", "metropolis", "laplacian", "fastest"):
            if weighing == "fastest" and graph.links > 2 * MOST_WEIGHED:
                continue
            try:
                weighed = getattr(policy, weighing)(graph)
            except CollegiumError:  # Laplacian and fastest weights need links in both directions
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
