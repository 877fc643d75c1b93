"""Agents in memory against the simulator: bit for bit."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import policy, protocol, topology
from collegium.errors import CollegiumError, LiveError
from collegium.live.agent import Agent
from collegium.live.answers import Busy
from collegium.live.engine import Limits, identities
from collegium.live.peers import Deadlines, Neighbour
from collegium.live.transport.base import Peer, Transport
from collegium.live.transport.faulty import Faults, FaultyTransport
from collegium.live.wire import Frame, Kind, encode
from collegium.network import collaborate
from live_networks import decide, in_memory, places, weights_of

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


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_live_equals_simulated(rule: protocol.Rule, network: str) -> None:
    over = NETWORKS[network]
    scores = np.random.default_rng(1).uniform(-3.5, 3.5, size=(50, over.size))
    if isinstance(rule, protocol.SocialLearning):
        scores /= 30
    with in_memory(over, rule=rule, rounds=20, seed=5) as agents:
        together = decide(agents, scores[:40])
        alone = [decide(agents, scores[i : i + 1], [i]) for i in range(40, 45)]
        # Some agents get five items at once and the others one by one.
        futures = [
            [
                agent.submit(names, scores[names, k], trace=True)
                for names in ([[*range(45, 50)]] if k % 2 else [[i] for i in range(45, 50)])
            ]
            for k, agent in enumerate(agents)
        ]
        mixed = np.array([[one.trace for f in column for one in f.result(60)] for column in futures], float).transpose(
            2, 1, 0
        )
        live = np.concatenate([together, *alone, mixed], axis=1)
    expected = collaborate(scores, over, 20, rule, rng=5).statistics
    np.testing.assert_array_equal(live, expected)


QUICK = Deadlines(longest=10.0, least=0.1, view=10.0)
PATIENT = Deadlines(longest=10.0, least=0.5, view=10.0)
"""Where nobody may be given up on, whatever pauses a busy machine makes."""


def faulty(**faults: float) -> Callable[[Transport, int], Transport]:
    return lambda inner, k: FaultyTransport(inner, Faults(**faults, seed=k))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "faults",
    [
        {"duplicate": 0.5},
        {"delay": 0.02, "jitter": 0.02},
        {"loss": 0.05},
        {"loss": 0.1, "duplicate": 0.1, "delay": 0.01, "jitter": 0.01},
    ],
    ids=str,
)
@pytest.mark.parametrize("rule", [RULES[0], RULES[6]], ids=str)
def test_what_is_lost_is_asked_for(rule: protocol.Rule, faults: dict[str, float]) -> None:
    """Doubled, overtaken and lost frames change no number as long as everybody lives."""
    over = NETWORKS["grid"]
    scores = np.random.default_rng(2).uniform(-3.5, 3.5, size=(30, 9))
    with in_memory(over, faulty(**faults), rule=rule, rounds=8, seed=5, deadlines=PATIENT) as agents:
        live = decide(agents, scores)
        assert sum(agent.status().items.with_missing for agent in agents) == 0
    np.testing.assert_array_equal(live, collaborate(scores, over, 8, rule, rng=5).statistics)


@pytest.mark.parametrize("lost", [1, 5])
def test_the_first_words_may_be_lost_and_so_may_answers(lost: int) -> None:
    """Before a neighbour's pace is known it is asked soon, and more than once."""

    class Losing(FaultyTransport):
        left = lost

        def broadcast(self, frame: bytes) -> None:
            self.left -= 1
            if self.left < 0:
                super().broadcast(frame)

    over, deadlines = policy.uniform(topology.complete(3)), Deadlines(longest=8.0, least=0.1, view=8.0)
    with in_memory(
        over, lambda inner, k: Losing(inner, Faults()) if k == 2 else inner, rounds=4, deadlines=deadlines
    ) as agents:
        begun = time.monotonic()
        outcomes = [agent.submit(["x"], np.array([1.0])).result for agent in agents]
        assert [outcome(30)[0].missed for outcome in outcomes] == [[], [], []]
        assert time.monotonic() - begun < deadlines.longest


