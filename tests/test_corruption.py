import numpy as np
import pytest

from collegium import corruption
from collegium.errors import ScoreError
from helpers import of_classes

X = np.random.default_rng(0).normal(size=(400, 6)) * np.array([1, 2, 3, 4, 5, 6])


def test_scale_is_the_median_of_sample_deviations():
    deviations = sorted(np.sqrt(((X[:, k] - X[:, k].mean()) ** 2).sum() / 399) for k in range(6))
    assert corruption.scale(X) == pytest.approx((deviations[2] + deviations[3]) / 2, rel=1e-12)


def test_noise_has_the_wished_size_at_the_chosen_agents_only():
    noisy = corruption.noise(X, [1, 4], eta=0.7, rng=3)
    np.testing.assert_array_equal(np.delete(noisy, [1, 4], axis=1), np.delete(X, [1, 4], axis=1))
    added = (noisy - X)[:, [1, 4]] / (0.7 * corruption.scale(X))
    # 800 standard Gaussians: mean within 3.3/√800, variance within 3.3·√(2/800)
    assert abs(added.mean()) < 3.3 / np.sqrt(800)
    assert abs((added**2).mean() - 1) < 3.3 * np.sqrt(2 / 800)


def test_noise_of_an_agent_does_not_depend_on_the_others():
    alone, together = corruption.noise(X, [2], 1.0, rng=1), corruption.noise(X, [0, 2, 5], 1.0, rng=1)
    np.testing.assert_array_equal(alone[:, 2], together[:, 2])


def test_faults_and_adversaries():
    np.testing.assert_array_equal(corruption.stuck(X, [0])[:, 0], np.zeros(400))
    np.testing.assert_allclose(corruption.bias(X, [3], -0.5)[:, 3], X[:, 3] - 0.5 * corruption.scale(X), rtol=1e-12)
    np.testing.assert_array_equal(corruption.sign_flip(X, [2], 2.0)[:, 2], -2 * X[:, 2])
    np.testing.assert_array_equal(corruption.sign_flip(X, [2], 0.0)[:, 2], np.zeros(400))


@pytest.mark.parametrize("r", [0.0, 0.5, 1.0, 3.0, np.inf])
def test_common_mode_moves_variance_but_keeps_it(r):
    clean = np.zeros((40_000, 4))
    disturbed = corruption.common_mode(clean, r, sigma=2.0, rng=7)
    covariance = np.cov(disturbed.T) / 4.0
    shared = 1.0 if np.isinf(r) else r**2 / (1 + r**2)
    # entries of a sample covariance of n Gaussians: standard error at most √(2/n), 10 of them
    slack = 4 * np.sqrt(2 / 40_000)
    np.testing.assert_allclose(np.diag(covariance), 1.0, atol=slack)
    np.testing.assert_allclose(covariance[np.triu_indices(4, 1)], shared, atol=slack)


def test_draws_of_common_mode_do_not_depend_on_r():
    a, b = (corruption.common_mode(X, 0.0, sigma, rng=5) - X for sigma in (1.0, 2.0))
    np.testing.assert_allclose(2 * a, b, atol=1e-12)


def test_agents_are_drawn_uniformly_without_replacement():
    drawn = np.array([corruption.draw_agents(8, 3, rng=seed) for seed in range(4000)])
    assert all(len(set(row)) == 3 for row in drawn.tolist())
    counts = np.bincount(drawn.ravel(), minlength=8)
    # each agent is in 3/8 of the draws: 99.9 % binomial interval, eight agents
    assert np.abs(counts / 4000 - 3 / 8).max() < 3.9 * np.sqrt(3 / 8 * 5 / 8 / 4000)
    np.testing.assert_array_equal(corruption.draw_agents(8, 8), np.arange(8))
    assert len(corruption.draw_agents(8, 0)) == 0


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: corruption.draw_agents(4, 5), "between 0 and 4; got 5"),
        (lambda: corruption.noise(X, [6], 1.0), "there is no agent 6"),
        (lambda: corruption.noise(X, [-1], 1.0), "there is no agent -1"),
        (lambda: corruption.stuck(X, [1, 1]), "only once"),
        (lambda: corruption.sign_flip(X, [1], -1.0), "eta must be"),
        (lambda: corruption.bias(X, [1], np.nan), "eta must be"),
        (lambda: corruption.common_mode(X, -1.0, 1.0), "r must be"),
        (lambda: corruption.common_mode(X, 1.0, np.inf), "sigma must be"),
        (lambda: corruption.scale(X[:1]), "at least 2 items"),
        (lambda: corruption.scale(X[0]), "shape"),
        (lambda: corruption.stuck(np.full((2, 2), np.nan), [0]), "NaN: agent 0"),
    ],
)
def test_refusals(call, complaint):
    with pytest.raises(ScoreError, match=complaint):
        call()


def test_clean_scores_are_left_alone():
    before = X.copy()
    corruption.noise(X, [1], 1.0)
    corruption.stuck(X, [1])
    corruption.bias(X, [1], 1.0)
    corruption.sign_flip(X, [1])
    corruption.common_mode(X, 1.0, 1.0)
    np.testing.assert_array_equal(X, before)


def test_agents_may_be_a_mask():
    np.testing.assert_array_equal(corruption.stuck(X, np.arange(6) == 2), corruption.stuck(X, [2]))


@pytest.mark.parametrize("agents", [[1.7], "a", [True, False], [[1], [2]]])
def test_what_names_no_agents_is_refused(agents):
    with pytest.raises(ScoreError, match="agents must be a list of agent numbers"):
        corruption.stuck(X, agents)


def test_several_classes_go_on_summing_to_zero():
    x = of_classes(300, 5, 4)
    noisy, common = corruption.noise(x, [1, 3], 2.0, rng=1), corruption.common_mode(x, 1.0, 0.5, rng=1)
    for corrupted in (noisy, common, corruption.stuck(x, [2]), corruption.sign_flip(x, [2], 3)):
        np.testing.assert_allclose(corrupted.sum(axis=2), 0, atol=1e-12)
    np.testing.assert_array_equal(noisy[:, [0, 2, 4]], x[:, [0, 2, 4]])
    # entries of centred noise have 3/4 of the variance; a sample of 2 400 of them is within 10 % of it
    assert np.var((noisy - x)[:, [1, 3]] / corruption.scale(x)) == pytest.approx(4 * 3 / 4, rel=0.1)
    apart = (common - x).reshape(300, -1)
    assert np.corrcoef(apart[:, 0], apart[:, 4])[0, 1] == pytest.approx(0.5, abs=0.2)  # two agents share half of it
    with pytest.raises(ScoreError, match="changes no decision"):
        corruption.bias(x, [1], 1.0)
