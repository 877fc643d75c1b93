"""Where liars sit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium.errors import GraphError
from collegium.topology import Graph
from collegium.trust._graph import require_graph


def on_cut(graph: Graph, m: int) -> NDArray[np.int64]:
    """m agents through which most of the network speaks: a smallest set that cuts it, if m suffice, and then, or else,
    those on the most shortest paths; ascending.

    >>> from collegium import topology
    >>> on_cut(topology.star(6), 1)
    array([0])
    """
    import networkx

    require_graph(graph, "a cut is that")
    m = whole_number(m, "m, how many agents lie,", GraphError, at_least=0, at_most=graph.size)
    plain = graph.to_networkx().to_undirected()
    plain.remove_edges_from(list(networkx.selfloop_edges(plain)))
    between = networkx.betweenness_centrality(plain)
    chosen: list[int] = []
    if graph.size > 2 and networkx.is_connected(plain) and plain.number_of_edges() < graph.size * (graph.size - 1) // 2:
        cut = networkx.minimum_node_cut(plain)
        if len(cut) <= m:
            chosen = sorted(cut)
    chosen += [k for k in sorted(between, key=lambda k: (-between[k], k)) if k not in chosen][: m - len(chosen)]
    return np.array(sorted(chosen), np.int64)
