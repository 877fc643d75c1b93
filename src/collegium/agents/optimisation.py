"""How a network is trained: the settings, and the loop that follows them.

The paper fixes Adam with rate 1e-4 and batches of 256 for CIFAR-10, SGD with rate 0.05 for ModelNet, cross-entropy, at
most 100 epochs, early stopping on the validation loss and the best weights kept [hu2026, App. H]. What it
leaves open has a name here: momentum, weight decay, patience, what counts as an improvement, and the precision.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from collegium._util.arguments import real_number, whole_number
from collegium.errors import ModelError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

Progress = Callable[[float], None]
"""Told, after every epoch, which part of the training is done."""


@dataclass(frozen=True)
class Training:
    """Settings of the training of one network."""

    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 1e-4
    batch_size: int = 256
    max_epochs: int = 100
    patience: int = 5
    """Stop after so many epochs in a row without a smaller validation loss."""
    min_improvement: float = 0.0
    """A validation loss counts as smaller if it is so by more than this."""
    momentum: float = 0.0
    """Of SGD; Adam keeps its usual 0.9 and 0.999."""
    weight_decay: float = 0.0
    validation: float = 0.2
    """The part held out for early stopping if a model is fitted by itself; `agents.train` and `Team` have their own."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16 rounds inside convolutions and products to 8 significant bits while training. It is quicker where the
    processor has instructions for it, and several times slower where it has not."""
    threads: int = 1
    """Threads inside one model while it trains. One is quickest when several models train side by side; what is learned
    depends on it, the scores of a fitted model do not."""

    def __post_init__(self) -> None:
        if self.optimizer not in ("adam", "sgd"):
            raise ModelError(f'optimizer must be "adam" or "sgd"; got {self.optimizer!r}')
        if self.precision not in ("float32", "bfloat16"):
            raise ModelError(f'precision must be "float32" or "bfloat16"; got {self.precision!r}')
        for name in ("batch_size", "max_epochs", "patience", "threads"):
            whole_number(getattr(self, name), name, ModelError, at_least=1)
        real_number(self.learning_rate, "learning_rate", ModelError, above=0)
        for name in ("min_improvement", "momentum", "weight_decay"):
            real_number(getattr(self, name), name, ModelError, at_least=0)
        real_number(self.validation, "validation", ModelError, above=0, at_most=0.9)


def check_training(settings: Any) -> Training:
    """Refuse what is not a set of settings."""
    if not isinstance(settings, Training):
        raise ModelError(f"training must be an agents.Training; got {settings!r:.80}")
    return settings


ADAM = Training()
"""As the paper trains on CIFAR-10."""
SGD = Training(optimizer="sgd", learning_rate=0.05, momentum=0.9, batch_size=32, patience=100)
"""The paper's optimiser and rate for ModelNet, as long as its cap of 100 epochs allows. It names neither momentum nor
patience there, and batches of 256 would make two steps an epoch of the few hundred objects: batch, patience and
channels have the smallest validation loss of `benchmarks/agent_settings.py`."""
SGD_SHORT = replace(SGD, patience=10)
"""The same with the patience of earlier results: on 78 noisy validation items it ends on a plateau."""


class Sample(NamedTuple):
    """Prepared inputs and targets: 1 for the label +1 and 0 for -1, or the places of more classes."""

    x: Tensor
    target: Tensor
    weight: Tensor | None = None
    """How much each item counts, 1 on average; None where all count alike."""
    classes: int = 2

    def rows(self, chosen: Tensor) -> Sample:
        """Some of the items."""
        weight = None if self.weight is None else self.weight.index_select(0, chosen)
        return Sample(self.x.index_select(0, chosen), self.target.index_select(0, chosen), weight, self.classes)

    def pieces(self, size: int) -> Iterator[Sample]:
        """All items in order, `size` at a time."""
        for x, target in zip(self.x.split(size), self.target.split(size), strict=True):
            yield Sample(x, target, None, self.classes)


class History(NamedTuple):
    """What happened during training, one entry per epoch."""

    training_loss: tuple[float, ...]
    validation_loss: tuple[float, ...]
    best_epoch: int
    """The epoch, counted from 1, whose weights were kept."""
    seconds: float


def optimise(
    network: nn.Module, train: Sample, validation: Sample, settings: Training, progress: Progress | None = None
) -> History:
    """Train `network` in place and leave it with the weights of the smallest validation loss."""
    import torch

    optimizer = make_optimizer(network, settings)

    def epoch() -> float:
        total = torch.zeros(())
        for rows in batches(len(train.target), settings.batch_size):
            optimizer.zero_grad()
            loss = _loss(network, train.rows(rows), settings)
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(rows)
        return float(total) / len(train.target)

    def check() -> float:
        total = sum(
            float(_loss(network, piece, settings)) * len(piece.target)
            for piece in validation.pieces(settings.batch_size)
        )
        return total / len(validation.target)

    return stop_early([network], epoch, check, settings, progress)


def stop_early(
    networks: Sequence[nn.Module],
    epoch: Callable[[], float],
    check: Callable[[], float],
    settings: Training,
    progress: Progress | None = None,
) -> History:
    """Go through epochs until the validation loss ceases to improve, and leave the networks with the best weights.

    `epoch` learns from every training item once and gives the training loss; `check` gives the validation loss.
    """
    import torch

    begun = time.perf_counter()
    losses: list[float] = []
    checks: list[float] = []
    best, best_epoch, best_weights = float("inf"), 0, []
    for number in range(1, settings.max_epochs + 1):
        for network in networks:
            network.train()
        losses.append(epoch())
        for network in networks:
            network.eval()
        with torch.no_grad():
            checks.append(check())
        if not np.isfinite(losses[-1]) or not np.isfinite(checks[-1]):
            raise ModelError(
                f"training diverged: the loss is no longer finite in epoch {number}. "
                f"Try a learning_rate below {settings.learning_rate:g}."
            )
        if checks[-1] < best - settings.min_improvement:
            best, best_epoch = checks[-1], number
            best_weights = [
                {name: value.clone() for name, value in network.state_dict().items()} for network in networks
            ]
        finished = number - best_epoch >= settings.patience
        if progress is not None:
            progress(1.0 if finished else number / settings.max_epochs)
        if finished:
            break
    for network, weights in zip(networks, best_weights, strict=True):
        network.load_state_dict(weights)
    return History(tuple(losses), tuple(checks), best_epoch, time.perf_counter() - begun)


def _loss(network: nn.Module, items: Sample, settings: Training) -> Tensor:
    import torch.nn.functional as F

    logits, n = forward(network, items.x, settings), len(items.x)
    if items.classes == 2:
        return F.binary_cross_entropy_with_logits(single(logits, n), items.target.float(), items.weight)
    if logits.shape != (n, items.classes):
        raise ModelError(
            f"a network for {items.classes} classes must have as many outputs per item; "
            f"got {tuple(logits.shape)} for {n} items"
        )
    losses = F.cross_entropy(logits, items.target, reduction="none")
    return (losses if items.weight is None else losses * items.weight).mean()


def single(logits: Tensor, n: int) -> Tensor:
    """One score per item, shape (n,), from a network's one or two outputs per item.

    The cross-entropy of two logits is the logistic loss of their difference.
    """
    if logits.shape == (n, 2):
        return logits[:, 1] - logits[:, 0]
    if logits.shape in ((n, 1), (n,)):
        return logits.flatten()
    raise ModelError(f"a network must have one or two outputs per item; got {tuple(logits.shape)} for {n} items")


def forward(network: nn.Module, x: Tensor, settings: Training) -> Tensor:
    """The network's outputs for some prepared inputs, in float32 whatever the precision inside."""
    with autocast(settings):
        return floats(network(x))


