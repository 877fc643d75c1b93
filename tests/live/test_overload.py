"""More items than an agent can take: they wait, in turn or until a neighbour begins them, and no view is missing."""

from __future__ import annotations

import numpy as np
import pytest

from collegium import policy, topology
from collegium.live.account import Account
from collegium.live.answers import Busy
from collegium.live.engine import Limits
from collegium.live.peers import Deadlines
from collegium.live.waiters import Ticket
from collegium.network import collaborate
from virtual_network import VirtualNetwork, outcome

THREE = policy.uniform(topology.complete(3))
DEADLINES = Deadlines(longest=2.0, least=0.25, view=1.0, item=15.0)
SCORES = np.random.default_rng(0).normal(size=(200, 3))


def persistently(net: VirtualNetwork, k: int, names: list[int]) -> list[Ticket]:
    """Submit items as a client does that is told when to come again; the list is filled when it is accepted."""
    accepted: list[Ticket] = []

    def attempt() -> None:
        try:
            accepted.append(net.submit(k, names, SCORES[names, k]))
        except Busy as busy:
            net.at(net.now + busy.retry_after, attempt)

    attempt()
    return accepted


def test_a_batch_larger_than_what_may_be_pending_waits_its_turn() -> None:
    net = VirtualNetwork(THREE, rounds=4, limits=Limits(pending=10), deadlines=DEADLINES)
    net.has_timers = False
    names = list(range(45))
    first = net.submit(0, names, SCORES[:45, 0])
    assert (net.status(0).items.pending, net.status(0).items.waiting) == (10, 35)
    tickets = [first, *[net.submit(k, names, SCORES[:45, k]) for k in (1, 2)]]
    net.until(lambda: not any(ticket.open for ticket in tickets))
    live = np.array([[one.trace for one in outcome(ticket)] for ticket in tickets]).transpose(2, 1, 0)
    np.testing.assert_array_equal(live, collaborate(SCORES[:45], THREE, 4).statistics)
    assert net.status(0).items.waiting == 0


def test_what_waits_is_begun_when_a_neighbour_begins_it() -> None:
    """Whatever the order at each agent; or all of them would wait for each other's views."""
    net = VirtualNetwork(THREE, rounds=4, limits=Limits(pending=5), deadlines=DEADLINES)
    net.has_timers = False
    orders = [list(range(25)), list(range(24, -1, -1)), [*range(12, 25), *range(12)]]
    tickets = [net.submit(k, order, SCORES[order, k]) for k, order in enumerate(orders)]
    net.until(lambda: not any(ticket.open for ticket in tickets))
    for k, order in enumerate(orders):
        assert [one.id for one in outcome(tickets[k])] == order
        assert {(one.view, one.evidence.views, *one.missed) for one in outcome(tickets[k])} == {("given", 3)}


def test_an_item_in_the_backlog_may_be_asked_for_twice() -> None:
    net = VirtualNetwork(THREE, rounds=2, limits=Limits(pending=1), deadlines=DEADLINES)
    tickets = [net.submit(0, [0, 1, 2], [1.0, 2.0, 3.0]), net.submit(0, [2, 1], [3.0, 2.0])]
    tickets += [net.submit(k, [0, 1, 2], [1.0, 2.0, 3.0]) for k in (1, 2)]
    net.until(lambda: not any(ticket.open for ticket in tickets))
    assert [one.statistic for one in outcome(tickets[1])] == [pytest.approx(3.0), pytest.approx(2.0)]
    assert net.status(0).items.done == 3


