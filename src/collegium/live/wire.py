"""Frames: what one agent says about many items in one round, in bytes; anything else is refused before it is believed.

    0  version  1     the form of this frame
    1  kind     1     ROUND, ASK, WAIT, PING or NEWS
    2  sender   2     the agent's number
    4  round    4
    8  network  8     who may understand it: the network's identity
    16 policy   8     and a hash of everything both sides must agree on (weights, rule, rounds, seed)
    24 list     4     ROUND: number of the list of items, which the sender may have named before; ASK: who is asked
    28 count    4     items
    32 bits     1     of a number: 64 for one as it is, else its code
    33 flags    1     NAMED: item identities follow; SILENT: a mask of those who speak follows
    34 zero     2
    36 identities, 8 bytes each · mask, a bit each · messages of those who speak, w numbers of `bits`, padded with 0

All numbers are little-endian. A frame has exactly the length its header says.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64
from collegium.errors import LiveError

VERSION = 1
MOST_ITEMS = 1 << 16
"""Items in one frame at most; more go into several."""
_NOTHING = np.empty((0, 1))
_HEADER = struct.Struct("<BBHIQQIIBBH")
NUMBER = 64
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]


class FrameError(LiveError):
    """Bytes that are no frame of this network."""


class Kind(IntEnum):
    """What a frame is for."""

    ROUND = 1
    """What the sender says in a round."""
    ASK = 2
    """Where is what you said in this round?"""
    WAIT = 3
    """I am here, and not yet that far."""
    PING = 4
    """Are you there? The answer is WAIT."""
    NEWS = 5
    """There are these items; I wait for my view of them."""


_NAMED, _SILENT = 1, 2
_KINDS = {kind.value: kind for kind in Kind}


@dataclass(frozen=True)
class Dialect:
    """What both ends must agree on before a frame means anything."""

    network: int
    policy: int
    bits: int = NUMBER
    """Of a number in a message."""
    rounds: int = 20
    largest: float = 1e300
    """No honest message is larger than this."""
    width: int = 1
    """Numbers in a message."""


class Frame(NamedTuple):
    """A frame, read or to be written."""

    kind: Kind
    sender: int
    round: int
    list: int
    ids: U64 | None
    """Identities of the items; None where the list was named before."""
    size: int
    """How many items."""
    spoke: Bools | None = None
    """Which items the sender speaks about; None for all."""
    values: Doubles | NDArray[np.uint32] = _NOTHING
    """One message per item spoken about, shape (s, w): numbers, or codes of them."""


def encode(frame: Frame, dialect: Dialect) -> bytes:
    """The bytes of a frame."""
    flags = 0
    parts: list[bytes] = [b""]
    if frame.ids is not None:
        flags |= _NAMED
        parts.append(frame.ids.astype("<u8", copy=False).tobytes())
    if frame.spoke is not None:
        flags |= _SILENT
        parts.append(np.packbits(frame.spoke, bitorder="little").tobytes())
    if frame.kind is Kind.ROUND:
        parts.append(_pack(frame.values, dialect.bits))
    parts[0] = _HEADER.pack(
        VERSION, frame.kind, frame.sender, frame.round, dialect.network, dialect.policy,
        frame.list, frame.size, dialect.bits, flags, 0,
    )  # fmt: skip
    return b"".join(parts)


def decode(data: bytes, dialect: Dialect) -> Frame:
    """The frame these bytes are, or the reason why they are none."""
    if len(data) < _HEADER.size:
        raise FrameError(f"a frame has at least {_HEADER.size} bytes, this one {len(data)}")
    version, kind, sender, round, network, policy, number, count, bits, flags, zero = _HEADER.unpack_from(data)
    if version != VERSION:
        raise FrameError(f"version {version} of the frame, this agent speaks version {VERSION}")
    if network != dialect.network:
        raise FrameError("a frame of another network")
    if policy != dialect.policy or bits != dialect.bits:
        raise FrameError("a frame made under other weights, another rule, seed or number of rounds: run init anew")
    meant = _KINDS.get(kind)
    if meant is None or flags & ~(_NAMED | _SILENT) or zero:
        raise FrameError("an unknown kind of frame")
    if not 1 <= round <= dialect.rounds:
        raise FrameError(f"round {round} of {dialect.rounds}")
    if not 1 <= count <= MOST_ITEMS:
        raise FrameError(f"{count} items in one frame; there may be 1 to {MOST_ITEMS}")
    named, silent = bool(flags & _NAMED), bool(flags & _SILENT)
    if meant is not Kind.ROUND and (not named or silent):
        raise FrameError("a question without the items it is about")
    place = _HEADER.size
    masked = (count + 7) // 8 if silent else 0
    if len(data) < place + 8 * count * named + masked:
        raise FrameError(f"{len(data)} bytes are too few for {count} items")
    if count == 1 and data[33] == 0 and meant is Kind.ROUND and bits == NUMBER and dialect.width == 1:  # most often
        if len(data) != _HEADER.size + 8:
            raise FrameError(f"{len(data)} bytes where the header says {_HEADER.size + 8}")
        return Frame(meant, sender, round, number, None, 1, None, _honest(_unpack(data, place, 1, bits), dialect))
    ids = None
    if named:
        ids = np.frombuffer(data, "<u8", count, place).astype(np.uint64, copy=False)
        place += 8 * count
        ordered = np.sort(ids)
        if (ordered[1:] == ordered[:-1]).any():
            raise FrameError("a frame that names an item twice")
    spoke, speakers = None, count
    if silent:
        mask = np.frombuffer(data, np.uint8, masked, place)
        spread = np.unpackbits(mask, bitorder="little")
        if spread[count:].any():
            raise FrameError("a mask with more bits than items")
        spoke, place = spread[:count].view(np.bool_), place + masked
        speakers = int(spoke.sum())
    numbers = speakers * dialect.width
    payload = (numbers * bits + 7) // 8 if meant is Kind.ROUND else 0
    if len(data) != place + payload:
        raise FrameError(f"{len(data)} bytes where the header says {place + payload}")
    values: Doubles | NDArray[np.uint32] = _NOTHING
    if meant is Kind.ROUND:
        values = _unpack(data, place, numbers, bits)
        values = _honest(values, dialect) if bits == NUMBER else values.reshape(speakers, dialect.width)
    return Frame(meant, sender, round, number, ids, count, spoke, values)


def _honest(values: Doubles | NDArray[np.uint32], dialect: Dialect) -> Doubles | NDArray[np.uint32]:
    """Numbers as messages of `width` each, none of them larger than any honest one."""
    if values.size:
        # One comparison for both ends; NaN passes neither.
        low, high = (values.item(),) * 2 if values.size == 1 else (values.min(), values.max())
        if not (-dialect.largest <= low and high <= dialect.largest):
            raise FrameError("a message that is not a number, or larger than any honest one")
    return values.reshape(-1, dialect.width)


def _pack(values: Doubles | NDArray[np.uint32], bits: int) -> bytes:
    if bits == NUMBER:
        return values.astype("<f8", copy=False).tobytes()
    if bits in (8, 16, 32):
        return values.astype(f"<u{bits // 8}").tobytes()
    indices = values.astype(np.uint32, copy=False)
    spread = (indices.reshape(-1, 1) >> np.arange(bits, dtype=np.uint32)).astype(np.uint8) & 1
    return np.packbits(spread, bitorder="little").tobytes()


def _unpack(data: bytes, place: int, count: int, bits: int) -> Doubles | NDArray[np.uint32]:
    if bits == NUMBER:
        return np.frombuffer(data, "<f8", count, place)
    if bits in (8, 16, 32):
        return np.frombuffer(data, f"<u{bits // 8}", count, place).astype(np.uint32)
    spread = np.unpackbits(np.frombuffer(data, np.uint8, offset=place), bitorder="little")
    if spread[count * bits :].any():
        raise FrameError("bits after the last message")
    powers = np.uint32(1) << np.arange(bits, dtype=np.uint32)
    return np.asarray((spread[: count * bits].reshape(count, bits) * powers).sum(axis=1), np.uint32)
