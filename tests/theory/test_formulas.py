"""The formulas by hand, their limits, what rises and falls, and what is refused."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from collegium import policy, theory, topology
from collegium.errors import AssumptionError
from collegium.theory import Exponential, Hinge, Logistic

# K = 2: agent 0 keeps 3/4 for itself and gives 1/4 to agent 1; agent 1 gives 1/2 each. π = (2/3, 1/3).
TWO = policy.Policy([[0.75, 0.5], [0.25, 0.5]])
THREE = policy.uniform(topology.path(3))  # π = (2/7, 3/7, 2/7)
NETWORKS = [TWO, THREE, policy.uniform(topology.ring(9)), policy.uniform(topology.erdos_renyi(8, links=18, seed=1))]


def test_sufficient_by_hand():
    # Σπ² = 5/9: exp(-0.25 / (2 · 1 · 4 · 5/9)) and with τ = 2 half the exponent.
    assert theory.sufficient(TWO, 0.5, 2.0).value == pytest.approx(np.exp(-0.25 * 9 / 40), rel=1e-14)
    assert theory.sufficient(TWO, 0.5, 2.0, tau=2.0).value == pytest.approx(np.exp(-0.25 * 9 / 80), rel=1e-14)
    # Σπ² = 17/49
    assert theory.sufficient(THREE, 1.0, 1.0).value == pytest.approx(np.exp(-49 / 34), rel=1e-14)


def test_finite_round_by_hand():
    # After a round the columns are (3/4, 1/4) and (1/2, 1/2), 2·|3/4 - 2/3| = 1/6 and 2·|1/2 - 2/3| = 1/3 from π.
    bound = theory.finite_round(TWO, delta=0.9, beta=1.0, rounds=1)
    r = np.array([0.9 - 2 / 6, 0.9 - 2 / 3])
    spread = np.array([10 / 16, 1 / 2])
    np.testing.assert_allclose(bound.parts["r"][1], r, rtol=1e-13)
    np.testing.assert_allclose(bound.value[1], np.exp(-(r**2) / (2 * spread)), rtol=1e-13)
    # Before any round agent 0 is 2·(1/3) from π and agent 1 is 2·(2/3): 0.9 - 4/3 < 0, nothing to say.
    assert np.isnan(bound.value[0]).all()
    raw = theory.finite_round(TWO, delta=0.9, beta=1.0, rounds=1, raw=True)
    np.testing.assert_allclose(raw.parts["r"][:, 0], [0.9 - 2 / 3, 0.9 - 1 / 6], rtol=1e-13)
    assert raw.value[0, 0] == pytest.approx(np.exp(-((0.9 - 2 / 3) ** 2) / 2), rel=1e-13)


def test_finite_round_with_a_rate_is_the_papers():
    # A^t - π1ᵀ shrinks by 1/4 a round: |[A^t]_lk - π_l| = 4^-t · (1/3 or 2/3), so C(A, σ) = 2/3 for σ ≥ 1/4.
    sigma = 0.3
    assert TWO.mixing_constant(sigma) == pytest.approx(2 / 3, rel=1e-12)
    bound = theory.finite_round(TWO, 0.9, 1.0, 3, sigma=sigma)
    r = 0.9 - 2 * 2 * (2 / 3) * sigma ** np.arange(4)
    np.testing.assert_allclose(bound.parts["r"], np.repeat(r[:, None], 2, axis=1), rtol=1e-12)
    exact = theory.finite_round(TWO, 0.9, 1.0, 3)
    known = ~np.isnan(bound.value)
    assert (exact.value[known] <= bound.value[known]).all()


def test_finite_precision_by_hand():
    # b = 2: step 4β/3, V after one round: (4/9)·(5/8) and (4/9)·(1/2); B = 2 bits · 2 links.
    bound = theory.finite_precision(TWO, 0.9, 1.0, 2, bits=2)
    V1 = 4 / 9 * np.array([10 / 16, 1 / 2])
    A2 = np.array([[11 / 16, 5 / 8], [5 / 16, 3 / 8]])
    V2 = V1 + 4 / 9 * (A2**2).sum(axis=0)
    np.testing.assert_allclose(bound.parts["V"], [np.zeros(2), V1, V2], rtol=1e-13)
    r1 = np.array([0.9 - 2 / 6, 0.9 - 2 / 3])
    np.testing.assert_allclose(bound.value[1], np.exp(-(r1**2) / (2 * (np.array([10 / 16, 1 / 2]) + V1))), rtol=1e-13)
    assert bound.parts["B_round"] == 4
    assert bound.parts["B_total"].tolist() == [0, 4, 8]
    raw = theory.finite_precision(TWO, 0.9, 1.0, 2, bits=2, raw=True)
    np.testing.assert_allclose(raw.parts["V"], bound.parts["V"] / 4, rtol=1e-13)


def test_social_learning_by_hand():
    # Σ_l |[A^i]_lk - π_l| is 2/3 · 4^-i and 4/3 · 4^-i; B_mix = 4/3 · (1/4)/(3/4) = 4/9; κ = 8/9.
    bound = theory.social_learning(TWO, 0.5, 1.0, 3)
    assert bound.parts["kappa"] == pytest.approx(8 / 9, rel=1e-9)
    assert np.isnan(bound.value[:2]).all()  # t must exceed 16/9
    A = TWO.A
    heard = A + A @ A
    expected = np.exp(-((2 * 0.5 - 8 / 9) ** 2) / (2 * (heard**2).sum(axis=0)))
    np.testing.assert_allclose(bound.value[2], expected, rtol=1e-8)
    assert theory.social_learning(TWO, 0.5, 1.0, 3, raw=True).parts["kappa"] == pytest.approx(4 / 9, rel=1e-9)


def test_pac_by_hand():
    # N = 100, η = 0.5, β = 1, ρ = 0.01, ε = e⁻²: log(1/ε) = 2.
    e = np.exp(-2)
    assert theory.pac(0.2, 0.01, 1, 0.5, e, 100).value == pytest.approx(0.2 + 0.08 + 0.8 * 3, rel=1e-13)
    assert theory.pac(0.2, 0.01, 1, 0.5, e, 100, refined=True).value == pytest.approx(0.2 + 0.04 + 0.4 + 0.1, rel=1e-13)
    assert theory.pac(0.2, 0.01, 1, 0.5, e, 100, raw=True).value == pytest.approx(0.2 + 0.04 + 0.1, rel=1e-13)
    assert theory.pac([0.1, 0.2], [0.01, 0.02], 1, 0.5, e, [100, 100], refined=True).value.shape == (2,)


def test_margin_loss_lies_between_error_and_margin_counting():
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=(200, 4)), rng.choice([-1, 1], 200)
    loss = theory.margin_loss(f, y, 0.7)
    m = f * y[:, None]
    assert ((m < 0).mean(axis=0) <= loss).all()
    assert (loss <= (m <= 0.7).mean(axis=0)).all()
    by_hand = [np.mean([min(1, max(0, 1 - v / 0.7)) for v in column]) for column in m.T]
    np.testing.assert_allclose(loss, by_hand, rtol=1e-13)


# Losses and the training guarantee

LOSSES = [Logistic(), Hinge(), Exponential(2.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_what_the_assumption_wants(loss):
    x = np.linspace(-6, 6, 4001)
    y = loss(x)
    assert (np.diff(y) <= 1e-15).all()
    assert (np.diff(y, 2) >= -1e-12).all()
    assert (y >= 0).all()
    steepest = np.abs(np.diff(y) / np.diff(x)).max()
    assert steepest <= loss.lipschitz * (1 + 1e-9)
    assert steepest > 0.99 * loss.lipschitz or isinstance(loss, Logistic)
    h = 1e-6
    assert (loss(h) - loss(-h)) / (2 * h) == pytest.approx(loss.slope_at_zero, rel=1e-5)
    assert loss.differentiable_at_zero
    assert loss.at_zero == {Logistic: np.log(2), Hinge: 1.0, Exponential: 1.0}[type(loss)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("r", [0.0, 0.02, 0.1, 0.4, 0.65])
def test_reach_is_where_the_loss_comes_down_to_r(loss, r):
    d = loss.reach(r)
    if isinstance(loss, Logistic) and r == 0:
        assert d == np.inf
        assert loss.reach(-0.1) == np.inf
        return
    assert float(loss(d)) == pytest.approx(r, abs=1e-12)
    assert d == pytest.approx(brentq(lambda x: float(loss(x)) - r - 1e-300, 0, 50), abs=1e-9) or r == 0


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("delta", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("r", [0.05, 0.3])
def test_the_root_solves_its_equation(loss, delta, r):
    d = theory.root(r, delta, loss)
    assert abs(d - delta - (float(loss(d)) - r) / (2 * loss.lipschitz)) < 1e-12
    assert theory.edge(r, delta, loss) == pytest.approx((d - delta) / 4, abs=1e-12)


def test_delta_max_is_where_the_edge_ends():
    most = theory.delta_max(0.3)
    assert most == pytest.approx(-np.log(np.expm1(0.3)), rel=1e-14)
    assert 0 < theory.edge(0.3, most * (1 - 1e-9)) < 1e-6
    with pytest.raises(AssumptionError, match="below δ_max"):
        theory.edge(0.3, most)
    assert theory.delta_max(0.0) == np.inf
    assert theory.delta_max(0.0, Exponential(2.0)) == pytest.approx(3.0)  # its tangent comes down to 0
    assert theory.edge(0.0, 50.0) > 0


def test_margin_training_by_hand():
    # N = (100, 50), π = (2/3, 1/3): N_max = 100, α = 2/3 + 2/3 = 4/3; ρ = 0.02, R° = 0.1, ε = 0.01 · 1/3.
    bound = theory.margin_training(TWO, 0.2, 1.5, [100, 50], [0.03, 0.0], 0.1, [0.0, 0.01])
    E = theory.edge(0.1 + 0.01 / 3, 0.2)
    expected = 1 - 2 * np.exp(-800 / ((4 / 3) ** 2 * 1.5**2) * (E - 0.02) ** 2)
    assert bound.value == pytest.approx(expected, rel=1e-12)
    assert bound.parts["alpha"] == pytest.approx(4 / 3)
    assert bound.parts["N_max"] == 100
    raw = theory.margin_training(TWO, 0.2, 1.5, 100, 0.01, 0.1, raw=True)
    loss = Logistic()
    E_raw = (float(loss(0.2) + loss(1.5)) - 0.2) / 16
    assert raw.value == pytest.approx(1 - np.exp(-800 / 1.5**2 * (E_raw - 0.01) ** 2), rel=1e-12)


def test_one_place_with_all_samples_is_promised_more():
    both = theory.against_central(6, 0.1, 1.0, 6_000, rho_central=0.01, rho_independent=0.02, risk=0.2)
    E = theory.edge(0.2, 0.1)
    assert both.central.parts["failure"] == pytest.approx(2 * np.exp(-8 * 6_000 * (E - 0.01) ** 2))
    assert both.independent.parts["failure"] == pytest.approx(2 * np.exp(-8 * 1_000 * (E - 0.02) ** 2))
    assert both.central.value > both.independent.value


def test_centering_by_hand():
    # π = (2/3, 1/3): raw class means 2/3·2 + 1/3·1 = 5/3 and 2/3·1 - 1/3·2 = 0; center 2/3·1 + 1/3·0 = 2/3.
    effect = theory.centering_effect(TWO, [2.0, 1.0], [1.0, -2.0], [1.0, 0.0])
    assert effect.half_difference == pytest.approx(5 / 6)
    assert effect.midpoint == pytest.approx(5 / 6)
    assert effect.raw_margin == pytest.approx(0, abs=1e-15)
    assert effect.centred_margin == pytest.approx(5 / 6 - 1 / 6)
    assert effect.improves


@pytest.mark.parametrize("seed", range(6))
def test_centering_is_the_margin_it_says(seed):
    rng = np.random.default_rng(seed)
    p = NETWORKS[seed % 4]
    plus, minus, center = rng.normal(1, 1, p.size), rng.normal(-1, 1, p.size), rng.normal(0, 1, p.size)
    effect = theory.centering_effect(p, plus, minus, center)
    margins = {
        name: min(p.perron @ (plus - shift), -(p.perron @ (minus - shift)))
        for name, shift in (("raw", 0.0), ("centred", center))
    }
    assert effect.raw_margin == pytest.approx(margins["raw"], abs=1e-12)
    assert effect.centred_margin == pytest.approx(margins["centred"], abs=1e-12)
    assert effect.improves == (margins["centred"] > margins["raw"])
    best = minimize_scalar(
        lambda chi: -min(p.perron @ plus - chi, chi - p.perron @ minus), bounds=(-9, 9), method="bounded"
    )
    assert -best.fun == pytest.approx(effect.half_difference, abs=1e-4)


# Limits


@pytest.mark.parametrize("p", NETWORKS, ids=repr)
@pytest.mark.parametrize("raw", [False, True])
def test_many_rounds_suffice(p, raw):
    limit = theory.sufficient(p, 0.6, 1.0, tau=1.5).value
    np.testing.assert_allclose(theory.finite_round(p, 0.6, 1.0, 400, 1.5, raw=raw).value[-1], limit, rtol=1e-9)
    sigma = (1 + p.slem) / 2
    np.testing.assert_allclose(theory.finite_round(p, 0.6, 1.0, 3000, 1.5, sigma, raw=raw).value[-1], limit, rtol=1e-6)
    late = theory.social_learning(p, 0.6, 1.0, 6000, 1.5, raw=raw).value[-1]
    np.testing.assert_allclose(np.log(late), np.log(limit), rtol=0.02)  # it comes near like 1/t


@pytest.mark.parametrize("p", NETWORKS, ids=repr)
@pytest.mark.parametrize("raw", [False, True])
def test_many_bits_are_full_precision(p, raw):
    full = theory.finite_round(p, 0.9, 1.0, 30, raw=raw).value
    np.testing.assert_allclose(theory.finite_precision(p, 0.9, 1.0, 30, 40, raw=raw).value, full, rtol=1e-12)


def test_everybody_hears_all_as_much_and_one_round_is_all():
    pi = np.array([0.5, 0.3, 0.2])
    p = policy.Policy(np.tile(pi[:, None], (1, 3)))
    limit = theory.sufficient(p, 0.4, 1.0).value
    for bound in (theory.finite_round(p, 0.4, 1.0, 5), theory.social_learning(p, 0.4, 1.0, 5)):
        np.testing.assert_allclose(bound.value[1:], limit, rtol=1e-9)
    assert theory.rounds_needed(p, 0.4, 1.0) == 1


# What rises and falls, and what does not


@pytest.mark.parametrize("p", NETWORKS, ids=repr)
def test_monotone_where_claimed(p):
    delta = np.linspace(0.05, 0.95, 10)
    assert (np.diff(theory.sufficient(p, delta, 1.0).value) < 0).all()
    assert (np.diff(theory.sufficient(p, 0.5, 1.0, tau=np.linspace(1, 4, 10)).value) > 0).all()
    assert (np.diff(theory.sufficient(p, 0.5, np.linspace(0.6, 4, 10)).value) > 0).all()
    V = theory.finite_precision(p, 0.9, 1.0, 20, np.arange(1, 10)).value[:, -1]
    assert (np.diff(V, axis=0) < 0).all()
    edges = [theory.edge(0.2, d) for d in (0.0, 0.2, 0.5, 1.0)]
    assert (np.diff(edges) < 0).all()
    assert (np.diff([theory.edge(r, 0.2) for r in (0.05, 0.1, 0.3, 0.5)]) < 0).all()
    assert (np.diff([theory.delta_max(r) for r in (0.05, 0.1, 0.3, 0.6)]) < 0).all()


def test_the_uniform_say_is_best_for_a_fixed_margin():
    even = policy.metropolis(topology.path(3))
    assert theory.sufficient(even, 0.5, 1.0).value < theory.sufficient(THREE, 0.5, 1.0).value


def test_more_rounds_can_be_worse_at_few_bits():
    """The paper denies that the bound falls with t: mixing gains little after a while, rounding errors pile up."""
    bound = theory.finite_precision(policy.uniform(topology.ring(9)), 0.9, 1.0, 60, bits=2).value[:, 0]
    known = bound[~np.isnan(bound)]
    best = int(known.argmin())
    assert 0 < best < len(known) - 1
    assert known[-1] > known[best] + 0.01


def test_a_later_round_can_be_worse_at_full_precision():
    """Here agent 2's weights after some round are more even than those after the next."""
    p = policy.Policy(
        [
            [0.00, 1.0, 0.0, 0.0, 0.93],
            [0.11, 0.0, 0.0, 0.6, 0.06],
            [0.40, 0.0, 0.0, 0.1, 0.01],
            [0.49, 0.0, 0.0, 0.3, 0.00],
            [0.00, 0.0, 1.0, 0.0, 0.00],
        ]
    )
    found = theory.finite_round(p, 0.9, 1.0, 40).value[:, 2]
    assert np.diff(found[~np.isnan(found)]).max() > 0.01