def test_beyond_the_backlog_items_are_refused_with_a_time_to_come_again() -> None:
    net = VirtualNetwork(THREE, rounds=4, limits=Limits(pending=10), deadlines=DEADLINES)
    first = net.submit(0, list(range(50)), SCORES[:50, 0])
    with pytest.raises(Busy, match="retry in") as refusal:
        net.submit(0, [98, 99], [1.0, 1.0])
    assert 0 < refusal.value.retry_after <= DEADLINES.view / 2  # before others take part without its view
    items = net.status(0).items
    assert (items.refused, items.waiting, items.most) == (2, 40, 10)
    assert any("overloaded: 10 items are pending and 40 wait" in text for _, text in net.log)
    net.run(0.5)
    for k in (1, 2):
        persistently(net, k, list(range(50)))
    net.until(lambda: not first.open)
    assert len(outcome(first)) == 50
    net.run(2.0)
    last = net.submit(0, [99], [1.0])  # there is room again
    assert sum("overloaded" in text for k, text in net.log if k == 0) == 2  # it began, and it ended
    assert any("no longer overloaded; 2 items were refused so far" in text for _, text in net.log)
    assert net.status(0).overloaded_s == pytest.approx(0.5, abs=0.05)  # until the others came
    net.rest()
    assert not last.open


def test_no_view_is_missing_when_one_agent_refuses_and_is_asked_again() -> None:
    """It used to accept the retry after others had gone on without it."""
    net = VirtualNetwork(THREE, rounds=4, own={0: {"limits": Limits(pending=2)}}, deadlines=DEADLINES)
    tickets = [persistently(net, k, list(range(start, start + 5))) for start in range(0, 60, 5) for k in (1, 2, 0)]
    assert net.status(0).items.refused > 0
    net.until(lambda: all(accepted and not accepted[0].open for accepted in tickets))
    answers = [one for (ticket,) in tickets for one in outcome(ticket)]
    assert len(answers) == 180
    assert {(one.view, one.evidence.views, *one.missed) for one in answers} == {("given", 3)}


def test_an_overloaded_agent_waits_longer_for_views() -> None:
    """Those who send them are told to retry, which takes them longer than `Deadlines.view`."""
    net = VirtualNetwork(THREE, rounds=4, own={0: {"limits": Limits(pending=1)}}, deadlines=DEADLINES)
    net.submit(0, [100, 101, 102], [1.0, 1.0, 1.0])
    theirs = [net.submit(k, ["x"], [1.0]) for k in (1, 2)]
    net.run(1.5 * DEADLINES.view)
    own = net.submit(0, ["x"], [1.0])
    net.until(lambda: not any(ticket.open for ticket in (own, *theirs)))
    assert [(one.view, one.evidence.views, one.missed) for t in (own, *theirs) for one in outcome(t)] == [
        ("given", 3, [])
    ] * 3


def test_what_neighbours_have_begun_is_taken_also_from_a_request_that_is_refused() -> None:
    net = VirtualNetwork(THREE, rounds=4, own={0: {"limits": Limits(pending=1)}}, deadlines=DEADLINES)
    net.has_timers = False
    theirs = [net.submit(k, [0, 1, 2], SCORES[:3, k]) for k in (1, 2)]
    net.run(0.01)
    with pytest.raises(Busy):
        net.submit(0, list(range(20)), SCORES[:20, 0])
    net.run(0.01)
    assert [(one.evidence.views, one.missed) for ticket in theirs for one in outcome(ticket)] == [(3, [])] * 6


def test_overload_is_over_after_a_lull() -> None:
    account = Account(0.0)
    assert account.overloaded(10.0)
    assert not account.overloaded(10.5)
    assert not account.not_overloaded(11.0)
    assert account.not_overloaded(12.0)
    assert not account.not_overloaded(13.0)
    assert account.overload_seconds == pytest.approx(0.5)
    assert account.overloaded(14.0)


def test_ten_classes_have_room_for_a_thousand_items() -> None:
    """Rows are about ten times as wide as for two classes: a batch of the usual size must not have to wait."""
    net = VirtualNetwork(policy.uniform(topology.grid(3, 3)), rounds=20, classes=tuple("abcdefghij"), limits=Limits())
    assert min(engine.most for engine in net.engines) >= 1000
