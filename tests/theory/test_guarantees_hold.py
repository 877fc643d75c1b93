"""Every bound against a world in which it must hold, by Monte Carlo with a 99.9 % interval; and where it must not."""

import numpy as np
import pytest
from scipy import stats

from collegium import collaborate, policy, theory, topology
from collegium.protocol import DeGroot, Quantised, SocialLearning
from worlds import World, assert_holds, coupled, interval

N = 40_000
NETWORKS = {
    "ring": policy.uniform(topology.ring(12)),
    "grid": policy.metropolis(topology.grid(3, 4)),
    "directed": policy.uniform(topology.erdos_renyi(12, links=40, seed=7)),
}
SKILLS = np.linspace(0.3, 0.9, 12)
ROUNDS = 50


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("center", [0.0, 0.1], ids=["centred right", "centred wrong"])
@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_full_precision(network, center, raw):
    p, world = NETWORKS[network], World(SKILLS, beta=1.3, center=center)
    if raw and center:
        world = World(SKILLS, beta=1.3)
    c, y = world.draw(N, np.random.default_rng(1))
    errors = collaborate(c, p, ROUNDS).errors(y)
    delta = world.margin(p)
    bound = theory.finite_round(p, delta, world.beta, ROUNDS, raw=raw)
    assert_holds(errors, bound.value, N)
    limit = theory.sufficient(p, delta, world.beta, raw=raw)
    assert_holds(np.atleast_1d((c @ p.perron * y <= 0).mean()), np.atleast_1d(limit.value), N)
    assert not bound.vacuous[-1].any()  # it says something in the end


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("bits", [2, 4, 6, 8])
@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_finite_precision(network, bits, raw):
    p, world = NETWORKS[network], World(SKILLS)
    c, y = world.draw(N, np.random.default_rng(2))
    rule = Quantised(DeGroot(), bits=bits, bound=1.0 if raw else 2.0)
    errors = collaborate(c, p, ROUNDS, rule, rng=3).errors(y)
    bound = theory.finite_precision(p, world.margin(p), world.beta, ROUNDS, bits, raw=raw)
    assert_holds(errors, bound.value, N)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_social_learning(network, raw):
    p, world = NETWORKS[network], World(SKILLS)
    c, y = world.draw(N, np.random.default_rng(4))
    errors = collaborate(c, p, ROUNDS, SocialLearning()).errors(y)
    bound = theory.social_learning(p, world.margin(p), world.beta, ROUNDS, raw=raw)
    assert np.isnan(bound.value[0]).all()
    assert_holds(errors, bound.value, N)


@pytest.mark.parametrize("strength", [0.05, 0.2, 0.5])
def test_dependent_views_with_their_own_tau(strength):
    world = coupled(strength)
    tau = theory.tensorisation(world.law)
    assert tau > 1
    for p in (policy.uniform(topology.ring(3)), policy.Policy([[0.6, 0.3, 0.0], [0.4, 0.2, 0.5], [0.0, 0.5, 0.5]])):
        c, y = world.draw(N, np.random.default_rng(5))
        assert_holds(
            collaborate(c, p, 20).errors(y), theory.finite_round(p, world.margin(p), 1.0, 20, tau=tau).value, N
        )


def test_a_view_seen_twelve_times_breaks_the_bound_for_independent_views():
    """No finite τ exists for it: what breaks is the assumption, not the theorem."""
    p = NETWORKS["ring"]
    world = World(np.array([0.6]))
    once, y = world.draw(N, np.random.default_rng(6))
    c = np.repeat(once, 12, axis=1)
    low, _ = interval(collaborate(c, p, 20).errors(y)[-1], N)
    bound = theory.sufficient(p, 0.6 * (1 - 1e-9), 1.0)
    assert (low > bound.value).all()
    assert theory.tensorisation(np.diag([0.8, 0.2])) == np.inf


@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_training_attains_the_margin_as_often_as_promised(raw):
    """Finite classes on signs: the target risk, the complexity and the event C_δ are all computed exactly.

    Each agent sees one of two signs, right with probability 0.99, and chooses between f(x) = βx and f(x) = -βx by the
    empirical logistic risk; then it subtracts the mean of its training scores.
    """
    rng = np.random.default_rng(0)
    p, beta, right, N_k, delta = policy.uniform(topology.ring(5)), 2.0, 0.99, 10_000, 0.05
    loss = theory.Logistic()
    risk = right * loss(beta) + (1 - right) * loss(-beta)
    x = np.where(rng.random(N_k) < 0.5, 1.0, -1.0)
    from collegium.theory.rademacher import finite_class

    rho = finite_class(beta * np.array([x]), draws=1_000).value
    bound = theory.margin_training(p, delta, beta, N_k, rho, float(risk), raw=raw)
    attained = []
    for _ in range(200):
        y = np.where(rng.random((5, N_k)) < 0.5, 1, -1)
        seen = y * np.where(rng.random((5, N_k)) < right, 1, -1)
        sign = np.where((y * seen).mean(axis=1) > 0, 1, -1)  # the empirical risk falls with the share of right signs
        center = 0.0 if raw else beta * sign * seen.mean(axis=1)
        plus = p.perron @ (beta * sign * (2 * right - 1) - center)
        minus = p.perron @ (-beta * sign * (2 * right - 1) - center)
        attained.append(plus > delta and minus < -delta)
    high = stats.beta.ppf(0.9995, sum(attained) + 1, 200 - sum(attained)) if not all(attained) else 1.0
    assert bound.value <= high
    assert 0 < bound.value < 1
    assert not bound.vacuous


@pytest.mark.parametrize("refined", [False, True])
@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_pac_holds_as_often_as_promised(raw, refined):
    """Threshold functions on one feature, the best on the training items taken: the true error is known exactly."""
    from collegium.theory.rademacher import finite_class

    rng = np.random.default_rng(1)
    beta, eta, epsilon, N_items = 1.0, 0.9, 0.1, 400
    cuts = np.linspace(-2, 2, 41)
    rho = finite_class(np.where(rng.normal(size=N_items)[None] > cuts[:, None], 1.0, -1.0), draws=4000).value
    broken = 0
    for _ in range(200):
        y = np.where(rng.random(N_items) < 0.5, 1, -1)
        x = 0.5 * y + rng.normal(size=N_items)
        f = np.where(x[None] > cuts[:, None], beta, -beta)
        best = int((f * y).mean(axis=1).argmax())
        center = 0.0 if raw else f[best].mean()
        value = theory.pac(
            theory.margin_loss(f[best] - center, y, eta), rho, beta, eta, epsilon, N_items, refined, raw=raw
        ).value
        # c(x) > 0 iff x > cut, as long as the center lies inside (-β, β): it does.
        error = (stats.norm.cdf(cuts[best] - 0.5) + 1 - stats.norm.cdf(cuts[best] + 0.5)) / 2
        broken += error > value
    assert broken <= stats.binom.ppf(0.999, 200, epsilon)
