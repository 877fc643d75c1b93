"""The two sides of vertical federated training and what passes between them: numbers, counted, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from collegium.agents._seeding import seed_sequence
from collegium.agents.base import View
from collegium.agents.optimisation import Training, forward, make_optimizer, single
from collegium.agents.torch_model import TorchModel
from collegium.errors import ModelError


class Border:
    """What crosses it is a plain number, cut off from whatever computed it, and counted."""

    def __init__(self) -> None:
        self.crossed = 0

    def cross(self, numbers: Tensor) -> Tensor:
        """The same numbers on the other side."""
        self.crossed += numbers.numel()
        return numbers.detach().clone()


class Branch:
    """One agent's side: its view, its network and its optimiser. It never gets a label.

    What it sends is its score; of C classes C - 1 numbers, the logits less their mean without the last.
    """

    def __init__(self, model: TorchModel, seen: View, held_out: View, settings: Training, classes: int = 2) -> None:
        self.model = model
        self.settings = settings
        self.classes = classes
        torch.manual_seed(int(seed_sequence(model.random_state, "random_state").generate_state(1)[0]))
        self._shape = seen.shape
        with model.explained("be fitted on", self._shape):
            self.network = model.new_network(model.checked(seen), classes)
            self._seen = model.inputs(self.network, seen)
            self._held_out = model.inputs(self.network, held_out)
        self._optimizer = make_optimizer(self.network, settings)

    def speak(self, rows: Tensor) -> Tensor:
        """Scores of some training items, shape (batch,) or (batch, C-1)."""
        with self.model.explained("be fitted on", self._shape):
            self._said = self._scores(self._seen.index_select(0, rows))
        return self._said

    def learn(self, derivatives: Tensor) -> None:
        """One step, from the derivatives of the loss by the scores sent last."""
        self._optimizer.zero_grad()
        self._said.backward(derivatives)
        self._optimizer.step()

    def speak_of_held_out(self) -> Tensor:
        """Scores of all validation items."""
        pieces = self._held_out.split(self.settings.batch_size)
        return torch.cat([self._scores(x) for x in pieces])

    def _scores(self, x: Tensor) -> Tensor:
        logits = forward(self.network, x, self.settings)
        if self.classes == 2:
            return single(logits, len(x))
        if logits.shape != (len(x), self.classes):
            raise ModelError(
                f"a branch for {self.classes} classes must have as many outputs per item; "
                f"got {tuple(logits.shape)} for {len(x)} items"
            )
        return (logits - logits.mean(dim=1, keepdim=True))[:, :-1]


class Server(nn.Module):
    """The coordinator's side: the labels and the head u = b + Σ w_k s_k. It never sees a view.

    Of C classes u, b and s_k have C entries, and the last of s_k is minus the sum of those that came.
    """

    def __init__(self, y: NDArray[Any], y_held_out: NDArray[Any], K: int, settings: Training, classes: int = 2) -> None:
        super().__init__()
        self.classes = classes
        self.w = nn.Parameter(torch.ones(K))
        self.b = nn.Parameter(torch.zeros(() if classes == 2 else classes))
        self._target, self._target_held_out = (self._targets(labels) for labels in (y, y_held_out))
        self._optimizer = make_optimizer(self, settings)

    def forward(self, s: Tensor) -> Tensor:
        return self.b + (s @ self.w if self.classes == 2 else self.w @ complete(s))

    def learn(self, s: Tensor, rows: Tensor) -> tuple[float, Tensor]:
        """One step of the head; gives the loss and its derivatives by the scores, of their shape."""
        s.requires_grad_()
        self._optimizer.zero_grad()
        loss = self._loss(s, self._target.index_select(0, rows))
        loss.backward()
        self._optimizer.step()
        assert s.grad is not None
        return float(loss.detach()), s.grad

    def check(self, s: Tensor) -> float:
        """The loss on the validation items."""
        return float(self._loss(s, self._target_held_out))

    def _targets(self, y: NDArray[Any]) -> Tensor:
        return torch.from_numpy((y > 0).astype(np.float32) if self.classes == 2 else y.astype(np.int64))

    def _loss(self, s: Tensor, target: Tensor) -> Tensor:
        compare = F.binary_cross_entropy_with_logits if self.classes == 2 else F.cross_entropy
        return compare(self(s), target)


def complete(s: Tensor) -> Tensor:
    """Scores with all their entries, (…, C) from the C - 1 that came: they sum to zero."""
    return torch.cat([s, -s.sum(dim=-1, keepdim=True)], dim=-1)
