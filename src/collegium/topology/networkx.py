"""To and from networkx, which is imported only when one of these is called."""

from typing import TYPE_CHECKING, Any

import numpy as np

from collegium.errors import GraphError
from collegium.topology.base import Graph

if TYPE_CHECKING:
    import networkx


def from_networkx(graph: "networkx.Graph[Any]", *, self_loops: bool = True) -> Graph:
    """Agent i is the i-th node of `graph.nodes`; an edge (u, v) of a directed graph means that v hears u.

    An undirected edge is a link each way; weights and repeated edges of a multigraph are not looked at.

    >>> import networkx
    >>> from_networkx(networkx.petersen_graph())
    Graph(10 agents, 30 links, undirected, strongly connected)
    """
    if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise GraphError(f"from_networkx wants a networkx graph, got {type(graph).__name__}")
    number = {node: i for i, node in enumerate(graph.nodes)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], np.int64).reshape(-1, 2)
    return Graph.from_links(
        len(number), pairs[:, 0], pairs[:, 1], undirected=not graph.is_directed(), self_loops=self_loops
    )


def to_networkx(graph: Graph) -> "networkx.DiGraph[int]":
    """A `networkx.DiGraph` with an edge (l, k) where k hears l, self-loops left out."""
    import networkx

    result: networkx.DiGraph[int] = networkx.DiGraph()
    result.add_nodes_from(range(graph.size))
    others = graph.indices != graph.hearers
    result.add_edges_from(zip(graph.indices[others].tolist(), graph.hearers[others].tolist(), strict=True))
    return result
