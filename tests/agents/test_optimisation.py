"""The training loop against plain arithmetic: losses, steps, early stopping, seeds, threads and precision."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from collegium.agents import ADAM, SGD, MicroCNN, PatchCNN, PixelLogistic, SmallResNet, TorchModel, Training  # noqa: E402
from collegium.agents.optimisation import Sample, forward, optimise  # noqa: E402
from collegium.errors import ModelError  # noqa: E402
from helpers import tiny_images  # noqa: E402

NARROW = float(np.finfo(np.float32).eps)
IMAGES = tiny_images(40, 1)
BRIEF = Training(learning_rate=0.01, batch_size=8, max_epochs=3)


def data(n, features=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, features)).astype(np.float32)
    target = (x[:, 0] + rng.normal(size=n) > 0).astype(np.int64)
    return x, target


def sample(x, target):
    return Sample(torch.from_numpy(np.asarray(x, np.float32)), torch.from_numpy(np.asarray(target, np.int64)))


def cross_entropy(logits, target):
    """Minus the mean log of the softmax at the target, or of the logistic function if there is one output."""
    logits = np.asarray(logits, float)
    if logits.ndim == 1 or logits.shape[1] == 1:
        logits = np.column_stack([np.zeros(len(logits)), logits.reshape(-1)])
    return float(np.mean(np.log(np.exp(logits).sum(1)) - logits[np.arange(len(logits)), target]))


class Watched(nn.Linear):
    """A linear layer that remembers the batches it learned from."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.batches = []

    def forward(self, x):
        if self.training:
            self.batches.append(x.detach().numpy().copy())
        return super().forward(x)


# Settings


def test_the_settings_of_the_paper():
    assert (ADAM.optimizer, ADAM.learning_rate, ADAM.batch_size) == ("adam", 1e-4, 256)
    assert (SGD.optimizer, SGD.learning_rate) == ("sgd", 0.05)
    for settings in (ADAM, SGD):
        assert (settings.max_epochs, settings.validation, settings.precision) == (100, 0.2, "float32")
    assert PatchCNN().training == ADAM
    assert MicroCNN().training == SGD


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "lion"}, 'optimizer must be "adam" or "sgd"; got \'lion\''),
        ({"precision": "float16"}, 'precision must be "float32" or "bfloat16"; got \'float16\''),
        ({"batch_size": 0}, "batch_size must be a whole number, at least 1; got 0"),
        ({"batch_size": 2.0}, "batch_size must be a whole number"),
        ({"max_epochs": 0}, "max_epochs must be a whole number"),
        ({"patience": True}, "patience must be a whole number"),
        ({"threads": -1}, "threads must be a whole number"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number, above 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number"),
        ({"min_improvement": -1e-9}, "min_improvement must be a finite number, at least 0"),
        ({"momentum": "much"}, "momentum must be a finite number"),
        ({"weight_decay": float("inf")}, "weight_decay must be a finite number"),
        ({"validation": 0}, "validation must be a finite number, above 0"),
        ({"validation": 1.0}, r"validation must be .* at most 0\.9"),
    ],
)
def test_settings_refused(settings, message):
    with pytest.raises(ModelError, match=message):
        Training(**settings)


# Losses and steps, by hand


@pytest.mark.parametrize("width", [1, 2])
def test_the_loss_is_cross_entropy(width):
    x, target = data(20)
    held, held_target = data(7, seed=1)
    network = nn.Linear(3, width)
    weight, bias = (value.detach().double().numpy().copy() for value in network.parameters())
    settings = Training("sgd", learning_rate=1e-30, max_epochs=1)  # a step too small to change a float32
    history = optimise(network, sample(x, target), sample(held, held_target), settings)
    # the loss is a mean of numbers of size one in float32
    assert history.training_loss[0] == pytest.approx(cross_entropy(x @ weight.T + bias, target), abs=8 * NARROW)
    assert history.validation_loss[0] == pytest.approx(
        cross_entropy(held @ weight.T + bias, held_target), abs=8 * NARROW
    )


def test_a_single_output_without_an_axis_is_a_logit_too():
    x, target = data(20)
    network = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    before = [value.detach().clone() for value in network.parameters()]
    history = optimise(network, sample(x, target), sample(x, target), replace(SGD, max_epochs=1, batch_size=20))
    logits = x @ before[0].numpy().T + before[1].numpy()
    assert history.training_loss[0] == pytest.approx(cross_entropy(logits, target), abs=8 * NARROW)


