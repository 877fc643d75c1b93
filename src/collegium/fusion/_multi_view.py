"""The network of the multi-view oracle: a backbone per view, their features side by side, one head."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from collegium.agents.inference import BATCH
from collegium.tuning._in_threads import Map


class MultiViewNetwork(nn.Module):
    """Backbones with `features` and a `head` of their own, which is left aside; one head above all of them."""

    shift: Tensor
    scale: Tensor

    def __init__(self, backbones: Sequence[nn.Module], hidden: int, classes: int = 2) -> None:
        super().__init__()
        width = sum(network.head.in_features for network in backbones)  # type: ignore[union-attr, misc]
        self.backbones = nn.ModuleList(backbones)
        self.head = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, classes))
        self.register_buffer("shift", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def features(self, x: Sequence[Tensor], run: Map) -> Tensor:
        """Standardised features of all views, shape (n, width)."""
        parts = run(lambda network, one: network.features(one), list(self.backbones), x)
        return (torch.cat(parts, dim=1) - self.shift) * self.scale

    @torch.no_grad()
    def observe(self, x: Sequence[Tensor], N: int, run: Map) -> Tensor:
        """Features of all items, standardised by the mean and the spread of the first N, the training items."""
        self.eval()
        pieces = zip(*(one.split(BATCH) for one in x), strict=True)
        features = torch.cat([self.features(piece, run) for piece in pieces])
        spread = features[:N].std(dim=0, correction=0)
        self.shift.copy_(features[:N].mean(dim=0))
        self.scale.copy_(torch.where(spread > 1e-6, 1 / spread, 1.0))
        return (features - self.shift) * self.scale

    def forward(self, x: Sequence[Tensor], run: Map) -> Tensor:
        logits: Tensor = self.head(self.features(x, run))
        return logits


class OnItems(nn.Module):
    """A multi-view network whose input is the places of items in views given beforehand."""

    def __init__(self, network: MultiViewNetwork, x: Sequence[Tensor], run: Map) -> None:
        super().__init__()
        self.network = network
        self._x = x
        self._run = run

    def forward(self, places: Tensor) -> Tensor:
        logits: Tensor = self.network([one.index_select(0, places) for one in self._x], self._run)
        return logits
