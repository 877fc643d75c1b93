"""The networks of the experiments, generated once and then kept fixed."""

from __future__ import annotations

from functools import cache
from math import isqrt

from collegium import policy, topology
from collegium.policy import Policy
from collegium.topology import Graph

_SEEDS = {9: 115, 12: 30}
"""Of random graphs, by the number of agents; 7 where none is named. Each is near the median of 200 graphs in the error
of real agents (CIFAR-10 at N_0 = 10 000, ModelNet at 390) after 20 rounds with uniform weights, on both random graphs:
that of the main comparison and that with as many links as the ring. See the study `graphs`."""


def seed_of(K: int) -> int:
    """The seed of the random graph of K agents that figures show."""
    return _SEEDS.get(K, 7)


@cache
def of(K: int) -> Policy:
    """K agents on a directed Erdős–Rényi graph, uniform averaging; 8/3 links per agent, our choice.

    These are 24 for the nine agents of CIFAR-10 and 32 for the twelve of ModelNet.
    """
    return policy.uniform(topology.erdos_renyi(K, links=min(8 * K // 3, K * (K - 1)), seed=seed_of(K)))


@cache
def graphs(K: int) -> dict[str, Graph]:
    """The topologies of the communication study: the grid is as square as K allows (a path, if K is prime), the random
    graph has as many links as the ring."""
    rows = max(side for side in range(1, isqrt(K) + 1) if K % side == 0)
    ring = topology.ring(K)
    return {
        "ring": ring,
        "grid": topology.grid(rows, K // rows),
        "Erdős–Rényi": topology.erdos_renyi(K, links=ring.links, seed=seed_of(K)),
    }
