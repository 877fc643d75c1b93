"""Frames: what goes in comes out, b bits are b bits, and no bytes at all do harm."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.live.wire import MOST_ITEMS, Dialect, Frame, FrameError, Kind, decode, encode

FLOATS = Dialect(0xC0FFEE, 0xBEEF, 64, 20, 1e6)


def round_frame(values: np.ndarray, ids: np.ndarray | None, spoke: np.ndarray | None, count: int) -> Frame:
    return Frame(Kind.ROUND, 3, 7, 11, ids, count, spoke, values)


@given(
    bits=st.sampled_from([1, 2, 3, 4, 5, 6, 8, 11, 16, 31, 32, 64]),
    n=st.integers(1, 70),
    named=st.booleans(),
    silent=st.booleans(),
    width=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=300, deadline=None)
def test_what_goes_in_comes_out(bits: int, n: int, named: bool, silent: bool, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dialect = Dialect(1, 2, bits, 20, 1e6, width)
    spoke = rng.random(n) < 0.5 if silent else None
    speakers = n if spoke is None else int(spoke.sum())
    shape = speakers, width
    values = rng.normal(size=shape) if bits == 64 else rng.integers(0, 2**bits, shape, dtype=np.uint32)
    ids = rng.integers(0, 2**63, n, dtype=np.uint64) if named else None
    data = encode(round_frame(values, ids, spoke, n), dialect)
    # Said once, by hand: 36 bytes of header, 8 an identity, a bit a mask, `bits` a number.
    assert len(data) == 36 + 8 * n * named + (n + 7) // 8 * silent + (speakers * width * bits + 7) // 8
    back = decode(data, dialect)
    assert (back.kind, back.sender, back.round, back.list, back.size) == (Kind.ROUND, 3, 7, 11, n)
    np.testing.assert_array_equal(back.values, values)
    assert (back.ids is None) == (ids is None)
    if ids is not None:
        np.testing.assert_array_equal(back.ids, ids)
    if spoke is not None:
        np.testing.assert_array_equal(back.spoke, spoke)


def test_the_bytes_are_these() -> None:
    """One frame spelt out, so that a change of the form is noticed."""
    frame = Frame(Kind.ROUND, 3, 7, 11, np.array([5, 6], np.uint64), 2, None, np.array([[9], [14]], np.uint32))
    data = encode(frame, Dialect(1, 2, 4, 20))
    spelt = "01 01 0300 07000000 0100000000000000 0200000000000000 0b000000 02000000 04 01 0000"
    assert data == bytes.fromhex(spelt + "0500000000000000 0600000000000000 e9")


@given(st.binary(max_size=200))
@settings(max_examples=1000, deadline=None)
def test_any_bytes_are_a_frame_or_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        decode(data, FLOATS)


@given(st.data())
@settings(max_examples=1000, deadline=None)
def test_a_frame_with_bytes_changed_is_refused_or_within_bounds(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    dialect = data.draw(st.sampled_from([FLOATS, Dialect(1, 2, 4, 20), Dialect(1, 2, 16, 20)]))
    n = data.draw(st.integers(1, 20))
    values = rng.normal(size=n) if dialect.bits == 64 else rng.integers(0, 2**dialect.bits, n, dtype=np.uint32)
    frame = bytearray(encode(round_frame(values, np.arange(n, dtype=np.uint64), None, n), dialect))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(frame[: data.draw(st.integers(0, len(frame)))] if data.draw(st.booleans()) else frame)
    try:
        back = decode(cut, dialect)
    except FrameError:
        return
    assert 1 <= back.round <= 20
    assert 1 <= back.size <= MOST_ITEMS
    assert len(back.values) <= back.size
    assert np.isfinite(back.values).all()
    assert np.abs(back.values).max(initial=0) <= max(1e6, 2**dialect.bits if dialect.bits < 64 else 0)


@pytest.mark.parametrize(
    ("place", "content", "sentence"),
    [
        (0, b"\x02", "version 2"),
        (1, b"\x09", "unknown kind"),
        (4, struct.pack("<I", 21), "round 21 of 20"),
        (4, struct.pack("<I", 0), "round 0 of 20"),
        (8, struct.pack("<Q", 1), "another network"),
        (16, struct.pack("<Q", 1), "other weights"),
        (28, struct.pack("<I", 0xFFFFFFFF), "4294967295 items"),
        (28, struct.pack("<I", 60_000), "too few"),
        (28, struct.pack("<I", 0), "0 items"),
        (32, b"\x04", "other weights"),
        (33, b"\x80", "unknown kind"),
        (52, struct.pack("<d", np.nan), "not a number"),
        (52, struct.pack("<d", -np.inf), "not a number"),
        (52, struct.pack("<d", 1e7), "larger than any"),
        (68, b"\x00", "where the header says"),
    ],
)
def test_refusals_say_why(place: int, content: bytes, sentence: str) -> None:
    frame = encode(round_frame(np.array([1.0, 2.0]), np.array([5, 6], np.uint64), None, 2), FLOATS)
    with pytest.raises(FrameError, match=sentence):
        decode(frame[:place] + content + frame[place + len(content) :], FLOATS)
