"""Networks of engines on a virtual clock against the simulator: bit for bit, also when frames are lost."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import policy, protocol, topology
from collegium.errors import CollegiumError, LiveError
from collegium.live import results
from collegium.live.answers import Conflict
from collegium.live.engine import Engine, Limits
from collegium.live.naming import identities
from collegium.live.peers import Deadlines
from collegium.live.wire import Frame, Kind, Run, about, decode, encode
from collegium.network import collaborate
from live_networks import places, weights_of
from virtual_network import VirtualNetwork, Way, outcome

RULES = [
    protocol.DeGroot(),
    protocol.SocialLearning(),
    protocol.DeltaTrigger(0.3),
    protocol.LabelStability(2, 0.4),
    protocol.Quantised(protocol.DeGroot(), bits=4, bound=4.0),
    protocol.Quantised(protocol.DeGroot(), bits=8, bound=4.0),
    protocol.Quantised(protocol.DeltaTrigger(0.3), bits=6, bound=4.0),
    protocol.Quantised(protocol.LabelStability(2, 0.4), bits=11, bound=4.0),
]
NETWORKS = {
    "grid": policy.uniform(topology.grid(3, 3)),
    "ring": policy.metropolis(topology.ring(12)),
    "directed": policy.uniform(topology.erdos_renyi(12, links=24, seed=7)),
}
THREE = policy.uniform(topology.complete(3))
ROWS = Limits(memory=1, pending=32)
"""Of memory that is too small for anything there are 64 rows."""


def message(sender: int, item: int | list[int], t: int, value: float = 1.0, agents: int | None = None) -> Frame:
    """A message about items that are numbers, as an agent of one of these networks sends it."""
    items = [item] if isinstance(item, int) else item
    sets = [1 << sender if agents is None else agents]
    values = np.full((len(items), 1), value)
    return Frame(Kind.ROUND, sender, [Run(t, len(items), t, True)], np.array(items, np.uint64), sets, values=values)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_live_equals_simulated(rule: protocol.Rule, network: str) -> None:
    """Some links are slower than others; nothing waits for a timer, nobody asks for anything."""
    over = NETWORKS[network]
    scores = np.random.default_rng(1).uniform(-3.5, 3.5, size=(18, over.size))
    if isinstance(rule, protocol.SocialLearning):
        scores /= 30
    net = VirtualNetwork(
        over, lambda sender, receiver, _: 0.001 * (1 + (3 * sender + receiver) % 5), rule=rule, rounds=8, seed=5
    )
    net.has_timers = False
    together = net.decide(scores[:10])
    alone = [net.decide(scores[i : i + 1], [i]) for i in range(10, 13)]
    # Some agents get five items at once and the others one by one.
    tickets = [
        [
            net.submit(k, names, scores[names, k])
            for names in ([[*range(13, 18)]] if k % 2 else [[i] for i in range(13, 18)])
        ]
        for k in range(over.size)
    ]
    net.until(lambda: not any(ticket.open for column in tickets for ticket in column))
    mixed = np.array([[one.trace for ticket in column for one in outcome(ticket)] for column in tickets], float)
    live = np.concatenate([together, *alone, mixed.transpose(2, 1, 0)], axis=1)
    np.testing.assert_array_equal(live, collaborate(scores, over, 8, rule, rng=5).statistics)
    assert set(net.frames) == {"ROUND"}


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_the_quick_way_for_one_message_does_what_the_general_way_does(data: st.DataObject) -> None:
    """Two engines hear the same frames, of which one takes none the quick way: they know and send the same."""
    rounds, items = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 2))
    over, T = THREE, rounds
    quick, plain = (
        Engine(places(over)[0], weights_of(over, 0), ["agent-0", "agent-1", "agent-2"], rounds=T) for _ in range(2)
    )
    for n in plain.neighbours.values():
        n.heads = ()
    engines, sent = (quick, plain), ([], [])

    def both(call: Any) -> None:
        for engine, out in zip(engines, sent, strict=True):
            for _, frame in call(engine).frames:
                out.extend(_messages(engine, frame))

    for number in (1, 2):
        both(lambda engine, number=number: engine.presence(number, True, 1.0))
    views = data.draw(st.integers(0, items))
    for item in range(views):
        both(lambda engine, item=item: engine.submit([item], np.array([0.5 + item]), True, 1.0)[1])
    for k in (1, 2):
        first = message(k, list(range(items)), 1, 0.25 * k)._replace(runs=[Run(10, items, 1, True)])
        both(lambda engine, k=k, first=first: engine.receive([(k, encode(first, engine.dialect))], 1.0))
    for step in range(data.draw(st.integers(1, 16))):
        k = data.draw(st.sampled_from([1, 2]))
        handle, t = data.draw(st.integers(9, 10 + items)), data.draw(st.integers(0, T + 1))
        count, sender = data.draw(st.sampled_from([1, 1, 1, 2])), data.draw(st.sampled_from([k, k, k, 3 - k]))
        values = data.draw(st.lists(st.sampled_from([-1.5, 0.0, 2.0, 1e301, math.nan]), min_size=1, max_size=2))
        agents = data.draw(st.sampled_from([1 << k, 6, 7, 8]))
        single = quick.single
        frame = single.write(single.heads(sender), handle, t, agents, values)
        frame = frame[:36] + bytes([count]) + frame[37:] + bytes(data.draw(st.sampled_from([0, 0, 0, 1])))
        both(lambda engine, k=k, frame=frame, step=step: engine.receive([(k, frame)], 1.0 + 0.01 * step))
    assert sorted(sent[0]) == sorted(sent[1])
    for name, array in vars(quick.table).items():
        if isinstance(array, np.ndarray):
            np.testing.assert_array_equal(array, getattr(plain.table, name), name)
    for k in (1, 2):
        one, other = (vars(engine.neighbours[k]) for engine in engines)
        known = ("state", "reason", "response", "message_at", "asked_at", "rejected", "over_budget", "strikes")
        assert [one[name] for name in known] == [other[name] for name in known]


def _messages(engine: Engine, data: bytes) -> list[tuple[Any, ...]]:
    """What a frame says of each item; how items share frames is of no account."""
    frame = decode(data, engine.dialect)
    assert frame.kind is Kind.ROUND
    handles = [run.handle + i for run in frame.runs for i in range(run.items)]
    set_of = [0] * len(handles) if frame.set_of is None else frame.set_of.tolist()
    sets = [frame.sets[index] for index in set_of]
    return list(zip(handles, frame.rounds.tolist(), frame.values[:, 0].tolist(), sets, strict=True))


@pytest.mark.parametrize("rule", [protocol.DeGroot(), protocol.LabelStability(2, 0.4)], ids=str)
@pytest.mark.parametrize("network", ["grid", "directed"])
def test_three_classes_equal_the_simulator(rule: protocol.Rule, network: str) -> None:
    over = NETWORKS[network]
    scores = np.random.default_rng(4).normal(size=(20, over.size, 3))
    scores -= scores.mean(axis=2, keepdims=True)
    net = VirtualNetwork(over, rule=rule, rounds=12, seed=5, classes=("cat", "dog", "owl"))
    live = net.decide(scores)
    run = collaborate(scores, over, 12, rule, rng=5)
    np.testing.assert_array_equal(live, run.statistics)
    labels = [["cat", "dog", "owl"][label] for label in run.statistics[-1, :, 0].argmax(axis=1)]
    assert [net.result(0, i).label for i in range(20)] == labels  # type: ignore[union-attr]


def faulty(loss: float = 0.0, delay: float = 0.001, jitter: float = 0.0) -> Way:
    chance = random.Random(1)
    return lambda *_: None if chance.random() < loss else delay + chance.uniform(0, jitter)


@pytest.mark.parametrize(
    "faults",
    [
        {"delay": 0.02, "jitter": 0.04},
        {"loss": 0.05},
        {"loss": 0.1, "delay": 0.01, "jitter": 0.02},
    ],
    ids=str,
)
@pytest.mark.parametrize("rule", [RULES[0], RULES[6]], ids=str)
def test_what_is_lost_is_asked_for(rule: protocol.Rule, faults: dict[str, float]) -> None:
    """Overtaken and lost frames change no number as long as everybody lives."""
    over = NETWORKS["grid"]
    scores = np.random.default_rng(2).uniform(-3.5, 3.5, size=(30, 9))
    net = VirtualNetwork(over, faulty(**faults), rule=rule, rounds=8, seed=5)
    np.testing.assert_array_equal(net.decide(scores), collaborate(scores, over, 8, rule, rng=5).statistics)
    assert sum(net.status(k).items.with_missing for k in range(9)) == 0
    assert net.frames["RESEND"] > 0 or "loss" not in faults


def test_doubled_frames_change_nothing() -> None:
    over = NETWORKS["grid"]
    scores = np.random.default_rng(2).uniform(-3.5, 3.5, size=(30, 9))
    net = VirtualNetwork(over, rule=RULES[6], rounds=8, seed=5)

    def twice(sender: int, receiver: int, data: bytes) -> float:
        net.at(net.now + 0.0005, lambda: net.say(sender, receiver, data))
        net.at(net.now + 0.01, lambda: net.say(sender, receiver, data))
        return 0.001

    net.way = twice
    np.testing.assert_array_equal(net.decide(scores), collaborate(scores, over, 8, RULES[6], rng=5).statistics)
    net.rest()
    assert [net.status(k).items.done for k in range(9)] == [30] * 9


@pytest.mark.parametrize("lost", [1, 5])
def test_the_first_messages_may_be_lost_and_so_may_answers(lost: int) -> None:
    """Before a neighbour's pace is known it is asked soon, and more than once."""
    left = {(2, 0): lost, (2, 1): lost}

    def way(sender: int, receiver: int, data: bytes) -> float | None:
        left[sender, receiver] = left.get((sender, receiver), 0) - 1
        return None if left[sender, receiver] >= 0 else 0.001

    deadlines = Deadlines(longest=8.0, least=0.1, view=8.0)
    net = VirtualNetwork(THREE, way, rounds=4, deadlines=deadlines)
    begun = net.now
    net.decide(np.ones((1, 3)), ["x"])
    assert [net.result(k, "x").missed for k in range(3)] == [[], [], []]  # type: ignore[union-attr]
    assert net.now - begun < deadlines.longest


