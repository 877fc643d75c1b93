"""Claims with a statistical verdict: holds, does not hold, or undecided at this number of repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

Verdict = Literal["holds", "does not hold", "undecided"]


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
    to hold takes no more than that each does.
    """
    bases = {found.basis for _, found in parts}
    if len(parts) > 1 and len(bases) == 1 and all(bases):
        numbers, basis = "; ".join(f"{name}: {found.numbers}" for name, found in parts) + ";", f"each {bases.pop()}"
    else:
        numbers, basis = "; ".join(f"{name}: {found.evidence}" for name, found in parts), ""
    against = min([1.0, *(len(parts) * found.against for _, found in parts)])
    if against < _TAIL:
        return Finding("does not hold", numbers, against, basis)
    holds = bool(parts) and all(found.verdict == "holds" for _, found in parts)
    return Finding("holds" if holds else "undecided", numbers, against, basis)


def exactly(true: bool, evidence: str) -> Finding:
    """A claim that needs no statistics."""
    return Finding("holds", evidence, 1.0) if true else Finding("does not hold", evidence, 0.0)


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


def _tail(distance: float, error: float, n: int) -> float:
    """The probability that Student's t is below distance / error."""
    if error == 0:
        return 0.5 if distance == 0 else float(distance > 0)
    return float(stdtr(n - 1, distance / error))


def _verdict(doubt: float, against: float) -> Verdict:
    if doubt < _TAIL:
        return "holds"
    return "does not hold" if against < _TAIL else "undecided"
