"""Networks that take turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from collegium._util.seat import Seat
from collegium.errors import PolicyError
from collegium.policy import Policy
from collegium.schedule.weights import Weights, as_weights
from collegium.topology import Graph


@dataclass(frozen=True)
class Alternating:
    """Networks of the same agents, one a round, in turn; made by `schedule.alternating`."""

    networks: tuple[Policy | Weights, ...]
    rule: None = field(default=None, init=False, repr=False)
    _seats: tuple[Sequence[Seat], ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        networks = tuple(as_weights(network) for network in self.networks)
        if not networks:
            raise PolicyError("alternating needs at least one network")
        sizes = sorted({network.graph.size for network in networks})
        if len(sizes) > 1:
            raise PolicyError(f"alternating networks must have the same agents; got networks of {sizes} agents")
        require_connected([network.graph for network in networks])
        object.__setattr__(self, "networks", networks)
        seats = tuple(one.at(1) if isinstance(one, Policy) else one.seats() for one in networks)
        object.__setattr__(self, "_seats", seats)

    @property
    def size(self) -> int:
        """K, the number of agents."""
        return self.networks[0].graph.size

    def at(self, t: int) -> Sequence[Seat]:
        """The seats of round t."""
        return self._seats[(t - 1) % len(self._seats)]

    def __repr__(self) -> str:
        return f"Alternating({len(self.networks)} networks, {self.size} agents)"


def alternating(networks: Sequence[Policy | ArrayLike | Any]) -> Alternating:
    """A schedule that uses each network for one round, in turn.

    networks: policies, or matrices whose columns sum to one; only together must they connect everybody.

    With doubly stochastic matrices whose union is connected, statistics converge to the plain average.
    [tsitsiklis1984; hu2026, Sec. V names time-varying networks as future work]

    >>> import collegium
    >>> pairs = alternating([[[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]], [[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]]])
    >>> collegium.collaborate([[3.0, 0.0, 0.0]], pairs, rounds=60).statistics[-1].round(6)
    array([[1., 1., 1.]])
    """
    if isinstance(networks, (Policy, str)) or not hasattr(networks, "__iter__"):
        raise PolicyError(f"alternating takes a list of policies or matrices, got {type(networks).__name__}")
    return Alternating(tuple(as_weights(network) for network in networks))


def require_connected(graphs: Sequence[Graph]) -> None:
    """Refuse networks that even together leave one agent unheard by another."""
    sources, targets = (np.concatenate([getattr(g, ends) for g in graphs]) for ends in ("indices", "hearers"))
    pair = Graph.from_links(graphs[0].size, sources, targets).unreachable_pair()
    if pair is not None:
        raise PolicyError(
            f"the schedule is not connected even over all its networks: nothing agent {pair[0]} sends ever reaches "
            f"agent {pair[1]}. Add links to one of them."
        )
