"""Frames over Eclipse Zenoh: peers only, no router and no scouting, one link per pair of neighbours."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import zenoh

from collegium._serving.limits import CannotListen
from collegium.errors import LiveError
from collegium.live.keys import check, check_name
from collegium.live.peer_diagnosis import PeerDiagnosis
from collegium.live.transport import sockets
from collegium.live.transport.base import Peer, Place, Presence, Receive, Transport

log = logging.getLogger(__name__)

LEASE = 2.0  # seconds: a neighbour that has sent nothing for so long is gone
RETRY_MS = 500  # pause between attempts to reach a neighbour
OPEN_MS = 2000  # longest time for one attempt: a stopped process accepts the connection and never answers
STALL_US = 100_000  # longest wait for a neighbour whose queue is full; then it loses frames, and the others get theirs
# Two threads for all that Zenoh does, set before the first session of a process: with its usual five pools a frame is
# handed from thread to thread twice as often. With one, a neighbour that floods delays the frames of all others.
TWO_THREADS = (
    "(rx: (worker_threads: 2), tx: (handover: rx), net: (handover: rx), acc: (handover: rx), app: (handover: rx))"
)
LOOK_AGAIN = 1.0  # seconds after a link is there, until a token that was not reported is looked for
PATIENCE = 5.0  # seconds a neighbour may be linked without a token; then its links are cut, to begin anew
MOST_PATIENCE = 60.0  # each time that did not help it may take twice as long, up to this
BACK_SECONDS = 10.0  # for a neighbour that opens its session anew
_SEEN = 0.1  # seconds after which neighbours have seen a token, mostly
_TURN = 20.0  # seconds to wait at most while neighbours open their sessions anew
_GOING = "alive/going"
LARGEST_FRAME = 1 << 26  # bytes; a receiver drops what is longer before it is put together


class ZenohTransport(Transport):
    """One agent's Zenoh session.

    Arguments:
        place: the agent's place in the network.
        diagnosis: given the name in the certificate of each link.
        dials: whether it connects to its neighbours, and not only they to it.
        lease: seconds after which this agent counts as gone when it has sent nothing.

    Frames arrive on threads of Zenoh's Python package, two for each neighbour: one for what it broadcasts and one for
    what it sends to this agent alone, so that the frames of one that floods do not stand before those of the others.
    """

    def __init__(
        self, place: Place, diagnosis: PeerDiagnosis | None = None, dials: bool = True, lease: float = LEASE
    ) -> None:
        self._place, self._lease = place, round(1000 * lease)
        self._config = configuration(place, self._lease)
        if not dials:
            self._config["connect"]["endpoints"] = []
        self._diagnosis = diagnosis
        self._counting = threading.Lock()
        self._session: zenoh.Session | None = None
        self._to_all: zenoh.Publisher | None = None
        self._to: dict[int, zenoh.Publisher | None] = {peer.number: None for peer in place.neighbours}
        self._notices: zenoh.Publisher | None = None
        self._token: zenoh.LivelinessToken | None = None  # goes with its last reference
        self._receive: Receive = lambda number, frame: None
        self._denied: frozenset[str] = frozenset()
        self._going: set[int] = set()  # neighbours that are about to open their session anew
        self._away: dict[int, threading.Timer] = {}  # and those that do
        self._turn: tuple[float, zenoh.LivelinessToken] | None = None  # that this agent is about to, and since when
        self._notices_kept: dict[bytes, bytes] = {}  # what neighbours are told when they come, by kind
        self.on_notice: Callable[[bytes], object] = lambda notice: None
        self._presence: Presence = lambda number, is_there: None
        self._names = {peer.number: peer.name for peer in place.neighbours}
        self._here: set[int] = set()
        self._undeclared: dict[int, float] = {}  # since when tokens of linked neighbours are gone
        self._links: dict[tuple[str, str], _Link] = {}  # by their ends
        self._second: dict[tuple[str, str], _Link] = {}  # muted as long as another session of the name is there
        self._muted: set[tuple[str, str]] = set()
        self._look, self._over = threading.Event(), threading.Event()  # for `_keep_looking`
        self._patience: dict[int, float] = {}  # with neighbours whose links were cut

    def open(self, receive: Receive, presence: Presence) -> None:
        place = self._place
        if self._session is not None:
            raise LiveError(f"the transport of {place.name} is open already: close it first")
        if place.tls is not None:
            check(place.tls, place.name)
        os.environ.setdefault("ZENOH_RUNTIME", TWO_THREADS)
        try:
            session = self._session = zenoh.open(zenoh.Config.from_json5(json.dumps(self._config)))
        except zenoh.ZError as problem:
            raise CannotListen(f"{place.name} cannot listen on {place.listen}: {_first(problem)}") from None
        sockets.ignore_silent(place.listen)
        self._look, self._over = threading.Event(), threading.Event()
        self._patience.clear()
        looking = (session, self._look, self._over)
        threading.Thread(target=self._keep_looking, args=looking, name=f"{place.name}-links", daemon=True).start()
        session.info.declare_link_events_listener(partial(self._linked, session), history=True)
        self._to = dict.fromkeys(peer.number for peer in place.neighbours)
        self._to_all = _publisher(session, _key(place, place.name, "say"))
        for peer in place.neighbours:
            self._to[peer.number] = _publisher(session, _key(place, place.name, f"to/{peer.name}"))
            for channel in _channels(place, peer)[:-1]:
                received = partial(self._received, peer.number, receive)
                session.declare_subscriber(_key(place, peer.name, channel), received)
            told = partial(self._told, peer.number)
            session.declare_subscriber(_key(place, peer.name, "notice"), told)
        self._notices = _publisher(session, _key(place, place.name, "notice"))
        self._receive, self._presence = receive, presence
        numbers = {_key(place, peer.name, "alive"): peer.number for peer in place.neighbours}
        watch = partial(self._watch, numbers)
        session.liveliness().declare_subscriber(_key(place, "*", "alive/**"), watch, history=True)
        self._token = session.liveliness().declare_token(_key(place, place.name, "alive"))

    def broadcast(self, frame: bytes) -> None:
        self._put(self._to_all, frame, len(self._place.audience))

    def send(self, number: int, frame: bytes) -> None:
        self._put(self._to[number], frame, 1)

    def tell(self, notice: bytes) -> None:
        """Give a notice to all neighbours, and to those that come later; one of the same first byte is replaced."""
        self._notices_kept[notice[:1]] = notice
        self._put(self._notices, notice, 0)

    def deny(self, names: Collection[str]) -> None:
        """From now on these agents are refused, and all others are not."""
        self._denied = frozenset(names)
        for link in list(self._links.values()):
            if link.name in self._denied:
                self._mute(link.src, link.dst)
        for number in [number for number in self._here if self._names[number] in self._denied]:
            self._report(number, False)

    def say_going(self) -> None:
        """Tell neighbours that this agent closes and may be back in a moment.

        It is a token and no message: those who come just now are told of tokens as well.
        """
        if self._turn is None and self._session is not None:
            token = self._session.liveliness().declare_token(_key(self._place, self._place.name, _GOING))
            self._turn = time.monotonic(), token
            time.sleep(_SEEN)

    def renew(self) -> bool:
        """Open the session anew, with the certificate that is in the files now; neighbours know that it is a moment.

        Whether it was done: neighbours do it one after the other, in the order of their names, so that each is there to
        learn of the others. If it was not, call again.
        """
        place = self._place
        if place.tls is not None:
            check(place.tls, place.name)
        self.say_going()
        others = {
            number for number in self._going if self._names[number] < place.name
        } | self._away.keys() - self._going
        if others and self._turn is not None and time.monotonic() < self._turn[0] + _TURN:
            return False
        for number in set(self._here):
            self._wait_for(number)
            self.on_going(number)
        self.close()
        self._links.clear()
        self._second.clear()
        self._undeclared.clear()
        self._going.clear()
        self.open(self._receive, self._presence)
        return True

    def use(self, place: Place) -> None:
        """Other neighbours, from the next `renew` on; those who stay keep their numbers."""
        self._config, self._place = configuration(place, self._lease), place
        self._names = {peer.number: peer.name for peer in place.neighbours}
        if self._diagnosis is not None:
            self._diagnosis.use(place)

    @property
    def place(self) -> Place:
        """The agent's place, with all neighbours it has a link to."""
        return self._place

    @property
    def linked(self) -> list[str]:
        """The names of the neighbours that are connected, or said that they are back in a moment."""
        return [self._names[number] for number in sorted(self._here) if number in self._names]

    def _wait_for(self, number: int) -> None:
        """A neighbour goes and is back in a moment: only if it is not, it has left."""
        timer = threading.Timer(BACK_SECONDS, lambda: self._not_back(number, timer))
        timer.daemon = True
        before, self._away[number] = self._away.get(number), timer
        if before is not None:
            before.cancel()
        timer.start()

    def _not_back(self, number: int, timer: threading.Timer) -> None:
        if self._away.get(number) is timer:
            del self._away[number]
            if not self._is_linked(number):
                self._report(number, False)

    def _told(self, number: int, sample: zenoh.Sample) -> None:
        if self._session is None or self._names[number] in self._denied:
            return
        notice = sample.payload.to_bytes()
        try:
            self.on_notice(notice)
        except LiveError as problem:
            log.warning("%s: %s sent a notice that is not used: %s", self._place.name, self._names[number], problem)

    def close(self) -> None:
        session, self._session, self._to_all, self._token = self._session, None, None, None
        self._notices = self._turn = None
        self._over.set()
        self._look.set()
        self._to = dict.fromkeys(self._to)
        muted, self._muted = self._muted, set()
        for src, dst in muted:
            sockets.cut(src, dst)  # Zenoh would wait for an answer from it
        if session is not None:
            try:
                session.close()  # type: ignore[no-untyped-call]
            except zenoh.ZError as problem:
                log.warning("%s did not close cleanly: %s", self._place.name, _first(problem))
            sockets.cut_accepted(self._place.listen)

    def _put(self, publisher: zenoh.Publisher | None, frame: bytes, receivers: int) -> None:
        if publisher is None:
            return
        try:
            publisher.put(frame)
        except zenoh.ZError as problem:
            if self._session is not None:
                raise LiveError(f"{self._place.name} could not send a frame: {_first(problem)}") from None
        with self._counting:
            self.sent_bytes += len(frame) * receivers

    def _received(self, number: int, receive: Receive, sample: zenoh.Sample) -> None:
        if self._session is None or self._names[number] in self._denied:
            return
        frame = sample.payload.to_bytes()
        with self._counting:
            self.received_bytes += len(frame)
        try:
            receive(number, frame)
        except Exception:
            log.exception("a frame of agent %d could not be handled", number)

    def _watch(self, numbers: dict[str, int], sample: zenoh.Sample) -> None:
        key, is_there = str(sample.key_expr), sample.kind == zenoh.SampleKind.PUT
        number = numbers.get(key.replace(_GOING, "alive"))
        if self._session is None or number is None:
            return
        if key.endswith(_GOING):
            (self._going.add if is_there else self._going.discard)(number)
            if number in self._here:
                self._wait_for(number)
                self.on_going(number)
            return
        self._undeclared.pop(number, None)
        if not is_there and self._is_linked(number):
            # By a copy that was refused, or the end of its last link is yet to be told.
            self._undeclared[number] = time.monotonic()
            self._look.set()
        else:
            self._report(number, is_there)

    def _report(self, number: int, is_there: bool) -> None:
        if is_there and self._names[number] in self._denied:
            return
        if not is_there and number in self._away:
            if self._diagnosis is not None:  # it may be another that comes in its place
                self._diagnosis.missing(number)
            return
        if is_there:
            self._patience.pop(number, None)
            waited = self._away.pop(number, None) if number not in self._going else None
            if waited is not None:
                waited.cancel()
            for notice in list(self._notices_kept.values()):
                self._put(self._notices, notice, 0)
        (self._here.add if is_there else self._here.discard)(number)
        try:
            self._presence(number, is_there)
        except Exception:
            log.exception("the presence of agent %d could not be handled", number)

    def _keep_looking(self, session: zenoh.Session, look: threading.Event, over: threading.Event) -> None:
        """A second after each new link, and every second while a neighbour is linked and not here, look at the links.

        It is a thread of its own, of one session, so that no two look at the same time and none looks at the next
        session's links.
        """
        while True:
            look.wait()
            if over.wait(LOOK_AGAIN):
                return
            look.clear()
            try:
                self._look_at_second(tell=True)
                missing = [self._is_missing(session, peer) for peer in self._place.neighbours]
                if any(missing):
                    look.set()
            except Exception:  # without this thread a neighbour might stay away for good
                log.exception("%s: its links could not be looked at", self._place.name)
                look.set()

    def _is_missing(self, session: zenoh.Session, peer: Peer) -> bool:
        """Whether a neighbour is linked and not here, after asking for its token: when many links come up at once, some
        tokens go unreported. And some are never told: a link that comes before the end of those before it is known at
        the other end counts as one more of them there, so that nothing is declared over it. Such links are cut."""
        links, undeclared = self._links_of(peer), self._undeclared.get(peer.number)
        is_here = peer.number in self._here and undeclared is None
        if session is not self._session or is_here or not links or peer.name in self._denied:
            return False
        with suppress(zenoh.ZError):
            replies = session.liveliness().get(_key(self._place, peer.name, "alive"), timeout=1.0)
            if any(reply.ok is not None for reply in replies) and session is self._session:
                self._undeclared.pop(peer.number, None)
                self._report(peer.number, True)
                return False
        patience, since = self._patience.get(peer.number, PATIENCE), undeclared or min(link.since for link in links)
        if time.monotonic() - since > patience and session is self._session:
            log.info("%s reconnects to %s, which is linked and does not announce itself", self._place.name, peer.name)
            self._patience[peer.number] = min(2 * patience, MOST_PATIENCE)
            for link in links:
                sockets.cut(link.src, link.dst)
        return True

    def _links_of(self, peer: Peer) -> list[_Link]:
        """All links of the sessions that have the neighbour's certificate; without certificates, of those that answer
        where it listens and no other neighbour does."""
        links = list(self._links.values())
        if self._place.tls is not None:
            return [link for link in links if link.name == peer.name]
        others = [other for other in self._place.neighbours if other is not peer]
        sessions = {
            link.session
            for link in links
            if self._leads_to(link, peer) and not any(self._leads_to(link, other) for other in others)
        }
        return [link for link in links if link.session in sessions]

    def _leads_to(self, link: _Link, peer: Peer) -> bool:
        """Whether this agent made the link, to where the neighbour listens."""
        return sockets.port(link.src) != sockets.port(self._place.listen) and sockets.is_at(link.dst, peer.endpoint)

    def _linked(self, session: zenoh.Session, event: zenoh.LinkEvent) -> None:
        link = event.link
        if session is not self._session:
            return  # of a session that was closed
        if event.kind != zenoh.SampleKind.PUT:
            for known in (self._links, self._second):
                known.pop((link.src, link.dst), None)
            self._muted.discard((link.src, link.dst))
            self._look_at_second()
            for number in [number for number in list(self._undeclared) if not self._is_linked(number)]:
                self._undeclared.pop(number, None)
                self._report(number, False)
            return
        sockets.break_stalled(link.src, link.dst, self._lease)
        if self._place.tls is None:
            self._links[link.src, link.dst] = _Link(link.src, link.dst, "", str(link.zid), time.monotonic())
        elif link.auth_identifier is not None:
            self._identify(_Link(link.src, link.dst, link.auth_identifier, str(link.zid), time.monotonic()))
        self._look.set()

    def _mute(self, src: str, dst: str) -> None:
        sockets.mute(src, dst)
        self._muted.add((src, dst))

    def _is_linked(self, number: int) -> bool:
        return any(link.name == self._names[number] for link in list(self._links.values()))

    def _others(self, link: _Link) -> list[_Link]:
        """Open links of other sessions with the same certificate; one that was closed is forgotten, although the end
        of its link is yet to be told: a process that was restarted is no second one."""
        others = [one for one in list(self._links.values()) if one.name == link.name and one.session != link.session]
        for one in others:
            if not sockets.is_open(one.src, one.dst):
                self._links.pop((one.src, one.dst), None)
        return [one for one in others if (one.src, one.dst) in self._links]

    def _look_at_second(self, tell: bool = False) -> None:
        """Let sessions in that came while the one before them was about to end; tell: name those that are second."""
        for place, link in list(self._second.items()):
            if not self._others(link):
                self._second.pop(place, None)
                self._links[place] = link
                self._muted.discard(place)
                sockets.unmute(*place)
            elif tell and self._diagnosis is not None:
                self._diagnosis.joined(link.name, link.dst, is_second=True)

    def _identify(self, link: _Link) -> None:
        """Whose link it is, by its certificate: one that is no neighbour's, or a second session of one, is refused."""
        peers = self._place.neighbours
        named = next((peer for peer in peers if peer.name == link.name), None)
        others = self._others(link)
        if self._diagnosis is not None:
            self._diagnosis.joined(link.name, link.dst)
        leads_to = [peer for peer in peers if self._leads_to(link, peer)]
        is_misplaced = bool(leads_to) and named not in leads_to
        if named is None or is_misplaced or link.name in self._denied:
            self._mute(link.src, link.dst)
            return
        # Whoever answers where the neighbour listens is the neighbour, and any other session a copy.
        if any(self._leads_to(one, named) for one in others):
            self._mute(link.src, link.dst)
            self._second[link.src, link.dst] = link
            return
        for one in others if leads_to else ():
            self._mute(one.src, one.dst)
            self._links.pop((one.src, one.dst), None)
            self._second[one.src, one.dst] = one
        self._links[link.src, link.dst] = link


