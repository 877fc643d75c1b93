"""Chebyshev, push-sum, running sums and flooding: against closed forms, and what they promise."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev as series

from collegium import check_rule, collaborate, fusion, links, policy, schedule, topology
from collegium.errors import RuleError, ScoreError
from collegium.kernels import find
from collegium.network import reference_run, validated
from collegium.protocol import Chebyshev, DeGroot, Flood, PushSum, Quantised, RunningSums
from collegium.protocol.base import OWN, RECEIVED, Inbox
from helpers import of_classes, score_record, scores

RING = policy.uniform(topology.ring(12))
DIRECTED = policy.uniform(topology.erdos_renyi(24, links=72, seed=1))


def off(run, x):
    return np.abs(run.statistics[-1] - x.mean(axis=1, keepdims=True)).max()


@pytest.mark.parametrize(
    "network",
    [
        RING,
        policy.metropolis(topology.grid(3, 4)),
        policy.uniform(topology.star(7)),
        policy.uniform(topology.complete(4)),
    ],
    ids=repr,
)
def test_chebyshev_is_the_polynomial(network):
    """x T_t(A/σ) / T_t(1/σ), by the eigenvalues of A and NumPy's own Chebyshev series."""
    x, sigma = scores(6, network.size), network.slem
    run = collaborate(x, network, 15, Chebyshev())
    values, vectors = np.linalg.eig(network.A)
    for t in range(16) if sigma > 1e-9 else (0, 1, 2):
        if sigma <= 1e-9:
            expected = x @ np.linalg.matrix_power(network.A, t)
        else:
            T = [0] * t + [1]
            shrunk = series.chebval(values.real / sigma, T) / series.chebval(1 / sigma, T)
            expected = (x @ vectors * shrunk) @ np.linalg.inv(vectors)
        np.testing.assert_allclose(run.statistics[t], expected.real, atol=1e-10)


def test_chebyshev_needs_fewer_rounds():
    ring, x = policy.uniform(topology.ring(60)), scores(4, 60)

    def rounds_to_1_percent(rule):
        run = collaborate(x, ring, 1500, rule)
        left = np.abs(run.statistics - x.mean(axis=1)[None, :, None]).max(axis=(1, 2))
        return int((left <= 0.01 * left[0]).argmax())

    assert 0 < 8 * rounds_to_1_percent(Chebyshev()) < rounds_to_1_percent(DeGroot())


def test_chebyshev_refuses_networks_it_could_diverge_on():
    for sigma in (None, 0.9):
        with pytest.raises(RuleError, match=r"Chebyshev averaging needs reversible weights, .* Use PushSum"):
            collaborate(scores(3, 24), DIRECTED, 5, Chebyshev(sigma))
    with pytest.raises(RuleError, match="the same in all rounds"):
        collaborate(scores(3, 12), schedule.exact(12), 4, Chebyshev())
    with pytest.raises(RuleError, match="must be below 1"):
        Chebyshev(1.0)


def test_chebyshev_rounded_stays_within_the_bound_it_asks_for():
    x = np.sign(scores(500, 12) + 0.01)
    with pytest.raises(ScoreError, match=r"takes scores up to"):
        collaborate(x, RING, 20, Quantised(Chebyshev(), 8, 1.2))
    run = collaborate(x, RING, 20, Quantised(Chebyshev(), 10, 1.5))
    assert off(run, x) < 0.3


@pytest.mark.parametrize(
    ("rule", "over"),
    [
        (RunningSums(), links.Cut([0], 1)),  # agent 0 is never heard and hears nobody
        (RunningSums(), links.Lossy(1.0)),
        (PushSum(), links.Lossy(1.0)),
        (PushSum(), links.Lossy(0.6, seed=1)),  # compiled
    ],
    ids=str,
)
def test_an_agent_that_gives_all_and_gets_nothing_keeps_its_statistic(rule, over):
    x = np.random.default_rng(0).normal(size=(3, 12))
    after = collaborate(x, RING, 2000, rule, links=over).statistics[-1]
    assert np.abs(after).min() > 0
    if over != links.Lossy(0.6, seed=1):
        np.testing.assert_allclose(after[:, 0], x[:, 0], rtol=1e-12)


def test_the_kernel_keeps_what_is_little_as_the_rule_does():
    for rule in (PushSum(), RunningSums()):
        job = validated(scores(3, 12), RING, 700, [rule], 0, links=links.Lossy(0.9, seed=1))
        np.testing.assert_array_equal(find(job, rule)(job).statistics, reference_run(job, rule).statistics)


def test_push_sum_gives_the_plain_average_where_degroot_does_not():
    x = scores(5, 24)
    assert off(collaborate(x, DIRECTED, 80, PushSum()), x) < 1e-12
    assert off(collaborate(x, DIRECTED, 80), x) > 1e-2
    assert (
        off(collaborate(x, schedule.alternating([DIRECTED, policy.uniform(topology.ring(24))]), 200, PushSum()), x)
        < 1e-12
    )


