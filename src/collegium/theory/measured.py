"""The paper's bounds with measured quantities: the statistic's own mean and variance instead of δ, β and τ.

Where the paper bounds the spread of an agent's statistic after t rounds by τβ²Σ[A^t]², these measure it on held-out
items, for every agent and round by itself. So nothing is lost to incomplete mixing, to a β that few scores come near,
or to a τ that nobody knows; and they hold for every rule, since only what comes out is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from collegium._util.labels import to_entries
from collegium.errors import AssumptionError
from collegium.theory.bound import Bound, Doubles, numbers, positive, upper
from collegium.theory.held_out import INDEPENDENT_ITEMS, confidence_level
from collegium.theory.margins import leads_of

RANGE = "the lead over a rival lies in a known interval of width 2β: |f| ≤ β for every agent (Assumption 2)"
INDEPENDENT_VIEWS = "views are independent given the class, and the statistic is a weighted sum of the agents' scores"
NORMAL = "the statistic is normally distributed given the class; of many items, sub-Gaussian with its own variance"

_Tail = Callable[[Doubles, Doubles], Doubles]


def empirical_bernstein(
    statistics: ArrayLike,
    y: ArrayLike,
    beta: ArrayLike,
    confidence: float = 0.95,
    *,
    weights: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
) -> Bound:
    r"""An upper bound on every agent's error in every round, from measured means and variances of bounded statistics.

    $$ P(\mathcal M_{k,t}) \le \max_y \sum_{j \ne y} \frac{v}{v + m^2}, \qquad
       m = \bar x - \sqrt{\frac{2 s^2 L}{n}} - \frac{7 \cdot 2\beta L}{3 (n - 1)}, \qquad
       \sqrt v = s + 2 \beta \sqrt{\frac{2 L}{n - 1}} $$

    where $\bar x$ and $s^2$ are mean and variance of the lead of class y over class j on n held-out items of class y,
    and L = log(4 C (C-1) / (1 - confidence)), so that all means and variances hold at once. m and v are the
    empirical Bernstein inequality and its companion for the variance [maurer2009]; $v / (v + m^2)$ is Cantelli's
    inequality. Nothing is assumed of the dependence of views: it is in the variance. Where m is not positive: NaN.

    With `weights`, where views are independent given the class, Bernstein's inequality holds as well, and the smaller
    of the two is taken:

    $$ \exp\Bigl\{-\frac{m^2}{2 (v + 2 \beta \max_\ell w_{\ell k}\, m / 3)}\Bigr\} $$

    statistics: shape (T, n, K), or (T, n, K, C) of several classes, such as `run.statistics`. y: the labels. beta: the
    leads of an agent's statistic lie in a known interval of width 2β: of bounded scores, β = 1. weights: those of the
    agents' scores in each statistic, shape (T, K, K): the powers of A. classes: what the labels are called, in the
    order of the entries; (positive, negative) of two.

    parts: `m`, `v`, shape (C, C-1, T, K).
    """
    x, groups, C = _leads(statistics, y, classes)
    b = float(positive(beta, "β"))
    if max(float(np.ptp(one, axis=0).max()) for one in groups) > 2 * b * (1 + 1e-9):
        raise AssumptionError(f"leads leave the range: β = {b:g} allows them a width of {2 * b:g}")
    L = np.log(4 * C * (C - 1) / (1 - confidence_level(confidence)))
    n = np.array([len(one) for one in groups]).reshape(-1, 1, 1, 1)
    mean, deviation = _moments(groups)
    m = mean - deviation * np.sqrt(2 * L / n) - 14 * b * L / (3 * (n - 1))
    v = (deviation + 2 * b * np.sqrt(2 * L / (n - 1))) ** 2
    rests: tuple[str, ...] = (INDEPENDENT_ITEMS, RANGE)
    if weights is None:
        return _overtaken(m, v, lambda m, v: v / (v + m**2), rests)
    w = numbers(weights, "weights")
    if w.ndim != 3 or w.shape[0] != x.shape[1] or w.shape[2] != x.shape[2]:
        raise AssumptionError(f"weights must have shape (T, K, K) for statistics of shape (T, n, K); got {w.shape}")
    largest = 2 * b * np.abs(w).max(axis=1)
    rests += (INDEPENDENT_VIEWS,)
    return _overtaken(
        m, v, lambda m, v: np.minimum(v / (v + m**2), np.exp(-(m**2) / (2 * (v + largest * m / 3)))), rests
    )


def sub_gaussian(
    statistics: ArrayLike, y: ArrayLike, confidence: float = 0.95, *, classes: Sequence[Any] | None = None
) -> Bound:
    r"""An upper bound on every agent's error in every round, with the measured variance in place of τβ²Σw².

    $$ P(\mathcal M_{k,t}) \le \max_y \sum_{j \ne y} \exp\Bigl\{-\frac{m^2}{2 v}\Bigr\}, \qquad
       m = \bar x - t_{n-1} \frac{s}{\sqrt n}, \qquad v = \frac{(n - 1) s^2}{\chi^2_{n-1}} $$

    where $\bar x$ and $s^2$ are mean and variance of the lead of class y over class j on n held-out items of class y:
    $s^2 = w^\top \hat\Sigma w$ for weights w and the measured covariance of the agents' scores given the class. t and
    χ² are quantiles for a risk of (1 - confidence) / 2C(C-1), so that all means and variances hold at once. It is
    exact where the statistic is normal given the class, which a mean over many agents nearly is, and holds for many
    items where it is sub-Gaussian with its own variance as proxy (uniform and symmetric two-valued laws are, laws with
    long tails are not). Where m is not positive it says nothing: NaN.

    statistics, y, classes: as for `empirical_bernstein`. parts: `m`, `v`, shape (C, C-1, T, K).
    """
    _, groups, C = _leads(statistics, y, classes)
    risk = (1 - confidence_level(confidence)) / (2 * C * (C - 1))
    n = np.array([len(one) for one in groups], np.float64).reshape(-1, 1, 1, 1)
    mean, deviation = _moments(groups)
    m = mean - special.stdtrit(n - 1, 1 - risk) * deviation / np.sqrt(n)
    v = (n - 1) * deviation**2 / special.chdtri(n - 1, 1 - risk)
    return _overtaken(m, v, lambda m, v: np.exp(-(m**2) / (2 * np.maximum(v, 1e-300))), (INDEPENDENT_ITEMS, NORMAL))


def _leads(statistics: ArrayLike, y: ArrayLike, classes: Sequence[Any] | None) -> tuple[Doubles, list[Doubles], int]:
    """Leads of the true class, shape (n, T, K, C-1), and those of the items of each class."""
    x = numbers(statistics, "statistics")
    if x.ndim not in (3, 4):
        raise AssumptionError(f"statistics have shape (T, n, K), or (T, n, K, C) of several classes; got {x.shape}")
    x = np.moveaxis(x[..., None] if x.ndim == 3 else x, 1, 0)
    C = max(x.shape[-1], 2)
    places = to_entries(y, len(x), C, classes)
    counts = np.bincount(places, minlength=C)
    if counts.min() < 2:
        raise AssumptionError(f"variances need at least two items of each class; there are {counts.tolist()}")
    ahead = leads_of(x, places)
    return ahead, [ahead[places == c] for c in range(C)], C


def _moments(groups: list[Doubles]) -> tuple[Doubles, Doubles]:
    """Means and deviations of each class's leads, shape (C, C-1, T, K)."""
    mean = np.stack([np.moveaxis(one.mean(axis=0), -1, 0) for one in groups])
    deviation = np.stack([np.moveaxis(one.std(axis=0, ddof=1), -1, 0) for one in groups])
    return mean, deviation


def _overtaken(m: Doubles, v: Doubles, tail: _Tail, assumptions: tuple[str, ...]) -> Bound:
    """The union over the rivals of each class, for the worst class; NaN where a mean lead may be 0 or less."""
    each = np.where(m > 0, tail(np.maximum(m, 0.0), v), np.nan)
    return upper(each.sum(axis=1).max(axis=0), assumptions, m=m, v=v)