# Rounds needed


@pytest.mark.parametrize("p", NETWORKS, ids=repr)
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("with_rate", [False, True])
def test_the_smallest_admissible_round(p, raw, with_rate):
    sigma = (1 + p.slem) / 2 if with_rate else None
    t = theory.rounds_needed(p, 0.3, 1.0, sigma, raw=raw)
    r = theory.finite_round(p, 0.3, 1.0, t + 20, sigma=sigma, raw=raw).parts["r"]
    assert (r[t:] > 0).all()
    assert t == 0 or not (r[t - 1] > 0).all()


def test_many_rounds_are_found_quickly():
    p = policy.uniform(topology.path(100))
    t = theory.rounds_needed(p, 1e-3, 1.0)
    for at, enough in ((t - 1, False), (t, True)):
        apart = np.abs(p.power(at) - p.perron[:, None]).sum(axis=0).max()
        assert (1e-3 - 2 * apart > 0) == enough
    assert t > 10_000


def test_only_ratios_matter():
    usual = theory.finite_round(TWO, 0.9, 1.0, 3).value
    limit = float(theory.sufficient(TWO, 0.5, 1.0).value)
    for scale in (1e-200, 1e150):
        assert theory.sufficient(TWO, 0.5 * scale, scale).value == pytest.approx(limit, rel=1e-12)
        np.testing.assert_allclose(theory.finite_round(TWO, 0.9 * scale, scale, 3).value, usual, rtol=1e-9)


