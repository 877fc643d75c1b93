"""What an agent counts."""

import numpy as np
import pytest

from collegium.live.account import Account


def test_quantiles_are_those_of_the_latencies_within_a_step_of_the_histogram():
    account = Account(0.0)
    assert account.quantile(0.5) is None
    seconds = np.random.default_rng(0).uniform(0.01, 0.025, 10_000)
    account.decided(seconds)
    for q in (0.1, 0.5, 0.99):
        assert account.quantile(q) == pytest.approx(1e3 * np.quantile(seconds, q), rel=0.02)
    account.decided(np.full(10_000_000, 99.0))
    assert account.quantile(0.99) == 10_000.0  # the last bound


@pytest.mark.parametrize("together", [True, False])
def test_no_quantile_is_larger_than_the_largest_latency(together):
    account = Account(0.0)
    for seconds in [[0.065, 1.14]] if together else [[0.065], [1.14]]:
        account.decided(np.array(seconds))
    assert account.quantile(0.99) == 1140.0


def test_a_full_agent_says_how_long_items_take_lately():
    account = Account(0.0)
    assert account.retry_after == 1.0
    account.decided(np.full(5, 0.5))
    assert account.retry_after == pytest.approx(0.5)
    for _ in range(60):
        account.decided(np.full(5, 3.0))
    assert account.retry_after == pytest.approx(3.0, rel=0.01)
    for _ in range(60):
        account.decided(np.full(5, 1e-4))
    assert account.retry_after == 0.1


def test_latencies_are_counted_by_their_bounds():
    account = Account(0.0)
    account.decided(np.array([0.0005, 0.002, 0.002]))
    account.decided(np.array([0.002]))  # one alone is counted without arrays
    account.decided(np.array([99.0]))
    histogram = account.histogram()
    assert (account.done, sum(histogram.counts)) == (5, 5)
    assert (histogram.counts[0], histogram.counts[1], histogram.counts[-1]) == (1, 3, 1)
    assert histogram.sum == pytest.approx(99.0065)
    assert len(histogram.counts) == len(histogram.bounds) + 1
