"""Frames: what one agent sends about many items, in bytes; anything else is refused before it is believed.

    0  version  1     the form of this frame
    1  kind     1     see `Kind`
    2  sender   2     the agent's number
    4  count    4     items
    8  network  8     who may understand it: the network's identity
    16 policy   8     and a hash of everything both sides must agree on (weights, rule, rounds, seed)
    24 runs     2     stretches of items with consecutive handles in one round
    26 sets     2     different sets of agents whose views are in the messages
    28 bits     1     of a number: 64 for one as it is, else its code
    29 flags    1     SILENT: a mask of the items with a message follows; RESENT: in answer to a question
    30 zero     2
    32 runs: handle 4, count 4, round 4 (its highest bit: the items' identities follow) ·
       identities, 8 bytes each · sets, a bit for each agent · where there are several, the set of each item, 2 bytes ·
       mask, a bit each · messages, w numbers of `bits`, padded with 0

A sender numbers the items of its messages: once a frame has named an item, its handle is enough. All numbers are
little-endian. A frame has exactly the length its header gives.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64
from collegium.errors import LiveError

VERSION = 2
MOST_ITEMS = 1 << 15
"""Items in one frame at most; more go into several."""
NUMBER = 64
_HEADER = struct.Struct("<BBHIQQHHBBH")
_RUN = struct.Struct("<III")
_NAMED = 1 << 31
_SILENT, _RESENT = 1, 2
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]
Codes = Doubles | NDArray[np.uint32]
_NOTHING = np.empty((0, 1))
_NO_IDS = np.empty(0, np.uint64)


class FrameError(LiveError):
    """Bytes that are no frame of this network."""


class Kind(IntEnum):
    """What a frame is for."""

    ROUND = 1
    """Messages of rounds."""
    RESEND = 2
    """Send your messages about these items in these rounds again."""
    NOT_YET = 3
    """They are not sent yet; the handle is how many milliseconds more it may take."""
    DECLINED = 4
    """They never will be: the sender takes no part in these items in these rounds."""
    ANNOUNCE = 5
    """There are these items; the sender waits for its own view of them."""
    PING = 6
    """Are you there?"""
    PONG = 7


_KINDS = {kind.value: kind for kind in Kind}


@dataclass(frozen=True)
class Dialect:
    """What both ends must agree on before a frame means anything."""

    network: int
    policy: int
    bits: int = NUMBER
    """Of a number in a message."""
    rounds: int = 20
    width: int = 1
    """Numbers in a message."""
    agents: int = 1
    """Agents in the network."""

    @property
    def set_bytes(self) -> int:
        """Bytes of a set of agents."""
        return (self.agents + 7) // 8


class Run(NamedTuple):
    """Items with consecutive handles, in one round."""

    handle: int
    items: int
    round: int
    is_named: bool


class Frame(NamedTuple):
    """A frame, read or to be written."""

    kind: Kind
    sender: int
    runs: Sequence[Run] = ()
    ids: U64 = _NO_IDS
    """Identities of the items of named runs, one run after the other."""
    sets: Sequence[int] = ()
    """Agents whose views are in the messages, as bits of a number."""
    set_of: NDArray[np.uint16] | None = None
    """Which set each item has, shape (count,); None: all the first."""
    spoke: Bools | None = None
    """Which items there is a message about; None: all."""
    values: Codes = _NOTHING
    """The messages, shape (s, w): numbers, or codes of them."""
    is_resent: bool = False
    """Whether it answers a question."""

    @property
    def rounds(self) -> NDArray[np.int32]:
        """The round of each item."""
        return np.repeat(np.array([run.round for run in self.runs], np.int32), [run.items for run in self.runs])


def about(kind: Kind, sender: int, ids: U64, rounds: NDArray[np.int32], handle: int = 0) -> Frame:
    """A frame without messages about items in rounds, in their order."""
    edges = np.flatnonzero(np.diff(rounds)) + 1
    starts, stops = [0, *edges.tolist()], [*edges.tolist(), len(rounds)]
    runs = [Run(handle, stop - start, int(rounds[start]), True) for start, stop in zip(starts, stops, strict=True)]
    return Frame(kind, sender, runs if len(ids) else [], ids)


def encode(frame: Frame, dialect: Dialect) -> bytes:
    """The bytes of a frame."""
    parts = [b""]
    count = 0
    for handle, items, round, is_named in frame.runs:
        parts.append(_RUN.pack(handle, items, round | _NAMED if is_named else round))
        count += items
    if frame.ids.size:
        parts.append(frame.ids.astype("<u8", copy=False).tobytes())
    flags = _RESENT if frame.is_resent else 0
    if frame.kind is Kind.ROUND:
        size = dialect.set_bytes
        parts += [one.to_bytes(size, "little") for one in frame.sets]
        if frame.set_of is not None:
            parts.append(frame.set_of.astype("<u2", copy=False).tobytes())
        if frame.spoke is not None:
            flags |= _SILENT
            parts.append(np.packbits(frame.spoke, bitorder="little").tobytes())
        parts.append(_pack(frame.values, dialect.bits))
    parts[0] = _HEADER.pack(
        VERSION, frame.kind, frame.sender, count, dialect.network, dialect.policy,
        len(frame.runs), len(frame.sets), dialect.bits, flags, 0,
    )  # fmt: skip
    return b"".join(parts)


class Single:
    """Frames with one number about one item whose name the receiver knows, of one round or of two in a row, with the
    same agents' views: as `encode` writes them, in less time."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect, self._set_bytes = dialect, dialect.set_bytes
        self._one, self._two = (struct.Struct(f"<{'III' * k}{dialect.set_bytes}s{k}d") for k in (1, 2))
        self._sizes = _HEADER.size + self._one.size, _HEADER.size + self._two.size

    def heads(self, sender: int) -> tuple[bytes, bytes]:
        """How those of an agent begin; what begins so is of this network, and made under the same rule."""
        d = self._dialect
        one, two = (
            _HEADER.pack(VERSION, Kind.ROUND, sender, k, d.network, d.policy, k, 1, NUMBER, 0, 0) for k in (1, 2)
        )
        return one, two

    def write(self, heads: tuple[bytes, bytes], handle: int, round: int, agents: int, values: Sequence[float]) -> bytes:
        """A frame of one or two rounds, from `round` on."""
        views = agents.to_bytes(self._set_bytes, "little")
        if len(values) == 1:
            return heads[0] + self._one.pack(handle, 1, round, views, *values)
        return heads[1] + self._two.pack(handle, 1, round, handle, 1, round + 1, views, *values)

    def read(self, data: bytes) -> tuple[int, int, int, tuple[float, ...]] | None:
        """Handle, first round, agents and values, of a frame that has one of the heads; None if it is not that."""
        if len(data) == self._sizes[0]:
            handle, items, round, views, value = self._one.unpack_from(data, _HEADER.size)
            return (handle, round, int.from_bytes(views, "little"), (value,)) if items == 1 else None
        if len(data) != self._sizes[1]:
            return None
        handle, items, round, again, others, second, views, *values = self._two.unpack_from(data, _HEADER.size)
        if (items, others, again, second) != (1, 1, handle, round + 1):
            return None
        return handle, round, int.from_bytes(views, "little"), tuple(values)


