"""The two sides of vertical federated training and what passes between them: numbers, counted, and nothing else."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from collegium.agents._seeding import seed_sequence
from collegium.agents.base import View
from collegium.agents.optimisation import Training, forward, make_optimizer, single
from collegium.agents.torch_model import TorchModel


class Border:
    """What crosses it is a plain number, cut off from whatever computed it, and counted."""

    def __init__(self) -> None:
        self.crossed = 0

    def cross(self, numbers: Tensor) -> Tensor:
        """The same numbers on the other side."""
        self.crossed += numbers.numel()
        return numbers.detach().clone()


class Branch:
    """One agent's side: its view, its network and its optimiser. It never gets a label."""

    def __init__(self, model: TorchModel, seen: View, held_out: View, settings: Training) -> None:
        self.model = model
        self.settings = settings
        torch.manual_seed(int(seed_sequence(model.random_state, "random_state").generate_state(1)[0]))
        self._shape = seen.shape
        with model.explained("be fitted on", self._shape):
            self.network = model.new_network(model.checked(seen))
            self._seen = model.inputs(self.network, seen)
            self._held_out = model.inputs(self.network, held_out)
        self._optimizer = make_optimizer(self.network, settings)

    def speak(self, rows: Tensor) -> Tensor:
        """Scores of some training items, shape (batch,)."""
        with self.model.explained("be fitted on", self._shape):
            self._said = single(forward(self.network, self._seen.index_select(0, rows), self.settings), len(rows))
        return self._said

    def learn(self, derivatives: Tensor) -> None:
        """One step, from the derivatives of the loss by the scores sent last."""
        self._optimizer.zero_grad()
        self._said.backward(derivatives)
        self._optimizer.step()

    def speak_of_held_out(self) -> Tensor:
        """Scores of all validation items."""
        pieces = self._held_out.split(self.settings.batch_size)
        return torch.cat([single(forward(self.network, x, self.settings), len(x)) for x in pieces])


class Server(nn.Module):
    """The coordinator's side: the labels and the head u = b + Σ w_k s_k. It never sees a view."""

    def __init__(self, y: NDArray[np.int8], y_held_out: NDArray[np.int8], K: int, settings: Training) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(K))
        self.b = nn.Parameter(torch.zeros(()))
        self._target = torch.from_numpy((y > 0).astype(np.float32))
        self._target_held_out = torch.from_numpy((y_held_out > 0).astype(np.float32))
        self._optimizer = make_optimizer(self, settings)

    def forward(self, s: Tensor) -> Tensor:
        return self.b + s @ self.w

    def learn(self, s: Tensor, rows: Tensor) -> tuple[float, Tensor]:
        """One step of the head; gives the loss and its derivatives by the scores, shape (batch, K)."""
        s.requires_grad_()
        self._optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(self(s), self._target.index_select(0, rows))
        loss.backward()
        self._optimizer.step()
        assert s.grad is not None
        return float(loss.detach()), s.grad

    def check(self, s: Tensor) -> float:
        """The loss on the validation items."""
        return float(F.binary_cross_entropy_with_logits(self(s), self._target_held_out))
