"""What gets through, against a plain program that keeps every message in a list, one item at a time."""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import collaborate, kernels, links, policy, schedule, topology
from collegium.errors import RuleError
from collegium.network import reference_run, run_job, validated
from collegium.protocol import (
    LOST,
    OWN,
    RECEIVED,
    Chebyshev,
    DeGroot,
    DeltaTrigger,
    HoldLast,
    Outbox,
    PushSum,
    Quantised,
    Renormalise,
    RunningSums,
)
from helpers import POLICIES, RULES, Stubborn, scores

DIRECTED = policy.uniform(topology.erdos_renyi(6, links=14, seed=3))
_RAW = (np.arange(25) * 7 % 11 + 1.0).reshape(5, 5)
UNEVEN = policy.Policy(_RAW / _RAW.sum(axis=0))
LINKS = [links.Perfect(), links.Lossy(0.4, 3), links.Cut([0, 1], 2, 4), links.Delayed(1), links.Delayed(0, 3, seed=2)]
MAILBOXES = [HoldLast(), HoldLast("hold"), Renormalise()]


def by_hand(x, p, rounds, threshold, over, mailbox, item):
    """One item: statistics of every round. A threshold of -1 lets everybody send always."""
    K, ids = p.size, np.arange(9, dtype=np.uint64)
    now, sent, mail, last, newest = list(x), [None] * K, [], {}, {}
    trace = [list(now)]
    for t in range(1, rounds + 1):
        speaks = [sent[k] is None or abs(now[k] - sent[k]) > threshold for k in range(K)]
        sent = [now[k] if speaks[k] else sent[k] for k in range(K)]
        for l in range(K):
            for k in p.graph.receivers(l).tolist():
                delivered, late = over.delivered(l, k, t, ids), over.lateness(l, k, t, ids)
                if delivered is None or delivered[item]:
                    arrival = t if late is None else t + int(late[item])
                    mail.append((arrival, t, l, k, speaks[l], sent[l]))
        now = [combined(k, t, p, mail, sent, last, newest, mailbox) for k in range(K)]
        trace.append(list(now))
    return trace


def combined(k, t, p, mail, sent, last, newest, mailbox):
    values, weights = [], []
    for l in p.graph.neighbours(k).tolist():
        weight = p.A[l, k]
        if l == k:
            values.append(sent[k])
            weights.append(weight)
            continue
        status = "lost"
        for _, sent_in, _, _, spoke, value in sorted(m for m in mail if m[0] == t and m[2:4] == (l, k)):
            if spoke and newest.get((l, k), 0) < sent_in:
                status, newest[l, k], last[l, k] = "received", sent_in, value
            elif not spoke and status == "lost":
                status = "silent"
        gone = {
            HoldLast(): status == "lost" or (status == "silent" and (l, k) not in last),
            HoldLast("hold"): False,
            Renormalise(): status != "received",
        }[mailbox]
        values.append(last.get((l, k), 0.0))
        weights.append(0.0 if gone else weight)
    if 0.0 in weights or mailbox == Renormalise():
        total = 0.0
        for weight in weights:
            total += weight
        weights = [weight / total for weight in weights]
    result = 0.0
    for weight, value in zip(weights, values, strict=True):
        result += weight * value
    return result


@pytest.mark.parametrize("mailbox", MAILBOXES, ids=str)
@pytest.mark.parametrize("over", LINKS, ids=str)
@pytest.mark.parametrize("threshold", [-1.0, 0.1])
def test_what_arrives_is_what_a_plain_program_says(over, mailbox, threshold):
    x = scores(9, 6)
    rule = DeGroot() if threshold < 0 else DeltaTrigger(threshold)
    run = collaborate(x, DIRECTED, 8, rule, links=over, mailbox=mailbox)
    for i in range(9):
        np.testing.assert_array_equal(run.statistics[:, i], by_hand(x[i], DIRECTED, 8, threshold, over, mailbox, i))


def test_messages_are_lost_at_the_rate_and_independently():
    over, ids = links.Lossy(0.3, seed=5), np.arange(4000, dtype=np.uint64)
    ids.flags.writeable = False
    arrived = np.array([[over.delivered(l, 1 - l, t, ids) for t in range(1, 11)] for l in range(2)])
    n = arrived.size
    assert abs(arrived.mean() - 0.7) < 3.3 * np.sqrt(0.21 / n)  # 99.9 %
    both = (arrived[0] & arrived[1]).mean()
    assert abs(both - 0.49) < 3.3 * np.sqrt(0.49 * 0.51 / (n / 2))
    again = (arrived[:, 1:] & arrived[:, :-1]).mean()
    assert abs(again - 0.49) < 4 * np.sqrt(0.49 * 0.51 / n)


