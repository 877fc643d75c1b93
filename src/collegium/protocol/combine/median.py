"""The middle value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium.protocol.base import Floats
from collegium.protocol.combine._robust import RobustCombine


@dataclass(frozen=True)
class Median(RobustCombine):
    r"""The median of the values that came, entry by entry; of an even number, the mean of the two in the middle.

    Bears $\lfloor (m-1)/2 \rfloor$ liars among m values, the most any combine can; weights do not matter, and what the
    middle does not say is lost. [yin2018]

    >>> Median()(np.array([[[1.0]], [[2.0]], [[90.0]]]), np.full((3, 1), 1 / 3), np.array([[1.0]]))
    array([[2.]])
    """

    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        there = weights > 0
        ordered = np.sort(np.where(there[:, :, None], values, np.inf), axis=0)
        count = there.sum(axis=0)[None, :, None]
        middle = [np.take_along_axis(ordered, place, axis=0)[0] for place in ((count - 1) // 2, count // 2)]
        return np.asarray(0.5 * middle[0] + 0.5 * middle[1])
