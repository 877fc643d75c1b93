"""Simulated histories of live networks: real engines, a virtual clock, seeded faults, invariants after every event.

    histories.run(histories.plan(7))

A plan says what happens; a history plays it and raises `CheckError` at the first event after which an invariant is
broken:

- an item is decided at most once in an agent's life;
- every item that was accepted is decided by its deadline, or its request is told why not;
- evidence is never overstated: every score has a coordinate of its own, which shows whose views are in a statistic;
- what an agent keeps stays within its limits;
- where nothing fails, the numbers are the simulator's, even if one frame in twenty is lost on quick links; and if none
  is lost and none overtakes another, nothing waits for a timer.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks.base import expect
from collegium.errors import CheckError, LiveError
from collegium.live.engine import Effects, Engine, Limits
from collegium.live.peers import Deadlines
from collegium.live.table import ANNOUNCED, RUNNING, Rows
from collegium.live.transport.base import Peer, Place
from collegium.live.waiters import Ticket
from collegium.live.wire import Kind, decode, encode
from collegium.network import collaborate
from collegium.policy import Policy, metropolis, uniform
from collegium.protocol import DeGroot, DeltaTrigger, LabelStability, Rule, SocialLearning
from collegium.topology import Graph, complete, grid, ring

DEADLINES = Deadlines(longest=1.0, least=0.1, view=0.5, item=6.0)
RULES: Sequence[Rule] = (DeGroot(), DeltaTrigger(0.2), LabelStability(1, 0.1), SocialLearning())
_LEASE = 2.0  # seconds after which a silent process counts as gone


def networks() -> list[Policy]:
    """Small networks of every kind."""
    return [
        uniform(complete(2)),
        metropolis(grid(1, 3)),
        uniform(ring(4)),
        uniform(complete(4)),
        uniform(Graph.from_links(4, [1, 2, 0, 0, 3], [0, 0, 1, 3, 2])),
        metropolis(grid(2, 3)),
    ]


_NETWORKS = networks()


@dataclass(frozen=True)
class Fault:
    """Something that happens to one agent (or, for `partition`, to those with smaller numbers) for some time."""

    kind: str
    """crash (memory is lost), pause (it is kept), partition, mute, slow, liar."""
    agent: int
    begin: float
    end: float


KINDS = ("crash", "pause", "partition", "mute", "slow", "liar")


@dataclass(frozen=True)
class Plan:
    """What happens in a history; chances are per frame."""

    seed: int = 0
    network: int = 2
    rule: int = 0
    rounds: int = 3
    items: int = 2
    batches: int = 1
    """In how many requests the items come."""
    missing: float = 0.0
    """Chance that an agent never gets its view of an item, or gets it late."""
    loss: float = 0.0
    duplicate: float = 0.0
    jitter: float = 0.0
    """Seconds by which frames may overtake each other."""
    skew: float = 0.0
    """How much faster or slower clocks may run."""
    pending: int | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether at most a few frames are lost, and there is time to ask for them: the links are quick."""
        is_lossless = not self.loss or (self.loss <= 0.05 and self.jitter <= 0.03)
        return is_lossless and not (self.missing or self.faults or self.skew or self.pending)

    @property
    def is_healthy(self) -> bool:
        """Whether all frames come, and in order: then nothing waits for a timer."""
        return self.is_exact and not self.loss and not self.jitter