def test_links_slower_than_the_first_question_are_known_after_it() -> None:
    """Nobody is asked again and again for messages that are on their way."""
    over = policy.uniform(topology.ring(4))
    net = VirtualNetwork(
        over, lambda *_: 0.6, rounds=6, deadlines=Deadlines(longest=2.0, least=0.25, view=4.0, item=60.0)
    )
    asked = []
    for name in ("first", "second"):
        net.decide(np.ones((1, 4)), [name])
        net.rest()
        asked.append(net.frames["RESEND"])
    assert asked[0] > 0
    assert asked[1] == asked[0]


def test_garbage_is_counted_and_harmless() -> None:
    chance = random.Random(5)
    net = VirtualNetwork(NETWORKS["grid"], rounds=4)

    def way(sender: int, receiver: int, data: bytes) -> float | None:
        if chance.random() >= 0.3:
            return 0.001
        place = chance.randrange(len(data))
        changed = data[:place] + chance.randbytes(4) + data[place + 4 :]
        net.at(net.now + 0.001, lambda: net.say(sender, receiver, changed))
        return None

    net.way = way
    live = net.decide(np.random.default_rng(2).uniform(-3.5, 3.5, size=(30, 9)))
    assert sum(n.rejected_frames for k in range(9) for n in net.status(k).neighbours) > 3
    assert np.isfinite(live[-1]).all()


