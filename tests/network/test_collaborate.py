"""The loop, its results, its refusals, and the equality of its paths."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import collaborate, kernels, policy, sweep, topology
from collegium._util.randomness import child
from collegium.errors import CollegiumError, LabelError, PolicyError, RuleError, ScoreError
from collegium.kernels import averaging, threads
from collegium.network import reference_run, validated
from collegium.protocol import Averaging, DeGroot, DeltaTrigger, LabelStability, Outbox, Quantised, SocialLearning
from collegium.protocol.codec import Quantise
from helpers import MAILBOXES, POLICIES, RULES, Stubborn, scores

RING = POLICIES["ring"]
RING_3 = policy.uniform(topology.ring(3))


def compiled(job, rule):
    """What the kernel gives, which must be there."""
    return kernels.find(job, rule)(job)


def same(one, other):
    np.testing.assert_array_equal(one.statistics, other.statistics)
    np.testing.assert_array_equal(one.costs, other.costs)
    everybody = np.ones(one.statistics.shape[:3], bool)[1:]
    spoke = [everybody if recorded.spoke is None else recorded.spoke for recorded in (one, other)]
    np.testing.assert_array_equal(*spoke)


@pytest.mark.parametrize("mailbox", MAILBOXES, ids=str)
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_all_paths_agree_number_for_number(rule, name, mailbox):
    """The rule itself, blocks of items and ranges of agents: the same statistics and costs, bit for bit."""
    p = POLICIES[name]
    job = validated(scores(21, p.size), p, 9, [rule], 11, mailbox=mailbox)
    slow = reference_run(job, rule)
    for fast in (compiled(job, rule), averaging._run_large(averaging.arrays(job), kernels.numbers(rule))):
        same(slow, fast)


@pytest.mark.parametrize("mailbox", MAILBOXES, ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_sweep_equals_collaborate(rule, mailbox):
    p = POLICIES["directed"]
    x, y = scores(100, 12), np.where(np.arange(100) % 3 == 0, 1, -1)
    swept = sweep(x, p, [rule, DeGroot()], y, rounds=8, rng=5, realisations=3, mailbox=mailbox)
    for m in range(3):
        run = collaborate(x, p, 8, rule, child(5, m), mailbox=mailbox)
        np.testing.assert_array_equal(swept.errors[0, m], run.errors(y))
        for t in range(9):
            short = collaborate(x, p, t, rule, child(5, m), mailbox=mailbox)
            assert swept.transmissions[0, m, t] == short.transmissions.mean()
            assert swept.bits[0, m, t] == short.bits.mean()


@given(n=st.integers(0, 40), K=st.integers(1, 9), rounds=st.integers(0, 6), seed=st.integers(0, 2**64 - 1))
@settings(deadline=None, max_examples=60)
def test_paths_agree_on_any_size(n, K, rounds, seed):
    p = policy.uniform(topology.ring(K))
    rule = Quantised(LabelStability(1, 0.2), 3, 2.0)
    job = validated(scores(n, K, seed % 1000), p, rounds, [rule], seed)
    same(reference_run(job, rule), compiled(job, rule))


def test_batches_and_order_do_not_matter():
    rule, x = Quantised(DeGroot(), 2, 2.0), scores(600, 12)
    whole = collaborate(x, RING, 6, rule, 3).statistics
    pieces = [collaborate(x[i : i + 77], RING, 6, rule, 3, items=range(i, min(i + 77, 600))) for i in range(0, 600, 77)]
    np.testing.assert_array_equal(np.concatenate([piece.statistics for piece in pieces], axis=1), whole)
    order = np.random.default_rng(0).permutation(600)
    np.testing.assert_array_equal(collaborate(x[order], RING, 6, rule, 3, items=order).statistics, whole[:, order])


def test_threads_do_not_matter(monkeypatch):
    rule, x, y = Quantised(DeltaTrigger(0.1), 4, 2.0), scores(3000, 12), np.where(np.arange(3000) % 2, 1, -1)
    answers = []
    for count in ("1", "2", "5"):
        monkeypatch.setenv("COLLEGIUM_THREADS", count)
        threads._pool.cache_clear()
        run = collaborate(x, RING, 10, rule, 1)
        answers.append((run.statistics, run.transmissions, sweep(x, RING, [rule], y, 5, realisations=9).errors))
    threads._pool.cache_clear()
    for other in answers[1:]:
        for one, two in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_calls_from_several_threads():
    x, rule = scores(2000, 12), Quantised(DeGroot(), 4, 2.0)
    expected = collaborate(x, RING, 10, rule).statistics
    found: list[np.ndarray] = []
    workers = [
        threading.Thread(target=lambda: found.append(collaborate(x, RING, 10, rule).statistics)) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4
    for statistics in found:
        np.testing.assert_array_equal(statistics, expected)


def test_a_large_network_in_memory_that_grows_with_its_links():
    K = 100_000
    p = policy.uniform(topology.erdos_renyi(K, links=10 * K, seed=1))
    x = np.random.default_rng(0).normal(size=(2, K))
    run = collaborate(x, p, rounds=60, record="final")
    assert run.statistics.shape == (1, 2, K)
    # σ_A is near 1/2 (an agent that hears one other keeps half of its own), so 60 rounds leave rounding errors only
    np.testing.assert_allclose(run.statistics[-1], np.repeat((x @ p.perron)[:, None], K, axis=1), atol=1e-12)
    loud = collaborate(x, p, rounds=3, rule=Quantised(DeltaTrigger(0.5), 6, 8.0), record="final")
    assert (loud.transmissions >= p.links).all()


def test_a_million_agents():
    K = 1_000_000
    p = policy.uniform(topology.erdos_renyi(K, links=10 * K, seed=1))
    x = np.random.default_rng(0).normal(size=(1, K))
    run = collaborate(x, p, rounds=60, record="final")
    np.testing.assert_allclose(run.statistics[-1, 0], x[0] @ p.perron, atol=1e-12)


def test_decisions_and_errors_at_zero():
    run = collaborate([[0.0, 1.0, -1.0]], RING_3, rounds=0)
    assert run.decisions().tolist() == [[1, 1, -1]]
    both = [run.errors([label], classes=(1, -1))[0].tolist() for label in (1, -1)]
    assert both == [[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]  # undecided is wrong either way


@pytest.mark.parametrize(
    ("y", "classes"),
    [([1, -1], None), ([1, 0], None), ([True, False], None), (["b", "a"], None), (["a", "b"], ("a", "b"))],
)
def test_labels_of_any_kind(y, classes):
    run = collaborate([[1.0, 1.0, 1.0], [-1.0, -1.0, 1.0]], RING_3, rounds=0)
    assert run.errors(y, classes).tolist() == [[0.0, 0.0, 0.5]]


def test_run_remembers_and_pickles():
    run = collaborate(scores(4, 3), RING_3, 2, rng=9, items=["a", "b", "c", "d"])
    assert run.seed == 9
    back = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(back.statistics, run.statistics)
    assert (
        repr(back) == repr(run) == "Run(DeGroot(), 2 rounds, 4 items × 3 agents, 12 transmissions, 768 bits per item)"
    )


@pytest.mark.parametrize("record", ["all", "final"])
def test_to_frame(record):
    run = collaborate(scores(4, 3), RING_3, 2, items=["a", "b", "c", "d"], record=record)
    frame = run.to_frame()
    assert list(frame.columns) == ["round", "item", "agent", "statistic", "decision"]
    last = frame[(frame["round"] == 2) & (frame["item"] == "c")]
    assert last["statistic"].tolist() == run.statistics[-1, 2].tolist()
    assert last["decision"].tolist() == run.decisions()[2].tolist()
    assert len(frame) == (3 if record == "all" else 1) * 12


def test_final_is_the_last_page():
    x = scores(50, 12)
    for rule in RULES:
        everything, last = collaborate(x, RING, 7, rule), collaborate(x, RING, 7, rule, record="final")
        np.testing.assert_array_equal(everything.statistics[-1:], last.statistics)
        np.testing.assert_array_equal(everything.transmissions, last.transmissions)
    with pytest.raises(RuleError, match="only the last round"):
        last.decisions(3)


def test_no_items_and_a_lonely_agent():
    for rule in RULES:
        empty = collaborate(np.empty((0, 12)), RING, 5, rule)
        assert empty.statistics.shape == (6, 0, 12)
        assert empty.transmissions.shape == empty.decisions()[:, 0].shape == (0,)
        assert empty.errors([]).shape == (6, 12)
        lonely = collaborate([[0.5], [-0.25]], policy.uniform(topology.ring(1)), 3, rule)
        assert lonely.transmissions.tolist() == [0, 0]
    assert collaborate([], RING, 5).statistics.shape == (6, 0, 12)
    assert "nothing sent" in repr(empty)
    degroot = collaborate([[0.5], [-0.25]], policy.uniform(topology.ring(1)), 3)
    assert degroot.statistics[-1].tolist() == [[0.5], [-0.25]]


def test_user_rules_run_without_a_kernel():
    run = collaborate(scores(5, 3), RING_3, 4, Stubborn(0.5))
    assert run.statistics.shape == (5, 5, 3)
    assert kernels.find(validated(scores(5, 3), RING_3, 4, [Stubborn(0.5)], 0), Stubborn(0.5)) is None
    y = [1, -1, 1, -1, 1]
    swept = sweep(scores(5, 3), RING_3, [Stubborn(0.5), DeGroot()], y, rounds=4)
    np.testing.assert_array_equal(swept.errors[0, 0], run.errors(y))
    assert (swept.transmissions[1, 0] == 6 * np.arange(5)).all()


@pytest.mark.parametrize(
    ("change", "error", "complaint"),
    [
        (
            {"scores": [[1.0, np.nan, 2.0], [np.nan, 1.0, 1.0]]},
            ScoreError,
            r"NaN: agent 0, 1 of 2 items \(first: item 1\), and 1 more",
        ),
        ({"scores": [[1.0, 2.0, np.inf]]}, ScoreError, r"infinite values: agent 2, 1 of 1 items \(first: item 0\)"),
        (
            {"scores": [1.0, 2.0, 3.0]},
            ScoreError,
            r"shape \(items, agents\) = \(n, 3\), or .*; got an array of shape \(3,\)",
        ),
        ({"scores": np.ones((2, 4))}, ScoreError, "4 columns, but the network has 3 agents"),
        ({"scores": np.ones((3, 4))}, ScoreError, r"pass scores\.T"),
        ({"scores": [["a", "b", "c"]]}, ScoreError, "must be real numbers"),
        ({"scores": [[1.0], [1.0, 2.0]]}, ScoreError, "must be real numbers"),
        ({"rounds": -1}, RuleError, "rounds must be a whole number, at least 0; got -1"),
        ({"rounds": 2.5}, RuleError, "rounds must be a whole number"),
        ({"rounds": True}, RuleError, "rounds must be a whole number"),
        ({"schedule": np.eye(3)}, PolicyError, r"wrap a matrix as Policy\(A\)"),
        ({"rule": "degroot"}, RuleError, "rule must be a Rule"),
        ({"mailbox": "hold"}, RuleError, "mailbox must be a Mailbox"),
        ({"record": "some"}, RuleError, "record must be"),
        ({"rng": -1}, RuleError, "a seed lies between"),
        ({"rng": "seed"}, RuleError, "a seed must be a whole number"),
        ({"items": [1]}, RuleError, "items names 1 items, but there are 2 rows"),
        ({"items": [-1, 2]}, RuleError, "must lie between 0 and"),
        ({"rule": Quantised(DeGroot(), 4, 0.5)}, ScoreError, "agent 1, item 1 has 3"),
    ],
)
def test_bad_input_is_refused_at_the_door(change, error, complaint):
    call = {"scores": [[1.0, 0.0, -1.0], [0.0, 3.0, 1.0]], "schedule": RING_3, "rounds": 2} | change
    with pytest.raises(error, match=complaint) as caught:
        collaborate(**call)
    assert isinstance(caught.value, CollegiumError)


@pytest.mark.parametrize("y", [[1, 1], [0, 1, 2], [1], ["a", "a"]])
def test_bad_labels_are_refused(y):
    n = max(len(y), 2)
    with pytest.raises(LabelError):
        collaborate(np.ones((n, 3)), RING_3, 1).errors(y)
    with pytest.raises(LabelError):
        sweep(np.ones((n, 3)), RING_3, [DeGroot()], y)


def test_bad_sweeps_are_refused():
    with pytest.raises(RuleError, match="at least one rule"):
        sweep(np.ones((2, 3)), RING_3, [], [1, -1])
    with pytest.raises(RuleError, match="realisations"):
        sweep(np.ones((2, 3)), RING_3, [DeGroot()], [1, -1], realisations=0)
    with pytest.raises(ScoreError, match="there are none"):
        sweep(np.ones((0, 3)), RING_3, [DeGroot()], [])


def test_inputs_are_left_alone():
    x = scores(30, 12)
    before = x.copy()
    for rule in (*RULES, SocialLearning()):
        collaborate(x, RING, 4, rule)
        averaging._run_large(averaging.arrays(validated(x, RING, 4, [rule], 0)), kernels.numbers(rule))
    np.testing.assert_array_equal(x, before)


def test_scores_too_large_to_add_up_are_refused():
    with pytest.raises(ScoreError, match="takes scores up to"):
        collaborate([[1.7e308, 1.7e308, -1.7e308]], RING_3, 20, SocialLearning())


@pytest.mark.parametrize(
    "x", [np.ma.masked_array([[1.0, 2.0, 3.0]], mask=[[0, 1, 0]]), [[1 + 0j, 2, 3]], np.array([["2020"] * 3], "M8[Y]")]
)
def test_scores_that_are_no_plain_numbers_are_refused(x):
    with pytest.raises(ScoreError, match="real numbers, none masked"):
        collaborate(x, RING_3, 1)


@pytest.mark.parametrize(
    ("items", "complaint"),
    [("ab", "got str"), ({1, 2}, "got set"), (5, "got int"), (["x", "x"], "'x' stands at 0 and at 1")],
)
def test_bad_item_names_are_refused(items, complaint):
    with pytest.raises(RuleError, match=complaint):
        collaborate(np.ones((2, 3)), RING_3, 1, items=items)


def test_item_names_from_a_generator_are_kept():
    run = collaborate(np.ones((2, 3)), RING_3, 1, items=(name for name in "ab"))
    assert run.to_frame()["item"].tolist() == ["a"] * 3 + ["b"] * 3 + ["a"] * 3 + ["b"] * 3


@pytest.mark.parametrize("number", [np.float32(0.1), np.float16(0.1)])
def test_settings_of_other_precision_mean_the_same_on_every_path(number):
    p, x = policy.uniform(topology.ring(2)), [[0.0, 2 * float(number)]]
    for rule in (
        DeltaTrigger(number),
        LabelStability(np.int8(1), number),
        Quantised(DeGroot(), np.int64(8), number * 3),
    ):
        job = validated(x, p, 3, [rule], 0)
        same(reference_run(job, rule), compiled(job, rule))


@pytest.mark.parametrize("rules", [DeGroot(), 5, ["degroot"]])
def test_what_is_no_list_of_rules_is_refused(rules):
    with pytest.raises(RuleError):
        sweep(np.ones((2, 3)), RING_3, rules, [1, -1])


def test_mixed_sweeps_share_only_what_they_may(monkeypatch):
    """Sharing the outspoken rounds changes no number, whether it fits into memory or not."""
    rules = [*RULES, LabelStability(30, 0.0), LabelStability(5, 0.1)]
    x, y = scores(50, 12), np.where(np.arange(50) % 2, 1, -1)
    shared = sweep(x, RING, rules, y, 12, realisations=2)
    monkeypatch.setattr(averaging, "_SHARED", 0)
    apart = sweep(x, RING, rules, y, 12, realisations=2)
    np.testing.assert_array_equal(shared.errors, apart.errors)
    np.testing.assert_array_equal(shared.transmissions, apart.transmissions)


@pytest.mark.parametrize("round", [1.0, None, 3, -4])
def test_rounds_that_were_not_recorded(round):
    with pytest.raises(RuleError, match="is not recorded"):
        collaborate(np.ones((2, 3)), RING_3, 2).decisions(round)


class Halving(DeGroot):
    """Changes what it inherits: the kernel of DeGroot knows nothing of it."""

    def absorb(self, seat, state, inbox):
        absorbed = super().absorb(seat, state, inbox)
        return absorbed._replace(x=absorbed.x / 2)


@pytest.mark.parametrize("rule", [Halving(), Quantised(Halving(), 8, 2.0)])
def test_a_changed_rule_does_not_run_on_its_parents_kernel(rule):
    x, y = scores(6, 3), [1, -1] * 3
    run = collaborate(x, RING_3, 5, rule)
    slow = reference_run(validated(x, RING_3, 5, [rule], 0), rule)
    np.testing.assert_array_equal(run.statistics, slow.statistics[..., 0])
    assert np.abs(run.statistics[-1]).max() < np.abs(x).max() / 16
    expected = collaborate(x, RING_3, 5, rule, child(0, 0)).errors(y)
    np.testing.assert_array_equal(sweep(x, RING_3, [rule], y, 5).errors[0, 0], expected)


class Coarser(Quantise):
    """Sends other levels than it was made with."""

    def index(self, values, uniform):
        return super().index(values, uniform) // 2 * 2


def test_a_changed_codec_does_not_run_on_its_parents_kernel():
    x = scores(6, 3)
    plain, changed = (Averaging(codec=kind(3, 2.0)) for kind in (Quantise, Coarser))
    slow = reference_run(validated(x, RING_3, 5, [changed], 0), changed)
    run = collaborate(x, RING_3, 5, changed)
    np.testing.assert_array_equal(run.statistics, slow.statistics[..., 0])
    assert np.abs(run.statistics - collaborate(x, RING_3, 5, plain).statistics).max() > 0.1


def test_a_guarantee_belongs_to_an_exact_type():
    """A subclass of DeGroot is given no proof: nobody knows what it does."""
    run = collaborate(scores(6, 3), RING_3, 5, Halving())
    for known in (run.settled, run.limit, run.distance):
        with pytest.raises(RuleError, match="DeGroot at full precision, not for Halving"):
            known()


def test_who_spoke_and_what_each_round_cost():
    x, rule = scores(40, 12), LabelStability(1, 0.05)
    run = collaborate(x, RING, 9, rule)
    assert run.spoke.shape == (9, 40, 12)
    assert run.spoke[0].all()
    assert not run.spoke.all()
    audience = RING.graph.audience_sizes
    np.testing.assert_array_equal(run.spoke @ audience, run.transmissions_by_round)
    np.testing.assert_array_equal(run.transmissions_by_round.sum(axis=0), run.transmissions)
    np.testing.assert_array_equal(run.bits_by_round, 64 * run.transmissions_by_round)
    assert collaborate(x, RING, 9).spoke.all()
    with pytest.raises(RuleError, match='record="all"'):
        collaborate(x, RING, 9, rule, record="final").spoke  # noqa: B018


# --- a rule that breaks its promises is named ---


def broken(**methods):
    return type("Broken", (Stubborn,), methods)(0.5)


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (broken(emit=lambda self, seat, state, draws: (Outbox(state[0][:, 0]), state)), r"shape \(2, 1\).*got \(2,\)"),
        (
            broken(emit=lambda self, seat, state, draws: (Outbox(state[0].astype("f4")), state)),
            "float64, got .*float32",
        ),
        (broken(emit=lambda self, seat, state, draws: (Outbox("0.5"), state)), "float64, got str"),
        (broken(emit=lambda self, seat, state, draws: (Outbox(state[0] * np.nan), state)), "must be finite, got nan"),
        (broken(emit=lambda self, seat, state, draws: (state[0], state)), "must return"),
        (broken(emit=lambda self, seat, state, draws: (Outbox(state[0], np.zeros(2, bool)), state)), "in round 1"),
        (broken(emit=lambda self, seat, state, draws: (Outbox(state[0], [True]), state)), "spoke must be a mask"),
        (
            broken(statistic=lambda self, state: state[0][:, 0]),
            r"float64 of shape \(2, 1\) .* got float64 of shape \(2,\)",
        ),
        (broken(statistic=lambda self, state: state[0] * np.nan), "statistic must be finite, agent 0 has nan"),
        (broken(statistic=lambda self, state: state[0].astype(str)), "must be an array of float64"),
        (
            broken(emit=lambda self, seat, state, draws: Outbox(state[0])),
            "failed in emit, agent 0, round 1: ValueError",
        ),
        (broken(absorb=lambda self, seat, state, inbox: None), "failed in (emit|statistic), agent 0"),
        (broken(absorb=lambda self, seat, state, inbox: inbox.words), "failed in absorb, agent 0, round 1: Attribute"),
    ],
)
def test_a_rule_that_breaks_its_promises_is_named(rule, complaint):
    with pytest.raises(RuleError, match=complaint):
        collaborate([[1.0, 0.0, -1.0], [0.0, 3.0, 1.0]], RING_3, 3, rule)


def test_a_message_beyond_the_quantiser_is_refused():
    rule = Quantised(broken(emit=lambda self, seat, state, draws: (Outbox(state[0] + 5), state)), 4, 2.0)
    with pytest.raises(ScoreError, match="message 6 lies outside"):
        collaborate([[1.0, 0.0, -1.0]], RING_3, 3, rule)


def test_bits_follow_from_codec_and_width_whatever_a_rule_claims():
    class Claims:
        def message_bits(self, d=1):
            return 3

    with pytest.raises(RuleError, match="must not define message_bits"):
        type("Cheat", (Claims, Stubborn), {})
    with pytest.raises(RuleError, match="must not define index: what a message becomes is its codec's matter"):
        type("Trunc", (Quantised,), {"index": lambda self, values, uniform: values})


def test_scores_are_the_callers_own():
    """Even a rule that works in place, on one item or one agent, leaves them alone."""

    def absorb(self, seat, state, inbox):
        state[0][:] = 7.0
        return state

    for x, p in (([[1.0, 2.0, 3.0]], RING_3), ([[1.0], [2.0]], policy.uniform(topology.ring(1)))):
        given = np.array(x)
        collaborate(given, p, 2, broken(absorb=absorb))
        np.testing.assert_array_equal(given, x)


def test_a_term_of_ones_own_is_for_messages_that_differ():
    rule = broken(emit=lambda self, seat, state, draws: (Outbox(state[0], own=state[0] + 9), state))
    x = scores(4, 3)
    np.testing.assert_array_equal(
        collaborate(x, RING_3, 3, rule).statistics, collaborate(x, RING_3, 3, Stubborn(0.5)).statistics
    )
    bad = broken(
        emit=lambda self, seat, state, draws: (Outbox(np.stack([state[0]] * 2, axis=1), own=np.zeros(1)), state)
    )
    with pytest.raises(RuleError, match=r"own must be finite float64 of shape \(4, 1\)"):
        collaborate(x, RING_3, 3, bad)


def test_one_message_per_receiver():
    """A rule that tells each receiver its own number adds up what it was told."""

    def emit(self, seat, state, draws):
        own = np.zeros_like(state[0])
        return Outbox(np.stack([state[0] * (1 + int(r)) for r in seat.receivers], axis=1), own=own), state

    def absorb(self, seat, state, inbox):
        return (inbox.values.sum(axis=0),)

    run = collaborate([[1.0, 10.0, 100.0]], RING_3, 1, broken(emit=emit, absorb=absorb))
    assert run.statistics[1].tolist() == [[110.0, 2 * 101.0, 3 * 11.0]]


def test_large_costs_are_written_out():
    run = collaborate(np.ones((2, 5)), policy.metropolis(topology.ring(5)), 20)
    assert "200 transmissions, 12800 bits per item" in repr(run)