class _Link(NamedTuple):
    src: str
    dst: str
    name: str
    session: str
    since: float


def _publisher(session: zenoh.Session, key: str) -> zenoh.Publisher:
    return session.declare_publisher(
        key,
        congestion_control=zenoh.CongestionControl.DROP,  # after STALL_US; blocking would close the link instead
        priority=zenoh.Priority.REAL_TIME,
        express=True,
        reliability=zenoh.Reliability.RELIABLE,
    )


def _first(problem: zenoh.ZError) -> str:
    return str(problem).split(" at /")[0]  # the rest is where in Zenoh's source it happened


def _key(place: Place, name: str, channel: str) -> str:
    return f"collegium/{place.network}/{name}/{channel}"


def _channels(place: Place, peer: Peer) -> list[str]:
    """The channels of a neighbour that this agent receives."""
    return [*(["say"] if peer in place.hears else []), f"to/{place.name}", "notice"]


def configuration(place: Place, lease: int = round(1000 * LEASE)) -> dict[str, Any]:
    """Zenoh's configuration for one agent, checked as far as can be seen without opening it; lease: milliseconds."""
    check_name(place.network, "a network's name")
    for name in (place.name, *(peer.name for peer in place.neighbours)):
        check_name(name)
    # Both of two neighbours connect: whoever keeps the port of one busy does not keep the two apart.
    connect = [peer.endpoint for peer in place.neighbours]
    link: dict[str, Any] = {
        "protocols": ["tls" if place.tls else "tcp"],
        "rx": {"max_message_size": LARGEST_FRAME},
        "tx": {
            "lease": lease,
            "keep_alive": 4,
            "queue": {
                "congestion_control": {
                    "drop": {"wait_before_drop": STALL_US, "max_wait_before_drop_fragments": STALL_US},
                    "block": {"wait_before_close": STALL_US},
                },
            },
        },
    }
    if place.tls is not None:
        certificate, key = str(place.tls.certificate), str(place.tls.key)
        link["tls"] = {
            "enable_mtls": True,
            "verify_name_on_connect": True,
            "close_link_on_expiration": True,
            "root_ca_certificate": str(place.tls.ca),
            "listen_certificate": certificate,
            "listen_private_key": key,
            "connect_certificate": certificate,
            "connect_private_key": key,
        }
    return {
        "mode": "peer",
        "listen": {"endpoints": [place.listen], "timeout_ms": 0, "exit_on_failure": True},
        "connect": {
            "endpoints": connect,
            "timeout_ms": -1,
            "exit_on_failure": False,
            "retry": {"period_init_ms": RETRY_MS, "period_max_ms": RETRY_MS, "period_increase_factor": 1},
        },
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}, "delay": 0},
        "open": {"return_conditions": {"connect_scouted": False, "declares": False}},
        "timestamping": {"enabled": False},
        "adminspace": {"enabled": False},
        "plugins_loading": {"enabled": False},
        "transport": {
            "unicast": {
                "open_timeout": OPEN_MS,
                "accept_timeout": OPEN_MS,
                "max_sessions": 1024,  # of members only; those of others than neighbours end after the lease
            },
            "link": link,
            "shared_memory": {"enabled": False},
        },
        "access_control": _access(place),
    }


