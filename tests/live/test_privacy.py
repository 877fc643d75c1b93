"""Noise of live agents: made of their own secrets, the same for the same score, booked before anything is sent."""

import queue
import time

import numpy as np
import pytest

from collegium import policy, topology
from collegium.checks.live import _places
from collegium.errors import LiveError
from collegium.live import launcher
from collegium.live.agent import Agent
from collegium.live.privacy import Noise, Spending, secret_of
from collegium.live.table import rerun
from collegium.live.transport.memory import Hub, MemoryTransport
from collegium.protocol import Averaging
from collegium.protocol.codec import LaplaceOnce
from collegium.trust import BudgetExceeded, MaskedMean
from live_networks import PATIENT
from live_processes import ask_all, running, status
from virtual_network import VirtualNetwork, outcome

pytestmark = pytest.mark.live
K, FULL = 4, policy.uniform(topology.complete(4))
CODEC = LaplaceOnce(2.0, 1.0)
RULE = Averaging(codec=CODEC)


def decide(scores, secrets=(None,) * K, rounds=2, budgets=(None,) * K):
    """The statistics of every round at every agent, (T + 1, n, K), in a network in memory, and what was spent."""
    hub, news = Hub(), queue.SimpleQueue()
    names = [f"agent-{k}" for k in range(K)]
    agents = [
        Agent(
            place, dict(zip(seat.senders.tolist(), seat.weights.tolist(), strict=True)), names, rule=RULE,
            rounds=rounds, bound=1.0, bounds=dict.fromkeys(range(K), 1.0), largest=1.0, secret=secrets[k],
            spending=Spending(CODEC.epsilon, budgets[k]), deadlines=PATIENT,
        )
        for k, (place, seat) in enumerate(zip(_places(FULL), FULL.at(1), strict=True))
    ]  # fmt: skip
    end = time.monotonic() + 120
    try:
        for agent in agents:
            agent.on_presence = lambda number, is_there: news.put(None)
            agent.start(MemoryTransport(agent.place, hub))
        while any(agent.why_not_ready() for agent in agents):
            news.get(timeout=end - time.monotonic())
        futures = [agent.submit(list(range(len(scores))), scores[:, k], trace=True) for k, agent in enumerate(agents)]
        results = [future.result(120) for future in futures]
        spent = [agent.status().privacy.spent for agent in agents]
    finally:
        for agent in agents:
            agent.on_presence = lambda number, is_there: None
            agent.stop()
    return np.array([[one.trace for one in column] for column in results]).transpose(2, 1, 0), spent


def test_noise_is_the_agents_own_and_enters_once():
    n = 1500
    scores = np.tanh(np.random.default_rng(0).normal(size=(n, K)))
    keys = [bytes([k]) * 32 for k in range(K)]
    first, spent = decide(scores, keys)
    assert spent == [2.0 * n] * K
    # What is averaged is what was sent in round 1, and nothing is added later.
    np.testing.assert_allclose(first[1], first[0].mean(axis=1)[:, None] + np.zeros(K), rtol=0, atol=1e-12)
    np.testing.assert_allclose(first[2], first[1], rtol=0, atol=1e-12)
    noise = first[0] - scores
    wanted = 2 * CODEC.scale() ** 2  # of a Laplace variable, whose fourth moment is 6 times the square of that
    assert (np.abs(noise.var(axis=0) / wanted - 1) < 3.9 * np.sqrt(5 / n)).all()
    assert np.abs(np.corrcoef(noise.T)[np.triu_indices(K, 1)]).max() < 3.9 / np.sqrt(n)
    again, _ = decide(scores, keys)
    np.testing.assert_array_equal(first, again)  # an agent that starts again says the same
    other, _ = decide(scores)  # the same network and seed, other secrets
    assert np.abs(np.corrcoef((other[0] - scores)[:, 0], noise[:, 0])[0, 1]) < 3.9 / np.sqrt(n)


