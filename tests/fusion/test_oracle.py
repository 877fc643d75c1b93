"""The oracles: what they see, how they learn, and that seeing everything helps."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from collegium import agents, data
from collegium.agents import MicroCNN, PatchCNN, PixelLogistic, SmallResNet, Training
from collegium.agents.torch_networks import MicroNetwork
from collegium.errors import DataError, ModelError
from collegium.fusion import CentralOracle, MultiViewOracle, NonCooperative
from helpers import tiny_images

QUICK = Training(learning_rate=0.01, batch_size=16, max_epochs=15, patience=5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), PatchCNN(training=replace(QUICK, max_epochs=4))],
    ids=["logistic", "PatchCNN"],
)
def test_the_oracle_beats_every_single_agent_on_the_digits(seed, model):
    train, test = data.digits(seed=seed)
    record = agents.train(train, test, model, seed=seed, workers=1)
    alone = NonCooperative().fit(record).decide(record.test).statistics
    errors = [(statistic * test.y <= 0).mean() for statistic in alone.T]
    oracle = CentralOracle(model, grid=(3, 3)).fit(record, train)
    assert oracle.decide(test.views).error(test.y) < min(errors)


def test_the_oracle_is_the_model_on_the_whole_image():
    train, test = data.digits(classes=(3, 8))
    whole_train, whole_test = data.digits(classes=(3, 8), grid=(1, 1))
    record = agents.train(train, test, LogisticRegression(), seed=0)
    y = train.y[record.rows_train]
    alone = LogisticRegression().fit(whole_train.views[0][record.rows_train].reshape(len(y), -1), y)
    expected = alone.decision_function(whole_test.views[0].reshape(len(test), -1))
    decision = CentralOracle(LogisticRegression(), (3, 3)).fit(record, train).decide(test.views)
    np.testing.assert_allclose(decision.statistics[:, 0], expected, atol=1e-6)
    assert (decision.transmissions == 9).all()
    assert (decision.bits == 64 * 64).all()  # 64 pixels of 64 bits


def test_without_a_grid_all_numbers_make_one_table():
    train, test = data.digits(classes=(3, 8))
    record = agents.train(train, test, LogisticRegression(), seed=0)
    fitted = CentralOracle(LogisticRegression()).fit(record, train)
    assert fitted.model_.estimator_.n_features_in_ == 64
    assert fitted.training_transmissions_ == 9 * (len(record.train) + len(record.val))
    assert fitted.decide(test.views).error(test.y) < 0.1


def test_a_grid_that_does_not_fit_is_refused():
    train, test = data.digits(classes=(3, 8))
    record = agents.train(train, test, LogisticRegression(), seed=0)
    with pytest.raises(DataError, match="2×2 has 4 patches, got 9"):
        CentralOracle(LogisticRegression(), (2, 2)).fit(record, train)
    with pytest.raises(DataError, match="do not make one image"):
        CentralOracle(LogisticRegression(), (9, 1)).fit(record, train)


@pytest.fixture(scope="module")
def trained():
    train, test = tiny_images(200, 3, contrast=6), tiny_images(400, 3, seed=1, contrast=6)
    return train, test, agents.train(train, test, MicroCNN(channels=16, training=QUICK), seed=0, workers=1)


def test_the_multi_view_oracle_begins_with_the_agents_and_moves_on(trained):
    train, _, record = trained
    given = [model.module_.convolution.weight.detach().clone() for model in record.models]
    hasty = replace(QUICK, learning_rate=1e-3, max_epochs=3)  # leaves something to do for the second stage
    fitted = MultiViewOracle(training=hasty).fit(record, train)
    moved = [
        float((backbone.convolution.weight.detach() - before).abs().max())
        for backbone, before in zip(fitted.network_.backbones, given, strict=True)
    ]
    assert min(moved) > 1e-6
    inside = [
        model.module_.features(model.prepare(model.module_, view[record.rows_train])).detach().mean(dim=0)
        for model, view in zip(record.models, train.views, strict=True)
    ]
    torch.testing.assert_close(fitted.network_.shift, torch.cat(inside))  # training items only
    for model, before in zip(record.models, given, strict=True):
        assert torch.equal(model.module_.convolution.weight, before)  # the agents' own networks are left alone
    first, second = fitted.history_
    # The second stage begins where the first left off: its first loss is near the best of the first.
    assert abs(second.validation_loss[0] - min(first.validation_loss)) < 0.01
    assert min(second.validation_loss) < min(first.validation_loss)


def test_a_second_stage_that_does_harm_is_taken_back(trained):
    train, _, record = trained
    fitted = MultiViewOracle(training=QUICK, fine_tuning=1.0).fit(record, train)
    first, second = fitted.history_
    assert min(second.validation_loss) > min(first.validation_loss)  # or this test shows nothing
    held = [view[record.rows_val] for view in train.views]
    margins = fitted.decide(held).statistics[:, 0] * record.y_val
    assert np.logaddexp(0, -margins).mean() == pytest.approx(min(first.validation_loss), rel=1e-4)


def test_the_first_stage_leaves_the_backbones_as_they_are(trained):
    train, _, record = trained
    still = MultiViewOracle(training=QUICK, fine_tuning=1e-9).fit(record, train)
    for backbone, model in zip(still.network_.backbones, record.models, strict=True):
        np.testing.assert_allclose(
            backbone.convolution.weight.detach(), model.module_.convolution.weight.detach(), atol=1e-6
        )
    assert len(still.history_[0].training_loss) > 1


def test_seeing_all_views_is_better_than_seeing_one(trained):
    train, test, record = trained
    alone = NonCooperative().fit(record).decide(record.test).statistics
    decision = MultiViewOracle(training=QUICK).fit(record, train).decide(test.views)
    assert decision.error(test.y) < min((statistic * test.y <= 0).mean() for statistic in alone.T)
    assert (decision.bits == 3 * 64 * 8).all()


@pytest.mark.parametrize("family", [PatchCNN, PixelLogistic, SmallResNet])
def test_other_families_have_backbones_too(family):
    train, test = tiny_images(60, 2), tiny_images(40, 2, seed=1)
    record = agents.train(train, test, family(training=QUICK), seed=0, workers=1)
    decision = MultiViewOracle(hidden=8, training=QUICK).fit(record, train).decide(test.views)
    assert decision.error(test.y) < 0.2


def test_no_number_depends_on_the_workers_or_the_size_of_a_batch(trained):
    train, test, record = trained
    one, two = (MultiViewOracle(training=QUICK, workers=w, random_state=2).fit(record, train) for w in (1, 2))
    whole = one.decide(test.views).statistics
    np.testing.assert_array_equal(whole, two.decide(test.views).statistics)
    parts = [one.decide([view[rows] for view in test.views]).statistics for rows in (slice(0, 50), slice(50, None))]
    np.testing.assert_allclose(np.vstack(parts), whole, rtol=1e-4, atol=1e-5)


def test_narrow_precision_does_not_depend_on_the_workers(trained):
    train, test, record = trained
    narrow = replace(QUICK, precision="bfloat16", max_epochs=2)
    one, two = (
        MultiViewOracle(training=narrow, workers=workers).fit(record, train).decide(test.views).statistics
        for workers in (1, 3)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("workers", [1, 3])
def test_training_uses_its_own_threads_and_deciding_always_one(trained, workers, monkeypatch):
    train, test, record = trained
    seen = set()
    features = MicroNetwork.features

    def watched(self, x):
        seen.add((torch.get_num_threads(), torch.is_autocast_enabled("cpu") and self.training))
        return features(self, x)

    monkeypatch.setattr(MicroNetwork, "features", watched)
    settings = replace(QUICK, threads=3, precision="bfloat16", max_epochs=1)
    oracle = MultiViewOracle(training=settings, workers=workers).fit(record, train)
    assert seen == {(3, False), (3, True)}
    seen.clear()
    oracle.decide(test.views)
    assert seen == {(1, False)}


def test_views_that_do_not_fit_are_refused(trained):
    train, test, record = trained
    fitted = MultiViewOracle(training=replace(QUICK, max_epochs=1)).fit(record, train)
    with pytest.raises(ModelError, match=r"fitted on items of shape \(8, 8\), got \(16, 16\)"):
        fitted.decide([np.zeros((3, 16, 16), np.uint8)] * 3)
    gap = [view[:4].astype(np.float64) for view in test.views]
    gap[1][2, 0, 0] = np.nan
    with pytest.raises(ModelError, match="NaN"):
        fitted.decide(gap)
    with pytest.raises(ModelError, match=r"must be an agents\.Training"):
        MultiViewOracle(training=None).fit(record, train)
    with pytest.raises(DataError, match="grid must be two numbers"):
        CentralOracle(LogisticRegression(), grid=3).fit(record, train)


def test_a_record_without_networks_is_refused(trained, tmp_path):
    train, test, record = trained
    record.save(tmp_path / "scores.npz")
    with pytest.raises(ModelError, match="does not keep the models"):
        MultiViewOracle().fit(agents.Scores.load(tmp_path / "scores.npz"), train)
    plain = agents.train(train, test, LogisticRegression(), seed=0)
    with pytest.raises(ModelError, match="begins with the agents' own networks"):
        MultiViewOracle().fit(plain, train)
    with pytest.raises(ModelError, match="hidden"):
        MultiViewOracle(hidden=0).fit(record, train)
