"""The weighted mean of the neighbours' values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium.protocol.combine.base import Combine, Floats


@dataclass(frozen=True)
class WeightedMean(Combine):
    r"""$\sum_\ell a_{\ell k} x_\ell$, summed ascending, in double precision: the order every engine uses."""

    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        total, product = np.zeros(values.shape[1:]), np.empty(values.shape[1:])
        for weight, value in zip(weights, values, strict=True):
            total += np.multiply(weight[:, None], value, out=product)
        return total
