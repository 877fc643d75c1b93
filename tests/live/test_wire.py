"""Frames: what goes in comes out, b bits are b bits, and no bytes at all do harm."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.live.wire import MOST_ITEMS, Dialect, Frame, FrameError, Kind, Run, Single, about, decode, encode

FLOATS = Dialect(0xC0FFEE, 0xBEEF, 64, 20, 1, 9)
DIALECTS = [FLOATS, Dialect(1, 2, 4, 20, 1, 3), Dialect(1, 2, 16, 20, 2, 70)]


@st.composite
def frames(draw: st.DrawFn, dialect: Dialect) -> Frame:
    """Messages as an agent could send them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 20), min_size=1, max_size=4))
    runs = [Run(int(rng.integers(2**32)), n, int(rng.integers(1, 21)), bool(rng.random() < 0.5)) for n in sizes]
    n, named = sum(sizes), sum(run.items for run in runs if run.is_named)
    ids = rng.integers(0, 2**63, named, dtype=np.uint64)
    sets = [int(rng.integers(2 ** min(dialect.agents, 62))) for _ in range(draw(st.integers(1, n)))]
    set_of = rng.integers(0, len(sets), n).astype(np.uint16) if len(sets) > 1 else None
    spoke = rng.random(n) < 0.5 if draw(st.booleans()) else None
    shape = n if spoke is None else int(spoke.sum()), dialect.width
    bits = dialect.bits
    values = rng.normal(size=shape) if bits == 64 else rng.integers(0, 2**bits, shape, dtype=np.uint32)
    return Frame(Kind.ROUND, 3, runs, ids, sets, set_of, spoke, values, draw(st.booleans()))


@given(
    st.data(),
    st.sampled_from([1, 2, 3, 4, 5, 6, 8, 11, 16, 31, 32, 64]),
    st.integers(1, 3),
    st.sampled_from([1, 8, 9, 70]),
)
@settings(max_examples=300, deadline=None)
def test_what_goes_in_comes_out(data: st.DataObject, bits: int, width: int, agents: int) -> None:
    dialect = Dialect(1, 2, bits, 20, width, agents)
    frame = data.draw(frames(dialect))
    n, m, s = sum(run.items for run in frame.runs), len(frame.runs), len(frame.sets)
    written = encode(frame, dialect)
    # Said once, by hand: 32 bytes of header, 12 a run, 8 an identity, a bit an agent of a set, 2 an index of a set if
    # there are several, a bit a mask, `bits` a number.
    size = 32 + 12 * m + 8 * len(frame.ids) + s * ((agents + 7) // 8) + 2 * n * (s > 1)
    size += (n + 7) // 8 * (frame.spoke is not None) + (frame.values.size * bits + 7) // 8
    assert len(written) == size
    back = decode(written, dialect)
    assert (back.kind, back.sender, back.runs, back.sets) == (Kind.ROUND, 3, frame.runs, frame.sets)
    assert back.is_resent == frame.is_resent
    for mine, its in ((frame.ids, back.ids), (frame.values, back.values)):
        np.testing.assert_array_equal(mine, its)
    for mine, its in ((frame.set_of, back.set_of), (frame.spoke, back.spoke)):
        assert (mine is None) == (its is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, its)
    np.testing.assert_array_equal(back.rounds, [run.round for run in frame.runs for _ in range(run.items)])


BARE = (Kind.PING, Kind.PONG)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.ROUND and kind not in BARE])
def test_questions_and_answers_come_out_too(kind: Kind) -> None:
    rounds = np.array([1, 1, 4, 4, 4, 2], np.int32)
    frame = about(kind, 5, np.arange(6, dtype=np.uint64), rounds, handle=250)
    assert frame.runs == [Run(250, 2, 1, True), Run(250, 3, 4, True), Run(250, 1, 2, True)]
    back = decode(encode(frame, FLOATS), FLOATS)
    assert (back.kind, back.sender, back.runs) == (kind, 5, frame.runs)
    np.testing.assert_array_equal(back.ids, range(6))
    np.testing.assert_array_equal(back.rounds, rounds)
    with pytest.raises(FrameError, match=f"of kind {kind.name} about 0 items"):
        decode(encode(Frame(kind, 5), FLOATS), FLOATS)


@pytest.mark.parametrize("kind", BARE)
def test_a_ping_is_about_nothing(kind: Kind) -> None:
    assert decode(encode(Frame(kind, 5), FLOATS), FLOATS).runs == []
    with pytest.raises(FrameError, match=f"of kind {kind.name} about 2 items"):
        decode(encode(about(kind, 5, np.arange(2, dtype=np.uint64), np.ones(2, np.int32)), FLOATS), FLOATS)


def test_the_bytes_are_these() -> None:
    """One frame spelt out, so that a change of the form is noticed."""
    ids, values = np.array([5, 6], np.uint64), np.array([[9], [14]], np.uint32)
    frame = Frame(Kind.ROUND, 3, [Run(11, 2, 7, True)], ids, [5], values=values)
    data = encode(frame, Dialect(1, 2, 4, 20, 1, 3))
    spelt = "02 01 0300 02000000 0100000000000000 0200000000000000 0100 0100 04 00 0000"
    spelt += "0b000000 02000000 07000080 0500000000000000 0600000000000000 05 e9"
    assert data == bytes.fromhex(spelt)


