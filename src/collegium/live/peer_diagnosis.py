"""Why a neighbour is not connected, and which peers were refused.

Zenoh reports nothing to the program when a certificate is refused: the neighbour is simply missing. The reason is found
in three ways: by a TLS handshake with every neighbour that stays missing, by comparing the certificate of each open
link with the one expected there, and, if asked for, by reading Zenoh's log for refused connections.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from collegium.errors import LiveError
from collegium.live.transport.base import Peer, Place

Report = Callable[[int | None, str], None]

PATIENCE = 1.0  # seconds a neighbour may be missing before it is probed
PAUSE = 2.0  # seconds between attempts, doubled up to
LONGEST_PAUSE = 15.0
TIMEOUT = 1.5  # seconds for each step of an attempt
ALERT = 0.5  # seconds to wait for a refusal: TLS 1.3 sends it after the handshake seems done
AGAIN = 60.0  # seconds before the same report of a refused peer is repeated
AT_ONCE = threading.BoundedSemaphore(8)  # probes at the same time


class Unreachable(str):
    """A reason that is not a refusal: no peer answered that could refuse."""


class PeerDiagnosis:
    """Reports, in sentences, why neighbours are missing and which other peers were refused.

    Arguments:
        place: of the agent that listens.
        report: called with the neighbour's number, or None for any other peer, and a sentence; from threads of this
            object, once for each new reason. `present` clears a neighbour's reason; nothing is reported for that.
    """

    def __init__(self, place: Place, report: Report) -> None:
        self._place = place
        self._report = report
        self._peers = {peer.number: peer for peer in place.neighbours}
        self._lock = threading.Lock()
        self._missing: dict[int, threading.Event] = {}  # set when the neighbour is back
        self._reasons: dict[int, str] = {}
        self._refused: dict[str, float] = {}  # when each report of a refused peer was made
        self._closed = False
        self._restore_stdout: Callable[[], None] | None = None

    def start(self, read_log: bool = False) -> None:
        """Begin: every neighbour is missing until `present` is called for it.

        Arguments:
            read_log: whether to read Zenoh's log too. That takes the process's standard output, see
                `capture_zenoh_log`, so it is for a process that is one agent.
        """
        if read_log:
            self._restore_stdout = capture_zenoh_log(self._read_log)
        for number in self._peers:
            self.missing(number)

    def use(self, place: Place) -> None:
        """There are other neighbours from now on."""
        with self._lock:
            self._place, self._peers = place, {peer.number: peer for peer in place.neighbours}
            gone = [self._missing.pop(number) for number in [*self._missing] if number not in self._peers]
        for back in gone:
            back.set()
        self.start()

    def missing(self, number: int) -> None:
        """The neighbour's token has gone or has not come yet."""
        with self._lock:
            if self._closed or number in self._missing or number not in self._peers:
                return
            back = self._missing[number] = threading.Event()
        threading.Thread(target=self._probe, args=(number, back), name=f"probe {number}", daemon=True).start()

    def present(self, number: int) -> None:
        """The neighbour's token has come."""
        with self._lock:
            back = self._missing.pop(number, None)
            self._reasons.pop(number, None)
        if back is not None:
            back.set()

    def joined(self, name: str, address: str, is_second: bool = False) -> None:
        """Report what is wrong with a link to `address`, such as `tls/10.0.0.3:7003`, by its certificate's name.

        is_second: whether another session of that name is connected.
        """
        neighbours = self._peers.values()
        wrong = next((peer for peer in neighbours if peer.endpoint == address and peer.name != name), None)
        if wrong is not None:
            self._report_missing(wrong.number, _misnamed(wrong, name))
        elif name == self._place.name:
            self._report_refused(f"{address} presented this agent's own certificate: is {name} running twice?")
        elif all(peer.name != name for peer in neighbours):
            self._report_refused(
                f"{address} presented the certificate of {name}, which is no neighbour of {self._place.name}: "
                "its messages are dropped"
            )
        elif is_second:
            self._report_refused(
                f"two processes present the certificate of {name}, the second at {address}: "
                "it is left out; stop one, or give it the certificate of its own name"
            )

    def close(self) -> None:
        """End. Attempts that are under way report nothing any more."""
        with self._lock:
            self._closed = True
            backs = list(self._missing.values())
            self._missing.clear()
        for back in backs:
            back.set()
        if self._restore_stdout is not None:
            self._restore_stdout()
            self._restore_stdout = None

    def _read_log(self, line: str) -> bool:
        """Whether a line of Zenoh's log is about a refused connection; if so it is reported."""
        found = _REFUSED.search(line)
        if found and not found.group(1).endswith(_HUNG_UP):
            reason = found.group(1).partition(_WHEN)[0]
            self._report_refused(f"a peer that connected to {self._place.listen} was refused: {_cause(reason)}")
        return bool(found)

    def _probe(self, number: int, back: threading.Event) -> None:
        peer, pause, attempts = self._peers.get(number), PAUSE, 0
        if peer is None or back.wait(PATIENCE):
            return
        while True:
            with AT_ONCE:
                reason = probe(self._place, peer)
            attempts += 1
            if reason is None and attempts > 1:
                reason = (
                    f"{peer.name} answers at {peer.endpoint} and its certificate is in order, but it has not joined: "
                    f"is {self._place.name} one of its neighbours there?"
                )
            if reason is not None and not back.is_set():
                self._report_missing(number, reason)
            if back.wait(pause):
                return
            pause = min(2 * pause, LONGEST_PAUSE) if attempts > 2 else pause

    def _report_missing(self, number: int, reason: str) -> None:
        with self._lock:
            if self._closed or self._reasons.get(number) == reason:
                return
            self._reasons[number] = reason
        self._report(number, reason)

    def _report_refused(self, sentence: str) -> None:
        now = time.monotonic()
        kind = re.sub(r":\d+\b", "", sentence)  # a peer that retries has another port each time
        with self._lock:
            for old in [one for one, when in self._refused.items() if now - when > AGAIN]:
                del self._refused[old]
            if self._closed or kind in self._refused or len(self._refused) >= 64:
                return
            self._refused[kind] = now
        self._report(None, sentence)


