"""`check_codec`: the package's own codecs pass, and each broken one is named."""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import check_codec
from collegium.checks import codec_checks
from collegium.protocol.codec import Codec, Float64, Quantise


@dataclass(frozen=True)
class Nearest(Quantise):
    """Sound, and without draws."""

    bits: int = 5
    bound: float = 2.0

    def index(self, values, uniform):
        return super().index(values, np.full_like(values, 0.5))


class SendsDoubles(Nearest):
    """Claims five bits and sends doubles."""

    def encode(self, values, draws):
        return values

    def decode(self, codes):
        return np.asarray(codes, np.float64)


class TooLarge(Nearest):
    def encode(self, values, draws):
        return super().encode(values, draws) + np.uint32(40)

    def decode(self, codes):
        return super().decode(codes - np.float64(40))


class Impossible(Nearest):
    message_bits = 48


class Fractional(Nearest):
    message_bits = 4.5


class Coarse(Nearest):
    """Two levels where it pays for 32."""

    def index(self, values, uniform):
        return np.where(values < 0, 0, self.levels - 1).astype(np.uint32)


class OffByOne(Nearest):
    def decode(self, codes):
        return super().decode(np.maximum(codes, 3) - 3.0)


class Moody(Nearest):
    def index(self, values, uniform):
        return Quantise.index(self, values, np.random.default_rng().random(values.shape))


class Positional(Nearest):
    def index(self, values, uniform):
        return Quantise.index(self, values, np.resize([0.0, 1.0], len(values))[:, None] * np.ones_like(values))


class Differences(Nearest):
    """Decodes by the first of the batch."""

    def decode(self, codes):
        decoded = super().decode(codes)
        return decoded - 1e-3 * decoded[:1]


class Clips(Nearest):
    def encode(self, values, draws):
        return super().encode(np.clip(values, -self.bound, self.bound), draws)


class Scales(Nearest):
    def encode(self, values, draws):
        codes = super().encode(values, draws)
        values *= 0.5
        return codes


class Lossy64(Float64):
    def decode(self, codes):
        return np.float32(codes).astype(np.float64)


class Single64(Float64):
    def encode(self, values, draws):
        return values.astype(np.float32)


WIRE = "codes fit into their bits, on the wire and back"
LEVEL = "decode gives back what was sent, to the next level"
SPLIT = "numbers are written one by one, in any split of rows"
TWICE = "the same codes when asked twice"


@pytest.mark.parametrize(
    "codec", [Float64(), Nearest(), *(Quantise(b, 0.7) for b in (1, 3, 8, 13, 16, 17, 32))], ids=str
)
def test_sound_codecs_pass(codec):
    said = check_codec(codec)
    assert len(said) == 9
    assert {line.split(":")[0] for line in said if "skipped" in line} <= {
        "saved and loaded",
        "what does not fit is refused",
    }


@pytest.mark.parametrize(
    ("codec", "name", "complaint"),
    [
        (SendsDoubles(), WIRE, "unsigned whole numbers below 2**5, for 5 bits a number; got float64"),
        (TooLarge(), WIRE, "below 2**5, for 5 bits a number; got uint32 up to"),
        (Impossible(), "message_bits is 1 to 32, or 64", "got 48"),
        (Fractional(), "message_bits is 1 to 32, or 64", "got 4.5"),
        (Coarse(), LEVEL, "farther away than the next level"),
        (Coarse(20), LEVEL, "farther away than the next level"),
        (OffByOne(), LEVEL, "farther away than the next level"),
        (Moody(), TWICE, "draw only from `draws`"),
        (Scales(), TWICE, "changes the numbers it is given"),
        (Positional(), SPLIT, "depend on the other items"),
        (Differences(), SPLIT, "each code by itself"),
        (Clips(), "what does not fit is refused", "refuse what does not fit"),
        (Lossy64(), LEVEL, "must come as they were sent"),
        (Single64(), WIRE, "must be the numbers, float64; got float32"),
        ("quantise", "is a Codec", "is not a collegium.protocol.codec.Codec"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Codec) else None,
)
def test_each_fault_is_named(broken, codec, name, complaint):
    said = broken(codec_checks(codec))
    assert complaint in said[name]