def test_links_slower_than_the_first_question_are_known_after_it() -> None:
    """Nobody is asked again and again for words that are on their way."""
    over = policy.uniform(topology.ring(4))
    with in_memory(over, faulty(delay=0.6), rounds=6, deadlines=Deadlines(longest=2.0, least=0.25, view=4.0)) as agents:
        asked = []
        for name in ("first", "second"):
            decide(agents, np.ones((1, 4)), [name])
            asked.append(sum(agent.status().re_requested for agent in agents))
    assert asked[1] - asked[0] < asked[0] / 2  # a pause of a busy machine may cost a few


@pytest.mark.parametrize(("least", "enough"), [(0.1, 2.0), (0.5, 2.0), (1.5, 2.5), (2.0, 3.0)])
def test_one_whose_pace_is_not_known_is_silent_after_the_longest_wait(least: float, enough: float) -> None:
    """Or after half of it from the first question on, if that comes late."""
    one = Neighbour(Peer(1, "agent-1", ""), True, True, Deadlines(longest=2.0, least=least, view=1.0))
    assert not one.has_gone_silent(100.0)
    one.asked_at = one.deadline
    assert not one.has_gone_silent(enough - 0.01)
    assert one.has_gone_silent(enough + 0.01)


def test_one_mute_from_the_first_is_silent_before_others_give_up_on_those_who_wait_for_it() -> None:
    silent = threading.Event()
    silent.set()
    over, deadlines = policy.uniform(topology.ring(6)), Deadlines(longest=2.0, least=0.1, view=4.0)
    with in_memory(over, falling_silent(0, silent), rounds=5, deadlines=deadlines) as agents:
        begun = time.monotonic()
        outcomes = [agent.submit(["x"], np.ones(1)).result for agent in agents[1:]]
        assert [outcome(30)[0].missed for outcome in outcomes] == [["agent-0"], [], [], [], ["agent-0"]]
        assert time.monotonic() - begun < deadlines.longest + deadlines.view


def test_garbage_is_counted_and_harmless() -> None:
    over = NETWORKS["grid"]
    scores = np.random.default_rng(2).uniform(-3.5, 3.5, size=(30, 9))
    with in_memory(over, faulty(garbage=0.3), rounds=4, deadlines=QUICK) as agents:
        live = decide(agents, scores)
        rejected = sum(n.rejected_frames for agent in agents for n in agent.status().neighbours)
    assert rejected > 3
    assert np.isfinite(live[-1]).all()


def test_a_dead_neighbour_is_named_and_left_out() -> None:
    over = policy.uniform(topology.complete(3))
    with in_memory(over, rounds=4, deadlines=PATIENT) as agents:
        agents[2].stop()
        begun = time.monotonic()
        a, b = (agents[k].submit(["x"], np.array([1.0 - 3.0 * k]), trace=True) for k in (0, 1))
        (first,), (second,) = a.result(10), b.result(10)
        assert time.monotonic() - begun < PATIENT.longest / 2  # it said that it goes: nobody waits
    assert first.missed == second.missed == ["agent-2"]
    assert first.heard == ["agent-1"]
    assert first.view == "given"
    assert not first.settled
    assert first.trace == pytest.approx([1.0, -0.5, -0.5, -0.5, -0.5])  # the two others' mean: weights scaled up


def test_an_agent_without_a_view_takes_part_from_zero_and_says_so() -> None:
    over = policy.uniform(topology.complete(3))
    deadlines = Deadlines(longest=10.0, least=0.5, view=2.0)
    with in_memory(over, rounds=4, deadlines=deadlines) as agents:
        futures = [agents[k].submit(["x"], np.array([3.0])) for k in (0, 1)]
        (first,) = futures[0].result(10)
        while agents[2].result("x") is None:
            time.sleep(0.01)
        third = agents[2].result("x", trace=True)
        (again,) = agents[2].submit(["x"], np.array([-3.0])).result(10)
    assert first.statistic == pytest.approx(2.0)
    assert first.missed == []
    assert third is not None
    assert (third.view, third.score, third.trace) == ("missing", 0.0, pytest.approx([0.0, 2.0, 2.0, 2.0, 2.0]))
    assert again.view == "late"
    assert again.statistic == pytest.approx(2.0)


