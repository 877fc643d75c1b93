"""The paper's bounds with measured quantities: by hand, held as often as they say, and sharper than with τβ²Σw²."""

import numpy as np
import pytest
from scipy import stats

from collegium import collaborate, policy, theory, topology
from collegium.errors import AssumptionError
from worlds import NETWORKS, World, coupled

TIMES = 400
ROUNDS = 4


def rarely_less(share, times=TIMES):
    return stats.binom.ppf(0.001, times, share)


def test_by_hand():
    p = NETWORKS["directed"]
    c, y = World(np.linspace(0.4, 0.9, 12)).draw(500, np.random.default_rng(0))
    run = collaborate(c, p, ROUNDS)
    found = theory.empirical_bernstein(run.statistics, y, 1.0)
    gaussian = theory.sub_gaussian(run.statistics, y)
    t, k = 3, 5
    by_class, normal = [], []
    L = np.log(8 / 0.05)
    for sign in (1, -1):
        x = sign * run.statistics[t, y == sign, k]
        n, s = len(x), np.sqrt(np.cov(x))
        m = x.mean() - s * np.sqrt(2 * L / n) - 14 * L / (3 * (n - 1))
        v = (s + 2 * np.sqrt(2 * L / (n - 1))) ** 2
        by_class.append(v / (v + m**2))
        low = x.mean() - stats.t.ppf(1 - 0.05 / 4, n - 1) * s / np.sqrt(n)
        high = (n - 1) * s**2 / stats.chi2.ppf(0.05 / 4, n - 1)
        normal.append(np.exp(-(low**2) / (2 * high)))
    assert found.value[t, k] == pytest.approx(max(by_class))
    assert gaussian.value[t, k] == pytest.approx(max(normal))


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_bernstein_holds_whatever_the_dependence(strength):
    """Scores ±1 of three agents that err together; the true error is counted from the law."""
    world, p = coupled(strength), policy.uniform(topology.ring(3))
    rng = np.random.default_rng(1)
    big, labels = world.draw(200_000, rng)
    true = collaborate(big, p, 1).errors(labels)
    held = 0
    for _ in range(TIMES):
        c, y = world.draw(400, rng)
        value = theory.empirical_bernstein(collaborate(c, p, 1).statistics, y, 1.0, 0.9).value
        held += bool((~(value < true)).all())
    assert held >= rarely_less(0.9)


def test_bernstein_of_independent_views_holds():
    p = NETWORKS["grid"]
    world = World(np.linspace(0.5, 0.9, 12))
    weights = np.stack([np.linalg.matrix_power(p.A, t) for t in range(ROUNDS + 1)])
    rng = np.random.default_rng(2)
    big, labels = world.draw(200_000, rng)
    true = collaborate(big, p, ROUNDS).errors(labels)
    held = 0
    for _ in range(100):
        c, y = world.draw(3000, rng)
        s = collaborate(c, p, ROUNDS).statistics
        value = theory.empirical_bernstein(s, y, 1.0, 0.9, weights=weights).value
        held += bool((~(value < true)).all())
    assert held >= rarely_less(0.9, 100)


def test_bernstein_is_exponential_in_the_number_of_agents():
    p = policy.uniform(topology.complete(60))
    c, y = World(np.full(60, 0.6)).draw(20_000, np.random.default_rng(8))
    s = collaborate(c, p, 1).statistics
    any_dependence = theory.empirical_bernstein(s, y, 1.0).value[1]
    independent = theory.empirical_bernstein(s, y, 1.0, weights=np.stack([np.eye(60), p.A])).value[1]
    assert (independent < 0.1 * any_dependence).all()


@pytest.mark.parametrize("n", [24, 200])
def test_sub_gaussian_holds_for_normal_scores(n):
    """Correlated normal scores: the true error of every agent in every round is a normal tail."""
    p = policy.uniform(topology.erdos_renyi(5, links=12, seed=3))
    rng = np.random.default_rng(3)
    factor = 0.5 * rng.normal(size=(5, 5))
    mean = np.linspace(0.8, 1.6, 5)
    powers = np.stack([np.linalg.matrix_power(p.A, t) for t in range(ROUNDS + 1)])
    spread = np.sqrt(np.einsum("tlk,lm,tmk->tk", powers, factor @ factor.T, powers))
    true = stats.norm.cdf(-(mean @ powers) / spread)
    held = np.zeros(true.shape)
    for _ in range(TIMES):
        y = np.repeat([1, -1], n // 2)
        c = y[:, None] * mean + rng.normal(size=(n, 5)) @ factor.T
        held += ~(theory.sub_gaussian(collaborate(c, p, ROUNDS).statistics, y, 0.9).value < true)
    assert (held >= rarely_less(0.9)).all()


def test_sub_gaussian_is_far_sharper_than_the_range():
    """Scores that are rarely near β: what is measured is small, what is assumed is not."""
    p = NETWORKS["grid"]
    rng = np.random.default_rng(4)
    y = np.where(rng.random(400) < 0.5, 1, -1)
    c = np.clip(0.25 * y[:, None] + 0.3 * rng.normal(size=(400, 12)), -1, 1)
    found = theory.certify(c, y, p, 10, beta=1.0)
    measured = theory.sub_gaussian(collaborate(c, p, 10).statistics, y).value
    assert found.limit > 0.5
    assert measured[-1].max() < 0.1


def test_several_classes_are_held_too():
    p = policy.metropolis(topology.ring(4))
    rng = np.random.default_rng(5)
    draw = lambda n: (lambda y: (np.tanh(np.eye(3)[y][:, None] + 0.5 * rng.normal(size=(n, 4, 3))), y))(  # noqa: E731
        rng.integers(3, size=n)
    )
    big, labels = draw(100_000)
    true = collaborate(big - big.mean(axis=2, keepdims=True), p, 2).errors(labels)
    held = [0, 0]
    for _ in range(60):
        c, y = draw(2000)
        s = collaborate(c - c.mean(axis=2, keepdims=True), p, 2).statistics
        for i, value in enumerate((theory.empirical_bernstein(s, y, 2.0, 0.9).value, theory.sub_gaussian(s, y).value)):
            held[i] += bool((~(value < true)).all())
    assert min(held) >= rarely_less(0.9, 60)


def test_where_nothing_can_be_said():
    y = np.repeat([1, -1], 20)
    rng = np.random.default_rng(6)
    s = rng.normal(size=(2, 40, 3)).clip(-1, 1)
    assert np.isnan(theory.sub_gaussian(s, y).value).all()
    assert theory.empirical_bernstein(s, y, 1.0).is_vacuous


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s, y: theory.sub_gaussian(s[0], y), "shape"),
        (lambda s, y: theory.sub_gaussian(s, np.r_[1, -np.ones(39)]), "at least two items of each class"),
        (lambda s, y: theory.empirical_bernstein(s, y, 0.1), "leave the range"),
        (lambda s, y: theory.empirical_bernstein(s, y, 9.0, weights=np.eye(3)), "shape"),
    ],
)
def test_mistakes_are_named(call, said):
    s, y = np.random.default_rng(7).normal(size=(2, 40, 3)), np.repeat([1, -1], 20)
    with pytest.raises(AssumptionError, match=said):
        call(s, y)
