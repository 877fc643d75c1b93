"""Exact averages of any number of agents in ceil(log2 K) rounds, and one-peer exponential networks beside them."""

import numpy as np
import pytest

from collegium import check_rule, check_schedule, collaborate, links, protocol, schedule
from collegium.errors import GraphError, RuleError
from collegium.policy import uniform
from collegium.protocol import Ceca, HoldLast, Quantised, registry
from collegium.topology import ring
from helpers import of_classes, scores


def mean(x):
    return np.repeat(x.mean(axis=1, keepdims=True), x.shape[1], axis=1)


@pytest.mark.parametrize("K", [*range(1, 35), 63, 64, 65, 100, 1000])
def test_the_average_is_exact_after_as_many_rounds_as_k_has_binary_digits(K):
    x = np.random.default_rng(K).normal(size=(3, K))
    run = collaborate(x, schedule.exact(K))
    assert run.rounds == int(np.ceil(np.log2(K)))
    assert (run.transmissions == K * run.rounds).all()
    np.testing.assert_allclose(run.statistics[-1], mean(x), atol=1e-12)


def test_after_t_rounds_an_agent_has_the_average_of_as_many_before_it():
    """The binary digits of K - 1 that were used: 11 is 1011."""
    x = np.eye(12)  # item l: only agent l has a score, so the statistics are the weights
    run = collaborate(x, schedule.exact(12))
    for t, others in enumerate((0, 1, 2, 5, 11)):
        for k in range(12):
            heard = np.flatnonzero(run.statistics[t, :, k])
            assert set(heard) == {(k - j) % 12 for j in range(others + 1)}
            np.testing.assert_allclose(run.statistics[t, heard, k], 1 / (others + 1), atol=1e-15)


def test_rounds_after_the_last_cost_nothing_and_change_nothing():
    x = scores(9, 12)
    short, long = collaborate(x, schedule.exact(12)), collaborate(x, schedule.exact(12), rounds=20)
    assert (long.transmissions == 48).all()
    assert (long.statistics[4:] == short.statistics[-1]).all()


def test_several_classes():
    x = of_classes(9, 7, 4)
    run = collaborate(x, schedule.exact(7))
    np.testing.assert_allclose(run.statistics[-1], np.repeat(x.mean(axis=1, keepdims=True), 7, axis=1), atol=1e-13)
    assert (run.bits == 7 * 3 * 3 * 64).all()


def test_rounded_messages_are_right_on_average_and_off_by_a_step_a_round_at_most():
    x, repeats = scores(1, 12, bound=0.9), 20_000
    rule = Quantised(schedule.exact(12).rule, bits=4, bound=1.0)
    run = collaborate(np.repeat(x, repeats, axis=0), schedule.exact(12), rule=rule)
    off = run.statistics[-1] - x.mean()
    step = 2.0 / 15
    assert (run.bits == 48 * 4).all()
    assert np.abs(off).max() <= 4 * step
    assert np.abs(off.mean(axis=0)).max() <= 3.9 * off.std(axis=0).max() / np.sqrt(repeats)
    assert off.std() > 0.1 * step


class Alike(links.Links):
    """The same losses for all items, so that items with one score each show the weights."""

    def __init__(self, seed):
        self.seed = seed

    def delivered(self, sender, receiver, t, ids):
        one = links.Lossy(0.2, self.seed).delivered(sender, receiver, t, np.zeros(1, np.uint64))
        return np.repeat(one, len(ids))


@pytest.mark.parametrize("mailbox", [HoldLast(), HoldLast("hold"), protocol.Renormalise()], ids=str)
def test_a_lost_message_leaves_averages_with_unequal_weights(mailbox):
    for seed in range(20):
        last = collaborate(np.eye(12), schedule.exact(12), links=Alike(seed), mailbox=mailbox).statistics[-1]
        np.testing.assert_allclose(last.sum(axis=0), 1, atol=1e-12)
        assert (last >= 0).all()
        assert np.abs(last - 1 / 12).max() > 1e-3


def test_a_message_lost_in_the_first_round_reaches_nobody_later():
    """Agent 5 does not hear agent 4 in round 1: whoever relies on it counts 5 twice and 4 not at all."""
    cut = links.Cut([4], first=1, last=1)
    last = collaborate(np.eye(12), schedule.exact(12), links=cut).statistics[-1]
    assert (np.abs(last[4] - 1 / 12) > 1e-3).any()
    np.testing.assert_allclose(last.sum(axis=0), 1, atol=1e-12)


@pytest.mark.parametrize("K", [1, 2, 5, 12])
def test_promises(K):
    held = check_rule(Ceca(), schedule.exact(K))
    assert {"lossy and late links", "array kernel equals the rule"} <= set(held)
    assert "saved and loaded" in check_schedule(schedule.exact(K))
    assert "saved and loaded" in check_schedule(schedule.one_peer_exponential(K))


def test_the_rule_refuses_other_networks():
    with pytest.raises(RuleError, match=r"Ceca is the rule of schedule\.exact, .* hears 3\. Use DeGroot"):
        collaborate(scores(3, 12), uniform(ring(12)), 3, Ceca())


def test_text():
    assert registry.from_text("exact:12", "schedule") == schedule.exact(12)
    assert registry.to_text(schedule.one_peer_exponential(9)) == "one-peer-exponential:9"


def test_sizes_that_are_none():
    for K in (0, 2.5, True):
        with pytest.raises(GraphError, match="the number of agents of an exact schedule"):
            schedule.exact(K)


@pytest.mark.parametrize("K", [2, 8, 12, 32])
def test_one_peer_exponential(K):
    x = scores(5, K)
    turns = int(np.ceil(np.log2(K)))
    run = collaborate(x, schedule.one_peer_exponential(K), rounds=turns)
    assert (run.transmissions == K * turns).all()
    apart = np.abs(run.statistics[-1] - mean(x)).max()
    assert apart < 1e-15 if K & (K - 1) == 0 else apart > 1e-3
    np.testing.assert_allclose(
        collaborate(x, schedule.one_peer_exponential(K), rounds=80).statistics[-1], mean(x), atol=1e-9
    )


def test_union_has_every_link_that_is_needed():
    needed = schedule.union(schedule.exact(12), 4)
    assert needed.links == 12 * len({1, 3, 6})  # distances 1, 1, 3, 6
    assert needed.is_strongly_connected