def test_losses_follow_the_item_and_not_the_batch():
    x, over = scores(50, 6), links.Lossy(0.3, 1)
    whole = collaborate(x, DIRECTED, 6, links=over).statistics
    part = collaborate(x[20:30], DIRECTED, 6, links=over, items=range(20, 30)).statistics
    np.testing.assert_array_equal(part, whole[:, 20:30])


def test_lost_messages_cost_what_they_cost():
    x = scores(5, 6)
    assert (collaborate(x, DIRECTED, 6, links=links.Lossy(0.5)).transmissions == 6 * DIRECTED.links).all()


def test_nothing_gets_through():
    """Whoever counts itself goes on alone; whoever does not, keeps its own value."""
    x = scores(5, 3)
    for p in (policy.uniform(topology.ring(3)), policy.Policy([[0.0, 0.5, 0.3], [1.0, 0.0, 0.7], [0.0, 0.5, 0.0]])):
        run = collaborate(x, p, 4, links=links.Lossy(1.0))
        np.testing.assert_array_equal(run.statistics[-1], x)


def test_a_cut_heals():
    ring = policy.uniform(topology.ring(6))
    x = np.repeat([[1.0, 1.0, 1.0, -1.0, -1.0, -1.0]], 2, axis=0)
    run = collaborate(x, ring, 200, links=links.Cut([0, 1, 2], 1, 100))
    np.testing.assert_array_equal(run.statistics[100], x)
    np.testing.assert_allclose(run.statistics[-1], 0.0, atol=1e-6)


def test_late_messages_are_quantised_as_any_other():
    rule = Quantised(DeGroot(), 4, 2.0)
    job = validated(scores(5, 6), DIRECTED, 5, [rule], 3, links=links.Delayed(2))
    values = reference_run(job, rule).statistics[1:, ..., 0]
    # before anything arrives, an agent has only its own rounded value
    grid = np.round((values[0] + 2) / (4 / 15))
    np.testing.assert_allclose(values[0], grid * 4 / 15 - 2, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: links.Lossy(1.5), "the loss of a link must be a finite number, at least 0 and at most 1; got 1.5"),
        (lambda: links.Lossy(0.1, seed=-1), "seed must be a whole number"),
        (lambda: links.Delayed(-1), "the least delay must be a whole number"),
        (lambda: links.Delayed(3, 2), "the largest delay must be a whole number, at least 3"),
        (lambda: links.Cut("abc"), "group must be a list of agents' numbers"),
        (lambda: links.Cut([0], 5, 4), "the last round of a cut must be a whole number, at least 5"),
        (lambda: collaborate(np.ones((1, 6)), DIRECTED, links=0.3), "links must be Links such as"),
        (lambda: collaborate(np.ones((1, 6)), DIRECTED, links=links.Cut([7])), "some of agents 0 to 5"),
        (lambda: collaborate(np.ones((1, 6)), DIRECTED, links=links.Cut([])), "some of agents 0 to 5"),
    ],
)
def test_impossible_links_are_refused(make, complaint):
    with pytest.raises(RuleError, match=complaint):
        make()


@pytest.mark.parametrize("mailbox", MAILBOXES, ids=str)
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.max_score(7) > 0.2], ids=str)
@pytest.mark.parametrize("rounds", [0, 7])
def test_the_kernel_for_lossy_links_is_the_rule_itself(rule, mailbox, rounds):
    for p in (DIRECTED, policy.metropolis(topology.grid(2, 3)), UNEVEN, POLICIES["no-self-loops"]):
        job = validated(scores(40, p.size, bound=0.2), p, rounds, [rule], 3, links=links.Lossy(0.5, 9), mailbox=mailbox)
        fast, slow = kernels.find(job, rule)(job), reference_run(job, rule)
        np.testing.assert_array_equal(fast.statistics, slow.statistics)
        np.testing.assert_array_equal(fast.costs, slow.costs)
        if slow.spoke is not None:
            np.testing.assert_array_equal(fast.spoke, slow.spoke)
        last = kernels.find(job._replace(final=True), rule)(job._replace(final=True))
        np.testing.assert_array_equal(last.statistics[0], slow.statistics[-1])