def test_an_agent_without_a_view_takes_part_from_zero_and_a_late_view_begins_the_item_once_more() -> None:
    deadlines = Deadlines(longest=10.0, least=0.5, view=2.0)
    net = VirtualNetwork(THREE, rounds=4, deadlines=deadlines)
    tickets = [net.submit(k, ["x"], [3.0]) for k in (0, 1)]
    assert net.until(lambda: not tickets[0].open) == pytest.approx(2.0, abs=0.1)
    net.rest()
    (first,), third = outcome(tickets[0]), net.result(2, "x")
    assert (first.statistic, first.missed) == (pytest.approx(2.0), [])
    assert third is not None
    assert (third.view, third.score, third.trace) == ("missing", 0.0, pytest.approx([0.0, 2.0, 2.0, 2.0, 2.0]))
    late = net.submit(2, ["x"], [-3.0])
    assert net.until(lambda: not late.open) < 0.1  # the others have their views: nobody waits
    (again,) = outcome(late)
    assert (again.view, again.score, again.missed, again.evidence.views) == ("late", -3.0, [], 3)
    expected = collaborate(np.array([[3.0, 3.0, -3.0]]), THREE, 4).statistics[:, 0, 2]
    np.testing.assert_array_equal(again.trace, expected)
    assert net.submit(2, ["x"], [-3.0]).results == [again]  # asked once more, it is told again
    assert net.result(0, "x") == first  # and others keep their answer