def falling_silent(who: int, silent: threading.Event) -> Callable[[Transport, int], Transport]:
    """One agent of which nothing is heard while the event is set, although its token stays."""

    class Mute(FaultyTransport):
        def _send(self, way: Callable[[bytes], None], frame: bytes) -> None:
            if not silent.is_set():
                super()._send(way, frame)

    return lambda inner, k: Mute(inner, Faults()) if k == who else inner


def test_only_those_next_to_a_silent_one_do_without_it() -> None:
    """Whoever waits for somebody who waits for it is patient enough."""
    over = policy.uniform(topology.ring(7))
    silent = threading.Event()
    deadlines = Deadlines(longest=4.0, least=0.25, view=1.0)
    with in_memory(over, falling_silent(0, silent), rounds=10, deadlines=deadlines) as agents:
        decide(agents, np.ones((1, 7)), ["warm"])
        silent.set()
        futures = [agent.submit(["x", "y"], np.ones(2)) for agent in agents[1:]]
        missed = [future.result(30)[0].missed for future in futures]
    assert missed == [["agent-0"], [], [], [], [], ["agent-0"]]


def test_one_that_stops_answering_is_given_up_once_and_heard_again() -> None:
    """A stopped process keeps its token: only unanswered questions tell."""
    over = policy.uniform(topology.complete(3))
    deaf = threading.Event()
    with in_memory(
        over, falling_silent(2, deaf), rounds=4, deadlines=Deadlines(longest=30.0, least=0.25, view=5.0)
    ) as agents:
        warm = [agent.submit(["warm"], np.array([1.0])) for agent in agents]
        assert all(future.result(10)[0].missed == [] for future in warm)
        deaf.set()
        begun = time.monotonic()
        futures = [agent.submit(["x"], np.array([1.0])) for agent in agents[:2]]
        assert all(future.result(60)[0].missed == ["agent-2"] for future in futures)
        waited = time.monotonic() - begun
        assert waited < 30.0  # a few deadlines of a neighbour that used to be quick, not the longest
        begun = time.monotonic()
        futures = [agent.submit(["y"], np.array([1.0])) for agent in agents[:2]]
        assert all(future.result(10)[0].missed == ["agent-2"] for future in futures)
        assert time.monotonic() - begun < waited / 2  # known by now: nobody waits
        assert agents[0].status().neighbours[1].state == "down"
        deaf.clear()
        futures = [agents[2].submit(["z"], np.array([1.0]))]
        while any(agent.status().neighbours[1].state == "down" for agent in agents[:2]):
            time.sleep(0.01)
        futures += [agent.submit(["z"], np.array([1.0])) for agent in agents[:2]]
        assert all(future.result(10)[0].missed == [] for future in futures)


def test_more_than_it_can_hold_is_refused_with_a_time_to_come_again() -> None:
    over = policy.uniform(topology.complete(3))
    with in_memory(over, rounds=4, limits=Limits(pending=10)) as agents:
        first = agents[0].submit(list(range(10)), np.zeros(10))
        with pytest.raises(Busy) as refusal:
            agents[0].submit([99], np.zeros(1))
        assert 0 < refusal.value.retry_after <= 10
        for agent in agents[1:]:
            agent.submit(list(range(10)), np.ones(10))
        assert len(first.result(10)) == 10
        assert not agents[0].submit([99], np.zeros(1)).done()
        left = agents[0].submit([98], np.zeros(1))
        agents[0].stop()
        with pytest.raises(LiveError, match="stopped before"):
            left.result(10)


def test_rows_are_used_again_and_old_items_forgotten() -> None:
    over = policy.uniform(topology.complete(3))
    with in_memory(over, rounds=2, limits=Limits(memory=1, pending=32)) as agents:  # 64 rows
        for start in range(0, 320, 32):
            names = list(range(start, start + 32))
            scores = np.random.default_rng(start).normal(size=(32, 3))
            np.testing.assert_array_equal(decide(agents, scores, names), collaborate(scores, over, 2).statistics)
        assert agents[0].result(319) is not None
        assert agents[0].result(0) is None
        assert not agents[0].is_pending(0)


