"""A rogue agent among real live ones: it signs and frames everything rightly, and lies in every round."""

import os
import queue
import re
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from collegium import check_rule, collaborate, policy, topology
from collegium.checks.live import _places
from collegium.live.agent import Agent
from collegium.live.launcher import revoke
from collegium.live.peers import Deadlines
from collegium.live.transport.memory import Hub, MemoryTransport
from collegium.protocol import DeGroot, Robust
from collegium.protocol.combine import MeanSubsequence, Median, TrimmedMean
from collegium.trust import Liars, Rogue, attacks
from live_processes import ask_all, neighbour, running, statistics, status, wait_for
from live_rogues import LyingTransport, by_receiver

pytestmark = pytest.mark.live
K, ROUNDS, LIAR = 9, 12, 4
FULL = policy.uniform(topology.complete(K))
DEADLINES = Deadlines(longest=8.0, least=5.0, view=6.0, item=60.0)  # some attacks are messages that do not come
Y = np.where(np.arange(20) % 2, -1, 1)
SCORES = np.tanh(1.5 * Y[:, None] + 0.5 * np.random.default_rng(0).normal(size=(20, K)))


def decide(rules, tell=None):
    """Every agent's last statistics of all items, shape (n, K), in a live network in memory; and their status.

    tell: what the liar makes of its frames for each receiver.
    """
    hub, news = Hub(), queue.SimpleQueue()
    agents = [
        Agent(
            place, dict(zip(seat.senders.tolist(), seat.weights.tolist(), strict=True)),
            [f"agent-{k}" for k in range(K)], rule=rule, rounds=ROUNDS, bound=2.0, largest=2.0,
            deadlines=DEADLINES,
        )
        for place, seat, rule in zip(_places(FULL), FULL.at(1), rules, strict=True)
    ]  # fmt: skip
    end = time.monotonic() + 120
    try:
        for agent in agents:
            agent.on_presence = lambda number, is_there: news.put(None)
            if tell is not None and agent.number == LIAR:
                agent.start(LyingTransport(agent.place, hub, agent._engine.dialect, tell))
            else:
                agent.start(MemoryTransport(agent.place, hub))
        while any(agent.why_not_ready() for agent in agents):
            news.get(timeout=end - time.monotonic())
        futures = [agent.submit(list(range(20)), SCORES[:, k], trace=True) for k, agent in enumerate(agents)]
        results = [future.result(120) for future in futures]
        found = [agent.status() for agent in agents]
    finally:
        for agent in agents:
            agent.on_presence = lambda number, is_there: None
            agent.stop()
    return np.array([[one.trace[-1] for one in result] for result in results]).T, found


@pytest.mark.parametrize("attack", [attacks.Stubborn(2.0), attacks.SignFlip(2.0)], ids=str)
@pytest.mark.parametrize("combine", [TrimmedMean(1), Median(), MeanSubsequence(1)], ids=str)
def test_decisions_of_the_honest_keep_the_rules_promise(combine, attack):
    rule = Robust(combine)
    found, statuses = decide([Rogue(rule, attack) if k == LIAR else rule for k in range(K)])
    honest = np.arange(K) != LIAR
    wanted = collaborate(SCORES, FULL, ROUNDS, rule, liars=Liars([LIAR], attack))
    np.testing.assert_allclose(found[:, honest], wanted.statistics[-1][:, honest], rtol=0, atol=1e-12)
    for told in (statuses[0], statuses[8]):
        far = {one.number: one.far / one.compared for one in told.neighbours}
        assert far.pop(LIAR) > 0.9
        assert max(far.values()) < 0.3
        assert {one.compared for one in told.neighbours} == {20 * ROUNDS}
    low, high = SCORES[:, honest].min(axis=1), SCORES[:, honest].max(axis=1)
    assert (found[:, honest] >= low[:, None] - 1e-12).all()
    assert (found[:, honest] <= high[:, None] + 1e-12).all()


ANY = [
    attacks.AtStart("noise", 2.0, 0.5), attacks.AtStart("stuck"), attacks.AtStart("bias", 2.0, 0.5),
    attacks.AtStart("sign-flip"), attacks.LittleIsEnough(1.5), attacks.InnerProduct(1.0), attacks.Mimic(),
    attacks.Silence(5.0),
]  # fmt: skip
BY_RECEIVER = [
    attacks.TwoFaced(2.0), attacks.Split.of(topology.complete(K), [LIAR]), attacks.Dissension.along(FULL),
]  # fmt: skip