def test_more_than_64_rows_are_used_again_and_old_items_forgotten() -> None:
    net = VirtualNetwork(THREE, rounds=2, limits=ROWS)
    for start in range(0, 320, 32):
        names = list(range(start, start + 32))
        scores = np.random.default_rng(start).normal(size=(32, 3))
        np.testing.assert_array_equal(net.decide(scores, names), collaborate(scores, THREE, 2).statistics)
    assert net.engines[0].table.capacity == 64
    assert net.result(0, 319) is not None
    assert not net.has(0, 0)


@pytest.mark.parametrize(
    ("names", "scores", "sentence"),
    [
        ([1, 1], [0.0, 0.0], "must be different"),
        (["a", 1, "a"], [0.0, 0.0, 0.0], "must be different"),
        ([1], [np.nan], "score nan"),
        ([1, 2], [0.0], "2 items"),
        ([-1], [0.0], "between 0 and"),
        ([1], [9.0], "up to 4"),
    ],
)
def test_mistakes(names: list[int], scores: list[float], sentence: str) -> None:
    net = VirtualNetwork(THREE, rule=protocol.Quantised(protocol.DeGroot(), 4, 4.0))
    with pytest.raises(CollegiumError, match=sentence):
        net.submit(0, names, scores)
    assert net.status(0).items.pending == 0


def test_names_may_be_mixed() -> None:
    net = VirtualNetwork(THREE, rounds=2)
    net.decide(np.ones((3, 3)), [7, "7", "eight"])
    assert [one.id for one in outcome(net.submit(0, ["eight", 7], [1.0, 1.0]))] == ["eight", 7]


def test_another_score_for_a_known_name_is_refused() -> None:
    """While it runs, when it is decided, and while it waits in the backlog; the same one is answered again."""
    net = VirtualNetwork(THREE, rounds=2, limits=Limits(pending=1))
    tickets = [net.submit(k, ["x", "waits"], [1.0, 2.0]) for k in (0, 1)]
    assert net.status(0).items.waiting == 1
    for item, score in (("x", 1.5), ("waits", 2.5)):
        with pytest.raises(Conflict, match=f"{item!r} was submitted to agent-0 before with another score"):
            net.submit(0, [item], [score])
    with pytest.raises(Conflict, match=r"'x' \(and 1 more\)"):
        net.submit(0, ["x", "waits", "new"], [1.5, 2.5, 0.0])
    again = net.submit(0, ["waits", "x"], [2.0, 1.0])
    tickets.append(net.submit(2, ["x", "waits"], [1.0, 2.0]))
    net.rest()
    assert [one.id for one in outcome(again)] == ["waits", "x"]
    assert all(not ticket.open for ticket in tickets)
    with pytest.raises(Conflict):
        net.submit(0, ["x"], [1.5])
    assert not net.has(0, "new")
    assert outcome(net.submit(0, ["x"], [1.0])) == outcome(tickets[0])[:1]


def test_a_rule_of_ones_own_runs_as_it_is() -> None:
    @dataclass(frozen=True)
    class Stubborn(protocol.DeGroot):
        def absorb(self, seat: protocol.Seat, state: Any, inbox: protocol.Inbox) -> Any:
            absorbed = super().absorb(seat, state, inbox)
            return absorbed._replace(x=0.5 * (absorbed.x + state.x))

    over = NETWORKS["grid"]
    for rule in (Stubborn(), protocol.Quantised(Stubborn(), 5, 4.0)):
        scores = np.random.default_rng(3).uniform(-3.5, 3.5, size=(5, 9))
        net = VirtualNetwork(over, rule=rule, rounds=6, seed=2)
        np.testing.assert_array_equal(net.decide(scores), collaborate(scores, over, 6, rule, rng=2).statistics)