@pytest.mark.parametrize("values", [[-1.5], [-1.5, 2.25]])
def test_messages_about_one_item_are_written_and_read_as_any_others(values: list[float]) -> None:
    """`Single` is there for speed alone."""
    handle, single = 2**32 - 1, Single(FLOATS)
    runs = [Run(handle, 1, 7 + i, False) for i in range(len(values))]
    frame = Frame(Kind.ROUND, 4, runs, sets=[0b101], values=np.array(values)[:, None])
    data = single.write(single.heads(4), handle, 7, 0b101, values)
    assert data == encode(frame, FLOATS)
    assert data.startswith(single.heads(4)[len(values) - 1])
    assert single.read(data) == (handle, 7, 0b101, tuple(values))


def test_two_messages_that_are_not_about_one_item_in_a_row_are_read_in_the_general_way() -> None:
    for second in (Run(8, 1, 4, False), Run(7, 1, 5, False), Run(7, 1, 4, True)):
        ids = np.array([3], np.uint64) if second.is_named else np.zeros(0, np.uint64)
        frame = Frame(Kind.ROUND, 4, [Run(7, 1, 3, False), second], ids, [1], values=np.ones((2, 1)))
        assert Single(FLOATS).read(encode(frame, FLOATS)) is None


@given(st.binary(max_size=200))
@settings(max_examples=1000, deadline=None)
def test_any_bytes_are_a_frame_or_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        decode(data, FLOATS)


@given(st.data())
@settings(max_examples=1000, deadline=None)
def test_a_frame_with_bytes_changed_is_refused_or_holds_together(data: st.DataObject) -> None:
    dialect = data.draw(st.sampled_from(DIALECTS))
    frame = bytearray(encode(data.draw(frames(dialect)), dialect))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(frame[: data.draw(st.integers(0, len(frame)))] if data.draw(st.booleans()) else frame)
    try:
        back = decode(cut, dialect)
    except FrameError:
        return
    n = sum(run.items for run in back.runs)
    assert n <= MOST_ITEMS
    assert all(1 <= run.round <= 20 and run.items for run in back.runs)
    assert len(back.ids) == sum(run.items for run in back.runs if run.is_named)
    assert all(0 <= members < 1 << dialect.agents for members in back.sets)
    assert back.set_of is None or int(back.set_of.max()) < len(back.sets)
    assert len(back.values) == (n if back.spoke is None else back.spoke.sum()) or back.kind is not Kind.ROUND
    if dialect.bits < 64:
        assert (np.asarray(back.values) < 2**dialect.bits).all()


@pytest.mark.parametrize(
    ("place", "content", "sentence"),
    [
        (0, b"\x01", "version 1"),
        (1, b"\x09", "unknown kind"),
        (4, struct.pack("<I", 0xFFFFFFFF), "4294967295 items"),
        (4, struct.pack("<I", 3), "of 3 items whose runs have 2"),
        (4, struct.pack("<I", 0), "of kind ROUND about 0 items"),
        (8, struct.pack("<Q", 1), "another network"),
        (16, struct.pack("<Q", 1), "other weights"),
        (24, b"\x02", "0 items in round 6"),  # what follows is no run
        (24, b"\x00", "2 items in 0 runs"),
        (26, b"\x00", "with 0 sets"),
        (26, b"\x03", "with 3 sets"),
        (26, b"\x02", "too few|not of the length in its header|unknown set"),
        (28, b"\x04", "other weights"),
        (29, b"\x80", "unknown kind"),
        (30, b"\x01", "unknown kind"),
        (36, struct.pack("<I", 60_000), "whose runs have 60000"),
        (36, struct.pack("<I", 0), "0 items in round"),
        (40, struct.pack("<I", 21 | 1 << 31), "round 21 of 20"),
        (40, struct.pack("<I", 7), "not of the length in its header"),
        (61, b"\x02", "beyond the network's 9"),
        (29, b"\x01", "more bits than items|not of the length in its header"),
        (78, b"\x00", "not of the length in its header"),
    ],
)
def test_refusals_say_why(place: int, content: bytes, sentence: str) -> None:
    ids, values = np.array([5, 6], np.uint64), np.array([[1.0], [2.0]])
    frame = encode(Frame(Kind.ROUND, 3, [Run(11, 2, 7, True)], ids, [5], values=values), FLOATS)
    assert len(frame) == 78
    with pytest.raises(FrameError, match=sentence):
        decode(frame[:place] + content + frame[place + len(content) :], FLOATS)


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (about(Kind.ANNOUNCE, 3, np.array([5, 5], np.uint64), np.array([1, 1], np.int32)), "names an item twice"),
        (Frame(Kind.RESEND, 3, [Run(1, 1, 1, False)]), "more or less than the items"),
        (Frame(Kind.PING, 3, sets=[1]), "more or less than the items"),
    ],
)
def test_questions_are_about_items_by_name_and_each_once(frame: Frame, sentence: str) -> None:
    with pytest.raises(FrameError, match=sentence):
        decode(encode(frame, FLOATS), FLOATS)
