"""Claims with a statistical verdict: holds, does not hold, or undecided at this number of repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit
from scipy.stats import friedmanchisquare

from collegium.theory.held_out import binomial_lower, binomial_upper

Verdict = Literal["holds", "does not hold", "undecided", "depends on the graph"]


class Claim(NamedTuple):
    """A statement of the paper and what the numbers say of it."""

    study: str
    claim: str
    verdict: Verdict
    evidence: str


class Finding(NamedTuple):
    """What numbers say of a statement."""

    verdict: Verdict
    numbers: str
    against: float
    """How likely numbers as bad for the statement as these would be if it were just about true: a one-sided p-value."""
    basis: str = ""
    """What the numbers rest on; said once where it is the same for all parts of a claim."""

    @property
    def evidence(self) -> str:
        """In one line, for people."""
        return f"{self.numbers} {self.basis}".rstrip()


_TAIL = 0.025
"""Of Student's 95 % interval, on each side."""
_LISTED = 8
"""Parts of a claim that are listed one by one."""


def above(values: ArrayLike, limit: float = 0.0) -> Finding:
    """Whether the mean of independent values is above a limit: by its two-sided interval over repetitions."""
    return _compared(values, limit, 1)


def below(values: ArrayLike, limit: float = 0.0) -> Finding:
    """Whether the mean is below a limit."""
    return _compared(values, limit, -1)


def _compared(values: ArrayLike, limit: float, sign: int) -> Finding:
    x, mean, error = _mean(values)
    if not np.isfinite(error):
        return _open(x)
    against = _tail(sign * (mean - limit), error, len(x))
    return Finding(_verdict(1 - against, against), _shown(mean, error, len(x)), against, f"over {len(x)} repetitions")


def within(values: ArrayLike, margin: float) -> Finding:
    """Whether the mean is within ±margin of 0: the whole interval inside, the whole outside, or neither."""
    x, mean, error = _mean(values)
    if not np.isfinite(error):
        return _open(x)
    against = _tail(margin - abs(mean), error, len(x))
    basis = f"over {len(x)} repetitions, asked for ±{margin:g}"
    return Finding(_verdict(1 - against, against), _shown(mean, error, len(x)), against, basis)


def all_of(parts: Sequence[tuple[str, Finding]]) -> Finding:
    """A claim about several things holds if it holds of each, and fails if it fails of one.

    Among many parts one looks bad by chance, so that to fail takes evidence as many times as strong (Bonferroni);
    to hold takes no more than that each does. Of more than `_LISTED` parts the evidence counts them and names the
    weakest.
    """
    bases = {found.basis for _, found in parts}
    if len(parts) > _LISTED:
        sure, fail = (sum(found.verdict == one for _, found in parts) for one in ("holds", "does not hold"))
        name, weakest = min(parts, key=lambda part: part[1].against)
        opposed = f", {fail} surely not" if fail else ""
        numbers = f"{sure} of {len(parts)} surely{opposed}; the weakest, {name}: {weakest.evidence}"
        basis = ""
    elif len(parts) > 1 and len(bases) == 1 and all(bases):
        numbers, basis = "; ".join(f"{name}: {found.numbers}" for name, found in parts) + ";", f"each {bases.pop()}"
    else:
        numbers, basis = "; ".join(f"{name}: {found.evidence}" for name, found in parts), ""
    against = min([1.0, *(len(parts) * found.against for _, found in parts)])
    if against < _TAIL:
        return Finding("does not hold", numbers, against, basis)
    holds = bool(parts) and all(found.verdict == "holds" for _, found in parts)
    return Finding("holds" if holds else "undecided", numbers, against, basis)


def most_of(parts: Sequence[tuple[str, Finding]]) -> Finding:
    """What is said to be so mostly: it holds if it surely does of more than half, and fails if it fails of half."""
    counts = {one: sum(found.verdict == one for _, found in parts) for one in ("holds", "does not hold")}
    verdict: Verdict = "undecided"
    if 2 * counts["holds"] > len(parts):
        verdict = "holds"
    elif parts and 2 * counts["does not hold"] >= len(parts):
        verdict = "does not hold"
    numbers = f"{counts['holds']} of {len(parts)} surely, {counts['does not hold']} surely not"
    if len(parts) <= _LISTED:
        numbers += "; " + "; ".join(f"{name}: {found.evidence}" for name, found in parts)
    return Finding(verdict, numbers, 0.0 if verdict == "does not hold" else 1.0)


