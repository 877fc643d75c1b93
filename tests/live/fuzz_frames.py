"""Coverage-guided fuzzers for what neighbours send: the frame decoder, and a whole agent that hears anything at all.

Run by hand, for so many inputs or seconds:

    python tests/live/fuzz_frames.py decoder -atheris_runs=5000000 [corpus folder]
    python tests/live/fuzz_frames.py agent -max_total_time=900 [corpus folder]
"""

import contextlib
import gc
import logging
import sys
import tempfile
import tracemalloc
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BITS = (64, 4, 8, 3)
LAST = 1_000_000  # the item that must be decided after all


def decoder() -> tuple[Callable[[bytes], None], list[bytes]]:
    """Bytes are refused, or a frame that is written again byte for byte; and they cost what their length allows."""
    from collegium.live.wire import Dialect, Frame, FrameError, Kind, Run, about, decode, encode

    dialects = [Dialect(1, 2, bits, 20, 1, 11) for bits in BITS]

    def one_input(data: bytes) -> None:
        """First a byte for the dialect, then the frame."""
        if not data:
            return
        dialect, data = dialects[data[0] % 4], data[1:]
        is_measured = zlib.crc32(data) % 64 == 0  # which costs more than the decoding: some are enough
        if is_measured:
            tracemalloc.start()
        try:
            frame = decode(data, dialect)
        except FrameError as problem:
            frame, reason = None, str(problem)
        if is_measured:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 16_384 + 100 * len(data), (peak, len(data))
        if frame is None:
            assert 10 < len(reason) < 200
        else:
            assert encode(frame, dialect) == data

    seeds = []
    for d, dialect in enumerate(dialects):
        for n in (1, 2, 9, 300):
            ids = np.arange(n, dtype=np.uint64)
            numbers = np.linspace(-3, 3, n) if dialect.bits == 64 else (ids % 8).astype(np.uint32)
            values, some = numbers[:, None], ids % 3 == 1
            sets, set_of = ([5, 1025], (ids % 2).astype(np.uint16)) if n > 1 else ([5], None)
            named, bare = [Run(11, n, 7, True)], [Run(2**32 - 1, n, 20, False)]
            frames = [
                Frame(Kind.ROUND, 3, named, ids, [5], values=values),
                Frame(Kind.ROUND, 3, bare, sets=sets, set_of=set_of, values=values, is_resent=True),
                Frame(Kind.ROUND, 3, named, ids, sets, set_of, some, values[some]),
                Frame(Kind.ROUND, 3, [*named, *bare], ids, [5], values=np.concatenate([values, values])),
                *[about(kind, 3, ids, np.full(n, 3, np.int32), 250) for kind in Kind if kind is not Kind.ROUND],
                Frame(Kind.PING, 3),
            ]
            seeds += [bytes([d]) + encode(frame, dialect) for frame in frames]
    return one_input, seeds


