"""`Run.settled` is a proof: what it calls settled never flips, whatever the scores within the bound."""

import numpy as np
import pytest

from collegium import collaborate, policy, topology
from collegium.errors import RuleError
from collegium.protocol import SocialLearning

NETWORKS = [
    policy.uniform(topology.ring(6)),
    policy.metropolis(topology.path(4)),
    policy.uniform(topology.erdos_renyi(8, links=14, seed=3)),
]


@pytest.mark.parametrize("p", NETWORKS, ids=repr)
@pytest.mark.parametrize("t", [0, 1, 3, 8])
def test_what_is_settled_never_flips(p, t):
    scores = np.random.default_rng(0).uniform(-1, 1, (3000, p.size))
    run = collaborate(scores, p, rounds=120)
    settled = run.settled(t, bound=1.0)
    later = np.sign(run.statistics[t:])
    assert (later == later[0]).all(axis=0)[settled].all()
    if t == 8:
        assert settled.any()


@pytest.mark.parametrize("p", NETWORKS, ids=repr)
def test_the_criterion_is_the_one_stated(p):
    scores = np.random.default_rng(1).uniform(-2, 2, (50, p.size))
    run = collaborate(scores, p, rounds=9)
    distance = np.abs(np.linalg.matrix_power(p.A, 5) - p.perron[:, None]).sum(axis=0)
    expected = np.abs(run.statistics[5]) > np.abs(scores).max() * (distance + distance.max())
    np.testing.assert_array_equal(run.settled(5), expected)
    np.testing.assert_array_equal(run.settled(), run.settled(9))


def test_everything_is_settled_in_the_end():
    p = NETWORKS[0]
    run = collaborate(np.random.default_rng(2).normal(size=(40, 6)), p, rounds=400)
    assert run.settled().all()
    np.testing.assert_allclose(run.statistics[-1], np.tile(run.limit()[:, None], (1, 6)), atol=1e-10)
    assert (np.diff([run.distance(t).max() for t in range(0, 60, 10)]) < 0).all()


def test_the_distance_is_from_the_limit():
    p = NETWORKS[2]
    scores = np.random.default_rng(3).normal(size=(9, 8))
    run = collaborate(scores, p, rounds=3)
    np.testing.assert_allclose(run.limit(), scores @ p.perron, rtol=1e-12)
    np.testing.assert_allclose(run.distance(2), np.abs(run.statistics[2] - (scores @ p.perron)[:, None]), rtol=1e-12)


def test_the_last_round_alone_needs_a_bound():
    p = NETWORKS[0]
    scores = np.random.default_rng(4).uniform(-1, 1, (30, 6))
    short, full = (collaborate(scores, p, rounds=7, record=record) for record in ("final", "all"))
    np.testing.assert_array_equal(short.settled(bound=1.0), full.settled(bound=1.0))
    for call in (short.settled, short.limit):
        with pytest.raises(RuleError, match='record="all"'):
            call()


def test_a_bound_that_is_none_is_refused():
    run = collaborate(np.full((2, 6), 3.0), NETWORKS[0], rounds=2)
    with pytest.raises(RuleError, match="not within ±1: some statistic is 3"):
        run.settled(0, bound=1.0)


def test_only_for_degroot():
    run = collaborate(np.ones((2, 6)), NETWORKS[0], rounds=2, rule=SocialLearning())
    with pytest.raises(RuleError, match="DeGroot at full precision"):
        run.settled()
    with pytest.raises(RuleError, match="not recorded"):
        collaborate(np.ones((2, 6)), NETWORKS[0], rounds=2).settled(7)
