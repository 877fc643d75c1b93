"""`Graph`: a frozen directed graph of agents, stored by the links each agent hears."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import csgraph

from collegium._util.arguments import whole_number
from collegium._util.randomness import sorted_distinct
from collegium.errors import GraphError

if TYPE_CHECKING:
    import networkx

DENSE_LIMIT = 1024
"""Up to this many agents matrices are handed out dense, above it as scipy.sparse."""

Indices = NDArray[np.int32]
_Array = TypeVar("_Array", bound=NDArray[Any])


MOST_AGENTS = 100_000_000
"""More than this and not even the list of agents is a reasonable thing to hold."""


def number_of_agents(K: Any, network: str, at_least: int = 1) -> int:
    """K as an int, or the sentence that says what a network's size may be."""
    return whole_number(K, f"the number of agents of {network}", GraphError, at_least=at_least, at_most=MOST_AGENTS)


class Frozen:
    """Attributes are set once, on construction; a changed graph or policy is a new one."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__:
            raise AttributeError(f"a {type(self).__name__} is frozen: build a new one instead of setting {name}")
        super().__setattr__(name, value)


class Graph(Frozen):
    """Agents 0…K-1 and the directed links between them.

    A link (l, k) means that agent k hears agent l. `neighbours(k)` is the paper's N_k: everybody k hears, k itself
    included. Build one with the functions of `collegium.topology`, or from any list of links:

    >>> g = Graph.from_links(3, sources=[0, 1, 2], targets=[1, 2, 0])
    >>> g
    Graph(3 agents, 3 links, directed, strongly connected)
    >>> g.neighbours(1)
    array([0, 1], dtype=int32)
    >>> g.adjacency.astype(int)
    array([[1, 1, 0],
           [0, 1, 1],
           [1, 0, 1]])
    """

    def __init__(self, indptr: ArrayLike, indices: ArrayLike, positions: ArrayLike | None = None) -> None:
        """Agent k hears `indices[indptr[k]:indptr[k+1]]`, ascending: the columns of a compressed adjacency matrix."""
        self._indptr: NDArray[np.int64] = _frozen(np.array(indptr, np.int64))
        self._indices: Indices = _frozen(np.array(indices, np.int32))
        self.positions: NDArray[np.float64] | None = (
            None if positions is None else _frozen(np.array(positions, np.float64))
        )
        """Where to draw each agent, shape (K, 2), for the families that have a natural picture."""
        if self.size < 1:
            raise GraphError("a network needs at least one agent")
        self._check()
        if self.positions is not None and self.positions.shape != (self.size, 2):
            raise GraphError(f"positions must have shape ({self.size}, 2), got {self.positions.shape}")

    def _check(self) -> None:
        ends, heard = self._indptr, self._indices
        if ends[0] != 0 or ends[-1] != len(heard) or (np.diff(ends) < 0).any():
            raise GraphError("indptr must rise from 0 to the number of indices")
        if len(heard) and (heard.min() < 0 or heard.max() >= self.size):
            raise GraphError(f"indices must name agents 0 to {self.size - 1}")
        rising = np.diff(heard) > 0
        rising[ends[1:-1][(ends[1:-1] > 0) & (ends[1:-1] < len(heard))] - 1] = True  # a new agent's list begins
        if not rising.all():
            raise GraphError("the agents each one hears must be listed in ascending order, each once")

    def __reduce__(self) -> tuple[Any, ...]:
        return Graph, (self._indptr, self._indices, self.positions)  # frozen again after pickling

    @classmethod
    def from_links(
        cls,
        size: int,
        sources: ArrayLike,
        targets: ArrayLike,
        *,
        undirected: bool = False,
        self_loops: bool = True,
        positions: ArrayLike | None = None,
    ) -> "Graph":
        """Links from `sources[i]` to `targets[i]`, repeated ones once; with self-loops everyone hears itself."""
        size = number_of_agents(size, "a network")
        l, k = _agents(sources), _agents(targets)
        if l.shape != k.shape:
            raise GraphError(f"sources and targets must have the same length, got {len(l)} and {len(k)}")
        if l.size and (min(l.min(), k.min()) < 0 or max(l.max(), k.max()) >= size):
            ends = np.concatenate([l, k])
            unknown = ends[(ends < 0) | (ends >= size)][0]
            raise GraphError(f"links must join agents 0 to {size - 1}, got agent {unknown}")
        if undirected:
            l, k = np.concatenate([l, k]), np.concatenate([k, l])
        if self_loops:
            everyone = np.arange(size)
            l, k = np.concatenate([l, everyone]), np.concatenate([k, everyone])
        codes = sorted_distinct(k * size + l)  # ascending by hearer, then by speaker: the order of summation
        indptr = np.searchsorted(codes, np.arange(size + 1) * size)
        return cls(indptr, codes % size, positions)

    @property
    def size(self) -> int:
        """K, the number of agents."""
        return len(self._indptr) - 1

    @property
    def indptr(self) -> NDArray[np.int64]:
        return self._indptr

    @property
    def indices(self) -> Indices:
        return self._indices

    @cached_property
    def hearers(self) -> Indices:
        """The hearing agent of every entry of `indices`."""
        return _frozen(np.repeat(np.arange(self.size, dtype=np.int32), np.diff(self._indptr)))

    @cached_property
    def links(self) -> int:
        """E_off: how many directed links join two different agents."""
        return int(np.count_nonzero(self._indices != self.hearers))

    @cached_property
    def neighbourhood_sizes(self) -> NDArray[np.int64]:
        """|N_k| of every agent: how many it hears, itself included."""
        return _frozen(np.diff(self._indptr))

    @cached_property
    def audience_sizes(self) -> NDArray[np.int64]:
        """How many *others* hear each agent: the transmissions one of its broadcasts costs."""
        others = self._indices[self._indices != self.hearers]
        return _frozen(np.bincount(others, minlength=self.size))

    @cached_property
    def counts_everybody_itself(self) -> bool:
        """Whether every agent hears itself."""
        return int(np.count_nonzero(self._indices == self.hearers)) == self.size

    def receivers(self, k: int) -> Indices:
        """Who hears agent k, ascending, itself not included."""
        ends, hearers = self._outgoing
        return hearers[ends[k] : ends[k + 1]]

    @cached_property
    def _outgoing(self) -> tuple[NDArray[np.int64], Indices]:
        """The links between different agents by sender: `hearers[ends[l]:ends[l + 1]]` hear agent l."""
        others = self._indices != self.hearers
        order = np.argsort(self._indices[others], kind="stable")
        ends = np.append(0, np.cumsum(self.audience_sizes))
        return _frozen(ends), _frozen(self.hearers[others][order])

    def neighbours(self, k: int) -> Indices:
        """N_k, ascending: whom agent k hears, itself included."""
        if not isinstance(k, (int, np.integer)) or not 0 <= k < self.size:
            raise GraphError(f"there is no agent {k!r}: agents are 0 to {self.size - 1}")
        return self._indices[self._indptr[k] : self._indptr[k + 1]]

    @property
    def adjacency(self) -> Any:
        """Boolean matrix, `adjacency[l, k]` if k hears l; dense up to 1024 agents, `scipy.sparse` above."""
        columns = self.columns(np.ones(len(self._indices), np.bool_))
        return columns.toarray() if self.size <= DENSE_LIMIT else columns

    def columns(self, values: NDArray[Any]) -> "sparse.csc_array[Any]":
        """A sparse matrix with one value per link, self-loops included, in the order of `indices`."""
        # scipy wants both index arrays of one type
        width = np.int32 if len(self._indices) < 2**31 else np.int64
        index = (self._indices.astype(width, copy=False), self._indptr.astype(width))
        return sparse.csc_array((values, *index), shape=(self.size, self.size))

    @cached_property
    def is_undirected(self) -> bool:
        """Whether everyone is heard by exactly those it hears."""
        forward = self.columns(np.ones(len(self._indices), np.int8))
        return bool((forward != forward.T).nnz == 0)

    @cached_property
    def is_strongly_connected(self) -> bool:
        """Whether every agent's messages can reach every other."""
        return self.unreachable_pair() is None

    def unreachable_pair(self) -> tuple[int, int] | None:
        """Two agents (l, k) such that no path leads from l to k; None if the graph is strongly connected."""
        matrix = self.columns(np.ones(len(self._indices), np.int8)).tocsr()
        count, part = csgraph.connected_components(matrix, directed=True, connection="strong")
        if count == 1:
            return None
        reached = csgraph.breadth_first_order(matrix, 0, directed=True, return_predecessors=False)
        if len(reached) < self.size:  # 0 does not reach everybody
            silent = np.setdiff1d(np.arange(self.size), reached)
            return 0, int(silent[0])
        return int(np.flatnonzero(part != part[0])[0]), 0  # 0 reaches it, so it cannot reach 0

    @cached_property
    def period(self) -> int:
        """The greatest common divisor of all cycle lengths: 1 wherever an agent has a self-loop."""
        if not self.is_strongly_connected:
            raise GraphError("only a strongly connected network has a period")
        if np.any(self._indices == self.hearers):
            return 1
        matrix = self.columns(np.ones(len(self._indices), np.int8)).tocsr()
        depth = csgraph.shortest_path(matrix, unweighted=True, indices=0).astype(np.int64)
        return int(np.gcd.reduce(np.abs(depth[self._indices] + 1 - depth[self.hearers])))

    def to_data(self, weights: NDArray[np.float64] | None = None) -> dict[str, Any]:
        """Size and links for JSON: [from, to], or [from, to, weight] where weights are given; self-loops too."""
        ends = zip(self._indices.tolist(), self.hearers.tolist(), strict=True)
        links: list[Any] = [list(link) for link in ends]
        if weights is not None:
            links = [[*link, weight] for link, weight in zip(links, weights.tolist(), strict=True)]
        return {"agents": self.size, "links": links}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "Graph":
        """The graph that `to_data` wrote."""
        matrix = cls.matrix_from_data({**data, "links": [[*link[:2], 1.0] for link in data.get("links", ())]})
        return cls(matrix.indptr, matrix.indices)

    @staticmethod
    def matrix_from_data(data: dict[str, Any]) -> "sparse.csc_array[Any]":
        """The matrix of weights that `to_data` wrote."""
        try:
            rows = np.array(data["links"], np.float64).reshape(-1, 3)
            l, k = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
            size = number_of_agents(data["agents"], "a network")
            matrix = sparse.csc_array((rows[:, 2], (l, k)), shape=(size, size))
        except (KeyError, TypeError, ValueError) as problem:
            what = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)
            raise GraphError(f"a network is written as agents and links [from, to, weight]: {what}") from None
        matrix.sort_indices()
        return matrix

    def to_networkx(self) -> "networkx.DiGraph[int]":
        """The same graph for networkx, an edge (l, k) where k hears l, self-loops left out."""
        from collegium.topology.networkx import to_networkx

        return to_networkx(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return np.array_equal(self._indptr, other._indptr) and np.array_equal(self._indices, other._indices)

    def __hash__(self) -> int:
        return hash((self._indptr.tobytes(), self._indices.tobytes()))

    def __repr__(self) -> str:
        kind = "undirected" if self.is_undirected else "directed"
        strong = "strongly connected" if self.is_strongly_connected else "not strongly connected"
        agents = "1 agent" if self.size == 1 else f"{self.size} agents"
        return f"Graph({agents}, {self.links} links, {kind}, {strong})"


def _agents(ends: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(ends)
    if array.size and array.dtype.kind not in "iu":
        raise GraphError(f"the ends of links must be whole numbers, got {array.dtype}")
    return array.astype(np.int64).ravel()


def _frozen(array: _Array) -> _Array:
    view = array.view()
    view.flags.writeable = False
    return view
