"""The oracle that sees all views: the agents' own backbones under one head."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.progress import progress
from collegium.agents._outputs import to_scores
from collegium.agents._seeding import seed_sequence
from collegium.agents.inference import BATCH, scoring
from collegium.agents.optimisation import History, Sample, Training, check_training, optimise, single, threads
from collegium.agents.scores import Scores
from collegium.agents.torch_model import ONE_AT_A_TIME, TorchModel, load_torch
from collegium.errors import ModelError
from collegium.fusion.base import Aligned
from collegium.fusion.oracle import Oracle

if TYPE_CHECKING:
    from collegium.fusion._multi_view import MultiViewNetwork

HEAD = Training(learning_rate=1e-3, batch_size=32, patience=10)
"""How the head of `MultiViewOracle` is trained; the paper names Adam and early stopping."""


class MultiViewOracle(Oracle):
    """Every view's own backbone, taken from the agents, under one head that sees all their features [hu2026, App. H.2].

    The features of all K backbones, standardised by the training items and concatenated, go through a hidden layer to
    as many logits as there are classes. First only the head is trained, while the backbones stay as the agents left
    them; then everything, with `learning_rate` times `fine_tuning`, which is kept if it makes the validation loss
    smaller. Both stages use Adam, cross-entropy and early stopping. The paper gives no sizes or rates: they are the
    settings here.
    """

    def __init__(
        self,
        hidden: int = 64,
        training: Training = HEAD,
        fine_tuning: float = 0.1,
        workers: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.hidden = hidden
        self.training = training
        self.fine_tuning = fine_tuning
        self.workers = workers
        self.random_state = random_state

    def _learn(self, items: Aligned, scores: Scores) -> None:
        torch = load_torch()
        whole_number(self.hidden, "hidden", ModelError, at_least=1)
        check_training(self.training)
        real_number(self.fine_tuning, "fine_tuning", ModelError, above=0, at_most=1)
        self.models_ = _trained(scores)
        seed = int(seed_sequence(self.random_state, "random_state").generate_state(1)[0])
        with (
            ONE_AT_A_TIME,
            torch.random.fork_rng(devices=[]),
            threads(self.training.threads),
            progress("training the oracle", 2) as bar,
        ):
            torch.manual_seed(seed)
            self._train(items, bar)

    def _train(self, items: Aligned, bar: Any) -> None:
        import torch

        from collegium.fusion._multi_view import MultiViewNetwork, OnItems
        from collegium.tuning._in_threads import in_threads

        data, inside, outside = items
        rows = np.concatenate([inside, outside])
        backbones = [deepcopy(model.module_) for model in self.models_]
        x = [
            model.inputs(network, view[rows])
            for model, network, view in zip(self.models_, backbones, data.views, strict=True)
        ]
        C, N = self.classes_, len(inside)
        target = torch.from_numpy((data.y[rows] > 0 if C == 2 else data.y[rows]).astype(np.int64))

        def parts(x: torch.Tensor) -> tuple[Sample, Sample]:
            return Sample(x[:N], target[:N], classes=C), Sample(x[N:], target[N:], classes=C)

        with in_threads(self.workers, backbones) as run:
            network = MultiViewNetwork(backbones, self.hidden, C)
            first = optimise(network.head, *parts(network.observe(x, N, run)), self.training, bar.move_to)
            before = {name: value.clone() for name, value in network.state_dict().items()}
            second = optimise(
                OnItems(network, x, run),
                *parts(torch.arange(len(rows))),
                replace(self.training, learning_rate=self.fine_tuning * self.training.learning_rate),
                lambda part: bar.move_to(1 + part),
            )
        if min(second.validation_loss) > min(first.validation_loss):
            network.load_state_dict(before)
        self.network_: MultiViewNetwork = network
        self.history_: tuple[History, History] = first, second

    def _statistic(self, views: list[NDArray[Any]]) -> NDArray[np.float64]:
        from collegium.tuning._in_threads import in_threads

        network = self.network_
        matching = [model.matching(view) for model, view in zip(self.models_, views, strict=True)]
        C = self.classes_
        pieces = [np.empty(0 if C == 2 else (0, C))]
        with ONE_AT_A_TIME, scoring(), in_threads(self.workers, list(network.backbones)) as run:
            for i in range(0, len(views[0]), BATCH):
                x = [
                    model.prepare(backbone, view[i : i + BATCH])
                    for model, backbone, view in zip(self.models_, network.backbones, matching, strict=True)
                ]
                logits = network(x, run)
                pieces.append((single(logits, len(x[0])) if C == 2 else logits).double().numpy())
        return to_scores(np.concatenate(pieces), len(views[0]), self.name)


def _trained(scores: Scores) -> list[TorchModel]:
    models = [model for model in scores.models if isinstance(model, TorchModel)]
    if len(models) < scores.size or not all(hasattr(model.module_, "features") for model in models):
        raise ModelError(
            "the multi-view oracle begins with the agents' own networks: train them with agents.train and a PyTorch "
            "family such as MicroCNN (a saved score record does not keep the models)"
        )
    return models