@pytest.mark.parametrize("over", [links.Perfect(), links.Lossy(0.5, 9)], ids=str)
@pytest.mark.parametrize("rule", [PushSum(), RunningSums(), Chebyshev(0.9), None], ids=str)
@pytest.mark.parametrize("classes", [2, 4])
def test_the_kernels_of_quick_averages_are_the_rules_themselves(rule, over, classes):
    """None: eigenvalue steps."""
    for p in (DIRECTED, policy.metropolis(topology.grid(2, 3)), UNEVEN):
        if type(rule) is Chebyshev and not p.is_reversible:
            continue
        net = schedule.eigenvalue_steps(p) if rule is None else p
        one, x = rule or net.rule, np.random.default_rng(1).normal(size=(40, p.size, classes))
        x = x[:, :, 0] if classes == 2 else x - x.mean(axis=2, keepdims=True)
        job = validated(x, net, 7, [one], 3, links=over)
        fast, slow = kernels.find(job, one)(job), reference_run(job, one)
        np.testing.assert_array_equal(fast.statistics, slow.statistics)
        np.testing.assert_array_equal(fast.costs, slow.costs)
        last = kernels.find(job._replace(final=True), one)(job._replace(final=True))
        np.testing.assert_array_equal(last.statistics[0], slow.statistics[-1])


@pytest.mark.parametrize("over", [links.Delayed(1), links.Cut([0], 1, 2), links.Lossy(1.0)])
def test_other_links_are_run_by_the_rule_itself(over):
    job = validated(scores(4, 6), DIRECTED, 5, [DeGroot()], 0, links=over)
    assert kernels.find(job, DeGroot()) is None


@pytest.mark.parametrize("mailbox", MAILBOXES, ids=str)
@pytest.mark.parametrize("over", [links.Perfect(), links.Lossy(0.3, 2)], ids=str)
@pytest.mark.parametrize("rule", [DeGroot(), DeltaTrigger(0.3)], ids=str)
def test_an_items_numbers_do_not_depend_on_the_batch(rule, over, mailbox):
    """Not even where the weights, added up, miss one by a rounding error."""
    assert any(sum(UNEVEN.A[:, k].tolist()) != 1 for k in range(5))
    x = scores(30, 5, bound=2.0)
    for run in (run_job, reference_run):
        whole = run(validated(x, UNEVEN, 9, [rule], 0, links=over, mailbox=mailbox), rule).statistics
        for i in range(30):
            job = validated(x[i : i + 1], UNEVEN, 9, [rule], 0, links=over, mailbox=mailbox, items=[i])
            np.testing.assert_array_equal(run(job, rule).statistics[:, 0], whole[:, i])


@dataclass(frozen=True)
class Late(links.Links):
    """Of round 1 two rounds late, of round 2 at once, of round 3 long after the end."""

    def delivered(self, sender, receiver, t, ids):
        return None

    def lateness(self, sender, receiver, t, ids):
        return np.full(len(ids), {1: 2, 2: 0, 3: 9}[t])


def test_an_overtaken_message_is_none():
    seen = []

    class Watches(Stubborn):
        def absorb(self, seat, state, inbox):
            seen.append((seat.agent, inbox.status[:, 0].tolist(), inbox.values[:, 0, 0].tolist()))
            return super().absorb(seat, state, inbox)

    p = policy.Policy([[0.5, 0.5], [0.5, 0.5]])
    collaborate([[1.0, 3.0]], p, 3, Watches(0.0), links=Late())
    status = [status for agent, status, _ in seen if agent == 0]
    assert status == [[OWN, LOST], [OWN, RECEIVED], [OWN, LOST]]  # in round 3 that of round 1 comes, too late
    values = [values[1] for agent, _, values in seen if agent == 0]
    assert values[2] == values[1]


def test_what_falls_due_while_a_sender_is_not_heard_is_there_afterwards():
    turns = schedule.alternating([policy.uniform(topology.complete(3)), np.eye(3)])
    run = collaborate([[1.0, 2.0, 6.0]], turns, 80, links=links.Delayed(1))
    np.testing.assert_allclose(run.statistics[-1], 3.0, atol=1e-6)


def test_a_loss_next_to_one():
    run = collaborate(scores(4, 6), DIRECTED, 5, links=links.Lossy(1 - 1e-11))
    np.testing.assert_array_equal(run.statistics[-1], scores(4, 6))


def test_a_mask_that_a_rule_keeps_is_its_own():
    class Flips(Stubborn):
        def init(self, seat, x):
            return x, np.ones(len(x), bool)

        def emit(self, seat, state, draws):
            state[1][:] = True if draws.round == 1 else state[0][:, 0] > 0
            return Outbox(state[0], state[1]), state

        def absorb(self, seat, state, inbox):
            state[1][:] = ~state[1]
            return super().absorb(seat, state, inbox)[0], state[1]

    x = scores(20, 6)
    direct = collaborate(x, DIRECTED, 6, Flips(0.2)).statistics
    for over in (links.Lossy(0.0), links.Delayed(0)):
        np.testing.assert_array_equal(collaborate(x, DIRECTED, 6, Flips(0.2), links=over).statistics, direct)
