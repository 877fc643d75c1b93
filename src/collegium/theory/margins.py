r"""Pairwise margins: how far the true class leads each rival on average, estimated from held-out scores.

$$ \mu_{yj} = \mathbb E^{(y)}\Bigl[\sum_k \pi_k (c_{k,y} - c_{k,j})\Bigr], \qquad \delta < \min_{y \ne j} \mu_{yj} $$

where c_{k,y} is the entry of class y in agent k's statistic. Two classes are one number f = c_{+1} - c_{-1}: their
pairwise margins are the paper's μ⁺ and -μ⁻. The paper's arguments are about such differences, one rival at a time, and
an error is to be overtaken by one of C - 1 rivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.labels import to_entries, to_places
from collegium._util.margins import rival_margins, widest_difference
from collegium._util.measures import Interval, mean_interval
from collegium._util.scores import check_scores_of_classes
from collegium.errors import AssumptionError
from collegium.policy import Policy
from collegium.theory.bound import Doubles, numbers, positive, primitive, probability, several

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Margins:
    """Every class's lead over every rival, with intervals that hold all at once."""

    means: Doubles
    """[y, j]: the mean lead of class y over class j on items of class y, shape (C, C); NaN for y = j."""
    halves: Doubles
    """Half-widths of their intervals, shape (C, C)."""
    items: tuple[int, ...]
    """How many items there were of each class."""

    @property
    def lower(self) -> Doubles:
        """What each mean is at least, shape (C, C); all C(C-1) at once with the confidence asked for."""
        return self.means - self.halves

    @property
    def delta(self) -> float:
        """The margin δ: the smallest of them."""
        return float(np.nanmin(self.lower))

    @property
    def rivals(self) -> Doubles:
        """`lower` without its diagonal, shape (C, C-1): the rivals of class y are y+1, y+2, …, counted round."""
        y = np.arange(len(self.items))[:, None]
        return self.lower[y, _rivals_of(len(self.items))]


def rivals(statistics: ArrayLike, y: ArrayLike, classes: int) -> Doubles:
    """The statistic of the true class less that of each rival: shape (n, …, C-1) from (n, …, C).

    y: the true classes, 0 … C-1. Column i is the lead over the class i + 1 places after the true one, counted round.

    >>> rivals([[2.0, 1.0, -3.0], [2.0, 1.0, -3.0]], [0, 2], classes=3)
    array([[ 1.,  5.],
           [-5., -4.]])
    """
    x = numbers(statistics, "statistics")
    if x.ndim < 2 or x.shape[-1] != several(classes):
        raise AssumptionError(f"statistics of {classes} classes have {classes} entries each; got shape {x.shape}")
    return rival_margins(x, to_places(y, len(x), classes))


def estimate(
    scores: ArrayLike,
    y: ArrayLike,
    policy: Policy,
    confidence: float = 0.95,
    *,
    beta: float | None = None,
    classes: Sequence[Any] | None = None,
) -> Margins:
    """The margins that held-out scores show, with intervals that hold all at once with this confidence.

    scores: local statistics (n, K), or (n, K, C) of C classes, of items that no agent was trained on. y: their labels.
    beta: half the range of differences, if Hoeffding's intervals are wanted, which hold for any number of items and any
    law; Student's otherwise. classes: what the labels are called, in the order of the entries; (positive, negative) of
    two, whose rows and columns have this order too.

    >>> from collegium import policy, topology
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=500)
    >>> scores = np.eye(3)[y][:, None] - 1 / 3 + 0 * rng.random((500, 4, 1))
    >>> round(estimate(scores, y, policy.uniform(topology.ring(4))).delta, 9)  # no spread: the mean lead itself
    1.0
    """
    p = primitive(policy)
    level = float(probability(confidence, "the confidence"))
    c, places = labelled(scores, y, p.size, classes)
    return of_aggregate(aggregate(c, p.perron), places, level, None if beta is None else float(positive(beta, "β")))


