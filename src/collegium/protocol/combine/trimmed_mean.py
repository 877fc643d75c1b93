"""The mean without the extremes."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.protocol.base import Floats
from collegium.protocol.combine._robust import ForLiars, mean_of, ranks


@dataclass(frozen=True)
class TrimmedMean(ForLiars):
    r"""The weighted mean of what is left when the f smallest and the f largest values are dropped, entry by entry.

    Bears f liars among $m \ge 2f + 1$ values: the result lies between two honest values. Where fewer came, the agent
    keeps its own. [yin2018]

    >>> import numpy as np
    >>> TrimmedMean(f=1)(np.array([[[1.0]], [[2.0]], [[90.0]]]), np.full((3, 1), 1 / 3), np.array([[1.0]]))
    array([[2.]])
    """

    f: int

    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        there = (weights > 0)[:, :, None]
        places, count = ranks(values, there)
        return mean_of(there & (places >= self.f) & (places < count - self.f), values, weights, own)
