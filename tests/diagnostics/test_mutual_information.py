"""Mutual information against brute force and against closed forms; correlations against numpy."""

import numpy as np
import pytest
from scipy.special import digamma

from collegium.diagnostics import conditional_mutual_information, mean_correlation, mutual_information
from collegium.diagnostics.mutual_information import principal_components
from collegium.errors import ScoreError


def brute_force(x, y, k):
    n = len(x)
    dx, dy = (np.abs(one[:, None] - one[None]).max(axis=2) for one in (x, y))
    for d in (dx, dy):
        np.fill_diagonal(d, np.inf)
    radius = np.sort(np.maximum(dx, dy), axis=1)[:, k - 1 : k]
    near = digamma((dx < radius).sum(axis=1) + 1) + digamma((dy < radius).sum(axis=1) + 1)
    return digamma(k) + digamma(n) - near.mean()


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("dimensions", [(1, 1), (20, 20), (3, 7)])
def test_it_equals_brute_force(k, dimensions):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, dimensions[0]))
    y = rng.normal(size=(500, dimensions[1])) + 0.7 * x[:, :1]
    assert mutual_information(x, y, k) == pytest.approx(brute_force(x, y, k), abs=1e-10)


@pytest.mark.parametrize("r", [0.0, 0.5, 0.9])
def test_gaussian_pairs_have_a_closed_form(r):
    """The estimator's own spread comes from repeating it; 20 repetitions, four standard errors and a bias of 0.02."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(20):
        x = rng.normal(size=600)
        found.append(mutual_information(x, r * x + np.sqrt(1 - r**2) * rng.normal(size=600)))
    error = 4 * np.std(found, ddof=1) / np.sqrt(20) + 0.02
    assert abs(np.mean(found) + 0.5 * np.log(1 - r**2)) < error


def test_agents_given_the_class():
    """Two agents that share noise, one that does not; the class itself does not count as shared information."""
    rng = np.random.default_rng(2)
    y = np.where(rng.random(1500) < 0.5, 1, -1)
    common = rng.normal(size=(1500, 2))
    views = [3 * y[:, None] + common + 0.5 * rng.normal(size=(1500, 2)) for _ in range(2)]
    views.append(3 * y[:, None] + rng.normal(size=(1500, 2)))
    found = conditional_mutual_information(views, y, dimensions=2)
    assert np.isnan(np.diag(found)).all()
    np.testing.assert_array_equal(found, found.T)
    assert found[0, 1] > 0.8  # each coordinate: -½ log(1 - 0.8²) = 0.51
    assert abs(found[0, 2]) < 0.08
    pooled = mutual_information(views[0], views[2])
    assert pooled > 0.4


def test_principal_components_are_those_of_the_covariance():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 2, 3)) @ rng.normal(size=(3, 3))
    reduced = principal_components(x, 4)
    assert reduced.shape == (200, 4)
    largest = np.sort(np.linalg.eigvalsh(np.cov(x.reshape(200, -1).T)))[::-1][:4]
    np.testing.assert_allclose(reduced.var(axis=0, ddof=1), largest, rtol=1e-9)
    assert principal_components(x, 99).shape == (200, 6)


def test_mean_correlation_is_that_of_numpy():
    x = np.random.default_rng(4).normal(size=(50, 5)) @ np.random.default_rng(5).normal(size=(5, 5))
    r = np.corrcoef(x.T)
    assert mean_correlation(x) == pytest.approx(r[np.triu_indices(5, 1)].mean(), abs=1e-12)
    x[:, 2] = 1.0
    kept = np.delete(x, 2, axis=1)
    assert mean_correlation(x) == pytest.approx(6 * mean_correlation(kept) / 10, abs=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mutual_information([1.0, 2.0], [1.0, 2.0, 3.0]),
        lambda: mutual_information([1.0, 2.0], [1.0, 2.0], k=5),
        lambda: mutual_information([1.0, np.nan, 2.0], [1.0, 2.0, 3.0], k=1),
        lambda: mean_correlation([[1.0], [2.0]]),
        lambda: principal_components(np.zeros((3, 3)), 0),
    ],
)
def test_mistakes(call):
    with pytest.raises(ScoreError):
        call()
