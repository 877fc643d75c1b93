"""Complexities against enumeration, closed forms, and functions searched for."""

from itertools import product

import numpy as np
import pytest

from collegium.errors import AssumptionError
from collegium.theory.rademacher import Affine, Ramp, Residual, finite_class, linear_bound, linear_class, network_class


def brute_force(G):
    """Straight from the definition."""
    m = G.shape[1]
    return np.mean([max(abs(np.dot(r, g)) / m for g in G) for r in product([-1, 1], repeat=m)])


@pytest.mark.parametrize(("F", "m"), [(1, 1), (3, 5), (8, 9), (40, 4)])
def test_finite_classes_are_exact(F, m):
    G = np.random.default_rng(F).normal(size=(F, m))
    found = finite_class(G)
    assert found.kind == "exact"
    assert found.value == pytest.approx(brute_force(G), rel=1e-12)


def test_one_sign_function_is_a_random_walk():
    # E|Σ r_n| / m for m = 4: (6·0 + 8·2 + 2·4) / 16 / 4
    assert finite_class(np.ones((1, 4))).value == 24 / 64


def test_monte_carlo_is_within_its_error():
    G = np.random.default_rng(0).normal(size=(5, 12))
    drawn = finite_class(G, draws=20_000, seed=1)
    assert drawn.kind == "Monte Carlo"
    assert abs(drawn.value - finite_class(G).value) < 3.3 * drawn.error  # 99.9 %
    assert finite_class(G, draws=50, seed=3) == finite_class(G, draws=50, seed=3)


def test_linear_classes_are_suprema_over_the_ball():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(7, 3))
    exact = linear_class(x, norm=2.0)
    directions = rng.normal(size=(4000, 3))
    directions *= 2.0 / np.linalg.norm(directions, axis=1, keepdims=True)
    inside = finite_class(directions @ x.T)  # some of the functions of the class: less rich, but nearly as rich
    assert inside.value <= exact.value
    assert inside.value > 0.99 * exact.value
    closed = linear_bound(x, 2.0)
    assert closed.kind == "upper bound"
    assert exact.value <= closed.value <= np.sqrt(2) * exact.value
    assert closed.value == pytest.approx(2 / 7 * np.sqrt((x**2).sum()), rel=1e-14)
    drawn = linear_class(x, 2.0, draws=5000)
    assert abs(drawn.value - exact.value) < 3.3 * drawn.error


def outputs(weights, x):
    W1, b1, W2, b2 = weights
    return np.maximum(x @ W1 + b1, 0) @ W2 + b2


def test_the_network_bound_is_above_every_network_found():
    """Small ramp networks within the norms, drawn and then improved for each sign pattern by trying."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(8, 3))
    layers = [Affine(1.5, bias=0.2), Ramp(), Affine(2.0, bias=0.1)]

    def drawn():
        W1 = rng.laplace(size=(3, 4))
        W1 *= 1.5 / np.abs(W1).sum(axis=0)
        W2 = rng.laplace(size=(4, 1))
        W2 *= 2.0 / np.abs(W2).sum()
        return W1, rng.choice([-0.2, 0.2], 4), W2, rng.choice([-0.1, 0.1], 1)

    found = finite_class(np.array([outputs(drawn(), x)[:, 0] for _ in range(20_000)]))
    bound = network_class(x, layers)
    assert bound.kind == "upper bound"
    assert found.value < bound.value
    coordinates = np.linalg.norm(x, axis=0).max() * np.sqrt(2 * np.log(6)) / 8
    by_hand = 2.0 * 2 * (1.5 * coordinates + 0.2 / np.sqrt(8)) + 0.1 / np.sqrt(8)
    assert bound.value == pytest.approx(by_hand, rel=1e-12)


def test_coordinates_are_a_finite_class():
    x = np.random.default_rng(4).normal(size=(9, 5))
    assert finite_class(x.T).value < network_class(x, []).value


def test_layers_compose():
    x = np.random.default_rng(5).normal(size=(9, 5))
    R = network_class(x, []).value
    assert network_class(x, [Ramp(pool=4)]).value == pytest.approx(8 * R)
    assert network_class(x, [Residual([Affine(3.0)])]).value == pytest.approx(2 * (3 * R + R))
    assert network_class(x, [Residual([Affine(3.0)], [Affine(0.5)])]).value == pytest.approx(2 * 3.5 * R)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: finite_class(np.ones((2, 21))), "say how many draws"),
        (lambda: finite_class(np.ones(3)), "functions, items"),
        (lambda: linear_class(np.ones((3, 2)), -1.0), "norm"),
        (lambda: linear_class(np.empty((0, 2)), 1.0), "at least one"),
        (lambda: finite_class(np.ones((2, 3)), draws=1), "draws"),
        (lambda: finite_class([[np.nan]]), "finite"),
    ],
)
def test_mistakes(call, sentence):
    with pytest.raises(AssumptionError, match=sentence):
        call()
