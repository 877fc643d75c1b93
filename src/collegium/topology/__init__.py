"""Who hears whom: graphs of agents, and the families the literature names."""

from collegium.topology.base import Graph
from collegium.topology.deterministic import complete, grid, path, ring, star, torus
from collegium.topology.erdos_renyi import erdos_renyi
from collegium.topology.geometric import geometric
from collegium.topology.networkx import from_networkx, to_networkx
from collegium.topology.small_world import small_world

__all__ = [
    "Graph",
    "complete",
    "erdos_renyi",
    "from_networkx",
    "geometric",
    "grid",
    "path",
    "ring",
    "small_world",
    "star",
    "to_networkx",
    "torus",
]
