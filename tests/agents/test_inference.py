"""A fitted network is scored in one way, whatever the training and the caller have set."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from collegium.agents import MicroCNN, PatchCNN, PixelLogistic, SmallResNet, TorchModel, Training  # noqa: E402
from collegium.agents.inference import BATCH, outputs, scoring  # noqa: E402
from helpers import tiny_images  # noqa: E402

NARROW = float(np.finfo(np.float32).eps)
QUICK = Training(learning_rate=0.01, batch_size=8, max_epochs=1)
OTHER = [
    replace(QUICK, threads=3),
    replace(QUICK, batch_size=7),
    replace(QUICK, precision="bfloat16"),
    Training("sgd", 1e38, batch_size=1000, threads=2, precision="bfloat16"),
]
COLUMNS = np.arange(900.0, dtype=np.float32).reshape(300, 3)


class Witness(nn.Module):
    """Notes what is in force while it is asked."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, n):
        self.seen.append((n, torch.get_num_threads(), torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()))

    def forward(self, x):
        self.note(len(x))
        return x[:, :2]


@pytest.mark.parametrize("training", OTHER)
@pytest.mark.parametrize("callers", [1, 3])
def test_nothing_of_the_training_or_the_caller_is_in_force(training, callers):
    network = Witness()

    def transform(view):
        network.note(len(view))
        return torch.from_numpy(view)

    before = torch.get_num_threads()
    torch.set_num_threads(callers)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            TorchModel(network, transform, training).scores(COLUMNS)
        assert torch.get_num_threads() == callers
    finally:
        torch.set_num_threads(before)
    alike = (1, False, False)
    assert network.seen == [(300, *alike), (BATCH, *alike), (300 - BATCH, *alike)]


@pytest.mark.parametrize("training", OTHER)
@pytest.mark.parametrize(
    "family", [PatchCNN((4, 6), 8), PixelLogistic(), SmallResNet((8, 12)), MicroCNN(8)], ids=lambda m: type(m).__name__
)
def test_settings_changed_after_fitting_change_no_score(family, training):
    images = tiny_images(60, 1)
    model = family.set_params(training=QUICK, random_state=0).fit(images.views[0], images.y)
    scores = model.scores(images.views[0])
    assert model.set_params(training=training).scores(images.views[0]).tolist() == scores.tolist()


def test_large_items_come_in_smaller_batches():
    network = Witness()
    with scoring():
        outputs(network, torch.zeros(5, 2, 2**20))
        outputs(network, torch.zeros(2, 2**23))
    assert [n for n, *_ in network.seen] == [2, 2, 1, 1, 1]


def test_outputs_in_pieces_are_the_outputs():
    network = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(BATCH + 10, 3)).astype(np.float32))
    with scoring():
        pieces = outputs(network, x)
        expected = network[0](x)
    assert pieces.numpy() == pytest.approx(expected.numpy(), abs=8 * NARROW)
    assert not pieces.requires_grad