@pytest.mark.parametrize("where", ["absorb", "emit"])
def test_a_rule_that_raises_tells_those_who_wait_and_nothing_hangs(where: str) -> None:
    @dataclass(frozen=True)
    class Brittle(protocol.DeGroot):
        def absorb(self, seat: protocol.Seat, state: Any, inbox: protocol.Inbox) -> Any:
            return self.seen("absorb", seat, state, super().absorb(seat, state, inbox))

        def emit(self, seat: protocol.Seat, state: Any, draws: Any) -> Any:
            return self.seen("emit", seat, state, super().emit(seat, state, draws))

        def seen(self, what: str, seat: protocol.Seat, state: Any, result: Any) -> Any:
            if what == where and seat.agent == 2 and (state.x > 1.5).any():
                raise ZeroDivisionError("by design")
            return result

    net = VirtualNetwork(THREE, rule=Brittle(), rounds=3)
    bad = [net.submit(k, ["x", "y"], [2.0, 2.0]) for k in range(3)]
    net.rest()
    assert "failed at agent-2: ZeroDivisionError: by design" in bad[2].error
    assert net.status(2).items.failed == 2
    assert any(k == 2 and "2 items were given up" in text for k, text in net.log)
    assert [one.missed for ticket in bad[:2] for one in outcome(ticket)] == [["agent-2"]] * 4
    assert np.isfinite(net.decide(np.ones((1, 3)), ["z"])).all()  # an item it can do is unharmed
    assert all(net.result(k, "z").missed == [] for k in range(3))  # type: ignore[union-attr]


def test_decided_items_are_told_before_their_rows_are_used_again() -> None:
    net = VirtualNetwork(THREE, rounds=2, limits=ROWS)
    net.decide(np.ones((2, 3)), ["x", "y"])
    for start in (1000, 1031):  # all other rows: those of x and y are the next to be used again
        net.decide(np.zeros((31, 3)), list(range(start, start + 31)))
    names = ["x", *range(10), "y"]
    scores = [1.0, *[5.0] * 10, 1.0]
    waiting = [net.submit(k, names, scores) for k in (0, 1)]
    for start in range(100, 300, 20):  # more than all rows, while ten items wait for agent 2
        net.decide(np.full((20, 3), -5.0), list(range(start, start + 20)))
    net.submit(2, list(range(10)), np.full(10, 5.0))
    net.until(lambda: not waiting[0].open)
    assert [one.id for one in outcome(waiting[0])] == names
    assert [one.statistic for one in outcome(waiting[0])] == scores


def test_who_looks_on_sees_what_came_last_round_by_round() -> None:
    scores = np.random.default_rng(4).normal(size=(5, 3))
    net = VirtualNetwork(THREE, rounds=4)
    net.decide(scores)
    net.submit(0, ["half"], [2.0])
    net.run(0.01)
    newest, *others = results.recent(net.engines[0], 4, net.now).items
    (waiting,) = results.recent(net.engines[1], 1, net.now).items
    assert (newest.round, newest.decided, newest.trace, newest.settled) == (0, False, [2.0], None)
    assert (waiting.view, waiting.trace, waiting.score) == ("waiting", [None], None)
    assert newest.identity == waiting.identity == f"{identities(['half'])[0]:016x}"
    assert (newest.age_ms, waiting.age_ms) == (pytest.approx(10.0), pytest.approx(9.0))
    assert len(others) == 3
    for one in others:
        i = int(one.identity, 16)
        np.testing.assert_array_equal(one.trace, collaborate(scores, THREE, 4).statistics[:, i, 0])
        assert (one.round, one.decided, one.view, one.missed) == (4, True, "given", [])
        assert one.settled == net.result(0, i).settled  # type: ignore[union-attr]


def test_views_are_waited_for_by_all_together_and_not_one_hop_after_the_other() -> None:
    net = VirtualNetwork(NETWORKS["ring"], rounds=3, deadlines=Deadlines(longest=20.0, least=0.25, view=1.0, item=60.0))
    net.decide(np.ones((1, 12)), ["warm"])
    first = net.submit(0, ["x"], [1.0])
    seconds = net.until(lambda: net.result(6, "x") is not None)
    assert seconds < 2.0  # six hops, each with a wait of its own, would be six seconds
    net.rest()
    (near,), far = outcome(first), net.result(6, "x")
    assert far is not None
    assert (far.view, far.missed, near.view, near.missed) == ("missing", [], "given", [])


def test_a_message_that_comes_twice_is_measured_once() -> None:
    net = VirtualNetwork(THREE, lambda *_: None, rounds=3)
    net.submit(0, [5], [0.0])
    net.now += 0.125
    net.say(1, 0, message(1, 5, 1))
    assert net.neighbour(0, 1).response_ms is None  # a first message waits for a view
    net.say(2, 0, message(2, 5, 1))
    net.now += 0.25
    net.say(1, 0, message(1, 5, 2))
    assert net.neighbour(0, 1).response_ms == pytest.approx(250.0)
    net.now += 0.5
    net.say(1, 0, message(1, 5, 2))
    assert net.neighbour(0, 1).response_ms == pytest.approx(250.0)


