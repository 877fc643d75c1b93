"""`Policy`: a checked left-stochastic matrix A and what follows from it."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from collegium._util.arguments import whole_number
from collegium._util.seat import Seat
from collegium.errors import PolicyError
from collegium.policy import spectrum
from collegium.topology.base import DENSE_LIMIT, Frozen, Graph

_SUM_TOLERANCE = 1e-9


class Policy(Frozen):
    r"""The combination policy of a network: $a_{\ell k}$ is the weight agent k gives to agent $\ell$.

    $$ \lambda_{k,t} = \sum_{\ell} a_{\ell k}\, \lambda_{\ell,t-1}, \qquad \sum_\ell a_{\ell k} = 1 $$

    Columns sum to one, the graph of positive weights is strongly connected and not periodic, so A is primitive:
    repeated rounds converge to the average weighted by the Perron vector, at the rate of the second-largest
    eigenvalue modulus. Any other matrix is refused with the reason. [hu2026, Sec. II-B]

    >>> p = Policy([[0.5, 0.25], [0.5, 0.75]])
    >>> p
    Policy(2 agents, 2 links, sigma_A = 0.25)
    >>> p.perron
    array([0.33333333, 0.66666667])
    """

    def __init__(self, A: ArrayLike | Any, *, graph: Graph | None = None) -> None:
        """A dense or scipy.sparse matrix of shape (K, K); `graph` only lends its drawing positions."""
        columns = columns_of(A)
        self._fill(_checked_graph(columns, graph), columns.data)

    def _fill(self, graph: Graph, weights: NDArray[np.float64]) -> None:
        self.graph = graph
        """Who hears whom: the links with positive weight."""
        self.weights = weights
        """One weight per link, self-loops included, in the order of `graph.indices`."""
        self.weights.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.graph, self.weights)  # checked before, and frozen again

    @classmethod
    def from_weights(cls, graph: Graph, weights: NDArray[np.float64]) -> "Policy":
        """A policy from one weight per link of `graph`, self-loops included, in the order of `graph.indices`."""
        return cls(graph.columns(weights), graph=graph)

    def to_data(self) -> dict[str, Any]:
        """Size and weighted links, for JSON."""
        return self.graph.to_data(self.weights)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "Policy":
        """The policy that `to_data` wrote, checked like any other."""
        return cls(Graph.matrix_from_data(data))

    @property
    def size(self) -> int:
        """K, the number of agents."""
        return self.graph.size

    @property
    def links(self) -> int:
        """E_off(A): directed links between different agents, the transmissions of one round."""
        return self.graph.links

    rule: None = None
    """A policy was made for no rule in particular."""

    def at(self, t: int) -> Sequence[Seat]:
        """Every agent's place in round t: the same in all rounds. A policy is the schedule that never changes."""
        return self._seats

    @cached_property
    def _seats(self) -> tuple[Seat, ...]:
        return seats(self.graph, self.weights)

    @cached_property
    def sparse(self) -> "sparse.csc_array[Any]":
        """A by columns, as `scipy.sparse.csc_array`."""
        return self.graph.columns(self.weights)

    @cached_property
    def A(self) -> Any:
        """The matrix: dense up to 1024 agents, `scipy.sparse` above."""
        if self.size > DENSE_LIMIT:
            return self.sparse
        dense = self.sparse.toarray()
        dense.flags.writeable = False
        return dense

    @cached_property
    def perron(self) -> NDArray[np.float64]:
        r"""The Perron vector: $A\pi = \pi$, $\pi_k > 0$, $\sum_k \pi_k = 1$: each agent's weight in the limit."""
        vector = spectrum.perron(self.sparse)
        vector.flags.writeable = False
        return vector

    @cached_property
    def slem(self) -> float:
        r"""$\sigma_A$, the second-largest eigenvalue modulus of A: disagreement shrinks by this factor a round."""
        return spectrum.slem(self.sparse, self.perron)

    @cached_property
    def is_doubly_stochastic(self) -> bool:
        """Whether the rows sum to one as well, so that all agents weigh the same in the limit."""
        return bool(np.abs(self.sparse.sum(axis=1) - 1).max() <= _SUM_TOLERANCE)

    @cached_property
    def is_reversible(self) -> bool:
        r"""Whether $\pi_k a_{\ell k} = \pi_\ell a_{k \ell}$ for every pair: then all eigenvalues of A are real."""
        flow = self.graph.columns(self.weights * self.perron[self.graph.hearers])
        unequal = abs(flow - flow.T).max() if flow.nnz else 0.0
        return bool(unequal <= 1e-9 * float(np.max(self.perron)))

    def power(self, t: int) -> Any:
        """A to the power t: `power(t)[l, k]` is the weight of agent l's score in agent k's statistic after t rounds."""
        t = whole_number(t, "the number of rounds", PolicyError)
        if self.size <= DENSE_LIMIT:
            return np.linalg.matrix_power(self.A, t)
        return sparse.linalg.matrix_power(self.sparse, t)

    def mixing_constant(self, sigma: float) -> float:
        r"""The smallest C with $|[A^t]_{\ell k} - \pi_\ell| \le C \sigma^t$ for all $t \ge 0$."""
        return spectrum.mixing_constant(self._dense("mixing_constant"), self.perron, self.slem, sigma)

    @cached_property
    def b_mix(self) -> float:
        r"""$B_{mix} = \max_k \sum_{i\ge1} \sum_\ell |[A^i]_{\ell k} - \pi_\ell|$.

        Never too small, and too large by at most $10^{-10}$, relative above 1 and absolute below.
        """
        return spectrum.b_mix(self._dense("b_mix"), self.perron, self.slem)

    @cached_property
    def mixing_time(self) -> int:
        r"""The first t with $\max_k \tfrac12 \sum_\ell |[A^t]_{\ell k} - \pi_\ell| \le 1/4$."""
        return spectrum.mixing_time(self._dense("mixing_time"), self.perron)

    def _dense(self, what: str) -> NDArray[np.float64]:
        if self.size > DENSE_LIMIT:
            raise PolicyError(
                f"{what} looks at every pair of agents: computed for at most {DENSE_LIMIT}, and here are {self.size}"
            )
        dense: NDArray[np.float64] = self.A
        return dense

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return self.graph == other.graph and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash((self.graph, self.weights.tobytes()))

    def __repr__(self) -> str:
        agents = "1 agent" if self.size == 1 else f"{self.size} agents"
        sigma = f", sigma_A = {self.slem:.4g}" if self.size <= 100 else ""  # else it takes a while to find
        return f"Policy({agents}, {self.links} links{sigma})"


