"""Agents with their threads, transports and futures; what they decide and when is tested on engines (`test_engine`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait

import numpy as np
import pytest

from collegium import policy, protocol, topology
from collegium.errors import LiveError
from collegium.live.agent import Agent
from collegium.live.answers import Busy, Conflict
from collegium.live.engine import Limits
from collegium.live.peers import Deadlines
from collegium.live.transport.base import Transport
from collegium.live.transport.faulty import Faults, FaultyTransport
from collegium.live.wire import Frame, Kind, encode
from collegium.network import collaborate
from live_networks import PATIENT, decide, in_memory, places, weights_of

THREE = policy.uniform(topology.complete(3))
NINE = policy.uniform(topology.grid(3, 3))
NAMES = ["agent-0", "agent-1", "agent-2"]


def faulty(**faults: float) -> Callable[[Transport, int], Transport]:
    return lambda inner, k: FaultyTransport(inner, Faults(**faults, seed=k))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "rule", [protocol.DeGroot(), protocol.Quantised(protocol.LabelStability(2, 0.4), bits=11, bound=4.0)], ids=str
)
def test_live_equals_simulated(rule: protocol.Rule) -> None:
    scores = np.random.default_rng(1).uniform(-3.5, 3.5, size=(20, 9))
    with in_memory(NINE, rule=rule, rounds=8, seed=5) as agents:
        live = np.concatenate(
            [decide(agents, scores[:15]), *[decide(agents, scores[[i]], [i]) for i in range(15, 20)]], 1
        )
    np.testing.assert_array_equal(live, collaborate(scores, NINE, 8, rule, rng=5).statistics)


def test_transports_may_lose_double_and_reorder() -> None:
    """The timer's thread sees to what is lost; deadlines are long, whatever pauses a busy machine makes."""
    scores = np.random.default_rng(2).uniform(-3.5, 3.5, size=(20, 9))
    faults = faulty(loss=0.05, duplicate=0.2, jitter=0.002)
    deadlines = Deadlines(longest=30.0, least=0.5, view=30.0, item=120.0)  # one counts as silent after 8.5 times least
    with in_memory(NINE, faults, rounds=5, deadlines=deadlines) as agents:
        live = decide(agents, scores)
        assert sum(agent.status().items.with_missing for agent in agents) == 0
    np.testing.assert_array_equal(live, collaborate(scores, NINE, 5).statistics)


def test_an_agent_that_stops_says_so_and_tells_those_who_wait() -> None:
    with in_memory(THREE, rounds=4, limits=Limits(pending=1)) as agents:
        begun = agents[2].submit(["x", "waits"], np.array([1.0, 1.0]))
        agents[2].stop()
        with pytest.raises(LiveError, match="agent-2 was stopped before the item was decided"):
            begun.result(60)
        with pytest.raises(LiveError, match="agent-2 is stopping"):
            agents[2].submit(["y"], np.array([1.0]))
        (one,) = decide_two(agents, "z")
        assert one.missed == ["agent-2"]  # within far less than any deadline, or the test would take minutes


def decide_two(agents: list[Agent], name: str) -> list:
    futures = [agent.submit([name], np.array([1.0])) for agent in agents[:2]]
    return futures[0].result(PATIENT.longest)


def test_refusals_reach_whoever_submits() -> None:
    with in_memory(THREE, rounds=4, limits=Limits(pending=2)) as agents:
        first = agents[0].submit(list(range(10)), np.zeros(10))
        with pytest.raises(Busy) as refusal:
            agents[0].submit([99], np.zeros(1))
        assert refusal.value.retry_after > 0
        with pytest.raises(Conflict):
            agents[0].submit([3], np.ones(1))
        assert agents[0].is_pending(9)  # it waits
        assert not agents[0].is_pending(99)
        for agent in agents[1:]:
            agent.submit(list(range(10)), np.ones(10))
        assert len(first.result(60)) == 10
        assert agents[0].result(9) == first.result()[9]
        assert not agents[0].is_pending(9)


def test_a_rule_that_raises_fails_the_future() -> None:
    class Brittle(protocol.DeGroot):
        def absorb(self, seat: protocol.Seat, state: object, inbox: protocol.Inbox) -> object:
            raise ZeroDivisionError("by design")

    with in_memory(THREE, rule=Brittle(), rounds=2) as agents:
        futures = [agent.submit(["x"], np.ones(1)) for agent in agents]
        for future in futures:
            with pytest.raises(LiveError, match="ZeroDivisionError: by design"):
                future.result(60)


def test_a_future_that_was_cancelled_does_not_keep_the_agent_from_stopping() -> None:
    with in_memory(THREE, rounds=2) as agents:
        assert agents[0].submit(["x"], np.zeros(1)).cancel()
        agents[0].stop()


