"""The regular families: ring, path, star, grid, torus, complete. All undirected, all with self-loops."""

import math

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium.errors import GraphError
from collegium.topology.base import Graph, number_of_agents


def ring(K: int) -> Graph:
    """Every agent hears its two neighbours on a circle.

    >>> ring(12)
    Graph(12 agents, 24 links, undirected, strongly connected)
    """
    K = number_of_agents(K, "a ring")
    here = np.arange(K)
    return Graph.from_links(K, here, (here + 1) % K, undirected=True, positions=circle(K))


def path(K: int) -> Graph:
    """Agents in a row, each hearing the ones beside it."""
    K = number_of_agents(K, "a path")
    here = np.arange(K)
    row = np.column_stack([here, np.zeros(K)])
    return Graph.from_links(K, here[:-1], here[1:], undirected=True, positions=row)


def star(K: int) -> Graph:
    """Agent 0 in the middle hears everybody and is heard by everybody; the others hear only it."""
    K = number_of_agents(K, "a star")
    around = np.vstack([np.zeros((1, 2)), circle(K - 1)])
    return Graph.from_links(K, np.zeros(K - 1, np.int64), np.arange(1, K), undirected=True, positions=around)


def complete(K: int) -> Graph:
    """Everybody hears everybody."""
    K = number_of_agents(K, "a complete network")
    if K > 20_000:
        raise GraphError(
            f"a complete network of {K} agents has {K * (K - 1)} links, too many to hold: use erdos_renyi(K, links=…)"
        )
    speakers, hearers = np.divmod(np.arange(K * K), K)
    return Graph.from_links(K, speakers, hearers, positions=circle(K))


def grid(rows: int, columns: int) -> Graph:
    """A rectangle of agents, each hearing those above, below, left and right; agent r·columns + c is at (r, c).

    >>> grid(3, 4)
    Graph(12 agents, 34 links, undirected, strongly connected)
    """
    return _lattice(rows, columns, wrap=False)


def squarest(K: int) -> tuple[int, int]:
    """Rows and columns of the most square grid of K agents.

    >>> squarest(12), squarest(7)
    ((3, 4), (1, 7))
    """
    rows = next((r for r in range(math.isqrt(K), 0, -1) if K % r == 0), 1)
    return rows, K // rows


def torus(rows: int, columns: int) -> Graph:
    """A grid whose opposite borders touch."""
    return _lattice(rows, columns, wrap=True)


def _lattice(rows: int, columns: int, wrap: bool) -> Graph:
    rows = whole_number(rows, "the number of rows", GraphError, at_least=1)
    columns = whole_number(columns, "the number of columns", GraphError, at_least=1)
    at = np.arange(rows * columns).reshape(rows, columns)
    right, below = np.roll(at, -1, axis=1), np.roll(at, -1, axis=0)
    keep_right = np.ones_like(at, bool) if wrap else np.arange(columns)[None, :] + np.zeros_like(at) < columns - 1
    keep_below = np.ones_like(at, bool) if wrap else np.arange(rows)[:, None] + np.zeros_like(at) < rows - 1
    sources = np.concatenate([at[keep_right], at[keep_below]])
    targets = np.concatenate([right[keep_right], below[keep_below]])
    r, c = np.divmod(np.arange(rows * columns), columns)
    return Graph.from_links(rows * columns, sources, targets, undirected=True, positions=np.column_stack([c, -r]))


def circle(K: int) -> NDArray[np.float64]:
    """K points around a circle, the first at the top, clockwise."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(K) / max(K, 1)
    return np.column_stack([np.cos(angle), np.sin(angle)])