def test_an_item_that_runs_once_more_has_the_same_noise_and_another_score_another():
    hides, ids = Noise(CODEC, b"x" * 32, 1), np.array([7, 2**63 + 5], np.uint64)
    scores = np.array([[0.25], [-0.5]])
    hidden = hides.hide(ids, scores)
    np.testing.assert_array_equal(hides.hide(rerun(ids), scores), hidden)
    np.testing.assert_array_equal(hides.hide(ids[1:], scores[1:]), hidden[1:])
    moved = hides.hide(ids, scores + 2.0**-10) - hidden
    assert (np.abs(moved) > 1e-3).all()  # the noise is another one, so no difference of scores is seen
    several = Noise(CODEC, b"x" * 32, 2).hide(ids, np.array([[0.5, 0.25, -0.75], [0.0, 0.0, 0.0]]))
    assert np.abs(several.sum(axis=1)).max() < 1e-9


def test_beyond_the_budget_nothing_is_begun(tmp_path):
    scores = np.zeros((3, K))
    with pytest.raises(BudgetExceeded, match="3 items of ε = 2 would bring it to 6, beyond the budget of 5: refused"):
        decide(scores, budgets=[6.0, 5.0, 6.0, 6.0])
    spending = Spending(2.0, 5.0, tmp_path / "ledger")
    spending.charge(np.arange(2, dtype=np.uint64))
    again = Spending(2.0, 5.0, tmp_path / "ledger")
    assert again.shown().spent == 4.0
    with pytest.raises(BudgetExceeded):
        again.charge(np.array([9], np.uint64))
    again.paid_before([0, 1])
    again.charge(np.arange(2, dtype=np.uint64))  # told already, with the same noise
    assert again.shown().spent == 4.0
    secret = secret_of(tmp_path / "secret")
    assert secret_of(tmp_path / "secret") == secret
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0


def test_processes_refuse_beyond_their_budget_and_remember_it(tmp_path):
    three = policy.uniform(topology.complete(3))
    with running(tmp_path / "net", three, rule=RULE, rounds=2, bound=1.0, budget=7.0) as network:
        ask_all(network, np.array([[0.5] * 3, [-0.5] * 3]))
        assert all((tmp_path / "net" / f"agent-{k}.ledger").is_file() for k in range(3))
        with network[0].client(30.0) as client:
            assert client.decide([0, 1], scores=np.array([0.5, -0.5]))  # sent again: the same item, and no cost
            with pytest.raises(LiveError, match="2 items of ε = 2 would bring it to 8, beyond the budget of 7"):
                client.decide([2, 3], scores=np.array([0.5, -0.5]))
            metrics = client._exchange("GET", "/metrics", time.monotonic() + 60, None, {})[1].decode()
        assert "collegium_privacy_spent_epsilon 4.0" in metrics
        assert "collegium_privacy_budget_epsilon 7.0" in metrics
        launcher.down(tmp_path / "net")
        again = launcher.up(tmp_path / "net", wait=120)
        assert status(again[0]).privacy.spent == 4.0
        with again[0].client(30.0) as client, pytest.raises(LiveError, match="beyond the budget of 7"):
            client.decide([4, 5], scores=np.array([0.5, -0.5]))


def test_processes_with_masks_have_the_exact_mean(tmp_path):
    scores = np.tanh(np.random.default_rng(3).normal(size=(30, K)))
    with running(tmp_path / "net", FULL, rule=MaskedMean(), rounds=2, bound=1.0) as network:
        keys = {(tmp_path / "net" / f"agent-{k}.private").read_bytes() for k in range(K)}
        assert len(keys) == K
        found = ask_all(network, scores)
    last = np.array([[one.trace[-1] for one in column] for column in found]).T
    np.testing.assert_allclose(last, np.broadcast_to(scores.mean(axis=1)[:, None], (30, K)), rtol=0, atol=1e-9)
    assert all(one.settled for column in found for one in column)


def test_where_a_masked_score_is_missing_the_mean_is_refused():
    net = VirtualNetwork(FULL, rule=MaskedMean(K), rounds=2)
    tickets = [net.submit(k, ["x"], [0.1 * k]) for k in range(3)]  # agent 3 has no view
    net.rest()
    for k, ticket in enumerate(tickets):
        (one,) = outcome(ticket)
        assert (one.settled, one.evidence.missing) == (False, ["agent-3"])
        assert one.statistic == pytest.approx(0.1 * k, abs=1e-15)  # its own score, and nobody's mean