def floats(logits: Any) -> Tensor:
    """A network's outputs in float32, or the sentence that they are none."""
    if not hasattr(logits, "float"):
        raise ModelError(f"a network must answer with a tensor; got {type(logits).__name__}")
    answer: Tensor = logits.float()
    return answer


def batches(n: int, size: int) -> Iterator[Tensor]:
    """A random order of n items in batches; a last batch of one item, on which some layers cannot learn, joins its
    neighbour."""
    import torch

    order = torch.randperm(n)
    ends = list(range(size, n, size))
    if ends and n - ends[-1] == 1:
        ends.pop()
    yield from torch.tensor_split(order, ends)


def make_optimizer(network: nn.Module, settings: Training) -> torch.optim.Optimizer:
    """The optimiser that the settings name, for all weights that can be trained."""
    import torch

    weights = [weight for weight in network.parameters() if weight.requires_grad]
    if not weights:
        raise ModelError("this network has no weights to train: use it as it is, in Team.from_fitted")
    common: dict[str, Any] = {"lr": settings.learning_rate, "weight_decay": settings.weight_decay, "fused": True}
    if settings.optimizer == "adam":
        return torch.optim.Adam(weights, **common)
    return torch.optim.SGD(weights, momentum=settings.momentum, **common)


def autocast(settings: Training) -> torch.autocast:
    """The precision that the settings ask for, in this thread."""
    import torch

    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=settings.precision == "bfloat16")


@contextmanager
def threads(number: int) -> Iterator[None]:
    """So many threads inside PyTorch's operations."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
