"""Numbers as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import Draws
from collegium.protocol.codec.base import Codec, Floats


@dataclass(frozen=True)
class Float64(Codec):
    """Every number in double precision, 64 bits: what is sent is what is received."""

    @property
    def message_bits(self) -> int:
        return 64

    def encode(self, values: Floats, draws: Draws) -> NDArray[Any]:
        return values

    def decode(self, codes: NDArray[Any]) -> Floats:
        return np.asarray(codes, np.float64)
