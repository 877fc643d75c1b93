"""Iterative outlier scissor (IOS)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import Floats
from collegium.protocol.combine._robust import ForLiars, lengths, mean_of


@dataclass(frozen=True)
class OutlierScissor(ForLiars):
    r"""Drop the value farthest from the weighted mean of those that are left, f times; then that mean.

    The agent's own value is never dropped. Bears f liars among $m \ge 3f + 1$ values of which no f others weigh a third
    together: liars that weigh more can place the mean where the honest are the outliers. Where fewer came, or heavier
    ones, the agent keeps its own. [wu2023]

    >>> OutlierScissor(f=1)(np.array([[[1.0]], [[2.0]], [[3.0]], [[90.0]]]), np.full((4, 1), 0.25), np.array([[1.0]]))
    array([[2.]])
    """

    f: int
    per_liar = 3

    def check_seats(self, seats: Sequence[Seat]) -> None:
        super().check_seats(seats)
        for seat in seats:
            heaviest = float(np.sort(seat.weights[seat.senders != seat.agent])[-self.f :].sum())
            if not heaviest < 1 / 3:
                raise RuleError(
                    f"{self} needs weights of which no {self.f} others have a third together, but agent {seat.agent} "
                    f"gives them {heaviest:.4g}: use uniform or Metropolis weights, add links, or take TrimmedMean"
                )

    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        kept = weights > 0
        mine = (values == own).all(axis=2)  # its own, and whoever says the same
        heaviest = np.sort(np.where(mine, 0.0, weights), axis=0)[-self.f :].sum(axis=0)
        enough = (kept.sum(axis=0) > 3 * self.f) & (heaviest < 1 / 3)
        for _ in range(self.f):
            away = lengths(np.where(kept[:, :, None], values, own) - mean_of(kept, values, weights, own))
            farthest = np.where(kept & ~mine, away, -1.0)
            drop = np.arange(len(values))[:, None] == farthest.argmax(axis=0)
            kept = kept & ~(drop & (farthest >= 0))
        return mean_of(kept & enough, values, weights, own)
