"""Every bound for several classes against a world in which it must hold, by Monte Carlo with a 99.9 % interval."""

import numpy as np
import pytest
from scipy import stats

from collegium import collaborate, policy, theory, topology
from collegium.protocol import DeGroot, Quantised, SocialLearning
from collegium.theory import margins
from collegium.theory.rademacher import finite_class
from worlds import Ballots, assert_holds, interval

N = 10_000
NETWORKS = {
    "ring": policy.uniform(topology.ring(12)),
    "grid": policy.metropolis(topology.grid(3, 4)),
    "directed": policy.uniform(topology.erdos_renyi(12, links=40, seed=7)),
}
RIGHT = np.linspace(0.6, 0.95, 12)
ROUNDS = 40
LEANING = np.array([0.06, 0.02, -0.03, -0.05])


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(
    ("center", "raw"), [(0.0, False), (LEANING, False), (0.0, True)], ids=["centred right", "centred wrong", "raw"]
)
def test_full_precision(network, center, raw):
    p, world = NETWORKS[network], Ballots(RIGHT, 4, beta=1.3, center=center)
    c, y = world.draw(N, np.random.default_rng(1))
    run = collaborate(c, p, ROUNDS)
    bound = theory.finite_round(p, world.margin(p), world.beta, ROUNDS, raw=raw, classes=4)
    assert_holds(run.errors(y), bound.value, N)
    limit = theory.sufficient(p, world.margin(p), world.beta, raw=raw, classes=4)
    wrong = (margins.rivals(run.limit(), y, 4) <= 0).any(axis=1).mean()
    assert_holds(np.atleast_1d(wrong), np.atleast_1d(limit.value), N)
    assert not bound.vacuous[-1].any()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_finite_precision(network, bits, raw):
    p, world = NETWORKS[network], Ballots(RIGHT, 4)
    c, y = world.draw(N, np.random.default_rng(2))
    widest = 3 / 4 * (1 if raw else 2)  # entries of differences within ±β, or ±2β
    assert theory.coarseness(widest, raw=raw, classes=4) == pytest.approx(1)
    errors = collaborate(c, p, ROUNDS, Quantised(DeGroot(), bits=bits, bound=widest), rng=3).errors(y)
    bound = theory.finite_precision(p, world.margin(p), world.beta, ROUNDS, bits, raw=raw, classes=4)
    assert_holds(errors, bound.value, N)


@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_social_learning(raw):
    p, world = NETWORKS["grid"], Ballots(RIGHT, 4)
    c, y = world.draw(N, np.random.default_rng(4))
    errors = collaborate(c, p, ROUNDS, SocialLearning()).errors(y)
    assert_holds(errors, theory.social_learning(p, world.margin(p), 1.0, ROUNDS, raw=raw, classes=4).value, N)


def test_one_rival_is_not_enough():
    """Eight rivals that come and go independently: some overtakes more often than the bound for a single one allows."""
    p, rng, n = NETWORKS["ring"], np.random.default_rng(5), 10_000
    behind = np.where(rng.random((n, 12, 8)) < 0.65, 1.0, -1.0)  # each rival is behind by 1, or ahead
    scores = np.concatenate([np.zeros((n, 12, 1)), -behind], axis=2)
    scores -= scores.mean(axis=2, keepdims=True)
    overtaken = (margins.rivals(np.einsum("nkc,k->nc", scores, p.perron), [0] * n, 9) <= 0).any(axis=1).mean()
    low, _ = interval(overtaken, n)
    assert low > theory.sufficient(p, 0.3 * (1 - 1e-9), 1.0).value
    assert overtaken <= theory.sufficient(p, 0.3 * (1 - 1e-9), 1.0, classes=9).value


