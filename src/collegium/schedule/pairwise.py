"""Pairwise gossip: one random link a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import Seed, seed64, stream
from collegium._util.seat import Seat
from collegium.errors import GraphError
from collegium.topology import Graph

_HALVES = np.array([0.5, 0.5])


@dataclass(frozen=True)
class Pairwise:
    """In each round one link, drawn at random, brings two agents to their average; made by `schedule.pairwise`."""

    graph: Graph
    seed: int = 0
    rule: None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        graph = self.graph
        if not isinstance(graph, Graph):
            raise GraphError(f"pairwise gossip wants a Graph such as topology.ring(12), got {type(graph).__name__}")
        if not graph.is_undirected:
            raise GraphError("pairwise gossip needs an undirected graph: two agents who average must hear each other")
        if graph.unreachable_pair() is not None or not graph.links:
            raise GraphError(f"pairwise gossip needs a connected graph of at least two agents, got {graph!r}")

    @property
    def size(self) -> int:
        """K, the number of agents."""
        return self.graph.size

    def pair(self, t: int) -> NDArray[np.int32]:
        """The two agents that average in round t, ascending."""
        graph = self.graph
        forward = np.flatnonzero(graph.indices < graph.hearers)
        chosen = forward[int(stream(self.seed, t, 1)[0] % np.uint64(len(forward)))]
        return np.array([graph.indices[chosen], graph.hearers[chosen]], np.int32)

    def at(self, t: int) -> Sequence[Seat]:
        """The seats of round t: a pair that hears each other, everybody else alone."""
        graph, pair = self.graph, self.pair(t)
        seats = [Seat(k, np.array([k], np.int32), 0, np.ones(1), np.empty(0, np.int32)) for k in range(graph.size)]
        for own, k in enumerate(pair.tolist()):
            seats[k] = Seat(k, pair, own, _HALVES, pair[1 - own : 2 - own])
        return seats


def pairwise(graph: Graph, seed: Seed = 0) -> Pairwise:
    """Randomised pairwise gossip over an undirected, connected graph. [boyd2006]

    The plain average is approached with two messages a round; the disagreement shrinks in expectation by the
    second-largest eigenvalue of the mean matrix a round.

    >>> import collegium
    >>> from collegium import topology
    >>> run = collegium.collaborate([[1.0, 2.0, 6.0]], pairwise(topology.path(3)), rounds=200)
    >>> run.statistics[-1].round(6), int(run.transmissions[0])
    (array([[3., 3., 3.]]), 400)
    """
    return Pairwise(graph, seed64(seed))
