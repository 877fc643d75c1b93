"""Joint training without a server: what VFL-JT's server returns follows from the sum, which the network computes."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from collegium.agents.optimisation import make_optimizer
from collegium.tuning._border import Branch, complete
from collegium.tuning.conversation import Conversation


class Peer(nn.Module):
    """One agent: its branch, its own weight w in the sum, and its copy of the common threshold b.

    It knows the labels and hears the sum; the derivative of the loss by its own score is w times that by the sum.
    """

    def __init__(self, branch: Branch, target: Tensor, target_held_out: Tensor, K: int, classes: int) -> None:
        super().__init__()
        self.K, self.classes = K, classes
        self.w = nn.Parameter(torch.ones(()))
        self.b = nn.Parameter(torch.zeros(() if classes == 2 else classes))
        self._branch = [branch]  # in a list, so that its weights are not this module's
        self._target, self._target_held_out = target, target_held_out
        self._optimizer = make_optimizer(self, branch.settings)

    @property
    def branch(self) -> Branch:
        return self._branch[0]

    def say(self, rows: Tensor) -> Tensor:
        """What enters the network about some training items, (batch,) or (batch, C)."""
        self._score = self.branch.speak(rows)
        return self._weighted(self._score)

    def say_of_held_out(self) -> Tensor:
        """The same about the validation items."""
        return self._weighted(self.branch.speak_of_held_out())

    def learn(self, heard: Tensor, rows: Tensor) -> float:
        """One step of the branch, w and b, from the average that the network gave."""
        u = (self.b.detach() + self.K * heard).requires_grad_()
        loss = self._loss(u, self._target.index_select(0, rows))
        loss.backward()
        assert u.grad is not None
        score = self._score.detach().requires_grad_()
        self._optimizer.zero_grad()
        (self._full(score) * self.w).backward(u.grad)
        self.b.grad = u.grad.sum(dim=0)
        assert score.grad is not None
        self._optimizer.step()
        self.branch.learn(score.grad)
        return float(loss.detach())

    def check(self, heard: Tensor) -> float:
        """The loss on the validation items."""
        return float(self._loss(self.b + self.K * heard, self._target_held_out))

    def _full(self, s: Tensor) -> Tensor:
        return s if self.classes == 2 else complete(s)

    def _weighted(self, s: Tensor) -> Tensor:
        return (self.w * self._full(s)).detach()

    def _loss(self, u: Tensor, target: Tensor) -> Tensor:
        return (F.binary_cross_entropy_with_logits if self.classes == 2 else F.cross_entropy)(u, target)


def network_average(talk: Conversation, said: list[Tensor]) -> list[Tensor]:
    """What each of K agents hears of what all say, (batch,) or (batch, C) each."""
    values: Any = torch.stack(said, dim=1).double().numpy()
    heard = talk.average(values[..., None] if values.ndim == 2 else values - values.mean(axis=2, keepdims=True))
    return [torch.from_numpy(heard[:, k].reshape(said[k].shape)).float() for k in range(len(said))]
