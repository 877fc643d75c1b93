"""How much agents' statistics go together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collegium.errors import ScoreError


def mean_correlation(statistics: ArrayLike) -> float:
    """The mean Pearson correlation over pairs of agents, statistics of shape (n, K) [hu2026, App. H.2].

    A constant column has no correlation and counts as uncorrelated.

    >>> mean_correlation([[1.0, 2.0, -1.0], [2.0, 4.0, -2.0], [3.0, 6.0, -3.0]]).__round__(6)
    -0.333333
    """
    x = np.asarray(statistics, np.float64)
    if x.ndim != 2 or x.shape[0] < 2 or x.shape[1] < 2:
        several = "; of several classes, take one of them: statistics[..., c]" if x.ndim == 3 else ""
        raise ScoreError(f"correlations are of at least two items and two agents; got shape {x.shape}{several}")
    centred = x - x.mean(axis=0)
    size = np.linalg.norm(centred, axis=0)
    scaled = centred / np.where(size > 0, size, 1.0)
    K = x.shape[1]
    whole = float(np.sum(scaled.sum(axis=1) ** 2) - np.sum(scaled**2))
    return float(whole / (K * (K - 1)))
