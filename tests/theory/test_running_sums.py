"""The rate of running sums under loss: against a plain program, and against the simulator."""

import numpy as np
import pytest

from collegium import collaborate, links, policy, protocol, theory, topology
from collegium.errors import PolicyError, RuleError
from collegium.theory.running_sums import _shrinking

DIRECTED = policy.uniform(topology.erdos_renyi(6, links=14, seed=3))


def by_hand(p, loss, rounds, n, rng):
    """Mean squares of what agents and links hold of scores less their mean, with their standard errors."""
    K = p.size
    pairs = [(int(l), int(k)) for l, k in np.argwhere(np.asarray(p.A)) if l != k]
    shares = [1 + sum(l == one for l, _ in pairs) for one in range(K)]
    x = rng.normal(size=(n, K))
    z = x - x.mean(axis=1, keepdims=True)
    waiting = {pair: np.zeros(n) for pair in pairs}
    found = []
    for _ in range(rounds):
        z = z / shares
        for l, k in pairs:
            waiting[l, k] = waiting[l, k] + z[:, l]
        held = z.copy()
        for l, k in pairs:
            came = rng.random(n) >= loss
            held[:, k] += waiting[l, k] * came
            waiting[l, k] = waiting[l, k] * ~came
        z = held
        squares = (z**2).sum(axis=1) + sum(one**2 for one in waiting.values())
        found.append((squares.mean() / (K - 1), squares.std() / (K - 1) / np.sqrt(n)))
    return np.array(found)


@pytest.mark.parametrize("loss", [0.0, 0.3, 0.7])
def test_mean_squares_are_those_of_a_plain_program(loss):
    """In the 99.9 % interval of 20 000 items, round by round."""
    found = by_hand(DIRECTED, loss, 8, 20_000, np.random.default_rng(1))
    left = np.cumprod([one for one, _ in zip(_shrinking(DIRECTED, loss), range(8), strict=False)])
    assert (np.abs(found[:, 0] - left) < 3.3 * found[:, 1]).all()


@pytest.mark.parametrize("loss", [0.1, 0.3, 0.5])
def test_the_simulator_converges_at_that_rate(loss):
    """Over 25 rounds; 1 % of the rate, because the mean of squares of 4 000 items is one of few large ones."""
    ring = policy.uniform(topology.ring(12))
    x = np.random.default_rng(0).normal(size=(4000, 12))
    run = collaborate(x, ring, 40, protocol.RunningSums(), links=links.Lossy(loss, seed=1))
    off = np.sqrt(((run.statistics - x.mean(axis=1)[:, None]) ** 2).mean(axis=(1, 2)))
    assert (off[40] / off[15]) ** (1 / 25) == pytest.approx(theory.running_sums_rate(ring, loss), rel=0.01)


def test_without_loss_it_is_that_of_the_shares():
    """The second-largest eigenvalue modulus of the matrix that divides what an agent has among its receivers."""
    heard = np.asarray(DIRECTED.A) > 0
    shares = heard / heard.sum(axis=1, keepdims=True)
    values = np.sort(np.abs(np.linalg.eigvals(shares)))
    assert theory.running_sums_rate(DIRECTED) == pytest.approx(values[-2], rel=0.01)


def test_more_loss_is_slower():
    rates = [theory.running_sums_rate(DIRECTED, loss) for loss in (0, 0.2, 0.4, 0.6, 0.8)]
    assert (np.diff(rates) > 0).all()
    assert rates[-1] < 1


def test_refusals():
    with pytest.raises(RuleError, match="must be below 1, got 1"):
        theory.running_sums_rate(DIRECTED, 1.0)
    with pytest.raises(PolicyError, match="at most 400 agents and links, and here are 200 agents and 400 links"):
        theory.running_sums_rate(policy.uniform(topology.ring(200)))
    with pytest.raises(PolicyError, match="that of a Policy, got Graph"):
        theory.running_sums_rate(topology.ring(5))
