"""Clipping at the distance of an honest neighbour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium.protocol.base import Floats
from collegium.protocol.combine._robust import ForLiars, distances, shortened


@dataclass(frozen=True)
class SelfCentred(ForLiars):
    r"""As `Clipped`, with the 2b largest differences shortened to the next one (CS+).

    With b liars, b honest differences at most are shortened as well, so that what is taken from the honest and what
    liars can add are of one size. Bears b liars among $m \ge 2b + 2$ values, the agent's own included; where fewer
    came, the agent keeps its own. [gaucher2025]

    >>> SelfCentred(b=1)(np.array([[[0.0]], [[1.0]], [[2.0]], [[90.0]]]), np.full((4, 1), 0.25), np.array([[0.0]]))
    array([[0.75]])
    """

    b: int
    more = 2

    def breaks_at(self, m: int) -> int:
        return min(2 * self.b + 1, m)  # of fewer liars, none is moved farther than some honest value is away

    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        away, there = distances(values, weights, own)
        descending = -np.sort(np.where(there, -away, np.inf), axis=0)
        limits = descending[2 * self.b] if len(values) > 2 * self.b else np.zeros(len(own))
        return shortened(values, weights, own, np.where(there.sum(axis=0) > 2 * self.b, limits, 0.0))