@pytest.mark.parametrize(("n", "size", "expected"), [(9, 4, [4, 5]), (8, 4, [4, 4]), (10, 4, [4, 4, 2]), (5, 8, [5])])
def test_batches_cover_every_item_once_and_none_has_a_single_item(n, size, expected):
    x, target = data(n)
    network = Watched(3, 2)
    optimise(network, sample(x, target), sample(x, target), Training(batch_size=size, max_epochs=2))
    assert [len(batch) for batch in network.batches] == expected * 2
    epochs = [np.concatenate(network.batches[i : i + len(expected)]) for i in (0, len(expected))]
    for epoch in epochs:
        assert sorted(epoch.tolist()) == sorted(x.tolist())
    assert epochs[0].tolist() != epochs[1].tolist()  # and the order is drawn anew: one chance in 5! at most


def test_layers_that_cannot_learn_from_one_item_never_meet_one():
    x, target = data(9)
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    history = optimise(network, sample(x, target), sample(x, target), Training(batch_size=4, max_epochs=1))
    assert np.isfinite(history.training_loss).all()


def softmax_gradient(weight, bias, x, target):
    logits = x @ weight.T + bias
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    p[np.arange(len(x)), target] -= 1
    return p.T @ x / len(x), p.mean(0)


def steps_of_sgd(weights, gradient_of, batches, settings):
    velocity = [np.zeros_like(weight) for weight in weights]
    for batch in batches:
        for i, g in enumerate(gradient_of(*weights, *batch)):
            velocity[i] = settings.momentum * velocity[i] + g + settings.weight_decay * weights[i]
        weights = [weight - settings.learning_rate * v for weight, v in zip(weights, velocity, strict=True)]
    return weights


def steps_of_adam(weights, gradient_of, batches, settings):
    first = [np.zeros_like(weight) for weight in weights]
    second = [np.zeros_like(weight) for weight in weights]
    for t, batch in enumerate(batches, 1):
        fresh = []
        for i, g in enumerate(gradient_of(*weights, *batch)):
            g = g + settings.weight_decay * weights[i]
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g**2
            m, v = first[i] / (1 - 0.9**t), second[i] / (1 - 0.999**t)
            fresh.append(weights[i] - settings.learning_rate * m / (np.sqrt(v) + 1e-8))
        weights = fresh
    return weights


@pytest.mark.parametrize(
    ("settings", "by_hand"),
    [
        (Training("sgd", 0.05), steps_of_sgd),
        (Training("sgd", 0.05, momentum=0.9), steps_of_sgd),
        (Training("sgd", 0.05, momentum=0.5, weight_decay=0.1), steps_of_sgd),
        (Training("adam", 1e-3), steps_of_adam),
        (Training("adam", 1e-2, weight_decay=0.1), steps_of_adam),
    ],
)
@pytest.mark.parametrize("epochs", [1, 3])
def test_steps_by_hand(settings, by_hand, epochs):
    x, target = data(10)
    network = Watched(3, 2)
    weights = [value.detach().double().numpy().copy() for value in network.parameters()]
    # The validation set agrees with the training set, so that the last weights are the best.
    settings = replace(settings, batch_size=4, max_epochs=epochs)
    history = optimise(network, sample(x, target), sample(x, target), settings)
    assert history.best_epoch == epochs
    labels = {tuple(row): label for row, label in zip(x.tolist(), target, strict=True)}
    batches = [
        (batch.astype(float), np.array([labels[tuple(row)] for row in batch.tolist()])) for batch in network.batches
    ]
    for ours, expected in zip(network.parameters(), by_hand(weights, softmax_gradient, batches, settings), strict=True):
        # nine steps in float32, each no longer than 0.1, of gradients good to a few eps of numbers of size one
        assert ours.detach().numpy() == pytest.approx(expected, abs=64 * NARROW)


# Early stopping


def push(ones, settings):
    """One weight, pushed up by every training item; a validation loss that is smallest where the odds of +1 are those
    of `ones` in 4 items."""

    class Odds(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(()))

        def forward(self, x):
            return self.weight * x[:, 0]

    network = Odds()
    told = []
    held = np.arange(4) < ones
    history = optimise(
        network, sample(np.ones((6, 1)), np.ones(6)), sample(np.ones((4, 1)), held), settings, told.append
    )
    return float(network.weight.detach()), history, told


