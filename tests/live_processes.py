"""Live networks of real processes, for tests: made in a folder, started, ended whatever happens."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from collegium.live import launcher
from collegium.live.agent import Outcome
from collegium.live.folder import Wishes, create
from collegium.live.launcher import Member
from collegium.live.peers import Deadlines
from collegium.policy import Policy

PATIENT = Deadlines(longest=30.0, least=5.0, view=30.0)


@contextlib.contextmanager
def running(folder: Path, policy: Policy, **wishes: Any) -> Iterator[list[Member]]:
    """Agents of a policy that are given scores, one process each."""
    wishes.setdefault("deadlines", PATIENT)
    create(folder, policy, None, Wishes(port=0, http_port=0, **wishes))
    try:
        yield launcher.up(folder, wait=60)
    finally:
        launcher.down(folder)


def ask_all(
    network: Sequence[Member],
    scores: np.ndarray,
    names: Sequence[int] | None = None,
    batch: int = 1000,
    trace: bool = True,
    timeout: float = 90.0,
    who: Sequence[int] | None = None,
) -> list[list[Outcome]]:
    """Every agent's outcomes of all items; each agent is asked from a thread of its own, batch after batch."""
    names = list(range(len(scores))) if names is None else list(names)
    who = range(len(network)) if who is None else who

    def ask(k: int) -> list[Outcome]:
        with network[k].client(timeout) as client:
            answers = []
            for start in range(0, len(names), batch):
                part = slice(start, start + batch)
                answers += client.decide(names[part], scores=scores[part, k], trace=trace)
            return answers

    with ThreadPoolExecutor(len(network)) as pool:
        return list(pool.map(ask, who))


def statistics(answers: list[list[Outcome]]) -> np.ndarray:
    """Shape (T+1, n, K)."""
    return np.array([[one.trace for one in column] for column in answers], float).transpose(2, 1, 0)


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """The condition's value, once it is true."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)
    return value


def status(member: Member) -> dict[str, Any]:
    with member.client(10.0) as client:
        return client.status()


def neighbour(member: Member, name: str) -> dict[str, Any]:
    """What an agent says of one of its neighbours."""
    return next(one for one in status(member)["neighbours"] if one["name"] == name)