# Shapes


def test_arrays_in_arrays_out():
    p = NETWORKS[2]
    assert theory.sufficient(p, [0.1, 0.2], 1.0).value.shape == (2,)
    assert theory.sufficient(p, np.ones((3, 1)) * 0.2, [1.0, 2.0]).value.shape == (3, 2)
    assert theory.finite_round(p, 0.5, 1.0, 7).value.shape == (8, 9)
    many = theory.finite_precision(p, [[0.5], [0.8]], 1.0, 7, bits=[2, 4, 6])
    assert many.value.shape == (2, 3, 8, 9)
    one = theory.finite_precision(p, 0.8, 1.0, 7, bits=4)
    np.testing.assert_array_equal(many.value[1, 1], one.value)
    assert many.parts["B_total"].shape == (2, 3, 8)
    assert theory.social_learning(p, [0.5, 0.6], 1.0, 7).value.shape == (2, 8, 9)


def test_vacuous_bounds_are_shown_as_such():
    weak = theory.sufficient(TWO, 0.0, 1.0)
    assert weak.value == 1
    assert weak.vacuous
    assert theory.pac(0.5, 1.0, 1.0, 0.1, 0.05, 100).vacuous
    assert theory.pac(0.5, 1.0, 1.0, 0.1, 0.05, 100).value > 1
    early = theory.finite_round(TWO, 0.1, 1.0, 5)
    assert early.vacuous[0].all()
    assert not early.is_vacuous
    assert theory.margin_training(TWO, 0.1, 1.0, 5, 0.0, 0.3).vacuous
    assert theory.margin_training(TWO, 0.1, 1.0, 5, 0.0, 0.3).value < 0


