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
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

BITS = (64, 4, 8, 3)
LAST = 1_000_000  # the item that must be decided after all


def decoder() -> tuple[Callable[[bytes], None], list[bytes]]:
    """Bytes are refused, or a frame that is written again byte for byte; and they cost what their length allows."""
    from collegium.live.wire import Dialect, Frame, FrameError, Kind, decode, encode

    dialects = [Dialect(1, 2, bits, 20, 1e6) for bits in BITS]

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
            words = np.linspace(-3, 3, n) if dialect.bits == 64 else (ids % 8).astype(np.uint32)
            some = ids % 3 == 1
            frames = [
                Frame(Kind.ROUND, 3, 7, 11, ids, n, None, words),
                Frame(Kind.ROUND, 3, 7, 11, None, n, None, words),
                Frame(Kind.ROUND, 3, 7, 11, ids, n, some, words[some]),
                Frame(Kind.ROUND, 3, 20, 11, None, n, ~some, words[~some]),
                *[Frame(kind, 3, 1, 0, ids, n) for kind in Kind if kind is not Kind.ROUND],
            ]
            seeds += [bytes([d]) + encode(frame, dialect) for frame in frames]
    return one_input, seeds


def agent() -> tuple[Callable[[bytes], None], list[bytes]]:
    """A real agent among three healthy ones, on a clock and a post that only the input moves.

    Whatever its neighbours seem to say, it raises nothing, its books agree, every item ends in a finite number, and an
    item that everybody sees afterwards is decided as the simulator decides it.
    """
    from collegium import policy, protocol, topology
    from collegium.live import agent as engine
    from collegium.live.table import DONE, FREE, TALKING, VIEW, VIEWLESS
    from collegium.live.transport.memory import Hub, MemoryTransport
    from collegium.live.wire import Frame, Kind, encode
    from collegium.network import collaborate

    sys.path.insert(0, str(Path(__file__).parent.parent))
    from live_networks import places, weights_of

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
    clock = SimpleNamespace(now=0.0)
    engine.time = SimpleNamespace(monotonic=lambda: clock.now)  # type: ignore[assignment]

    class Post(MemoryTransport):
        """Without its thread: letters wait until they are carried."""

        def open(self, receive: Any, presence: Any) -> None:
            self._receive, self.presence = receive, presence
            self._post = deque()  # type: ignore[assignment]
            self.post = self._post.append  # type: ignore[attr-defined,method-assign]
            self._hub.join(self)

        def carry(self) -> bool:
            if not self._post:
                return False
            self._post.popleft()()  # type: ignore[attr-defined]
            return True

    def network(rule: Any, absent: Any) -> tuple[list[Any], list[Post]]:
        hub, clock.now = Hub(), 1000.0
        limits = engine.Limits(memory=1)  # 64 rows, the fewest there are
        agents = [
            engine.Agent(place, weights_of(over, place.number), rule=rule, rounds=T, absent=absent, limits=limits)
            for place in places(over)
        ]
        posts = [Post(one.place, hub) for one in agents]
        for one, post in zip(agents, posts, strict=True):
            one._transport, one._last_list = post, 1 << 31  # a list's number is drawn at random otherwise
            post.open(one.receive, one.presence)
        carry(posts)
        return agents, posts

    def carry(posts: list[Post], most: int = 100_000) -> None:
        while most and sum(post.carry() for post in posts):
            most -= 1
        assert most or len(posts) < 4, "they talk without end"

    def wait(agents: list[Any], seconds: float) -> None:
        """What the agent's own thread does, now and then."""
        clock.now += seconds
        for one in agents:
            with one._lock:
                if one._table.active:
                    one._look(clock.now)
            one._deliver()

    def check(one: Any) -> None:
        table = one._table
        state, used = table.state, np.flatnonzero(table.state != FREE)
        pending = (state == VIEWLESS) | (state == TALKING)
        assert table.active == pending.sum(), "pending items miscounted"
        assert sorted(table._free) == np.flatnonzero(~pending).tolist(), "a row twice free, or lost"
        assert table._rows == dict(zip(table.id[used].tolist(), used.tolist(), strict=True)), "a row of two items"
        assert one._mine == (pending & (table.view == VIEW)).sum(), "own items miscounted"
        assert set(one._tickets) <= set(np.flatnonzero(pending).tolist()), "a ticket waits for what is decided"
        assert not one._touched
        assert ((table.first[used] >= 1) & (table.first[used] <= table.round[used]) & (table.round[used] <= T)).all()
        for row in used.tolist():
            end = T + 1 if state[row] == DONE else table.round[row] if state[row] == TALKING else 0
            assert np.isfinite(table.trace[table.first[row] - 1 : end, row]).all(), "a statistic that is no number"
        assert one._listed == sum(size for _, size in one._lists.values()) <= engine._LISTED
        assert one._named <= {number for number, _ in one._lists.values()}
        for neighbour in one._neighbours.values():
            assert neighbour._listed == sum(len(ids) + 32 for _, ids in neighbour._lists.values()) <= 1 << 17
            assert 0 < neighbour.deadline <= one.deadlines.longest
            assert len(neighbour.reason) < 300

    def frame_of(source: "Bytes", dialect: Any) -> bytes:
        """A frame of the right form from a few bytes, so that most inputs pass the decoder."""
        sender, kind, t, number = source.some(4)
        size, flags = source.some(2)
        size = 1 + size % (80 if flags & 4 else 6)
        ids = spoke = None
        if flags & 4:
            ids = (np.arange(size) + source.one()).astype(np.uint64)
        elif flags & 1 or kind % len(Kind):
            ids = np.array(source.some(size), np.uint64) % 16
        if flags & 2 and not kind % len(Kind):
            spoke = np.array(source.some(size)) % 2 == 1
        n = size if spoke is None else int(spoke.sum())
        words: Any = np.array(source.some(n), np.int64)
        if dialect.bits == 64:
            words = np.where(words % 16 == 15, 1e300 * (words - 128), (words - 128) / 32)
        else:
            words = (words % 2**dialect.bits).astype(np.uint32)
        frame = Frame(Kind(1 + kind % len(Kind)), sender % 5, 1 + t % T, number % 8, ids, size, spoke, words)
        return encode(frame, dialect)

    def one_input(data: bytes) -> None:
        """First a byte for the rule, then what happens: frames, items, letters carried, time, neighbours who go."""
        source = Bytes(data)
        choice = source.one()
        rule = rules[choice % 5]
        agents, posts = network(rule, "hold" if choice & 128 else "renormalise")
        first = agents[0]
        futures = []
        while source.left:
            what = source.one() % 7
            if what in (0, 1):
                frame = frame_of(source, first._dialect)
                if what == 1:  # a byte of it changed
                    place, byte = source.some(2)
                    frame = frame[: place % len(frame)] + bytes([byte]) + frame[place % len(frame) + 1 :]
                first.receive(frame[2], frame)
            elif what == 2:
                names = list(dict.fromkeys(name % 16 for name in source.some(1 + source.one() % 6)))
                scores = (np.array(source.some(len(names))) - 128) / 64
                with contextlib.suppress(engine.Busy):
                    futures.append((names, first.submit(names, scores, trace=True)))
            elif what == 3:
                wait(agents, source.one() / 50)
            elif what == 4:
                number = source.one()
                first.presence(number % 5, bool(number & 8))
            elif what == 5:
                carry(posts[source.one() % 4 :][:1], 1 + source.one() % 8)
            else:
                first.receive(source.one() % 5, bytes(source.some(source.one())))
            clock.now += 0.001
            check(first)
        # Nothing stays in hand for ever.
        end = clock.now + 120
        for number in (1, 2, 3):
            first.presence(number, True)
        carry(posts)
        while any(one._table.active for one in agents):
            assert clock.now < end, "an item that is never decided"
            wait(agents, 0.5)
            carry(posts)
        for one in agents:
            check(one)
        for names, future in futures:
            outcomes = future.result(0)
            assert [outcome.id for outcome in outcomes] == names
            assert all(np.isfinite(outcome.statistic) for outcome in outcomes)
        for one in agents:  # as they are when all is well: whoever was not heard for long is heard again
            for neighbour in one._neighbours:
                one.presence(neighbour, True)
        if any(one._table.find(LAST) >= 0 for one in agents):
            return
        last = [one.submit([LAST], own[:, k], trace=True) for k, one in enumerate(agents)]
        carry(posts)
        for k, future in enumerate(last):
            (outcome,) = future.result(0)
            assert outcome.missed == []
            assert np.array_equal(outcome.trace, expected[choice % 5][:, k]), "not what the simulator decides"
        check(first)

    item = bytes([2, 0, 7, 192])  # submitted: item 7
    words = b"".join(bytes([0, k, 0, t, 1, 0, 1, 7, 160]) for t in range(T) for k in (1, 2))  # both speak of it
    bare = b"".join(bytes([0, k, 0, t, 1, 0, 0, 160]) for t in range(1, T) for k in (1, 2))
    many = b"".join(bytes([0, k, 0, t, 2, 2, 1, 7, 8, 9, 160, 20, 90]) for t in range(T) for k in (1, 2))
    doubled = b"".join(bytes([0, k, 0, t, 1, 1, 1, 7, 7, 160, 160]) for t in range(T) for k in (1, 2))
    masked = bytes([0, 1, 0, 0, 3, 2, 3, 7, 8, 9, 1, 0, 1, 160, 20])
    full = bytes([0, 1, 0, 0, 4, 79, 4, 10, *range(79, 159)])
    asked = bytes([0, 1, 1, 0, 0, 1, 1, 7, 20]) + bytes([0, 3, 3, 0, 0, 0, 1, 7]) + bytes([0, 1, 4, 1, 0, 1, 1, 7, 9])
    late = bytes([3, 60, 3, 60, 5, 0, 3, 5, 1, 3, 3, 100, 3, 200])
    gone = bytes([4, 1, 4, 9])
    seeds = [
        bytes([choice]) + body
        for choice in (*range(5), 128, 131)
        for body in (
            item + words,
            item + words[:18] + bare,
            words + item,
            item + many,
            item + doubled,
            item + masked + late,
            full + item,
            item + asked + late,
            item + gone + words,
            item + words[:9] + late + words,
        )
    ]
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


def main() -> None:
    import atheris  # here, since pytest reads this file too, to look for doctests

    from collegium.kernels import averaging  # noqa: F401 numba cannot compile what the fuzzer has marked

    targets = {"decoder": decoder, "agent": agent}
    if len(sys.argv) < 2 or sys.argv[1] not in targets:
        sys.exit(f"which of {', '.join(targets)}?")
    warnings.simplefilter("error")
    logging.disable()
    with atheris.instrument_imports(include=["collegium.live"]):
        one_input, seeds = targets[sys.argv.pop(1)]()
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds):
            (Path(folder) / f"seed-{number}").write_bytes(seed)
            one_input(seed)
        gc.freeze()  # or what is forgotten is looked for among all of numba, and rarely
        atheris.Setup([*sys.argv, folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
