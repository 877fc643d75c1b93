"""The networks of the experiments, generated once and then kept fixed."""

from __future__ import annotations

from functools import cache

from collegium import policy, topology
from collegium.policy import Policy
from collegium.topology import Graph


@cache
def cifar() -> Policy:
    """Nine agents on a directed Erdős–Rényi graph, uniform averaging; 24 links, our choice."""
    return policy.uniform(topology.erdos_renyi(9, links=24, seed=7))


@cache
def modelnet() -> Policy:
    """Twelve agents on a directed Erdős–Rényi graph, uniform averaging; 32 links, our choice."""
    return policy.uniform(topology.erdos_renyi(12, links=32, seed=7))


@cache
def graphs() -> dict[str, Graph]:
    """The topologies of the communication study: the random one has as many links as the ring."""
    return {
        "ring": topology.ring(12),
        "grid": topology.grid(3, 4),
        "Erdős–Rényi": topology.erdos_renyi(12, links=24, seed=7),
    }


def of(dataset: str) -> Policy:
    """The network of a data set's main study."""
    return modelnet() if dataset == "modelnet" else cifar()
