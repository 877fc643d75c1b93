"""All methods on the same items: one repetition, and the summary of several."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collegium._util.measures import Interval, mean_interval, wrong
from collegium.agents.scores import Scores
from collegium.errors import DataError, ScoreError
from collegium.fusion.base import Method

if TYPE_CHECKING:
    from collegium.data import Dataset


class Result(NamedTuple):
    """What one method did in one repetition."""

    method: str
    error: float
    """Error rate on the test items, averaged over those who decide."""
    ci95: float
    """Half-width of its 95 % interval over the test items."""
    transmissions: float
    """Messages per test item."""
    bits: float
    """Bits per test item."""
    training_transmissions: int
    """Messages while the method was fitted."""
    seconds: float
    """To fit it and to decide about all test items; the agents' own training is not in it."""


class ComparisonRow(NamedTuple):
    """What one method did on average."""

    method: str
    error: float
    ci95: float
    """Half-width of the 95 % interval over the repetitions; over the test items if there was only one."""
    transmissions: float
    bits: float
    seconds: float


def evaluate(method: Method, scores: Scores, train: Dataset | None = None, test: Dataset | None = None) -> Result:
    """Fit a method and let it decide about the test items of the record.

    `train` and `test` are the data sets that the record was made from, for methods that need views.
    """
    if not len(scores.test):
        raise ScoreError("this score record has no test items to decide about")
    if method.needs_views and (test is None or (len(test) != len(scores.test)) or (test.y != scores.y_test).any()):
        raise DataError(f"{method.name} decides from the views themselves: give the test items of the score record")
    begun = time.perf_counter()
    method.fit(scores, train)
    decision = method.decide(test.views if method.needs_views and test is not None else scores.test)
    seconds = time.perf_counter() - begun
    mistakes = wrong(decision.statistics, scores.y_test)
    # Two more right and two more wrong items [agresti1998], so that no mistake at all is not taken for certainty.
    padded = np.concatenate([mistakes, [0, 0, 1, 1]])
    over_items = 1.96 * padded.std() / np.sqrt(len(padded))
    return Result(
        method.name,
        float(mistakes.mean()),
        float(over_items),
        float(decision.transmissions.mean()),
        float(decision.bits.mean()),
        method.training_transmissions_,
        seconds,
    )


def summarise(repetitions: Sequence[Sequence[Result]]) -> list[ComparisonRow]:
    """Means over repetitions, method by method; each repetition holds the same methods in the same order."""
    if len({tuple(result.method for result in one) for one in repetitions}) != 1:
        raise DataError("every repetition must hold the results of the same methods, in the same order")
    rows = []
    for results in zip(*repetitions, strict=True):
        error = mean_interval([result.error for result in results])
        if len(results) == 1:
            error = Interval(error.mean, results[0].ci95)
        means = np.mean([(result.transmissions, result.bits, result.seconds) for result in results], axis=0)
        rows.append(ComparisonRow(results[0].method, *error, *map(float, means)))
    return rows


def coordination_table(methods: Sequence[Method]) -> list[dict[str, str]]:
    """What each method asks of the agents, row by row: the paper's table of regimes [hu2026, Tab. I]."""
    return [
        {
            "Method": method.name,
            "Training coordination": method.coordination.training,
            "Additional fitting": method.coordination.fitting,
            "Inference coordination": method.coordination.inference,
        }
        for method in methods
    ]
