"""`Weights`: one round's matrix, left-stochastic like a policy's, that by itself need not connect everybody."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.seat import Seat
from collegium.policy import Policy
from collegium.policy.base import columns_of, seats
from collegium.topology import Graph
from collegium.topology.base import Frozen


class Weights(Frozen):
    """Who hears whom in a round and how much it counts."""

    def __init__(self, A: ArrayLike | Any) -> None:
        """A dense or scipy.sparse matrix of shape (K, K) whose columns sum to one."""
        columns = columns_of(A)
        self.graph = Graph(columns.indptr, columns.indices)
        self.weights: NDArray[np.float64] = columns.data
        self.weights.flags.writeable = False

    def seats(self) -> tuple[Seat, ...]:
        """Every agent's place."""
        return seats(self.graph, self.weights)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Weights):
            return NotImplemented
        return self.graph == other.graph and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash((self.graph, self.weights.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Weights, (self.graph.columns(self.weights),)

    def to_data(self) -> dict[str, Any]:
        """Size and weighted links, for JSON."""
        return self.graph.to_data(self.weights)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Weights:
        """What `to_data` gave."""
        return cls(Graph.matrix_from_data(data))


def as_weights(network: Policy | Weights | ArrayLike | Any) -> Policy | Weights:
    """A policy as it is; anything else as the weights of a round."""
    return network if isinstance(network, (Policy, Weights)) else Weights(network)
