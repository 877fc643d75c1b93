"""How the numbers of a message are written on the wire."""

from collegium.protocol.codec.base import Codec
from collegium.protocol.codec.float64 import Float64
from collegium.protocol.codec.laplace_once import LaplaceOnce
from collegium.protocol.codec.quantise import Quantise

__all__ = ["Codec", "Float64", "LaplaceOnce", "Quantise"]
