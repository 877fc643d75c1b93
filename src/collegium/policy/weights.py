"""What the rules with a remainder share: weights for the others are given, the agent keeps the rest."""

import numpy as np
from numpy.typing import NDArray

from collegium.errors import PolicyError
from collegium.policy.base import Policy
from collegium.topology.base import Graph


def complete_with_self_weight(graph: Graph, weights: NDArray[np.float64]) -> Policy:
    """A policy with these weights on the links between different agents and the remainder on the self-loops."""
    require_self_loops(graph)
    own = graph.indices == graph.hearers
    weights = np.where(own, 0.0, weights)
    given = np.bincount(graph.hearers, weights, minlength=graph.size)
    rest = 1.0 - given
    rest[np.abs(rest) <= graph.neighbourhood_sizes * np.finfo(float).eps] = 0.0  # what rounding left of nothing
    weights[own] = rest
    return Policy.from_weights(graph, weights)


def require_self_loops(graph: Graph) -> None:
    """Refuse graphs in which some agent does not count itself."""
    own = graph.indices == graph.hearers
    if np.count_nonzero(own) < graph.size:
        lonely = int(np.setdiff1d(np.arange(graph.size), graph.hearers[own])[0])
        raise PolicyError(f"this rule leaves a weight for the agent itself, but agent {lonely} has no self-loop")


def require_undirected(graph: Graph, rule: str) -> None:
    """Refuse directed graphs, naming a link without its reverse."""
    if not graph.is_undirected:
        matrix = graph.columns(np.ones(len(graph.indices), np.int8))
        hearers, speakers = (matrix.T - matrix).maximum(0).nonzero()
        raise PolicyError(
            f"{rule} needs an undirected graph: agent {hearers[0]} hears agent {speakers[0]}, but not the other way"
        )