def plan(seed: int) -> Plan:
    """A plan drawn from a seed: about a tenth of them healthy."""
    chance = random.Random(seed)
    one = Plan(
        seed,
        chance.randrange(len(_NETWORKS)),
        chance.choice((0, 0, 1, 2, 3)),
        chance.randint(1, 4),
        chance.randint(1, 3),
        chance.randint(1, 2),
    )
    if chance.random() < 0.1:
        return replace(one, duplicate=chance.choice((0.0, 0.3)), jitter=chance.choice((0.0, 0.03)))
    faults = []
    K = _NETWORKS[one.network].size
    for _ in range(chance.choice((0, 1, 1, 2))):
        begin = chance.choice((0.0, chance.uniform(0.0, 0.2), chance.uniform(0.0, 2.0)))
        faults.append(Fault(chance.choice(KINDS), chance.randrange(K), begin, begin + chance.choice((0.3, 1.5, 4.0))))
    faulted = replace(
        one,
        missing=chance.choice((0.0, 0.0, 0.2)),
        loss=chance.choice((0.0, 0.0, 0.05, 0.2)),
        duplicate=chance.choice((0.0, 0.1)),
        jitter=chance.choice((0.0, 0.01, 0.2)),
        skew=chance.choice((0.0, 0.0, 0.1)),
        pending=chance.choice((None, None, None, 1)),
        faults=tuple(faults),
    )
    # Of six items one runs and four wait: some requests are refused.
    return replace(faulted, items=6, batches=2) if faulted.pending and chance.random() < 0.5 else faulted


