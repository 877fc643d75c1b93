"""Cases in which an engine once stalled, spoke for the wrong item, or never forgave; on a virtual clock."""

import numpy as np
import pytest

from collegium.live.engine import Limits
from collegium.live.naming import identities
from collegium.live.table import rerun
from collegium.live.wire import Frame, Kind, Run, decode
from collegium.policy import uniform
from collegium.protocol import DeltaTrigger
from collegium.topology import complete
from virtual_network import VirtualNetwork, outcome


def three(**settings):
    return VirtualNetwork(uniform(complete(3)), **settings)


def messages(ids, t, sender, value=0.5, agents=4, handle=10**6):
    n = len(ids)
    return Frame(Kind.ROUND, sender, [Run(handle, n, t, True)], ids, [agents], None, None, np.full((n, 1), value))


def test_the_last_message_of_an_item_leaves_before_its_row_is_used_again():
    net = VirtualNetwork(
        uniform(complete(2)), lambda *_: None, own={0: {"limits": Limits(memory=1, pending=32)}}, rounds=2
    )
    net.has_timers = False
    sent = []
    net._perform = lambda k, effects: sent.extend(decode(data, net.engines[0].dialect) for _, data in effects.frames)
    first, waiting = [f"y{i}" for i in range(32)], [f"z{i}" for i in range(32)]
    net.submit(0, first, np.ones(32))
    net.say(1, 0, messages(identities([f"x{i}" for i in range(32)]), 1, 1, agents=2, handle=1000))
    net.submit(0, waiting, np.full(32, 7.0))
    assert net.engines[0].table.room() == 0
    assert len(net.engines[0].backlog) == 32
    sent.clear()
    net.say(1, 0, messages(identities(first), 2, 1, agents=3, handle=2000))
    net.say(1, 0, messages(identities(first), 1, 1, agents=2, handle=2000))
    runs = [(run.round, run.items) for frame in sent for run in frame.runs]
    assert runs == [(2, 32), (1, 32)]  # the last round of those decided, then the first of those that waited
    assert all(frame.spoke is None for frame in sent)


@pytest.mark.parametrize("rule", [DeltaTrigger(0.01), None], ids=["silence", "degroot"])
def test_an_item_goes_on_when_one_declined_and_the_last_message_comes_alone(rule):
    net = VirtualNetwork(uniform(complete(4)), rounds=5, **({} if rule is None else {"rule": rule}))
    for score, agent in ((1.0, 0), (-1.0, 3)):
        tickets = [net.submit(agent, [name], [score]) for name in ("a", "b")]
        took = net.until(lambda tickets=tickets: not any(ticket.open for ticket in tickets))
        net.run(10)
    assert took < 3.0
    assert outcome(tickets[0])[0].rounds == 5


def test_whoever_was_over_its_budget_is_heard_again_once_it_behaves():
    net = three()
    for _ in range(3000):
        net.say(2, 0, Frame(Kind.PING, 2))
    offender = net.engines[0].neighbours[2]
    assert offender.state == "over-budget"
    net.run(offender.until - net.now + 1)
    net.say(2, 0, Frame(Kind.PING, 2))
    assert offender.state == "up"


def test_a_clock_that_goes_back_grants_nothing():
    budget = three().engines[0].neighbours[1].questions
    granted = sum(budget.take(400, 1000.0 + back % 2) for back in range(100))
    assert granted < 400 + 100 * 200  # once at the beginning, and a second's worth for every second forward
    assert sum(budget.take(400, 1000.0) for _ in range(100)) == 0


def test_a_batch_of_items_without_views_makes_no_offender():
    net = three(limits=Limits(from_zero=1))
    net.submit(2, [f"i{n}" for n in range(20)], np.ones(20))
    net.run(20)
    assert net.neighbour(0, 2).state == "up"
    assert net.neighbour(0, 2).over_budget > 0


def test_messages_on_its_own_inventions_do_not_excuse_a_mute_neighbour():
    net = three(rounds=20)
    net.way = lambda sender, receiver, data: None if sender == 2 and data[1] == Kind.ROUND else 0.001
    times = []
    for i in range(4):
        tickets = [net.submit(k, [f"i{i}"], [1.0]) for k in range(3)]
        begun = net.now
        while any(ticket.open for ticket in tickets[:2]):
            for receiver in (0, 1):
                net.say(2, receiver, messages(identities([f"invented {net.now}"]), 1, 2, handle=int(net.now * 1000)))
            net.run(0.3)
        times.append(net.now - begun)
    assert times[0] < 7.0
    assert max(times[1:]) < 1.0
    assert net.neighbour(0, 2).state == "mute"


def test_a_frame_that_arrives_after_its_sender_has_left_does_not_bring_it_back():
    net = three()
    net.leave(2)
    net.say(2, 0, Frame(Kind.PONG, 2))
    assert net.neighbour(0, 2).state == "down"
    assert not net.status(0).ready


def test_whoever_speaks_of_the_last_round_first_does_not_shorten_an_item():
    net = three(rounds=20)
    net.say(2, 0, messages(identities(["parcel"]), 20, 2, value=-3.0, agents=7))
    tickets = [net.submit(k, ["parcel"], [1.0]) for k in (1, 2, 0)]
    net.until(lambda: not any(ticket.open for ticket in tickets))
    found = outcome(tickets[2])[0]
    assert found.rounds == 20
    assert found.evidence.views == 3


def test_what_a_neighbour_begins_once_more_counts_against_its_budget():
    net = three(rounds=3, limits=Limits(from_zero=50))
    net.decide(np.ones((500, 3)))
    before = net.status(0).items.done
    net.say(2, 0, messages(rerun(identities(list(range(500)))), 1, 2))
    net.run(30)
    assert net.status(0).items.done - before <= 100  # what its budget allows at once
    assert net.engines[0].table.active == 0


def test_what_was_forgotten_is_not_decided_again_although_its_second_run_is_known():
    net = VirtualNetwork(uniform(complete(2)), rounds=2, limits=Limits(memory=1))
    engine, decided = net.engines[0], []
    tell = engine.progress.on_decided
    engine.progress.on_decided = lambda rows, now: (decided.extend(engine.table.id[rows].tolist()), tell(rows, now))
    item = identities(["x"])
    net.decide(np.ones((1, 2)), names=["x"])
    for cycle in range(2):
        for which in (rerun(item), item):
            for t, agents in ((1, 2), (2, 3)):
                net.say(1, 0, messages(which, t, 1, agents=agents, handle=5000 + cycle))
            net.run(20)
            for i in range(63):
                net.decide(np.ones((1, 2)), names=[f"{cycle} {which[0]} {i}"])
    assert decided.count(int(item[0])) == 1


@pytest.mark.parametrize("kind", [Kind.RESEND, Kind.NOT_YET, Kind.DECLINED, Kind.ANNOUNCE, Kind.ROUND])
def test_a_frame_about_nothing_is_refused(kind):
    net = three()
    net.say(2, 0, Frame(kind, 2, sets=[1]) if kind is Kind.ROUND else Frame(kind, 2))
    assert net.neighbour(0, 2).rejected_frames == 1