def agent() -> tuple[Callable[[bytes], None], list[bytes]]:
    """A real engine among three healthy ones, on a virtual clock that only the input moves.

    Whatever its neighbours seem to say, it raises nothing, its books agree, every item ends in a finite number, and an
    item that everybody sees afterwards is decided as the simulator decides it.
    """
    from collegium import policy, protocol, topology
    from collegium.errors import CollegiumError
    from collegium.live.engine import Engine, Limits
    from collegium.live.table import ANNOUNCED, DECIDED, FREE, NO_VIEW, RUNNING
    from collegium.live.wire import Frame, Kind, Run, encode
    from collegium.network import collaborate

    sys.path.insert(0, str(Path(__file__).parent.parent))
    from virtual_network import VirtualNetwork, outcome

    # 0 hears 1 and 2, and is heard by 1 and 3.
    graph = topology.Graph.from_links(4, [1, 2, 0, 0, 3], [0, 0, 1, 3, 2])
    over, T = policy.uniform(graph), 3
    rules = [
        protocol.DeGroot(),
        protocol.Quantised(protocol.DeGroot(), bits=4, bound=2.0),
        protocol.DeltaTrigger(0.3),
        protocol.Quantised(protocol.LabelStability(1, 0.2), bits=3, bound=2.0),
        protocol.SocialLearning(),
    ]
    own = np.array([[0.5, -0.25, 0.75, -1.0]])
    expected = [collaborate(own, over, T, rule, rng=0, items=[LAST]).statistics[:, 0] for rule in rules]

    def check(one: Engine) -> None:
        table = one.table
        state, used = table.state, np.flatnonzero(table.state != FREE)
        pending = (state == ANNOUNCED) | (state == RUNNING)
        assert table.active == pending.sum(), "pending items miscounted"
        assert sorted(table.free(table.room()).tolist()) == np.flatnonzero(~pending).tolist(), (
            "a row twice free, or lost"
        )
        assert table._rows == dict(zip(table.id[used].tolist(), used.tolist(), strict=True)), "a row of two items"
        assert one.mine == ((state == RUNNING) & (table.view != NO_VIEW)).sum() <= table.capacity
        waited_for = [*one.waiters.rows().tolist(), *one.waiters._more]
        assert pending[waited_for].all(), "a request waits for what is decided"
        assert len(one.backlog) <= one.backlog.most
        assert not one.progress._touched
        assert ((table.first[used] >= 1) & (table.first[used] <= table.round[used]) & (table.round[used] <= T)).all()
        begun = np.flatnonzero((state == RUNNING) | (state == DECIDED))
        for row in begun.tolist():
            steps = table.trace[table.first[row] - 1 : table.done[row] + 1, row]
            assert np.isfinite(steps).all(), "a statistic that is no number"
        assert len(one.progress.sets.members) <= 1 << 12
        for neighbour in one.neighbours.values():
            assert 0 < neighbour.deadline <= one.deadlines.longest
            assert len(neighbour.reason) < 300

    def frame_of(source: "Bytes", dialect: Any) -> bytes:
        """A frame of the right form from a few bytes, so that most inputs pass the decoder."""
        sender, kind, t, handle = source.some(4)
        size, flags = source.some(2)
        kind = Kind(1 + kind % len(Kind))
        is_round = kind is Kind.ROUND
        size = 1 + size % (80 if flags & 4 else 6)
        is_named = bool(flags & 5) or not is_round
        if flags & 4:
            ids = (np.arange(size) + source.one()).astype(np.uint64)
        elif is_named:
            ids = np.array(source.some(size), np.uint64) % 16
        else:
            ids = np.empty(0, np.uint64)
        runs = [Run(handle % 8, size, 1 + t % T, is_named)]
        if not is_round:
            return encode(Frame(kind, sender % 5, runs, ids), dialect)
        sets, set_of = [flags >> 4], None
        if flags & 8 and size > 1:
            sets, set_of = [flags >> 4, 3], np.arange(size, dtype=np.uint16) % 2
        spoke = np.array(source.some(size)) % 2 == 1 if flags & 2 else None
        n = size if spoke is None else int(spoke.sum())
        values: Any = np.array(source.some(n), np.int64)
        if dialect.bits == 64:
            values = np.where(values % 16 == 15, 1e300 * (values - 128), (values - 128) / 32)
        else:
            values = (values % 2**dialect.bits).astype(np.uint32)
        return encode(Frame(kind, sender % 5, runs, ids, sets, set_of, spoke, values[:, None]), dialect)

    def one_input(data: bytes) -> None:
        """First a byte for the rule, then what happens: frames, items, time, neighbours who go."""
        source = Bytes(data)
        choice = source.one()
        rule = rules[choice % 5]
        bounds = {"bounds": dict.fromkeys(range(4), 8.0), "largest": 8.0}
        net = VirtualNetwork(
            over,
            rule=rule,
            rounds=T,
            absent="hold" if choice & 128 else "renormalise",
            limits=Limits(memory=1, pending=4 if choice & 64 else None),  # 64 rows, the fewest there are
            **bounds,
        )
        first = net.engines[0]
        tickets = []
        while source.left:
            what = source.one() % 6
            if what in (0, 1):
                frame = frame_of(source, first.dialect)
                if what == 1:  # a byte of it changed
                    place, byte = source.some(2)
                    frame = frame[: place % len(frame)] + bytes([byte]) + frame[place % len(frame) + 1 :]
                net.say(frame[2], 0, frame)
            elif what == 2:
                names = list(dict.fromkeys(name % 16 for name in source.some(1 + source.one() % 6)))
                scores = (np.array(source.some(len(names))) - 128) / 64
                with contextlib.suppress(CollegiumError):  # busy, a conflict, or beyond the rule's bound
                    tickets.append((names, net.submit(0, names, scores)))
            elif what == 3:
                net.run(source.one() / 50)
            elif what == 4:
                number = source.one()
                net.presence(0, number % 5, bool(number & 8))
            else:
                net.say(source.one() % 5, 0, bytes(source.some(source.one())))
            net.run(0.0005)  # half a link's time, so that frames wait on their way
            check(first)
        # Nothing stays in hand for ever.
        net.until(lambda: not any(one.table.active or len(one.backlog) for one in net.engines), 120.0)
        for one in net.engines:
            check(one)
        for names, ticket in tickets:
            assert [answer.id for answer in outcome(ticket)] == names
            assert all(np.isfinite(answer.statistic) for answer in outcome(ticket))
        for one in net.engines:  # all is well again: whoever was left out is heard
            for number in one.neighbours:
                net.presence(one.number, number, False)
                net.presence(one.number, number, True)
        if any(net.has(k, LAST) for k in range(4)):
            return
        live = net.decide(own, [LAST])
        assert np.array_equal(live[:, 0], expected[choice % 5]), "not what the simulator decides"
        check(first)

    item = bytes([2, 0, 7, 192])  # submitted: item 7
    # Both neighbours send their messages about it, in all rounds; under their names, then without.
    named = b"".join(bytes([0, k, 0, t, 1, 0, 0x21, 7, 160]) for t in range(T) for k in (1, 2))
    bare = b"".join(bytes([0, k, 0, t, 1, 0, 0x20, 160]) for t in range(1, T) for k in (1, 2))
    many = b"".join(bytes([0, k, 0, t, 2, 2, 0x29, 7, 8, 9, 160, 20, 90]) for t in range(T) for k in (1, 2))
    doubled = b"".join(bytes([0, k, 0, t, 1, 1, 1, 7, 7, 160, 160]) for t in range(T) for k in (1, 2))
    masked = bytes([0, 1, 0, 0, 3, 2, 3, 7, 8, 9, 1, 0, 1, 160, 20])
    full = bytes([0, 1, 0, 0, 4, 79, 4, 10, *range(79, 159)])
    asked = bytes([0, 1, 1, 0, 0, 1, 1, 7, 20]) + bytes([0, 3, 3, 0, 0, 0, 1, 7]) + bytes([0, 1, 4, 1, 0, 1, 1, 7, 9])
    late = bytes([3, 60, 3, 60, 3, 5, 3, 1, 3, 100, 3, 200])
    gone = bytes([4, 1, 4, 9])
    bodies = (
        item + named, item + named[:18] + bare, named + item, item + many, item + doubled, item + masked + late,
        full + item, item + asked + late, item + gone + named, item + named[:9] + late + named, full + late + item,
    )  # fmt: skip
    seeds = [bytes([choice]) + body for choice in (*range(5), 64, 128, 131) for body in bodies]
    return one_input, seeds


class Bytes:
    """An input, byte after byte; zeros after its end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    @property
    def left(self) -> bool:
        return self._place < len(self._data)

    def one(self) -> int:
        return self.some(1)[0]

    def some(self, count: int) -> list[int]:
        part = self._data[self._place : self._place + count]
        self._place += count
        return [*part, *bytes(count - len(part))]


TARGETS = {"decoder": decoder, "agent": agent}


def main() -> None:
    import atheris  # here, since pytest reads this file too, to look for doctests

    from collegium.kernels import averaging  # noqa: F401 numba cannot compile what the fuzzer has marked

    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"which of {', '.join(TARGETS)}?")
    warnings.simplefilter("error")
    logging.disable()
    with atheris.instrument_imports(include=["collegium.live"]):
        one_input, seeds = TARGETS[sys.argv.pop(1)]()
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds):
            (Path(folder) / f"seed-{number}").write_bytes(seed)
            one_input(seed)
        gc.freeze()  # or what is forgotten is looked for among all of numba, and rarely
        atheris.Setup([*sys.argv, folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
