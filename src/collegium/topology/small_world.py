"""Watts–Strogatz small worlds: a ring lattice with some links rewired at random."""

from collegium.errors import GraphError
from collegium.randomness import Seed, child, seed64, uniforms
from collegium.topology.base import Graph, whole_number
from collegium.topology.deterministic import circle

_DRAWS = 100


def small_world(K: int, neighbours: int = 4, rewire: float = 0.1, *, seed: Seed = 0) -> Graph:
    """Each agent is linked to its `neighbours` nearest on a ring; each link moves its far end with chance `rewire`.

    Links go both ways and their number, K·neighbours directed ones, never changes. Redrawn until connected. [watts1998]

    >>> small_world(20, neighbours=4, rewire=0.2, seed=3)
    Graph(20 agents, 80 links, undirected, strongly connected)
    """
    K = whole_number(K, "the number of agents of a small world", at_least=3)
    neighbours = whole_number(neighbours, "neighbours", at_least=2, at_most=K - 1)
    if neighbours % 2:
        raise GraphError(f"neighbours must be even, half of them on each side of the ring; got {neighbours}")
    if not 0 <= rewire <= 1:
        raise GraphError(f"rewire is a chance and lies between 0 and 1, got {rewire}")
    key = seed64(seed)
    for attempt in range(_DRAWS):
        graph = _draw(K, neighbours // 2, rewire, child(key, attempt))
        if graph.is_strongly_connected:
            return graph
    raise GraphError(
        f"no connected small world came up with neighbours={neighbours}, rewire={rewire}: take more neighbours"
    )


def _draw(K: int, reach: int, rewire: float, seed: int) -> Graph:
    chance = uniforms(child(seed, 0), 0, K * reach)
    pairs = {(min(i, j), max(i, j)) for step in range(1, reach + 1) for i in range(K) for j in [(i + step) % K]}
    ends = iter(())  # the stream of new far ends, refilled as needed
    drawn, degree = 0, [2 * reach] * K
    for number in range(K * reach):
        step, here = divmod(number, K)
        there = (here + step + 1) % K
        if chance[number] >= rewire or degree[here] >= K - 1:
            continue
        while True:
            target = next(ends, None)
            if target is None:
                ends = iter((uniforms(child(seed, 1), drawn, 1024) * K).astype(int).tolist())
                drawn += 1024
                continue
            if target != here and (min(here, target), max(here, target)) not in pairs:
                break
        pairs.remove((min(here, there), max(here, there)))
        pairs.add((min(here, target), max(here, target)))
        degree[there] -= 1
        degree[target] += 1
    sources, targets = zip(*sorted(pairs), strict=True)
    return Graph.from_links(K, sources, targets, undirected=True, positions=circle(K))
