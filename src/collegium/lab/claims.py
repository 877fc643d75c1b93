"""Claims with a statistical verdict: holds, does not hold, or undecided at this number of repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from collegium.measures import mean_interval

Verdict = Literal["holds", "does not hold", "undecided"]


class Claim(NamedTuple):
    """A statement of the paper and what the numbers say of it."""

    study: str
    claim: str
    verdict: Verdict
    evidence: str


def above(values: ArrayLike, limit: float = 0.0, confidence: float = 0.95) -> tuple[Verdict, str]:
    """Whether the mean of independent values is above a limit: by its two-sided interval over repetitions."""
    x = np.asarray(values, np.float64)
    x = x[np.isfinite(x)]
    if len(x) == 0:
        return "undecided", "no repetitions"
    mean, half = mean_interval(x, confidence)
    if not np.isfinite(half):
        return "undecided", f"{mean:.4g} in one repetition"
    evidence = f"{mean:.4g} ± {half:.2g} over {len(x)} repetitions"
    if mean - half > limit:
        return "holds", evidence
    return ("does not hold", evidence) if mean + half < limit else ("undecided", evidence)


def below(values: ArrayLike, limit: float = 0.0) -> tuple[Verdict, str]:
    """Whether the mean is below a limit."""
    verdict, evidence = above(-np.asarray(values, np.float64), -limit)
    mean = np.nanmean(np.asarray(values, np.float64)) if np.size(values) else np.nan
    return verdict, evidence.replace(f"{-mean:.4g}", f"{mean:.4g}", 1)


def within(values: ArrayLike, margin: float) -> tuple[Verdict, str]:
    """Whether the mean is within ±margin of 0: the whole interval inside, the whole outside, or neither."""
    x = np.asarray(values, np.float64)
    mean, half = mean_interval(x) if len(x) else (np.nan, np.nan)
    if not np.isfinite(half):
        return "undecided", f"{mean:.4g} in {len(x)} repetitions"
    evidence = f"{mean:.4g} ± {half:.2g}, asked for ±{margin:g}"
    if abs(mean) + half <= margin:
        return "holds", evidence
    return ("does not hold", evidence) if abs(mean) - half > margin else ("undecided", evidence)


def all_of(parts: Sequence[tuple[str, tuple[Verdict, str]]]) -> tuple[Verdict, str]:
    """A claim about several things holds if it holds of each, and fails if it fails of one."""
    verdicts = [verdict for _, (verdict, _) in parts]
    evidence = "; ".join(f"{name}: {found}" for name, (_, found) in parts)
    if "does not hold" in verdicts:
        return "does not hold", evidence
    return ("undecided", evidence) if "undecided" in verdicts or not verdicts else ("holds", evidence)


def exactly(true: bool, evidence: str) -> tuple[Verdict, str]:
    """A claim that needs no statistics."""
    return ("holds" if true else "does not hold"), evidence
