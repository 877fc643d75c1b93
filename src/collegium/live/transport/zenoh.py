"""Frames over Eclipse Zenoh: peers only, no router and no scouting, one link per pair of neighbours."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from contextlib import suppress
from functools import partial
from typing import Any

import zenoh

from collegium.errors import LiveError
from collegium.live.keys import check, check_name
from collegium.live.peer_diagnosis import PeerDiagnosis
from collegium.live.transport.base import Peer, Place, Presence, Receive, Transport

log = logging.getLogger(__name__)

LEASE_MS = 2000  # a neighbour that has sent nothing for so long is gone
RETRY_MS = 500  # pause between attempts to reach a neighbour
OPEN_MS = 2000  # longest time for one attempt: a stopped process accepts the connection and never answers
STALL_US = 100_000  # longest wait for a neighbour whose queue is full; then it loses frames, and the others get theirs
# Two threads for all that Zenoh does, set before the first session of a process: with its usual five pools a frame is
# handed from thread to thread twice as often. With one, a neighbour that floods delays the frames of all others.
TWO_THREADS = (
    "(rx: (worker_threads: 2), tx: (handover: rx), net: (handover: rx), acc: (handover: rx), app: (handover: rx))"
)
LOOK_AGAIN = 1.0  # seconds after a link is there, until a token that was not reported is looked for
LARGEST_FRAME = 1 << 26  # bytes; a receiver drops what is longer before it is put together


class ZenohTransport(Transport):
    """One agent's Zenoh session.

    Arguments:
        place: the agent's place in the network.
        diagnosis: given the name in the certificate of each link.

    Frames arrive on threads of Zenoh's Python package, two for each neighbour: one for what it broadcasts and one for
    what it sends to this agent alone, so that the frames of one that floods do not stand before those of the others.
    """

    def __init__(self, place: Place, diagnosis: PeerDiagnosis | None = None) -> None:
        self._place = place
        self._config = configuration(place)
        self._diagnosis = diagnosis
        self._counting = threading.Lock()
        self._session: zenoh.Session | None = None
        self._to_all: zenoh.Publisher | None = None
        self._to: dict[int, zenoh.Publisher | None] = {peer.number: None for peer in place.neighbours}
        self._token: zenoh.LivelinessToken | None = None  # goes with its last reference
        self._presence: Presence = lambda number, is_there: None
        self._here: set[int] = set()
        self._timer: threading.Timer | None = None

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
            raise LiveError(f"{place.name} cannot listen on {place.listen}: {_first(problem)}") from None
        session.info.declare_link_events_listener(self._linked, history=True)
        self._to_all = _publisher(session, _key(place, place.name, "say"))
        for peer in place.neighbours:
            self._to[peer.number] = _publisher(session, _key(place, place.name, f"to/{peer.name}"))
            for channel in _channels(place, peer):
                received = partial(self._received, peer.number, receive)
                session.declare_subscriber(_key(place, peer.name, channel), received)
        self._presence = presence
        numbers = {_key(place, peer.name, "alive"): peer.number for peer in place.neighbours}
        watch = partial(self._watch, numbers)
        session.liveliness().declare_subscriber(_key(place, "*", "alive"), watch, history=True)
        self._token = session.liveliness().declare_token(_key(place, place.name, "alive"))

    def broadcast(self, frame: bytes) -> None:
        self._put(self._to_all, frame, len(self._place.audience))

    def send(self, number: int, frame: bytes) -> None:
        self._put(self._to[number], frame, 1)

    def close(self) -> None:
        session, self._session, self._to_all, self._token = self._session, None, None, None
        if self._timer is not None:
            self._timer.cancel()
        self._to = dict.fromkeys(self._to)
        if session is not None:
            try:
                session.close()  # type: ignore[no-untyped-call]
            except zenoh.ZError as problem:
                log.warning("%s did not close cleanly: %s", self._place.name, _first(problem))

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
        if self._session is None:
            return
        frame = sample.payload.to_bytes()
        with self._counting:
            self.received_bytes += len(frame)
        try:
            receive(number, frame)
        except Exception:
            log.exception("a frame of agent %d could not be handled", number)

    def _watch(self, numbers: dict[str, int], sample: zenoh.Sample) -> None:
        number = numbers.get(str(sample.key_expr))
        if self._session is not None and number is not None:
            self._report(number, sample.kind == zenoh.SampleKind.PUT)

    def _report(self, number: int, is_there: bool) -> None:
        (self._here.add if is_there else self._here.discard)(number)
        try:
            self._presence(number, is_there)
        except Exception:
            log.exception("the presence of agent %d could not be handled", number)

    def _look_again(self) -> None:
        """Ask for the tokens of neighbours that are not here: when many links come up at once, some go unreported."""
        for peer in self._place.neighbours:
            session = self._session
            if session is not None and peer.number not in self._here:
                with suppress(zenoh.ZError):
                    replies = session.liveliness().get(_key(self._place, peer.name, "alive"), timeout=1.0)
                    if any(reply.ok is not None for reply in replies) and self._session is not None:
                        self._report(peer.number, True)

    def _linked(self, event: zenoh.LinkEvent) -> None:
        link = event.link
        if event.kind == zenoh.SampleKind.PUT:
            _break_stalled(link)
            if self._timer is None or not self._timer.is_alive():
                self._timer = threading.Timer(LOOK_AGAIN, self._look_again)
                self._timer.daemon = True
                self._timer.start()
            if self._diagnosis is not None:
                self._diagnosis.joined(link.auth_identifier, link.dst)
        elif self._diagnosis is not None:
            self._diagnosis.left(link.auth_identifier)


def _publisher(session: zenoh.Session, key: str) -> zenoh.Publisher:
    return session.declare_publisher(
        key,
        congestion_control=zenoh.CongestionControl.DROP,  # after STALL_US; blocking would close the link instead
        priority=zenoh.Priority.REAL_TIME,
        express=True,
        reliability=zenoh.Reliability.RELIABLE,
    )


def _break_stalled(link: zenoh.Link) -> None:
    """Let the kernel break a link that takes no more data, when the lease would.

    Zenoh waits for its writer when it closes a link. A writer stuck in the full buffer of a stopped or vanished
    neighbour would keep that neighbour's token until the kernel's own timeout, in a quarter of an hour.
    """
    if not hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux has it
        return
    ends = (link.src.partition("/")[2], link.dst.partition("/")[2])
    for number in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                continue  # making a socket of anything else fails, and leaves the copy open
            copy = os.dup(int(number))
        except OSError:
            continue  # closed by now
        with suppress(OSError), socket.socket(fileno=copy) as one:
            if (_address(one.getsockname()), _address(one.getpeername())) == ends:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LEASE_MS)


def _address(name: Any) -> str:
    if not isinstance(name, tuple):
        return ""
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _first(problem: zenoh.ZError) -> str:
    return str(problem).split(" at /")[0]  # the rest is where in Zenoh's source it happened


def _key(place: Place, name: str, channel: str) -> str:
    return f"collegium/{place.network}/{name}/{channel}"


def _channels(place: Place, peer: Peer) -> list[str]:
    """The channels of a neighbour that this agent receives."""
    return [*(["say"] if peer in place.hears else []), f"to/{place.name}"]


def configuration(place: Place) -> dict[str, Any]:
    """Zenoh's configuration for one agent, checked as far as can be seen without opening it."""
    check_name(place.network, "a network's name")
    for name in (place.name, *(peer.name for peer in place.neighbours)):
        check_name(name)
    # Of two neighbours the one with the smaller number connects, so that there is one link between them.
    connect = [peer.endpoint for peer in place.neighbours if peer.number > place.number]
    link: dict[str, Any] = {
        "protocols": ["tls" if place.tls else "tcp"],
        "rx": {"max_message_size": LARGEST_FRAME},
        "tx": {
            "lease": LEASE_MS,
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
                "max_sessions": 2 * len(place.neighbours) + 8,
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
        ours = [*(["say"] if peer in place.audience else []), f"to/{peer.name}"]
        from_us = [_key(place, place.name, channel) for channel in ours]
        their_token, our_token = [_key(place, peer.name, "alive")], [_key(place, place.name, "alive")]
        watching, token = ["declare_liveliness_subscriber", "liveliness_query"], ["liveliness_token"]
        all_tokens = [_key(place, "*", "alive")]  # asked for with one question; each sends its own only
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