@pytest.mark.parametrize("patience", [1, 3, 5])
@pytest.mark.parametrize("ones", [2, 3])
def test_training_stops_after_the_patience_and_keeps_the_best_weights(patience, ones):
    settings = Training("sgd", 0.5, batch_size=3, max_epochs=40, patience=patience)
    weight, history, told = push(ones, settings)
    losses = history.validation_loss
    assert len(losses) == len(history.training_loss) == history.best_epoch + patience
    assert history.best_epoch == 1 + int(np.argmin(losses)) < 20
    p = 1 / (1 + np.exp(-weight))
    kept = -(ones * np.log(p) + (4 - ones) * np.log(1 - p)) / 4
    assert kept == pytest.approx(min(losses), abs=8 * NARROW)
    assert told[:-1] == [epoch / 40 for epoch in range(1, len(losses))]
    assert told[-1] == 1.0


def test_the_weights_after_the_best_are_thrown_away():
    long = push(2, Training("sgd", 0.5, batch_size=3, max_epochs=40, patience=9))
    short = push(2, Training("sgd", 0.5, batch_size=3, max_epochs=long[1].best_epoch, patience=9))
    assert len(long[1].validation_loss) > len(short[1].validation_loss)
    assert long[0] == short[0]


def test_max_epochs_is_the_last_word():
    _, history, told = push(4, Training("sgd", 0.5, max_epochs=7, patience=2))
    assert len(history.validation_loss) == history.best_epoch == 7
    assert told == pytest.approx(np.arange(1, 8) / 7)


def test_the_same_loss_is_no_improvement():
    _, history, _ = push(3, Training("sgd", 1e-30, patience=4))
    assert set(history.validation_loss) == {history.validation_loss[0]}
    assert (history.best_epoch, len(history.validation_loss)) == (1, 5)


def test_small_improvements_can_be_disregarded():
    settings = Training("sgd", 0.02, max_epochs=9, patience=3)
    _, every, _ = push(4, settings)
    gains = -np.diff(every.validation_loss)
    assert (gains > 0).all()
    # any three of them together are more, any two are less
    enough = 2.2 * gains.mean()
    assert 2 * gains.max() < enough < 3 * gains.min()
    _, few, _ = push(4, replace(settings, min_improvement=enough))
    assert (few.best_epoch, len(few.validation_loss)) == (7, 9)
    _, none, _ = push(4, replace(settings, min_improvement=enough, patience=2))
    assert (none.best_epoch, len(none.validation_loss)) == (1, 3)


