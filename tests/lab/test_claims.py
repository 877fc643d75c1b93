"""Verdicts: right as often as they should be, and open where little is known."""

import numpy as np
import pytest
from scipy import stats

from collegium.lab.claims import Finding, above, all_of, below, exactly, less, most_of, over_graphs, varies, within


def test_verdicts_follow_the_interval():
    assert above([1.0, 1.1, 0.9, 1.0])[0] == "holds"
    assert above([-1.0, -1.1, -0.9])[0] == "does not hold"
    assert above([-1.0, 1.0, 0.5])[0] == "undecided"
    assert above([1.0, 1.1, 0.9], limit=2.0)[0] == "does not hold"
    assert below([-1.0, -1.1, -0.9])[0] == "holds"
    assert below([0.4, 0.5, 0.6], limit=1.0)[0] == "holds"
    assert within([0.001, -0.001, 0.0], 0.01)[0] == "holds"
    assert within([0.1, 0.11, 0.09], 0.01)[0] == "does not hold"
    assert within([0.02, -0.02, 0.03], 0.01)[0] == "undecided"


def test_the_evidence_has_the_numbers():
    assert above([1.0, 2.0, 3.0]).evidence == "2.0 ± 2.5 over 3 repetitions"
    assert below([-1.0, -2.0, -3.0]).evidence == "-2.0 ± 2.5 over 3 repetitions"
    assert above([100.0, 200.0, 300.0]).evidence == "200 ± 248 over 3 repetitions"
    assert within([0.001, 0.002, 0.003], 0.01).evidence == "0.0020 ± 0.0025 over 3 repetitions, asked for ±0.01"
    assert above([3.0, 3.0]).evidence == "3 ± 0 over 2 repetitions"
    assert above([3.0]).evidence == "3 in one repetition"


def test_what_all_parts_rest_on_is_said_once():
    three, two = above([1.0, 2.0, 3.0]), above([1.0, 1.0])
    assert all_of([("a", three), ("b", three)]).evidence == "a: 2.0 ± 2.5; b: 2.0 ± 2.5; each over 3 repetitions"
    assert all_of([("a", three), ("b", two)]).evidence == "a: 2.0 ± 2.5 over 3 repetitions; b: 1 ± 0 over 2 repetitions"
    assert all_of([("a", three)]).evidence == "a: 2.0 ± 2.5 over 3 repetitions"


@pytest.mark.parametrize("values", [[], [5.0], [np.nan]])
def test_little_is_undecided(values):
    assert above(values)[0] == "undecided"
    assert within(values, 1.0)[0] == "undecided"


def test_a_claim_about_several_things():
    good, bad, open_ = Finding("holds", "x", 0.99), Finding("does not hold", "y", 0.001), Finding("undecided", "z", 0.3)
    assert all_of([("a", good), ("b", good)])[:2] == ("holds", "a: x; b: x")
    assert all_of([("a", good), ("b", open_)])[0] == "undecided"
    assert all_of([("a", bad), ("b", open_)])[0] == "does not hold"
    assert all_of([])[0] == "undecided"
    assert exactly(True, "seen")[:2] == ("holds", "seen")
    assert exactly(False, "seen")[0] == "does not hold"


def test_false_verdicts_are_rare():
    """With a true mean of 0, 'holds' and 'does not hold' come up in 5 % of the cases together."""
    rng = np.random.default_rng(0)
    wrong = sum(above(x)[0] != "undecided" for x in rng.normal(size=(2000, 6)))
    assert stats.binom.ppf(0.0005, 2000, 0.05) <= wrong <= stats.binom.ppf(0.9995, 2000, 0.05)


def test_one_of_many_parts_looks_bad_by_chance():
    """27 things that are just about true: the claim about all of them fails in at most 2.5 % of the cases."""
    rng = np.random.default_rng(1)
    trials = 300
    failed = sum(
        all_of([(str(i), above(x)) for i, x in enumerate(rng.normal(size=(27, 5)))]).verdict == "does not hold"
        for _ in range(trials)
    )
    assert failed <= stats.binom.ppf(0.9995, trials, 0.025)


def test_many_parts_are_counted():
    parts = [(str(i), above([1.0, 1.1, 0.9])) for i in range(11)] + [("odd", above([0.0, 0.3, -0.2]))]
    found = all_of(parts)
    assert found.verdict == "undecided"
    assert found.evidence == "11 of 12 surely; the weakest, odd: 0.03 ± 0.63 over 3 repetitions"
    assert ", 1 surely not;" in all_of([*parts, ("bad", above([-1.0, -1.1]))]).evidence


def test_what_is_mostly_so():
    good, bad, open_ = above([1.0, 1.1, 0.9]), above([-1.0, -1.1, -0.9]), above([-1.0, 1.0, 0.5])

    def verdict(*found):
        return most_of([(str(i), one) for i, one in enumerate(found)]).verdict

    assert verdict(good, good, bad) == "holds"
    assert verdict(good, good, open_, bad) == "undecided"
    assert verdict(good, good, bad, bad) == verdict(open_, bad) == "does not hold"
    assert verdict() == "undecided"
    assert most_of([("a", good), ("b", bad)]).evidence.startswith("1 of 2 surely, 1 surely not; a: 1.00 ± 0.25 over")


def test_independent_means_are_compared_as_welch_does():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=9), 1 + 3 * rng.normal(size=5)
    found = less(a, b)
    assert found.against == pytest.approx(stats.ttest_ind(a, b, equal_var=False, alternative="greater").pvalue)
    assert less(a, b + 20).verdict == "holds"
    assert less(b + 20, a).verdict == "does not hold"
    assert less(a, b[:1]).verdict == "undecided"
    assert less([1.0, 1.0], [2.0, 2.0]).verdict == "holds"


def test_groups_that_are_alike_do_not_vary():
    """Not more often than its level, also where repetitions differ from each other."""
    rng = np.random.default_rng(5)
    trials = 1000
    alike = sum(varies(rng.normal(size=(8, 9)) + rng.normal(size=(8, 1))).verdict == "holds" for _ in range(trials))
    assert alike <= stats.binom.ppf(0.9995, trials, 0.025)
    assert varies(rng.normal(size=(8, 9)) + 3 * np.arange(9)).verdict == "holds"
    assert varies(np.ones((1, 9))).verdict == varies(np.ones((5, 9))).verdict == "undecided"


def test_what_turns_with_the_graph_says_how_often():
    x = np.linspace(-1, 1, 200)
    found = over_graphs(x)
    assert found.verdict == "depends on the graph"
    assert found.numbers.startswith("on 50 % of 200 graphs (43 to 57 %)")
    assert over_graphs(np.ones(200)).verdict == "holds"
    assert over_graphs(-np.ones(200)).verdict == "does not hold"
    assert over_graphs(np.ones(20)).verdict == "depends on the graph"  # twenty graphs are too few to be sure of 95 %
    nearly = over_graphs(np.r_[-np.ones(8), np.ones(192)])
    assert nearly.verdict == "depends on the graph"