def centering_offset(scores: ArrayLike, y: ArrayLike, policy: Policy, classes: Sequence[Any] | None = None) -> float:
    """ξ: how far the aggregate's center lies, for the worst pair of classes, from the mean over the pair's own items.

    scores: the agents' training scores (N, K, C), before centering; y: their labels. 0 for two classes.
    """
    p = primitive(policy)
    c, places = labelled(scores, y, p.size, classes)
    if c.shape[2] == 1:
        return 0.0
    f = aggregate(c, p.perron)
    C, most = f.shape[1], 0.0
    counts = np.bincount(places, minlength=C)
    sums = np.stack([f[places == y].sum(axis=0) for y in range(C)])
    for a in range(C):
        for b in range(a + 1, C):
            if counts[a] + counts[b] == 0:
                raise AssumptionError(f"there are no items of classes {a} and {b}")
            away = f.mean(axis=0) - (sums[a] + sums[b]) / (counts[a] + counts[b])
            most = max(most, abs(float(away[a] - away[b])))
    return most


# What a certificate is made of


def labelled(scores: ArrayLike, y: ArrayLike, K: int, classes: Sequence[Any] | None) -> tuple[Doubles, Places]:
    """Scores (n, K, d) and the places of their true classes; of two classes +1 has place 0 and -1 has place 1."""
    c = check_scores_of_classes(scores, K)
    return c, to_entries(y, len(c), max(c.shape[2], 2), classes)


def leads_of(x: Doubles, places: Places) -> Doubles:
    """The true class's lead over each rival, shape (n, …, C-1), of statistics (n, …, d); of one number, ± itself."""
    if x.shape[-1] > 1:
        return rival_margins(x, places)
    return x * np.where(places == 0, 1.0, -1.0).reshape(-1, *[1] * (x.ndim - 1))


def aggregate(c: Doubles, pi: Doubles) -> Doubles:
    """Σ π_k c_k, shape (n, d)."""
    if c.shape[2] == 1:
        return np.asarray(c[:, :, 0] @ pi)[:, None]
    return np.asarray(np.einsum("nkc,k->nc", c, pi))


def of_aggregate(x: Doubles, places: Places, level: float, beta: float | None) -> Margins:
    """Margins of aggregate statistics (n, d); Hoeffding's intervals for differences within a range of 2β, if given."""
    C = max(x.shape[1], 2)
    items = tuple(np.bincount(places, minlength=C).tolist())
    if min(items) < 2:
        found = " and ".join(map(str, items)) if C == 2 else f"{min(items)} of class {items.index(min(items))}"
        raise AssumptionError(f"class means need at least two items of each class; there are {found}")
    means, halves = np.full((2, C, C), np.nan)
    # One-sided errors of all C(C-1) leads together have the probability that the two of two classes have.
    each = level + (1 - level) * (1 - 2 / (C * (C - 1)))
    ahead = leads_of(x, places)
    for y, others in enumerate(_rivals_of(C)):
        for i, j in enumerate(others):
            means[y, j], halves[y, j] = _interval(ahead[places == y, i], each, beta)
    return Margins(means, halves, items)


def score_range(c: Doubles, raw: bool) -> float:
    """The smallest β that differences allow: |f| ≤ β for raw ones; for centred ones a range of 2β, and |c| ≤ 2β."""
    largest = widest_difference(c)
    if raw:
        return largest or 1.0
    d = c.shape[2]
    differences = [c] if d == 1 else [c[:, :, a : a + 1] - c[:, :, a + 1 :] for a in range(d - 1)]
    spread = max(float(np.ptp(one, axis=0).max()) for one in differences)
    return max(spread / 2, largest / 2) or 1.0


def _interval(x: Doubles, level: float, beta: float | None) -> Interval:
    """Student's interval of the mean; Hoeffding's for a mean of values within a range of 2β, if β is given."""
    if beta is None:
        return mean_interval(x, level)
    return Interval(float(x.mean()), 2 * beta * float(np.sqrt(np.log(2 / (1 - level)) / (2 * len(x)))))


def _rivals_of(C: int) -> Places:
    """The rivals of each class, shape (C, C-1)."""
    return np.asarray((np.arange(C)[:, None] + np.arange(1, C)) % C)
