"""Networks that change: against products of matrices, and their refusals."""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import collaborate, kernels, links, policy, schedule, topology
from collegium.errors import GraphError, PolicyError, RuleError
from collegium.links import Lossy, Perfect
from collegium.network import reference_run, validated
from collegium.protocol import DeGroot, DeltaTrigger, HoldLast, LabelStability, Quantised, Renormalise, SocialLearning
from helpers import scores

PAIRS = [[[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]], [[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]]]
TURNS = schedule.alternating([policy.uniform(topology.ring(12)), policy.metropolis(topology.grid(3, 4))])
GOSSIP = schedule.pairwise(topology.ring(12), seed=3)


def matrix(seats):
    A = np.zeros((len(seats), len(seats)))
    for seat in seats:
        A[seat.senders, seat.agent] = seat.weights
    return A


@pytest.mark.parametrize("changing", [TURNS, GOSSIP, schedule.alternating(PAIRS)], ids=repr)
def test_statistics_are_products_of_the_rounds_matrices(changing):
    x = scores(20, changing.size)
    run = collaborate(x, changing, 9)
    product = x
    for t in range(1, 10):
        A = matrix(changing.at(t))
        np.testing.assert_allclose(A.sum(axis=0), 1, atol=1e-12)
        product = product @ A
        np.testing.assert_allclose(run.statistics[t], product, atol=1e-13)
        links = np.count_nonzero(A) - np.count_nonzero(np.diag(A))
        assert (run.transmissions_by_round[t - 1] == links).all()


@pytest.mark.parametrize(
    "rule",
    [DeGroot(), SocialLearning(), Quantised(DeGroot(), 5, 2.0)],
    ids=str,
)
@pytest.mark.parametrize("changing", [TURNS, GOSSIP], ids=repr)
def test_the_kernel_is_the_rule_itself(rule, changing):
    for mailbox in ({}, {"mailbox": Renormalise()}):
        job = validated(scores(30, 12), changing, 9, [rule], 4, **mailbox)
        slow, fast = reference_run(job, rule), kernels.find(job, rule)(job)
        np.testing.assert_array_equal(slow.statistics, fast.statistics)
        np.testing.assert_array_equal(slow.costs, fast.costs)


SILENT = [DeltaTrigger(0.05), LabelStability(1, 0.1), Quantised(DeltaTrigger(0.1), 5, 2.0)]


@pytest.mark.parametrize("mailbox", [HoldLast(), HoldLast("hold"), Renormalise()], ids=str)
@pytest.mark.parametrize("rule", SILENT, ids=str)
@pytest.mark.parametrize("changing", [TURNS, GOSSIP, schedule.alternating(PAIRS)], ids=repr)
def test_a_silent_agent_means_what_it_sent_to_its_receiver(rule, changing, mailbox):
    """Over links that lose nothing as over perfect ones: who did not hear a message does not have it."""
    x = scores(30, changing.size)
    run, same = (collaborate(x, changing, 9, rule, 4, links=one, mailbox=mailbox) for one in (Perfect(), Lossy(0.0)))
    assert not run.spoke.all()
    np.testing.assert_array_equal(run.statistics, same.statistics)
    np.testing.assert_array_equal(run.transmissions_by_round, same.transmissions_by_round)
    (last,) = collaborate(x, changing, 9, rule, 4, mailbox=mailbox, record="final").statistics
    np.testing.assert_array_equal(last, run.statistics[-1])


def test_what_a_silent_agent_never_sent_to_this_one_is_left_out():
    """Agent 0 sends 4 to agent 1 in round 1 and is silent; agent 2, which hears it in round 2, has nothing of it."""
    first = [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]
    second = [[1, 0, 0.5], [0, 0.5, 0], [0, 0.5, 0.5]]
    run = collaborate([[4.0, 4.0, 1.0]], schedule.alternating([first, second]), 2, DeltaTrigger(0.1))
    assert run.spoke[1, 0].tolist() == [False, False, False]
    assert run.statistics[2, 0].tolist() == [4.0, 4.0, 1.0]
    assert run.transmissions.tolist() == [2]


def test_both_reach_the_plain_average():
    x = scores(10, 12)
    for changing, rounds in ((GOSSIP, 3000), (schedule.alternating([policy.metropolis(topology.ring(12))]), 300)):
        last = collaborate(x, changing, rounds, record="final").statistics[-1]
        np.testing.assert_allclose(last, np.repeat(x.mean(axis=1, keepdims=True), 12, axis=1), atol=1e-9)