@pytest.mark.parametrize(
    ("names", "scores", "sentence"),
    [
        ([1, 1], [0.0, 0.0], "must be different"),
        ([1], [np.nan], "score nan"),
        ([1, 2], [0.0], "2 items"),
        ([-1], [0.0], "between 0 and"),
        ([1], [9.0], "up to 4"),
    ],
)
def test_mistakes(names: list[int], scores: list[float], sentence: str) -> None:
    over = policy.uniform(topology.complete(3))
    rule = protocol.Quantised(protocol.DeGroot(), 4, 4.0)
    with in_memory(over, rule=rule) as agents, pytest.raises(CollegiumError, match=sentence):
        agents[0].submit(names, np.array(scores))


def test_a_rule_of_ones_own_runs_as_it_is() -> None:
    @dataclass(frozen=True)
    class Stubborn(protocol.DeGroot):
        def absorb(self, seat: protocol.Seat, state: Any, inbox: protocol.Inbox) -> Any:
            absorbed = super().absorb(seat, state, inbox)
            return absorbed._replace(x=0.5 * (absorbed.x + state.x))

    over = NETWORKS["grid"]
    for rule in (Stubborn(), protocol.Quantised(Stubborn(), 5, 4.0)):
        scores = np.random.default_rng(3).uniform(-3.5, 3.5, size=(5, 9))
        with in_memory(over, rule=rule, rounds=6, seed=2) as agents:
            np.testing.assert_array_equal(decide(agents, scores), collaborate(scores, over, 6, rule, rng=2).statistics)


def test_neighbours_never_take_all_the_room() -> None:
    over = policy.uniform(topology.complete(3))
    with in_memory(over, rounds=2, limits=Limits(memory=1, pending=20)) as agents:  # 64 rows
        news = Frame(Kind.NEWS, 1, 1, 0, np.arange(1000, 1200, dtype=np.uint64), 200)
        agents[0].receive(1, encode(news, agents[0]._dialect))
        assert agents[0].status().items.pending == 44
        assert not agents[0].submit(list(range(20)), np.zeros(20)).done()


def test_a_future_that_was_cancelled_does_not_keep_the_agent_from_stopping() -> None:
    over = policy.uniform(topology.complete(3))
    with in_memory(over, rounds=2) as agents:
        assert agents[0].submit(["x"], np.zeros(1)).cancel()
        agents[0].stop()


def test_decided_items_are_told_before_their_rows_are_used_again() -> None:
    over = policy.uniform(topology.complete(3))
    with in_memory(over, rounds=2, limits=Limits(memory=1, pending=32)) as agents:  # 64 rows
        decide(agents, np.ones((2, 3)), ["x", "y"])
        for start in (1000, 1031):  # all other rows: those of x and y are the next to be used again
            decide(agents, np.zeros((31, 3)), list(range(start, start + 31)))
        names = ["x", *range(10), "y"]
        waiting = [agent.submit(names, np.full(12, 5.0)) for agent in agents[:2]]
        for start in range(100, 300, 20):  # more than all rows, while one item waits for agent 2
            decide(agents, np.full((20, 3), -5.0), list(range(start, start + 20)))
        agents[2].submit(list(range(10)), np.full(10, 5.0))
        first = waiting[0].result(20)
    assert [one.id for one in first] == names
    assert [one.statistic for one in first] == [1.0, *[5.0] * 10, 1.0]


def test_a_frame_that_names_an_item_twice_is_refused() -> None:
    over = policy.uniform(topology.complete(3))
    with in_memory(over, rounds=2) as agents:
        frame = Frame(Kind.ROUND, 1, 1, 1, np.array([5, 5], np.uint64), 2, None, np.ones((2, 1)))
        agents[0].receive(1, encode(frame, agents[0]._dialect))
        assert agents[0].status().neighbours[0].rejected_frames == 1
        assert not agents[0].is_pending(5)


