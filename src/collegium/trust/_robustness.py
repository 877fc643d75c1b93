"""How many liars a network bears, and which links would help most."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph, linalg

from collegium._util.arguments import whole_number
from collegium.errors import GraphError
from collegium.topology import Graph
from collegium.topology.robustness import EXACT, Sets, largest_r, largest_s, senders_of
from collegium.trust._graph import require_graph


class Robustness(NamedTuple):
    """What is known of a graph's (r, s)-robustness, and what follows from it for `combine.MeanSubsequence`."""

    r: tuple[int, int]
    """Least and greatest possible value of the largest r for which it is r-robust; equal where it is exact."""
    s: tuple[int, ...]
    """Where it is exact: the largest s for which it is (r, s)-robust, for r = 1, 2, …; else empty."""
    liars: tuple[int, int]
    """F: how many liars in the whole network, each of whom says the same to all, W-MSR bears, at least and at most: it
    is (F+1, F+1)-robust. `combine.MeanSubsequence` asks for neighbourhoods of 2F + 2 besides."""
    local_liars: tuple[int, int]
    """How many in every neighbourhood: the graph is (2F+1)-robust; that suffices."""
    neighbourhood: int
    """How many liars among the values of its smallest neighbourhood a median bears."""

    @property
    def exact(self) -> bool:
        """Whether all pairs of sets were looked at."""
        return bool(self.s)


def robustness(graph: Graph) -> Robustness:
    r"""(r, s)-robustness of a graph: exact for up to 16 agents, bounds for more.

    The lower bound is half the algebraic connectivity, $r \ge \lceil \lambda_2 / 2 \rceil$, for undirected graphs, and
    1 for connected ones; the upper bound is that of pairs of sets that were tried: single agents, and both ends of the
    second eigenvector. [leblanc2013; shahrivar2017]

    >>> from collegium import topology
    >>> robustness(topology.complete(7))
    Robustness(r=(4, 4), s=(7, 7, 7, 7), liars=(3, 3), local_liars=(1, 1), neighbourhood=3)
    """
    require_graph(graph, "robustness is that")
    smallest = (int(graph.neighbourhood_sizes.min()) - 1) // 2
    if graph.size <= EXACT:
        senders = _senders(graph)
        r = largest_r(senders)
        s = tuple(largest_s(senders, one) for one in range(1, max(r, 1) + 1))
        F = max((one for one in range(1, r) if s[one] >= one + 1), default=0)  # s[F] is that of r = F + 1
        return Robustness((r, r), s, (F, F), (max(r - 1, 0) // 2,) * 2, smallest)
    low, high = _bounds(graph)
    # (2F+1)-robust graphs are (F+1, F+1)-robust, and those are (F+1)-robust.
    total, local = (max(low - 1, 0) // 2, max(high - 1, 0)), (max(low - 1, 0) // 2, max(high - 1, 0) // 2)
    return Robustness((low, high), (), total, local, smallest)


def helpful_links(graph: Graph, most: int = 3) -> list[tuple[int, int]]:
    """Links (both ways) whose addition, one after the other, helps most: up to `most` of them.

    Each is the one after which the graph has the largest r, then the largest sum of s, then the largest smallest
    neighbourhood; among equals the first. Above 12 agents, where every try is long, those that raise the smallest
    neighbourhoods, joining agents that are far apart along the second eigenvector.

    >>> from collegium import topology
    >>> helpful_links(topology.ring(6), 1)
    [(0, 2)]
    """
    require_graph(graph, "helpful links are those")
    most = whole_number(most, "how many links", GraphError, at_least=0)
    found: list[tuple[int, int]] = []
    for _ in range(most):
        heard = graph.adjacency if isinstance(graph.adjacency, np.ndarray) else graph.adjacency.toarray()
        both = np.asarray(heard, bool) & np.asarray(heard, bool).T
        missing = np.argwhere(np.triu(~both, 1))
        if not len(missing):
            break
        if graph.size > 12:
            best = _thin(graph, missing)
        else:
            pairs = ((int(i), int(j)) for i, j in missing)
            best = max(pairs, key=lambda link: _worth(_with(graph, link)))  # of equals the first
        found.append(best)
        graph = _with(graph, best)
    return found


def _worth(graph: Graph) -> tuple[int, ...]:
    senders = _senders(graph)
    r, sizes = largest_r(senders), graph.neighbourhood_sizes
    return r, largest_s(senders, r + 1), largest_s(senders, r), int(sizes.min()), -int((sizes == sizes.min()).sum())


def _thin(graph: Graph, missing: Sets) -> tuple[int, int]:
    (i, j), sizes, along = missing.T, graph.neighbourhood_sizes, _second(graph)[1]
    best = np.lexsort((-np.abs(along[i] - along[j]), sizes[i] + sizes[j]))[0]  # of equals the first
    return int(i[best]), int(j[best])


def _with(graph: Graph, link: tuple[int, int]) -> Graph:
    sources, targets = graph.indices, graph.hearers
    i, j = link
    return Graph.from_links(graph.size, np.append(sources, [i, j]), np.append(targets, [j, i]), self_loops=False)


def _senders(graph: Graph) -> Sets:
    return senders_of([graph.neighbours(k) for k in range(graph.size)])


def _second(graph: Graph) -> tuple[float, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The second smallest eigenvalue of the undirected part's Laplacian, and its vector."""
    plain = sparse.coo_array((np.ones(len(graph.indices)), (graph.indices, graph.hearers)), (graph.size,) * 2).tocsr()
    plain = plain.minimum(plain.T)
    plain.setdiag(0)
    laplacian = csgraph.laplacian(plain)
    if graph.size <= 1024:
        values, vectors = np.linalg.eigh(laplacian.toarray())
    else:
        start = np.cos(np.arange(graph.size))
        values, vectors = linalg.eigsh(laplacian, 2, sigma=-1e-3, v0=start)
    return float(values[1]), vectors[:, 1]


def _bounds(graph: Graph) -> tuple[int, int]:
    K, heard = graph.size, graph.neighbourhood_sizes - 1
    algebraic, along = _second(graph)
    low = max(int(graph.is_strongly_connected), math.ceil(algebraic / 2 - 1e-9))
    high = min(max(int(heard.min()), 1), (K + 1) // 2)
    order = np.argsort(along, kind="stable")
    for cut in range(1, K) if K <= 1024 else np.linspace(1, K - 1, 256).astype(int):
        high = min(high, max(_reach(graph, order[:cut]), _reach(graph, order[cut:])))
    return low, max(low, high)


def _reach(graph: Graph, members: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    inside = np.zeros(graph.size, bool)
    inside[members] = True
    outside = np.bincount(graph.hearers[~inside[graph.indices]], minlength=graph.size)
    return int(outside[members].max())
