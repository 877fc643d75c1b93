"""Mutual information by nearest neighbours, and between agents given the class."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma

from collegium._util.arguments import whole_number
from collegium._util.labels import to_signs
from collegium._util.progress import track
from collegium.errors import ScoreError

Doubles = NDArray[np.float64]


def mutual_information(x: ArrayLike, y: ArrayLike, k: int = 5) -> float:
    r"""An estimate of I(X; Y) in nats from n pairs, by k nearest neighbours [kraskov2004, first estimator].

    $$ \hat I = \psi(k) + \psi(n) - \langle \psi(n_x + 1) + \psi(n_y + 1) \rangle $$

    where n_x and n_y count the points that are nearer in x alone, and in y alone, than the k-th neighbour is in both;
    distances are largest coordinate differences. It can be slightly negative where X and Y are independent.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> abs(mutual_information(x, 0.8 * x + 0.6 * rng.normal(size=(2000, 1))) - 0.5108) < 0.05  # -½ log(1 - 0.8²)
    True
    """
    a, b = _points(x), _points(y)
    if len(a) != len(b):
        raise ScoreError(f"mutual information is of pairs; got {len(a)} and {len(b)} points")
    k = whole_number(k, "k", ScoreError, at_least=1, at_most=len(a) - 1)
    from collegium.diagnostics.neighbours import counts

    near_a, near_b = counts(a, b, k)
    n = len(a)
    return float(digamma(k) + digamma(n) - np.mean(digamma(near_a + 1) + digamma(near_b + 1)))


def conditional_mutual_information(views: Sequence[Any], y: ArrayLike, dimensions: int = 20, k: int = 5) -> Doubles:
    r"""Mutual information of every two agents' views given the class, in nats, shape (K, K) [hu2026, App. H.1].

    $$ I(h_k, h_\ell) = \sum_\gamma P(\gamma)\, I(h_k; h_\ell \mid \gamma) $$

    Each agent's views, as rows of numbers, are reduced to their first principal components, fitted on all items; the
    estimate is made class by class and averaged. The diagonal is NaN.
    """
    reduced = [principal_components(view, dimensions) for view in views]
    signs = to_signs(y, len(reduced[0]), classes=(1, -1))
    K = len(reduced)
    out = np.full((K, K), np.nan)
    shares = {sign: float((signs == sign).mean()) for sign in (1, -1)}
    for a, b in track(list(combinations(range(K), 2)), "mutual information of pairs"):
        found = sum(
            share * mutual_information(reduced[a][signs == sign], reduced[b][signs == sign], k)
            for sign, share in shares.items()
            if share > 0
        )
        out[a, b] = out[b, a] = found
    return out


def principal_components(view: ArrayLike, dimensions: int) -> Doubles:
    """The first principal components of items (n, …), each item flattened; all there are if it has fewer numbers."""
    x = np.asarray(view, np.float64)
    x = x.reshape(len(x), -1)
    dimensions = whole_number(dimensions, "dimensions", ScoreError, at_least=1)
    centred = x - x.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return np.ascontiguousarray(centred @ vectors[:, ::-1][:, :dimensions])


def _points(x: ArrayLike) -> Doubles:
    points = np.asarray(x, np.float64)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or len(points) < 2 or not np.isfinite(points).all():
        raise ScoreError(f"points must be finite numbers of shape (n, d), at least two of them; got {points.shape}")
    return np.ascontiguousarray(points)
