"""The small runs that checks are made of: what they are run on, and how two of them are compared."""

import numpy as np
import pytest

from collegium import check_schedule, policy, topology
from collegium.checks import runs
from collegium.errors import CheckError
from collegium.network import reference_run
from collegium.protocol import DeGroot, DeltaTrigger, Quantised, SocialLearning
from helpers import RULES, Stubborn

RING = policy.uniform(topology.ring(3))


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("d", [1, 4])
def test_scores_fit_the_rule(rule, d):
    for schedule in (*runs.networks(), *runs.changing_networks()):
        job = runs.job(rule, schedule, d=d)
        assert job.scores.shape == (7, schedule.size, d)
        assert 0 < np.abs(job.scores).max() <= rule.max_score(job.rounds)
        if d > 1:
            np.testing.assert_allclose(job.scores.sum(axis=2), 0, atol=1e-12)


def test_rounds_are_fewer_where_messages_outgrow_their_range():
    coarse = Quantised(SocialLearning(), bits=2, bound=1.0)  # a step is 2/3: nothing fits the range after three rounds
    assert runs.job(coarse, RING).rounds == 2
    assert runs.job(DeGroot(), RING).rounds == runs.ROUNDS


def test_a_rule_that_takes_no_score_at_all_is_named(monkeypatch):
    monkeypatch.setattr(Stubborn, "max_score", lambda self, rounds: 0.0, raising=False)
    with pytest.raises(CheckError, match="takes no score at all"):
        runs.job(Stubborn(0.5), RING)


def test_the_networks_are_sound():
    for schedule in (*runs.networks(), *runs.changing_networks()):
        check_schedule(schedule)
    assert runs.networks(RING) == [RING, policy.uniform(topology.ring(1))]


def test_a_difference_is_named_by_its_place():
    job = runs.job(DeltaTrigger(0.2), RING)
    one = reference_run(job, DeltaTrigger(0.2))
    runs.same(one, one, "they differ")
    other = one._replace(statistics=one.statistics.copy())
    other.statistics[3, 1, 2, 0] = 7.0
    with pytest.raises(CheckError, match=r"they differ: round 3, item 1, agent 2 has \S+ and 7\.0"):
        runs.same(one, other, "they differ")
    costs = one._replace(costs=one.costs.copy())
    costs.costs[4, 2] += 1
    with pytest.raises(CheckError, match=r"item 2 costs \d and \d messages in round 5"):
        runs.same(one, costs, "they differ")
    with pytest.raises(CheckError, match=r"shapes \(13, 7, 3, 1\) and \(13, 6, 3, 1\)"):
        runs.same(one, one._replace(statistics=one.statistics[:, 1:]), "they differ")


def test_a_spy_changes_nothing():
    for rule in (DeltaTrigger(0.2), Quantised(DeGroot(), 3, 2.0)):
        job = runs.job(rule, RING)
        spy = runs.Spy(rule)
        runs.same(reference_run(job, rule), reference_run(job, spy), "spying changes numbers")
        assert (len(spy.emitted), len(spy.codes), spy.changed) == (3 * job.rounds, 3 * job.rounds, [])
        assert str(spy) == str(rule)