def test_gossip_converges_at_its_rate():
    """In mean square by λ₂ of the mean matrix a round at most, and for the scores of its eigenvector at first just so:
    within the 99.9 % interval of 400 seeds."""
    ring, n = topology.ring(8), 400
    pairs = [np.eye(8) - np.outer(g, g) / 2 for k in range(8) for g in [np.eye(8)[k] - np.eye(8)[(k + 1) % 8]]]
    values, vectors = np.linalg.eigh(np.mean(pairs, axis=0))
    slow, x = values[-2], vectors[:, -2]
    left = np.array(
        [
            (collaborate(x[None], schedule.pairwise(ring, seed), 30).statistics[:, 0] ** 2).sum(axis=1)
            for seed in range(n)
        ]
    )
    mean, spread = left.mean(axis=0), 3.3 * left.std(axis=0) / np.sqrt(n)
    assert abs(mean[1] - slow) < spread[1]
    assert (mean <= slow ** np.arange(31) + spread + 1e-12).all()
    assert mean[30] < 0.5


def test_links_that_come_and_go_bring_everybody_together():
    """The disagreement shrinks by the same factor again and again, the more slowly the more is lost."""
    x, ring, rates = scores(200, 12), policy.metropolis(topology.ring(12)), []
    for loss in (0.0, 0.3, 0.9):
        run = collaborate(x, ring, 600, links=links.Lossy(loss, seed=1))
        apart = np.sqrt(run.statistics.var(axis=2).mean(axis=1))
        rates.append((apart[100] / apart[20]) ** (1 / 80))
        assert apart[600] < 0.01 * apart[0]
    assert rates[0] == pytest.approx(ring.slem, rel=1e-6)  # the others of a ring are far below
    assert rates[0] < rates[1] < rates[2] < 1


def test_gossip_picks_every_link_alike():
    """99.9 % of a chi-square over the twelve links of a ring."""
    from scipy import stats

    chosen = [tuple(seat.agent for seat in GOSSIP.at(t) if len(seat.senders) > 1) for t in range(1, 3001)]
    assert all(len(pair) == 2 for pair in chosen)
    counts = [chosen.count(pair) for pair in set(chosen)]
    assert len(counts) == 12
    assert stats.chisquare(counts).pvalue > 1e-3


def test_a_changing_network_has_no_one_limit():
    run = collaborate(scores(5, 12), TURNS, 4)
    for known in (run.limit, run.settled):
        with pytest.raises(RuleError, match="changes from round to round"):
            known()


@dataclass(frozen=True)
class Brings:
    """A schedule with a rule of its own."""

    size: int = 3
    rule: object = SocialLearning()

    def at(self, t):
        return policy.uniform(topology.ring(3)).at(t)


def test_a_schedule_brings_its_rule_unless_told_otherwise():
    assert collaborate(np.ones((1, 3)), Brings(), 2).rule == SocialLearning()
    assert collaborate(np.ones((1, 3)), Brings(), 2, DeGroot()).rule == DeGroot()


@pytest.mark.parametrize(
    ("make", "error", "complaint"),
    [
        (lambda: schedule.alternating([]), PolicyError, "at least one network"),
        (lambda: schedule.alternating(policy.uniform(topology.ring(3))), PolicyError, "takes a list of policies"),
        (
            lambda: schedule.alternating([policy.uniform(topology.ring(3)), policy.uniform(topology.ring(4))]),
            PolicyError,
            r"got networks of \[3, 4\] agents",
        ),
        (lambda: schedule.alternating(PAIRS[:1]), PolicyError, "nothing agent 0 sends ever reaches agent 2"),
        (lambda: schedule.alternating([[[0.5, 0.5], [0.6, 0.5]]]), PolicyError, "columns of A must sum to 1"),
        (lambda: schedule.pairwise(policy.uniform(topology.ring(3))), GraphError, "wants a Graph"),
        (lambda: schedule.pairwise(topology.erdos_renyi(6, links=14, seed=3)), GraphError, "undirected"),
        (lambda: schedule.pairwise(topology.ring(1)), GraphError, "at least two agents"),
        (lambda: collaborate(np.ones((1, 3)), TURNS, 2), Exception, "3 columns, but the network has 12 agents"),
        (lambda: collaborate(np.ones((1, 4)), Brings(4), 2), PolicyError, "must have a seat for each of 4 agents"),
        (lambda: collaborate(np.ones((1, 3)), object(), 2), PolicyError, "must be a Policy or another Schedule"),
    ],
)
def test_impossible_schedules_are_refused(make, error, complaint):
    with pytest.raises(error, match=complaint):
        make()