@pytest.mark.parametrize(
    "model",
    [PatchCNN(dropout=0.3), PixelLogistic(), SmallResNet(), MicroCNN(dropout=0.3)],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("agreeing", [True, False])
def test_the_fitted_model_has_the_smallest_validation_loss(model, agreeing):
    held = tiny_images(11, 1, seed=5)
    view, y = held.views[0], held.y if agreeing else -held.y  # what is learned helps, or does harm
    model.set_params(training=replace(BRIEF, learning_rate=0.02, batch_size=4), random_state=1)
    model.fit(IMAGES.views[0], IMAGES.y, (view, y))
    assert model.history_.best_epoch == 1 + np.argmin(model.history_.validation_loss)
    assert not any(module.training for module in model.module_.modules())
    scores = model.scores(view)
    # scores in float32, through a function that is never steeper than one
    close = 64 * NARROW * max(1, np.abs(scores).max())
    assert np.mean(np.logaddexp(0, -scores * y)) == pytest.approx(min(model.history_.validation_loss), abs=close)
    assert model.history_.seconds > 0


# What goes wrong


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_divergence_is_a_sentence(optimizer):
    x, target = data(12)
    settings = Training(optimizer, 1e38, max_epochs=3, batch_size=4)
    with pytest.raises(ModelError, match=r"training diverged: .* epoch 1\. Try a learning_rate below 1e\+38"):
        optimise(nn.Linear(3, 2), sample(x * 1e10, target), sample(x, target), settings)


def test_a_network_without_weights_is_a_sentence():
    x, target = data(12)
    for network in (nn.Flatten(), nn.Linear(3, 2).requires_grad_(False)):
        with pytest.raises(ModelError, match="no weights to train"):
            optimise(network, sample(x, target), sample(x, target), ADAM)


def test_frozen_weights_stay():
    x, target = data(12)
    network = nn.Linear(3, 2)
    network.bias.requires_grad_(False)
    weight, bias = network.weight.detach().clone(), network.bias.clone()
    optimise(network, sample(x, target), sample(x, target), BRIEF)
    assert torch.equal(network.bias, bias)
    assert not torch.equal(network.weight, weight)


# What belongs to the caller, and what the seed decides


def fit(settings=BRIEF, random_state=3, model=None):
    model = PatchCNN((4, 4), 8, 0.2) if model is None else model
    return model.set_params(training=settings, random_state=random_state).fit(IMAGES.views[0], IMAGES.y)


def weights_of(model):
    return torch.cat([value.double().flatten() for value in model.module_.state_dict().values()])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("settings", [BRIEF, replace(BRIEF, learning_rate=1e38), replace(BRIEF, threads=2)])
def test_random_numbers_and_threads_of_the_caller_are_left_alone(settings, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.manual_seed(11)
        state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
        try:
            fit(settings).scores(IMAGES.views[0])
        except ModelError:
            assert settings.learning_rate == 1e38
        assert torch.equal(torch.get_rng_state(), state)
        assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_is_the_one_set(threads):
    """From the first look at the data on, whatever the caller has: no machine has just as many cores."""
    seen = []

    class Counting(nn.Linear):
        def forward(self, x):
            seen.append(torch.get_num_threads())
            return super().forward(x)

    def transform(view):
        seen.append(torch.get_num_threads())
        return torch.from_numpy(view)

    x, target = data(12)
    model = TorchModel(lambda: Counting(3, 2), transform, replace(BRIEF, threads=threads, max_epochs=1))
    model.fit(x, target)
    assert set(seen) == {threads}


def test_the_same_seed_gives_the_same_weights():
    torch.manual_seed(1)
    one = fit()
    torch.manual_seed(2)
    two = fit()
    assert torch.equal(weights_of(one), weights_of(two))
    assert one.history_[:3] == two.history_[:3]
    assert one.scores(IMAGES.views[0]).tolist() == two.scores(IMAGES.views[0]).tolist()


def test_another_seed_or_none_gives_other_weights():
    states = [weights_of(fit(random_state=state)) for state in (3, 4, None, None)]
    assert len({tuple(state.tolist()) for state in states}) == 4


def test_one_linear_model_is_drawn_from_the_seed_when_a_function_makes_it():
    def made(callers):
        torch.manual_seed(callers)
        return weights_of(fit(model=TorchModel(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 2)))))

    assert torch.equal(made(1), made(2))


# Precision


def test_bfloat16_rounds_each_factor_and_the_result():
    model = fit(model=PixelLogistic(standardise=False))
    x = model.prepare(model.module_, IMAGES.views[0])
    exact, rough = (
        np.diff(forward(model.module_, x, replace(BRIEF, precision=precision)).detach().numpy())[:, 0]
        for precision in ("float32", "bfloat16")
    )
    weight, bias = (value.detach().double().numpy() for value in model.module_.parameters())
    sizes = (IMAGES.views[0].reshape(-1, 64) / 255) @ np.abs(weight).T + np.abs(bias)
    # 8 significant bits: half of 2**-8 for each factor, and as much for each of the two logits
    assert (np.abs(rough - exact) <= 1.5 * 2**-8 * 1.01 * sizes.sum(1)).all()
    assert not np.array_equal(rough, exact)


@pytest.mark.parametrize(
    "model", [PatchCNN(), PixelLogistic(), SmallResNet(), MicroCNN()], ids=lambda m: type(m).__name__
)
def test_training_in_bfloat16_ends_near_training_in_float32(model):
    exact = fit(replace(BRIEF, learning_rate=1e-3), model=model)
    expected, loss = exact.scores(IMAGES.views[0]), exact.history_.validation_loss
    rough = fit(replace(BRIEF, learning_rate=1e-3, precision="bfloat16"), model=model)
    scores = rough.scores(IMAGES.views[0])
    assert scores.dtype == np.float64
    assert not np.array_equal(scores, expected)
    # at most five layers in a row, each good to 2**-8 of what passes through it, forth and back
    assert np.abs(scores - expected).max() <= 10 * 2**-8 * max(1, np.abs(expected).max())
    assert rough.history_.validation_loss == pytest.approx(loss, abs=10 * 2**-8)
    assert all(value.dtype == torch.float32 for value in rough.module_.parameters())
