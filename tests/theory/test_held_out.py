"""Bounds from held-out items: the same numbers as other computations give, and held as often as they say."""

import numpy as np
import pytest
from scipy import stats

from collegium import collaborate, policy, theory, topology
from collegium.errors import AssumptionError
from collegium.protocol import LabelStability
from collegium.theory.held_out import binomial_lower, binomial_upper

TIMES = 2000


def at_least(share, times=TIMES):
    """How often something of this probability happens at least, but in one of a thousand such tests."""
    return stats.binom.ppf(0.001, times, share)


@pytest.mark.parametrize(("wrong", "n"), [(0, 50), (3, 50), (20, 200), (199, 200), (200, 200)])
def test_the_exact_interval_of_scipy(wrong, n):
    found = theory.held_out(np.arange(n) < wrong, 0.9)
    other = stats.binomtest(wrong, n, alternative="less").proportion_ci(0.9, method="exact")
    assert float(found.value) == pytest.approx(other.high, abs=1e-12)
    assert float(found.parts["errors"]) == wrong / n
    assert bool(found.vacuous) == (wrong == n)
    low = stats.binomtest(wrong, n, alternative="greater").proportion_ci(0.9, method="exact").low
    assert float(binomial_lower(wrong, n, 0.9)) == pytest.approx(low, abs=1e-12)


@pytest.mark.parametrize("p", [0.02, 0.1, 0.4])
def test_it_holds_as_often_as_it_says(p):
    counts = np.random.default_rng(0).binomial(120, p, TIMES)
    held = (binomial_upper(counts, 120, 0.9) >= p).sum()
    assert held >= at_least(0.9)
    assert held <= TIMES * 0.98  # and not much more often: a bound that always holds would pass the first line


def test_all_at_once():
    """Ten agents, each wrong with its own rate: the worst of ten bounds is broken more often than one, unless asked."""
    rng = np.random.default_rng(1)
    rates = np.linspace(0.1, 0.3, 10)
    broken = {False: 0, True: 0}
    for _ in range(600):
        wrong = rng.random((150, 10)) < rates
        for together in broken:
            broken[together] += bool((theory.held_out(wrong, 0.9, together=together).value < rates).any())
    assert broken[True] <= 600 - at_least(0.9, 600)
    assert broken[False] > 0.3 * 600


def test_every_round_and_agent_of_any_rule():
    rng = np.random.default_rng(2)
    y = np.where(rng.random(300) < 0.5, 1, -1)
    c = 0.4 * y[:, None] + rng.normal(size=(300, 6))
    run = collaborate(c, policy.uniform(topology.ring(6)), 8, LabelStability(2, 0.5))
    found = theory.held_out(run.wrong(y), axis=1)
    assert found.value.shape == (9, 6)
    np.testing.assert_array_equal(found.parts["errors"], run.errors(y))
    assert (found.value > run.errors(y)).all()


def test_within_one_and_a_half_of_the_error_with_200_items():
    for errors in range(20, 100):  # from 10 % on
        assert float(binomial_upper(errors, 200, 0.95)) <= 1.5 * errors / 200


def test_pairs_by_hand():
    wrong = np.array([0, 0, 0, 1, 1, 0, 0], bool)
    other = np.array([1, 1, 1, 0, 1, 0, 1], bool)
    found = theory.paired(wrong, other)
    assert (int(found.better), int(found.worse)) == (4, 1)
    assert float(found.gain) == pytest.approx(3 / 7)
    assert float(found.confidence) == pytest.approx(1 - stats.binomtest(4, 5, 0.5, alternative="greater").pvalue)
    assert float(found.gain_at_least) < 3 / 7 < float(found.gain_at_most)
    assert float(theory.paired(wrong, wrong).confidence) == 0


def test_confidence_in_a_gain_is_no_larger_than_earned():
    """Two ways of deciding that are equally good, and one that is better by a known gain."""
    rng = np.random.default_rng(3)
    sure = held = 0
    for _ in range(TIMES):
        one, two = rng.random((2, 80)) < 0.3
        sure += bool(theory.paired(one, two).confidence >= 0.9)
        better = one & (rng.random(80) < 2 / 3)  # wrong in 20 %
        found = theory.paired(better, one, 0.9)
        held += bool(found.gain_at_least <= 0.1 <= found.gain_at_most)
    assert sure <= stats.binom.ppf(0.999, TIMES, 0.1)
    assert sure > 0.03 * TIMES
    assert held >= at_least(0.9)


def test_agents_against_one_other():
    rng = np.random.default_rng(4)
    wrong = rng.random((60, 5, 3)) < 0.2
    other = rng.random(60) < 0.5
    found = theory.paired(wrong, other[:, None, None])
    assert found.confidence.shape == (5, 3)
    one = theory.paired(wrong[:, 2, 1], other)
    assert found.gain_at_least[2, 1] == pytest.approx(float(one.gain_at_least))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: theory.held_out([]), "there are none"),
        (lambda: theory.held_out([0.2, 0.3]), "error rates do not say which items"),
        (lambda: theory.held_out([True, False], 1.0), "strictly between 0 and 1"),
        (lambda: theory.held_out([True, False], axis=1), "has no axis 1"),
        (lambda: theory.paired([True, False], [True, False, True]), "same items"),
    ],
)
def test_mistakes_are_named(call, said):
    with pytest.raises(AssumptionError, match=said):
        call()
