"""What follows from the theorems: by hand, and against worlds in which it must hold."""

import numpy as np
import pytest
from scipy.optimize import brentq

from collegium import policy, theory, topology
from collegium.errors import AssumptionError
from worlds import NETWORKS, coupled

P = NETWORKS["directed"]
TWO = policy.Policy([[0.75, 0.5], [0.25, 0.5]])
"""π = (2/3, 1/3), Σπ² = 5/9; |[A^t]_lk - π_l| is 4^-t times 1/3 or 2/3, so C(A, σ) = 2/3 for σ of 1/4 and more."""


@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_the_sum_of_deciding_and_training(raw):
    trained = theory.margin_training(P, 0.05, 1.0, samples=500, rho=0.001, risk=0.4, raw=raw)
    failure = float(1 - trained.value)
    assert 0.01 < failure < 1
    for given in (
        theory.sufficient(P, 0.05, 1.0, raw=raw),
        theory.finite_round(P, 0.05, 1.0, 60, raw=raw),
        theory.finite_precision(P, 0.05, 1.0, 60, 8, raw=raw),
        theory.social_learning(P, 0.05, 1.0, 200, raw=raw),
    ):
        assert not np.isnan(given.value).all()
        found = theory.unconditional(given, trained)
        np.testing.assert_allclose(found.value, given.value + failure)
        assert not any("C_δ" in one for one in found.assumptions)
        assert set(trained.assumptions) <= set(found.assumptions)


@pytest.mark.parametrize("raw", [False, True], ids=["centred", "raw"])
def test_the_explicit_bounds_by_hand(raw):
    """Written out from the paper, Φ logistic: Prop. 2 and its raw counterpart added to Thms 1 and 3."""

    def phi(x):
        return np.log1p(np.exp(-x))

    delta, N, rho, risk = 0.4, 2000, 0.001, 0.2
    if raw:
        edge, factor = (phi(delta) + phi(1.0) - 2 * risk) / 16, 1
    else:
        edge, factor = (brentq(lambda d: d - delta - (phi(d) - risk) / 2, 0, 9) - delta) / 4, 2
    failure = factor * np.exp(-8 * N * (edge - rho) ** 2)
    trained = theory.margin_training(TWO, delta, 1.0, samples=N, rho=rho, risk=risk, raw=raw)
    found = theory.unconditional(theory.sufficient(TWO, delta, 1.0, raw=raw), trained)
    assert float(found.value) == pytest.approx(np.exp(-(delta**2) / (2 * 5 / 9)) + failure, rel=1e-12)
    # Three rounds, L_b = 5 levels: the center, if there is one, doubles both the range and what is lost by mixing.
    wide = 1 if raw else 2
    powers = [np.linalg.matrix_power(TWO.A, t) for t in (1, 2, 3)]
    V = wide**2 / 4**2 * sum((one**2).sum(axis=0) for one in powers)
    r = delta - wide * np.array([2 / 3, 4 / 3]) / 4**3
    coarse = np.exp(-(r**2) / (2 * ((powers[2] ** 2).sum(axis=0) + V)))
    found = theory.unconditional(theory.finite_precision(TWO, delta, 1.0, 3, 3, levels=5, raw=raw), trained)
    np.testing.assert_allclose(found.value[3], coarse + failure, rtol=1e-12)


def test_margins_and_rounds_keep_their_axes():
    deltas = [0.02, 0.05]
    trained = theory.margin_training(P, deltas, 1.0, samples=500, rho=0.001, risk=0.4)
    given = theory.finite_round(P, deltas, 1.0, 30)
    found = theory.unconditional(given, trained)
    assert found.value.shape == (2, 31, 12)
    np.testing.assert_allclose(found.value[1], given.value[1] + trained.parts["failure"][1])


def test_what_does_not_belong_together_is_refused():
    trained = theory.margin_training(P, 0.05, 1.0, samples=500, rho=0.001, risk=0.4)
    raw = theory.margin_training(P, 0.05, 1.0, samples=500, rho=0.001, risk=0.4, raw=True)
    for one, other in ((True, trained), (False, raw)):
        with pytest.raises(AssumptionError, match="raw=True for both"):
            theory.unconditional(theory.sufficient(P, 0.05, 1.0, raw=one), other)
    for deciding in (theory.sufficient(P, 0.06, 1.0), theory.finite_round(P, [0.05, 0.06], 1.0, 9)):
        with pytest.raises(AssumptionError, match="the margin that deciding needs"):
            theory.unconditional(deciding, trained)
    several = theory.finite_precision(P, 0.05, 1.0, 9, [4, 8], tau=[[1.0], [2.0]])
    assert theory.unconditional(several, trained).value.shape == (2, 2, 10, 12)
    with pytest.raises(AssumptionError, match="what margin_training gives"):
        theory.unconditional(several, several)


