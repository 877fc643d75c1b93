"""The exact limit of a fixed network in as many rounds as it has eigenvalues."""

import numpy as np
import pytest

from collegium import check_rule, check_schedule, collaborate, policy, schedule, topology
from collegium.errors import PolicyError, RuleError, ScoreError
from collegium.network import reference_run, validated
from collegium.protocol import Polynomial, Quantised
from collegium.protocol.polynomial import message_sizes
from helpers import scores

NETWORKS = {
    "ring": (policy.uniform(topology.ring(12)), 6),
    "grid": (policy.metropolis(topology.grid(3, 4)), 11),
    "star": (policy.metropolis(topology.star(9)), 2),
    "complete": (policy.uniform(topology.complete(5)), 1),
    "directed": (policy.uniform(topology.erdos_renyi(12, links=24, seed=7)), 10),  # complex eigenvalues
    "ring of 100": (policy.uniform(topology.ring(100)), 50),
    "one": (policy.uniform(topology.ring(1)), 0),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_limit_is_exact(name):
    network, rounds = NETWORKS[name]
    steps, x = schedule.eigenvalue_steps(network), scores(8, network.size)
    run, limit = collaborate(x, steps), (x @ network.perron)[:, None]
    assert run.rounds == rounds
    assert (run.transmissions == rounds * network.links).all()
    np.testing.assert_allclose(run.statistics[-1], np.repeat(limit, network.size, axis=1), atol=1e-11)
    if rounds > 2:  # not before
        assert np.abs(run.statistics[-2] - limit).max() > 1e-6
    later = collaborate(x, steps, rounds=rounds + 3)
    assert (later.statistics[rounds:] == run.statistics[-1]).all()
    assert (later.transmissions == run.transmissions).all()


def test_a_matrix_with_fewer_eigenvectors_than_agents():
    """A Jordan block: the eigenvalue 1/4 counts twice, and one step would not remove it."""
    A = np.array([[0.5, 0.25, 0.0], [0.5, 0.5, 0.25], [0.0, 0.25, 0.75]])
    defective = policy.Policy([[0.5, 0.0, 0.25], [0.5, 0.5, 0.0], [0.0, 0.5, 0.75]])
    for matrix in (policy.Policy(A), defective):
        x = scores(5, 3)
        last = collaborate(x, schedule.eigenvalue_steps(matrix)).statistics[-1]
        np.testing.assert_allclose(last, np.repeat((x @ matrix.perron)[:, None], 3, axis=1), atol=1e-9)


def test_eigenvalues_that_rounding_cannot_tell_apart_are_not_taken_for_one():
    """Of a Jordan block of a directed network, which eigenvalues to 1e-8 belong to: one for all left errors of 3e-8."""
    network, x = policy.uniform(topology.erdos_renyi(24, links=60, seed=0)), scores(8, 24)
    run = collaborate(x, schedule.eigenvalue_steps(network))
    assert np.abs(run.statistics[-1] - (x @ network.perron)[:, None]).max() < 1e-12
    assert run.rounds in (22, 23)  # the processor's last bit says whether two of them are found apart


def test_a_rule_longer_than_the_schedule_goes_on_alone():
    """By the kernel as by the rule itself."""
    steps, x = schedule.eigenvalue_steps(NETWORKS["ring"][0]), scores(4, 12)
    longer = Polynomial(((1.0, 0.0, 0.0), *[(1.3, 0.0, -0.3)] * 8))
    run = collaborate(x, steps, 9, longer)
    job = validated(x, steps, 9, [longer], 0)
    np.testing.assert_array_equal(run.statistics, reference_run(job, longer).statistics[..., 0])


def test_what_outgrows_all_numbers_is_refused():
    longer = Polynomial(((1.0, 0.0, 0.0), *[(5.0, -4.0, 0.0)] * 600))
    with pytest.raises(RuleError, match="statistic must be finite, agent 0 has"):
        collaborate(scores(4, 12), NETWORKS["ring"][0], 601, longer)


def test_what_rounding_needs():
    """Messages of the worst scores and the worst rounding errors, tried out one by one."""
    steps = schedule.eigenvalue_steps(NETWORKS["ring"][0])
    growth, rounding = message_sizes(steps.policy, steps.rule, steps.rounds)
    signs = np.sign(np.random.default_rng(0).normal(size=(4000, 12)))
    assert np.abs(collaborate(signs, steps).statistics[:-1]).max() <= growth + 1e-9
    A, injected = steps.policy.A, 0.0
    for t in range(1, steps.rounds):  # of an error in the message of round t, what is in the message of the last round
        product = np.eye(12)
        for alpha, beta, _ in steps.rule.steps[t - 1 : steps.rounds - 1]:
            product = product @ (alpha * A + beta * np.eye(12))
        injected += np.abs(product).sum(axis=0).max()
    assert rounding >= injected - 1e-9
    assert rounding == pytest.approx(84.569, abs=1e-3)


def test_quantised():
    steps, x = schedule.eigenvalue_steps(NETWORKS["ring"][0]), scores(400, 12, bound=0.9)
    run = collaborate(x, steps, rule=Quantised(steps.rule, bits=16, bound=2.0))
    off = run.statistics[-1] - x.mean(axis=1, keepdims=True)
    assert 1e-5 < np.abs(off).max() < 85 * 2 * 2.0 / 2**16
    with pytest.raises(ScoreError, match=r"takes scores up to 0\.67342. in 6 rounds"):
        collaborate(x, steps, rule=Quantised(steps.rule, bits=8, bound=2.0))


def test_promises():
    steps = schedule.eigenvalue_steps(NETWORKS["grid"][0])
    assert {"lossy and late links", "array kernel equals the rule"} <= set(check_rule(steps.rule, steps))
    assert "saved and loaded" in check_schedule(steps)


def test_refusals():
    with pytest.raises(PolicyError, match="eigenvalue steps are those of a Policy, got Exact"):
        schedule.eigenvalue_steps(schedule.exact(3))
    with pytest.raises(PolicyError, match=r"at most 1024 agents, and here are 1089: use protocol\.Chebyshev"):
        schedule.eigenvalue_steps(policy.metropolis(topology.grid(33, 33)))
    with pytest.raises(PolicyError, match=r"numbers would grow up to .* times and rounding would leave errors of"):
        schedule.eigenvalue_steps(policy.Policy([[1 - 1e-12, 1e-12], [1e-12, 1 - 1e-12]]))  # hardly linked
    with pytest.raises(RuleError, match="three numbers a round that sum to 1"):
        Polynomial([(1.0, 1.0, 0.0)])
