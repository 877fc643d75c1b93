"""`Codec`: how the numbers of a message are written on the wire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import Draws

Floats = NDArray[np.float64]


class Codec(ABC):
    """Numbers to codes and back. Receivers, and the sender itself, go on with `decode(encode(values))`.

    Codes have the shape of the values: unsigned integers below 2**message_bits (at most 32 bits), or the numbers
    themselves where `message_bits` is 64.
    """

    adds_noise: ClassVar[bool] = False
    """Whether receivers get something else than was meant, on purpose: noise that must be secret."""

    @property
    @abstractmethod
    def message_bits(self) -> int:
        """Bits of one number on the wire: 1 to 32, or 64."""

    @abstractmethod
    def encode(self, values: Floats, draws: Draws) -> NDArray[Any]:
        """The codes of numbers (n, w); randomness comes from `draws` alone."""

    @abstractmethod
    def decode(self, codes: NDArray[Any]) -> Floats:
        """What a receiver makes of codes, elementwise."""

    def reach(self, score: float, width: int) -> float:
        """The largest number that can arrive for scores up to `score`, in messages of `width` numbers."""
        return score

    def max_score(self, growth: float, rounding: float | None = None) -> float:
        """The largest score, in absolute value, whose messages fit when they grow up to `growth` times.

        rounding: how many times the error of one rounded message they can be off; growth - 1, if None.
        """
        return 1e300 / growth
