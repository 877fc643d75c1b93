"""Networks that are changed while they run: how agents agree on it, and that no item is lost by it."""

import heapq
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from collegium import policy, topology
from collegium.cli.app import app
from collegium.errors import InputFileError, LiveError, PolicyError
from collegium.live import Client, change, configuration, keys, launcher
from collegium.live.agent import Agent
from collegium.live.answers import ItemResult
from collegium.live.apply import Wanted, apply
from collegium.live.change import Change, Phase, Seen
from collegium.live.epochs import CONFIGURATION, Epochs, _Channel
from collegium.live.folder import NetworkSettings, create
from collegium.live.transport.zenoh import ZenohTransport
from collegium.live.wire import Frame, Kind, Run, about, encode
from collegium.network import collaborate
from collegium.policy import Policy
from collegium.team import Team
from live_processes import ask_all, created, keep_port, kill, running, status, wait_for

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
FOUR = policy.uniform(topology.ring(4))


# ── how agents agree: many of them, on a virtual clock ────────────────────────────────────────────────────────────────


class Talk:
    """Agents of a graph that go over from configuration 0 to 1, told to one of them; some crash and come back."""

    def __init__(self, seed: int, crashes: int) -> None:
        self.chance = random.Random(seed)
        self.K = self.chance.randint(2, 8)
        self.names = [f"agent-{k}" for k in range(self.K)]
        links = {(k, self.chance.randrange(k)) for k in range(1, self.K)}
        links |= {(a, b) for a in range(self.K) for b in range(a) if self.chance.random() < 0.2}
        self.near = [[b for b in range(self.K) if (k, b) in links or (b, k) in links] for k in range(self.K)]
        self.now, self.count = 0.0, 0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.is_up = [True] * self.K
        self.saved = [0] * self.K  # the configuration in each agent's file
        self.has = [False] * self.K  # whether it knows of the new one
        self.agents = [Change(name, 0) for name in self.names]
        self.first_open = -1.0
        for k in range(self.K):
            self.at(self.chance.uniform(0, 0.5), lambda k=k: self.look(k))
        self.at(1.0, lambda: self.learn(0))
        for _ in range(crashes):
            k, begin = self.chance.randrange(self.K), self.chance.uniform(1.0, 2.5)
            self.at(begin, lambda k=k: self.crash(k))
            self.at(begin + self.chance.uniform(0.1, 3.0), lambda k=k: self.start(k))

    def at(self, when: float, event: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, event))

    def run(self) -> None:
        while self.events and self.events[0][0] < 30.0:
            self.now, _, event = heapq.heappop(self.events)
            event()

    def learn(self, k: int) -> None:
        if not self.is_up[k]:
            self.at(self.now + 1.0, lambda: self.learn(k))
        elif not self.has[k]:
            self.has[k] = True
            self.agents[k].begin(1)
            self.at(self.now + self.chance.uniform(0.0, 0.3), lambda one=self.agents[k]: self.prepared(k, one))

    def prepared(self, k: int, one: Change) -> None:
        if self.agents[k] is one and one.phase is Phase.OLD:
            one.prepared()

    def crash(self, k: int) -> None:
        self.is_up[k] = False

    def start(self, k: int) -> None:
        if not self.is_up[k]:
            self.is_up[k] = True
            self.agents[k] = Change(self.names[k], self.saved[k])
            if self.has[k] and not self.saved[k]:  # its folder has the configuration
                self.has[k] = False
                self.learn(k)

    def links(self, k: int) -> list[str]:
        return [self.names[b] for b in self.near[k] if self.is_up[b]]

    def look(self, k: int) -> None:
        self.at(self.now + self.chance.uniform(0.02, 0.1), lambda: self.look(k))
        if not self.is_up[k]:
            return
        one = self.agents[k]
        self.tell(k)
        before = one.phase
        if before not in (Phase.OLD, Phase.OPEN) and one.advance(self.now) is Phase.OPEN:
            self.opened(k)
        if one.phase is not before:
            self.tell(k)

    def tell(self, k: int) -> None:
        content = change.encode(self.agents[k].tell(self.links(k), round(self.now * 1e9)))
        for b in self.near[k]:
            self.at(self.now + self.chance.uniform(0.001, 0.02), lambda b=b: self.told(b, content, self.has[k]))

    def told(self, k: int, content: bytes, with_it: bool) -> None:
        if self.is_up[k]:
            self.agents[k].heard(change.decode(content))
            if with_it:
                self.learn(k)

    def opened(self, k: int) -> None:
        self.saved[k] = 1
        if self.first_open < 0:
            self.first_open = self.now


