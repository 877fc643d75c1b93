"""The bound for shipped networks: above every network of the class that is tried, and built from the right norms."""

import numpy as np
import pytest
import torch

from collegium.agents import MicroCNN, PatchCNN, PixelLogistic, SmallResNet, TorchModel, Training
from collegium.diagnostics import complexity
from collegium.diagnostics.complexity import layers
from collegium.errors import ModelError
from collegium.theory.rademacher import Affine, Ramp, finite_class
from helpers import tiny_images

QUICK = Training(learning_rate=0.01, batch_size=16, max_epochs=2)
FAMILIES = [
    PixelLogistic(training=QUICK),
    MicroCNN(training=QUICK),
    PatchCNN(training=QUICK),
    SmallResNet(training=QUICK),
]


@pytest.mark.parametrize("model", FAMILIES, ids=lambda model: type(model).__name__)
def test_it_is_above_the_networks_with_the_same_norms(model):
    """Changing signs of weights and permuting units keeps every norm: all these networks are in the class."""
    train = tiny_images(60, 1)
    model.set_params(random_state=0).fit(train.views[0], train.y)
    items = train.views[0][:12]
    bound = complexity(model, items)
    assert bound.kind == "upper bound"
    torch.manual_seed(0)
    kept = {name: value.clone() for name, value in model.module_.state_dict().items()}
    outputs = []
    for _ in range(60):
        changed = {}
        for name, value in kept.items():
            if name.endswith("weight"):  # both rows of the head alike: its norm is that of their difference
                shape = value.shape[1:] if name == "head.weight" else value.shape
                changed[name] = value * torch.where(torch.rand(shape) < 0.5, -1.0, 1.0)
        model.module_.load_state_dict(kept | changed)
        outputs.append(model.scores(items))
    model.module_.load_state_dict(kept)
    outputs.append(model.scores(items))
    if isinstance(model, SmallResNet):  # signs inside a normalisation move its offset: only the network itself counts
        outputs = outputs[-1:]
    assert finite_class(np.array(outputs)).value < bound.value


def test_logistic_regression_has_one_layer():
    train = tiny_images(40, 1)
    model = PixelLogistic(training=QUICK, random_state=0).fit(train.views[0], train.y)
    weight = (model.module_.head.weight[1] - model.module_.head.weight[0]).detach()
    bias = (model.module_.head.bias[1] - model.module_.head.bias[0]).detach()
    assert layers(model.module_) == [Affine(pytest.approx(float(weight.abs().sum())), pytest.approx(abs(float(bias))))]
    x = model.prepare(model.module_, train.views[0]).flatten(1).numpy()
    start = np.linalg.norm(x, axis=0).max() * np.sqrt(2 * np.log(128)) / 40
    expected = float(weight.abs().sum()) * start + abs(float(bias)) / np.sqrt(40)
    assert complexity(model, train.views[0]).value == pytest.approx(expected, rel=1e-5)


def test_layers_are_those_of_the_network():
    train = tiny_images(40, 1)
    patch = PatchCNN(training=QUICK, random_state=0).fit(train.views[0], train.y).module_
    kinds = layers(patch)
    assert [type(layer) for layer in kinds] == [Affine, Ramp, Affine, Ramp, Affine, Ramp, Affine]
    assert kinds[3].pool == 4
    assert kinds[2].norm == pytest.approx(float(patch.second.weight.detach().abs().sum(dim=(1, 2, 3)).max()))
    residual = SmallResNet(training=QUICK, random_state=0).fit(train.views[0], train.y).module_
    stem = layers(residual)[0]
    convolution, norm = residual.stem
    scale = (norm.weight / (norm.running_var + norm.eps).sqrt()).detach()
    norms = convolution.weight.detach().abs().sum(dim=(1, 2, 3)) * scale.abs()
    assert stem.norm == pytest.approx(float(norms.max()), rel=1e-5)
    offsets = (norm.bias - norm.running_mean * scale).detach().abs()
    assert stem.bias == pytest.approx(float(offsets.max()), rel=1e-5)


def test_more_items_are_less_complexity():
    train = tiny_images(200, 1)
    model = MicroCNN(training=QUICK, random_state=0).fit(train.views[0], train.y)
    few, many = (complexity(model, train.views[0][:n]).value for n in (20, 200))
    assert 2.5 < few / many < 4  # √10 = 3.2


def test_unknown_networks_are_refused():
    with pytest.raises(ModelError, match="not fitted"):
        complexity(PixelLogistic(), np.zeros((2, 8, 8)))
    plain = TorchModel(lambda: torch.nn.Linear(3, 1), training=QUICK).fit(
        np.random.default_rng(0).normal(size=(20, 3)), [0, 1] * 10
    )
    with pytest.raises(ModelError, match="describe them"):
        complexity(plain, np.zeros((2, 3)))