def seats(graph: Graph, weights: NDArray[np.float64]) -> tuple[Seat, ...]:
    """Every agent's place in a network with one weight per link, in the order of `graph.indices`."""
    ends, found = graph.indptr.tolist(), []
    for k in range(graph.size):
        senders = graph.indices[ends[k] : ends[k + 1]]
        own = int(np.searchsorted(senders, k))
        counts_itself = own < len(senders) and senders[own] == k
        share = weights[ends[k] : ends[k + 1]]
        found.append(Seat(k, senders, own if counts_itself else None, share, graph.receivers(k)))
    return tuple(found)


def require_graph(graph: Any) -> None:
    """Refuse what is no graph, saying what to do with a matrix."""
    if not isinstance(graph, Graph):
        raise PolicyError(
            f"a rule of weights wants a Graph such as topology.ring(12), got {type(graph).__name__}; "
            "a matrix of weights is a policy already: Policy(A)"
        )


def _unpickled(graph: Graph, weights: NDArray[np.float64]) -> Policy:
    policy = Policy.__new__(Policy)
    policy._fill(graph, weights)
    return policy


def columns_of(A: Any) -> "sparse.csc_array[Any]":
    """A as sorted, duplicate-free columns of float64 without stored zeros; refused where it is no such matrix."""
    try:
        given = A if sparse.issparse(A) else np.asarray(A)
        real = given.astype(np.float64) if given.dtype.kind != "c" else None
    except (TypeError, ValueError):
        real = None
    if real is None:
        raise PolicyError("A must be a matrix of real numbers, all rows of the same length")
    if real.ndim != 2:
        raise PolicyError(f"A must be a square matrix, got an array of shape {real.shape}")
    matrix = sparse.csc_array(real)
    matrix.sum_duplicates()
    rows, columns = matrix.shape
    if rows != columns:
        raise PolicyError(f"A must be square, one row and one column per agent; got shape {matrix.shape}")
    if rows == 0:
        raise PolicyError("A is empty: a network needs at least one agent")
    matrix.sort_indices()
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        l, k = _entry(matrix, int(bad[0]))
        raise PolicyError(f"A contains NaN or infinity: {len(bad)} entries, first A[{l}, {k}] = {matrix.data[bad[0]]}")
    bad = np.flatnonzero(matrix.data < 0)
    if len(bad):
        l, k = _entry(matrix, int(bad[0]))
        raise PolicyError(
            f"weights must not be negative: A[{l}, {k}] = {matrix.data[bad[0]]:.4g}, "
            f"the weight agent {k} gives to agent {l}"
        )
    matrix.eliminate_zeros()
    _check_sums(matrix)
    return matrix


def _entry(matrix: "sparse.csc_array[Any]", position: int) -> tuple[int, int]:
    column = int(np.searchsorted(matrix.indptr, position, side="right")) - 1
    return int(matrix.indices[position]), column


def _check_sums(matrix: "sparse.csc_array[Any]") -> None:
    sums = np.asarray(matrix.sum(axis=0)).ravel()
    wrong = np.flatnonzero(np.abs(sums - 1) > _SUM_TOLERANCE)
    if not len(wrong):
        return
    rows_do = np.abs(np.asarray(matrix.sum(axis=1)).ravel() - 1).max() <= _SUM_TOLERANCE
    advice = "The rows do sum to 1: pass A.T" if rows_do else "Scale each column to sum to 1"
    raise PolicyError(
        f"columns of A must sum to 1: column {wrong[0]} sums to {sums[wrong[0]]:.12g}"
        f"{f' (and {len(wrong) - 1} more)' if len(wrong) > 1 else ''}. "
        f"A[l, k] is the weight agent k gives to agent l. {advice}."
    )


def _checked_graph(matrix: "sparse.csc_array[Any]", drawn_like: Graph | None) -> Graph:
    positions = None if drawn_like is None else drawn_like.positions
    graph = Graph(matrix.indptr, matrix.indices, positions)
    if drawn_like is not None and drawn_like == graph:
        graph = drawn_like  # its cached answers are worth keeping
    pair = graph.unreachable_pair()
    if pair is not None:
        raise PolicyError(
            f"the network is not strongly connected: no message of agent {pair[0]} ever reaches agent {pair[1]}. "
            "Add links, or decide in each part separately."
        )
    if graph.period > 1:
        raise PolicyError(
            f"A is periodic with period {graph.period}: opinions would go round for ever. "
            "Give at least one agent a weight for itself, A[k, k] > 0."
        )
    return graph