def probe(place: Place, peer: Peer) -> str | None:
    """Connect to a neighbour as Zenoh would: a sentence on what is wrong, or None if nothing is."""
    host, port = _address(peer.endpoint)
    where = f"{peer.name} at {peer.endpoint}"
    try:
        connection = socket.create_connection((host, port), TIMEOUT)
    except ConnectionRefusedError:
        return Unreachable(f"no process listens for {where}: is it running?")
    except TimeoutError:
        return Unreachable(f"{where} cannot be reached: no answer within {TIMEOUT:g} s")
    except OSError as problem:
        return Unreachable(f"{where} cannot be reached: {problem.strerror or problem}")
    with connection:
        connection.settimeout(TIMEOUT)
        if place.tls is None:
            return _try_without(connection, where)
        try:
            context = ssl.create_default_context(cafile=str(place.tls.ca))
            context.load_cert_chain(place.tls.certificate, place.tls.key)
        except (OSError, ssl.SSLError) as problem:
            return f"this agent's own certificate cannot be used: {problem.strerror or problem}"
        context.check_hostname = False  # compared below, after the name of the agent
        return _try_with(context, connection, peer, host)


def _plain_host(host: str) -> str:
    """An address in its shortest form: OpenSSL writes ::1 as 0:0:0:0:0:0:0:1."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


def _try_with(context: ssl.SSLContext, connection: socket.socket, peer: Peer, host: str) -> str | None:
    where = f"{peer.name} at {peer.endpoint}"
    try:
        with context.wrap_socket(connection, server_hostname=host) as link:
            shown: Any = link.getpeercert()
            subject = [pair for part in shown["subject"] for pair in part]
            name = next((value for kind, value in subject if kind == "commonName"), "")
            if name != peer.name:
                return _misnamed(peer, name)
            hosts = [_plain_host(value) for _, value in shown.get("subjectAltName", ())]
            if _plain_host(host) not in hosts:
                return (
                    f"the certificate of {where} is for the hosts {', '.join(hosts)}, not for {host}: give init --hosts"
                )
            link.settimeout(ALERT)
            try:
                answer = link.recv(1)
            except TimeoutError:
                return None
            return None if answer else f"{where} closed the connection: does it accept this agent's certificate?"
    except ssl.SSLCertVerificationError as problem:
        return f"the certificate of {where} {_verdict(problem)}"
    except TimeoutError:
        return Unreachable(
            f"{where} accepts connections but does not answer: it is stopped, overloaded or runs without certificates"
        )
    except ssl.SSLError as problem:
        reason = (problem.reason or str(problem)).lower().replace("_", " ")
        if "alert" in reason:
            return f"{where} refuses this agent's certificate ({reason}): are both of the same network?"
        return f"{where} does not speak TLS as expected ({reason}): does it run without certificates?"
    except OSError as problem:
        return f"{where} broke off the handshake: {problem.strerror or problem}"


def _try_without(connection: socket.socket, where: str) -> str | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with context.wrap_socket(connection):
            return f"{where} requires certificates, and this agent has none: give it its own, or run all without"
    except (OSError, ssl.SSLError):
        return None  # no TLS there: as it should be, without certificates


def _verdict(problem: ssl.SSLCertVerificationError) -> str:
    if problem.verify_code in (2, 7, 18, 19, 20, 21):  # issuer unknown, signature wrong, self-signed
        return "was signed by another authority than this network's"
    if problem.verify_code in (9, 10):
        return f"is not valid now ({problem.verify_message}): collegium live renew, or set the clocks right"
    return f"is not accepted: {problem.verify_message}"


def _misnamed(peer: Peer, name: str) -> str:
    shown = f"the certificate of {name}" if name else "a certificate without a name"
    return f"the process that listens for {peer.name} at {peer.endpoint} presents {shown}, not that of {peer.name}"


def _address(endpoint: str) -> tuple[str, int]:
    found = re.fullmatch(r"\w+/\[?([^\]?#]+?)\]?:(\d+)(?:[?#].*)?", endpoint)
    if not found:
        raise LiveError(f"an endpoint must look like tls/10.0.0.3:7003; got {endpoint!r}")
    return found.group(1), int(found.group(2))


_REFUSED = re.compile(r"zenoh_link_tls::unicast: (.*)\. Hint: increase the system open file limit")
_HUNG_UP = "handshake eof"  # whoever does so was not refused: a probe, or a neighbour that gave up while this one stood
_WHEN = ": verification time"  # from here on it is another sentence every second
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CAUSES = (
    ("sent no certificates", "it presented no certificate"),
    ("UnknownIssuer", "its certificate was signed by another authority"),
    ("BadSignature", "its certificate was signed by another authority"),
    ("certificate expired", "its certificate has expired"),
    ("certificate not valid yet", "its certificate is not valid yet"),
    ("received fatal alert", "it does not accept this agent's certificate"),
    ("corrupt message", "it does not speak TLS"),
)


def _cause(text: str) -> str:
    return next((f"{cause} ({text})" for sign, cause in _CAUSES if sign in text), text)


def capture_zenoh_log(handle: Callable[[str], bool]) -> Callable[[], None]:
    """Give the lines Zenoh logs in this process to a function; those for which it returns False are printed as before.

    Zenoh logs to the standard output of the process and to nothing else. So a pipe takes its place, and a thread passes
    on whatever is not Zenoh's. For a process that is one agent, once, before its first session; returns the undoing.
    """
    import zenoh

    sys.stdout.flush()
    real = os.dup(1)
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(writing)
    zenoh.init_log_from_env_or("error,zenoh_link_tls=warn")
    thread = threading.Thread(target=_pass_on, args=(reading, real, handle), name="zenoh's log", daemon=True)
    thread.start()
    return partial(_undo, real, thread)


def _pass_on(reading: int, real: int, handle: Callable[[str], bool]) -> None:
    with os.fdopen(reading, "rb") as lines, os.fdopen(real, "wb", buffering=0) as onward:
        for line in lines:
            if b"zenoh" in line and handle(_COLOURS.sub("", line.decode(errors="replace"))):
                continue
            onward.write(line)


def _undo(real: int, thread: threading.Thread) -> None:
    sys.stdout.flush()
    os.dup2(real, 1)  # the pipe's last writing end: the thread comes to its end, and closes what it writes to
    thread.join(10.0)
