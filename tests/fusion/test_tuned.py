"""Gains and models learned by conversation, as methods of the comparison."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from collegium import agents, policy, schedule, topology
from collegium.agents import PixelLogistic, Scores, Training
from collegium.errors import ModelError, PolicyError
from collegium.fusion import VFLJT, Ours, Tuned, TunedModels
from helpers import tiny_images

QUICK = Training(learning_rate=0.01, batch_size=16, max_epochs=6, patience=2)


@pytest.fixture(scope="module")
def tiny():
    train, test = tiny_images(100, 3), tiny_images(60, 3, seed=1)
    return train, test, agents.train(train, test, LogisticRegression(), seed=0)


def unequal(n, seed):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1, -1)
    return np.array([1.0, 0.9, 0.0, 0.0, -1.0]) * y[:, None] + rng.normal(size=(n, 5)), y


def test_tuned_agents_are_better_than_ours():
    parts = [unequal(n, seed) for seed, n in enumerate((50, 80, 2000))]
    scores = Scores(*(x for x, _ in parts), *(y for _, y in parts))
    exact = schedule.exact(5)
    tuned = Tuned(exact).fit(scores)
    ours = Ours(policy.metropolis(topology.complete(5))).fit(scores)
    assert tuned.decide(scores.test).error(scores.y_test) < ours.decide(scores.test).error(scores.y_test) - 0.05
    assert tuned.training_transmissions_ == tuned.tuning_.transmissions == tuned.tuning_.rows * 15
    assert tuned.decide(scores.test).transmissions[0] == 15


def test_too_few_items_leave_gains_equal():
    x, y = unequal(6, 0)
    fresh, truth = unequal(50, 1)
    tuned = Tuned(schedule.exact(5)).fit(Scores(x, x, fresh, y, y, truth))
    assert tuned.tuning_ is None
    assert (tuned.pipeline_.gain == 1).all()
    assert tuned.training_transmissions_ == 0


def test_a_network_of_another_size_is_refused(record):
    with pytest.raises(PolicyError, match="the network has 4 agents"):
        Tuned(schedule.exact(4)).fit(record)


def test_models_trained_by_conversation_are_those_of_the_server(tiny):
    """Exact averages: every loss, weight and decision of VFL-JT, but for rounding in single precision."""
    train, test, scores = tiny
    server = VFLJT(PixelLogistic(training=QUICK)).fit(scores, train)
    talked = TunedModels(PixelLogistic(training=QUICK), schedule.exact(3), start="new").fit(scores, train)
    losses = np.array([server.history_.training_loss, server.history_.validation_loss])
    assert np.abs(losses - [talked.history_.training_loss, talked.history_.validation_loss]).max() < 1e-6
    assert np.abs(server.weights_ - talked.weights_).max() < 1e-6
    assert np.abs(server.bias_ - talked.bias_).max() < 1e-6
    for one, other in zip(server.models_, talked.models_, strict=True):
        for a, b in zip(one.module_.parameters(), other.module_.parameters(), strict=True):
            assert float((a - b).detach().abs().max()) < 1e-6
    one, other = server.decide(test.views).statistics, talked.decide(test.views).statistics
    assert np.abs(one - other).max() < 1e-5
    epochs = talked.epochs_
    assert talked.training_transmissions_ == epochs * (len(scores.train) + len(scores.val)) * 3 * 2


def test_models_go_on_from_where_the_agents_stand(tiny):
    train, test, _ = tiny
    scores = agents.train(train, test, PixelLogistic(training=QUICK), seed=0)
    talked = TunedModels(PixelLogistic(training=QUICK), schedule.exact(3)).fit(scores, train)
    fresh = TunedModels(PixelLogistic(training=QUICK), schedule.exact(3), start="new").fit(scores, train)
    assert talked.history_.training_loss[0] < fresh.history_.training_loss[0]
    with pytest.raises(ModelError, match="start must be"):
        TunedModels(PixelLogistic(training=QUICK), schedule.exact(3), start="here").fit(scores, train)
