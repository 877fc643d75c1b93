"""Error rates and intervals, against counting by hand, scipy.stats and simulation."""

import numpy as np
import pytest
from scipy import stats

from collegium._util.measures import mean_interval, wrong
from collegium.errors import LabelError, ScoreError


def test_wrong_counts_deciders_and_zero_is_always_wrong():
    statistics = np.array([[1.0, -2.0, 0.0], [-1.0, -1.0, -1.0], [0.0, 0.0, 3.0]])
    assert wrong(statistics, [1, -1, 1]).tolist() == [2 / 3, 0.0, 2 / 3]
    assert wrong([0.5, 0.0, -1.0], [1, -1, -1]).tolist() == [0.0, 1.0, 0.0]


def test_wrong_wants_a_label_per_item():
    with pytest.raises(LabelError, match="expected 2"):
        wrong([1.0, 2.0], [1, -1, 1])


@pytest.mark.parametrize("n", [2, 3, 10, 60])
def test_the_interval_is_students(n):
    x = np.random.default_rng(n).normal(3, 2, n)
    low, high = stats.t.interval(0.95, n - 1, x.mean(), stats.sem(x))
    mean, half = mean_interval(x)
    assert (mean - half, mean + half) == pytest.approx((low, high), rel=1e-12)


def test_the_interval_covers_95_times_in_100():
    rng, trials = np.random.default_rng(0), 4000
    hits = sum(
        abs(interval.mean - 1) <= interval.half for interval in map(mean_interval, rng.normal(1, 5, (trials, 5)))
    )
    low, high = stats.binom.interval(0.999, trials, 0.95)
    assert low <= hits <= high


def test_a_single_value_has_no_interval():
    assert np.isnan(mean_interval([0.25]).half)
    with pytest.raises(ScoreError, match="at least one value"):
        mean_interval([])
