"""What a codec promises: codes that fit into its bits, and that mean what was sent."""

from __future__ import annotations

from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import Draws
from collegium.checks import base
from collegium.checks.base import Check, expect
from collegium.errors import CollegiumError
from collegium.live import wire
from collegium.protocol.base import Floats
from collegium.protocol.codec import Codec

_ITEMS, _WIDTH = 64, 3
_ENUMERATED = 16
"""Bits up to which all levels are looked at."""
_COARSEST = 2.0**-8
"""What codes of more bits may miss a number by, against the largest there is."""


def check_codec(codec: Codec) -> list[str]:
    """Check that a codec's codes fit into its bits and mean what was sent; returns what held and what was skipped.

    >>> from collegium.protocol.codec import Quantise
    >>> check_codec(Quantise(bits=3, bound=1.0))[3]
    'message_bits is 1 to 32, or 64'
    """
    return base.run(str(codec), codec_checks(codec))


def codec_checks(codec: Codec) -> list[Check]:
    """The checks of `check_codec`, one by one."""
    checks = {
        "message_bits is 1 to 32, or 64": _bits_are_possible,
        "codes fit into their bits, on the wire and back": _codes_fit,
        "decode gives back what was sent, to the next level": _decode_inverts,
        "the same codes when asked twice": _repeats,
        "numbers are written one by one, in any split of rows": _any_split,
        "what does not fit is refused": _refuses,
    }
    return base.part_checks(codec, Codec, "collegium.protocol.codec", checks)


def packed(codec: Codec, codes: NDArray[Any]) -> None:
    """Raise unless codes of messages (n, w) take exactly their bits in a frame and are read back from it."""
    bits, (n, width) = codec.message_bits, codes.shape
    if bits == wire.NUMBER:
        expect(codes.dtype == np.float64, f"codes of 64 bits must be the numbers, float64; got {codes.dtype}")
    else:
        expect(
            codes.dtype.kind == "u" and (not codes.size or int(codes.max()) < 1 << bits),
            f"codes must be unsigned whole numbers below 2**{bits}, for {bits} bits a number; got {codes.dtype} up to "
            f"{codes.max(initial=0):.6g}",
        )
    if not n:
        return
    dialect = wire.Dialect(0, 0, bits, 1, width)
    numbers = codes if bits == wire.NUMBER else codes.astype(np.uint32)
    frame = wire.Frame(wire.Kind.ROUND, 0, [wire.Run(0, n, 1, False)], sets=[1], values=numbers)
    data, empty = (wire.encode(one, dialect) for one in (frame, frame._replace(values=numbers[:0])))
    taken, promised = len(data) - len(empty), (n * width * bits + 7) // 8
    expect(
        taken == promised, f"{n} messages of {width} numbers take {taken} bytes, {bits} bits a number are {promised}"
    )
    came = wire.decode(data, dialect).values
    expect(np.array_equal(codec.decode(came), codec.decode(codes)), "codes mean something else after a frame")


def _values(codec: Codec) -> Floats:
    """Numbers the codec takes, its largest ones and zero among them."""
    largest = min(codec.max_score(1.0), 1.0)
    expect(largest > 0, f"max_score(1) is {largest}: it takes no number at all")
    values = largest * np.sin(np.arange(float(_ITEMS * _WIDTH))).reshape(_ITEMS, _WIDTH)
    values[0], values[1], values[2] = largest, -largest, 0.0
    return np.asarray(values, np.float64)


def _draws(n: int = _ITEMS) -> Draws:
    return Draws(5, np.arange(n, dtype=np.uint64), agent=2, round=3)


def _bits_are_possible(codec: Codec) -> None:
    bits = codec.message_bits
    expect(
        isinstance(bits, int) and (1 <= bits <= 32 or bits == wire.NUMBER),
        f"message_bits must be a whole number from 1 to 32, or 64; got {bits!r}",
    )


def _codes_fit(codec: Codec) -> None:
    for n in (_ITEMS, 1, 0):
        values = _values(codec)[:n]
        codes = codec.encode(values, _draws(n))
        expect(
            isinstance(codes, np.ndarray) and codes.shape == values.shape,
            f"codes must have the shape of the values, {values.shape}; got {getattr(codes, 'shape', type(codes))}",
        )
        packed(codec, codes)


def _decode_inverts(codec: Codec) -> None:
    values = _values(codec)
    decoded = codec.decode(codec.encode(values, _draws()))
    expect(
        isinstance(decoded, np.ndarray) and decoded.dtype == np.float64 and decoded.shape == values.shape,
        f"decode must give float64 of the codes' shape; got {decoded!r:.80}",
    )
    bits = codec.message_bits
    if codec.adds_noise:
        raise SkipTest("it adds noise on purpose")
    if bits == wire.NUMBER:
        expect(np.array_equal(decoded, values), "numbers of 64 bits must come as they were sent")
        return
    if bits <= _ENUMERATED:
        levels = np.sort(codec.decode(np.arange(1 << bits, dtype=np.uint32)))
        above = np.searchsorted(levels, values).clip(1, len(levels) - 1)
        allowed = (levels[above] - levels[above - 1]) * (1 + 1e-9)
    else:
        allowed = np.full(values.shape, _COARSEST * float(np.abs(values).max()))
    off = np.abs(decoded - values)
    worst = np.unravel_index(int((off - allowed).argmax()), off.shape)
    expect(
        off[worst] <= allowed[worst],
        f"{values[worst]:.6g} came as {decoded[worst]:.6g}, farther away than the next level ({allowed[worst]:.3g})",
    )


def _repeats(codec: Codec) -> None:
    values = _values(codec)
    given = values.copy()
    codes = codec.encode(values, _draws())
    expect(
        np.array_equal(codes, codec.encode(given.copy(), _draws())), "other codes for the same: draw only from `draws`"
    )
    expect(np.array_equal(values, given), "encode changes the numbers it is given: work on a copy")


def _any_split(codec: Codec) -> None:
    values = _values(codec)
    codes = codec.encode(values, _draws())
    for rows in (np.arange(_ITEMS)[::-1], np.arange(3), np.arange(3, _ITEMS), np.array([5])):
        some = codec.encode(values[rows], _draws().take(rows))
        expect(np.array_equal(codes[rows], some), "a message's codes depend on the other items of the batch")
    one_by_one = [[codec.decode(code.reshape(1, 1))[0, 0] for code in row] for row in codes]
    expect(np.array_equal(codec.decode(codes), one_by_one), "decode must take each code by itself")


def _refuses(codec: Codec) -> None:
    if codec.message_bits == wire.NUMBER:
        raise SkipTest("every number fits into 64 bits")
    values = _values(codec)
    far = values + 4.0 * codec.max_score(1.0)
    try:
        decoded = codec.decode(codec.encode(far, _draws()))
    except CollegiumError:
        return
    off = float(np.abs(decoded - far).max())
    expect(off <= codec.max_score(1.0), f"{far.max():.6g} was sent as {decoded.max():.6g}: refuse what does not fit")
