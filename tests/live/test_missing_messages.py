"""Messages that do not come: who is asked, how often, and when rounds go on without a neighbour."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from collegium import policy, topology
from collegium.live.naming import Handles
from collegium.live.peers import Budget, Deadlines, Neighbour, State
from collegium.live.table import TransitionError
from collegium.live.transport.base import Peer
from collegium.live.wire import Kind
from collegium.network import collaborate
from virtual_network import VirtualNetwork, Way, is_message, outcome

THREE = policy.uniform(topology.complete(3))
DEADLINES = Deadlines(longest=2.0, least=0.25, view=1.0, item=15.0)
PATIENCE = DEADLINES.longest + DEADLINES.view


def mute(who: int, kinds: tuple[Kind, ...] = (Kind.ROUND,)) -> Way:
    """An agent whose frames of these kinds are lost, answers and pings are not."""
    return lambda sender, receiver, data: None if sender == who and data[1] in kinds else 0.001


def silent(who: int) -> Way:
    return mute(who, tuple(Kind))


def neighbour(deadlines: Deadlines) -> Neighbour:
    peer, endless = Peer(1, "agent-1", ""), Budget(math.inf, math.inf)
    return Neighbour(peer, 0, True, deadlines, math.inf, Handles(64), endless, endless)


@pytest.mark.parametrize(("least", "enough"), [(0.1, 1.75), (0.5, 1.5), (1.5, 1.0), (2.0, 1.0)])
def test_one_whose_pace_is_not_known_is_silent_after_the_longest_wait(least: float, enough: float) -> None:
    """Counted from our own message; or after half of it from the first question on, if that comes late."""
    one = neighbour(Deadlines(longest=2.0, least=least, view=1.0))
    assert not one.has_gone_silent(100.0)
    one.asked_at = 100.0
    assert not one.has_gone_silent(100.0 + enough - 0.01)
    assert one.has_gone_silent(100.0 + enough + 0.01)


def test_states_of_neighbours_have_named_transitions() -> None:
    one = neighbour(DEADLINES)
    with pytest.raises(TransitionError, match="agent-1 cannot become mute from down"):
        one.become(State.MUTE)
    one.connected()
    one.leave_out(State.OVER_BUDGET, "sends far more than it may", 5.0)
    assert one.until == 15.0
    with pytest.raises(TransitionError):
        one.become(State.SILENT)
    one.disconnected()
    assert (one.state, one.is_present, one.is_left_out) == (State.AWAY, False, True)


def test_what_went_wrong_is_forgotten_in_time() -> None:
    """Not only by messages: where few items come, one bad moment would cost a neighbour its credit for days."""
    one = neighbour(DEADLINES)
    one.connected()
    for now in (1000.0, 1001.0):
        one.strike(now)
    waits = [one.patient_until(now) - now for now in (1002.0, 1002.0 + 600.0, 1002.0 + 1200.0)]
    assert waits == [PATIENCE / 4, PATIENCE / 2, PATIENCE]
    one.strike(2202.0)
    assert one.patient_until(2203.0) - 2203.0 == PATIENCE / 2


# ── mute but alive ────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_that_answers_but_sends_no_messages_delays_one_item_and_no_more() -> None:
    net = VirtualNetwork(THREE, rounds=20, deadlines=DEADLINES)
    net.decide(np.ones((1, 3)), ["warm"])
    net.way = mute(2)
    begun = net.now
    first = [net.submit(k, ["x"], [1.0]) for k in range(3)]
    net.until(lambda: not first[0].open and not first[1].open)
    assert net.now - begun <= 2 * PATIENCE + 0.5  # not once in every round
    assert [outcome(ticket)[0].missed for ticket in first[:2]] == [["agent-2"]] * 2
    assert net.neighbour(0, 2).state == "mute"
    assert "answers, but has sent no message for" in net.neighbour(0, 2).reason
    assert any(k == 0 and "agent-2 answers, but has sent no message" in text for k, text in net.log)
    begun = net.now
    for name in range(5):
        tickets = [net.submit(k, [name], [1.0]) for k in range(3)]
        net.until(lambda tickets=tickets: not tickets[0].open and not tickets[1].open)
    assert net.now - begun < 0.5  # known by now: nobody waits
    net.way = lambda *_: 0.001
    tickets = [net.submit(k, ["back"], [1.0]) for k in (2, 0, 1)]  # its first message is there before ours is sent
    net.until(lambda: not any(ticket.open for ticket in tickets))
    assert net.neighbour(0, 2).state in ("up", "late")
    net.decide(np.ones((1, 3)), ["after"])
    assert [net.result(k, "after").missed for k in range(3)] == [[], [], []]  # type: ignore[union-attr]


def test_one_that_is_mute_again_and_again_is_waited_for_less_each_time() -> None:
    net = VirtualNetwork(THREE, rounds=3, deadlines=DEADLINES)
    waits = []
    for turn in range(4):
        net.way = lambda *_: 0.001
        net.submit(2, [f"back {turn}"], [1.0])
        net.run(0.01)
        net.decide(np.ones((1, 3)), [f"fine {turn}"])
        assert net.neighbour(0, 2).state in ("up", "late")
        net.way = mute(2)
        begun = net.now
        tickets = [net.submit(k, [f"mute {turn}"], [1.0]) for k in (0, 1, 2)]
        net.until(lambda tickets=tickets: not tickets[0].open)  # type: ignore[misc]
        waits.append(net.now - begun)
        net.rest()
    assert all(later < earlier for earlier, later in pairwise(waits)), waits
    assert waits[3] < waits[0] / 4


def test_one_that_is_mute_on_some_items_delays_those_alone() -> None:
    """Its other messages come, so it is not left out; the items it says nothing about go on without it."""
    net = VirtualNetwork(THREE, rounds=4, deadlines=DEADLINES)

    def way(sender: int, receiver: int, data: bytes) -> float | None:
        is_about_99 = is_message(data) and (99).to_bytes(8, "little") in data
        return None if sender == 2 and is_about_99 else 0.001

    net.way = way
    stuck = [net.submit(k, [99], [1.0]) for k in (0, 1)]
    net.run(0.01)
    for name in range(30):
        tickets = [net.submit(k, [name], [1.0]) for k in range(3)]
        net.until(lambda tickets=tickets: not any(ticket.open for ticket in tickets), 0.2)  # type: ignore[misc]
        assert all(outcome(ticket)[0].missed == [] for ticket in tickets)
        net.run(0.5)
    assert net.neighbour(0, 2).state == "late"
    assert [outcome(ticket)[0].missed for ticket in stuck] == [["agent-2"]] * 2
    assert outcome(stuck[0])[0].latency_ms <= 1e3 * (2 * PATIENCE + 0.5)


def test_an_item_has_a_deadline() -> None:
    """However its neighbours delay it: here one message of each round comes just before it would be given up."""
    deadlines = Deadlines(longest=2.0, least=0.25, view=1.0, item=5.0)
    net = VirtualNetwork(
        THREE,
        lambda sender, _, data: 1.5 if sender == 2 and is_message(data) else 0.001,
        rounds=20,
        deadlines=deadlines,
    )
    tickets = [net.submit(k, ["x"], [1.0 + k]) for k in range(3)]
    assert net.until(lambda: not any(ticket.open for ticket in tickets)) == pytest.approx(5.0, abs=0.3)
    (first,) = outcome(tickets[0])
    assert 1 <= first.rounds < 20
    assert not first.settled
    assert first.missed == ["agent-2"]
    assert first.statistic == pytest.approx(2.0)
    assert first.trace is not None
    assert first.trace[first.rounds + 1 :] == [None] * (20 - first.rounds)
    assert net.status(0).items.past_deadline == 1
    assert any(k == 0 and "1 items were decided at their deadline" in text for k, text in net.log)


# ── silent ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_silent_from_the_first_is_left_out_before_others_give_up_on_those_who_wait_for_it() -> None:
    net = VirtualNetwork(policy.uniform(topology.ring(6)), silent(0), rounds=5, deadlines=DEADLINES)
    tickets = [net.submit(k, ["x"], [1.0]) for k in range(1, 6)]
    assert net.until(lambda: not any(ticket.open for ticket in tickets)) < DEADLINES.longest + DEADLINES.view
    assert [outcome(ticket)[0].missed for ticket in tickets] == [["agent-0"], [], [], [], ["agent-0"]]


def test_only_those_next_to_a_silent_one_do_without_it() -> None:
    """Whoever waits for somebody who waits for it is patient enough."""
    net = VirtualNetwork(policy.uniform(topology.ring(7)), rounds=10, deadlines=DEADLINES)
    net.decide(np.ones((1, 7)), ["warm"])
    net.way = silent(0)
    tickets = [net.submit(k, ["x", "y"], [1.0, 1.0]) for k in range(1, 7)]
    net.until(lambda: not any(ticket.open for ticket in tickets))
    assert [outcome(ticket)[0].missed for ticket in tickets] == [["agent-0"], [], [], [], [], ["agent-0"]]


def test_one_that_stops_answering_is_left_out_once_and_heard_again() -> None:
    """A stopped process keeps its token: only unanswered questions tell."""
    deadlines = Deadlines(longest=30.0, least=0.25, view=30.0, item=100.0)
    net = VirtualNetwork(THREE, rounds=4, deadlines=deadlines)
    net.submit(0, ["warm"], [1.0])
    net.submit(1, ["warm"], [1.0])
    net.run(9.0)  # it is asked, and says that its view is not there yet: how quickly it answers is known from that
    net.submit(2, ["warm"], [1.0])
    net.rest()
    net.way = silent(2)
    tickets = [net.submit(k, ["x"], [1.0]) for k in (0, 1)]
    waited = net.until(lambda: not any(ticket.open for ticket in tickets))
    assert all(outcome(ticket)[0].missed == ["agent-2"] for ticket in tickets)
    assert waited < 11 * deadlines.least  # a few deadlines of one that used to be quick, not the longest
    tickets = [net.submit(k, ["y"], [1.0]) for k in (0, 1)]
    assert net.until(lambda: not any(ticket.open for ticket in tickets)) < 0.01  # known by now: nobody waits
    assert net.neighbour(0, 2).state == "silent"
    assert net.status(0).not_ready_reason == "waiting for agent-2"
    net.way = lambda *_: 0.001
    net.until(lambda: net.neighbour(0, 2).state != "silent")  # it answers a ping
    net.until(lambda: net.neighbour(1, 2).state != "silent")
    net.decide(np.ones((1, 3)), ["z"])
    assert [net.result(k, "z").missed for k in range(3)] == [[], [], []]  # type: ignore[union-attr]
    net.rest()  # and nobody is pinged for ever


def test_a_dead_neighbour_is_named_and_left_out_at_once() -> None:
    net = VirtualNetwork(THREE, rounds=4)
    net.leave(2)
    tickets = [net.submit(k, ["x"], [1.0 - 3.0 * k]) for k in (0, 1)]
    assert net.until(lambda: not any(ticket.open for ticket in tickets)) < 0.02  # it said that it goes: nobody waits
    first, second = outcome(tickets[0])[0], outcome(tickets[1])[0]
    assert first.missed == second.missed == ["agent-2"]
    assert (first.heard, first.view, first.settled) == (["agent-1"], "given", False)
    assert first.trace == pytest.approx([1.0, -0.5, -0.5, -0.5, -0.5])  # the two others' mean: weights scaled up


def test_absent_messages_may_stand_for_the_last_ones() -> None:
    net = VirtualNetwork(THREE, rounds=3, absent="hold")
    tickets = [net.submit(k, ["x"], [3.0 * k]) for k in (1, 2)]
    net.run(0.01)
    net.leave(2)
    tickets.append(net.submit(0, ["x"], [0.0]))
    net.until(lambda: not any(ticket.open for ticket in (tickets[0], tickets[2])))
    # Round 1 has all of 0, 3, 6; then agent 2 keeps its 6.
    (first,) = outcome(tickets[2])
    assert first.trace == pytest.approx([0.0, 3.0, 4.0, 14 / 3])
    assert first.missed == ["agent-2"]
    assert first.evidence.views == 3


# ── questions cost little ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_lost_frame_in_a_large_network_costs_a_few_questions() -> None:
    """It used to set off 13 million questions and 5.8 GB."""
    K, n = 25, 60
    over = policy.uniform(topology.complete(K))
    scores = np.random.default_rng(0).normal(size=(n, K))
    healthy = VirtualNetwork(over, rounds=4, deadlines=DEADLINES)
    expected = healthy.decide(scores)
    lost = []

    def way(sender: int, receiver: int, data: bytes) -> float | None:
        if not lost and sender == 3 and receiver == 4 and is_message(data):
            lost.append(data)
            return None
        return 0.001

    net = VirtualNetwork(over, way, rounds=4, deadlines=DEADLINES)
    np.testing.assert_array_equal(net.decide(scores), expected)
    np.testing.assert_array_equal(expected, collaborate(scores, over, 4).statistics)
    net.rest()
    asked = sum(net.status(k).re_requested for k in range(K))
    assert n <= asked <= 4 * n * K  # agent 4 needs n; the others ask it a few times while they wait for it
    assert net.bytes < 1.5 * healthy.bytes
    assert net.frames["RESEND"] < 8 * K


def test_questions_double_their_distance_while_the_answer_is_not_yet() -> None:
    """Views that come late are no loss: those who wait are asked less and less."""
    deadlines = Deadlines(longest=16.0, least=0.25, view=16.0, item=60.0)
    net = VirtualNetwork(policy.uniform(topology.complete(2)), rounds=2, deadlines=deadlines)
    first = net.submit(0, ["x"], [1.0])
    net.run(15.0)
    assert 3 <= net.frames["RESEND"] <= 10  # at 2, 4, 8 … s, and not sixty times
    net.submit(1, ["x"], [1.0])
    net.until(lambda: not first.open)
    assert outcome(first)[0].missed == []
