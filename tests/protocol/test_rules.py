"""Each rule against the paper's own formulas, computed here another way."""

import numpy as np
import pytest

import collegium
from collegium import collaborate
from collegium._util.randomness import Draws
from collegium.errors import RuleError, ScoreError
from collegium.protocol import (
    LOST,
    OWN,
    RECEIVED,
    SILENT,
    DeGroot,
    DeltaTrigger,
    HoldLast,
    Inbox,
    LabelStability,
    Quantised,
    Renormalise,
    SocialLearning,
)
from collegium.protocol.codec import Quantise
from helpers import MAILBOXES, POLICIES, RULES, scores

EPS = np.finfo(float).eps


@pytest.mark.parametrize("name", POLICIES)
def test_degroot_is_a_power_of_A(name):
    p = POLICIES[name]
    x = scores(20, p.size)
    run = collaborate(x, p, rounds=15)
    for t in range(16):
        # each entry: at most 16 rounds of K products of relative error eps
        np.testing.assert_allclose(run.statistics[t], x @ np.linalg.matrix_power(p.A, t), atol=16 * 12 * EPS)


@pytest.mark.parametrize("name", POLICIES)
def test_degroot_converges_to_the_perron_average(name):
    p = POLICIES[name]
    x = scores(20, p.size)
    last = collaborate(x, p, rounds=600, record="final").statistics[-1]
    np.testing.assert_allclose(last, np.repeat((x @ p.perron)[:, None], p.size, axis=1), atol=1e-12)


@pytest.mark.parametrize("name", ["ring", "grid", "directed"])
def test_disagreement_decays_at_slem(name):
    p = POLICIES[name]
    x = np.random.default_rng(3).normal(size=(40, p.size))
    run = collaborate(x, p, rounds=120)
    spread = np.log(np.abs(run.statistics - (x @ p.perron)[None, :, None]).max(axis=(1, 2)))
    # from round 40 on the second eigenvalue rules; a complex pair makes the decay wobble around its rate
    rate = np.exp((spread[100] - spread[40]) / 60)
    assert abs(rate - p.slem) < 0.01


@pytest.mark.parametrize("name", POLICIES)
def test_social_learning_adds_up_powers(name):
    p = POLICIES[name]
    x = scores(20, p.size)
    run = collaborate(x, p, rounds=10, rule=SocialLearning())
    total = np.zeros_like(x)
    assert not run.statistics[0].any()
    for t in range(1, 11):
        total = total + x @ np.linalg.matrix_power(p.A, t)
        np.testing.assert_allclose(run.statistics[t], total, atol=200 * 12 * EPS)


def delta_by_hand(x, A, rounds, threshold):
    """The appendix protocol for one item, by its own words, with dense matrices."""
    sent, links = x.copy(), (A > 0) & ~np.eye(len(A), dtype=bool)
    cost = links.sum()
    trace = [x, sent @ A]
    for _ in range(2, rounds + 1):
        new = trace[-1]
        fires = np.abs(new - sent) > threshold
        cost += links[fires].sum()
        sent = np.where(fires, new, sent)
        trace.append(sent @ A)
    return np.array(trace), cost


@pytest.mark.parametrize("name", ["ring", "grid", "directed", "no-self-loops"])
@pytest.mark.parametrize("threshold", [0.011, 0.05, 0.3])
def test_delta_trigger_as_the_appendix_says(name, threshold):
    p = POLICIES[name]
    x = np.random.default_rng(1).normal(size=(30, p.size))
    run = collaborate(x, p, rounds=12, rule=DeltaTrigger(threshold))
    for i in range(30):
        trace, cost = delta_by_hand(x[i], p.A, 12, threshold)
        np.testing.assert_allclose(run.statistics[:, i], trace, atol=1e-13)
        assert run.transmissions[i] == cost


def label_by_hand(x, A, rounds, patience, confidence):
    sent, links = x.copy(), (A > 0) & ~np.eye(len(A), dtype=bool)
    cost = links.sum()
    trace, labels = [x, sent @ A], [np.sign(x), np.sign(sent @ A)]
    for t in range(2, rounds + 1):
        streak = np.array(
            [next((s for s in range(t - 1) if labels[-1 - s][k] != labels[-2 - s][k]), t - 1) for k in range(len(x))]
        )
        fires = ~((streak >= patience) & (np.abs(trace[-1]) >= confidence))
        cost += links[fires].sum()
        sent = np.where(fires, trace[-1], sent)
        trace.append(sent @ A)
        labels.append(np.sign(trace[-1]))
    return np.array(trace), cost


