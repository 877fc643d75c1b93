"""The dependence factor against a grid, known cases, and functions drawn at random."""

import numpy as np
import pytest

from collegium import theory
from collegium.errors import AssumptionError
from worlds import coupled


def entropy(P, G):
    mean = (P * G).sum()
    return (P * G * np.log(G / mean)).sum()


def split_entropy(P, G):
    """Σ_k E[Ent_k(G)], view by view and outcome by outcome."""
    total = 0.0
    for k in range(P.ndim):
        moved_P, moved_G = np.moveaxis(P, k, -1), np.moveaxis(G, k, -1)
        for place in np.ndindex(moved_P.shape[:-1]):
            weight = moved_P[place].sum()
            total += weight * entropy(moved_P[place] / weight, moved_G[place])
    return total


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (2, 2, 2)])
def test_independent_views_have_factor_one(shape):
    rng = np.random.default_rng(0)
    P = np.ones(())
    for size in shape:
        P = np.multiply.outer(P, rng.dirichlet(np.ones(size)))
    assert theory.tensorisation(P) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("P", [np.array([[0.4, 0.1], [0.15, 0.35]]), coupled(0.3).law, coupled(0.1).law])
def test_no_function_does_better_and_some_does_as_well(P):
    tau = theory.tensorisation(P)
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(4000):
        G = np.exp(10.0 ** rng.uniform(-2, 1) * rng.normal(size=P.shape))
        ratios.append(entropy(P, G) / split_entropy(P, G))
    assert max(ratios) <= tau * (1 + 1e-6)
    assert max(ratios) > 0.8 * tau


def test_stronger_coupling_is_a_larger_factor():
    assert 1 < theory.tensorisation(coupled(0.05).law) < theory.tensorisation(coupled(0.3).law)


def test_what_moves_only_together_has_no_factor():
    assert theory.tensorisation(np.diag([0.2, 0.3, 0.5])) == np.inf


@pytest.mark.parametrize("law", [[[0.5, 0.6]], [[-0.5, 1.5]], np.full((65,), 1 / 65)])
def test_what_is_no_small_law_is_refused(law):
    with pytest.raises(AssumptionError):
        theory.tensorisation(law)