def test_an_agent_takes_submissions_and_frames_from_many_threads() -> None:
    """Each agent is given its items by threads of their own, while messages come in on others."""
    items, threads = 60, 4
    scores = np.random.default_rng(3).normal(size=(items, 3))
    futures: list[tuple[int, int, Future]] = []
    with in_memory(THREE, rounds=3) as agents:
        start = threading.Barrier(3 * threads)

        def work(k: int, part: int) -> None:
            start.wait(60)
            for i in range(part, items, threads):
                futures.append((i, k, agents[k].submit([i], scores[[i], k], trace=True)))

        workers = [threading.Thread(target=work, args=(k, part)) for k in range(3) for part in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert not wait([future for *_, future in futures], 60).not_done
    expected = collaborate(scores, THREE, 3).statistics
    for i, k, future in futures:
        np.testing.assert_array_equal(future.result()[0].trace, expected[:, i, k])


def test_what_a_result_calls_may_use_the_agent() -> None:
    """Futures are done outside the lock."""
    with in_memory(THREE, rounds=2) as agents:
        seen: list[object] = []
        done = threading.Event()

        def look(future: Future) -> None:
            seen.extend([agents[0].result("x"), agents[0].status().items.done, agents[0].recent(1).items[0].decided])
            done.set()

        futures = [agent.submit(["x"], np.ones(1)) for agent in agents]
        futures[0].add_done_callback(look)
        assert done.wait(60)
        assert seen == [futures[0].result()[0], 1, True]


def test_frames_of_one_neighbour_do_not_delay_those_of_another() -> None:
    """A flood waits in a queue of its own, which drops its oldest; read is a few of each in turn."""
    agent = Agent(places(THREE)[0], weights_of(THREE, 0), NAMES, rounds=2)
    read: list[int] = []
    receive = agent._engine.receive

    def spy(frames, now):  # type: ignore[no-untyped-def]
        frames = list(frames)
        read.extend(sender for sender, _ in frames)
        return receive(frames, now)

    agent._engine.receive = spy  # type: ignore[method-assign]
    ping = [encode(Frame(Kind.PING, k), agent._engine.dialect) for k in range(3)]
    with agent._reader._at_work:  # as if another thread were at work
        for _ in range(2000):
            agent.receive(1, ping[1])
        agent.receive(2, ping[2])
        agent.receive(7, ping[2])  # of nobody it knows
    agent.receive(2, ping[2])
    assert read.index(2) <= 16
    assert (read.count(1), read.count(2)) == (512, 2)


def test_frames_that_come_after_the_end_are_dropped() -> None:
    """And whoever brings them is not kept."""
    agent = Agent(places(THREE)[0], weights_of(THREE, 0), NAMES, rounds=2)
    agent.stop()
    agent.stop()  # once more does no harm
    frame = encode(Frame(Kind.PING, 1), agent._engine.dialect)
    bringer = threading.Thread(target=agent.receive, args=(1, frame), daemon=True)
    bringer.start()
    bringer.join(60)
    assert not bringer.is_alive()


def test_an_idle_agent_sleeps() -> None:
    """Nothing is pending: the timer waits for ever."""
    with in_memory(THREE, rounds=2) as agents:
        decide(agents, np.ones((1, 3)), ["x"])
        for agent in agents:
            with agent._lock:  # its timer may be at work
                agent._engine.tick(agent._engine.account.begun + 1e6)
                assert agent._engine.wake == np.inf


def test_an_agent_without_a_model_says_so() -> None:
    agent = Agent(places(THREE)[0], weights_of(THREE, 0), NAMES, rounds=2)
    with pytest.raises(LiveError, match="agent-0 has no model: send it scores"):
        agent.score(np.zeros((1, 2)))
    assert agent.why_not_ready() == "waiting for agent-1, agent-2"
    agent.explain(1, "certificate refused")
    agent.explain(None, "another peer was refused")
    status = agent.status()
    assert (status.neighbours[0].state, status.neighbours[0].reason) == ("refused", "certificate refused")
    assert status.refused_peers == {"another peer was refused": 1}


def test_the_timer_survives_what_the_engine_cannot_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, nothing overdue would be noticed any more."""
    with in_memory(THREE, rounds=2, deadlines=Deadlines(longest=2.0, least=0.1, view=0.2)) as agents:
        tick, failures = agents[0]._engine.tick, iter([RuntimeError("a mistake in the engine")])

        def once(now: float) -> object:
            for failure in failures:
                raise failure
            return tick(now)

        monkeypatch.setattr(agents[0]._engine, "tick", once)
        # Only the others' timers bring in items without their view, and only this one's its own.
        assert agents[1].submit(["x"], np.ones(1)).result(60)[0].evidence.views == 1
        assert agents[0].submit(["y"], np.ones(1)).result(60)[0].evidence.views == 1


def test_items_submitted_while_others_are_under_way_go_along_with_them() -> None:
    """No frame leaves at once; the timer sends one for both when nothing else does."""
    sent, frames = threading.Event(), []

    class Carrier(Transport):
        def open(self, receive: object, presence: object) -> None: ...
        def close(self) -> None: ...
        def send(self, number: int, frame: bytes) -> None: ...
        def broadcast(self, frame: bytes) -> None:
            frames.append(frame)
            sent.set()

    hours = Deadlines(longest=3600.0, least=3600.0, view=30_000.0, item=30_000.0)  # the timer has nothing else to do
    agent = Agent(places(THREE)[0], weights_of(THREE, 0), NAMES, rounds=4, deadlines=hours)
    agent.start(Carrier())
    try:
        for number in (1, 2):
            agent.presence(number, True)
        agent._reader.held_until = time.monotonic() + 3600
        agent.submit([0], np.zeros(1))
        assert len(frames) == 1  # the agent was idle
        agent.submit([1], np.zeros(1))
        agent.submit([2], np.zeros(1))
        assert len(frames) == 1
        sent.clear()
        agent._reader.held_until = 0.0
        agent._alarm.at(0.0)
        assert sent.wait(60)
        assert len(frames) == 2
    finally:
        agent.stop()
