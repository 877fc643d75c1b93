"""The temperature of an agent: what its scores are divided by so that they are log-odds, or log-probabilities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_softmax, softmax

from collegium._util.labels import to_places, to_signs
from collegium._util.scores import check_scores
from collegium.agents.base import Doubles
from collegium.errors import ScoreError

HOTTEST = 100.0
"""The temperature, in units of the mean |score|, of an agent that is no better than chance: it is all but silent."""


def temperature(scores: ArrayLike, y: ArrayLike) -> float:
    r"""The temperature T that minimises the cross-entropy of scores / T on a validation set.

    (1/N) Σ log(1 + exp(-γ f / T)) over log T: it is convex in 1/T, so its derivative changes sign at most once
    and a bracketed root is the minimum [guo2017; hu2026, App. H.2]. Scores of C > 2 classes have shape (n, C), their
    labels are places 0 … C-1, and the cross-entropy is that of softmax(f / T), equally convex.

    Two kinds of validation sets have no finite minimum. If every item is right, ever colder would be ever better; then
    each item counts as right with probability (N+1)/(N+2), the rule of succession, instead of 1. If the mean of γ f
    (the mean score of the true class) is not positive, ever hotter would be ever better, and T is `HOTTEST` times the
    mean |f| (the mean spread between the largest and the smallest).

    >>> round(temperature([2.0, 2.0, 2.0, -2.0], [1, 1, 1, 1]), 6)  # three in four: log-odds log 3
    1.820478
    >>> round(temperature([2.0, 2.0, 2.0], [1, 1, 1]), 6)  # all of three: four in five, log-odds log 4
    1.442695
    >>> round(temperature([[2.0, -1.0, -1.0]] * 4, [0, 0, 0, 1]), 6)  # three in four: log-odds log 6 to each rival
    1.674332
    """
    if np.ndim(scores) == 2:
        f = np.asarray(scores, np.float64)
        return class_temperature(f, to_places(y, *f.shape))
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

    return size * _root(slope)


def class_temperature(f: Doubles, places: NDArray[np.intp], offset: ArrayLike = 0.0) -> float:
    """The temperature of scores (n, C): the T that minimises the cross-entropy of softmax(f / T + offset).

    f: scores of one agent, of two classes or more. places: which class each item is of.
    offset: log-probabilities of the classes before anything is seen, shape (C,), if the scores leave them out.
    """
    n, C = f.shape
    if n == 0 or C < 2 or not np.isfinite(f).all():
        raise ScoreError(f"a temperature is fitted to finite scores (items, classes) of at least one; got {f.shape}")
    size = float((f.max(axis=1) - f.min(axis=1)).mean())
    if size == 0:
        return 1.0
    g = (f - f.mean(axis=1, keepdims=True)) / size
    own = g[np.arange(n), places]
    if np.mean(own - (softmax(np.broadcast_to(offset, (C,))) * g).sum(axis=1)) <= 0:
        return HOTTEST * size
    right = 1.0 if (own < g.max(axis=1)).any() else (n + 1) / (n + 2)
    target = right * own - (1 - right) * own / (C - 1)  # the others sum to minus the own

    def slope(log_T: float) -> float:
        p = softmax(g * np.exp(-log_T) + offset, axis=1)
        return float(np.mean(target - (p * g).sum(axis=1)))

    return size * _root(slope)


def temperatures(scores: Doubles, y: ArrayLike) -> Doubles:
    """One temperature per agent of scores (n, K) or (n, K, C), shape (K,)."""
    return np.array([temperature(scores[:, k], y) for k in range(scores.shape[1])])


def vector_scaling(f: Doubles, places: NDArray[np.intp]) -> tuple[Doubles, Doubles]:
    """A temperature and a shift for each class, shapes (C,): softmax(f / T + b) of scores (n, C) [guo2017].

    It minimises the sum of the cross-entropies and ½ Σ (size / T_c - size / T)² + ½ Σ b_c², a pull as of an item or so
    towards the one temperature T of all classes and no shift, without which there is no minimum where a class is always
    right. `size` is the mean spread of the scores.
    """
    n, C = f.shape
    size = float((f.max(axis=1) - f.min(axis=1)).mean()) or 1.0
    g = f / size

    def loss(parameters: Doubles) -> tuple[float, Doubles]:
        w, b = parameters[:C], parameters[C:]
        z = g * w + b
        slack = softmax(z, axis=1)
        slack[np.arange(n), places] -= 1
        pull = parameters - start
        value = -log_softmax(z, axis=1)[np.arange(n), places].sum() + 0.5 * (pull**2).sum()
        return float(value), np.concatenate([(slack * g).sum(axis=0), slack.sum(axis=0)]) + pull

    start = np.concatenate([np.full(C, size / class_temperature(f, places)), np.zeros(C)])
    limits = [(1e-3, None)] * C + [(None, None)] * C
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options={"ftol": 1e-12, "gtol": 1e-8})
    w, b = found.x[:C], found.x[C:]
    return size / w, b - b.mean()


def pool_probabilities(pooled: Doubles, T: float, *, bounded: bool) -> Doubles:
    """Probabilities (n, C) of pooled statistics (n,), of two classes, or (n, C): log-odds or log-probabilities at
    temperature T, or, if `bounded`, what probabilities differ by."""
    if pooled.ndim == 1:
        second = np.clip((1 + pooled) / 2, 0, 1) if bounded else expit(pooled / T)
        return np.column_stack([1 - second, second])
    if not bounded:
        return np.asarray(softmax(pooled / T, axis=1))
    p = np.clip(pooled + 1 / pooled.shape[1], 0, 1)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def cross_entropies(z: Doubles, places: NDArray[np.intp]) -> Doubles:
    """Minus the log-probability of the true class, shape (n,), of log-probabilities (n, C) up to an offset."""
    return np.asarray(-log_softmax(z, axis=1)[np.arange(len(z)), places])


def _root(slope: Callable[[float], float]) -> float:
    low, high = -1.0, 1.0
    while slope(low) > 0 and low > -512:
        low *= 2
    while slope(high) < 0:
        high *= 2
    return float(np.exp(brentq(slope, low, high, xtol=1e-13)))
