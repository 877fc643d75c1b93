"""What held-out items say of a network, whatever its rule: exact bounds, comparisons, prediction sets, abstention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from collegium._util.labels import to_entries
from collegium.theory.bound import Doubles, numbers
from collegium.theory.conformal import Abstention, Conformal, abstention, conformal
from collegium.theory.held_out import INDEPENDENT_ITEMS, Comparison, Mask, held_out, paired
from collegium.theory.margins import leads_of
from collegium.theory.measured import NORMAL, sub_gaussian


@dataclass(frozen=True, eq=False)
class Evidence:
    """Bounds that need no margin, no β and no τ.

    where T is the number of rounds, K of agents and C of classes.
    """

    items: int
    confidence: float
    errors: Doubles = field(repr=False)
    """The measured error rates, shape (T+1, K)."""
    at_most: Doubles = field(repr=False)
    """What they are at most in truth, each with this confidence: Clopper and Pearson's bound, shape (T+1, K)."""
    normal: Doubles = field(repr=False)
    """The same for statistics that are normal given the class, for the worst class (`sub_gaussian`); NaN where it says
    nothing."""
    against_alone: Comparison = field(repr=False)
    """Every agent after the last round against itself alone, shape (K,)."""
    against_average: Comparison = field(repr=False)
    """Every agent after the last round against the plain average of all scores, which needs a centre."""
    conformal: Conformal = field(repr=False)
    """Prediction sets of every agent after the last round."""
    lead: Doubles = field(repr=False)
    """How far every agent's class leads the second after the last round, shape (n, K)."""
    wrong: Mask = field(repr=False)
    """Whether it is wrong then, shape (n, K)."""
    assumptions: tuple[str, ...] = (INDEPENDENT_ITEMS,)

    def abstention(self, error: float, confidence: float | None = None) -> Abstention:
        """When each agent decides and when it says "I do not know": at most `error` of its decisions are wrong."""
        return abstention(self.lead, self.wrong, error, self.confidence if confidence is None else confidence)

    def to_dict(self, alpha: float | None = None, error: float | None = None) -> dict[str, Any]:
        """Everything as JSON can hold it; with α the prediction sets, with an error the abstention."""
        found: dict[str, Any] = {
            "items": self.items,
            "confidence": self.confidence,
            "errors": self.errors.tolist(),
            "error_at_most": self.at_most.tolist(),
            "normal_at_most": [[_finite(value) for value in row] for row in self.normal],
            "against_alone": _comparison(self.against_alone),
            "against_average": _comparison(self.against_average),
            "assumptions": list(self.assumptions),
            "normal_assumes": NORMAL,
        }
        if alpha is not None:
            sizes = self.sizes(alpha)
            found["sets"] = {
                "alpha": alpha,
                "coverage": self.conformal.coverage(alpha)[0],
                "threshold": [_finite(value) for value in self.conformal.threshold(alpha)],
                "with_one_class": (sizes == 1).mean(axis=0).tolist(),
                "mean_size": sizes.mean(axis=0).tolist(),
            }
        if error is not None:
            rule = self.abstention(error)
            found["abstention"] = {
                "error": error,
                "threshold": [_finite(value) for value in rule.threshold],
                "share_decided": rule.share.tolist(),
                "error_at_most": [_finite(value) for value in rule.bound],
            }
        return found

    def sizes(self, alpha: float) -> Doubles:
        """How many classes the sets of the held-out items have, shape (n, K)."""
        q = self.conformal.threshold(alpha)
        return np.asarray((self.conformal.behind <= q[..., None]).sum(axis=-1), np.float64)


def evidence(
    statistics: ArrayLike,
    y: ArrayLike,
    confidence: float = 0.95,
    *,
    classes: Sequence[Any] | None = None,
) -> Evidence:
    """What held-out items say of a run: for any rule, any network, any loss of messages, any dependence of views.

    statistics: `run.statistics`, shape (T+1, n, K), or (T+1, n, K, C) of several classes. y: the labels of the items,
    by which nothing was fitted or chosen. classes: what they are called, in the order of the entries; (positive,
    negative) of two.

    >>> from collegium import collaborate, policy, topology
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(rng.random(200) < 0.5, 1, -1)
    >>> run = collaborate(0.5 * y[:, None] + rng.normal(size=(200, 9)), policy.metropolis(topology.grid(3, 3)), 20)
    >>> found = evidence(run.statistics, y)
    >>> bool(found.at_most[-1].max() < 0.15), bool(found.against_alone.confidence.min() > 0.99)
    (True, True)
    """
    x = numbers(statistics, "statistics")
    x = x[..., None] if x.ndim == 3 else x
    n, C = x.shape[1], max(x.shape[3], 2)
    places = to_entries(y, n, C, classes)
    wrong = np.stack([~(leads_of(page, places) > 0).all(axis=-1) for page in x])
    average = ~(leads_of(x[0].mean(axis=1, keepdims=True), places) > 0).all(axis=-1)
    bound = held_out(wrong, confidence, axis=1)
    page = x[..., 0] if C == 2 else x
    inside: Any = (1, -1) if C == 2 else range(C)
    labels = np.where(places == 0, 1, -1) if C == 2 else places
    normal = np.full(bound.value.shape, np.nan)
    if np.bincount(places, minlength=C).min() > 1:
        normal = sub_gaussian(page, labels, confidence, classes=inside).value
    sets = conformal(page[-1], labels, classes=inside)
    return Evidence(
        items=n, confidence=confidence, errors=bound.parts["errors"], at_most=bound.value, normal=normal,
        against_alone=paired(wrong[-1], wrong[0], confidence), against_average=paired(wrong[-1], average, confidence),
        conformal=sets, lead=-sets.behind.min(axis=-1), wrong=wrong[-1],
    )  # fmt: skip


def _comparison(one: Comparison) -> dict[str, Any]:
    return {name: getattr(one, name).tolist() for name in ("gain", "gain_at_least", "gain_at_most", "confidence")}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
