"""Accepted items that outlive the process."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from collegium import policy, topology
from collegium.errors import LiveError
from collegium.live import launcher
from collegium.live.answers import Evidence, ItemResult
from collegium.live.journal import Journal, JournaledAgent
from collegium.live.transport.base import Place
from collegium.live.transport.memory import Hub, MemoryTransport
from collegium.network import collaborate
from live_processes import running, wait_for

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
THREE = policy.uniform(topology.complete(3))


def decided(name: int | str, statistic: float) -> ItemResult:
    return ItemResult(name, "1", statistic, 1.0, True, Evidence(1, 1, []), 3, "given", [], [], 1.0, [1.0, statistic])


def test_what_is_accepted_is_there_until_it_is_decided(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    first = journal.accept([1], np.array([0.1]))
    journal.accept(["a", 1], np.array([0.2, 0.1]))
    journal.decide([(first, [decided(1, 0.1 + 0.2)])])
    journal.close()
    again = Journal(tmp_path / "j")
    assert [(name, score.tolist()) for name, score in again.unfinished()] == [(1, [0.1]), ("a", [0.2])]
    found = again.result(1)
    assert found is not None
    assert found.statistic == 0.1 + 0.2
    assert again.result("a") is None
    assert again.result(2) is None
    again.forget(time.time() + 1)
    assert [name for name, _ in again.unfinished()] == ["a", 1]
    assert again.result(1) is None
    again.close()


def test_it_survives_the_end_of_its_process_in_the_middle(tmp_path: Path) -> None:
    program = """if True:
        import os, sys, signal
        import numpy as np
        from pathlib import Path
        from collegium.live.journal import Journal
        journal = Journal(Path(sys.argv[1]))
        for i in range(1000):
            journal.accept([i], np.array([float(i)]))
            if i == 300:
                os.kill(os.getpid(), signal.SIGKILL)
    """
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path / "j")])
    assert ended.returncode == -signal.SIGKILL
    journal = Journal(tmp_path / "j")
    assert sorted(name for name, _ in journal.unfinished()) == list(range(301))
    journal.close()


def test_what_is_submitted_again_once_is_not_submitted_again_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even items that can never be decided, since another has their name."""
    monkeypatch.setattr("collegium.live.journal._SETTLE", 0.0)
    place = Place("0123456789abcdef", 0, "agent-0", "tcp/127.0.0.1:7400", (), (), None)
    before = Journal(tmp_path / "j")
    before.accept([1, "a"], np.array([0.5, -0.5]))
    before.accept([2], np.array([2000.0]))  # beyond what the agent takes now
    before.close()
    again = []
    for _ in range(2):
        journal = Journal(tmp_path / "j")
        again.append([name for name, _ in journal.unfinished()])
        agent = JournaledAgent(journal, place, {0: 1.0}, ["agent-0"], rounds=1, bound=1000.0)
        agent.start(MemoryTransport(place, Hub()))
        wait_for(lambda agent=agent: not any(map(agent.is_pending, (1, 2, "a"))))
        agent.stop()
        journal.forget(time.time() + 1)  # what was decided: the rest is what the next life submits again
        journal.close()
    assert again[0] == [1, "a", 2]
    assert again[1] == []


def test_a_file_that_is_no_journal_is_said(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("no database, but long enough to be looked at" * 40)
    with pytest.raises(LiveError, match="cannot be used"):
        Journal(tmp_path / "j")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE requests (x)")
    with pytest.raises(LiveError, match="cannot be used"):
        Journal(tmp_path / "other")


def test_items_accepted_before_all_agents_are_killed_are_answered(tmp_path: Path) -> None:
    n = 300
    scores = np.random.default_rng(0).normal(size=(n, 3))
    with running(tmp_path / "net", THREE, rounds=10, journal=True) as network:
        for k, member in enumerate(network):
            with member.client(60.0) as client:
                client.give(range(n), scores=scores[:, k])
        pids = [member.pid for member in network]
        for which in (signal.SIGSTOP, signal.SIGKILL):  # at once: who is killed last would decide without the others
            for pid in pids:
                assert pid is not None
                os.kill(pid, which)
        wait_for(lambda: all(member.pid is None for member in network))
        launcher.up(tmp_path / "net", wait=120)
        exact = collaborate(scores, THREE, 10).statistics[-1]
        for k, member in enumerate(network):
            with member.client(60.0) as client:
                for i in range(n):
                    found = client.result(i, wait=60)
                    assert found is not None, f"agent {k}, item {i} was never answered"
                    assert found.statistic == exact[i, k]
                    assert not found.evidence.missing