class _Watched(Engine):
    """An engine that shows what it decides."""

    on_decided: Callable[[_Watched, Rows, float], None]

    def _decided(self, rows: Rows, now: float) -> None:
        self.on_decided(self, rows, now)
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
    """A plan, played."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.now = plan, 0.0
        self.policy, self.rule = _NETWORKS[plan.network], RULES[plan.rule]
        self.K = self.policy.size
        self._chance = random.Random(plan.seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._digest = hashlib.blake2b(digest_size=16)
        self._seats = self.policy.at(1)
        self._peers = [Peer(k, f"agent-{k}", "") for k in range(self.K)]
        self.is_honest = not any(fault.kind == "liar" for fault in plan.faults)
        self.hosts = [self._host(k) for k in range(self.K)]
        self.results: dict[tuple[int, int], Any] = {}
        self.refusals = 0
        self.scores = np.array([[self._score(i, k) for k in range(self.K)] for i in range(plan.items)])

    def _score(self, item: int, k: int) -> list[float]:
        """A coordinate for each agent, which only its view makes positive, and one that makes the sum zero."""
        value = 1.0 + self._chance.randrange(8) / 8
        return [value if l == k else 0.0 for l in range(self.K)] + [-value]

    def _host(self, k: int, life: int = 0) -> _Host:
        seat = self._seats[k]
        place = Place(
            "c0ffee",
            k,
            f"agent-{k}",
            "",
            tuple(self._peers[l] for l in seat.senders.tolist() if l != k),
            tuple(self._peers[j] for j in seat.receivers.tolist()),
            None,
        )
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
        host.engine.on_decided = lambda engine, rows, now: self._decided(host, rows, now)
        return host

    def _local(self, host: _Host) -> float:
        return host.offset + host.pace * self.now

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────────

    def at(self, time: float, event: Callable[[], None]) -> None:
        """Something happens at a time."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, event))

    def run(self) -> str:
        """Play it to its end; a digest of everything that was sent and answered."""
        for k in range(self.K):
            for peer in self.hosts[k].place.neighbours:
                self._presence(k, peer.number, True)
        for fault in self.plan.faults:
            self.at(fault.begin, lambda fault=fault: self._fault(fault, True))  # type: ignore[misc]
            self.at(fault.end, lambda fault=fault: self._fault(fault, False))  # type: ignore[misc]
        self._submit_all()
        while self._events:
            self.now, _, event = heapq.heappop(self._events)
            expect(self.now < 120.0, "the network never comes to rest")
            event()
        self._end()
        return self._digest.hexdigest()

    def _submit_all(self) -> None:
        items = list(range(self.plan.items))
        for k in range(self.K):
            for b in range(self.plan.batches):
                batch = items[b :: self.plan.batches]
                time = self._chance.uniform(0.0, 0.05)
                if self._chance.random() < self.plan.missing:
                    if self._chance.random() < 0.5:
                        continue
                    time += self._chance.uniform(0.0, 3.0)
                if batch:
                    self.at(time, lambda k=k, batch=batch: self._submit(k, batch))  # type: ignore[misc]

    def _submit(self, k: int, items: list[int]) -> None:
        host = self.hosts[k]

        def submit() -> None:
            try:
                ticket, effects = host.engine.submit(items, self.scores[items, k], True, self._local(host))
            except LiveError:
                self.refusals += 1
                self.at(self.now + 0.2, lambda: self._submit(k, items))  # refused: as a client does, once more
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
                self.at(time, lambda: self._tick(k, host, time))

    def _tick(self, k: int, host: _Host, time: float) -> None:
        if self.hosts[k] is host and host.wake == time:
            host.wake = math.inf
            self._on(k, lambda: self._perform(k, host.engine.tick(self._local(host))))

    def _carry(self, sender: int, receiver: int, data: bytes) -> None:
        plan, chance = self.plan, self._chance
        self._digest.update(data)
        if self._is_cut(sender, receiver) or chance.random() < plan.loss:
            return
        delay = 0.002
        for fault in plan.faults:
            if fault.agent == sender and fault.begin <= self.now < fault.end:
                if fault.kind == "mute" and data[1] == Kind.ROUND:
                    return
                if fault.kind == "slow":
                    delay += 0.3
                if fault.kind == "liar":
                    data = self._lie(sender, data)
        for _ in range(2 if chance.random() < plan.duplicate else 1):
            when = self.now + delay + chance.uniform(0.0, plan.jitter)
            self.at(when, lambda: self._receive(receiver, sender, data))

    def _lie(self, sender: int, data: bytes) -> bytes:
        frame = decode(data, self.hosts[sender].engine.dialect)
        if frame.kind is not Kind.ROUND or not frame.values.size:
            return data
        everybody = (1 << self.K) - 1
        values = np.asarray(frame.values + 1.0, np.float64)
        lie = frame._replace(values=values, sets=[everybody] * len(frame.sets))
        return encode(lie, self.hosts[sender].engine.dialect)

    def _receive(self, k: int, sender: int, data: bytes) -> None:
        if not self._is_cut(sender, k):
            host = self.hosts[k]
            self._on(k, lambda: self._perform(k, host.engine.receive([(sender, data)], self._local(host))))

    def _presence(self, k: int, number: int, is_there: bool) -> None:
        host = self.hosts[k]
        self._on(k, lambda: self._perform(k, host.engine.presence(number, is_there, self._local(host))))

    def _is_cut(self, a: int, b: int) -> bool:
        return any(
            fault.kind == "partition"
            and fault.begin <= self.now < fault.end
            and (a <= fault.agent) != (b <= fault.agent)
            for fault in self.plan.faults
        )

    def _fault(self, fault: Fault, begins: bool) -> None:
        host = self.hosts[fault.agent]
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
                        when = self.now + _LEASE
                        self.at(when, lambda k=k, o=other: self._lose(k, o))  # type: ignore[misc]
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

        self.at(self.now + after, noticed)

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
            if self.is_honest:
                inside = self._inside(table.trace[row, table.done[row]])
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
        expect(active + table.room() == table.capacity, f"{engine.name} has lost rows")
        expect(len(engine.backlog) <= engine.backlog.most, f"{engine.name} lets too many items wait")

    def _end(self) -> None:
        for host in self.hosts:
            if not host.is_up:
                continue
            engine = host.engine
            expect(not engine.table.active, f"{engine.name} still has {engine.table.active} items in hand")
            for ticket, since in host.tickets:
                expect(not ticket.open, f"{engine.name} never answered the request of {since:.2f} s")
        if self.plan.is_exact:
            self._equals_simulator()

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


def run(plan: Plan) -> str:
    """Play a plan; a digest of its history. What breaks is raised with the plan."""
    history = History(plan)
    try:
        return history.run()
    except Exception as problem:
        raise CheckError(f"{problem} (at {history.now:.3f} s of {plan})") from problem
