"""Joint training over the border, against one graph in which nothing is cut."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression

from collegium import agents
from collegium.agents import SGD, MicroCNN, PatchCNN, PixelLogistic, SmallResNet, TorchModel, Training
from collegium.errors import DataError, ModelError
from collegium.fusion import VFLJT
from collegium.tuning._border import Border, Branch, Server
from helpers import tiny_images

QUICK = Training(learning_rate=0.01, batch_size=16, max_epochs=6, patience=2)
FAMILIES = [PatchCNN(), PixelLogistic(), SmallResNet(), MicroCNN()]
WIDE = 64 * float(np.finfo(np.float32).eps)


@pytest.fixture(scope="module")
def tiny():
    train, test = tiny_images(100, 3), tiny_images(60, 3, seed=1)
    return train, test, agents.train(train, test, LogisticRegression(), seed=0)


def end_to_end(branches, server, x, target):
    """The loss of all branches and the head in one graph."""
    logits = [branch.network(one) for branch, one in zip(branches, x, strict=True)]
    s = torch.stack([z[:, 1] - z[:, 0] for z in logits], dim=1)
    return F.binary_cross_entropy_with_logits(server.b + s @ server.w, target)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda model: type(model).__name__)
def test_derivatives_through_the_border_are_those_of_one_graph(family):
    train = tiny_images(24, 3)
    still = replace(SGD, learning_rate=1e-30)  # steps that change nothing, so that derivatives can be compared
    branches = [Branch(type(family)(random_state=k), view, view[:4], still) for k, view in enumerate(train.views)]
    server, border = Server(train.y, train.y[:4], 3, still), Border()
    with torch.no_grad():
        server.w.copy_(torch.tensor([1.5, -0.5, 2.0]))
        server.b.fill_(0.3)
    rows = torch.arange(24)
    said = border.cross(torch.stack([branch.speak(rows) for branch in branches], dim=1))
    loss, derivatives = server.learn(said, rows)
    for branch, own in zip(branches, border.cross(derivatives).unbind(1), strict=True):
        branch.learn(own)
    parts = [*(branch.network for branch in branches), server]
    found = [weight.grad.clone() for part in parts for weight in part.parameters()]
    for part in parts:
        part.zero_grad()
    x = [branch.model.prepare(branch.network, view) for branch, view in zip(branches, train.views, strict=True)]
    whole = end_to_end(branches, server, x, torch.from_numpy((train.y > 0).astype(np.float32)))
    whole.backward()
    assert loss == pytest.approx(float(whole.detach()), rel=WIDE)
    expected = [weight.grad for part in parts for weight in part.parameters()]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
        assert other.abs().max() > 0


def test_nothing_but_numbers_crosses():
    border = Border()
    inside = torch.ones(4, 3, requires_grad=True)
    outside = border.cross(inside * 2)
    assert not outside.requires_grad
    assert outside.grad_fn is None
    assert border.crossed == 12


@pytest.mark.parametrize("batch_size", [7, 16, 256])
def test_messages_are_counted_and_match_the_formula(tiny, batch_size):
    train, test, record = tiny
    fitted = VFLJT(PixelLogistic(), replace(QUICK, batch_size=batch_size)).fit(record, train)
    N, M, K, E = len(record.train), len(record.val), 3, len(fitted.history_.training_loss)
    assert fitted.epochs_ == E > 0
    assert fitted.training_transmissions_ == K * E * (2 * N + M)
    decision = fitted.decide(test.views)
    assert (decision.transmissions == K).all()
    assert (decision.bits == 64 * K).all()


def test_an_epoch_is_joint_gradient_descent(tiny):
    """Two epochs over the border equal two epochs of one optimiser on one graph, batch by batch."""
    train, _, record = tiny
    settings = replace(QUICK, max_epochs=2, patience=2)
    fitted = VFLJT([PixelLogistic(random_state=k) for k in range(3)], settings, workers=1).fit(record, train)
    views = [view[record.rows_train] for view in train.views]
    branches = [Branch(PixelLogistic(random_state=k), view, view[:2], settings) for k, view in enumerate(views)]
    server = Server(record.y_train, record.y_val, 3, settings)
    x = [branch.model.prepare(branch.network, view) for branch, view in zip(branches, views, strict=True)]
    target = torch.from_numpy((record.y_train > 0).astype(np.float32))
    weights = [*server.parameters(), *(w for branch in branches for w in branch.network.parameters())]
    optimizer = torch.optim.Adam(weights, lr=settings.learning_rate)
    seed = np.random.SeedSequence(0, spawn_key=(0,)).generate_state(1)[0]
    with torch.random.fork_rng():
        torch.manual_seed(int(seed))
        losses = []
        for _ in range(2):
            order, total = torch.randperm(len(target)), 0.0
            for rows in order.split(settings.batch_size):
                optimizer.zero_grad()
                loss = end_to_end(branches, server, [one[rows] for one in x], target[rows])
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) * len(rows)
            losses.append(total / len(target))
    assert fitted.history_.training_loss == pytest.approx(losses, rel=1e-5)


def test_the_decision_is_the_head_on_the_branches_scores(tiny):
    train, test, record = tiny
    fitted = VFLJT(PixelLogistic(), QUICK).fit(record, train)
    s = np.column_stack([model.scores(view) for model, view in zip(fitted.models_, test.views, strict=True)])
    np.testing.assert_allclose(fitted.decide(test.views).statistics[:, 0], s @ fitted.weights_ + fitted.bias_)
    assert fitted.decide(test.views).error(test.y) < 0.1
    assert np.abs(fitted.weights_ - 1).max() > 1e-3  # the head has learned too


def test_the_best_epoch_is_kept(tiny):
    train, _, record = tiny
    fitted = VFLJT(PatchCNN(), replace(QUICK, max_epochs=40, learning_rate=0.05)).fit(record, train)
    held = [view[record.rows_val] for view in train.views]
    margins = fitted.decide(held).statistics[:, 0] * record.y_val
    assert np.logaddexp(0, -margins).mean() == pytest.approx(min(fitted.history_.validation_loss), rel=1e-4)
    assert fitted.history_.best_epoch < fitted.epochs_


@pytest.mark.parametrize("model", [PatchCNN(), PatchCNN(dropout=0.5), SmallResNet()], ids=["plain", "dropout", "norm"])
def test_no_number_depends_on_the_workers(tiny, model):
    train, test, record = tiny
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, two = (
        VFLJT(model, QUICK, workers=workers, random_state=3).fit(record, train).decide(test.views).statistics
        for workers in (1, 3)
    )
    np.testing.assert_array_equal(one, two)
    assert torch.equal(torch.get_rng_state(), before)
    other = VFLJT(model, QUICK, random_state=4).fit(record, train).decide(test.views).statistics
    assert np.abs(one - other).max() > 1e-3


def test_branches_begin_with_different_weights(tiny):
    train, _, record = tiny
    fitted = VFLJT(PixelLogistic(), replace(QUICK, max_epochs=1, learning_rate=1e-12)).fit(record, train)
    first, second, third = (model.module_.head.weight.detach() for model in fitted.models_)
    assert not torch.allclose(first, second)
    assert not torch.allclose(second, third)


def test_deciding_is_counted_too(tiny, monkeypatch):
    train, test, record = tiny
    fitted = VFLJT(PixelLogistic(), QUICK).fit(record, train)
    crossed = []
    cross = Border.cross
    monkeypatch.setattr(Border, "cross", lambda self, numbers: crossed.append(numbers.numel()) or cross(self, numbers))
    decision = fitted.decide(test.views)
    assert sum(crossed) == decision.transmissions.sum() == 3 * 60


def test_branches_may_differ_and_have_one_output(tiny):
    train, test, record = tiny
    single = TorchModel(lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 1)))
    fitted = VFLJT([PatchCNN(), single, PixelLogistic()], replace(QUICK, learning_rate=1e-4)).fit(record, train)
    assert [type(model) for model in fitted.models_] == [PatchCNN, TorchModel, PixelLogistic]
    assert np.isfinite(fitted.decide(test.views).statistics).all()


def test_mistakes_are_answered_with_a_sentence(tiny):
    train, test, record = tiny
    with pytest.raises(ModelError, match="needs PyTorch models; agent 'eye 0' has SklearnModel"):
        VFLJT(LogisticRegression()).fit(record, train)
    with pytest.raises(DataError, match="give the Dataset"):
        VFLJT(PatchCNN()).fit(record)
    with pytest.raises(ModelError, match="not fitted"):
        VFLJT(PatchCNN()).decide(test.views)
    with pytest.raises(ModelError, match="2 models"):
        VFLJT([PatchCNN(), PatchCNN()]).fit(record, train)
    with pytest.raises(ModelError, match="cannot be fitted on a view of shape"):
        VFLJT(TorchModel(lambda: torch.nn.Linear(7, 1))).fit(record, train)
    with pytest.raises(DataError, match="give the Dataset"):
        VFLJT(PatchCNN()).fit(record, train.views)
    with pytest.raises(ModelError, match=r"must be an agents\.Training"):
        VFLJT(PatchCNN(), training={"learning_rate": 1}).fit(record, train)
    with pytest.raises(ModelError, match="workers"):
        VFLJT(PatchCNN(), workers=0).fit(record, train)
    with pytest.raises(ModelError, match="diverged"):
        VFLJT(PatchCNN(), replace(SGD, learning_rate=1e30)).fit(record, train)
