"""The weighted mean of the neighbours' values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium.protocol.base import Floats
from collegium.protocol.combine.base import Combine


@dataclass(frozen=True)
class WeightedMean(Combine):
    r"""$\sum_\ell a_{\ell k} x_\ell$, summed ascending, in double precision: the order every engine uses."""

    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        terms = weights[:, :, None] * values
        total = 0.0 + terms[0]  # never -0.0
        for term in terms[1:]:
            total += term
        return np.asarray(total)
