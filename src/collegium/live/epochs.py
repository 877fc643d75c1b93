"""One agent through the epochs of its network: the engine of each beside the other, over one transport.

A new configuration makes a new `Agent`, with its own engine and its own hash in every frame, so that frames of two
epochs never mix. Items stay where they were begun: the old agent takes no new ones, finishes what it has and is then
kept for its results alone. `change` says when; this does it.
"""

from __future__ import annotations

import dataclasses
import logging
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from collegium._util.files import atomic_write
from collegium.errors import CollegiumError, InputFileError, LiveError
from collegium.live import change, config, configuration
from collegium.live.agent import Agent
from collegium.live.answers import ItemResult, Name, Status
from collegium.live.change import Change, Phase
from collegium.live.config import AgentFile
from collegium.live.configuration import Configuration
from collegium.live.transport.base import Peer, Place, Presence, Receive, Transport
from collegium.live.transport.zenoh import ZenohTransport

CONFIGURATION, PHASES = b"C", b"P"
"""The kinds of notices."""
_NEW_LINKS = 0.7  # seconds for links to new neighbours, before an agent says that it has prepared
_AGAIN = 0.25  # seconds between notices during a change: one may be lost
_KEEP = 600.0  # seconds for which results of an old epoch are kept
_POLICY = struct.Struct("<Q")
_log = logging.getLogger("collegium.live")


class _Channel(Transport):
    """The transport as the agent of one epoch sees it: with the numbers of that epoch, and its frames only."""

    def __init__(self, epochs: Epochs, place: Place, policy: int) -> None:
        self._epochs, self.policy = epochs, policy
        self.ids = {peer.number: epochs.id_of(peer.name) for peer in place.neighbours}
        self.numbers = {found: number for number, found in self.ids.items()}
        self.receive: Receive = lambda number, frame: None
        self.presence: Presence = lambda number, is_there: None

    @property
    def sent_bytes(self) -> int:  # type: ignore[override]
        return self._epochs.carrier.sent_bytes

    @property
    def received_bytes(self) -> int:  # type: ignore[override]
        return self._epochs.carrier.received_bytes

    def open(self, receive: Receive, presence: Presence) -> None:
        self.receive, self.presence = receive, presence
        self._epochs.join(self)

    def broadcast(self, frame: bytes) -> None:
        self._epochs.carrier.broadcast(frame)

    def send(self, number: int, frame: bytes) -> None:
        self._epochs.carrier.send(self.ids[number], frame)

    def say_going(self) -> None:
        self._epochs.carrier.say_going()

    def close(self) -> None:
        self._epochs.leave(self)


