"""POST /v1/items/ID/label: live gains follow the labels that become known, as in the simulation."""

from contextlib import ExitStack

import numpy as np
import pytest

from collegium import policy, topology, tuning
from collegium.errors import LiveError
from collegium.live import Client, launcher
from collegium.live.gain import Gains
from live_networks import in_memory, served
from live_processes import running, status

RING = policy.metropolis(topology.ring(4))


def drifting(n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    return np.array([1.0, 0.9, 0.8, -1.0]) * y[:, None] + rng.normal(size=(n, 4)), y


def one_by_one(clients, x, labels, first=0):
    """Decide each item, then tell all agents its label; the gains after each."""
    gains = []
    for i, label in enumerate(labels, first):
        for k, client in enumerate(clients):
            client.give([i], scores=[x[i, k].tolist()])
        assert all(client.result(i, wait=100) for client in clients)
        gains.append([client.label(i, label).gain for client in clients])
    return gains


@pytest.fixture
def four(tmp_path):
    with in_memory(RING, rounds=6) as agents, ExitStack() as stack:
        for agent in agents:
            agent.gains = Gains(tmp_path / f"{agent.name}.gain.json")
        clients = [stack.enter_context(Client(stack.enter_context(served(agent)).url)) for agent in agents]
        yield agents, clients


@pytest.mark.live
def test_processes_follow_labels_as_the_simulation_does_and_go_on_after_a_restart(tmp_path):
    x, y = drifting()
    net = tmp_path / "net"
    followed = tuning.follow(x, y, RING, 6)
    with running(net, RING, rounds=6) as network, ExitStack() as stack:
        clients = [stack.enter_context(member.client()) for member in network]
        assert np.array_equal(one_by_one(clients, x, y[:20].tolist()), followed.gains[1:21])
        launcher.down(net)
        network = launcher.up(net, wait=120)
        assert [status(member).gain for member in network] == followed.gains[20].tolist()
        clients = [stack.enter_context(member.client()) for member in network]
        assert np.array_equal(one_by_one(clients, x, y[20:].tolist(), first=20), followed.gains[21:])
        kept = [Gains(net / f"agent-{k}.gain.json").now for k in range(4)]
        assert [one.gain for one in kept] == followed.gains[-1].tolist()
        assert kept[0].online[2] == 40
    assert followed.gains[-1][3] < followed.gains[-1][0]


@pytest.mark.live
def test_three_classes():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 12)
    x = np.array([1.5, 1.2, 0.1, -1.5])[:, None] * np.eye(3)[y][:, None] + rng.normal(size=(12, 4, 3))
    x -= x.mean(axis=2, keepdims=True)
    with in_memory(RING, rounds=6, classes=("a", "b", "c")) as agents, ExitStack() as stack:
        clients = [stack.enter_context(Client(stack.enter_context(served(agent)).url)) for agent in agents]
        found = one_by_one(clients, x, ["abc"[place] for place in y])
    assert np.array_equal(found, tuning.follow(x, y, RING, 6).gains[1:])


@pytest.mark.live
def test_a_label_counts_once_and_mistakes_are_named(four):
    agents, clients = four
    x, y = drifting(3)
    one_by_one(clients, x, y.tolist())
    before = agents[0].gains.now
    again = clients[0].label(2, int(y[2]))
    assert not again.changed
    assert agents[0].gains.now == before
    with pytest.raises(LiveError, match="the label of item 2 was another when it was given before"):
        clients[0].label(2, -int(y[2]))
    with pytest.raises(LiveError, match="agent-0 has not decided, or has forgotten, the item 'nobody'"):
        clients[0].label("nobody", 1)
    with pytest.raises(LiveError, match=r"the label 7\.0 is none of the classes of this network: -1, 1"):
        clients[0].label(1, 7)
    with pytest.raises(LiveError, match="rate"):
        clients[0].label(1, 1, rate=2)
    with pytest.raises(LiveError, match=r"unknown field ids: a step of a tuning is as /openapi\.json has it"):
        clients[0].tune("first", "drop", ids=[1])
    assert agents[0].gains.now == before


@pytest.mark.live
def test_items_of_before_the_first_label_may_be_labelled_late(four):
    _, clients = four
    x, y = drifting(2)
    for k, client in enumerate(clients):
        client.give([0, 1], scores=x[:, k])
    assert all(client.result(i, wait=100) for client in clients for i in (0, 1))
    assert clients[0].label(0, int(y[0])).changed
    assert clients[0].label(1, int(y[1])).labels == 2


@pytest.mark.live
def test_a_result_that_outlived_the_process_does_not_tell_the_score_before_the_gain(four):
    """As with a journal: the decision is remembered, and of the score only what entered with the gain of then."""
    agents, clients = four
    x, y = drifting(2)
    one_by_one(clients, x, y.tolist())
    kept = agents[0].gains.now
    agents[0].gains = Gains(agents[0].gains._path)
    with pytest.raises(LiveError, match="agent-0 has no score of item 1 since it was tuned: send scores, or other"):
        clients[0].label(1, int(y[1]))
    assert agents[0].gains.now == kept


def test_a_gain_stays_where_it_would_outgrow_the_bound():
    gains = Gains()
    assert gains.told("a", 1, np.array(1.0), -1.0, 0.5, 2.0)
    assert gains.now.gain == 1
    assert gains.told("b", 1, np.array(1.0), -1.0, 0.5, 4.0)
    assert gains.now.gain > 1