def test_running_sums_are_exact_although_messages_are_lost():
    x = np.random.default_rng(0).normal(size=(20, 24))
    for loss, rounds, most in ((0.0, 60, 1e-11), (0.3, 60, 1e-5), (0.5, 120, 1e-5)):
        run = collaborate(x, DIRECTED, rounds, RunningSums(), links=links.Lossy(loss, seed=1))
        assert off(run, x) < most
    assert off(collaborate(x, DIRECTED, 60, PushSum(), links=links.Lossy(0.3, seed=1)), x) > 1e-2
    late = collaborate(x, DIRECTED, 200, RunningSums(), links=links.Delayed(0, 3, seed=1))
    assert off(late, x) < 1e-10
    np.testing.assert_allclose(
        collaborate(x, DIRECTED, 9, RunningSums()).statistics,
        collaborate(x, DIRECTED, 9, PushSum()).statistics,
        atol=1e-12,
    )


def test_running_sums_conserve_mass():
    """What agents have and what waits on the links is the sum of all scores, in every round."""
    rule, x, rng = RunningSums(), scores(4, 24), np.random.default_rng(0)
    seats = DIRECTED.at(1)
    states = [rule.init(seat, x[:, seat.agent, None]) for seat in seats]
    for _ in range(30):
        states = [rule.emit(seat, state, None)[1] for seat, state in zip(seats, states, strict=True)]
        given = np.stack([state.given for state in states])
        for k, seat in enumerate(seats):
            came = (rng.random((len(seat.senders), 4)) < 0.5) & (seat.senders != k)[:, None]
            inbox = _inbox(given[seat.senders], came, seat, given[k])
            states[k] = rule.absorb(seat, states[k], inbox)
        waiting = sum(
            given[l] - state.taken[:, place]
            for seat, state in zip(seats, states, strict=True)
            for place, l in enumerate(seat.senders.tolist())
            if l != seat.agent
        )
        total = sum(state.z for state in states) + waiting
        np.testing.assert_allclose(total, np.stack([x.sum(axis=1), np.full(4, 24.0)], axis=1), atol=1e-12)


def _inbox(values, came, seat, own):
    from collegium.protocol import LOST, OWN, RECEIVED, Inbox

    status = np.where(came, RECEIVED, LOST).astype(np.uint8)
    status[seat.own] = OWN
    return Inbox(values, np.broadcast_to(seat.weights[:, None], status.shape), status, own)


def test_running_sums_refuse_networks_that_change_and_few_bits():
    with pytest.raises(RuleError, match="RunningSums needs the same senders in every round"):
        collaborate(scores(3, 12), schedule.pairwise(topology.ring(12)), 9, RunningSums())
    with pytest.raises(ScoreError, match="takes scores up to 0 in 5 rounds"):
        collaborate(scores(3, 12), RING, 5, Quantised(RunningSums(), 16, 100.0))


def test_flooding_takes_as_many_rounds_as_the_network_is_wide():
    x = scores(5, 12)
    run = collaborate(x, RING, 20, Flood())
    for t in range(21):
        right = np.abs(run.statistics[t] - x.mean(axis=1, keepdims=True)).max() < 1e-14
        assert right == (t >= 6)
    # everybody has news in rounds 1 to 6, and in round 7 those who learned the last score pass it on
    assert run.transmissions_by_round[:, 0].tolist() == [24] * 7 + [0] * 13
    assert run.rule.message_bits() == 64 * 13
    classes = of_classes(4, 12, 3)
    last = collaborate(classes, RING, 6, Flood()).statistics[-1]
    np.testing.assert_allclose(last, np.repeat(classes.mean(axis=1, keepdims=True), 12, axis=1), atol=1e-14)


def test_flooding_decides_by_any_fusion_method():
    record = score_record(K=12)
    for method in (fusion.LearnedFusion(), fusion.Vote()):
        method.fit(record)
        run = collaborate(record.test, RING, 6, Flood(decide=fusion.Everybody(method)))
        centre = method.decide(record.test).statistics[:, 0]
        np.testing.assert_array_equal(run.statistics[-1], np.repeat(centre[:, None], 12, axis=1))
        again = collaborate(
            record.test, RING, 60, Flood(decide=fusion.Everybody(method)), links=links.Lossy(0.3, seed=2)
        )
        assert (again.statistics[-1] == centre[:, None]).mean() > 0.5  # a lost message that nobody repeats stays lost


@pytest.mark.parametrize(
    ("rule", "network"),
    [
        (Chebyshev(), policy.uniform(topology.ring(5))),
        (PushSum(), policy.uniform(topology.erdos_renyi(5, links=11, seed=3))),
        (RunningSums(), policy.metropolis(topology.star(5))),
        (Flood(), policy.uniform(topology.ring(4))),
    ],
    ids=str,
)
def test_promises(rule, network):
    held = check_rule(rule, network)
    assert "any order and split of items" in held
    assert "saved and loaded" in held
    assert ("array kernel equals the rule" in held) == (not isinstance(rule, Flood))


@pytest.mark.parametrize("flags", [-1.0, 1e300, 2.0**32])
def test_flooding_takes_nothing_from_flags_that_cannot_be(flags):
    rule, seat = Flood(3), policy.uniform(topology.ring(3)).at(1)[0]
    state = rule.init(seat, np.array([[1.0]]))
    values = np.concatenate([np.full((3, 1, 3), 7.0), np.full((3, 1, 1), flags)], axis=2)
    status = np.array([[OWN], [RECEIVED], [RECEIVED]], np.uint8)
    after = rule.absorb(seat, state, Inbox(values, np.full((3, 1), 1 / 3), status, values[0]))
    assert after.known.tolist() == [[True, False, False]]