def test_a_dependence_for_each_class():
    both = theory.finite_round(P, 0.8, 1.0, 30, tau=[1.0, 3.0])
    found = theory.half_sum(both).value
    each = [theory.finite_round(P, 0.8, 1.0, 30, tau=tau).value for tau in (1.0, 3.0)]
    np.testing.assert_allclose(found, (each[0] + each[1]) / 2)
    by_hand = (np.exp(-0.64 * 9 / 10) + np.exp(-0.64 * 9 / 30)) / 2
    assert float(theory.half_sum(theory.sufficient(TWO, 0.8, 1.0, tau=[1.0, 3.0])).value) == pytest.approx(by_hand)
    with pytest.raises(AssumptionError, match="first axis is the class"):
        theory.half_sum(theory.sufficient(P, 0.8, 1.0))


def test_averaging_helps_below_one():
    ring = policy.uniform(topology.ring(9))
    assert float(theory.dependence_penalty(ring)) == pytest.approx(1 / 9)
    alone = np.exp(-(0.5**2) / 2)
    for tau in (8.9, 9.1):
        helps = float(theory.sufficient(ring, 0.5, 1.0, tau=tau).value) < alone
        assert helps == bool(theory.dependence_penalty(ring, tau) < 1)


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_bounded_differences_hold_under_dependence(strength):
    """Weighted sums of three dependent signs: the exact tail from the law of eight cells."""
    world = coupled(strength)
    tau = theory.tensorisation(world.law)
    weights = np.array([0.5, 0.3, 0.2])
    signs = 1 - 2 * np.stack(np.unravel_index(np.arange(8), (2, 2, 2)), axis=1)
    F, law = signs @ weights, world.law.ravel()
    for u in np.linspace(0.05, 1.5, 12):
        tail = law[F - law @ F <= -u].sum()
        assert tail <= float(theory.bounded_differences(2 * weights, u, tau).value) + 1e-12
    assert float(theory.bounded_differences([1.0, 0.5], 0.7, 2.0).value) == pytest.approx(np.exp(-2 * 0.49 / 2.5))
    assert float(theory.bounded_differences([0.0, 0.0], 0.1).value) == 0
    with pytest.raises(AssumptionError, match="0 or more"):
        theory.bounded_differences([1.0], -1.0)


def test_the_mixing_sum_and_its_bound_by_hand():
    assert pytest.approx(4 / 9) == TWO.b_mix
    assert theory.b_mix_bound(TWO, 0.3) == pytest.approx(2 * (2 / 3) * 0.3 / 0.7)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_bound_of_the_mixing_sum(network):
    p = NETWORKS[network]
    for part in (0.3, 0.6, 0.9):
        sigma = p.slem + part * (1 - p.slem)
        assert p.b_mix <= theory.b_mix_bound(p, sigma)
    with pytest.raises(AssumptionError, match="must lie between"):
        theory.b_mix_bound(p, p.slem / 2)


def test_fewer_levels_than_bits_allow():
    all_of_them = theory.finite_precision(P, 0.8, 1.0, 20, 3)
    same, fewer = (theory.finite_precision(P, 0.8, 1.0, 20, 3, levels=L) for L in (8, 5))
    np.testing.assert_allclose(same.value, all_of_them.value)
    np.testing.assert_allclose(fewer.parts["V"], all_of_them.parts["V"] * (7 / 4) ** 2)
    assert fewer.parts["B_round"] == all_of_them.parts["B_round"]
    for wrong in (9, 1, 2.5):
        with pytest.raises(AssumptionError, match="whole numbers from 2"):
            theory.finite_precision(P, 0.8, 1.0, 20, 3, levels=wrong)


def test_rounding_falls_with_two_to_minus_two_b_and_the_bound_is_not_monotone():
    """The remarks below Theorem 3, in numbers."""
    V = theory.finite_precision(P, 0.8, 1.0, 20, [8, 9, 10]).parts["V"][:, -1]
    np.testing.assert_allclose(V[:-1] / V[1:], 4, rtol=0.02)
    value = theory.finite_precision(NETWORKS["ring"], 1.2, 1.0, 200, 3).value.max(axis=1)
    known = value[~np.isnan(value)]
    assert known.argmin() not in (0, len(known) - 1)  # it falls, and rises again


def test_social_learning_with_t_squared():
    found = theory.social_learning(P, 0.8, 1.0, 60)
    crude = found.parts["crude"]
    assert crude.shape == (61,)
    known = ~np.isnan(crude)
    assert known.any()
    assert (found.value[known] <= crude[known][:, None]).all()
    two = theory.social_learning(TWO, 0.8, 1.0, 5, tau=2.0).parts["crude"]
    assert two[5] == pytest.approx(np.exp(-((5 * 0.8 - 8 / 9) ** 2) / (2 * 2 * 25)))
    assert np.isnan(two[1])  # t must exceed κ/δ = 10/9