def _access(place: Place) -> dict[str, Any]:
    """Everything is denied but what neighbours need, and each neighbour is held to the name in its certificate."""
    rules, subjects, policies = [], [], []

    def allow(name: str, flow: str, messages: list[str], keys: list[str]) -> str:
        rules.append({"id": name, "permission": "allow", "flows": [flow], "messages": messages, "key_exprs": keys})
        return name

    for peer in place.neighbours:
        from_them = [_key(place, peer.name, channel) for channel in _channels(place, peer)]
        ours = [*(["say"] if peer in place.audience else []), f"to/{peer.name}", "notice"]
        from_us = [_key(place, place.name, channel) for channel in ours]
        their_token, our_token = ([_key(place, one, "alive/**")] for one in (peer.name, place.name))
        watching, token = ["declare_liveliness_subscriber", "liveliness_query"], ["liveliness_token"]
        all_tokens = [_key(place, "*", "alive/**")]  # asked for with one question; each sends its own only
        name = peer.name
        allowed = [
            allow(f"{name}: frames in", "ingress", ["put"], from_them),
            allow(f"{name}: frames out", "egress", ["put"], from_us),
            allow(f"{name}: who subscribes to us", "ingress", ["declare_subscriber"], from_us),
            allow(f"{name}: whom we subscribe to", "egress", ["declare_subscriber"], from_them),
            allow(f"{name}: token in", "ingress", token, their_token),
            allow(f"{name}: token out", "egress", token, our_token),
            allow(f"{name}: who watches us", "ingress", watching, all_tokens),
            allow(f"{name}: whom we watch", "egress", watching, all_tokens),
        ]
        subject = {"id": name, "cert_common_names": [name]} if place.tls else {"id": name}
        subjects.append(subject)
        policies.append({"rules": allowed, "subjects": [name]})
    return {
        "enabled": bool(policies),
        "default_permission": "deny",
        "rules": rules,
        "subjects": subjects,
        "policies": policies,
    }