@pytest.mark.parametrize("seed", range(60))
def test_agents_close_the_old_epoch_before_any_begins_the_new_one(seed: int) -> None:
    talk = Talk(seed, crashes=0)
    opened = talk.opened

    def check(k: int) -> None:
        if talk.first_open < 0:
            assert all(one.phase >= Phase.CLOSED for one in talk.agents)
        opened(k)

    talk.opened = check  # type: ignore[method-assign]
    talk.run()
    assert all((one.number, one.phase) == (1, Phase.OPEN) for one in talk.agents)
    assert talk.first_open < 1.0 + 2.0


@pytest.mark.parametrize("seed", range(60))
def test_whoever_crashes_in_the_middle_is_in_the_new_epoch_in_the_end(seed: int) -> None:
    talk = Talk(seed, crashes=3)
    talk.run()
    assert all(talk.is_up)
    assert all((one.number, one.phase) == (1, Phase.OPEN) for one in talk.agents)


def test_nobody_goes_over_while_a_reachable_agent_cannot() -> None:
    a, b = Change("a", 0), Change("b", 0)
    for one in (a, b):
        one.begin(1)
    a.prepared()
    b.cannot("its model is missing")
    a.tell(["b"], 1)
    a.heard(b.tell(["a"], 1))
    assert a.advance(1.0) is Phase.PREPARED
    assert a.waits_for() == {"b": "its model is missing"}
    a.tell([], 2)  # it is away now
    assert a.advance(2.0) is Phase.CLOSED


def test_what_is_beyond_this_change_is_not_waited_for() -> None:
    a, b = Change("a", 0), Change("b", 0)
    a.begin(1)
    a.prepared()
    b.begin(2)
    a.tell(["b"], 1)
    a.heard(b.tell(["a"], 1))
    assert a.advance(0.0) is Phase.CLOSED


# ── configurations ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Path]:
    with created(tmp_path / "net", FOUR):
        yield tmp_path / "net"


def test_a_configuration_is_used_if_it_is_signed(network: Path, tmp_path: Path) -> None:
    apply(network, Wanted(rounds=7))
    content = (network / configuration.FILE).read_bytes()
    first = launcher.members(network)[0].file
    new = configuration.decode(content, network / "ca.pem", first.agent.network)
    assert (new.number, new.talk.rounds, len(new.members)) == (1, 7, 4)
    found = msgspec.json.decode(content)
    found["talk"]["rounds"] = 8
    with pytest.raises(LiveError, match="not signed by this network's authority"):
        configuration.decode(msgspec.json.encode(found), network / "ca.pem", first.agent.network)
    other = keys.create_authority(tmp_path / "other", "net")
    with pytest.raises(LiveError, match="not signed by this network's authority"):
        configuration.decode(content, other.certificate, first.agent.network)
    with pytest.raises(LiveError, match="is of network"):
        configuration.decode(content, network / "ca.pem", "f" * 16)
    with pytest.raises(LiveError, match="a configuration of the network cannot be read"):
        configuration.decode(b"{", network / "ca.pem", "f" * 16)


