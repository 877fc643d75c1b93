"""Vertical federated joint training at the level of scores: K branches, one server, and the border between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from collegium._util.margins import centred
from collegium._util.progress import progress
from collegium.agents._seeding import descend, seed_sequence, seeded
from collegium.agents.base import View
from collegium.agents.independent import recipes
from collegium.agents.optimisation import Training, batches, check_training, stop_early, threads
from collegium.agents.scores import Scores
from collegium.agents.torch_model import ONE_AT_A_TIME, TorchModel, load_torch
from collegium.errors import ModelError
from collegium.fusion.base import (
    Aligned,
    Coordination,
    Decision,
    Method,
    aligned,
    answers,
    at_a_centre,
    complete_views,
    statistic_bits,
)

if TYPE_CHECKING:
    from collegium.data import Dataset


class VFLJT(Method):
    r"""Branches and a server's head trained jointly on the global logistic loss [hu2019; hu2026, App. H.1].

    $$ u = b + \sum_k w_k s_k, \qquad \min \frac1N \sum_n \log\bigl(1 + e^{-\gamma_n u_n}\bigr) $$

    where branch k turns its own view into the score s_k, and the server holds the labels, w and b. For every batch
    the branches send scores, the server sends back the derivatives of the loss by these scores, and each branch
    goes on from there alone: views and weights stay where they are. With N_tr training items, N_val validation items
    and E epochs that is K·E·(2 N_tr + N_val) messages in training, and K for every item decided about.

    Of C classes u, b and s_k have C entries, branches have C outputs, the loss is the cross-entropy of softmax u, and a
    message has C - 1 numbers, because the entries of a score sum to zero.

    `model` is one recipe for all branches or one per agent, PyTorch models only. `training` says how: optimiser, rate,
    batches, epochs, early stopping; that of the first model unless told. The paper does not say where the head begins:
    here at w = 1 and b = 0, the plain sum. `workers` branches work at a time; no number depends on it.
    """

    name = "VFL-JT"
    coordination = Coordination(
        training="Joint training on aligned labeled samples",
        fitting="Server-side fusion head learned jointly",
        inference="One-shot server fusion",
    )

    def __init__(
        self, model: Any, training: Training | None = None, workers: int | None = None, random_state: int | None = 0
    ) -> None:
        self.model = model
        self.training = training
        self.workers = workers
        self.random_state = random_state

    @property
    def needs_views(self) -> bool:
        """Yes: the branches are trained."""
        return True

    def fit(self, scores: Scores, train: Dataset | None = None) -> Self:
        """Train branches and head jointly, on the items that the agents of the record were trained on."""
        self._forget()
        torch = load_torch()
        self._check(scores)
        items = aligned(scores, train, self.name)
        self.classes_ = scores.classes
        root = seed_sequence(self.random_state, "random_state")
        models = self._models(items, root)
        settings = check_training(models[0].training if self.training is None else self.training)
        with (
            ONE_AT_A_TIME,
            torch.random.fork_rng(devices=[]),
            threads(settings.threads),
            progress("training jointly", 1) as bar,
        ):
            self._train(scores, items, models, settings, int(descend(root, 0).generate_state(1)[0]), bar.move_to)
        return self

    def _check(self, scores: Scores) -> None:
        """Refuse settings that do not fit the record."""

    def _models(self, items: Aligned, root: np.random.SeedSequence) -> list[TorchModel]:
        models = []
        for k, (name, recipe) in enumerate(
            zip(items.data.agent_names, recipes(self.model, items.data.size), strict=True)
        ):
            model = seeded(recipe, descend(root, 1, k))
            if not isinstance(model, TorchModel):
                raise ModelError(
                    f"{self.name} trains its branches by derivatives and needs PyTorch models; agent {name!r} has "
                    f"{type(model).__name__}"
                )
            models.append(model)
        return models

    def _train(
        self, scores: Scores, items: Aligned, models: list[TorchModel], settings: Training, seed: int, told: Any
    ) -> None:
        import torch

        from collegium.tuning._border import Border, Branch, Server
        from collegium.tuning._in_threads import in_threads

        data, inside, outside = items
        C = self.classes_
        branches = [
            Branch(model, data.views[k][inside], data.views[k][outside], settings, C) for k, model in enumerate(models)
        ]
        server, border = Server(data.y[inside], data.y[outside], len(branches), settings, C), Border()
        networks = [branch.network for branch in branches]
        torch.manual_seed(seed)
        with in_threads(self.workers, networks) as run:

            def epoch() -> float:
                total = 0.0
                for rows in batches(len(inside), settings.batch_size):
                    said = run(Branch.speak, branches, [rows] * len(branches))
                    loss, derivatives = server.learn(border.cross(torch.stack(said, dim=1)), rows)
                    run(Branch.learn, branches, border.cross(derivatives).unbind(1))
                    total += loss * len(rows)
                return total / len(inside)

            def check() -> float:
                said = run(Branch.speak_of_held_out, branches)
                return server.check(border.cross(torch.stack(said, dim=1)))

            self.history_ = stop_early([*networks, server], epoch, check, settings, told)
        for branch, view in zip(branches, data.views, strict=True):
            branch.model.module_, branch.model.input_shape_ = branch.network, view.shape[1:]
            branch.model.classes_ = np.array([-1, 1]) if C == 2 else np.arange(C)
        self.models_, self.training_transmissions_ = models, border.crossed // (C - 1)
        bias = server.b.detach().double().numpy()
        self.weights_, self.bias_ = server.w.detach().double().numpy(), float(bias) if C == 2 else bias

    @property
    def epochs_(self) -> int:
        """How many epochs the training took."""
        return len(self.history_.training_loss)

    def decide(self, X: list[View]) -> Decision:
        """Every branch sends its score to the server, which decides."""
        import torch

        from collegium.tuning._border import Border, complete

        self._fitted()
        K, C = len(self.models_), self.classes_
        views = complete_views(X, K, self.name)
        said = [answers(model, view, C) for model, view in zip(self.models_, views, strict=True)]
        border = Border()
        s = torch.from_numpy(np.stack(said, axis=1))
        if C == 2:
            u = border.cross(s).numpy() @ self.weights_ + self.bias_
        else:
            u = centred(np.tensordot(complete(border.cross(s[..., :-1])).numpy(), self.weights_, (1, 0)) + self.bias_)
        messages = border.crossed // (C - 1) // max(len(s), 1)
        return at_a_centre(u, messages, messages * statistic_bits(C))
