"""Exact bounds from held-out items: how often an agent errs, and whether deciding together is better than something."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from collegium.errors import AssumptionError
from collegium.theory.bound import Bound, Doubles, probability, upper

Mask = NDArray[np.bool_]

INDEPENDENT_ITEMS = (
    "held-out items are drawn independently from what will be decided about, and nothing was fitted or chosen by them"
)


def held_out(wrong: ArrayLike, confidence: float = 0.95, *, axis: int = 0, together: bool = False) -> Bound:
    r"""An upper bound on the error of everything that was tried on held-out items: shape (…) from `wrong` (n, …).

    $$ \sup \{p : P(\mathrm{Bin}(n, p) \le m) > 1 - \text{confidence}\} $$

    where m of n items were decided wrongly: the bound of Clopper and Pearson [clopper1934]. It holds for every law of
    scores, every dependence of views, every rule, network and loss of messages, for each entry with the confidence
    asked for, or with `together=True` for all at once. Nothing but the items is assumed: choose it first.

    wrong: whether each item was decided wrongly. axis: that of the items; 1 for `run.wrong(y)`, which has the rounds
    first and the agents last.

    parts: `errors`, the measured rates.

    >>> wrong = np.arange(200) < 20
    >>> round(float(held_out(wrong).value), 3)  # 10 % measured
    0.142
    """
    x = _mask(wrong, "wrong", axis)
    n, m = len(x), x.sum(axis=0)
    tries = m.size if together else 1
    value = binomial_upper(m, n, 1 - (1 - confidence_level(confidence)) / tries)
    return upper(value, (INDEPENDENT_ITEMS,), errors=np.asarray(m / n))


def binomial_upper(count: ArrayLike, n: ArrayLike, confidence: ArrayLike) -> Doubles:
    """The largest probability of an event that happened `count` times in n trials, with this confidence.

    >>> round(float(binomial_upper(0, 59, 0.95)), 2)  # the rule of three
    0.05
    """
    m, N = np.asarray(count, np.float64), np.asarray(n, np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(m >= N, 1.0, special.betaincinv(m + 1, np.maximum(N - m, 1), confidence)))


def binomial_lower(count: ArrayLike, n: ArrayLike, confidence: ArrayLike) -> Doubles:
    """The smallest probability of an event that happened `count` times in n trials, with this confidence."""
    m, N = np.asarray(count, np.float64), np.asarray(n, np.float64)
    return np.asarray(1 - binomial_upper(N - m, N, confidence))


class Comparison(NamedTuple):
    """One way of deciding against another on the same items; arrays where several were compared."""

    better: NDArray[np.intp]
    """Items about which only the first is right."""
    worse: NDArray[np.intp]
    """Items about which only the second is right."""
    gain: Doubles
    """The error of the second less that of the first, as measured."""
    gain_at_least: Doubles
    """What the gain is at least, with the confidence asked for."""
    gain_at_most: Doubles
    """What it is at most; both at once with the confidence asked for."""
    confidence: Doubles
    """With which the first is better: 1 less the p-value of the exact test of signs [mcnemar1947]."""


def paired(wrong: ArrayLike, other: ArrayLike, confidence: float = 0.95, *, axis: int = 0) -> Comparison:
    """Whether one way of deciding errs less than another, from the same held-out items; shapes (n, …), broadcast.

    Only the items about which they differ count. If neither is better, each of these falls to either side with
    probability one half, so that the test is exact for any number of items. The interval of the gain is the difference
    of two Clopper-Pearson intervals of half the risk each: exact too, and a little wide.

    >>> first, second = np.arange(100) < 10, np.arange(100) < 25
    >>> found = paired(first, second)
    >>> int(found.better), int(found.worse), round(float(found.gain), 2), bool(found.confidence > 0.9999)
    (15, 0, 0.15, True)
    """
    a, b = _mask(wrong, "wrong", axis), _mask(other, "other", axis)
    try:
        a, b = np.broadcast_arrays(a, b)
    except ValueError:
        raise AssumptionError(
            f"both must be of the same items, in the same order; got shapes {a.shape} and {b.shape}"
        ) from None
    n, better, worse = len(a), (~a & b).sum(axis=0), (a & ~b).sum(axis=0)
    each = 1 - (1 - confidence_level(confidence)) / 4  # two sides of two probabilities
    low = binomial_lower(better, n, each) - binomial_upper(worse, n, each)
    high = binomial_upper(better, n, each) - binomial_lower(worse, n, each)
    # P(Bin(better + worse, 1/2) ≥ better), which is 1 where they never differ
    p = np.where(better > 0, special.betainc(np.maximum(better, 1), worse + 1, 0.5), 1.0)
    return Comparison(
        np.asarray(better), np.asarray(worse), np.asarray((better - worse) / n), low, high, np.asarray(1 - p)
    )


def confidence_level(confidence: float) -> float:
    """One confidence for all, between 0 and 1."""
    level = probability(confidence, "the confidence")
    if level.ndim:
        raise AssumptionError(f"there is one confidence for all; got an array of shape {level.shape}")
    return float(level)


def _mask(wrong: ArrayLike, name: str, axis: int) -> Mask:
    """Booleans, items first."""
    x = np.asarray(wrong)
    if not -x.ndim <= axis < x.ndim:
        raise AssumptionError(f"{name} has no axis {axis}: its shape is {x.shape}")
    x = np.moveaxis(x, axis, 0)
    if len(x) == 0:
        raise AssumptionError(f"{name} says of each held-out item whether it was decided wrongly, and there are none")
    if x.dtype != bool:
        if x.dtype.kind not in "iuf" or not np.isin(x, (0, 1)).all():
            raise AssumptionError(f"{name} must be True or False for each item; error rates do not say which items")
        x = x.astype(bool)
    return x