def less(values: ArrayLike, others: ArrayLike) -> Finding:
    """Whether one mean is below that of other, independent values, by Welch's interval of the difference."""
    (x, mean, error), (z, other, its) = _mean(values), _mean(others)
    if not (np.isfinite(error) and np.isfinite(its)):
        return _open(x if len(x) < 2 else z)
    whole = float(np.hypot(error, its))
    freedom = whole**4 / (error**4 / (len(x) - 1) + its**4 / (len(z) - 1)) if whole else float(len(x) + len(z) - 2)
    against = _tail(other - mean, whole, freedom + 1)
    numbers = f"{_shown(mean, error, len(x))} against {_shown(other, its, len(z))}"
    basis = f"over {len(x)} and {len(z)} repetitions"
    return Finding(_verdict(1 - against, against), numbers, against, basis)


def varies(values: ArrayLike) -> Finding:
    """Whether three or more groups differ, from values of shape (repetitions, groups), by Friedman's test of ranks.

    Of groups that are alike nothing can be shown: then it is undecided.
    """
    x = np.asarray(values, np.float64)
    if len(x) < 2:
        return _open(np.array([]))
    with np.errstate(invalid="ignore"):  # all alike: no verdict
        p = float(friedmanchisquare(*x.T).pvalue)
    means = x.mean(axis=0)
    numbers = f"means from {means.min():.3g} to {means.max():.3g}, p = {p:.2g}"
    return Finding("holds" if p < _TAIL else "undecided", numbers, 1.0, f"over {len(x)} repetitions")


def exactly(true: bool, evidence: str) -> Finding:
    """A claim that needs no statistics."""
    return Finding("holds", evidence, 1.0) if true else Finding("does not hold", evidence, 0.0)


def over_graphs(values: ArrayLike) -> Finding:
    """On which share of random graphs a difference is positive, from its mean over repetitions on each of them.

    It holds if the share is above 95 %, by its exact 95 % interval over graphs, fails if it is below 5 %, and depends
    on the graph otherwise.
    """
    x = np.asarray(values, np.float64)
    n, m = len(x), int((x > 0).sum())
    low, high = (float(bound(m, n, 1 - _TAIL)) for bound in (binomial_lower, binomial_upper))
    verdict: Verdict = "holds" if low > 0.95 else "does not hold" if high < 0.05 else "depends on the graph"
    spread = np.percentile(x, (5, 50, 95))
    numbers = (
        f"on {100 * m / n:.0f} % of {n} graphs ({100 * low:.0f} to {100 * high:.0f} %); difference "
        f"{spread[1]:.4f}, from {spread[0]:.4f} to {spread[2]:.4f} on nine of ten"
    )
    return Finding(verdict, numbers, 1.0 if verdict != "does not hold" else 0.0)


def _mean(values: ArrayLike) -> tuple[NDArray[np.float64], float, float]:
    """The finite values, their mean, and its standard error."""
    x = np.asarray(values, np.float64)
    x = x[np.isfinite(x)]
    error = x.std(ddof=1) / np.sqrt(len(x)) if len(x) > 1 else np.nan
    return x, float(x.mean()) if len(x) else np.nan, float(error)


def _shown(mean: float, error: float, n: int) -> str:
    """The mean to as many decimals as two figures of its interval have."""
    half = stdtrit(n - 1, 1 - _TAIL) * error
    if half == 0:
        return f"{mean:.4g} ± 0"
    decimals = max(0, 1 - int(np.floor(np.log10(half))))
    return f"{mean:.{decimals}f} ± {half:.{decimals}f}"


def _open(x: NDArray[np.float64]) -> Finding:
    return Finding("undecided", f"{x[0]:.4g} in one repetition" if len(x) else "no repetitions", 1.0)


def _tail(distance: float, error: float, n: float) -> float:
    """The probability that Student's t is below distance / error."""
    if error == 0:
        return 0.5 if distance == 0 else float(distance > 0)
    return float(stdtr(n - 1, distance / error))


def _verdict(doubt: float, against: float) -> Verdict:
    if doubt < _TAIL:
        return "holds"
    return "does not hold" if against < _TAIL else "undecided"
