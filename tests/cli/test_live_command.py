"""`collegium live` as a user meets it, with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from collegium.live import launcher


@pytest.mark.live
@pytest.mark.timeout(180)
def test_a_network_from_init_to_down(cli, tmp_path):
    net = tmp_path / "net"
    made = cli("live", "init", "--topology", "ring:3", "--port", 0, "--http-port", 0, "--out", net).out
    assert made.startswith("3 agents in ")
    try:
        assert "all 3 are up" in cli("live", "up", net, "--wait", 60).out
        shown = cli("live", "status", net).out
        assert shown.count("ready") == 3
        network = launcher.members(net)
        os.kill(network[1].pid, signal.SIGKILL)
        while network[1].pid is not None:
            launcher._reap()
        cut = json.loads(cli("live", "status", net, "--json", code=1).out)
        assert ["down" in one for one in cut] == [False, True, False]
        assert "down" in cli("live", "status", net, code=1).out
        assert cli("live", "down", net).out == "2 agents ended\n"
    finally:
        launcher.down(net)
    assert cli("live", "down", net).out == "none was running\n"


@pytest.mark.live
@pytest.mark.timeout(180)
def test_demo_finds_no_difference(cli, tmp_path):
    shown = cli("live", "demo", "--items", 20, "--keep", tmp_path / "kept").out
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
        (["init", "--topology", "ring:3", "--port", "8400"], "overlap"),
        (["init", "--team", "nowhere"], "nowhere"),
        (["up", "nowhere"], "no such folder; collegium live init makes one"),
        (["status", "."], "has no agent-*.toml"),
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


def test_an_agent_without_a_file_ends_with_a_sentence(tmp_path):
    command = [sys.executable, "-m", "collegium", "live", "agent", str(tmp_path / "nowhere.toml")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.strip() == f"collegium: {tmp_path / 'nowhere.toml'}: No such file or directory"


def test_an_absent_word_may_be_held(cli, tmp_path):
    cli("live", "init", "--topology", "ring:3", "--absent", "hold", "--no-tls", "--out", tmp_path / "net")
    assert {member.file.talk.absent for member in launcher.members(tmp_path / "net")} == {"hold"}
