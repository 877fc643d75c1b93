"""Prediction sets and abstention: from an agent's own statistics of held-out items, without a centre."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.labels import to_entries
from collegium._util.measures import behind
from collegium.errors import AssumptionError
from collegium.theory.bound import Doubles, numbers, probability
from collegium.theory.held_out import INDEPENDENT_ITEMS, binomial_upper

Mask = NDArray[np.bool_]

EXCHANGEABLE = "held-out and new items are exchangeable, and nothing was fitted or chosen by the held-out ones"
SHARES = np.arange(1, 11) / 10
"""The shares of held-out items among which abstention chooses how many to decide."""


@dataclass(frozen=True, eq=False)
class Conformal:
    """What agents remember of held-out items, and the prediction sets that follow [vovk2005].

    Every agent keeps numbers of its own: after the same conversation about a new item it compares what it has there
    with its own threshold. Nobody collects anything.
    """

    behind: Doubles
    """How far each class was behind the best of the others for each held-out item, shape (n, …, C); negative where it
    led."""
    places: NDArray[np.intp]
    """The true class of each item, shape (n,); of two, 0 stands for +1."""
    per_class: bool = False
    """Whether each class has a threshold of its own."""

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        return int(self.behind.shape[-1])

    @property
    def scores(self) -> Doubles:
        """How far the true class was behind, shape (n, …)."""
        place = self.places.reshape(-1, *[1] * (self.behind.ndim - 1))
        return np.asarray(np.take_along_axis(self.behind, place, axis=-1)[..., 0])

    def threshold(self, alpha: float) -> Doubles:
        r"""How far behind a class may be and still belong to the set: shape (…), or (…, C) with `per_class`.

        The ⌈(n+1)(1-α)⌉-th smallest of the scores, ∞ where there are too few items for this α.
        """
        a = float(probability(alpha, "α"))
        scores = self.scores
        if not self.per_class:
            return _quantile(scores, a)
        by_class = [_quantile(scores[self.places == c], a) for c in range(self.classes)]
        return np.stack(by_class, axis=-1)

    def sets(self, statistics: ArrayLike, alpha: float) -> Mask:
        """Which classes belong to the set of each new item, shape (m, …, C), from statistics (m, …) or (m, …, C).

        Of two classes the first is +1 and the second -1. A set with one class is a decision; with several, the item is
        between them; an empty one is unlike the held-out items of any class, which happens where α exceeds the error.
        """
        x = _entries(numbers(statistics, "statistics"), self.classes, self.behind.ndim - 1)
        if x.shape[1:] != self.behind.shape[1:]:
            raise AssumptionError(
                f"these statistics are of {x.shape[1:-1]} agents, the held-out ones of {self.behind.shape[1:-1]}"
            )
        q = self.threshold(alpha)
        return np.asarray(behind(x) <= (q if self.per_class else q[..., None]))

    def coverage(self, alpha: float) -> tuple[float, float]:
        """The probability that a set has the true class, where no two scores are equal: of the class that has least
        and of the one that has most of it, which differ with `per_class` alone."""
        counts = np.bincount(self.places, minlength=self.classes) if self.per_class else np.array([len(self.behind)])
        shares = np.minimum(_rank(counts, float(probability(alpha, "α"))) / (counts + 1), 1.0)
        return float(shares.min()), float(shares.max())


def conformal(
    statistics: ArrayLike, y: ArrayLike, *, classes: Sequence[Any] | int = 2, per_class: bool = False
) -> Conformal:
    r"""Prediction sets with coverage 1 - α, from what agents have after conversations about held-out items.

    $$ P(y \in S(x)) \ge 1 - \alpha, \qquad S(x) = \{c : \max_{j \ne c} \lambda_j(x) - \lambda_c(x) \le q\} $$

    where q is the ⌈(n+1)(1-α)⌉-th smallest of the same numbers for the true classes of n held-out items, and the
    probability is at most 1 - α + 1/(n+1) where no two of them are equal. Nothing is assumed but exchangeable items:
    any law, any dependence of views, any rule, network and loss of messages. `per_class=True` takes the quantile for
    each class by itself: then the coverage holds for each class, and needs about 1/α items of each.

    statistics: shape (n, …) of two classes, such as (n,) or (n, K) of K agents, or (n, …, C) of several. y: the labels.
    classes: what these are called, in the order of the entries, (positive, negative) of two; or how many there are.

    >>> rng = np.random.default_rng(0)
    >>> y = np.where(rng.random(999) < 0.5, 1, -1)
    >>> found = conformal(y + rng.normal(size=999), y)
    >>> found.sets([2.0, 0.1, -2.0], alpha=0.05).tolist()  # +1, either, -1
    [[True, False], [True, True], [False, True]]
    """
    named = None if isinstance(classes, int) else classes
    C = classes if isinstance(classes, int) else len(classes)
    if C < 2:
        raise AssumptionError(f"a set is of two classes or more; got {C}")
    x = numbers(statistics, "statistics")
    x = _entries(x, C, x.ndim if C == 2 else x.ndim - 1)
    n = len(x)
    places = to_entries(y, n, C, named)
    if n == 0:
        raise AssumptionError("prediction sets need held-out items, and there are none")
    return Conformal(behind(x), places, per_class)


@dataclass(frozen=True, eq=False)
class Abstention:
    """When to decide and when to say "I do not know"."""

    threshold: Doubles
    """Decide where the lead over the second class is larger; ∞: never, the held-out items show no way."""
    share: Doubles
    """Of held-out items that are decided."""
    bound: Doubles
    """What the error among decided items is at most; NaN where none is decided."""
    error: float
    """What was asked for."""
    confidence: float
    assumptions: tuple[str, ...] = (INDEPENDENT_ITEMS,)

    def decides(self, lead: ArrayLike) -> Mask:
        """Whether to decide: of the leads (m, …) of new items."""
        return np.asarray(np.asarray(lead) > self.threshold)


def abstention(lead: ArrayLike, wrong: ArrayLike, error: float = 0.05, confidence: float = 0.95) -> Abstention:
    """A threshold on the lead such that the error among decided items is at most `error`, with this confidence.

    lead: how far the chosen class leads the second, shape (n, …), of held-out items; |statistic| of two classes.
    wrong: whether it is not the true one.

    The threshold is one of ten, below which a tenth, two tenths, … or none of the held-out items lie. Given a threshold
    that is an item's own lead, the items above it are independent draws of those that would be decided, so Clopper and
    Pearson's bound of their error is exact; it is asked of each of the ten with a tenth of the risk, and the one that
    decides most is taken [geifman2017]. Any law, any dependence of views, any rule.

    >>> rng = np.random.default_rng(0)
    >>> y = np.where(rng.random(2000) < 0.5, 1, -1)
    >>> x = y + rng.normal(size=2000)  # 16 % wrong if all are decided
    >>> found = abstention(abs(x), x * y <= 0, error=0.05)
    >>> bool(found.bound < 0.05), round(float(found.share), 1)
    (True, 0.5)
    """
    x, bad = numbers(lead, "lead"), np.asarray(wrong, bool)
    if x.shape != bad.shape or x.ndim < 1 or not len(x):
        raise AssumptionError(f"lead and wrong are of the same items, at least one; got {x.shape} and {bad.shape}")
    target, level = (float(probability(v, name)) for v, name in ((error, "the error"), (confidence, "the confidence")))
    n = len(x)
    each = 1 - (1 - level) / len(SHARES)
    order = np.sort(x, axis=0)
    threshold = np.full(x.shape[1:], np.inf)
    share, bound = np.zeros(x.shape[1:]), np.full(x.shape[1:], np.nan)
    for part in SHARES:  # the last that passes decides most
        left = n - int(part * n + 1e-9)
        at = order[left - 1] if left else np.full(x.shape[1:], -np.inf)
        decided = x > at
        count = decided.sum(axis=0)
        most = np.where(count > 0, binomial_upper((bad & decided).sum(axis=0), np.maximum(count, 1), each), np.inf)
        passes = most <= target
        threshold = np.where(passes, at, threshold)
        share = np.where(passes, count / n, share)
        bound = np.where(passes, most, bound)
    return Abstention(threshold, share, bound, target, level)


def _entries(x: Doubles, C: int, axes: int) -> Doubles:
    """Statistics with an entry for each class, (n, …, C); of one number f, the entries f/2 and -f/2."""
    if C == 2 and x.ndim == axes:
        return np.stack([x / 2, -x / 2], axis=-1)
    if x.ndim != axes + 1 or x.shape[-1] != C:
        raise AssumptionError(f"statistics of {C} classes have {C} entries in the last axis; got shape {x.shape}")
    return x


def _quantile(scores: Doubles, alpha: float) -> Doubles:
    """The ⌈(n+1)(1-α)⌉-th smallest of scores (n, …)."""
    n = len(scores)
    rank = _rank(n, alpha)
    if rank > n:
        return np.full(scores.shape[1:], np.inf)
    return np.asarray(np.sort(scores, axis=0)[rank - 1])


def _rank(n: Any, alpha: float) -> Any:
    """⌈(n+1)(1-α)⌉; 0.9 · 10 is 9, whatever the last bit says."""
    return np.maximum(np.ceil((n + 1) * (1 - alpha) - 1e-9), 1).astype(int)
