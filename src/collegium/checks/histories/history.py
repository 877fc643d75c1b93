"""One history: engines of a network on a virtual clock, what happens to them, and what must hold after every event."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks.base import expect
from collegium.checks.histories.clock import Clock
from collegium.checks.histories.plans import NETWORKS, RULES, Fault, Plan
from collegium.errors import LiveError
from collegium.live.engine import Effects, Engine, Limits
from collegium.live.peers import Deadlines
from collegium.live.table import ANNOUNCED, RUNNING, Rows
from collegium.live.transport.base import Peer, Place
from collegium.live.waiters import Ticket
from collegium.live.wire import Kind, decode, encode
from collegium.network import collaborate

DEADLINES = Deadlines(longest=1.0, least=0.1, view=0.5, item=6.0)
_LEASE = 2.0  # seconds after which a silent process counts as gone


class _Watched(Engine):
    """An engine that shows what it decides."""

    on_decided: Callable[[Rows, float], None]

    def _decided(self, rows: Rows, now: float) -> None:
        self.on_decided(rows, now)
        super()._decided(rows, now)


@dataclass
class _Host:
    """One agent: its engine, which may die, and its clock."""

    engine: _Watched
    place: Place
    offset: float
    pace: float
    is_up: bool = True
    is_paused: bool = False
    life: int = 0
    wake: float = math.inf
    kept: list[Callable[[], None]] = field(default_factory=list)
    """What happens to a paused one happens when it goes on."""
    tickets: list[tuple[Ticket, float]] = field(default_factory=list)
    decided: set[int] = field(default_factory=set)


class History:
    """A plan, played; two may share a clock."""

    def __init__(self, plan: Plan, clock: Clock | None = None) -> None:
        self.plan, self.clock = plan, clock or Clock()
        self.policy, self.rule = NETWORKS[plan.network], RULES[plan.rule]
        self.K = self.policy.size
        self._chance = random.Random(plan.seed)
        self._digest = hashlib.blake2b(digest_size=16)
        self._seats = self.policy.at(1)
        self._peers = [Peer(k, f"agent-{k}", "") for k in range(self.K)]
        self.is_honest = not any(fault.kind == "liar" for fault in plan.faults)
        self.hosts = [self._host(k) for k in range(self.K)]
        self._refused: set[tuple[int, int]] = set()
        self.results: dict[tuple[int, int], Any] = {}
        self.refusals = 0
        self.scores = np.array([[self._score(i, k) for k in range(self.K)] for i in range(plan.items)])

    def _score(self, item: int, k: int) -> list[float]:
        """A coordinate for each agent, which only its view makes positive, and one that makes the sum zero."""
        value = 1.0 + self._chance.randrange(8) / 8
        return [value if l == k else 0.0 for l in range(self.K)] + [-value]

    def _host(self, k: int, life: int = 0) -> _Host:
        seat = self._seats[k]
        heard = tuple(self._peers[l] for l in seat.senders.tolist() if l != k)
        audience = tuple(self._peers[j] for j in seat.receivers.tolist())
        place = Place("c0ffee", k, f"agent-{k}", "", heard, audience, None)
        skew = self.plan.skew
        host = _Host(
            _Watched.__new__(_Watched), place, self._chance.uniform(0, 1e6), 1 + self._chance.uniform(-skew, skew)
        )
        host.life = life
        host.engine = _Watched(
            place,
            dict(zip(seat.senders.tolist(), seat.weights.tolist(), strict=True)),
            [peer.name for peer in self._peers],
            rule=self.rule,
            rounds=self.plan.rounds,
            classes=tuple(range(self.K + 1)),
            deadlines=DEADLINES,
            limits=Limits(memory=1, pending=self.plan.pending),
            first_handle=self._chance.getrandbits(32),
            now=self._local(host),
        )
        host.engine.on_decided = partial(self._decided, host)
        return host

    def _local(self, host: _Host) -> float:
        return host.offset + host.pace * self.now

    @property
    def now(self) -> float:
        """The time."""
        return self.clock.now

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> str:
        """Play it to its end; a digest of everything that was sent and answered."""
        self.connect()
        for fault in self.plan.faults:
            self.clock.at(fault.begin, partial(self.fault, fault, True))
            self.clock.at(fault.end, partial(self.fault, fault, False))
        self._submit_all()
        self.clock.run()
        self.check_end()
        if self.plan.is_exact or self.plan.is_only_restarted:
            self._equals_simulator()
        return self._digest.hexdigest()

    def connect(self) -> None:
        """All neighbours are connected."""
        for k, other in self._pairs():
            self._presence(k, other, True)

    def _submit_all(self) -> None:
        items = list(range(self.plan.items))
        for k in range(self.K):
            for b in range(self.plan.batches):
                batch = items[b :: self.plan.batches]
                time = self.plan.start + self._chance.uniform(0.0, 0.05)
                if self._chance.random() < self.plan.missing:
                    if self._chance.random() < 0.5:
                        continue
                    time += self._chance.uniform(0.0, 3.0)
                if batch:
                    self.clock.at(time, partial(self.submit, k, batch))

    def submit(self, k: int, items: list[int]) -> None:
        """Give an agent its scores of items, again and again until it takes them, as a client does."""
        host = self.hosts[k]
        if self.plan.is_only_restarted and (not host.is_up or host.engine.is_draining):
            self.clock.at(self.now + 0.1, partial(self.submit, k, items))
            return

        def submit() -> None:
            try:
                ticket, effects = host.engine.submit(items, self.scores[items, k], True, self._local(host))
            except LiveError:
                self.refusals += 1
                self.clock.at(self.now + 0.2, partial(self.submit, k, items))
                effects = host.engine.receive((), self._local(host))
            else:
                host.tickets.append((ticket, self.now))
            self._perform(k, effects)

        self._on(k, submit)

    def _on(self, k: int, action: Callable[[], None]) -> None:
        """An action of an agent, if it is there; later, if it is paused."""
        host = self.hosts[k]
        if host.is_paused:
            host.kept.append(lambda: self._on(k, action))
        elif host.is_up:
            action()
            self._check(host)

    def _call(self, k: int, method: str, *given: Any) -> None:
        """Call an agent's engine, if it is there, and do what it wants done."""

        def call() -> None:
            host = self.hosts[k]
            self._perform(k, getattr(host.engine, method)(*given, self._local(host)))

        self._on(k, call)

    def _perform(self, k: int, effects: Effects) -> None:
        host = self.hosts[k]
        for to, data in effects.frames:
            receivers = [peer.number for peer in host.place.audience] if to is None else [to]
            for receiver in receivers:
                self._carry(k, receiver, data)
        for ticket in effects.completed:
            self._digest.update(repr((k, ticket.names, ticket.error, ticket.results)).encode())
            expect(not ticket.error, f"agent {k}: {ticket.error}")
            for result in ticket.results:
                expect(result is not None, f"agent {k} completed a request without all its results")
                self.results[k, int(result.id)] = result  # type: ignore[union-attr]
        if effects.wake < math.inf and not self.plan.is_healthy:
            time = max((effects.wake - host.offset) / host.pace, self.now) + 1e-9
            if time < host.wake:
                host.wake = time
                self.clock.at(time, partial(self._tick, k, host, time))

    def _tick(self, k: int, host: _Host, time: float) -> None:
        if self.hosts[k] is host and host.wake == time:
            host.wake = math.inf
            self._call(k, "tick")

    def _carry(self, sender: int, receiver: int, data: bytes) -> None:
        plan, chance = self.plan, self._chance
        self._digest.update(data)
        if self._is_cut(sender, receiver) or chance.random() < plan.loss:
            return
        delay = 0.002
        for fault in plan.faults:
            if fault.kind == "renew" and fault.agent in (sender, receiver) and fault.begin <= self.now < fault.end:
                return
            if fault.agent == sender and fault.begin <= self.now < fault.end:
                if fault.kind == "mute" and data[1] == Kind.ROUND:
                    return
                if fault.kind == "slow":
                    delay += 0.3
                if fault.kind == "liar":
                    data = self._lie(sender, data)
        for _ in range(2 if chance.random() < plan.duplicate else 1):
            when = self.now + delay + chance.uniform(0.0, plan.jitter)
            self.clock.at(when, partial(self._receive, receiver, sender, data))

    def _lie(self, sender: int, data: bytes) -> bytes:
        frame = decode(data, self.hosts[sender].engine.dialect)
        if frame.kind is not Kind.ROUND or not frame.values.size:
            return data
        everybody = (1 << self.K) - 1
        values = np.asarray(frame.values + 1.0, np.float64)
        lie = frame._replace(values=values, sets=[everybody] * len(frame.sets))
        return encode(lie, self.hosts[sender].engine.dialect)

    def _receive(self, k: int, sender: int, data: bytes) -> None:
        if not self._is_cut(sender, k) and (k, sender) not in self._refused:
            self._call(k, "receive", [(sender, data)])

    def _presence(self, k: int, number: int, is_there: bool) -> None:
        self._call(k, "presence", number, is_there)

    def _is_cut(self, a: int, b: int) -> bool:
        return any(
            fault.kind == "partition"
            and fault.begin <= self.now < fault.end
            and (a <= fault.agent) != (b <= fault.agent)
            for fault in self.plan.faults
        )

    def _restart(self, k: int, seconds: float) -> None:
        """An agent that is asked to stop goes when it has finished what it has."""
        host = self.hosts[k]
        if not host.engine.is_draining:
            host.engine.drain()
            self._say_going(k)
        if host.engine.mine or len(host.engine.backlog):
            self.clock.at(self.now + 0.02, partial(self._restart, k, seconds))
            return
        host.is_up = False
        self._say_going(k)
        self.clock.at(self.now + seconds, partial(self._begin_again, k))

    def _say_going(self, k: int) -> None:
        for peer in self.hosts[k].place.neighbours:
            self._call(peer.number, "going", k)

    def _begin_again(self, k: int) -> None:
        self.hosts[k] = self._host(k, self.hosts[k].life + 1)
        for peer in self.hosts[k].place.neighbours:
            self._presence(peer.number, k, True)
            self._presence(k, peer.number, True)

    def _refuse(self, k: int, agent: int) -> None:
        """An agent learns that another was revoked."""
        self._refused.add((k, agent))
        self._presence(k, agent, False)
        self._presence(agent, k, False)  # its link is closed

    def fault(self, fault: Fault, begins: bool) -> None:
        """Begin or end what happens to an agent."""
        host = self.hosts[fault.agent]
        if fault.kind == "restart" and begins:
            self._restart(fault.agent, fault.end - fault.begin)
        if fault.kind == "revoke" and begins:
            for peer in host.place.neighbours:
                when = self._chance.uniform(fault.begin, fault.end)
                self.clock.at(when, partial(self._refuse, peer.number, fault.agent))
        if fault.kind == "pause" and host.is_up:
            host.is_paused = begins
            if not begins:
                kept, host.kept = host.kept, []
                for event in kept:
                    event()
        elif fault.kind == "crash":
            if begins:
                host.is_up, host.is_paused, host.kept = False, False, []
                self._gone(fault.agent, self._chance.choice((0.0, _LEASE)))
            elif not host.is_up:
                self.hosts[fault.agent] = self._host(fault.agent, host.life + 1)
                for peer in host.place.neighbours:
                    if self.hosts[peer.number].is_up and not self._is_cut(fault.agent, peer.number):
                        self._presence(peer.number, fault.agent, False)
                        self._presence(peer.number, fault.agent, True)
                        self._presence(fault.agent, peer.number, True)
        elif fault.kind == "partition":
            for k, other in self._pairs():
                if (k <= fault.agent) != (other <= fault.agent) and self.hosts[other].is_up:
                    if begins:
                        self.clock.at(self.now + _LEASE, partial(self._lose, k, other))
                    elif not self._is_cut(k, other):
                        self._presence(k, other, True)

    def _lose(self, k: int, number: int) -> None:
        """An agent notices that it cannot reach another, if that is still so."""
        if self._is_cut(k, number):
            self._presence(k, number, False)

    def _gone(self, number: int, after: float) -> None:
        life = self.hosts[number].life

        def noticed() -> None:
            if self.hosts[number].life == life and not self.hosts[number].is_up:
                for peer in self.hosts[number].place.neighbours:
                    self._presence(peer.number, number, False)

        self.clock.at(self.now + after, noticed)

    def _pairs(self) -> list[tuple[int, int]]:
        return [(k, peer.number) for k in range(self.K) for peer in self.hosts[k].place.neighbours]

    # ── invariants ────────────────────────────────────────────────────────────────────────────────────────────────

    def _decided(self, host: _Host, rows: Rows, now: float) -> None:
        engine, table = host.engine, host.engine.table
        for row in rows.tolist():
            item = table.id.item(row)
            expect(item not in host.decided, f"{engine.name} decided item {item:x} twice")
            host.decided.add(item)
            took = now - table.born.item(row)
            expect(took <= DEADLINES.item + DEADLINES.least, f"{engine.name} took {took:.2f} s for item {item:x}")
            for fault in self.plan.faults:
                if fault.kind == "revoke" and fault.end < self.plan.start and engine.number != fault.agent:
                    counted = engine.progress.sets.members[table.evidence[row]] >> fault.agent & 1
                    expect(not counted, f"{engine.name} counts agent-{fault.agent}, which was revoked before")
            if self.is_honest:
                inside = self._inside(table.trace[table.done[row], row])
                claimed = engine.progress.sets.members[table.evidence[row]]
                expect(not claimed & ~inside, f"{engine.name} claims views {claimed:b} and has {inside:b}")
                expect(claimed == inside, f"{engine.name} knows of views {claimed:b} and has {inside:b}")

    def _inside(self, statistic: NDArray[np.float64]) -> int:
        return sum(1 << k for k in range(self.K) if statistic[k] > 0)

    def _check(self, host: _Host) -> None:
        engine, table = host.engine, host.engine.table
        states = table.state
        counts = np.bincount(states, minlength=4)
        active = int(counts[ANNOUNCED] + counts[RUNNING])
        expect(active == table.active, f"{engine.name} counts {table.active} items in hand and has {active}")
        unused = np.bincount(table.free(table.room()), minlength=table.capacity)
        in_hand = (states == ANNOUNCED) | (states == RUNNING)
        expect(bool((unused == ~in_hand).all()), f"{engine.name} has lost rows")
        expect(len(engine.backlog) <= engine.backlog.most, f"{engine.name} lets too many items wait")

    def check_end(self) -> None:
        """Nothing is left to be done, at any agent that is up."""
        for host in self.hosts:
            if not host.is_up:
                continue
            engine = host.engine
            expect(not engine.table.active, f"{engine.name} still has {engine.table.active} items in hand")
            for ticket, since in host.tickets:
                expect(not ticket.open, f"{engine.name} never answered the request of {since:.2f} s")

    def _equals_simulator(self) -> None:
        items = list(range(self.plan.items))
        run = collaborate(self.scores, self.policy, self.plan.rounds, self.rule, items=items)
        for (k, item), result in self.results.items():
            done = result.rounds
            expect(done == self.plan.rounds, f"agent {k}, item {item} was decided after {done} rounds")
            got = np.array(result.trace)
            same = np.array_equal(got, run.statistics[:, item, k])
            expect(same, f"agent {k}, item {item}: {got} is not the simulator's {run.statistics[:, item, k]}")
            expect(not result.missed, f"agent {k}, item {item} missed {result.missed} though nothing failed")
        expect(len(self.results) == self.K * len(items), "some items were never answered though nothing failed")
