"""Networks that change: against products of matrices, and their refusals."""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import collaborate, kernels, policy, schedule, topology
from collegium.errors import GraphError, PolicyError, RuleError
from collegium.network import reference_run, validated
from collegium.protocol import DeGroot, DeltaTrigger, LabelStability, Quantised, Renormalise, SocialLearning
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
    [DeGroot(), SocialLearning(), DeltaTrigger(0.05), LabelStability(1, 0.1), Quantised(DeltaTrigger(0.1), 5, 2.0)],
    ids=str,
)
@pytest.mark.parametrize("changing", [TURNS, GOSSIP], ids=repr)
def test_the_kernel_is_the_rule_itself(rule, changing):
    for mailbox in ({}, {"mailbox": Renormalise()}):
        job = validated(scores(30, 12), changing, 9, [rule], 4, **mailbox)
        slow, fast = reference_run(job, rule), kernels.find(job, rule)(job)
        np.testing.assert_array_equal(slow.statistics, fast.statistics)
        np.testing.assert_array_equal(slow.costs, fast.costs)


def test_both_reach_the_plain_average():
    x = scores(10, 12)
    for changing, rounds in ((GOSSIP, 3000), (schedule.alternating([policy.metropolis(topology.ring(12))]), 300)):
        last = collaborate(x, changing, rounds, record="final").statistics[-1]
        np.testing.assert_allclose(last, np.repeat(x.mean(axis=1, keepdims=True), 12, axis=1), atol=1e-9)


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
