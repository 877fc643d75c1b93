"""Scores of several classes: the paths agree, the rules do what they say, and the numbers are measured right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import collaborate, kernels, links, policy, schedule, sweep, topology
from collegium._util.randomness import Draws, child, item_keys, sender_salts, uniform_draws
from collegium.errors import LabelError, ScoreError
from collegium.kernels import averaging
from collegium.network import reference_run, validated
from collegium.protocol import Averaging, DeGroot, DeltaTrigger, HoldLast, LabelStability, Quantised, SocialLearning
from collegium.protocol.codec import Quantise
from helpers import MAILBOXES, POLICIES, RULES, Stubborn, of_classes

RING = POLICIES["ring"]
RING_3 = policy.uniform(topology.ring(3))


def same(one, other):
    np.testing.assert_array_equal(one.statistics, other.statistics)
    np.testing.assert_array_equal(one.costs, other.costs)
    everybody = np.ones((*one.costs.shape, one.statistics.shape[2]), bool)
    np.testing.assert_array_equal(*(everybody if found.spoke is None else found.spoke for found in (one, other)))


# --- kernels ---


@pytest.mark.parametrize("mailbox", MAILBOXES, ids=str)
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_kernels_give_the_rules_own_numbers(rule, name, mailbox):
    p = POLICIES[name]
    job = validated(of_classes(21, p.size, 4), p, 9, [rule], 11, mailbox=mailbox)
    slow = reference_run(job, rule)
    same(slow, kernels.find(job, rule)(job))
    same(slow, averaging._run_large(averaging.arrays(job), kernels.numbers(rule)))


@pytest.mark.parametrize("mailbox", [*MAILBOXES, HoldLast("hold")], ids=str)
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("rule", RULES[::4], ids=str)
def test_kernels_over_lossy_links(rule, name, mailbox):
    p = POLICIES[name]
    job = validated(of_classes(9, p.size, 3), p, 7, [rule], 11, mailbox=mailbox, links=links.Lossy(0.4, seed=2))
    same(reference_run(job, rule), kernels.find(job, rule)(job))


@pytest.mark.parametrize("rule", RULES[::4], ids=str)
def test_kernels_over_networks_that_change(rule):
    for turns in (schedule.alternating([RING, POLICIES["directed"]]), schedule.pairwise(topology.ring(12), seed=1)):
        job = validated(of_classes(9, 12, 5), turns, 7, [rule], 11)
        slow, fast = reference_run(job, rule), kernels.find(job, rule)
        assert (fast is None) == (slow.spoke is not None)  # who is silent must be remembered link by link
        if fast is not None:
            same(slow, fast(job))


@given(n=st.integers(0, 40), K=st.integers(1, 9), d=st.integers(3, 11), rounds=st.integers(0, 6), final=st.booleans())
@settings(deadline=None, max_examples=60)
def test_kernels_on_any_size(n, K, d, rounds, final):
    p, rule = policy.uniform(topology.ring(K)), Quantised(LabelStability(1, 0.2), 3, 2.0)
    job = validated(of_classes(n, K, d, seed=d), p, rounds, [rule], n, record="final" if final else "all")
    same(
        reference_run(job, rule),
        kernels.find(job, rule)(job)._replace(spoke=None) if final else kernels.find(job, rule)(job),
    )


@pytest.mark.parametrize("mailbox", MAILBOXES, ids=str)
@pytest.mark.parametrize("rule", [*RULES[::2], Stubborn(0.5)], ids=str)
def test_a_sweep_is_many_runs(rule, mailbox):
    p, x, y = POLICIES["directed"], of_classes(100, 12, 4), np.arange(100) % 4
    rules = [rule, DeGroot()] if kernels.numbers(rule) else [rule]
    swept = sweep(x, p, rules, y, rounds=8, rng=5, realisations=2, mailbox=mailbox)
    for m in range(2):
        run = collaborate(x, p, 8, rule, child(5, m), mailbox=mailbox)
        np.testing.assert_array_equal(swept.errors[0, m], run.errors(y))
        assert swept.transmissions[0, m, -1] == run.transmissions.mean()
        assert swept.bits[0, m, -1] == pytest.approx(run.bits.mean(), rel=1e-14)  # another order of rounding


def test_a_sweep_takes_names_and_counts_a_tie_as_wrong():
    x = np.array([[[2.0, -1.0, -1.0]] * 3, [[1.0, 1.0, -2.0]] * 3])
    found = sweep(x, RING_3, [DeGroot()], ["a", "a"], 2, classes=("a", "b", "c"))
    np.testing.assert_array_equal(found.errors, 0.5)
    with pytest.raises(LabelError, match="label 3 of item 1 is none of 0, 1, 2"):
        sweep(x, RING_3, [DeGroot()], [0, 3])


def test_a_draw_for_every_coordinate():
    """The kernels' words are those of `Draws`, one stream a coordinate, the first as for one number."""
    ids = np.arange(5, dtype=np.uint64)
    drawn = Draws(9, ids, agent=3, round=2).uniform(4)
    keys = item_keys(np.array([9], np.uint64), ids)
    for j in range(4):
        salts = sender_salts(np.array([3]), np.array([2]), np.array([j]))
        np.testing.assert_array_equal(drawn[:, j], uniform_draws(keys, salts))
    assert len(np.unique(drawn)) == 20
    np.testing.assert_array_equal(drawn[:, 0], Draws(9, ids, agent=3, round=2).uniform()[:, 0])