def test_bounds_say_what_they_rest_on():
    said = theory.finite_precision(TWO, 0.5, 1.0, 3, 4).assumptions
    assert any("|f_k| ≤ β" in one for one in said)
    assert any("tensorise" in one for one in said)
    assert any("rounded" in one for one in said)
    assert any("C_δ^raw" in one for one in theory.sufficient(TWO, 0.5, 1.0, raw=True).assumptions)


REFUSED = {
    "negative margin": (lambda: theory.sufficient(TWO, -0.1, 1.0), "margin δ must be 0 or more"),
    "zero margin": (lambda: theory.finite_round(TWO, 0.0, 1.0, 3), "margin δ must be positive"),
    "no range": (lambda: theory.sufficient(TWO, 0.1, 0.0), "β must be positive"),
    "tau": (lambda: theory.sufficient(TWO, 0.1, 1.0, tau=0.5), "at least 1"),
    "periodic": (lambda: theory.sufficient([[0.0, 1.0], [1.0, 0.0]], 0.1, 1.0), "not a primitive .* period 2"),
    "split": (lambda: theory.sufficient(np.eye(2), 0.1, 1.0), "not strongly connected"),
    "rate": (lambda: theory.finite_round(TWO, 0.1, 1.0, 3, sigma=0.2), "between σ_A = 0.25 and 1"),
    "rate of one": (lambda: theory.finite_round(TWO, 0.1, 1.0, 3, sigma=1.0), "between σ_A"),
    "rounds": (lambda: theory.finite_round(TWO, 0.1, 1.0, -1), "rounds must be a whole number"),
    "bits": (lambda: theory.finite_precision(TWO, 0.1, 1.0, 3, 2.5), "bits must be whole"),
    "no bits": (lambda: theory.finite_precision(TWO, 0.1, 1.0, 3, 0), "between 1 and 64"),
    "rate in words": (lambda: theory.finite_round(TWO, 0.1, 1.0, 3, sigma="a"), "between σ_A"),
    "no samples": (lambda: theory.pac(0.1, 0.1, 1.0, 1.0, 0.1, []), "number of samples"),
    "no loss": (lambda: theory.margin_training(TWO, 0.1, 1.0, 9, 0.0, 0.1, loss="logistic"), "must be a Loss"),
    "negative risk": (lambda: theory.margin_training(TWO, 0.1, 1.0, 9, 0.0, -5.0), "not negative"),
    "negative risk of the edge": (lambda: theory.edge(-0.1, 0.1), "not negative"),
    "many margins": (lambda: theory.rounds_needed(TWO, [0.1, 0.2], 1.0), "one δ"),
    "no statistics": (lambda: theory.margin_loss([], [], 0.5), "at least one item"),
    "one statistic": (lambda: theory.margin_loss(0.3, [1], 0.5), "statistics"),
    "epsilon": (lambda: theory.pac(0.1, 0.1, 1.0, 1.0, 1.0, 10), "ε must lie strictly between 0 and 1"),
    "unaligned": (lambda: theory.pac(0.1, 0.1, 1.0, 1.0, 0.1, [10, 20]), "aligned items, the same N"),
    "margin loss": (lambda: theory.pac(1.5, 0.1, 1.0, 1.0, 0.1, 10), "between 0 and 1"),
    "complexity": (lambda: theory.pac(0.5, -0.1, 1.0, 1.0, 0.1, 10), "not negative"),
    "eta": (lambda: theory.pac(0.5, 0.1, 1.0, 0.0, 0.1, 10), "η must be positive"),
    "infeasible": (lambda: theory.margin_training(TWO, 0.1, 1.0, 9, 0.0, 0.7), "not feasible"),
    "optimisation": (lambda: theory.margin_training(TWO, 0.1, 1.0, 9, 0.0, 0.6, 0.2), "not feasible"),
    "too much margin": (lambda: theory.margin_training(TWO, 9.0, 1.0, 9, 0.0, 0.6), "below δ_max"),
    "too rich": (lambda: theory.margin_training(TWO, 0.1, 1.0, 9, 0.5, 0.1), "too rich"),
    "raw margin": (lambda: theory.margin_training(TWO, 1.0, 1.0, 9, 0.0, 0.1, raw=True), "below β"),
    "raw risk": (lambda: theory.margin_training(TWO, 0.5, 1.0, 9, 0.0, 0.5, raw=True), r"below \(Φ\(δ\)"),
    "agents": (lambda: theory.margin_training(TWO, 0.1, 1.0, [1, 2, 3], 0.0, 0.1), "one per agent"),
    "infinite": (lambda: theory.sufficient(TWO, np.inf, 1.0), "finite"),
    "text": (lambda: theory.sufficient(TWO, "much", 1.0), "number"),
    "shapes": (lambda: theory.sufficient(TWO, [0.1, 0.2], [1.0, 2.0, 3.0]), "cannot be broadcast"),
    "means": (lambda: theory.centering_effect(TWO, [1.0], [0.0, 0.0], [0.0, 0.0]), "each of the 2 agents"),
    "range": (lambda: Exponential(0.0), "range of the exponential"),
    "large": (
        lambda: theory.finite_round(policy.uniform(topology.ring(1500)), 0.1, 1.0, 1),
        "every pair of agents",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_violated_assumptions_are_named(name):
    call, sentence = REFUSED[name]
    with pytest.raises(AssumptionError, match=sentence):
        call()
