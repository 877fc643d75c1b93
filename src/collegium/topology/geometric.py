"""Random geometric networks: agents at random places hear those within a radius."""

import math

import numpy as np

from collegium._util.arguments import real_number
from collegium._util.randomness import Seed, child, seed64, uniforms
from collegium.errors import GraphError
from collegium.topology.base import Graph, number_of_agents

_DRAWS = 1000


def geometric(K: int, radius: float | None = None, *, seed: Seed = 0) -> Graph:
    """K agents uniform in the unit square, linked both ways where closer than `radius`; connected, or GraphError.

    Without a radius, sqrt(2 log K / K) is taken, which connects most draws. Places are redrawn until everybody
    is connected. `Graph.positions` keeps them.

    >>> geometric(30, seed=1).is_strongly_connected
    True
    """
    from scipy.spatial import cKDTree  # slow to import, and only this family needs it

    K = number_of_agents(K, "a geometric network")
    radius = math.sqrt(2 * math.log(max(K, 2)) / K) if radius is None else radius
    radius = real_number(radius, "the radius", GraphError, above=0)
    key = seed64(seed)
    for attempt in range(_DRAWS if K <= 10_000 else 10):
        places = uniforms(child(key, attempt), 0, 2 * K).reshape(K, 2)
        pairs = cKDTree(places).query_pairs(radius, output_type="ndarray").astype(np.int64)
        graph = Graph.from_links(K, pairs[:, 0], pairs[:, 1], undirected=True, positions=places)
        if graph.is_strongly_connected:
            return graph
    raise GraphError(f"{K} agents within radius {radius:.3g} were never all connected: take a larger radius")