def decode(data: bytes, dialect: Dialect) -> Frame:
    """The frame these bytes are, or the reason why they are none."""
    if len(data) < _HEADER.size:
        raise FrameError(f"a frame of {len(data)} bytes, shorter than any header")
    version, kind, sender, count, network, policy, run_count, set_count, bits, flags, zero = _HEADER.unpack_from(data)
    if version != VERSION:
        raise FrameError(f"a frame of version {version}; this agent reads version {VERSION}")
    if network != dialect.network:
        raise FrameError("a frame of another network")
    if policy != dialect.policy or bits != dialect.bits:
        raise FrameError(
            "a frame of other weights, another rule, seed or number of rounds: are all files of one init or apply?"
        )
    meant = _KINDS.get(kind)
    if meant is None or flags & ~(_SILENT | _RESENT) or zero:
        raise FrameError("a frame of an unknown kind")
    if (count == 0) != (meant in (Kind.PING, Kind.PONG)):
        raise FrameError(f"a frame of kind {meant.name} about {count} items")
    if count > MOST_ITEMS or run_count > count or (not run_count and count):
        raise FrameError(f"a frame of {count} items in {run_count} runs")
    place = _HEADER.size + _RUN.size * run_count
    if len(data) < place:
        raise FrameError(f"a frame of {len(data)} bytes, too few for its runs")
    runs, total, named = [], 0, 0
    for handle, items, round in _RUN.iter_unpack(data[_HEADER.size : place]):
        is_named, round = round >= _NAMED, round & ~_NAMED
        if not 1 <= round <= dialect.rounds or not items:
            raise FrameError(f"a frame about {items} items in round {round} of {dialect.rounds}")
        runs.append(Run(handle, items, round, is_named))
        total += items
        named += items if is_named else 0
    if total != count:
        raise FrameError(f"a frame of {count} items whose runs have {total}")
    ids = _NO_IDS
    if named:
        if len(data) < place + 8 * named:
            raise FrameError(f"a frame of {len(data)} bytes, too few for {named} identities")
        ids = np.frombuffer(data, "<u8", named, place).astype(np.uint64, copy=False)
        place += 8 * named
    if meant is not Kind.ROUND:
        if named != count or set_count or flags or len(data) != place:
            raise FrameError("a frame without messages that has more or less than the items it is about")
        if named > 1 and has_twins(ids):
            raise FrameError("a frame that names an item twice")
        return Frame(meant, sender, runs, ids)
    frame = Frame(meant, sender, runs, ids, is_resent=bool(flags & _RESENT))
    return _messages(frame, data, place, count, set_count, bool(flags & _SILENT), dialect)


