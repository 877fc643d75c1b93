"""The weights that average fastest on a given graph."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from threadpoolctl import threadpool_limits

from collegium.errors import PolicyError
from collegium.policy.base import Policy, require_graph
from collegium.policy.weights import require_self_loops, require_undirected
from collegium.topology.base import Graph

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_LINKS = 2000
_GAP, _STEEPER = 1e-5, 20.0
_CENTRED, _MOST_STEPS = 1e-2, 50
_RIDGES = (1e-12, 1e-10, 1e-8, 1e-6)
_NOTHING = 1e-6
"""A weight that is zero but for the barrier."""


def fastest(graph: Graph) -> Policy:
    r"""The symmetric weights with the smallest $\sigma_A$ on an undirected graph: the fastest mixing Markov chain.

    $$ \min_A \Bigl\| A - \tfrac1K \mathbf 1 \mathbf 1^\top \Bigr\|_2, \qquad A = A^\top, \; A \mathbf 1 = \mathbf 1,
       \; A \ge 0, \; a_{\ell k} = 0 \text{ off the graph} $$

    All agents weigh the same in the limit, as with Metropolis weights. Worth it on irregular graphs; where all links
    are alike (a ring) one weight for all is best. Every agent must be told its weights: they follow from the whole
    graph. Found by an interior-point method: $\sigma_A$ is at most $10^{-5}$ above the smallest, for at most 2000
    undirected links (100 agents with a few links each: a second). With negative weights allowed too:
    `fastest_matrix`. [boyd2004, xiao2004]

    >>> from collegium import policy, topology
    >>> g = topology.star(6)
    >>> round(policy.metropolis(g).slem, 4), round(fastest(g).slem, 4)
    (0.8333, 0.8)
    """
    A = fastest_matrix(graph, signed=False)
    return Policy(np.maximum(A, 0.0), graph=graph)  # an agent's own weight may be zero, and then is so only to rounding


def fastest_matrix(graph: Graph, signed: bool = True) -> Floats:
    """The symmetric matrix with the smallest σ, shape (K, K): fastest distributed linear averaging.

    signed: whether weights may be negative, which can be faster still; such a matrix is no `Policy`.
    """
    require_graph(graph)
    require_undirected(graph, "fastest")
    require_self_loops(graph)
    forward = graph.indices < graph.hearers
    l, k = graph.indices[forward].astype(np.int64), graph.hearers[forward].astype(np.int64)
    if len(l) > MOST_LINKS:
        raise PolicyError(
            f"the fastest weights are found for at most {MOST_LINKS} undirected links, and here are {len(l)}: use "
            "metropolis, and protocol.Chebyshev()"
        )
    K = graph.size
    if not len(l):
        return np.eye(K)
    sizes = np.bincount(np.r_[l, k], minlength=K)
    weights = 1.0 / (1 + np.maximum(sizes[l], sizes[k]))  # Metropolis, to begin with
    barrier = _Barrier(l, k, K, signed)
    sigma, terms = 2.0, 2 * K + (0 if signed else len(l) + K)
    slope = float(terms)
    with threadpool_limits(1):  # many small factorisations: threads would mostly wait for each other
        while True:
            weights, sigma = _centre(barrier, weights, sigma, slope)
            if terms / slope <= _GAP:  # a bound of how far σ is from the smallest
                break
            slope = min(slope * _STEEPER, terms / _GAP)
    return _matrix(weights if signed else np.where(weights < _NOTHING, 0.0, weights), l, k, K)


class _Barrier:
    """slope · σ - log det(σI - M) - log det(σI + M) - the logarithms of what must not be negative, M = A - 11ᵀ/K.

    With b the vector that is 1 at one end of a link and -1 at the other, A = I - Σ w b bᵀ, so that second derivatives
    by the weights of two links are squares of bᵀ (σI ± M)⁻¹ b: one product of matrices for all of them.
    """

    def __init__(self, l: Ints, k: Ints, K: int, signed: bool) -> None:
        self.l, self.k, self.K, self.signed = l, k, K, signed
        self.gives = np.zeros((K, len(l)))  # which agent gives a link's weight away, both ends do
        self.gives[l, np.arange(len(l))] = self.gives[k, np.arange(len(l))] = 1.0

    def value(self, weights: Floats, sigma: float, slope: float) -> float:
        """Infinite where it is not defined."""
        own = 1 - self.gives @ weights
        if not self.signed and min(weights.min(), own.min()) <= 0:
            return np.inf
        try:
            factors = [np.linalg.cholesky(side) for side in self._sides(weights, sigma)]
        except np.linalg.LinAlgError:
            return np.inf
        found = slope * sigma - 2 * sum(float(np.log(factor.diagonal()).sum()) for factor in factors)
        return found if self.signed else found - float(np.log(weights).sum() + np.log(own).sum())

    def derivatives(self, weights: Floats, sigma: float, slope: float) -> tuple[Floats, Floats]:
        """By the weights and, last, by σ: shapes (m + 1,) and (m + 1, m + 1)."""
        m = len(weights)
        first, second = np.zeros(m + 1), np.zeros((m + 1, m + 1))
        first[m] = slope
        for side, sign in zip(self._sides(weights, sigma), (1.0, -1.0), strict=True):
            inverse = linalg.cho_solve(linalg.cho_factor(side, lower=True), np.eye(self.K))
            links = inverse[self.l] - inverse[self.k]
            across = links[:, self.l] - links[:, self.k]
            first[:m] -= sign * across.diagonal()
            first[m] -= inverse.trace()
            second[:m, :m] += across**2
            second[m, :m] += sign * (links**2).sum(axis=1)
            second[m, m] += (inverse**2).sum()
        if not self.signed:
            own = 1 - self.gives @ weights
            first[:m] += self.gives.T @ (1 / own) - 1 / weights
            second[:m, :m] += (self.gives.T / own**2) @ self.gives + np.diag(1 / weights**2)
        second[:m, m] = second[m, :m]
        return first, second

    def _sides(self, weights: Floats, sigma: float) -> tuple[Floats, Floats]:
        M = _matrix(weights, self.l, self.k, self.K) - 1 / self.K
        upper = sigma * np.eye(self.K)
        return upper - M, upper + M


def _centre(barrier: _Barrier, weights: Floats, sigma: float, slope: float) -> tuple[Floats, float]:
    """Newton's method down to the smallest value for this slope."""
    value = barrier.value(weights, sigma, slope)
    for _ in range(_MOST_STEPS):
        first, second = barrier.derivatives(weights, sigma, slope)
        step = _newton(first, second)
        down = float(first @ step)
        if down > -_CENTRED:
            break
        length = 1.0
        while True:
            trial = weights + length * step[:-1], sigma + length * float(step[-1])
            below = barrier.value(*trial, slope)
            if below <= value + 0.1 * length * down:
                break
            length /= 2
            if length < 1e-8:  # no further than rounding allows
                return weights, sigma
        (weights, sigma), value = trial, below
    return weights, sigma


def _newton(first: Floats, second: Floats) -> Floats:
    """A step down, where second derivatives differ by many powers of ten and can be singular to rounding."""
    scale = 1 / np.sqrt(second.diagonal())
    second = scale[:, None] * second * scale
    for ridge in _RIDGES:
        with suppress(np.linalg.LinAlgError):
            factor = linalg.cho_factor(second + ridge * np.eye(len(first)))
            return np.asarray(-scale * linalg.cho_solve(factor, scale * first))
    return -(scale**2) * first


def _matrix(weights: Floats, l: Ints, k: Ints, K: int) -> Floats:
    A = np.zeros((K, K))
    A[l, k] = A[k, l] = weights
    A[np.arange(K), np.arange(K)] = 1 - A.sum(axis=0)
    return A
