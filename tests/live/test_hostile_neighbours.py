"""One neighbour with a valid certificate that does its worst: it is named and left out, and others are unharmed."""

from __future__ import annotations

import numpy as np
import pytest

from collegium import policy, topology
from collegium.errors import ScoreError
from collegium.live.engine import Limits
from collegium.live.naming import identities
from collegium.live.peers import Deadlines
from collegium.live.wire import Frame, Kind, Run, about, encode
from collegium.network import collaborate
from virtual_network import VirtualNetwork, outcome

THREE = policy.uniform(topology.complete(3))
RING = policy.uniform(topology.ring(5))
DEADLINES = Deadlines(longest=2.0, least=0.25, view=1.0, item=15.0)
ROWS = Limits(memory=1, pending=32)
"""Of memory that is too small for anything there are 64 rows."""


def message(sender: int, ids: list[int] | np.ndarray, t: int, value: float = 1.0, agents: int | None = None) -> Frame:
    """Messages about items, as an agent sends them."""
    numbers = np.asarray(ids, np.uint64)
    sets = [1 << sender if agents is None else agents]
    values = np.full((len(numbers), 1), value)
    return Frame(Kind.ROUND, sender, [Run(t, len(numbers), t, True)], numbers, sets, values=values)


def announced(sender: int, ids: list[int] | np.ndarray) -> Frame:
    numbers = np.asarray(ids, np.uint64)
    return about(Kind.ANNOUNCE, sender, numbers, np.ones(len(numbers), np.int32))


@pytest.mark.parametrize("form", [message, announced], ids=["messages", "announcements"])
def test_invented_items_are_bounded_and_their_sender_is_named(form: object) -> None:
    """Agent 0 invents 20 000 items a second. It is left out; its neighbour, who passes some on, is not."""
    net = VirtualNetwork(RING, rounds=2, deadlines=DEADLINES, limits=Limits(memory=1 << 20, from_zero=200.0))
    net.decide(np.ones((1, 5)), ["warm"])
    honest = []
    for burst in range(60):
        invented = np.arange(1000, dtype=np.uint64) + np.uint64(10**6 + 1000 * burst)
        frame = message(0, invented, 1) if form is message else announced(0, invented)
        net.say(0, 1, frame)
        if burst % 5 == 0:
            honest.append([net.submit(k, [burst], [1.0]) for k in range(5)])
        net.run(0.05)
    net.run(5.0)
    assert net.neighbour(1, 0).state == "over-budget"
    assert net.neighbour(1, 0).over_budget > 1000
    assert any(k == 1 and "agent-0 sends far more than it may: left out for 10 s" in text for k, text in net.log)
    assert [text for _, text in net.log if ": agent-1 " in text and "is connected" not in text] == []
    assert net.neighbour(2, 1).state == "up"
    assert (
        max(net.status(k).items.done for k in range(5)) < 3 * 2 * 200
    )  # of 60 000: two seconds' worth at once, thrice
    for tickets in honest:
        for k, ticket in enumerate(tickets):
            (one,) = outcome(ticket)
            assert one.label == 1
            assert set(one.missed) <= ({"agent-0"} if k == 1 else {"agent-1"} if k == 0 else set())
    net.run(20.0)
    assert net.neighbour(1, 0).state in ("up", "late")  # it is forgiven, once
    net.decide(np.ones((1, 5)), ["after"])
    assert [net.result(k, "after").missed for k in range(5)] == [[]] * 5  # type: ignore[union-attr]


@pytest.mark.parametrize(("rate", "burst"), [(20.0, 40), (200.0, 150), (2000.0, 1500)])
def test_items_without_views_have_a_budget_also_where_there_is_room(rate: float, burst: int) -> None:
    """And only whoever invents them is left out: others pass on no more of them than they may."""
    net = VirtualNetwork(RING, rounds=2, deadlines=DEADLINES, limits=Limits(from_zero=rate))
    for i in range(100):  # every 50 ms
        net.say(0, 1, announced(0, np.arange(burst, dtype=np.uint64) + np.uint64(10**6 + burst * i)))
        net.run(0.05)
    left_out = [text for _, text in net.log if "far more than it may" in text]
    assert left_out == ["agent-1: agent-0 sends far more than it may: left out for 10 s"]
    assert net.neighbour(1, 0).state == "over-budget"
    assert max(net.status(k).items.done for k in range(5)) < 10 * rate


def test_a_burst_of_pings_is_not_answered_and_delays_nobody() -> None:
    net = VirtualNetwork(THREE, rounds=3, deadlines=DEADLINES)
    engine = net.engines[0]
    ping = encode(Frame(Kind.PING, 2), engine.dialect)
    effects = engine.receive([(2, ping)] * 100_000, net.now)
    assert len(effects.frames) <= 400
    assert any("agent-2 sends far more than it may" in text for _, text in effects.log)
    assert net.neighbour(0, 2).state == "over-budget"
    assert net.neighbour(0, 2).over_budget > 90_000
    tickets = [net.submit(k, ["x"], [1.0]) for k in (0, 1, 2)]
    assert net.until(lambda: not any(ticket.open for ticket in tickets[:1])) < 0.1
    assert outcome(tickets[0])[0].missed == ["agent-2"]


def test_a_few_questions_are_within_everybodys_budget() -> None:
    net = VirtualNetwork(THREE, rounds=3, deadlines=DEADLINES)
    for _ in range(300):
        net.say(2, 0, Frame(Kind.PING, 2))
        net.run(0.01)
    assert net.frames["PONG"] == 300
    assert net.neighbour(0, 2).over_budget == 0