@pytest.mark.parametrize("attack", [*ANY, *BY_RECEIVER], ids=lambda one: type(one).__name__ + getattr(one, "fault", ""))
def test_no_attack_leads_the_honest_out_of_their_range(attack):
    """Rogues that know what they hear and no more: every attack there is, those that differ by receiver too."""
    rule, seat = Robust(TrimmedMean(1)), FULL.at(1)[LIAR]
    if attack in BY_RECEIVER:
        found, _ = decide([rule] * K, lambda frame, receiver: by_receiver(frame, receiver, seat, attack))
    else:
        found, _ = decide([Rogue(rule, attack) if k == LIAR else rule for k in range(K)])
    honest = np.arange(K) != LIAR
    low, high = SCORES[:, honest].min(axis=1), SCORES[:, honest].max(axis=1)
    assert (found[:, honest] >= low[:, None] - 1e-12).all()
    assert (found[:, honest] <= high[:, None] + 1e-12).all()
    if not isinstance(attack, (attacks.LittleIsEnough, attacks.Mimic)):  # who listens first comes too late here
        clean = collaborate(SCORES, FULL, ROUNDS, rule).statistics[-1][:, honest]
        assert not np.allclose(found[:, honest], clean, atol=1e-6)


def test_plain_averaging_falls_to_the_same_rogue():
    found, statuses = decide([Rogue(DeGroot(), attacks.Stubborn(2.0)) if k == LIAR else DeGroot() for k in range(K)])
    assert all(one.compared == 0 for told in statuses for one in told.neighbours)  # a plain mean compares nothing
    wrong = (found * Y[:, None] < 0)[:, np.arange(K) != LIAR]
    assert wrong.mean() > 0.5


def test_robust_rules_are_the_same_live_and_simulated():
    held = check_rule(Robust(TrimmedMean(1)), policy.uniform(topology.complete(4)))
    assert any("live network equals simulator" in one and "skipped" not in one for one in held)


INJECTED = """
import os
if os.environ.get("TEST_ROGUE"):
    from collegium.live import config
    from collegium.trust import Rogue, attacks
    honest = config.AgentFile.agent_settings
    def settings(self):
        found = honest(self)  # the policy's hash and everything else are those of an honest agent
        if self.agent.number == int(os.environ["TEST_ROGUE"]):
            found["rule"] = Rogue(found["rule"], attacks.Stubborn(2.0))
        return found
    config.AgentFile.agent_settings = settings
"""


def test_nine_processes_of_which_one_lies(tmp_path, monkeypatch):
    """Its certificate, its frames and its policy are right, and what it says is not: in every round."""
    (tmp_path / "sitecustomize.py").write_text(INJECTED)
    monkeypatch.setenv("TEST_ROGUE", str(LIAR))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    rule, honest = Robust(TrimmedMean(1)), np.arange(K) != LIAR
    with running(tmp_path / "net", FULL, rule=rule, rounds=ROUNDS, bound=2.0) as network:
        answers = ask_all(network, SCORES)
        found = statistics(answers)[-1]
        about = status(network[0])
        with network[0].client(60.0) as client:
            metrics = client._exchange("GET", "/metrics", time.monotonic() + 60, None, {})[1].decode()
        others = [k for k in range(K) if k != LIAR]
        processes = [network[k].pid for k in others]
        with ThreadPoolExecutor(1) as pool:  # items that run while the rogue is put out are decided all the same
            asked = pool.submit(ask_all, network, SCORES, range(100, 120), trace=False, who=others)
            revoke(tmp_path / "net", f"agent-{LIAR}")
            for k in others:
                wait_for(lambda k=k: "was revoked" in neighbour(network[k], f"agent-{LIAR}").reason)
            assert [len(column) for column in asked.result(200)] == [20] * len(others)
        after = ask_all(network, SCORES, range(200, 220), trace=False, who=others)
        assert [network[k].pid for k in others] == processes  # nobody was restarted
    assert all(f"agent-{LIAR}" in one.evidence.missing for column in after for one in column)
    wanted = collaborate(SCORES, FULL, ROUNDS, rule, liars=Liars([LIAR], attacks.Stubborn(2.0)))
    np.testing.assert_allclose(found[:, honest], wanted.statistics[-1][:, honest], rtol=0, atol=1e-12)
    far = {one.number: one.far for one in about.neighbours}
    assert far[LIAR] > 0.9 * 20 * ROUNDS
    assert re.search(rf'messages_far_total{{neighbour="agent-{LIAR}"}} 2\d\d', metrics)