@pytest.mark.parametrize("name", ["ring", "grid", "directed", "no-self-loops"])
@pytest.mark.parametrize(("patience", "confidence"), [(1, 0.0), (1, 0.4), (3, 0.1), (20, 0.0)])
def test_label_stability_as_the_appendix_says(name, patience, confidence):
    p = POLICIES[name]
    x = np.random.default_rng(2).normal(size=(30, p.size))
    run = collaborate(x, p, rounds=12, rule=LabelStability(patience, confidence))
    for i in range(30):
        trace, cost = label_by_hand(x[i], p.A, 12, patience, confidence)
        np.testing.assert_allclose(run.statistics[:, i], trace, atol=1e-13)
        assert run.transmissions[i] == cost


def seat(agent=0):
    return POLICIES["lonely"].at(1)[agent]


def inbox(value):
    column = np.array([[[value]]])
    return Inbox(column, np.ones((1, 1)), np.zeros((1, 1), np.uint8), column[0])


def test_a_silent_agent_may_speak_again():
    rule, ids = LabelStability(1, 0.4), np.zeros(1, np.uint64)
    state = rule.init(seat(), np.array([[1.0]]))
    state = rule.absorb(seat(), state, inbox(1.0))
    assert rule.emit(seat(), state, Draws(0, ids, 0, 2))[0].spoke.tolist() == [False]  # stable and sure
    state = rule.absorb(seat(), state, inbox(0.1))
    outbox, _ = rule.emit(seat(), state, Draws(0, ids, 0, 3))
    assert outbox.spoke.tolist() == [True]  # no longer sure
    assert outbox.values.tolist() == [[0.1]]


@pytest.mark.parametrize("rule", [DeGroot(), SocialLearning(), Quantised(DeGroot(), 3, 2.0)])
def test_full_communication_costs_T_times_links(rule):
    for p in POLICIES.values():
        run = collaborate(scores(9, p.size), p, rounds=7, rule=rule)
        assert (run.transmissions == 7 * p.links).all()
        assert (run.bits == 7 * p.links * (3 if isinstance(rule, Quantised) else 64)).all()


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32])
def test_quantiser_sends_adjacent_levels_without_bias(bits):
    codec = Quantise(bits, bound=2.0)
    levels = codec.decode(np.arange(min(codec.levels, 256)))
    step = 4.0 / (2**bits - 1)
    np.testing.assert_allclose(levels, -2.0 + step * np.arange(len(levels)), atol=8 * EPS)
    values = np.random.default_rng(0).uniform(-2, 2, 50)
    draws = (np.arange(10_000) + 0.5) / 10_000
    for value in values:
        u = draws[:: 1 if bits < 4 else 100]
        sent = codec.decode(codec.index(np.full(len(u), value), u))
        assert np.abs(sent - value).max() <= step * (1 + 1e-9)
        assert len(np.unique(sent)) <= 2
        # an even grid of draws misses the probability by at most one of its cells
        assert abs(sent.mean() - value) <= step / len(sent) * 1.01


@pytest.mark.parametrize("bits", [1, 5, 32])
def test_quantiser_at_its_ends(bits):
    codec = Quantise(bits, bound=0.3)
    for u in (0.0, 0.5, 1 - 2**-32):
        draws = np.full(2, u)
        assert codec.index(np.array([0.3, -0.3]), draws).tolist() == [codec.levels - 1, 0]
    low, high = codec.decode(np.array([0, codec.levels - 1]))
    assert low == -high


def test_quantised_statistics_have_the_right_mean():
    """Unbiased: the mean over items with equal scores is DeGroot's, within a 99.9 % interval."""
    p = POLICIES["directed"]
    x = np.tile(scores(5, 12, bound=1.0)[1], (20_000, 1))
    run = collaborate(x, p, rounds=6, rule=Quantised(DeGroot(), 3, 2.0), rng=4, record="final")
    exact = collaborate(x[:1], p, rounds=6, record="final").statistics[-1, 0]
    final = run.statistics[-1]
    assert (np.abs(final.mean(axis=0) - exact) <= 3.9 * final.std(axis=0) / np.sqrt(len(x))).all()  # 12 agents: 3.9 σ


def test_one_draw_per_sender_heard_by_all_and_by_itself():
    """On a complete network with equal weights everybody combines the same values, so all statistics are equal."""
    p = collegium.policy.uniform(collegium.topology.complete(5))
    run = collaborate(scores(50, 5), p, rounds=4, rule=Quantised(DeGroot(), 2, 2.0))
    assert (run.statistics[1:] == run.statistics[1:, :, :1]).all()


