"""Boosting, against hand-computed rounds and the exponential loss it is meant to minimise."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from collegium import agents, data
from collegium.agents import PixelLogistic, Scores, Training
from collegium.errors import DataError, ModelError
from collegium.fusion import AdaBoost
from collegium.fusion.adaboost import boost
from helpers import tiny_images


def test_a_round_by_hand():
    """Ten items, three wrong: ε = 3/10, α = ½ log(7/3); wrong items then weigh 1/6 each, right ones 1/14."""
    margins = np.array([1.0] * 7 + [-1.0] * 3)
    error, alpha, D = boost(np.full(10, 0.1), margins)
    assert error == pytest.approx(0.3, abs=1e-15)
    assert alpha == pytest.approx(0.42364893019360184, abs=1e-15)
    np.testing.assert_allclose(D, [1 / 14] * 7 + [1 / 6] * 3, rtol=1e-14)


def test_three_agents_in_sequence_by_hand():
    """Eight items; what each agent gets wrong is chosen, and every weight is a fraction worked out on paper."""
    y = np.array([1, 1, 1, 1, -1, -1, -1, -1])
    wrong = [{0, 4}, {0, 1}, {4, 5}]
    f = np.column_stack([[-2.0 * y[i] if i in places else 0.5 * y[i] for i in range(8)] for places in wrong])
    fitted = AdaBoost().fit(Scores(f, f, f, y, y, y))
    # ε_1 = 2/8. Then items 0 and 4 weigh 1/4, the others 1/12: ε_2 = 1/4 + 1/12 = 1/3.
    # Then the wrong double their share to 1/2: item 0 weighs 3/8, item 1 1/8, item 4 3/16, the others 1/16: ε_3 = 1/4.
    np.testing.assert_allclose(fitted.errors_, [1 / 4, 1 / 3, 1 / 4], rtol=1e-13)
    np.testing.assert_allclose(fitted.alpha_, [np.log(3) / 2, np.log(2) / 2, np.log(3) / 2], rtol=1e-13)
    votes = fitted.decide(f).statistics[:, 0]
    assert votes[0] == pytest.approx(-np.log(2) / 2, rel=1e-12)  # item 0: -½log3 - ½log2 + ½log3
    assert fitted.training_transmissions_ == 2 * 8 + 3  # the weights handed on twice, three α


@pytest.mark.parametrize("seed", range(5))
def test_alpha_minimises_the_exponential_loss_and_leaves_no_edge(seed):
    rng = np.random.default_rng(seed)
    margins, D = rng.choice([-1.0, 1.0], 60, p=[0.55, 0.45]), rng.dirichlet(np.ones(60))
    _, alpha, after = boost(D, margins)
    best = minimize_scalar(lambda a: float(D @ np.exp(-a * margins)), bracket=(-1, 1), tol=1e-12)
    assert alpha == pytest.approx(best.x, abs=1e-6)
    assert after[margins < 0].sum() == pytest.approx(0.5, abs=1e-12)


def test_a_perfect_agent_does_not_end_the_world():
    y = np.array([1, -1, 1, -1])
    f = np.column_stack([y, y * [1, 1, 1, -1]]).astype(float)
    fitted = AdaBoost().fit(Scores(f, f, f, y, y, y))
    assert fitted.errors_[0] == 0
    assert fitted.alpha_[0] == pytest.approx(np.log(7) / 2)  # half of one item in four
    assert np.isfinite(fitted.alpha_).all()


def test_no_idea_counts_as_wrong_and_has_no_vote():
    y = np.array([1, -1, 1, -1])
    f = np.array([[0.0, 1], [0, -1], [2, 1], [-2, 1]])
    fitted = AdaBoost().fit(Scores(f, f, f, y, y, y))
    assert fitted.errors_[0] == 0.5
    assert fitted.decide([[0.0, 0.0]]).statistics.item() == 0


@pytest.fixture(scope="module")
def digits():
    train, test = data.digits(classes=(3, 8))
    return train, test, agents.train(train, test, LogisticRegression(), seed=0)


def test_with_a_model_each_agent_learns_from_the_weights_before_it(digits):
    train, test, record = digits
    fitted = AdaBoost(LogisticRegression()).fit(record, train)
    inside, y = record.rows_train, record.y_train
    D = np.full(len(y), 1 / len(y))
    for k, model in enumerate(fitted.models_):
        x = train.views[k][inside].reshape(len(y), -1)
        alone = LogisticRegression().fit(x, y, sample_weight=D * len(D))
        np.testing.assert_allclose(model.scores(train.views[k][inside]), alone.decision_function(x), atol=1e-6)
        right = y * alone.decision_function(x) > 0
        error = D[~right].sum()
        assert fitted.errors_[k] == pytest.approx(error, abs=1e-12)
        D = np.where(right, D / (2 * (1 - error)), D / (2 * error))  # the same step, as Freund and Schapire's lemma
    labels = [np.sign(model.scores(view)) for model, view in zip(fitted.models_, test.views, strict=True)]
    votes = sum(one * alpha for one, alpha in zip(labels, fitted.alpha_, strict=True))
    np.testing.assert_allclose(fitted.decide(test.views).statistics[:, 0], votes, rtol=1e-12)
    assert fitted.training_transmissions_ == 8 * len(y) + 9
    assert fitted.decide(test.views).error(test.y) < 0.1


def test_models_without_weights_learn_from_drawn_items(digits):
    train, test, record = digits
    one, two = (AdaBoost(KNeighborsClassifier(3), random_state=5).fit(record, train) for _ in range(2))
    np.testing.assert_array_equal(one.alpha_, two.alpha_)
    assert one.decide(test.views).error(test.y) < 0.15
    assert one.errors_[0] > 0  # items that were not drawn were not learned
    # Agent 1 by hand: a draw with the weights that agent 0 left.
    y, view = record.y_train, train.views[1][record.rows_train].reshape(len(record.y_train), -1)
    right = y * one.models_[0].scores(train.views[0][record.rows_train]) > 0
    error = (~right).mean()
    D = np.where(right, 0.5 / (1 - error), 0.5 / error) / len(y)
    drawn = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(1, 1))).choice(len(D), len(D), p=D / D.sum())
    hand = KNeighborsClassifier(3).fit(view[drawn], y[drawn])
    np.testing.assert_allclose(one.models_[1].estimator_.predict_proba(view), hand.predict_proba(view))


def test_networks_are_boosted_by_their_loss():
    train, test = tiny_images(80, 3, contrast=8), tiny_images(60, 3, seed=1, contrast=8)
    model = PixelLogistic(training=Training(learning_rate=0.01, batch_size=16, max_epochs=10))
    record = agents.train(train, test, model, seed=0, workers=1)
    fitted = AdaBoost(model).fit(record, train)
    assert fitted.decide(test.views).error(test.y) < 0.3
    assert len({one.random_state for one in fitted.models_}) == 3
    first = fitted.models_[0]  # which learned from equal weights, and stopped by the validation items
    same = PixelLogistic(training=model.training, random_state=first.random_state).fit(
        train.views[0][record.rows_train],
        record.y_train,
        validation=(train.views[0][record.rows_val], record.y_val),
    )
    np.testing.assert_allclose(first.history_.validation_loss, same.history_.validation_loss, rtol=1e-5)
    unboosted = model.set_params(random_state=fitted.models_[1].random_state).fit(
        train.views[1][record.rows_train],
        record.y_train,
        validation=(train.views[1][record.rows_val], record.y_val),
    )
    assert np.abs(unboosted.scores(test.views[1]) - fitted.models_[1].scores(test.views[1])).max() > 1e-3


def test_views_and_record_must_belong_together(digits):
    train, test, record = digits
    boosting = AdaBoost(LogisticRegression())
    with pytest.raises(DataError, match="give the Dataset"):
        boosting.fit(record)
    with pytest.raises(DataError, match="do not belong together"):
        boosting.fit(record, data.digits(classes=(1, 7))[0])
    with pytest.raises(DataError, match="9 agents, the data set 1"):
        boosting.fit(record, data.digits(grid=(1, 1))[0])
    with pytest.raises(DataError, match="the items of its rows"):
        boosting.fit(Scores(record.train, record.val, record.test, record.y_train, record.y_val, record.y_test), train)
    with pytest.raises(DataError, match="agent 2 is missing for 179"):
        boosting.fit(record, train).decide([None if k == 2 else view for k, view in enumerate(test.views)])
    with pytest.raises(ModelError, match="AdaBoost, agent 'row 0, column 0'"):
        AdaBoost(agents.CallableModel(lambda view: view.sum(axis=(1, 2)))).fit(record, train)
