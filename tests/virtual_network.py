"""Networks of real engines on a virtual clock: a test says what is lost, late or invented, and nothing sleeps."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from collegium.errors import LiveError
from collegium.live import results
from collegium.live.answers import ItemResult, NeighbourStatus, Status
from collegium.live.engine import Effects, Engine, Limits
from collegium.live.naming import identities
from collegium.live.table import DECIDED
from collegium.live.waiters import Ticket
from collegium.live.wire import Frame, Kind, encode
from collegium.policy import Policy
from live_networks import places, weights_of

Way = Callable[[int, int, bytes], float | None]
"""Seconds a frame takes from one agent to another; None if it is lost."""

_SMALL = Limits(memory=1 << 20)  # a table as large as a process has, for every agent of every test, is too much


class VirtualNetwork:
    """Engines of a policy, all connected; `way` may be replaced at any time.

    settings: of every engine; own: of one, by its number.
    """

    def __init__(
        self,
        policy: Policy,
        way: Way = lambda sender, receiver, data: 0.001,
        own: dict[int, dict[str, Any]] | None = None,
        engine: type[Engine] = Engine,
        **settings: Any,
    ) -> None:
        self.way, self.now, self.K, self._make = way, 1000.0, policy.size, engine
        self.names = [f"agent-{k}" for k in range(self.K)]
        self._places, self._weights = places(policy), [weights_of(policy, k) for k in range(self.K)]
        self._settings = [{**settings, **(own or {}).get(k, {})} for k in range(self.K)]
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._wakes = [math.inf] * self.K
        self.log: list[tuple[int, str]] = []
        """Who logged what."""
        self.frames: Counter[str] = Counter()
        """Frames sent, by kind."""
        self.bytes = 0
        self.has_timers = True
        """Without them a network must still do all that needs no deadline."""
        self.gone: set[int] = set()
        self.engines = [self._engine(k, 7 * k) for k in range(self.K)]
        for k in range(self.K):
            self._meet(k)

    def _engine(self, k: int, first_handle: int) -> Engine:
        settings = {"first_handle": first_handle, "now": self.now, "limits": _SMALL, **self._settings[k]}
        return self._make(self._places[k], self._weights[k], self.names, **settings)

    def _meet(self, k: int) -> None:
        for peer in self._places[k].neighbours:
            if peer.number not in self.gone:
                self.presence(k, peer.number, True)

    # ── what tests do ─────────────────────────────────────────────────────────────────────────────────────────────

    def submit(self, k: int, names: Sequence[int | str], scores: Any) -> Ticket:
        """An agent's own scores of items."""
        try:
            ticket, effects = self.engines[k].submit(names, np.asarray(scores, np.float64), True, self.now)
        except LiveError:
            self._perform(k, self.engines[k].receive((), self.now))
            raise
        self._perform(k, effects)
        return ticket

    def decide(self, scores: Any, names: Any = None, within: float = 300.0) -> np.ndarray:
        """Every agent gets all items at once: statistics of all rounds, shape (T+1, n, K) or (T+1, n, K, d)."""
        scores = np.asarray(scores, np.float64)
        names = list(range(len(scores))) if names is None else names
        tickets = [self.submit(k, names, scores[:, k]) for k in range(self.K)]
        self.until(lambda: not any(ticket.open for ticket in tickets), within)
        traces = np.array([[one.trace for one in outcome(ticket)] for ticket in tickets], np.float64)
        return np.moveaxis(traces, (0, 1, 2), (2, 1, 0))

    def presence(self, k: int, number: int, is_there: bool) -> None:
        """An agent sees another come or go."""
        self._perform(k, self.engines[k].presence(number, is_there, self.now))

    def leave(self, k: int) -> None:
        """An agent is gone, and its neighbours are told."""
        self.gone.add(k)
        for peer in self._places[k].neighbours:
            self.presence(peer.number, k, False)

    def restart(self, k: int, first_handle: int = 12345) -> None:
        """It comes back, without memory."""
        self.gone.discard(k)
        self.engines[k], self._wakes[k] = self._engine(k, first_handle), math.inf
        self._meet(k)
        for peer in self._places[k].neighbours:
            self.presence(peer.number, k, True)

    def say(self, sender: int, receiver: int, frame: Frame | bytes) -> None:
        """A frame that seems to come from a neighbour arrives now."""
        data = frame if isinstance(frame, bytes) else encode(frame, self.engines[receiver].dialect)
        self._perform(receiver, self.engines[receiver].receive([(sender, data)], self.now))

    def run(self, seconds: float) -> None:
        """So much time passes."""
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self._next()
        self.now = end

    def until(self, condition: Callable[[], bool], within: float = 300.0) -> float:
        """Time passes until something is so; how much."""
        begun = self.now
        while not condition():
            assert self._events, "nothing happens any more"
            assert self._events[0][0] <= begun + within, f"not within {within} s"
            self._next()
        return self.now - begun

    def rest(self) -> float:
        """Time passes until nothing happens any more; how much."""
        return self.until(lambda: not self._events)

    # ── what they see ─────────────────────────────────────────────────────────────────────────────────────────────

    def status(self, k: int) -> Status:
        return results.status(self.engines[k], self.now, 0, 0)

    def neighbour(self, k: int, number: int) -> NeighbourStatus:
        """One agent as another sees it."""
        (one,) = [one for one in self.status(k).neighbours if one.number == number]
        return one

    def result(self, k: int, name: int | str) -> ItemResult | None:
        """The result of an item, if it is decided and remembered."""
        table = self.engines[k].table
        row = table.find(int(identities([name])[0]))
        if row < 0 or table.state[row] != DECIDED:
            return None
        return self.engines[k].results([name], np.array([row]), True)[0]

    def has(self, k: int, name: int | str) -> bool:
        """Whether an item is in hand or remembered."""
        return self.engines[k].table.find(int(identities([name])[0])) >= 0

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────────

    def at(self, time: float, event: Callable[[], None]) -> None:
        """Something happens at a time."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, event))

    def _next(self) -> None:
        self.now, _, event = heapq.heappop(self._events)
        event()

    def _perform(self, k: int, effects: Effects) -> None:
        self.log += [(k, text) for _, text in effects.log]
        for to, data in effects.frames:
            for receiver in [peer.number for peer in self._places[k].audience] if to is None else [to]:
                self._carry(k, receiver, data)
        if self.has_timers and effects.wake < self._wakes[k]:
            self._wakes[k] = time = effects.wake
            engine = self.engines[k]
            self.at(max(time, self.now), lambda: self._tick(k, engine, time))

    def _carry(self, sender: int, receiver: int, data: bytes) -> None:
        if sender in self.gone:
            return
        self.frames[Kind(data[1]).name] += 1
        self.bytes += len(data)
        seconds = self.way(sender, receiver, data)
        if seconds is not None:
            self.at(self.now + seconds, lambda: self._arrive(sender, receiver, data))

    def _arrive(self, sender: int, receiver: int, data: bytes) -> None:
        if receiver not in self.gone:
            self._perform(receiver, self.engines[receiver].receive([(sender, data)], self.now))

    def _tick(self, k: int, engine: Engine, time: float) -> None:
        if self.engines[k] is engine and k not in self.gone and self._wakes[k] == time:
            self._wakes[k] = math.inf
            self._perform(k, engine.tick(self.now))


def outcome(ticket: Ticket) -> list[ItemResult]:
    """The results of a request that is done."""
    assert not ticket.error, ticket.error
    assert not ticket.open
    return [one for one in ticket.results if one is not None]


def is_message(data: bytes) -> bool:
    return data[1] == Kind.ROUND
