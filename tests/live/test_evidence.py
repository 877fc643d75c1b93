"""Answers say whose views are in them, and are settled only if all are that can be."""

from __future__ import annotations

import numpy as np
import pytest

from collegium import policy, protocol, topology
from collegium.live.engine import Engine
from collegium.live.evidence import Sets
from collegium.live.peers import Deadlines
from collegium.live.wire import Frame, Kind, Run, encode
from live_networks import places, weights_of
from virtual_network import VirtualNetwork, outcome

DEADLINES = Deadlines(longest=2.0, least=0.25, view=1.0, item=15.0)
NINE = policy.uniform(topology.grid(3, 3))


def test_an_item_given_to_one_agent_only_is_not_settled() -> None:
    net = VirtualNetwork(NINE, rounds=8, deadlines=DEADLINES)
    ticket = net.submit(4, ["x"], [2.0])
    net.rest()
    (only,) = outcome(ticket)
    assert (only.settled, only.missed, only.label) == (
        False,
        [],
        1,
    )  # all messages came, and agreed; but seven had no view
    assert (only.evidence.views, only.evidence.agents) == (1, 9)
    assert only.evidence.missing == [f"agent-{k}" for k in range(9) if k != 4]
    far = net.result(0, "x")
    assert far is not None
    assert (far.evidence.views, far.settled, far.view) == (1, False, "missing")
    assert net.status(4).items.incomplete == 1
    net.decide(np.full((1, 9), 2.0), ["y"])
    for k in range(9):
        full = net.result(k, "y")
        assert full is not None
        assert (full.settled, full.evidence.views, full.evidence.missing) == (True, 9, [])
    assert net.status(4).items.incomplete == 1


def test_inside_a_half_that_is_cut_off_nobody_claims_the_other_half() -> None:
    """Also those away from the border, whose neighbours all answered."""
    over = policy.uniform(topology.ring(10))
    net = VirtualNetwork(over, lambda a, b, _: None if (a < 5) != (b < 5) else 0.001, rounds=20, deadlines=DEADLINES)
    tickets = [net.submit(k, ["x"], [1.0]) for k in range(10)]
    net.until(lambda: not any(ticket.open for ticket in tickets))
    for k, ticket in enumerate(tickets):
        (one,) = outcome(ticket)
        half = range(5) if k < 5 else range(5, 10)
        assert one.evidence.missing == [f"agent-{l}" for l in range(10) if l not in half]
        assert (one.evidence.views, one.settled) == (5, False)
    assert outcome(tickets[2])[0].missed == []  # which used to be all it said


def test_views_go_where_links_go() -> None:
    """Around a directed ring, in two rounds: the views of the two agents before."""
    ring = policy.uniform(topology.Graph.from_links(5, [0, 1, 2, 3, 4], [1, 2, 3, 4, 0]))
    net = VirtualNetwork(ring, rounds=2, reachable=3, deadlines=DEADLINES)
    net.decide(np.ones((1, 5)), ["x"])
    for k in range(5):
        one = net.result(k, "x")
        assert one is not None
        assert (one.evidence.views, one.evidence.agents, one.evidence.missing, one.settled) == (3, 3, [], True)
    tickets = [net.submit(k, ["y"], [1.0]) for k in (0, 1)]
    net.rest()
    assert [net.result(k, "y").evidence.views for k in range(5)] == [1, 2, 2, 1, 0]  # type: ignore[union-attr]
    assert not any(outcome(ticket)[0].settled for ticket in tickets)


def test_too_few_rounds_to_reach_everybody_count_those_that_can_be_reached() -> None:
    over, rounds = policy.uniform(topology.ring(9)), 2
    net = VirtualNetwork(over, rounds=rounds, reachable=5)
    net.decide(np.ones((1, 9)), ["x"])
    one = net.result(0, "x")
    assert one is not None
    assert (one.evidence.views, one.evidence.agents, one.evidence.missing, one.settled) == (5, 5, [], True)
    net = VirtualNetwork(over, rounds=rounds, reachable=5, deadlines=DEADLINES)
    tickets = [net.submit(k, ["y"], [1.0]) for k in range(9) if k != 8]
    net.rest()
    (one,) = outcome(tickets[0])
    assert (one.evidence.views, one.settled) == (4, False)


@pytest.mark.parametrize("rule", [protocol.DeGroot(), protocol.SocialLearning(), protocol.DeltaTrigger(0.2)], ids=str)
def test_evidence_grows_by_a_hop_a_round(rule: protocol.Rule) -> None:
    over = policy.uniform(topology.ring(9))
    for rounds in range(1, 5):
        net = VirtualNetwork(over, rule=rule, rounds=rounds)
        net.decide(np.array([[0.9, 0.1, 0.5, 0.7, 0.3, 0.8, 0.2, 0.6, 0.4]]) / 10, ["x"])
        views = [net.result(k, "x").evidence.views for k in range(9)]  # type: ignore[union-attr]
        if isinstance(rule, protocol.DeltaTrigger):  # who keeps silent passes nothing on
            assert max(views) <= 1 + 2 * rounds
        else:
            assert views == [1 + 2 * rounds] * 9


def test_a_message_may_claim_no_agents_beyond_the_network() -> None:
    net = VirtualNetwork(NINE, rounds=3)
    claim = Frame(Kind.ROUND, 1, [Run(0, 1, 1, True)], np.array([5], np.uint64), [1 << 9], values=np.ones((1, 1)))
    net.say(1, 0, claim)
    assert net.neighbour(0, 1).rejected_frames == 1
    assert "beyond the network's 9" in net.neighbour(0, 1).reason


def test_label_agreement_counts_besides() -> None:
    """Everybody's view is in it, but the labels are not of one mind after one round: not settled."""
    net = VirtualNetwork(policy.uniform(topology.complete(3)), rounds=1)
    net.decide(np.array([[5.0, -1.0, -1.0]]), ["x"])
    one = net.result(0, "x")
    assert one is not None
    assert (one.evidence.views, one.settled) == (3, False)


def test_sets_beyond_their_room_count_as_empty_and_room_is_made_again() -> None:
    sets = Sets()
    indices = [sets.index(members) for members in range(1, 5000)]
    assert len(set(indices[:4095])) == 4095
    assert indices[4095:] == [0] * (4999 - 4095)  # understated, never overstated
    assert sets.is_crowded
    kept = np.array(indices[:10], np.uint16)
    sets.forget([kept])
    assert not sets.is_crowded
    assert [sets.members[index] for index in kept] == list(range(1, 11))
    assert sets.members[sets.index(1 << 20)] == 1 << 20
    assert sets.members[sets.union((int(kept[0]), int(kept[1])))] == 1 | 2


def test_an_engine_forgets_sets_that_nobody_uses() -> None:
    """A neighbour that claims another set with every message uses up no room for good."""
    over = policy.uniform(topology.complete(20))
    engine = Engine(places(over)[0], weights_of(over, 0), [f"agent-{k}" for k in range(20)], rounds=2)
    engine.presence(1, True, 0.0)
    for i in range(6000):
        frame = Frame(Kind.ROUND, 1, [Run(i, 1, 1, True)], np.array([i % 50], np.uint64), [i], values=np.ones((1, 1)))
        engine.receive([(1, encode(frame, engine.dialect))], 0.001 * i)
        if i % 100 == 0:
            engine.tick(0.001 * i)
    assert len(engine.progress.sets.members) <= 4096