@pytest.mark.parametrize("claim", [0b100, 0b111], ids=["own view", "everybody's"])
def test_messages_ahead_of_the_views_do_not_poison_a_name(claim: int) -> None:
    """Four seconds before the views of a guessable name, somebody sends messages of all rounds about it."""
    net = VirtualNetwork(THREE, rounds=3, deadlines=DEADLINES, bounds=dict.fromkeys(range(3), 10.0))
    x = int(identities(["x"])[0])
    for receiver in (0, 1):
        for t in (1, 2, 3):
            net.say(2, receiver, message(2, [x], t, -9.0, claim))
    net.run(4.0)
    assert net.result(0, "x").label == -1  # type: ignore[union-attr]
    scores = np.array([[1.0, 0.5, 0.75]])
    tickets = [net.submit(k, ["x"], scores[:, k]) for k in range(3)]
    net.rest()
    expected = collaborate(scores, THREE, 3).statistics[-1, 0]
    for k, ticket in enumerate(tickets):
        (one,) = outcome(ticket)
        assert (one.label, one.evidence.views, one.missed) == (1, 3, [])
        assert one.statistic == pytest.approx(expected[k])  # begun anew, by a view
        assert one.view in ("late", "given")


def test_replays_of_forgotten_items_are_not_decided_again() -> None:
    net = VirtualNetwork(THREE, rounds=2, limits=ROWS, deadlines=DEADLINES)
    kept: list[tuple[int, int, bytes]] = []

    def way(sender: int, receiver: int, data: bytes) -> float:
        kept.append((sender, receiver, data))
        return 0.001

    net.way = way
    net.decide(np.ones((1, 3)), ["x"])
    replays, kept = list(kept), []
    for start in range(0, 96, 32):
        net.decide(np.zeros((32, 3)), list(range(start, start + 32)))
    net.rest()
    assert not net.has(0, "x")
    before = [net.status(k).items.done for k in range(3)]
    for sender, receiver, data in replays:
        net.say(sender, receiver, data)
    for kind in (Kind.RESEND, Kind.ANNOUNCE):
        net.say(1, 0, about(kind, 1, identities(["x"]), np.array([2], np.int32)))
    net.rest()
    assert [net.status(k).items.done for k in range(3)] == before
    assert [net.status(k).items.pending for k in range(3)] == [0, 0, 0]
    net.decide(np.ones((1, 3)), ["x"])  # but with views it may run once more


def test_neighbours_never_take_all_the_room() -> None:
    net = VirtualNetwork(THREE, lambda *_: None, rounds=2, limits=Limits(memory=1, pending=20), deadlines=DEADLINES)
    net.say(1, 0, announced(1, np.arange(1000, 1200)))
    assert net.status(0).items.pending == 32  # half of the rows, however many there are
    net.say(2, 0, announced(2, np.arange(2000, 2200)))
    assert net.status(0).items.pending == 44  # and some are left for what is submitted here
    assert net.status(0).items.no_room == 400 - 44
    net.submit(0, list(range(20)), np.zeros(20))
    assert net.status(0).items.waiting == 0


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────

BOUNDS = {"bound": 3.0, "bounds": {0: 3.0, 1: 3.0, 2: 2.0}, "largest": 5.0}


@pytest.mark.parametrize("value", [1e300, -1e300, np.inf, np.nan, 5.1, 2.1, -2.1])
def test_a_first_message_beyond_its_senders_bound_is_refused(value: float) -> None:
    net = VirtualNetwork(THREE, rounds=3, deadlines=DEADLINES, **BOUNDS)
    net.way = lambda sender, receiver, data: None if sender == 2 else 0.001
    tickets = [net.submit(k, [7], [1.0]) for k in (0, 1)]
    for receiver in (0, 1):
        net.say(2, receiver, message(2, [7], 1, value))
    assert net.neighbour(0, 2).rejected_frames == 1
    assert "beyond what it may be (2)" in net.neighbour(0, 2).reason
    net.until(lambda: not any(ticket.open for ticket in tickets))
    assert [(one.statistic, one.missed) for ticket in tickets for one in outcome(ticket)] == [(1.0, ["agent-2"])] * 2


def test_later_messages_may_have_what_anybody_may_have_and_no_more() -> None:
    net = VirtualNetwork(THREE, lambda *_: None, rounds=3, deadlines=DEADLINES, **BOUNDS)
    net.submit(0, [7], [1.0])
    for sender, t, value, is_refused in ((2, 1, 2.0, False), (1, 1, 3.0, False), (2, 2, 5.0, False), (1, 2, 5.1, True)):
        net.say(sender, 0, message(sender, [7], t, value))
        assert net.neighbour(0, sender).rejected_frames == is_refused
    several = message(1, [7, 8], 2, 4.0)
    values = several.values.copy()
    values[1] = 1e300
    net.say(1, 0, several._replace(values=values))  # one bad value and none of the frame is believed
    assert net.neighbour(0, 1).rejected_frames == 2
    assert not net.has(0, 8)


def test_own_scores_have_the_same_bound() -> None:
    net = VirtualNetwork(THREE, rounds=3, **BOUNDS)
    with pytest.raises(ScoreError, match="takes finite ones up to 3, which its neighbours know as its bound"):
        net.submit(0, ["x"], [3.1])
    assert not net.has(0, "x")
