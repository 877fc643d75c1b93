"""A team whose agents learn how much to count."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from collegium import Team, links, policy, schedule, theory, topology
from collegium.agents import PixelLogistic, Training
from collegium.errors import DataError, LabelError, ModelError


def table(n, seed):
    """Four agents with two columns each; those of the last two say nothing."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, "a", "b")
    X = rng.normal(size=(n, 8))
    X[:, :4] += np.where(y == "a", 0.5, -0.5)[:, None]
    return X, y


@pytest.fixture
def team():
    X, y = table(60, 0)
    agents = [(name, LogisticRegression(C=100.0)) for name in "abcd"]
    columns = [[0, 1], [2, 3], [4, 5], [6, 7]]
    return Team(agents, policy.metropolis(topology.complete(4)), columns=columns, center="none", calibrate=False).fit(
        X, y
    )


def test_tuning_a_team(team):
    X, y = table(300, 1)
    fresh, truth = table(3000, 2)
    before = team.score(fresh, truth)
    assert team.tune(X, y) is team
    assert team.tuning_.kept == "tuned"
    assert team.score(fresh, truth) > before
    assert np.abs(team.gains_[2:]).max() < np.abs(team.gains_[:2]).min()
    assert (np.abs(team.statistics(X)).max(axis=0) <= team.largest_scores_ * (1 + 1e-9)).all()


def test_a_tuned_team_is_saved_and_read_back(team, tmp_path):
    X, y = table(300, 1)
    team.tune(X, y, schedule=schedule.exact(4))
    team.save(tmp_path / "team")
    again = Team.load(tmp_path / "team")
    assert np.array_equal(again.gains_, team.gains_)
    assert np.array_equal(again.decision_function(X), team.decision_function(X))


def test_labels_of_some_of_the_items(team):
    X, y = table(300, 1)
    some = np.arange(100, 300)
    one = team.tune(X, y[some], items=some).gains_
    with pytest.raises(DataError, match="a label for item 300, but the views have items 0 to 299"):
        team.tune(X, y[:20], items=np.arange(281, 301))
    with pytest.raises(LabelError):
        team.tune(X, y[:20], items=some)
    with pytest.raises(ModelError, match="level must be"):
        team.tune(X, y, level="everything")
    assert np.array_equal(team.gains_, one)


def noisy_images(n, classes, seed):
    """Three views of 6 x 6 pixels, each of which tells little by itself."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    means = np.random.default_rng(9).normal(size=(3, classes, 1, 6, 6))
    views = [128 + 40 * (0.25 * means[k][y] + rng.normal(size=(n, 1, 6, 6))) for k in range(3)]
    return [np.clip(view, 0, 255).astype(np.uint8) for view in views], np.array(["x", "y", "z"])[y]


@pytest.mark.parametrize("classes", [2, 3])
def test_models_are_trained_on_jointly(team, classes, tmp_path):
    quick = Training(learning_rate=0.02, batch_size=16, max_epochs=30, patience=5)
    agents = [(name, PixelLogistic(training=quick, random_state=k)) for k, name in enumerate("abc")]
    jointly = Team(agents, policy.metropolis(topology.complete(3)), random_state=0)
    jointly.fit(*noisy_images(40, classes, 0))
    X, y = noisy_images(600, classes, 1)
    new, truth = noisy_images(2000, classes, 2)
    before = jointly.score(new, truth)
    jointly.tune(X, y, level="models")
    assert jointly.tuning_.kept == "tuned"
    assert jointly.tuning_.transmissions == 6 * jointly.tuning_.rows  # one round: every two agents are linked
    assert jointly.score(new, truth) > before
    s = np.stack([model.scores(view) for model, view in zip(jointly.models_, new, strict=True)], axis=1)
    weights = jointly.gains_ if classes == 2 else jointly.gains_[:, None]
    pooled = ((s - jointly.center_) * weights).mean(axis=1)
    assert np.array_equal(jointly.predict(new), jointly.classes_[pooled.argmax(1) if classes > 2 else (pooled > 0) * 1])
    jointly.save(tmp_path / "team")
    assert np.array_equal(Team.load(tmp_path / "team").predict(new), jointly.predict(new))
    with pytest.raises(LabelError, match="at least 10 labelled items"):
        jointly.tune([view[:8] for view in X], y[:8], level="models")
    with pytest.raises(DataError, match="no held-out items"):  # those of the models before are of no use
        jointly.tune()
    X, y = table(60, 0)
    with pytest.raises(ModelError, match="needs PyTorch models, for their derivatives; agent 'a' has none"):
        team.tune(X, y, level="models")


def test_lossy_links_do(team):
    X, y = table(300, 1)
    assert team.tune(X, y, links=links.Lossy(0.1, seed=1)).tuning_.largest_deviation > 0


def test_the_certificate_is_that_of_the_tuned_aggregate(team):
    """Weights g_k in place of the equal ones: the same certificate as of the scores with gains."""
    X, y = table(300, 1)
    fresh, truth = table(2000, 2)
    equal = team.certify(fresh, truth)
    tuned = team.tune(X, y).certify(fresh, truth)
    signs = np.where(truth == "b", 1, -1)
    expected = theory.certify(team.statistics(fresh), signs, team.policy, 20, raw=not team.center_.any())
    assert tuned.delta == pytest.approx(expected.delta)
    assert tuned.limit == pytest.approx(expected.limit)
    aggregate = team.statistics(fresh) @ team.policy.perron
    assert tuned.measured_limit == pytest.approx((aggregate * signs <= 0).mean())
    assert tuned.measured_limit < equal.measured_limit


def test_without_items_those_that_fit_held_out_teach(tmp_path):
    """Three agents see the same column, the fourth sees three others: equal gains count that column three times."""
    X, y = table(300, 1)
    fresh, truth = table(3000, 2)
    agents = [(name, LogisticRegression(C=100.0)) for name in "abcd"]
    columns = [[0], [0], [0], [1, 2, 3]]
    team = Team(agents, policy.metropolis(topology.complete(4)), columns=columns).fit(X, y)
    before = team.score(fresh, truth), team.pool_temperature_
    assert team.held_out_scores_.shape == (300, 4)
    team.tune()
    assert team.tuning_.labelled_items == 300
    assert team.tuning_.kept == "tuned"
    assert team.score(fresh, truth) > before[0]
    # What is used now has a temperature of its own: that which fits the labelled items best.
    pooled = team.pipeline_(team.held_out_scores_).mean(axis=1)
    labels = team.held_out_labels_

    def loss(T):
        return np.logaddexp(0, -labels * pooled / T).mean()

    assert team.pool_temperature_ != before[1]
    assert loss(team.pool_temperature_) <= min(loss(1.01 * team.pool_temperature_), loss(team.pool_temperature_ / 1.01))
    team.save(tmp_path / "team")
    with pytest.raises(DataError, match="no held-out items to tune by: give tune labelled items"):
        Team.load(tmp_path / "team").tune()
    with pytest.raises(LabelError, match="both X and y, or neither"):
        team.tune(X)