def test_draws_differ_between_senders_rounds_items_and_seeds():
    p = POLICIES["ring"]
    rule = Quantised(DeGroot(), 1, 2.0)
    x = np.full((400, 12), 0.1)
    runs = [collaborate(x, p, rounds=3, rule=rule, rng=seed).statistics for seed in (0, 1)]
    assert not np.array_equal(runs[0], runs[1])
    assert len(np.unique(runs[0][1], axis=0)) > 300  # items
    assert np.ptp(runs[0][1], axis=1).any()  # senders


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rules_pass_their_own_checks(rule):
    assert not [line for line in collegium.check_rule(rule) if "skipped" in line and "codec of its own" not in line]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Quantised(DeGroot(), 0, 1.0), "bits must be a whole number between 1 and 32; got 0"),
        (lambda: Quantised(DeGroot(), 33, 1.0), "between 1 and 32"),
        (lambda: Quantised(DeGroot(), 4.5, 1.0), "between 1 and 32"),
        (lambda: Quantised(DeGroot(), 4, 0.0), "bound of a quantiser must be a finite number, above 0"),
        (lambda: Quantised(DeGroot(), 4, float("nan")), "bound of a quantiser must be a finite number, above 0"),
        (lambda: Quantised(Quantised(DeGroot(), 4, 1.0), 4, 1.0), "not itself quantised"),
        (lambda: Quantised("degroot", 4, 1.0), "wraps a rule"),
        (lambda: DeltaTrigger(-0.1), "threshold of a Δ-trigger must be a finite number, at least 0"),
        (lambda: DeltaTrigger(float("inf")), "at least 0"),
        (lambda: LabelStability(0, 0.1), "patience of label stability"),
        (lambda: LabelStability(1.5, 0.1), "patience of label stability"),
        (lambda: LabelStability(1, -1.0), "confidence of label stability"),
    ],
)
def test_impossible_settings_are_refused(make, complaint):
    with pytest.raises(RuleError, match=complaint):
        make()


def test_social_learning_outgrows_a_quantiser():
    p = POLICIES["ring"]
    rule = Quantised(SocialLearning(), 8, bound=2.0)
    x = np.full((2, 12), 0.5)
    assert collaborate(x, p, rounds=3, rule=rule).rounds == 3
    with pytest.raises(ScoreError, match=r"takes scores up to 0\.\d+ in 4 rounds, but 24 lie outside"):
        collaborate(x, p, rounds=4, rule=rule)


def test_mailboxes():
    own, weights = np.array([[7.0]]), np.array([[0.5], [0.25], [0.25]])

    def read(mailbox, statuses, known=(True, True, True), values=(5.0, 2.0, 0.0)):
        status = np.array(statuses, np.uint8)[:, None]
        found = mailbox.read(Inbox(np.array(values)[:, None, None], weights, status, own), np.array(known)[:, None])
        return found.values[:, 0, 0].tolist(), found.weights[:, 0].tolist()

    as_it_was = [5.0, 2.0, 0.0], [0.5, 0.25, 0.25]
    assert read(HoldLast(), [SILENT, RECEIVED, SILENT]) == as_it_was
    assert read(HoldLast(), [LOST, RECEIVED, SILENT]) == ([5.0, 2.0, 0.0], [0.0, 0.5, 0.5])
    assert read(HoldLast("hold"), [LOST, RECEIVED, LOST]) == as_it_was
    # whoever is silent and was never heard has nothing to hold
    assert read(HoldLast(), [RECEIVED, RECEIVED, SILENT], (True, True, False)) == (
        [5.0, 2.0, 0.0],
        [0.5 / 0.75, 0.25 / 0.75, 0.0],
    )
    assert read(Renormalise(), [SILENT, RECEIVED, LOST]) == ([5.0, 2.0, 0.0], [0.0, 1.0, 0.0])
    assert read(Renormalise(), [OWN, SILENT, SILENT]) == ([5.0, 2.0, 0.0], [1.0, 0.0, 0.0])
    # nobody is left: the last values are held, and of whom nothing ever came, the agent's own stands in
    assert read(Renormalise(), [LOST, SILENT, LOST], (True, True, False)) == ([5.0, 2.0, 7.0], [0.5, 0.25, 0.25])
    with pytest.raises(RuleError, match='means "renormalise" or "hold", got'):
        HoldLast("forget")


def test_renormalise_forgets_the_silent():
    """Two agents who hear each other; one falls silent and the other goes on with itself alone."""
    p = collegium.Policy([[0.5, 0.5], [0.5, 0.5]])
    rule = DeltaTrigger(10.0)
    held = collaborate([[1.0, 3.0]], p, rounds=2, rule=rule).statistics[:, 0]
    alone = collaborate([[1.0, 3.0]], p, rounds=2, rule=rule, mailbox=Renormalise()).statistics[:, 0]
    np.testing.assert_array_equal(held, [[1, 3], [2, 2], [2, 2]])
    np.testing.assert_array_equal(alone, [[1, 3], [2, 2], [1, 3]])  # only its own last word is left


@pytest.mark.parametrize("mailbox", MAILBOXES, ids=str)
def test_without_silence_the_mailbox_does_not_matter(mailbox):
    p = POLICIES["directed"]
    x = scores(10, 12)
    plain = collaborate(x, p, rounds=8).statistics
    np.testing.assert_allclose(collaborate(x, p, rounds=8, mailbox=mailbox).statistics, plain, atol=64 * EPS)