# --- rules ---


@pytest.mark.parametrize("rule", [DeGroot(), SocialLearning(), Averaging(codec=Quantise(32, 40.0))], ids=str)
def test_of_several_classes_each_entry_is_averaged(rule):
    x = of_classes(8, 12, 4)
    run = collaborate(x, RING, 6, rule)
    assert run.statistics.shape == (7, 8, 12, 4)
    total, expected = np.zeros_like(x), []
    for t in range(7):
        power = np.einsum("nlc,lk->nkc", x, np.linalg.matrix_power(RING.A, t))
        total = total + power if t else total
        expected.append(total if isinstance(rule, SocialLearning) else power)
    # 32 bits within ±40 are steps of 2e-8, and an error of a step a round is averaged, not grown
    atol = 1e-6 if rule.message_bits() < 64 else 1e-12
    np.testing.assert_allclose(run.statistics, expected, atol=atol)
    assert (run.bits == 6 * RING.links * 3 * rule.codec.message_bits).all()  # three of four numbers travel


def test_the_largest_entry_decides_and_a_tie_is_wrong():
    x = np.array([[[2.0, -1.0, -1.0]] * 3, [[1.0, 1.0, -2.0]] * 3])
    run = collaborate(x, RING_3, 2)
    assert run.decisions().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert run.errors([0, 0])[0].tolist() == [0.5] * 3
    assert run.errors(["a", "c"], classes=("a", "b", "c"))[-1].tolist() == [0.5] * 3
    with pytest.raises(LabelError, match="label 3 of item 1 is none of 0, 1, 2"):
        run.errors([0, 3])


@pytest.mark.parametrize(
    ("x", "complaint"),
    [
        (np.zeros((2, 3, 2)), "two classes are one number"),
        (np.ones((2, 3, 4)), "must sum to zero over the classes: item 0, agent 0 sums to 4"),
        (np.ones((2, 3, 4, 1)), r"or \(n, 3, classes\)"),
    ],
)
def test_scores_of_the_wrong_number_are_refused(x, complaint):
    with pytest.raises(ScoreError, match=complaint):
        collaborate(x, RING_3, 1)


def without_ties(n, K, d, seed):
    """Ties may be broken by the last bit, which another order of summation changes."""
    values = np.random.default_rng(seed).normal(size=(n, K, d))
    return values - values.mean(axis=2, keepdims=True)


def by_hand(x, A, rounds, speaks):
    """The protocol for one item with dense matrices: x has shape (K, d), `speaks` sees all rounds and what was sent."""
    links_ = (A > 0) & ~np.eye(len(A), dtype=bool)
    sent, cost, trace = x, links_.sum(), [x, A.T @ x]
    for _ in range(2, rounds + 1):
        fires = speaks(trace, sent)
        cost += links_[fires].sum()
        sent = np.where(fires[:, None], trace[-1], sent)
        trace.append(A.T @ sent)
    return np.array(trace), cost


@pytest.mark.parametrize("name", ["ring", "directed", "no-self-loops"])
@pytest.mark.parametrize("threshold", [0.011, 0.3])
def test_delta_trigger_looks_at_the_largest_change(name, threshold):
    p = POLICIES[name]
    x = without_ties(30, p.size, 4, seed=1)
    run = collaborate(x, p, rounds=12, rule=DeltaTrigger(threshold))
    for i in range(30):
        trace, cost = by_hand(x[i], p.A, 12, lambda past, sent: np.abs(past[-1] - sent).max(axis=1) > threshold)
        np.testing.assert_allclose(run.statistics[:, i], trace, atol=1e-13)
        assert run.transmissions[i] == cost


