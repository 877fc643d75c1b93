"""Signed flooding among live agents: who signs two scores of an item is named and left out, who forges is counted."""

import os
import queue
import time
from functools import partial

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace
from typer.testing import CliRunner

from collegium import collaborate, policy, topology
from collegium.checks.live import _places
from collegium.cli.app import app
from collegium.errors import InputFileError, LiveError
from collegium.live import config, signing
from collegium.live.agent import Agent
from collegium.live.apply import Wanted, apply
from collegium.live.folder import NetworkSettings, create
from collegium.live.launcher import members
from collegium.live.transport.memory import Hub, MemoryTransport
from collegium.protocol import Flood
from collegium.protocol.combine import TrimmedMean
from collegium.trust import Liars, MaskedMean, SignedFlood, attacks
from live_networks import PATIENT
from live_processes import ask_all, running, statistics, status
from live_rogues import LyingTransport, forged, two_scores

pytestmark = pytest.mark.live
LIAR, ROUNDS = 4, 4
Y = np.where(np.arange(12) % 2, -1, 1)
SCORES = np.tanh(Y[:, None] + 0.5 * np.random.default_rng(0).normal(size=(12, 9)))
SHORT = replace(PATIENT, view=4.0)  # where some have no view, which is waited for
TORUS = policy.metropolis(topology.torus(3, 3))


def witnesses(K):
    private = {k: Ed25519PrivateKey.generate() for k in range(K)}
    public = {k: key.public_key() for k, key in private.items()}
    return [signing.Witness(b"net", {k: private[k]}, public, 5.0) for k in range(K)]


def decide(rule, over=TORUS, tell=None, who=None, keys=True):
    """Results and status of all agents of a network in memory, in which one may tell every receiver something else."""
    K = over.size
    rule = rule.prepared(over, ROUNDS)
    hub, news, all_keys = Hub(), queue.SimpleQueue(), witnesses(K) if keys else [None] * K
    agents = [
        Agent(
            place, dict(zip(seat.senders.tolist(), seat.weights.tolist(), strict=True)),
            [f"agent-{k}" for k in range(K)], rule=rule, rounds=ROUNDS, bound=5.0, largest=5.0, keys=all_keys[k],
            deadlines=PATIENT if who is None else SHORT,
        )
        for k, (place, seat) in enumerate(zip(_places(over), over.at(1), strict=True))
    ]  # fmt: skip
    end = time.monotonic() + 120
    try:
        for k, agent in enumerate(agents):
            agent.on_presence = lambda number, is_there: news.put(None)
            if tell is not None and k == LIAR:
                signed = rule.with_keys(all_keys[k])
                agent.start(LyingTransport(agent.place, hub, agent._engine.dialect, partial(tell, signed)))
            else:
                agent.start(MemoryTransport(agent.place, hub))
        while any(agent.why_not_ready() for agent in agents):
            news.get(timeout=end - time.monotonic())
        who = range(K) if who is None else who
        futures = [agents[k].submit(list(range(12)), SCORES[:, k], trace=True) for k in who]
        results = [future.result(120) for future in futures]
        return results, [agent.status() for agent in agents]
    finally:
        for agent in agents:
            agent.on_presence = lambda number, is_there: None
            agent.stop()


def last(results):
    return np.array([[one.trace[-1] for one in column] for column in results]).T


def test_who_signs_two_scores_is_named_by_all_and_left_out():
    def tell(rule, frame, receiver):
        return two_scores(frame, receiver, rule, LIAR, 0)

    rule = SignedFlood(TrimmedMean(1), clip=0.5)
    results, statuses = decide(rule, tell=tell)
    honest = [k for k in range(9) if k != LIAR]
    assert [statuses[k].caught for k in honest] == [[f"agent-{LIAR}"]] * 8
    found = last(results)[:, honest]
    without = np.sort(np.clip(np.delete(SCORES, LIAR, axis=1), -0.5, 0.5), axis=1)[:, 1:-1].mean(axis=1)
    np.testing.assert_allclose(found, without[:, None] * np.ones(8), rtol=0, atol=1e-12)
    simulated = collaborate(SCORES, TORUS, ROUNDS, rule, liars=Liars([LIAR], attacks.TwoFaced(2.0)))
    np.testing.assert_array_equal(found, simulated.statistics[-1][:, simulated.honest])
    assert all(one.forged == 0 for told in statuses for one in told.neighbours)


def test_who_forges_anothers_score_is_counted_and_changes_nothing():
    results, statuses = decide(SignedFlood(TrimmedMean(1)), tell=lambda rule, frame, to: forged(frame, 0, 9))
    want = np.sort(SCORES, axis=1)[:, 1:-1].mean(axis=1)
    np.testing.assert_allclose(last(results), want[:, None] * np.ones(9), rtol=0, atol=1e-12)
    assert all(told.caught == [] for told in statuses)
    by = {told.number: {one.number: one.forged for one in told.neighbours} for told in statuses}
    assert all(counts[LIAR] > 0 for k, counts in by.items() if k != LIAR and LIAR in counts)
    assert all(one == 0 for counts in by.values() for k, one in counts.items() if k != LIAR)


