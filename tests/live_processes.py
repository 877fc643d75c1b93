"""Live networks of real processes, for tests: made in a folder, started, ended whatever happens."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from collegium.live import launcher
from collegium.live.answers import ItemResult, NeighbourStatus, Status
from collegium.live.folder import NetworkSettings, create
from collegium.live.launcher import Member
from collegium.live.peers import Deadlines
from collegium.policy import Policy
from collegium.schedule import Schedule
from collegium.team import Team

PATIENT = Deadlines(longest=30.0, least=5.0, view=30.0, item=90.0)


@contextlib.contextmanager
def running(
    folder: Path, policy: Policy | Schedule, team: Team | None = None, **settings: Any
) -> Iterator[list[Member]]:
    """Agents of a policy, one process each; without a team they are given scores."""
    settings.setdefault("deadlines", PATIENT)
    with created(folder, policy, team, **settings):
        try:
            yield launcher.up(folder, wait=120)
        finally:
            launcher.down(folder)


@contextlib.contextmanager
def created(folder: Path, policy: Policy | Schedule, team: Team | None = None, **settings: Any) -> Iterator[None]:
    """The files of a network, on ports that no other process is given meanwhile, whether its agents run or not."""
    with contextlib.ExitStack() as held:
        for tries_left in (2, 1, 0):
            create(folder, policy, team, NetworkSettings(port=0, http_port=0, **settings))
            try:
                for member in launcher.members(folder):
                    keep_port(held, int(member.file.agent.listen.rpartition(":")[2]))
                    keep_port(held, member.file.http.port)
                break
            except OSError:  # another process was given one of them in between
                held.close()
                shutil.rmtree(folder)
                if not tries_left:
                    raise
        yield


def keep_port(held: contextlib.ExitStack, port: int = 0) -> int:
    """Keep a free port, or this one, from those who ask for any: bound without listening, it can be listened on."""
    one = held.enter_context(socket.socket())
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", port))
    return int(one.getsockname()[1])


def process_of(member: Member) -> int:
    """The number of an agent's process, which runs: a signal to 0 would go to the tests themselves."""
    pid = member.pid
    assert pid is not None, f"{member.file.agent.name} ended by itself: {member.exit_message()}"
    return pid


def kill(member: Member) -> None:
    """End an agent's process in the middle; when this returns it has ended, and its ports are free."""
    os.kill(process_of(member), signal.SIGKILL)
    wait_for(lambda: member.pid is None)


def ask_all(
    network: Sequence[Member],
    scores: np.ndarray,
    names: Sequence[int] | None = None,
    batch: int = 1000,
    trace: bool = True,
    timeout: float = 150.0,
    who: Sequence[int] | None = None,
) -> list[list[ItemResult]]:
    """Every agent's results of all items; each agent is called from a thread of its own, batch after batch."""
    names = list(range(len(scores))) if names is None else list(names)
    who = range(len(network)) if who is None else who

    def ask(k: int) -> list[ItemResult]:
        with network[k].client(timeout) as client:
            answers = []
            for start in range(0, len(names), batch):
                part = slice(start, start + batch)
                answers += client.decide(names[part], scores=scores[part, k], trace=trace)
            return answers

    with ThreadPoolExecutor(len(network)) as pool:
        return list(pool.map(ask, who))


def statistics(answers: list[list[ItemResult]]) -> np.ndarray:
    """Shape (T+1, n, K), or (T+1, n, K, C)."""
    return np.array([[one.trace for one in column] for column in answers], float).swapaxes(0, 2)


def wait_for(condition: Callable[[], Any], seconds: float = 120.0, pause: float = 0.05) -> Any:
    """The condition's value, once it is true; pause: seconds between two looks."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(pause)
    return value


def status(member: Member) -> Status:
    with member.client(30.0) as client:
        return client.status()


def neighbour(member: Member, name: str) -> NeighbourStatus:
    """An agent's status of one of its neighbours."""
    return next(one for one in status(member).neighbours if one.name == name)