def _messages(
    frame: Frame, data: bytes, place: int, count: int, set_count: int, is_silent: bool, dialect: Dialect
) -> Frame:
    """What follows the items of a round: sets, mask, messages."""
    if not 1 <= set_count <= count:
        raise FrameError(f"messages about {count} items with {set_count} sets of agents")
    size, several = dialect.set_bytes, set_count > 1
    masked = (count + 7) // 8 if is_silent else 0
    if len(data) < place + size * set_count + 2 * count * several + masked:
        raise FrameError(f"a frame of {len(data)} bytes, too few for {count} items")
    sets = [int.from_bytes(data[place + size * i : place + size * (i + 1)], "little") for i in range(set_count)]
    place += size * set_count
    if max(sets) >> dialect.agents:
        raise FrameError(f"a set with agents beyond the network's {dialect.agents}")
    set_of, spoke, speakers = None, None, count
    if several:
        set_of = np.frombuffer(data, "<u2", count, place).astype(np.uint16, copy=False)
        place += 2 * count
        if int(set_of.max()) >= set_count:
            raise FrameError("a message of an unknown set of agents")
    if is_silent:
        spread = np.unpackbits(np.frombuffer(data, np.uint8, masked, place), bitorder="little")
        if spread[count:].any():
            raise FrameError("a mask with more bits than items")
        spoke, place = spread[:count].view(np.bool_), place + masked
        speakers = int(spoke.sum())
    numbers = speakers * dialect.width
    if len(data) != place + (numbers * dialect.bits + 7) // 8:
        raise FrameError(f"a frame of {len(data)} bytes, and not of the length in its header")
    values = _unpack(data, place, numbers, dialect.bits).reshape(speakers, dialect.width)
    return frame._replace(sets=sets, set_of=set_of, spoke=spoke, values=values)


def has_twins(ids: U64) -> bool:
    """Whether an identity is there twice."""
    ordered = np.sort(ids)
    return bool((ordered[1:] == ordered[:-1]).any())


def _pack(values: Codes, bits: int) -> bytes:
    if bits == NUMBER:
        return values.astype("<f8", copy=False).tobytes()
    if bits in (8, 16, 32):
        return values.astype(f"<u{bits // 8}").tobytes()
    indices = values.astype(np.uint32, copy=False)
    spread = (indices.reshape(-1, 1) >> np.arange(bits, dtype=np.uint32)).astype(np.uint8) & 1
    return np.packbits(spread, bitorder="little").tobytes()


def _unpack(data: bytes, place: int, count: int, bits: int) -> Codes:
    if bits == NUMBER:
        return np.frombuffer(data, "<f8", count, place)
    if bits in (8, 16, 32):
        return np.frombuffer(data, f"<u{bits // 8}", count, place).astype(np.uint32)
    spread = np.unpackbits(np.frombuffer(data, np.uint8, offset=place), bitorder="little")
    if spread[count * bits :].any():
        raise FrameError("bits after the last message")
    powers = np.uint32(1) << np.arange(bits, dtype=np.uint32)
    return np.asarray((spread[: count * bits].reshape(count, bits) * powers).sum(axis=1), np.uint32)
