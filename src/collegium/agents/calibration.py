"""What happens to scores before they enter the protocol: temperature, bounding, centering."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit

from collegium.agents.base import Doubles
from collegium.errors import ScoreError
from collegium.labels import to_signs
from collegium.scores import check_scores

COLDEST, HOTTEST = 1e-2, 1e2
"""Where no finite temperature is best (all validation items right, or no better than chance), the nearer of these."""


def temperature(scores: ArrayLike, y: ArrayLike) -> float:
    """The temperature T that minimises the cross-entropy of scores / T on a validation set.

    (1/N) Σ log(1 + exp(-γ f / T)) over log T: it is convex in 1/T, so its derivative changes sign at most once
    and a bracketed root is the minimum [guo2017; hu2026, App. H.2].

    >>> round(temperature([2.0, 2.0, 2.0, -2.0], [1, 1, 1, 1]), 6)  # three in four: log-odds log 3
    1.820478
    """
    f = check_scores(np.reshape(scores, (-1, 1)) if np.ndim(scores) == 1 else scores, 1)[:, 0]
    if np.ndim(scores) != 1 or len(f) == 0:
        raise ScoreError("a temperature is fitted to the scores of one agent, one per item, of at least one item")
    margins = f * to_signs(y, len(f), classes=(1, -1))

    def slope(log_T: float) -> float:
        return float(np.mean(margins * expit(-margins * np.exp(-log_T))))

    low, high = np.log(COLDEST), np.log(HOTTEST)
    # The cross-entropy falls with 1/T where this is positive: hotter is worse.
    if slope(low) >= 0:
        return COLDEST
    if slope(high) <= 0:
        return HOTTEST
    return float(np.exp(brentq(slope, low, high, xtol=1e-13)))


def temperatures(scores: Doubles, y: ArrayLike) -> Doubles:
    """One temperature per column of scores (n, K), shape (K,)."""
    return np.array([temperature(column, y) for column in scores.T])


def bounded(scores: NDArray[np.float64]) -> Doubles:
    """Scores in (-1, 1): tanh(f / 2), twice the posterior probability of +1 minus one."""
    return np.tanh(scores / 2)


def uncentred(scores: Doubles, T: Doubles | None, bound: bool) -> Doubles:
    """Scores (n, K) divided by the temperatures, if given, then bounded, if asked for."""
    scaled = scores if T is None else scores / T
    return bounded(scaled) if bound else scaled