def test_who_looks_on_sees_what_came_last_round_by_round() -> None:
    over = policy.uniform(topology.complete(3))
    scores = np.random.default_rng(4).normal(size=(5, 3))
    with in_memory(over, rounds=4) as agents:
        decide(agents, scores)
        agents[0].submit(["half"], np.array([2.0]))
        while not agents[1].is_pending("half"):
            time.sleep(0.001)
        newest, *others = agents[0].recent(4).items
        waiting = agents[1].recent(1).items[0]
    assert (newest.round, newest.decided, newest.trace, newest.settled) == (0, False, [2.0], None)
    assert (waiting.view, waiting.trace, waiting.score) == ("waiting", [None], None)
    assert newest.identity == waiting.identity == f"{identities(['half'])[0]:016x}"
    assert len(others) == 3
    for one in others:
        i = int(one.identity, 16)
        np.testing.assert_array_equal(one.trace, collaborate(scores, over, 4).statistics[:, i, 0])
        assert (one.round, one.decided, one.view, one.missed) == (4, True, "given", [])
        assert one.settled == agents[0].result(i).settled  # type: ignore[union-attr]


def test_views_are_waited_for_by_all_together_and_not_one_hop_after_the_other() -> None:
    over = NETWORKS["ring"]
    deadlines = Deadlines(longest=20.0, least=0.25, view=1.0)
    with in_memory(over, rounds=3, deadlines=deadlines) as agents:
        decide(agents, np.ones((1, 12)), ["warm"])
        begun = time.monotonic()
        (first,) = agents[0].submit(["x"], np.array([1.0])).result(30)
        while (far := agents[6].result("x")) is None:
            time.sleep(0.01)
        seconds = time.monotonic() - begun
    assert seconds < 5.0  # six hops, each with a wait of its own, would be six seconds
    assert (far.view, far.missed, first.view, first.missed) == ("missing", [], "given", [])


def test_an_item_decided_long_ago_is_not_decided_once_more() -> None:
    over = policy.uniform(topology.complete(3))
    with in_memory(over, rounds=2, limits=Limits(memory=1, pending=32)) as agents:  # 64 rows
        decide(agents, np.ones((1, 3)), ["x"])
        for start in range(0, 96, 32):
            decide(agents, np.zeros((32, 3)), list(range(start, start + 32)))
        assert agents[0].result("x") is None
        for kind, list_ in ((Kind.ASK, 0), (Kind.NEWS, 0)):
            agents[0].receive(1, encode(Frame(kind, 1, 2, list_, identities(["x"]), 1), agents[0]._dialect))
            assert not agents[0].is_pending("x")


def test_a_word_said_twice_is_measured_once() -> None:
    over = policy.uniform(topology.complete(3))
    with in_memory(over, rounds=3) as agents:
        agents[0].submit([5], np.zeros(1))
        neighbour = agents[0]._neighbours[1]
        word = [
            encode(Frame(Kind.ROUND, 1, t, 1, np.array([5], np.uint64), 1, None, np.ones((1, 1))), agents[0]._dialect)
            for t in (1, 2)
        ]
        agents[0].receive(1, word[0])
        assert neighbour.response is None  # a first word waits for a view
        agents[0].receive(
            2,
            encode(Frame(Kind.ROUND, 2, 1, 1, np.array([5], np.uint64), 1, None, np.ones((1, 1))), agents[0]._dialect),
        )
        agents[0].receive(1, word[1])
        first = neighbour.response
        assert first is not None
        agents[0].receive(1, word[1])
        assert neighbour.response == first


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=4, max_size=4))
@settings(max_examples=100, deadline=None)
def test_a_frame_that_names_an_item_twice_leaves_the_books_in_order(lists: list[list[int]]) -> None:
    over = policy.uniform(topology.complete(3))
    agent = Agent(places(over)[0], weights_of(over, 0), rounds=2)
    for number in (1, 2):
        agent.presence(number, True)
    agent.submit([0, 1, 2, 3], np.ones(4))
    frames = zip(((t, sender) for t in (1, 2) for sender in (1, 2)), lists, strict=True)
    for (t, sender), names in frames:
        ids = np.array(names, np.uint64)
        frame = Frame(Kind.ROUND, sender, t, len(names), ids, len(names), None, np.ones((len(names), 1)))
        agent.receive(sender, encode(frame, agent._dialect))
        items = agent.status().items
        assert items.pending == sum(agent.is_pending(name) for name in range(4))
        assert items.done == sum(agent.result(name) is not None for name in range(4))
