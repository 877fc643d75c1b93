"""A live network within one process, against the simulator."""

from __future__ import annotations

import queue
import time
from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks.base import expect
from collegium.checks.runs import job, same
from collegium.errors import CheckError
from collegium.kernels.job import Job
from collegium.live.agent import Agent
from collegium.live.answers import ItemResult, Number
from collegium.live.engine import Limits
from collegium.live.peers import Deadlines
from collegium.live.transport.base import Peer, Place
from collegium.live.transport.memory import Hub, MemoryTransport
from collegium.network import run_job
from collegium.protocol import Rule
from collegium.schedule.base import Schedule

_ROUNDS = 6
_SECONDS = 30.0
"""Until a network that is well has long decided, however busy the machine."""
_DEADLINES = Deadlines(longest=2 * _SECONDS, least=2 * _SECONDS, view=2 * _SECONDS, item=2 * _SECONDS)
"""Nobody is asked again or given up: what a deadline would mend is a fault here."""


def equals_simulator(rule: Rule, policy: Schedule) -> None:
    """Raise unless agents of a live network have the simulator's statistics, bit for bit."""
    rule = rule.prepared(policy, _ROUNDS)
    one = job(rule, policy, rounds=_ROUNDS)
    simulated = run_job(one, rule)
    numbers = _statistics(one, policy, rule)
    same(simulated, simulated._replace(statistics=numbers), f"{rule}: simulator and live network differ on {policy}")


class _Watched(MemoryTransport):
    """In memory; what goes wrong when a frame is handled is raised, instead of ending a thread unseen."""

    def __init__(self, place: Place, hub: Hub, news: queue.SimpleQueue[Any]) -> None:
        super().__init__(place, hub)
        self._news = news

    def take(self, sender: int, frame: bytes) -> None:
        try:
            super().take(sender, frame)
        except Exception as problem:
            self._news.put((self.place.number, problem))


def _statistics(one: Job, policy: Schedule, rule: Rule) -> NDArray[np.float64]:
    """The statistics of every round at every agent, shape (T+1, n, K, 1)."""
    hub, news = Hub(), queue.SimpleQueue[Any]()
    agents = [
        Agent(
            place, dict(zip(seat.senders.tolist(), seat.weights.tolist(), strict=True)),
            [f"agent-{k}" for k in range(policy.size)], rule=rule, rounds=one.rounds,
            seed=one.seed, deadlines=_DEADLINES, limits=Limits(memory=1 << 20),
        )
        for place, seat in zip(_places(policy), policy.at(1), strict=True)
    ]  # fmt: skip
    transports = [_Watched(agent.place, hub, news) for agent in agents]
    end = time.monotonic() + _SECONDS
    try:
        for agent, transport in zip(agents, transports, strict=True):
            agent.on_presence = lambda number, is_there: news.put(None)
            agent.start(transport)
        while any(agent.why_not_ready() for agent in agents):
            _next(news, end, "agents did not meet")
        futures = [agent.submit(one.ids.tolist(), one.scores[:, k, 0], trace=True) for k, agent in enumerate(agents)]
        for future in futures:
            future.add_done_callback(lambda done: news.put(None))
        while not all(future.done() for future in futures):
            _next(news, end, f"{rule}: items were not decided")
        traces = [[_complete(result) for result in _results(future)] for future in futures]
    finally:
        for transport in transports:
            transport.presence = lambda number, is_there: None  # that they leave is no news
        for agent in agents:
            agent.stop()
    return np.array(traces, np.float64).transpose(2, 1, 0)[..., None]


def _next(news: queue.SimpleQueue[Any], end: float, what: str) -> None:
    """Wait until something happens; what went wrong in an agent is raised here."""
    try:
        happened = news.get(timeout=max(end - time.monotonic(), 0.0))
    except queue.Empty:
        raise CheckError(f"{what} within {_SECONDS:g} s in a live network") from None
    if happened is not None:
        number, problem = happened
        raise CheckError(f"live agent {number} raised {type(problem).__name__}: {problem}") from problem


def _results(future: Future[list[ItemResult]]) -> list[ItemResult]:
    return future.result(0)


def _complete(result: ItemResult) -> list[Number | None]:
    expect(not result.missed and result.trace is not None, f"item {result.id} missed messages of {result.missed}")
    assert result.trace is not None
    return result.trace


def _places(policy: Schedule) -> list[Place]:
    peers = [Peer(k, f"agent-{k}", f"memory/{k}") for k in range(policy.size)]
    return [
        Place(
            "c0ffee", k, peers[k].name, peers[k].endpoint,
            tuple(peers[l] for l in seat.senders.tolist() if l != k), tuple(peers[j] for j in seat.receivers.tolist()),
            None,
        )
        for k, seat in enumerate(policy.at(1))
    ]  # fmt: skip
