"""Self-centred clipping: no neighbour moves an agent by more than a bounded step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.base import Floats
from collegium.protocol.combine._robust import RobustCombine, distances, shortened


@dataclass(frozen=True)
class Clipped(RobustCombine):
    r"""The agent's own value plus the weighted differences to the others, none longer than tau.

    $$ x_k + \sum_\ell a_{\ell k} \min\Bigl(1, \frac{\tau}{\lVert x_\ell - x_k\rVert}\Bigr) (x_\ell - x_k) $$

    tau: the longest step, or none: the median of the distances from the agent's own value to those that came. Then it
        bears $\lfloor (m-1)/2 \rfloor$ liars among m values: tau is at most the distance to some honest value. A tau of
        one's own bounds what a liar moves in a round by its weight times tau, whatever their number. [he2022]

    >>> Clipped(tau=0.5)(np.array([[[1.0]], [[9.0]]]), np.full((2, 1), 0.5), np.array([[1.0]]))
    array([[1.25]])
    """

    tau: float | None = None

    def __post_init__(self) -> None:
        if self.tau is not None:
            object.__setattr__(self, "tau", real_number(self.tau, "tau, the longest step,", RuleError, above=0))

    def breaks_at(self, m: int) -> int:
        return super().breaks_at(m) if self.tau is None else m

    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        if self.tau is not None:
            return shortened(values, weights, own, np.full(len(own), self.tau))
        away, there = distances(values, weights, own)
        ordered = np.sort(np.where(there, away, np.inf), axis=0)
        return shortened(values, weights, own, np.take_along_axis(ordered, there.sum(axis=0)[None] // 2, axis=0)[0])