class Epochs:
    """What stands in for the agent towards its port; whatever is not about several epochs is the current agent's.

    path, file: the agent's file. make: an agent of a file. on_left: called when the agent has no part in the network
    any more and has finished what it had. wrap: what is put around a transport, for faults on purpose.
    """

    def __init__(
        self,
        path: Path,
        file: AgentFile,
        carrier: ZenohTransport,
        make: Callable[[AgentFile], Agent],
        *,
        on_left: Callable[[], object] = lambda: None,
        wrap: Callable[[Transport], Transport] = lambda transport: transport,
    ) -> None:
        self.carrier, self.file = carrier, file
        self._path, self._make, self._on_left, self._wrap = path, make, on_left, wrap
        self._ids = {peer.name: peer.number for peer in file.place(path.parent).neighbours}
        self._channels: list[_Channel] = []
        self._past: set[int] = set()  # the hashes of epochs that are over
        self.agent = make(file)
        self._before: list[tuple[Agent, float]] = []  # agents of earlier epochs, and until when they are kept at most
        self._next: tuple[AgentFile | None, Agent | None] | None = None
        self._is_to_renew = False
        self._ca = ""  # the authorities' certificates, once they are not those it began with
        self._ready_by = 0.0  # when the next agent, which listens, has waited long enough for its new neighbours
        self._problem = ""
        self._told: object = None
        self._told_at, self._has_news = 0.0, False
        self._has_left, self._leave_by, self._is_leaving = False, 0.0, False
        self._lock = threading.RLock()
        self.change = Change(file.agent.name, file.talk.epoch, file.agent.joins)
        self._offered: Configuration | None = None
        self.content = b""
        """The newest configuration that was seen, as it is passed on; empty if there is none."""
        self.on_news: Callable[[], object] = lambda: None
        """Called from any thread when there is something to be looked at."""
        self.on_presence: Callable[[int, bool], object] = lambda number, is_there: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.agent, name)

    # ── frames and links ──────────────────────────────────────────────────────────────────────────────────────────

    def id_of(self, name: str) -> int:
        """The transport's number of a neighbour, the same in all epochs."""
        return self._ids.setdefault(name, max(self._ids.values(), default=-1) + 1)

    def start(self) -> None:
        """Join the network."""
        self.agent.start(self._wrap(_Channel(self, self.agent.place, self.file.policy())))
        self.carrier.on_going = self._going
        self.carrier.open(self._receive, self._presence)

    def join(self, channel: _Channel) -> None:
        """An agent of an epoch begins to listen."""
        self._channels = [*self._channels, channel]
        for name in self.carrier.linked:
            if (number := channel.numbers.get(self.id_of(name))) is not None:
                channel.presence(number, True)

    def leave(self, channel: _Channel) -> None:
        """And ends."""
        self._channels = [one for one in self._channels if one is not channel]
        self._past.add(channel.policy)

    def _receive(self, sender: int, frame: bytes) -> None:
        policy = _POLICY.unpack_from(frame, 16)[0] if len(frame) >= 24 else None
        found = next((one for one in self._channels if one.policy == policy), None)
        if found is None and policy not in self._past and self.change.phase is Phase.OPEN and self._channels:
            found = self._channels[-1]  # which refuses it, and says why
        if found is not None and (number := found.numbers.get(sender)) is not None:
            found.receive(number, frame)

    def _presence(self, number: int, is_there: bool) -> None:
        for channel in self._channels:
            if number in channel.numbers:
                channel.presence(channel.numbers[number], is_there)
        self.on_presence(number, is_there)
        self.on_news()

    def _going(self, number: int) -> None:
        for channel in self._channels:
            if number in channel.numbers:
                channel.on_going(channel.numbers[number])

    def explain(self, number: int | None, reason: str) -> None:
        """Why a neighbour is not there, or that another peer (None) was refused; see `Agent.explain`."""
        name = next((name for name, found in self._ids.items() if found == number), None)
        for agent in self._all():
            found = next((peer.number for peer in agent.place.neighbours if peer.name == name), None)
            if number is None or found is not None:
                agent.explain(found, reason)
            if number is None:
                return

    def deny(self, names: Sequence[str], reason: str) -> None:
        """Neighbours are revoked, and all others are not."""
        for agent in self._all():
            for peer in agent.place.neighbours:
                agent.deny(peer.number, f"{peer.name} {reason}" if peer.name in names else "")

    # ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _all(self) -> list[Agent]:
        """The agents of all epochs, the one that items begin at first."""
        coming = self._next[1] if self._next is not None else None
        return [self.agent, *([coming] if coming is not None else []), *(one for one, _ in self._before)]

    def _beginning(self) -> Agent | None:
        """Where new items begin; None while none do."""
        is_between = self.change.phase is Phase.CLOSED or (self.change.joins and self.change.phase < Phase.OPEN)
        return None if is_between or self._has_left else self.agent

    @property
    def has_left(self) -> bool:
        """Whether the agent has no part in the network any more."""
        return self._has_left

    def holds(self, names: Sequence[Name]) -> bool:
        """Whether a submission has to wait a moment: all agents are about to begin the next epoch."""
        with self._lock:
            if self._has_left or self._beginning() is not None:
                return False
            return -1 in change.destinations([agent.knows(names) for agent in self._all()], None)

    def submit(self, names: Sequence[Name], scores: NDArray[Any], trace: bool = False) -> Future[list[ItemResult]]:
        """As `Agent.submit`: each item in the epoch in which it was begun, by this agent or another."""
        with self._lock:
            begins = self._beginning()
            agents = [one for one in self._all() if one.model is self.agent.model or one is begins]
            if len(agents) == 1 and begins is agents[0]:
                return begins.submit(names, scores, trace)
            known = [agent.knows(names) for agent in agents]
            chosen = np.array(change.destinations(known, None if begins is None else agents.index(begins)))
            if (chosen < 0).any():
                left = f"{self.file.agent.name} has no part in the network any more (epoch {self.change.number})"
                raise LiveError(left if self._has_left else "the network is about to begin a new epoch: retry")
            parts = [(agent, np.flatnonzero(chosen == i)) for i, agent in enumerate(agents)]
            futures = [
                (p, _submit(agent, [names[k] for k in p.tolist()], scores[p], trace)) for agent, p in parts if len(p)
            ]
            return _joined(futures, len(names))

    def result(self, name: Name, trace: bool = False) -> ItemResult | None:
        """The result of an item, in whichever epoch it was decided."""
        found = (agent.result(name, trace) for agent in self._all())
        return next((one for one in found if one is not None), None)

    def is_pending(self, name: Name) -> bool:
        """Whether an item is in hand and not decided."""
        return any(agent.is_pending(name) for agent in self._all())

    def in_hand(self) -> int:
        """How many items were submitted here and are not decided."""
        return sum(agent.in_hand() for agent in self._all())

    def drain(self) -> None:
        """This agent is about to stop."""
        for agent in self._all():
            agent.drain()

    def stop(self) -> None:
        """Leave the network."""
        for agent in self._all():
            agent.stop()
        self.carrier.close()

    def status(self) -> Status:
        """The current agent's, and how far a change is."""
        status = self.agent.status()
        waits = [f"{name} ({reason})" if reason else name for name, reason in self.change.waits_for().items()]
        what = f"epoch {self.change.number}: {self.change.phase.name.lower()}"
        said = "" if self.change.phase is Phase.OPEN else f"{what}, waiting for {', '.join(waits) or 'a moment'}"
        more = sum(agent.in_hand() for agent, _ in self._before)
        items = msgspec.structs.replace(status.items, pending=status.items.pending + more)
        return msgspec.structs.replace(status, epoch=self.file.talk.epoch, change=said, items=items)

    # ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────

    def offer(self, content: bytes, keep: bool = True) -> None:
        """A configuration, from the agent's folder or a neighbour; LiveError if it is not signed as it must be."""
        place = self.carrier.place
        if content == self.content or place.tls is None:
            return
        new = configuration.decode(content, place.tls.ca, place.network)
        with self._lock:
            if new.number <= max(self.file.talk.epoch, self._offered.number if self._offered else 0):
                if new.number == self.file.talk.epoch and not self.content:
                    self.content = content
                    self.carrier.tell(CONFIGURATION + content)
                return
            self._offered, self.content = new, content
        if keep:
            with suppress(OSError, InputFileError):  # a folder that cannot be written: neighbours have it
                configuration.write(self._path.parent, content)
        self.carrier.tell(CONFIGURATION + content)
        self.on_news()

    def heard(self, content: bytes) -> None:
        """What a neighbour knows of how far the others are."""
        try:
            told = change.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise LiveError(f"what it knows of a change cannot be read: {problem}") from None
        if self.content and any(one.number < self.file.talk.epoch for one in told.values()):
            self.carrier.tell(CONFIGURATION + self.content)  # what it was given when it came may have been lost
        if self.change.heard(told):
            self._has_news = True
            self.on_news()

    def look(self) -> bool:
        """Do what is to be done now; whether to be called again soon. Always from the same thread."""
        now = time.monotonic()
        self._retire(now)
        if self._is_to_renew and self.change.phase is Phase.OPEN:
            self._is_to_renew = not self.carrier.renew()
        offered = self._offered
        if offered is not None and offered.number > self.change.number and self.change.phase is not Phase.CLOSED:
            self._abandon()
            self.change.begin(offered.number)
            _log.info("%s: configuration %d is being prepared", self.file.agent.name, offered.number)
        if self.change.phase is Phase.OLD and offered is not None:
            self._prepare(offered, now)
        before = self.change.phase
        self._tell(now)
        while self._advance(now) is not before:
            before = self.change.phase
            if before is Phase.OPEN and not self._has_left:
                self._write()
            self._tell(now)
        return self._has_left or self._is_to_renew or self.change.is_going_on

    def _advance(self, now: float) -> Phase:
        """Go on with the change; nobody submits anything meanwhile."""
        with self._lock:
            before, after = self.change.phase, self.change.advance(now)
            if after is Phase.CLOSED and before is not after:
                self.agent.close()
            if after is Phase.OPEN and before is not after:
                self._open(now)
            return after

    def _tell(self, now: float) -> None:
        """Tell neighbours how far this agent is, and pass on what they have not heard."""
        is_changing, links = self.change.is_going_on, self.carrier.linked
        state = (self.change.number, self.change.phase, self.change.finished, tuple(links) if is_changing else ())
        if state != self._told or self._has_news or (is_changing and now > self._told_at + _AGAIN):
            self._told, self._told_at, self._has_news = state, now, False
            self.carrier.tell(PHASES + change.encode(self.change.tell(links, time.time_ns())))

    def _prepare(self, new: Configuration, now: float) -> None:
        """One step towards having the next epoch's agent beside this one's, with links to all its neighbours."""
        try:
            if self._next is None:
                file = configuration.next_file(self._path, self.file, new)
                agent = None if file is None else self._make(file)
                self._next, self._ready_by = (file, agent), 0.0
                if agent is not None and not self._reaches(place := self._with(agent.place)):
                    self.carrier.use(place)
                    self._is_to_renew = True
                self._trust(new.ca)
            file, agent = self._next
            if agent is not None and self._ready_by == 0.0:
                if self._is_to_renew and not self.carrier.renew():
                    return
                self._is_to_renew = False
                assert file is not None
                agent.start(self._wrap(_Channel(self, agent.place, file.policy())))
                self._ready_by = now + _NEW_LINKS
            here = {*self.carrier.linked, *(peer.name for peer in self.agent.place.neighbours)}
            if agent is None or {peer.name for peer in agent.place.neighbours} <= here or now >= self._ready_by:
                self.change.prepared()
        except (CollegiumError, OSError) as problem:
            if str(problem) != self._problem:
                self._problem = str(problem)
                _log.error("%s: configuration %d cannot be prepared: %s", self.file.agent.name, new.number, problem)
            self.change.cannot(str(problem))

    def _trust(self, ca: str) -> None:
        """Use the certificates of these authorities, if any are given."""
        tls = self.carrier.place.tls
        if ca and tls is not None and ca != self._ca:
            if not tls.ca.exists() or tls.ca.read_text() != ca:
                with atomic_write(tls.ca, sync=True, mode=0o644) as file:
                    file.write(ca.encode())
            self._ca, self._is_to_renew = ca, True

    def _with(self, place: Place) -> Place:
        """A place for the transport, with the neighbours of this epoch and of the next."""
        now = self.agent.place
        peers = {peer.name: Peer(self.id_of(peer.name), peer.name, peer.endpoint) for peer in now.neighbours}
        peers |= {peer.name: Peer(self.id_of(peer.name), peer.name, peer.endpoint) for peer in place.neighbours}

        def both(some: Sequence[Peer], others: Sequence[Peer]) -> tuple[Peer, ...]:
            return tuple(peers[name] for name in sorted({peer.name for peer in (*some, *others)}))

        hears, audience = both(now.hears, place.hears), both(now.audience, place.audience)
        return dataclasses.replace(self.carrier.place, hears=hears, audience=audience)

    def _reaches(self, place: Place) -> bool:
        """Whether the transport has all these neighbours already."""
        there = self.carrier.place
        return {*place.hears} <= {*there.hears} and {*place.audience} <= {*there.audience}

    def _abandon(self) -> None:
        """A configuration that was being prepared is replaced by a newer one."""
        if self._next is not None and self._next[1] is not None:
            self._next[1].stop()
        self._next, self._problem = None, ""

    def _open(self, now: float) -> None:
        """Items begin in the next epoch."""
        self.change.joins = False
        if self._next is None:  # it joins, and there was no epoch before
            me = msgspec.structs.replace(self.file.agent, joins=False)
            self.file = msgspec.structs.replace(self.file, agent=me)
            if not {peer.name for peer in self.agent.place.neighbours} <= {*self.carrier.linked}:
                self.carrier.use(self.carrier.place)  # another that joined, which waited to be met as well
                self._is_to_renew = True
            return
        (file, agent), self._next = self._next, None
        self.change.finished = False
        if file is None or agent is None:
            self._has_left = True
            _log.warning("%s has no part in configuration %d: it leaves", self.agent.name, self.change.number)
            self._leave_by = now + self.file.deadlines.item
            return
        old, self.agent, self.file = self.agent, agent, file
        agent.was_ready = True
        self._before.append((old, now + old.deadlines.item + 1.0))
        _log.info("%s: epoch %d begins", self.agent.name, file.talk.epoch)

    def _write(self) -> None:
        """The agent's file is that of the epoch it is in."""
        me = self.file.agent
        about = f"{me.name}: agent {me.number} of {len(self.file.talk.agents)} in network {me.network}, epoch "
        about += f"{self.file.talk.epoch}.\nRun it with: collegium live agent {self._path.name}"
        try:
            with atomic_write(self._path, sync=True) as written:
                written.write(config.write(self.file, about).encode())
            configuration.staged(self._path).unlink(missing_ok=True)
        except (OSError, InputFileError) as problem:  # at its next start its neighbours tell it again
            _log.warning("%s: its file stays that of the epoch before: %s", me.name, problem)

    def _retire(self, now: float) -> None:
        """Stop agents of earlier epochs when nobody needs them any more, and forget them when their results are old."""
        old = [(agent, until) for agent, until in self._before if not agent.is_stopped]
        if self._has_left:
            old.append((self.agent, self._leave_by))
        self.change.finished = not any(agent.unfinished() for agent, _ in old)
        for agent, until in old:
            if now < until and (self.change.is_going_on or self.change.phase is not Phase.OPEN):
                continue
            if agent is not self.agent:
                agent.stop()
            elif not self._is_leaving:
                self._is_leaving = True
                self._on_left()
        with self._lock:
            self._before = [one for one in self._before if now < one[1] + _KEEP]


def _submit(agent: Agent, names: list[Name], scores: NDArray[Any], trace: bool) -> Future[list[ItemResult]]:
    if not agent.is_stopped:
        return agent.submit(names, scores, trace)
    decided: Future[list[ItemResult]] = Future()
    decided.set_result([one for name in names if (one := agent.result(name, trace)) is not None])
    return decided


def _joined(parts: list[tuple[NDArray[np.intp], Future[list[ItemResult]]]], n: int) -> Future[list[ItemResult]]:
    """One future of several, whose results are at these places of n."""
    if len(parts) == 1:
        return parts[0][1]
    whole: Future[list[ItemResult]] = Future()
    results: list[Any] = [None] * n
    left, lock = [len(parts)], threading.Lock()

    def done(places: NDArray[np.intp], future: Future[list[ItemResult]]) -> None:
        problem = future.exception()
        with lock:
            if problem is not None:
                if not whole.done():
                    whole.set_exception(problem)
                return
            for place, result in zip(places.tolist(), future.result(), strict=True):
                results[place] = result
            left[0] -= 1
            if not left[0] and not whole.done():
                whole.set_result(results)

    for places, future in parts:
        future.add_done_callback(lambda future, places=places: done(places, future))  # type: ignore[misc]
    return whole
