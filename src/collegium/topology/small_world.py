"""Watts–Strogatz small worlds: a ring lattice with some links rewired at random."""

from collections.abc import Iterator
from itertools import count

import numpy as np

from collegium._util.arguments import real_number, whole_number
from collegium._util.randomness import Seed, child, seed64, uniforms
from collegium.errors import GraphError
from collegium.topology.base import Graph, number_of_agents
from collegium.topology.deterministic import circle

_DRAWS = 100


def small_world(K: int, neighbours: int = 4, rewire: float = 0.1, *, seed: Seed = 0) -> Graph:
    """Each agent is linked to its `neighbours` nearest on a ring; each link moves its far end with chance `rewire`.

    Links go both ways and their number, K·neighbours directed ones, never changes. Redrawn until connected. [watts1998]

    >>> small_world(20, neighbours=4, rewire=0.2, seed=3)
    Graph(20 agents, 80 links, undirected, strongly connected)
    """
    K = number_of_agents(K, "a small world", at_least=3)
    neighbours = whole_number(neighbours, "neighbours", GraphError, at_least=2, at_most=K - 1)
    if neighbours % 2:
        raise GraphError(f"neighbours must be even, half of them on each side of the ring; got {neighbours}")
    rewire = real_number(rewire, "rewire, the chance of a link to move,", GraphError, at_least=0, at_most=1)
    key = seed64(seed)
    for attempt in range(_DRAWS):
        graph = _draw(K, neighbours // 2, rewire, child(key, attempt))
        if graph.is_strongly_connected:
            return graph
    raise GraphError(
        f"no connected small world came up with neighbours={neighbours}, rewire={rewire}: take more neighbours"
    )


def _draw(K: int, reach: int, rewire: float, seed: int) -> Graph:
    """Links are numbered step by step around the ring; one that moves keeps its near end."""
    here, step = np.tile(np.arange(K), reach), np.repeat(np.arange(1, reach + 1), K)
    there = (here + step) % K
    moves = np.flatnonzero(uniforms(child(seed, 0), 0, K * reach) < rewire)
    left: set[int] = set()  # pairs of the lattice that have gone, and pairs that have come
    come: set[int] = set()
    degree = np.full(K, 2 * reach)
    targets = _endless(K, child(seed, 1))
    for number in moves.tolist():
        i = int(here[number])
        if degree[i] >= K - 1:  # linked to everybody already
            continue
        for j in targets:
            apart = min((i - j) % K, (j - i) % K)
            pair = min(i, j) * K + max(i, j)
            if apart > 0 and pair not in come and (apart > reach or pair in left):
                break
        old = int(there[number])
        left.add(min(i, old) * K + max(i, old))
        come.add(pair)
        degree[old] -= 1
        degree[j] += 1
        there[number] = j
    return Graph.from_links(K, here, there, undirected=True, positions=circle(K))


def _endless(K: int, seed: int) -> Iterator[int]:
    for start in count(0, 1024):
        yield from (uniforms(seed, start, 1024) * K).astype(int).tolist()