@pytest.mark.parametrize("rule", [SignedFlood(TrimmedMean(1)), Flood()], ids=["signed", "plain"])
def test_agents_without_a_view_say_nothing_instead_of_zero(rule):
    results, statuses = decide(rule, who=[0, 1, 2, 5, 8], keys=isinstance(rule, SignedFlood))
    seen = np.sort(SCORES[:, [0, 1, 2, 5, 8]], axis=1)
    want = seen[:, 1:-1].mean(axis=1) if isinstance(rule, SignedFlood) else seen.mean(axis=1)
    np.testing.assert_allclose(last(results), want[:, None] * np.ones(5), rtol=0, atol=1e-12)
    assert results[0][0].evidence.views == 5
    assert [told.caught for told in statuses] == [[]] * 9


INJECTED = """
import os
if os.environ.get("TEST_ROGUE"):
    from live_rogues import retold, two_scores
    from collegium.live import process
    from collegium.live.engine import Engine
    from collegium.live.transport.zenoh import ZenohTransport
    made, sending, number = Engine.__init__, ZenohTransport.send, int(os.environ["TEST_ROGUE"])
    known = {}
    def init(self, *args, **settings):
        made(self, *args, **settings)
        known["dialect"], known["rule"] = self.dialect, self.progress.states.rule
    def send(self, to, frame):
        if self._place.number == number:
            tell = lambda one, receiver: two_scores(one, receiver, known["rule"], number, 0)
            frame = retold(frame, known["dialect"], tell, to)
        sending(self, to, frame)
    def broadcast(self, frame):
        if self._place.number != number:
            return spread(self, frame)
        for peer in self._place.audience:
            self.send(peer.number, frame)
    spread = ZenohTransport.broadcast
    Engine.__init__, ZenohTransport.send, ZenohTransport.broadcast = init, send, broadcast
"""


@pytest.mark.timeout(240)
def test_processes_catch_a_rogue_and_say_so(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(INJECTED)
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    monkeypatch.setenv("TEST_ROGUE", str(LIAR))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), tests, os.environ.get("PYTHONPATH", "")]))
    five = policy.uniform(topology.complete(5))
    with running(tmp_path / "net", five, rule=SignedFlood(TrimmedMean(1)), rounds=3, bound=2.5) as network:
        assert all((tmp_path / "net" / f"agent-{k}.private").stat().st_mode & 0o077 == 0 for k in range(5))
        found = statistics(ask_all(network, SCORES[:, :5]))[-1]
        honest = np.sort(SCORES[:, :4], axis=1)[:, 1:-1].mean(axis=1)
        np.testing.assert_allclose(found[:, :4], honest[:, None] * np.ones(4), rtol=0, atol=1e-12)
        assert [status(network[k]).caught for k in range(4)] == [["agent-4"]] * 4
        with network[0].client(60.0) as client:
            metrics = client._exchange("GET", "/metrics", time.monotonic() + 60, None, {})[1].decode()
        assert 'collegium_agent_caught{agent="agent-4"} 1.0' in metrics
        shown = CliRunner().invoke(app, ["live", "status", str(tmp_path / "net")]).output
        assert "agent-0: agent-4 signed two different scores of one item: it is left out" in shown
        assert "agent-4 signed two different scores" in network[0].log.read_text()


def test_a_wrong_or_missing_key_is_named(tmp_path):
    three, rule = policy.uniform(topology.complete(3)), SignedFlood(TrimmedMean(1))
    create(tmp_path / "net", three, None, NetworkSettings(port=0, http_port=0, rule=rule))
    path = tmp_path / "net" / "agent-1.toml"
    signers = config.read(path).talk.public_keys
    assert len(set(signers)) == 3
    with pytest.raises(InputFileError, match="is not the key of agent 0"):
        signing.load(path.with_suffix(".private"), rule, 0, signers, "0123456789abcdef", 1.0)
    path.with_suffix(".private").write_bytes(b"short")
    with pytest.raises(InputFileError, match="no key of 32 bytes"):
        signing.load(path.with_suffix(".private"), rule, 1, signers, "0123456789abcdef", 1.0)
    path.write_text(path.read_text().replace(signers[2], "").replace(', ""]', "]"))
    with pytest.raises(InputFileError, match="one of every agent"):
        config.read(path)


def test_keys_stay_when_the_network_changes_and_who_joins_gets_one(tmp_path):
    rule = SignedFlood(TrimmedMean(1))
    four = policy.uniform(topology.complete(4))
    create(tmp_path / "net", four, None, NetworkSettings(port=0, http_port=0, rounds=3, rule=rule))
    before = config.read(tmp_path / "net" / "agent-0.toml").talk
    apply(tmp_path / "net", Wanted(policy.uniform(topology.complete(5)), add=["camera"]))
    files = {one.file.agent.name: one for one in members(tmp_path / "net")}
    after = files["camera"].file.talk
    assert after.public_keys[:4] == before.public_keys
    assert len(after.public_keys) == 5
    signing.load(files["camera"].path.with_suffix(".private"), rule, 4, after.public_keys, "00" * 8, 1.0)
    with pytest.raises(LiveError, match="every agent needs a key for MaskedMean"):
        apply(tmp_path / "net", Wanted(rule=MaskedMean()))