@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_training_attains_the_margin_as_often_as_promised(raw):
    """Three classes, three symbols, an agent that may name the symbol seen or the one after it: all is known exactly.

    Symbols are right with probability 0.98, else another; an agent takes the better of the two functions on its items.
    Of each pair of classes the target risk and the complexity are computed exactly or by many draws.
    """
    rng = np.random.default_rng(0)
    p, beta, right, N_k, delta = policy.uniform(topology.ring(5)), 2.0, 0.98, 15_000, 0.05
    loss = theory.Logistic()
    risk = right * loss(beta) + (1 - right) / 2 * (loss(-beta) + loss(0.0))
    pair = 2 * N_k // 3
    symbols = rng.integers(3, size=pair)
    outputs = [beta * ((symbols + shift) % 3 == 0) - beta * ((symbols + shift) % 3 == 1.0) for shift in (0, 1)]
    rho = finite_class(np.array(outputs), draws=2_000).value
    offset = 0.0 if raw else 0.02
    bound = theory.margin_training(p, delta, beta, 0.97 * pair, rho, float(risk), raw=raw, classes=3, offset=offset)
    assert 0 < bound.value < 1
    law = np.where(np.eye(3, dtype=bool), right, (1 - right) / 2)  # [y, symbol]
    attained = []
    for _ in range(200):
        y = rng.integers(3, size=(N_k, 5))
        seen = np.where(rng.random((N_k, 5)) < right, y, (y + rng.integers(1, 3, size=y.shape)) % 3)
        shift = np.where((seen == y).mean(axis=0) > ((seen + 1) % 3 == y).mean(axis=0), 0, 1)
        scores = beta * (np.eye(3)[(seen + shift) % 3] - 1 / 3)
        center = np.zeros((5, 3)) if raw else scores.mean(axis=0)
        means = beta * (np.stack([law[:, (np.arange(3) - s) % 3] for s in shift], axis=1) - 1 / 3) - center
        f = np.einsum("ykc,k->yc", means, p.perron)
        # Agents' items differ here, so the offset is put together from each agent's own.
        away = 0.0
        for a, b in ((0, 1), (0, 2), (1, 2)):
            own = [scores[np.isin(y[:, k], (a, b)), k].mean(axis=0) for k in range(5)]
            difference = p.perron @ (center - np.array(own))
            away = max(away, abs(difference[a] - difference[b]))
        attained.append(bool((margins.rivals(f, [0, 1, 2], 3) > delta).all()) or (not raw and away > offset))
    high = stats.beta.ppf(0.9995, sum(attained) + 1, 200 - sum(attained)) if not all(attained) else 1.0
    assert bound.value <= high


@pytest.mark.parametrize("refined", [False, True])
@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_pac_holds_as_often_as_promised(raw, refined):
    """Two thresholds on one feature cut it into three classes; the best cuts on the training items are taken."""
    rng = np.random.default_rng(1)
    beta, eta, epsilon, n = 1.0, 0.9, 0.1, 3000
    cuts = [(a, b) for a in np.linspace(-2, 0, 7) for b in np.linspace(0.1, 2, 7)]
    where = np.array([-1.0, 0.0, 1.0])

    def named(x):
        return np.array([np.searchsorted(cut, x) for cut in cuts])

    y = rng.integers(3, size=n)
    leads = beta * margins.rivals(
        np.moveaxis(np.eye(3)[named(1.5 * where[y] + rng.normal(size=n))], 0, 1), y, 3
    )  # (n, functions, 2)
    rho = max(finite_class(leads[..., i].T, draws=2000).value for i in (0, 1))
    broken = 0
    for _ in range(200):
        y = rng.integers(3, size=n)
        chosen = named(1.5 * where[y] + rng.normal(size=n))
        best = int((chosen == y).mean(axis=1).argmax())
        f = beta * (np.eye(3)[chosen[best]] - 1 / 3)
        center = 0.0 if raw else f.mean(axis=0)
        loss = theory.margin_loss(f - center, y, eta, classes=3)
        value = theory.pac(loss, rho, beta, eta, epsilon, n, refined, raw=raw, classes=3).value
        # The named class leads by β less a difference of centers, which is smaller: the decision is the named class.
        edges = np.array([-np.inf, *cuts[best], np.inf])
        shares = np.diff(stats.norm.cdf(edges[None, :] - 1.5 * where[:, None]), axis=1)
        broken += 1 - np.trace(shares) / 3 > value
    assert broken <= stats.binom.ppf(0.999, 200, epsilon)
    assert value < 1


def test_the_centers_of_pac_are_as_complex_as_claimed():
    """E sup over centers m, no two entries further apart than β, of Σ r_n (m_y - m_j)/N, by drawing the signs."""
    rng = np.random.default_rng(2)
    for C in (2, 3, 5):
        n, beta = 300, 1.7
        y = rng.integers(C, size=n)
        for i in range(1, C):
            sums = np.zeros((4000, C))
            signs = rng.choice([-1.0, 1.0], (4000, n))
            for c in range(C):
                sums[:, c] = signs[:, y == c].sum(axis=1) - signs[:, (y + i) % C == c].sum(axis=1)
            found = (beta / 2 * np.abs(sums).sum(axis=1) / n).mean()
            assert found <= beta * np.sqrt(C / (2 * n))
            assert found >= 0.75 * beta * np.sqrt(C / (2 * n))  # √(2/π) = 0.8 of it, for many items
