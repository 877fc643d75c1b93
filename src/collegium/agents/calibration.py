"""The temperature of an agent: what its scores are divided by so that they are log-odds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit

from collegium._util.labels import to_signs
from collegium._util.scores import check_scores
from collegium.agents.base import Doubles
from collegium.errors import ScoreError

HOTTEST = 100.0
"""The temperature, in units of the mean |score|, of an agent that is no better than chance: it is all but silent."""


def temperature(scores: ArrayLike, y: ArrayLike) -> float:
    """The temperature T that minimises the cross-entropy of scores / T on a validation set.

    (1/N) Σ log(1 + exp(-γ f / T)) over log T: it is convex in 1/T, so its derivative changes sign at most once
    and a bracketed root is the minimum [guo2017; hu2026, App. H.2].

    Two kinds of validation sets have no finite minimum. If every item is right, ever colder would be ever better; then
    each item counts as right with probability (N+1)/(N+2), the rule of succession, instead of 1. If the mean of γ f is
    not positive, ever hotter would be ever better, and T is `HOTTEST` times the mean |f|.

    >>> round(temperature([2.0, 2.0, 2.0, -2.0], [1, 1, 1, 1]), 6)  # three in four: log-odds log 3
    1.820478
    >>> round(temperature([2.0, 2.0, 2.0], [1, 1, 1]), 6)  # all of three: four in five, log-odds log 4
    1.442695
    """
    f = check_scores(np.reshape(scores, (-1, 1)) if np.ndim(scores) == 1 else scores, 1)[:, 0]
    if np.ndim(scores) != 1 or len(f) == 0:
        raise ScoreError("a temperature is fitted to the scores of one agent, one per item, of at least one item")
    size = float(np.abs(f).mean())
    if size == 0:
        return 1.0
    margins = f * to_signs(y, len(f), classes=(1, -1)) / size
    if margins.mean() <= 0:
        return HOTTEST * size
    right = 1.0 if margins.min() < 0 else (len(f) + 1) / (len(f) + 2)

    def slope(log_T: float) -> float:
        """Minus the derivative by 1/T: positive where a colder T is better."""
        return float(np.mean(margins * (right - expit(margins * np.exp(-log_T)))))

    low, high = -1.0, 1.0
    while slope(low) > 0 and low > -512:
        low *= 2
    while slope(high) < 0:
        high *= 2
    return size * float(np.exp(brentq(slope, low, high, xtol=1e-13)))


def temperatures(scores: Doubles, y: ArrayLike) -> Doubles:
    """One temperature per column of scores (n, K), shape (K,)."""
    return np.array([temperature(column, y) for column in scores.T])