def test_an_announcement_that_names_an_item_twice_is_refused() -> None:
    net = VirtualNetwork(THREE, rounds=2)
    net.say(1, 0, about(Kind.ANNOUNCE, 1, np.array([5, 5], np.uint64), np.array([1, 1], np.int32)))
    assert net.neighbour(0, 1).rejected_frames == 1
    assert not net.has(0, 5)


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=4, max_size=4))
@settings(max_examples=100, deadline=None)
def test_messages_that_name_an_item_twice_leave_the_books_in_order(lists: list[list[int]]) -> None:
    net = VirtualNetwork(THREE, lambda *_: None, rounds=2, limits=ROWS)
    table = net.engines[0].table
    net.submit(0, [0, 1, 2, 3], np.ones(4))
    for (t, sender), names in zip(((t, sender) for t in (1, 2) for sender in (1, 2)), lists, strict=True):
        net.say(sender, 0, message(sender, names, t))
        items = net.status(0).items
        assert items.done == sum(net.result(0, name) is not None for name in range(4))
        assert items.pending == 4 - items.done
        assert table.room() == table.capacity - items.pending


def test_what_was_named_before_a_neighbour_rejoined_is_named_again() -> None:
    """It has forgotten the handles: messages under those alone would say nothing to it."""
    net = VirtualNetwork(THREE, rounds=3)
    first = [net.submit(k, ["x"], [3.0]) for k in (0, 1)]
    net.run(0.01)
    net.leave(1)
    net.restart(1)
    net.way = lambda sender, receiver, _: None if (sender, receiver) == (2, 1) else 0.001
    first.append(net.submit(2, ["x"], [6.0]))
    net.run(0.01)
    assert net.has(1, "x")  # from agent 0's second message
    net.way = lambda *_: 0.001
    again = net.submit(1, ["x"], [3.0])
    net.rest()
    assert [one.missed for one in outcome(first[0]) + outcome(first[2])] == [[], []]
    (late,) = outcome(again)
    assert (late.view, late.missed, late.trace[0]) == ("given", [], 3.0)  # it has its view, and goes through all rounds
    assert late.statistic == outcome(first[0])[0].statistic


def test_engines_say_what_is_wrong_with_their_settings() -> None:
    place, names = places(THREE)[0], ["agent-0", "agent-1", "agent-2"]
    with pytest.raises(LiveError, match=r"agent-0 has weights for \[0, 1\] and hears \[1, 2\]"):
        Engine(place, {0: 0.5, 1: 0.5}, names)
    with pytest.raises(LiveError, match="agent 2 is agent-2, but not by the names of all agents"):
        Engine(place, weights_of(THREE, 0), names[:2])


def test_messages_that_may_wait_share_a_frame_with_those_of_the_next_call() -> None:
    net = VirtualNetwork(THREE, rounds=4)
    engine = net.engines[0]
    for item in (1, 2):
        _, effects = engine.submit([item], np.array([0.5]), False, net.now, later=True)
        assert not effects.frames
    ((to, data),) = engine.receive((), net.now).frames
    assert to is None
    assert decode(data, engine.dialect).ids.tolist() == [1, 2]
    assert not engine.receive((), net.now).frames


def test_messages_of_what_is_decided_at_once_do_not_wait() -> None:
    """The row may be another item's by then."""
    net = VirtualNetwork(THREE, rounds=1)
    engine = net.engines[0]
    for k in (1, 2):
        net.say(k, 0, message(k, 1, 1))
    ticket, effects = engine.submit([1], np.array([0.5]), False, net.now, later=True)
    assert effects.completed == [ticket]
    assert len(effects.frames) == 1


def test_an_epoch_that_ends_leaves_nobody_without_knowledge_of_its_items() -> None:
    """However long views are waited for: whoever opens the next epoch must not begin them there."""
    deadlines = Deadlines(longest=30.0, least=5.0, view=30.0, item=90.0)
    net = VirtualNetwork(policy.uniform(topology.ring(8)), rounds=3, deadlines=deadlines)

    def close() -> None:
        for k, engine in enumerate(net.engines):
            net._perform(k, engine.close(net.now))

    net.submit(0, ["before"], [1.0])
    net.run(0.1)
    assert not net.has(4, "before")
    close()
    net.submit(0, ["after"], [1.0])  # known elsewhere, and begun when its view came
    net.run(0.1)
    assert all(net.has(k, name) for k in range(8) for name in ("before", "after"))
