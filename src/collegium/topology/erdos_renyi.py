"""Directed Erdős–Rényi networks that are strongly connected, the paper's random topology."""

import math

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.randomness import Seed, child, distinct, seed64, stream, uniforms
from collegium.errors import GraphError
from collegium.topology.base import Graph, number_of_agents
from collegium.topology.deterministic import circle

_DRAWS = 1_000
_REST = 10_000  # the number of a draw that is never an attempt


def erdos_renyi(K: int, links: int | None = None, *, p: float | None = None, seed: Seed = 0) -> Graph:
    """A random directed network, strongly connected, with exactly `links` links or each link with probability `p`.

    With `links`, the network is uniform over all strongly connected ones with that many links (networks are
    drawn until one is), unless they are so rare among all networks that fewer than one draw in a thousand would
    do; then a random cycle through all agents is laid first and the other links are drawn uniformly. With `p`,
    networks are drawn until one is strongly connected. The same seed gives the same network everywhere.

    >>> g = erdos_renyi(12, links=24, seed=7)
    >>> g
    Graph(12 agents, 24 links, directed, strongly connected)
    >>> g == erdos_renyi(12, links=24, seed=7)
    True
    """
    K = number_of_agents(K, "an Erdős–Rényi network")
    if (links is None) == (p is None):
        raise GraphError("erdos_renyi wants either links=… (exactly that many) or p=… (the chance of each link)")
    key = seed64(seed)
    if links is not None:
        return _with_links(K, links, key)
    assert p is not None
    return _with_chance(K, p, key)


def _with_links(K: int, links: int, seed: int) -> Graph:
    most = K * (K - 1)
    links = whole_number(links, "links", GraphError)
    if links > most:
        raise GraphError(f"{K} agents have at most {most} directed links, got links={links}")
    if K > 1 and links < K:
        raise GraphError(
            f"links={links} cannot strongly connect {K} agents: every agent needs a sender, so at least {K} are needed"
        )
    # Strong connection fails mostly through an agent that hears nobody or that nobody hears.
    lonely = 2 * K * (1 - links / most) ** (K - 1) if K > 1 else 0.0
    if math.exp(-lonely) >= 1e-3:
        for attempt in range(_DRAWS):
            graph = _connected(K, distinct(child(seed, attempt), most, links))
            if graph is not None:
                return graph
    order = np.argsort(stream(seed, 0, K), kind="stable")
    cycle = _codes(K, order, np.roll(order, -1))
    free = distinct(child(seed, _REST), most - K, links - K)
    # The i-th pair outside the cycle: skip the cycle's pairs at or below it.
    taken = np.sort(cycle)
    free += np.searchsorted(taken - np.arange(K), free, side="right")
    return _from_codes(K, np.concatenate([cycle, free]))


def _with_chance(K: int, p: float, seed: int) -> Graph:
    p = real_number(p, "p, the chance of a link,", GraphError, at_least=0, at_most=1)
    if K > 20_000:
        raise GraphError(
            f"p=… looks at all {K * (K - 1)} pairs; for so many agents give links={round(p * K * (K - 1))}"
        )
    for attempt in range(_DRAWS if K <= 1000 else 10):
        chances = uniforms(child(seed, attempt), 0, K * (K - 1))
        graph = _connected(K, np.flatnonzero(chances < p))
        if graph is not None:
            return graph
    raise GraphError(
        f"no strongly connected network of {K} agents came up with p={p}: "
        f"take p above {min(1.0, 1.5 * math.log(K) / K):.2g} or give links=…"
    )


def _codes(K: int, speakers: NDArray[np.int64], hearers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the K(K-1) pairs of different agents 0, 1, 2, …"""
    return speakers * (K - 1) + hearers - (hearers > speakers)


def _connected(K: int, codes: NDArray[np.int64]) -> Graph | None:
    """The graph of these pairs if it is strongly connected; most that are not leave an agent out, seen at a glance."""
    speakers, hearers = _pairs(K, codes)
    if K > 1 and not (np.bincount(speakers, minlength=K).all() and np.bincount(hearers, minlength=K).all()):
        return None
    graph = _from_codes(K, codes)
    return graph if graph.is_strongly_connected else None


def _pairs(K: int, codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    speakers, hearers = np.divmod(codes, max(K - 1, 1))
    return speakers, hearers + (hearers >= speakers)


def _from_codes(K: int, codes: NDArray[np.int64]) -> Graph:
    speakers, hearers = _pairs(K, codes)
    return Graph.from_links(K, speakers, hearers, positions=circle(K))
