"""The mean of the nearest values."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.protocol.base import Floats
from collegium.protocol.combine._robust import ForLiars, distances, mean_of, ranks


@dataclass(frozen=True)
class NearestNeighbours(ForLiars):
    r"""The weighted mean of all values but the b farthest from the agent's own (NNA).

    Bears b liars among $m \ge 2b + 1$ values: a liar that is kept is no farther than some honest value. Where fewer
    came, the agent keeps its own. [farhadkhani2023]

    >>> import numpy as np
    >>> NearestNeighbours(b=1)(np.array([[[1.0]], [[2.0]], [[90.0]]]), np.full((3, 1), 1 / 3), np.array([[1.0]]))
    array([[1.5]])
    """

    b: int

    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        away, there = distances(values, weights, own)
        places, count = ranks(away, there)
        return mean_of(there & (places < count - self.b) & (count > 2 * self.b), values, weights, own)
