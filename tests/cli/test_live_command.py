"""`collegium live` as a user meets it, with real processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from collegium import collaborate, policy, schedule, topology
from collegium.cli.app import app
from collegium.errors import LiveError
from collegium.live import launcher
from collegium.live.answers import Quantiles
from collegium.live.folder import NetworkSettings, create
from live_processes import wait_for
from statuses import items, neighbour, report


def shown(*words):
    """What a command prints, whether it fails or not: an agent that pauses may seem to be down for a moment."""
    return CliRunner().invoke(app, [*map(str, words)]).stdout


@pytest.mark.live
def test_a_network_from_init_to_down(cli, tmp_path):
    net = tmp_path / "net"
    init = ("live", "init", "--topology", "ring:3", "--port", 0, "--http-port", 0)
    assert cli(*init, "--out", net).out.startswith("3 agents in ")
    made = json.loads(cli(*init, "--json", "--out", tmp_path / "other").out)
    assert [Path(one["file"]).name for one in made] == [f"agent-{k}.toml" for k in range(3)]
    try:
        assert "3 agents up" in cli("live", "up", net, "--wait", 120).out
        again = json.loads(cli("live", "up", net, "--json").out)
        assert [one["process"] for one in again] == [member.pid for member in launcher.members(net)]
        wait_for(lambda: shown("live", "status", net).count("ready") == 3)
        network = launcher.members(net)
        os.kill(network[1].pid, signal.SIGKILL)
        wait_for(lambda: network[1].pid is None)
        wait_for(lambda: ["down" in one for one in json.loads(shown("live", "status", net, "--json"))] == [0, 1, 0])
        assert "down" in cli("live", "status", net, code=1).out
        assert cli("live", "down", net).out == "2 agents ended\n"
    finally:
        launcher.down(net)
    assert cli("live", "down", net).out == "none was running\n"


@pytest.mark.live
def test_processes_of_a_schedule_have_the_simulators_numbers(cli, tmp_path):
    made = cli("live", "init", "--network", "exact:5", "--port", 0, "--http-port", 0, "--out", tmp_path / "net").out
    assert made.startswith("5 agents in ")
    for path in (tmp_path / "net").glob("agent-*.toml"):  # nobody is away, however busy the machine is
        path.write_text(re.sub(r"\b(longest|least|view|item) = .*", r"\1 = 60.0", path.read_text()))
    agents = launcher.up(tmp_path / "net", wait=120)
    scores = np.random.default_rng(4).normal(size=(40, 5))
    try:
        with ThreadPoolExecutor(5) as pool:
            answers = list(pool.map(lambda k: _decided(agents[k], scores[:, k]), range(5)))
    finally:
        launcher.down(tmp_path / "net")
    expected = collaborate(scores, schedule.exact(5)).statistics[-1]
    np.testing.assert_array_equal(np.array([[one.statistic for one in column] for column in answers]).T, expected)
    assert {(one.rounds, one.evidence.views) for column in answers for one in column} == {(3, 5)}


def test_a_schedule_of_one_agent_is_refused_in_a_sentence(cli, tmp_path):
    said = cli("live", "init", "--topology", "exact:1", "--out", tmp_path / "net", code=2).err
    assert "a schedule of one agent has no rounds" in said


def test_examples_in_the_help_are_shown_as_they_are_typed(cli):
    """Rich makes a picture of :ring:."""
    assert "💍" not in cli("live", "init", "--help").out


def _decided(agent, scores):
    with agent.client(120.0) as client:
        return client.decide(range(len(scores)), scores=scores)


def test_a_status_names_what_is_wrong(cli, tmp_path, monkeypatch):
    create(tmp_path / "net", policy.uniform(topology.ring(2)), None, NetworkSettings(port=0, http_port=0, tls=False))
    flood = neighbour(1, "late", "too many items", over_budget=70)
    busy = report(0, flood, overloaded_s=2.5, items=items(pending=3, waiting=40, done=500, incomplete=12))
    found = zip(launcher.members(tmp_path / "net"), (busy, report(1, neighbour(0, "up"))), strict=True)
    monkeypatch.setattr(launcher, "statuses", lambda folder: found)
    shown = cli("live", "status", tmp_path / "net").out.splitlines()
    assert next(line for line in shown if "agent-0" in line).split() == [
        "agent-0", "ready", "1", "late", "43", "500", "12", "1", "2.5", "0.0",
    ]  # fmt: skip
    assert max(map(len, shown[:6])) <= 80
    assert "agent-0: agent-1 late: too many items" in shown
    assert "agent-0: agent-1 was over its budget 70 times" in shown
    assert "agent-0: overloaded for 2.5 s: items waited or were refused" in shown
    assert not [line for line in shown if line.startswith("agent-1: agent-0")]


def test_a_status_with_long_names_keeps_its_heads_and_numbers_whole(cli, tmp_path, monkeypatch):
    slow = Quantiles(3.14159, 1060.03)
    busy = report(0, neighbour(1, "up"), items=items(pending=12345, done=1234567), latency_ms=slow)
    named = [
        SimpleNamespace(file=SimpleNamespace(agent=SimpleNamespace(name=name)))
        for name in ("the-camera-above-the-northern-gate-1", "agent-1")
    ]
    monkeypatch.setattr(launcher, "statuses", lambda folder: [(one, busy) for one in named])
    monkeypatch.setattr(launcher, "revoked", lambda folder: [])
    shown = cli("live", "status", tmp_path, width=80).out.splitlines()
    assert max(map(len, shown[:8])) <= 80
    assert shown[1].split() == [
        "agent",
        "state",
        "neighbours",
        "pending",
        "decided",
        "incomplete",
        "p50",
        "ms",
        "p99",
        "ms",
        "kB",
        "sent",
    ]
    row = next(line for line in shown if line.strip().startswith("agent-1")).split()
    assert row == ["agent-1", "ready", "1", "up", "12345", "1234567", "0", "3.14", "1060", "0.0"]


@pytest.mark.parametrize(
    ("written", "classes"),
    [
        (None, [-1, 1]),
        ("good,bad", ["bad", "good"]),
        ("0,1,2,3", [0, 1, 2, 3]),
        ("left, right,2", ["left", "right", "2"]),
    ],
)
def test_classes_and_bound_of_agents_that_are_given_scores(cli, tmp_path, written, classes):
    options = () if written is None else ("--classes", written)
    cli("live", "init", "--topology", "ring:3", "--no-tls", "--score-bound", 2.5, *options, "--out", tmp_path / "net")
    file = launcher.members(tmp_path / "net")[2].file
    assert file.model.classes == classes
    assert {file.talk.bound, *(heard.bound for heard in file.hears)} == {2.5}


@pytest.mark.live
@pytest.mark.parametrize("classes", ["3,8", "0,3,8,9"])
def test_demo_finds_no_difference(cli, tmp_path, classes):
    shown = cli("live", "demo", "--items", 20, "--classes", classes, "--keep", tmp_path / "kept").out
    decided = shown.split("first decisions of the middle agent")[1].splitlines()[0].split()
    assert len(decided) == 12
    assert set(decided) <= set(classes.split(","))
    alone, together = (float(shown.split(f"error {part}")[1].split(" %")[0].split()[-1]) for part in ("alone", "after"))
    assert together <= alone
    assert "difference to the simulator" in shown
    assert shown.split("difference to the simulator")[1].split()[0] == "0"
    assert (tmp_path / "kept" / "agent-8.toml").exists()
    assert "exists already" in cli("live", "demo", "--keep", tmp_path / "kept", code=2).err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["init"], "give --team, or --topology"),
        (["init", "--topology", "ring"], "ring"),
        (["init", "--topology", "ring:3", "--bits", "4"], "bound"),
        (["init", "--topology", "ring:3", "--hosts", "a/b"], "a host is a name or an address"),
        (["init", "--topology", "ring:3", "--hosts", "[::1]"], "names and IPv4 addresses, not to ::1"),
        (["init", "--topology", "ring:3", "--hosts", "0.0.0.0"], "no address that neighbours can connect to"),
        (["init", "--topology", "ring:3", "--port", "65534"], "ports 65534 to 65536"),
        (
            ["init", "--topology", "ring:3", "--rule", "social-learning", "--bits", "4", "--bound", "2"],
            "take more bits",
        ),
        (["init", "--topology", "ring:3", "--seed", "99999999999999999999"], "talk.seed"),
        (["init", "--topology", "ring:3", "--port", "8400"], "overlap"),
        (["init", "--topology", "ring:3", "--classes", "a"], "two different names or more"),
        (["init", "--topology", "ring:3", "--classes", "a,b,a"], "two different names or more"),
        (["init", "--topology", "ring:3", "--score-bound", "0"], "bound"),
        (["init", "--topology", "exact"], "exact"),
        (["init", "--topology", "ring:5", "--rule", "ceca"], "Ceca is the rule of schedule.exact"),
        (["init", "--team", "nowhere"], "nowhere"),
        (["up", "nowhere"], "no such folder; collegium live init makes one"),
        (["status", "."], "has no agent-*.toml"),
        (["apply", "net", "--add", "agent-3", "--port", "7500"], "give --port and --http-port, or neither"),
    ],
)
def test_mistakes_get_a_sentence(cli, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "init":
        arguments = [*arguments, "--out", "net"]
    said = cli("live", *arguments, code=2).err
    assert sentence in said
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) <= 2


@pytest.mark.live
def test_a_copied_folder_neither_ends_nor_shows_the_agents_of_the_first(cli, tmp_path):
    net, copy = tmp_path / "net", tmp_path / "copy"
    cli("live", "init", "--topology", "ring:2", "--port", 0, "--http-port", 0, "--no-tls", "--out", net)
    try:
        cli("live", "up", net)
        shutil.copytree(net, copy)
        assert cli("live", "down", copy).out == "none was running\n"
        assert re.search(r"agent-\d ended at once: .*in use", cli("live", "up", copy, code=2).err)
        with (net / "agent-0.toml").open("a") as broken:
            broken.write("x = [")
        net.rename(tmp_path / "moved")
        assert cli("live", "down", tmp_path / "moved").out == "2 agents ended\n"
    finally:
        launcher.down(net if net.exists() else tmp_path / "moved")


@pytest.mark.live
def test_up_twice_at_once_starts_everybody_once(tmp_path):
    create(tmp_path / "net", policy.uniform(topology.ring(3)), None, NetworkSettings(port=0, http_port=0, tls=False))
    try:
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda _: launcher.up(tmp_path / "net", 120), range(2)))
        assert [member.pid for member in both[0]] == [member.pid for member in both[1]]
    finally:
        assert launcher.down(tmp_path / "net") == 3


@pytest.mark.live
def test_agents_are_processes_of_their_own(tmp_path):
    """Not children of whoever started them, a session, a name, a log and no input for each."""
    create(tmp_path / "net", policy.uniform(topology.ring(3)), None, NetworkSettings(port=0, http_port=0, tls=False))
    try:
        network = launcher.up(tmp_path / "net", 120)
        for k, member in enumerate(network):
            there = Path(f"/proc/{member.pid}")
            assert os.getsid(member.pid) == member.pid
            assert (there / "comm").read_text() == f"agent-{k}\n"
            assert [os.readlink(there / "fd" / str(fd)) for fd in (0, 2)] == ["/dev/null", str(member.log)]
            parent = int((there / "stat").read_text().rpartition(")")[2].split()[1])
            assert parent not in {os.getpid(), *(other.pid for other in network)}
    finally:
        assert launcher.down(tmp_path / "net") == 3


@pytest.mark.live
@pytest.mark.parametrize("last", [False, True])
def test_a_note_that_cannot_be_written_is_named_and_nothing_runs(tmp_path, last):
    net = tmp_path / "net"
    create(net, policy.uniform(topology.ring(3)), None, NetworkSettings(port=0, http_port=0, tls=False))
    (net / "run" / f"agent-{2 * last}.pid").mkdir(parents=True)
    with pytest.raises(LiveError, match=rf"agent-{2 * last} cannot be started \(Is a directory\): see .*/run"):
        launcher.up(net)
    wait_for(lambda: not any(member.pid for member in launcher.members(net)))
    logs = [member.log for member in launcher.members(net)]
    held = [str(fd.readlink()) for fd in Path("/proc").glob("[0-9]*/fd/2") if readable(fd)]
    assert not set(held) & {str(log) for log in logs}


def readable(link):
    with suppress(OSError):
        return bool(os.readlink(link))
    return False


@pytest.mark.live
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    net = tmp_path / "net"
    create(net, policy.uniform(topology.ring(3)), None, NetworkSettings(port=0, http_port=0, tls=False))
    (net / "run").symlink_to(tmp_path / "nowhere" / "run")
    with pytest.raises(LiveError, match=r"net cannot be locked against other commands: .*run"):
        launcher.up(net)


@pytest.mark.live
def test_why_an_agent_ended_at_once_is_said(tmp_path):
    net = tmp_path / "net"
    create(net, policy.uniform(topology.ring(3)), None, NetworkSettings(port=0, http_port=0, tls=False))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(launcher.members(net)[1].file.agent.listen.rpartition(":")[2])))
        taken.listen()
        with pytest.raises(
            LiveError, match=r"agent-1 ended at once: agent-1 cannot listen on tcp/127.0.0.1:\d+: .*in use"
        ):
            launcher.up(net)
    assert not any(member.pid for member in launcher.members(net))


def test_loading_an_agent_starts_no_thread():
    """Agents are forked from a process that has loaded everything: a thread would not be there after it."""
    program = "import collegium.live.process, os; print(len(os.listdir('/proc/self/task')))"
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # its own are ended and begun again around a fork
    ended = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert ended.stdout == "1\n"


@pytest.mark.live
@pytest.mark.parametrize("which", ["neighbours", "users"])
def test_an_agent_whose_port_is_taken_is_started_again_by_systemd(tmp_path, which):
    """Its unit does not restart what ends with 2: a mistake."""
    net = tmp_path / "net"
    create(net, policy.uniform(topology.ring(2)), None, NetworkSettings(port=0, http_port=0, tls=False))
    member = launcher.members(net)[0]
    port = member.file.http.port if which == "users" else int(member.file.agent.listen.rpartition(":")[2])
    command = [sys.executable, "-m", "collegium.live", str(member.path)]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "in use" in ended.stderr.splitlines()[-1]
    assert ended.returncode == 1


def test_renewing_says_how_long(cli, tmp_path):
    for name, options in {"with": (), "without": ("--no-tls",)}.items():
        cli("live", "init", "--topology", "ring:2", *options, "--out", tmp_path / name)
    assert "valid until 20" in cli("live", "renew", tmp_path / "with", "--days", 36500).out
    assert "without certificates" in cli("live", "renew", tmp_path / "without", code=2).err


def test_an_agent_without_a_file_ends_with_a_sentence(tmp_path):
    command = [sys.executable, "-m", "collegium", "live", "agent", str(tmp_path / "nowhere.toml")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.strip() == f"collegium: {tmp_path / 'nowhere.toml'}: No such file or directory"


def test_an_absent_word_may_be_held(cli, tmp_path):
    cli("live", "init", "--topology", "ring:3", "--absent", "hold", "--no-tls", "--out", tmp_path / "net")
    assert {member.file.talk.absent for member in launcher.members(tmp_path / "net")} == {"hold"}