@pytest.mark.parametrize("name", ["ring", "directed", "no-self-loops"])
@pytest.mark.parametrize(("patience", "confidence"), [(1, 0.0), (1, 0.3), (3, 0.1), (20, 0.0)])
def test_label_stability_looks_at_the_largest_entry_and_its_lead(name, patience, confidence):
    p = POLICIES[name]
    x = without_ties(30, p.size, 4, seed=2)

    def speaks(past, sent):
        labels, found = [one.argmax(axis=1) for one in past], []
        for k, entries in enumerate(past[-1]):
            streak = 0
            while streak < len(past) - 1 and labels[-1 - streak][k] == labels[-2 - streak][k]:
                streak += 1
            first, second = sorted(entries)[:-3:-1]
            found.append(not (streak >= patience and first - second >= confidence))
        return np.array(found)

    run = collaborate(x, p, rounds=12, rule=LabelStability(patience, confidence))
    for i in range(30):
        trace, cost = by_hand(x[i], p.A, 12, speaks)
        np.testing.assert_allclose(run.statistics[:, i], trace, atol=1e-13)
        assert run.transmissions[i] == cost


def test_quantised_entries_are_levels_and_right_on_average():
    """With one bit every number that travels is ±bound; averaged over draws it is the score."""
    x, many = np.array([[[0.6, -0.1, -0.5]] * 3]), 20_000
    rule = Quantised(DeGroot(), 1, 1.0)
    run = collaborate(np.repeat(x, many, axis=0), policy.Policy(np.ones((3, 3)) / 3), 1, rule)
    sent = 3 * run.statistics[1, :, 0, :2]  # the sum of three numbers, each +1 or -1
    np.testing.assert_allclose(np.abs(sent) % 2, 1, atol=1e-12)
    # each number has variance 1 - score², below 1: five standard errors of a sum of three
    np.testing.assert_allclose(sent.mean(axis=0), 3 * x[0, 0, :2], atol=5 * np.sqrt(3 / many))
    assert abs(np.corrcoef(sent.T)[0, 1]) < 5 / np.sqrt(many)  # a draw of its own for every coordinate
    assert (run.bits == 2 * 6).all()


# --- measures ---


def test_the_limit_is_that_of_every_entry():
    x, p = of_classes(9, 12, 3), POLICIES["directed"]
    run = collaborate(x, p, 4)
    expected = np.einsum("nkc,k->nc", x, p.perron)
    np.testing.assert_allclose(run.limit(), expected, atol=1e-13)
    np.testing.assert_allclose(run.distance(2), np.abs(run.statistics[2] - expected[:, None]), atol=1e-13)


@pytest.mark.parametrize("t", [0, 2, 8, 20])
def test_what_is_settled_never_changes_its_largest_entry(t):
    x = without_ties(2000, 8, 3, seed=0)
    x /= np.abs(x).max()
    run = collaborate(x, policy.uniform(topology.erdos_renyi(8, links=14, seed=3)), rounds=120)
    settled = run.settled(t, bound=1.0)
    later = run.statistics[t:].argmax(axis=3)
    assert (later == later[0]).all(axis=0)[settled].all()
    assert settled.any() == (t >= 8)


def test_a_frame_has_a_row_for_every_class():
    x = of_classes(2, 3, 4)
    run = collaborate(x, RING_3, 1, items=["a", "b"])
    frame = run.to_frame()
    assert list(frame.columns) == ["round", "item", "agent", "class", "statistic", "decision"]
    assert len(frame) == 2 * 2 * 3 * 4
    one = frame[(frame["round"] == 1) & (frame["item"] == "b") & (frame["agent"] == 2)]
    np.testing.assert_array_equal(one["statistic"], run.statistics[1, 1, 2])
    assert one["class"].tolist() == [0, 1, 2, 3]
    assert set(one["decision"]) == {run.decisions()[1, 2]}


def test_what_rounding_left_of_a_sum_decides_nothing():
    run = collaborate([[[0.0, 0.0, 9e-7]] * 3], RING_3, 0)
    assert run.decisions().tolist() == [[2, 2, 2]]
    with pytest.raises(ScoreError, match="must sum to zero"):
        collaborate(np.full((1, 3, 3), 1.7e308), RING_3, 0)
