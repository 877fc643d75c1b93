"""What liars and privacy cost: breakdown points, a guarantee with f liars, the variance of noise at the start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.labels import to_signs
from collegium.errors import AssumptionError, ScoreError
from collegium.protocol.combine import Combine
from collegium.theory.bound import numbers


def breakdown_point(combine: Combine, m: int) -> float:
    """The least share of liars among m values that can move a combine's result as far as they like; 1 if none can.

    The agent's own value is one of the m and no lie. `combine.bears(m)` may be smaller: so many liars leave what the
    combine promises, which is more than that nobody is moved without limit.

    >>> from collegium.protocol.combine import Median, TrimmedMean, WeightedMean
    >>> breakdown_point(Median(), 11), breakdown_point(TrimmedMean(2), 10), breakdown_point(WeightedMean(), 10)
    (0.5454545454545454, 0.3, 0.1)
    >>> breakdown_point(TrimmedMean(2), 4)  # too few: an agent keeps its own
    1.0
    """
    m = whole_number(m, "the number of values", AssumptionError, at_least=1)
    if not isinstance(combine, Combine):
        raise AssumptionError(f"a breakdown point is that of a combine such as Median(), got {combine!r:.60}")
    return combine.breaks_at(m) / m


def trimmed_guarantee(
    scores: ArrayLike, y: ArrayLike, f: int, classes: Sequence[Any] | None = None
) -> NDArray[np.bool_]:
    r"""For which items (n,) no f liars can make the trimmed mean of all scores wrong, whatever they say.

    scores: those of the honest, shape (n, h), of two classes; the trimmed mean is of h + f values, without the f
        smallest and the f largest. y, classes: the true labels, as for `Run.errors`.

    Liars can do no worse than all say the extreme on the wrong side. The f largest on that side that are dropped are
    then theirs, the f smallest are the best honest ones, and what is left is the mean of the h - f honest scores with
    the smallest margins:

    $$ \sum_{i=1}^{h-f} (y\lambda)_{(i)} > 0 $$

    where $(y\lambda)_{(1)} \le \dots$ are the honest margins, ascending. It is also necessary: liars that know the
    label reach it. For bounded scores see `liar_margin`.
    """
    values = numbers(scores, "scores")
    if values.ndim != 2:
        raise ScoreError(f"this is for two classes, honest scores of shape (items, agents); got {values.shape}")
    n, h = values.shape
    f = whole_number(f, "f, the number of liars,", AssumptionError)
    if h <= f:
        raise AssumptionError(f"a trimmed mean of {h + f} values bears {f} liars only if more than {f} are honest")
    margins = np.sort(values * to_signs(y, n, classes)[:, None], axis=1)
    return np.asarray(margins[:, : h - f].sum(axis=1) > 0)


def liar_margin(C: float, h: int, f: int) -> float:
    r"""How large the honest agents' mean margin must be so that f liars cannot make the trimmed mean wrong.

    For scores within ±C: the f best honest margins, which the trimming drops, are at most C each, so that
    $\mu > C f / h$ suffices for $\sum_{i \le h-f} (y\lambda)_{(i)} \ge h\mu - fC > 0$.

    >>> liar_margin(1.0, h=10, f=2)
    0.2
    """
    C = real_number(C, "C, the bound of scores,", AssumptionError, above=0)
    h = whole_number(h, "h, the number of honest agents,", AssumptionError, at_least=1)
    f = whole_number(f, "f, the number of liars,", AssumptionError)
    if h <= f:
        raise AssumptionError(f"{h} honest agents cannot outweigh {f} liars")
    return C * f / h


def laplace_variance(epsilon: float, C: float, K: int) -> float:
    r"""What `LaplaceOnce(epsilon, C)` adds to the variance of the plain average of K: $8C^2/(\varepsilon^2 K)$."""
    epsilon = real_number(epsilon, "epsilon", AssumptionError, above=0)
    C = real_number(C, "C, the bound of scores,", AssumptionError, above=0)
    return 8 * C**2 / (epsilon**2 * whole_number(K, "the number of agents", AssumptionError, at_least=1))


def laplace_error(
    averages: ArrayLike, y: ArrayLike, epsilon: float, C: float, K: int, classes: Sequence[Any] | None = None
) -> float:
    r"""The expected error with noise at the start, the mean of K Laplace variables taken for normal.

    averages: the plain averages without noise, shape (n,): $\frac1n \sum_i \Phi(-y_i \lambda_i / \sigma)$.
    y, classes: the true labels, as for `Run.errors`.
    """
    values = numbers(averages, "averages")
    if values.ndim != 1 or not len(values):
        raise ScoreError(f"this is for two classes, one average an item and at least one; got shape {values.shape}")
    sigma = math.sqrt(laplace_variance(epsilon, C, K))
    margins = values * to_signs(y, len(values), classes)
    return float(np.mean([0.5 * math.erfc(one / sigma / math.sqrt(2)) for one in margins.tolist()]))
