"""Live networks within a test: agents of a policy, connected in memory or by Zenoh in this process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from collegium._serving.limits import ServiceSettings
from collegium._serving.server import Server
from collegium.live.agent import Agent
from collegium.live.http import app
from collegium.live.peers import Deadlines
from collegium.live.transport.base import Peer, Place, Transport
from collegium.live.transport.memory import Hub, MemoryTransport
from collegium.policy import Policy

PATIENT = Deadlines(longest=20.0, least=5.0, view=20.0, item=60.0)
"""For tests in which no message may count as lost, however busy the machine."""


def places(policy: Policy, endpoint: Callable[[int], str] = lambda k: f"memory/{k}") -> list[Place]:
    """Every agent's place in a network."""
    K, graph = policy.size, policy.graph
    peers = [Peer(k, f"agent-{k}", endpoint(k)) for k in range(K)]
    heard = [[int(l) for l in graph.neighbours(k) if l != k] for k in range(K)]
    return [
        Place(
            "c0ffee", k, f"agent-{k}", endpoint(k), tuple(peers[l] for l in heard[k]),
            tuple(peers[j] for j in range(K) if k in heard[j]), None,
        )
        for k in range(K)
    ]  # fmt: skip


def weights_of(policy: Policy, k: int) -> dict[int, float]:
    """Agent k's weights by number."""
    start, stop = policy.graph.indptr[k], policy.graph.indptr[k + 1]
    return dict(zip(policy.graph.indices[start:stop].tolist(), policy.weights[start:stop].tolist(), strict=True))


@contextlib.contextmanager
def in_memory(
    policy: Policy,
    wrap: Callable[[Transport, int], Transport] = lambda inner, k: inner,
    own: dict[int, dict[str, Any]] | None = None,
    **settings: Any,
) -> Iterator[list[Agent]]:
    """Agents connected by a hub, all present; own: settings that not all have."""
    hub = Hub()
    settings.setdefault("deadlines", PATIENT)
    names = [f"agent-{k}" for k in range(policy.size)]
    agents = [
        Agent(place, weights_of(policy, place.number), names, **settings, **(own or {}).get(place.number, {}))
        for place in places(policy)
    ]
    try:
        for agent in agents:
            agent.start(wrap(MemoryTransport(agent.place, hub), agent.number))
        wait_ready(agents)
        yield agents
    finally:
        for agent in agents:
            agent.stop()


def wait_ready(agents: list[Agent], seconds: float = 120.0) -> None:
    """Until every agent sees all its neighbours."""
    end = time.monotonic() + seconds
    while any(agent.why_not_ready() for agent in agents):
        assert time.monotonic() < end, [agent.why_not_ready() for agent in agents]
        time.sleep(0.01)


def decide(agents: list[Agent], scores: np.ndarray, names: Any = None, timeout: float = 120.0) -> np.ndarray:
    """Statistics of all rounds, shape (T+1, n, K) or (T+1, n, K, C), as the live agents report them."""
    names = list(range(len(scores))) if names is None else names
    futures = [agent.submit(names, scores[:, k], trace=True) for k, agent in enumerate(agents)]
    columns = [[outcome.trace for outcome in future.result(timeout)] for future in futures]
    return np.array(columns, np.float64).swapaxes(0, 2)


@contextlib.contextmanager
def served(agent: Agent, settings: ServiceSettings | None = None, **options: Any) -> Iterator[Server]:
    """The agent's port, open."""
    server = app.agent_server(agent, settings or ServiceSettings(), **options)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.wait_started(60)
        yield server
    finally:
        server.stop()
        thread.join(60)
        assert not thread.is_alive()