def test_what_cannot_be_applied_is_said_in_a_sentence(network: Path) -> None:
    with pytest.raises(LiveError, match="no agent 'agent-9' to remove; there are agent-0"):
        apply(network, Wanted(remove=["agent-9"]))
    with pytest.raises(LiveError, match="there is an agent 'agent-1' already"):
        apply(network, Wanted(add=["agent-1"]))
    with pytest.raises(PolicyError, match="Give --topology, such as ring:3"):
        apply(network, Wanted(remove=["agent-1"]))
    with pytest.raises(PolicyError, match="the network has 4 agents and there are 5"):
        apply(network, Wanted(FOUR, add=["agent-4"]))
    with pytest.raises(LiveError, match="nothing is to change"):
        apply(network, Wanted())
    with pytest.raises(LiveError, match="ports are for agents that join"):
        apply(network, Wanted(rounds=7, ports=(0, 0)))
    (network / "ca.key").unlink()
    with pytest.raises(InputFileError, match="where collegium live init was run"):
        apply(network, Wanted(rounds=7))


def test_of_two_changes_at_once_one_is_refused_or_the_next(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signed = keys.signed

    def slowly(*given: Any) -> Any:
        time.sleep(0.3)
        return signed(*given)

    def applied(rounds: int) -> int:
        with suppress(LiveError):
            return apply(network, Wanted(rounds=rounds)).number
        return 0

    monkeypatch.setattr(keys, "signed", slowly)
    with ThreadPoolExecutor(2) as threads:
        numbers = sorted(threads.map(applied, (7, 8)))
    assert numbers in ([0, 1], [1, 2])


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_change_that_was_never_signed_is_forgotten(
    is_killed: bool, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Wanted(policy.uniform(topology.ring(5)), add=["agent-4"])
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise InputFileError("no space left on device")

        patch.setattr(configuration, "write", full)
        if is_killed:
            patch.setattr("collegium.live.apply._without_unsigned", lambda folder, network: network)
        with pytest.raises(InputFileError, match="no space left"):
            apply(network, wanted)
    assert bool([*network.glob("agent-4*")]) is is_killed
    assert apply(network, wanted).joining == ["agent-4"]
    assert [member.path.stem for member in launcher.members(network)] == [f"agent-{k}" for k in range(5)]
    (network / configuration.FILE).unlink()
    (network / configuration.FILE).mkdir()
    with pytest.raises(InputFileError, match=r"epoch\.json: Is a directory"):
        apply(network, Wanted(rounds=7))


def test_an_agent_that_was_revoked_and_removed_is_not_named_any_more(network: Path) -> None:
    launcher.revoke(network, "agent-2")
    assert launcher.revoked(network) == ["agent-2"]
    apply(network, Wanted(policy.uniform(topology.ring(3)), remove=["agent-2"]))
    assert launcher.revoked(network) == []


def test_an_agent_that_was_removed_says_so_and_is_not_started_again_by_systemd(network: Path) -> None:
    """As on a host of its own, where its file is still there; the unit does not restart what ends with 2."""
    apply(network, Wanted(policy.uniform(topology.ring(3)), remove=["agent-1"]))
    file = (network / "agent-1.left").rename(network / "agent-1.toml")
    command = [sys.executable, "-m", "collegium.live", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "agent-1 has no part in the network any more" in ended.stderr.splitlines()[-1]
    assert ended.returncode == 2
    unit = Path(__file__).parents[2] / "deploy" / "collegium-agent@.service"
    assert "RestartPreventExitStatus=2\n" in unit.read_text()


def test_a_neighbour_that_is_behind_is_given_the_configuration_again(network: Path) -> None:
    apply(network, Wanted(rounds=7))
    member = launcher.members(network)[0]
    carrier = ZenohTransport(member.file.place(network))
    epochs = Epochs(member.path, member.file, carrier, lambda file: Agent(file.place(network), **file.agent_settings()))
    epochs.offer((network / configuration.FILE).read_bytes())
    told: list[bytes] = []
    carrier.tell = told.append  # type: ignore[method-assign]
    epochs.heard(change.encode({"agent-1": Seen(1, 1, Phase.OPEN, ["agent-0"])}))
    assert told == []
    epochs.heard(change.encode({"agent-1": Seen(2, 0, Phase.OPEN, ["agent-0"])}))
    assert told == [CONFIGURATION + (network / configuration.FILE).read_bytes()]


def test_an_agent_that_closes_its_epoch_announces_what_was_begun_there(network: Path) -> None:
    member = launcher.members(network)[0]
    carrier = ZenohTransport(member.file.place(network))
    epochs = Epochs(member.path, member.file, carrier, lambda file: Agent(file.place(network), **file.agent_settings()))
    agent, sent = epochs.agent, []
    carrier.broadcast = sent.append  # type: ignore[method-assign]
    epochs.join(channel := _Channel(epochs, agent.place, epochs.file.policy()))
    agent._transport = channel
    ids = np.array([7], np.uint64)
    epochs.change.begin(1)
    epochs.change.prepared()
    item = Frame(Kind.ROUND, 1, [Run(0, 1, 1, True)], ids, [1 << 1], values=np.ones((1, 1)))
    agent.receive(1, encode(item, agent._engine.dialect))
    assert sent == []
    assert epochs._advance(0.0) is Phase.CLOSED
    assert sent == [encode(about(Kind.ANNOUNCE, 0, ids, np.ones(1, np.int32)), agent._engine.dialect)]


# ── real processes ────────────────────────────────────────────────────────────────────────────────────────────────────


class Sensors:
    """Items for some agents, a batch every tenth of a second, until it is left; what each agent answered.

    Nobody waits long for the agent that leaves. Requests to agents that are not there wait in threads of their own.
    """

    def __init__(self, urls: dict[str, str], leaving: str, batch: int = 10) -> None:
        self.rng = np.random.default_rng(0)
        self.scores: list[dict[str, float]] = []
        self.answers: dict[str, list[Future[list[ItemResult]]]] = {name: [] for name in urls}
        self._batch, self._stack, self._over = batch, ExitStack(), threading.Event()
        self._clients = {
            name: self._stack.enter_context(Client(url, timeout=20.0 if name == leaving else 90.0))
            for name, url in urls.items()
        }
        self._pool = self._stack.enter_context(ThreadPoolExecutor(1000 * len(urls)))
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._over.wait(0.1):
            first = len(self.scores)
            rows = [{name: float(self.rng.normal()) for name in self._clients} for _ in range(self._batch)]
            self.scores += rows
            for name, client in self._clients.items():
                mine = [row[name] for row in rows]
                asked = self._pool.submit(client.decide, range(first, first + self._batch), scores=mine, trace=True)
                self.answers[name].append(asked)

    def wait_for_more(self, batches: int = 10) -> None:
        """Until so many more were sent."""
        enough = len(self.scores) + batches * self._batch
        wait_for(lambda: len(self.scores) >= enough)

    def __enter__(self) -> "Sensors":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._stack.close()

    def same_as(self, over: Policy, names: list[str], rounds: int) -> dict[str, list[bool]]:
        """By agent, which items were decided as the simulator decides them in a network of these agents."""
        scores = np.array([[row[name] for name in names] for row in self.scores])
        run = collaborate(scores, over, rounds, items=list(range(len(scores))))
        found = {}
        for k, name in enumerate(names):
            results = [one for future in self.answers[name] if future.exception() is None for one in future.result()]
            found[name] = [np.array_equal(one.trace or [], run.statistics[:, int(one.id), k]) for one in results]
        return found


def test_one_joins_and_one_leaves_under_load_and_no_item_is_lost(tmp_path: Path) -> None:
    """Every item is decided in one of the two networks, by all its agents, with the simulator's numbers."""
    with running(tmp_path / "net", FOUR) as network, ExitStack() as held:
        ports = keep_port(held), keep_port(held)
        urls = {f"agent-{k}": f"http://127.0.0.1:{network[k].file.http.port}" for k in range(4)}
        old, new = [f"agent-{k}" for k in range(4)], ["agent-0", "agent-2", "agent-3", "agent-4"]
        with Sensors({**urls, "agent-4": f"http://127.0.0.1:{ports[1]}"}, leaving="agent-1") as sensors:
            sensors.wait_for_more()
            wanted = Wanted(FOUR, add=["agent-4"], remove=["agent-1"], ports=ports)
            done = apply(tmp_path / "net", wanted, wait=120.0)
            sensors.wait_for_more()
        assert (done.number, done.joining, done.leaving, done.waiting) == (1, ["agent-4"], ["agent-1"], {})
        stay = ["agent-0", "agent-2", "agent-3"]
        failed = {(name, str(one.exception())) for name in stay for one in sensors.answers[name] if one.exception()}
        assert failed == set()
        before, after = sensors.same_as(FOUR, old, 20), sensors.same_as(FOUR, new, 20)
        epochs = [[(b, a) for b, a in zip(before[name], after[name], strict=True)] for name in stay]
        assert epochs[0] == epochs[1] == epochs[2]  # an item is of the same epoch everywhere
        assert set(epochs[0]) == {(True, False), (False, True)}
        assert all(before["agent-1"])  # whatever the one that left has answered is of the old network
        refused = {str(one.exception()) for one in sensors.answers["agent-1"] if one.exception()}
        assert [
            one
            for one in refused
            if not re.search("no part in the network|cannot reach|about to stop|did not answer", one)
        ] == []
        members = launcher.members(tmp_path / "net")
        assert [one.file.agent.name for one in members] == new
        assert all(one.file.talk.epoch == 1 and not one.file.agent.joins for one in members)
        launcher.down(tmp_path / "net")
        again = launcher.up(tmp_path / "net", wait=120)  # from the files that the agents wrote
        for column in ask_all(again, np.ones((5, 4)), trace=False):
            assert all(not one.missed and not one.evidence.missing for one in column)


def test_an_agent_that_has_just_been_started_survives_being_asked_to_read_its_files(tmp_path: Path) -> None:
    """`apply` starts those that join, and then tells all to look at the new configuration."""
    net, end = tmp_path / "net", time.monotonic() + 120

    def tell(member: launcher.Member) -> None:
        while (pid := member.pid) is None:  # at once, and not a moment later
            assert time.monotonic() < end
        os.kill(pid, signal.SIGHUP)

    with created(net, policy.uniform(topology.ring(3))):
        network = launcher.members(net)
        try:
            with ThreadPoolExecutor(3) as pool:
                told = [pool.submit(tell, member) for member in network]
                launcher.start(network)
                for one in told:
                    one.result()
            wait_for(lambda: all(_answers(member) and status(member).ready for member in network))
        finally:
            launcher.down(net)


def test_a_joining_agent_that_ends_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = launcher.start

    def start_and_kill(network: list[launcher.Member]) -> None:
        start(network)
        for member in network:
            kill(member)

    net = tmp_path / "net"
    with running(net, FOUR):
        monkeypatch.setattr(launcher, "start", start_and_kill)
        done = apply(net, Wanted(policy.uniform(topology.ring(5)), add=["agent-4"]), wait=3.0)
        assert done.waiting["agent-4"].startswith("it ended: ")


def test_an_agent_that_joins_listens_on_ports_that_nobody_uses(tmp_path: Path) -> None:
    net = tmp_path / "net"
    create(net, FOUR, None, NetworkSettings(port=0, http_port=0))
    network = launcher.members(net)
    taken = {int(one.file.agent.listen.rpartition(":")[2]) for one in network}
    next_one = max(taken) + 1
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as an agent does: what was just closed is free
        try:
            other.bind(("127.0.0.1", next_one))
            other.listen()
        except OSError:
            next_one -= 1  # another process has it, perhaps for this moment only
        apply(net, Wanted(policy.uniform(topology.ring(5)), add=["agent-4"]))
    new = next(one for one in launcher.members(net) if one.file.agent.name == "agent-4").file
    port = int(new.agent.listen.rpartition(":")[2])
    assert port > next_one
    assert port != new.http.port
    assert new.http.port not in taken | {one.file.http.port for one in network}


def test_a_crash_in_the_middle_of_a_change(tmp_path: Path) -> None:
    """The others go over without it; when it is back its neighbours tell it, and it is in the new epoch at once."""
    with running(tmp_path / "net", FOUR) as network:
        victim = network[2]

        def kill_it() -> None:
            wait_for(lambda: "configuration 1 is being prepared" in victim.log.read_text())
            kill(victim)

        with ThreadPoolExecutor(1) as pool:
            killed = pool.submit(kill_it)
            done = apply(tmp_path / "net", Wanted(rounds=7, policy=policy.uniform(topology.complete(4))), wait=120.0)
            killed.result()
        assert not done.waiting
        (tmp_path / "net" / configuration.FILE).unlink()  # it has only its neighbours to learn it from
        victim.start()
        wait_for(lambda: victim.pid is not None and _answers(victim) and status(victim).epoch == 1)
        wait_for(lambda: all(status(one).ready for one in network))
        scores = np.random.default_rng(0).normal(size=(20, 4))
        found = ask_all(network, scores)
        run = collaborate(scores, policy.uniform(topology.complete(4)), 7, items=list(range(20)))
        for k, column in enumerate(found):
            assert np.array_equal([one.trace for one in column], run.statistics[:, :, k].T)


def _answers(member: launcher.Member) -> bool:
    try:
        status(member)
    except LiveError:
        return False
    return True


def test_other_models_from_the_command_line(tmp_path: Path) -> None:
    """Every agent gets its own model, and nobody decides with the old one once the new epoch has begun."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.5, 1, -1)
    views = [y[:, None] + rng.normal(size=(200, 3)) for _ in range(3)]
    over = policy.uniform(topology.ring(3))
    teams = []
    for strength in (1.0, 1e-3):
        team = Team([(f"camera-{k}", LogisticRegression(C=strength)) for k in range(3)], over, rounds=5)
        teams.append(team.fit(views, y))
        teams[-1].save(tmp_path / f"team-{strength}")
    with running(tmp_path / "net", over, teams[0], rounds=5) as network:
        for number, team in enumerate(teams):
            if number:
                command = ["live", "apply", str(tmp_path / "net"), "--team", str(tmp_path / "team-0.001")]
                command += ["--wait", "120", "--json"]
                done = CliRunner().invoke(app, command)
                assert (done.exit_code, json.loads(done.stdout)["number"]) == (0, 1), done.output
            wanted = team.run([view[:5] for view in views]).statistics[-1]
            names = range(10 * number, 10 * number + 5)
            with ThreadPoolExecutor(3) as pool, ExitStack() as stack:
                clients = [stack.enter_context(member.client(60)) for member in network]
                asked = [pool.submit(c.decide, names, views=v[:5]) for c, v in zip(clients, views, strict=True)]
                found = [[one.statistic for one in future.result()] for future in asked]
            assert np.allclose(np.array(found).T, wanted, rtol=1e-12, atol=1e-12)


def test_another_authority_takes_over(tmp_path: Path) -> None:
    """Agents trust both, then their certificates are signed by the new one; no link is lost."""
    with running(tmp_path / "net", policy.uniform(topology.ring(3))) as network:
        net = tmp_path / "net"
        old = (net / "ca.pem").read_text()
        done = apply(net, Wanted(new_authority=True), wait=120.0)
        assert (done.number, done.waiting) == (1, {})
        both = (net / "ca.pem").read_text()
        assert both.endswith(old)
        assert both != old
        (tmp_path / "new.pem").write_text(both.removesuffix(old))
        for member in network:
            wait_for(lambda m=member: "a new certificate is in use" in m.log.read_text())
            tls = keys.Tls(tmp_path / "new.pem", member.path.with_suffix(".pem"), member.path.with_suffix(".key"))
            keys.check(tls, member.file.agent.name)
        wait_for(lambda: all(status(one).ready for one in network))
        for column in ask_all(network, np.ones((5, 3)), trace=False):
            assert all(not one.missed and not one.evidence.missing for one in column)
        assert not [one for one in network if "has left" in one.log.read_text()]
        assert not apply(net, Wanted(new_authority=True), wait=120.0).waiting
        assert old not in (net / "ca.pem").read_text()  # the first one is not trusted any more
        wait_for(lambda: all(one.log.read_text().count("a new certificate is in use") >= 2 for one in network))
        wait_for(lambda: all(status(one).ready for one in network))
        launcher.revoke(net, "agent-2")  # signed by the newest one
        wait_for(lambda: network[2].pid is None)
