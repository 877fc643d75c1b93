"""Agents of a Zenoh transport as real processes, honest ones and intruders, told what to do line by line."""

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import contextmanager
from pathlib import Path

from collegium.live import keys
from collegium.live.transport.base import Peer, Place, Tls

_kept = deque()  # sockets that are bound and do not listen


def free_ports(count):
    """Ports that no other process is given before an agent listens on them, nor while it is restarted."""
    made = [socket.socket() for _ in range(count)]
    for one in made:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
    _kept.extend(made)
    while len(_kept) > 64:  # far more than one test has
        _kept.popleft().close()
    return [one.getsockname()[1] for one in made]


def places(folder, hears, tls=True):
    """One place per agent; `hears[k]` are the numbers agent k hears."""
    kind = "tls" if tls else "tcp"
    peers = [Peer(k, f"agent-{k}", f"{kind}/127.0.0.1:{port}") for k, port in enumerate(free_ports(len(hears)))]
    authority = keys.create_authority(folder, "net") if tls else None
    made = []
    for peer in peers:
        heard = tuple(peers[number] for number in hears[peer.number])
        audience = tuple(one for one in peers if peer.number in hears[one.number])
        files = keys.issue(authority, folder, peer.name, ["127.0.0.1"]) if tls else None
        made.append(Place("net", peer.number, peer.name, peer.endpoint, heard, audience, files))
    return made


def other_certificate(place, folder, name=None):
    """The same place with a certificate of another authority, which this agent trusts."""
    authority = keys.create_authority(folder, "net")
    return dataclasses.replace(place, tls=keys.issue(authority, folder, name or place.name, ["127.0.0.1"]))


def without_tls(place):
    def plain(peer):
        return dataclasses.replace(peer, endpoint=peer.endpoint.replace("tls/", "tcp/"))

    return dataclasses.replace(
        place,
        listen=place.listen.replace("tls/", "tcp/"),
        hears=tuple(plain(peer) for peer in place.hears),
        audience=tuple(plain(peer) for peer in place.audience),
        tls=None,
    )


class Process:
    """An agent's process: commands go in as lines, events come back as lines."""

    def __init__(self, place, **options):
        told = json.dumps({"place": dataclasses.asdict(place), **options}, default=str)
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by `end`)
        self._child = subprocess.Popen(
            [sys.executable, __file__, told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
        )
        self.number, self.pid = place.number, self._child.pid
        self.events = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._child.stdout:
            with self._changed:
                self.events.append((time.monotonic(), json.loads(line)))
                self._changed.notify_all()

    def tell(self, *command):
        self._child.stdin.write(json.dumps(command) + "\n")
        self._child.stdin.flush()

    def of_kind(self, kind):
        with self._changed:
            return [event[1:] for _, event in self.events if event[0] == kind]

    def wait(self, *wanted, timeout=60.0, since=0):
        """When an event that begins so came, the first at or after `since` events; fails if none comes in time."""
        end = time.monotonic() + timeout
        with self._changed:
            while True:
                for when, event in self.events[since:]:
                    if event[: len(wanted)] == list(wanted):
                        return when
                left = end - time.monotonic()
                assert left > 0, f"agent {self.number} had no {wanted} within {timeout} s: {self.events}"
                self._changed.wait(left)

    def wait_until(self, true, timeout=60.0):
        end = time.monotonic() + timeout
        with self._changed:
            while not true():
                left = end - time.monotonic()
                assert left > 0, f"agent {self.number} after {timeout} s: {self.events[-5:]}"
                self._changed.wait(left)

    def complaints(self):
        """What the process wrote to its standard error."""
        self._complaints.seek(0)
        return self._complaints.read()

    def signal(self, which):
        os.kill(self.pid, which)

    def kill(self):
        self._child.kill()
        self._child.wait()

    def end(self):
        if self._child.poll() is None:
            self.signal(signal.SIGCONT)
            try:
                self.tell("close")
                self._child.wait(30)
            except (subprocess.TimeoutExpired, BrokenPipeError):
                self.kill()
        self._reader.join(5)
        self._child.stdin.close()
        self._child.stdout.close()
        sys.stderr.write(self.complaints())  # pytest shows it if the test fails
        self._complaints.close()


@contextmanager
def processes():
    """Starts processes and ends every one of them."""
    started = []

    def start(place, **options):
        started.append(Process(place, **options))
        return started[-1]

    try:
        yield start
    finally:
        for one in started:
            one.end()


def _main():
    told = json.loads(sys.argv[1])
    given = told["place"]
    given["hears"] = tuple(Peer(**peer) for peer in given["hears"])
    given["audience"] = tuple(Peer(**peer) for peer in given["audience"])
    given["tls"] = given["tls"] and Tls(**{name: Path(path) for name, path in given["tls"].items()})
    place = Place(**given)

    import zenoh

    import collegium.live.transport.zenoh as module
    from collegium.live.peer_diagnosis import PeerDiagnosis

    printing = threading.Lock()

    def happened(*event):
        with printing:
            sys.stdout.write(json.dumps(event) + "\n")
            sys.stdout.flush()

    if told.get("intruder"):  # other software: it checks nothing of its own
        module.check = lambda *_: None
    diagnosis = None
    if told.get("diagnosis"):
        diagnosis = PeerDiagnosis(place, lambda number, reason: happened("report", number, reason))
    transport = module.ZenohTransport(place, diagnosis)
    if told.get("intruder"):
        transport._config["access_control"] = {"enabled": False}
    if told.get("shows_none"):
        for name in ("enable_mtls", "connect_certificate", "connect_private_key"):
            del transport._config["transport"]["link"]["tls"][name]

    def receive(number, frame):
        if told.get("count_only"):
            counted.append(int.from_bytes(frame[:4], "little"))
            return
        happened("frame", number, frame.decode())
        if frame == b"raise":
            raise ValueError("this frame is not liked")

    def presence(number, there):
        if diagnosis is not None:
            (diagnosis.present if there else diagnosis.missing)(number)
        happened("presence", number, there)

    counted = []
    if diagnosis is not None:
        diagnosis.start(read_log=bool(told.get("read_log")))
    transport.open(receive, presence)
    if told.get("declares_nothing"):
        transport._token.undeclare()
        transport._session.info.declare_link_events_listener(lambda event: happened("link", str(event.kind)))
    happened("open")
    for line in sys.stdin:
        command, *rest = json.loads(line)
        if command == "broadcast":
            transport.broadcast(rest[0].encode())
        elif command == "send":
            transport.send(rest[0], rest[1].encode())
        elif command == "put":
            transport._session.put(rest[0], rest[1], congestion_control=zenoh.CongestionControl.BLOCK, express=True)
        elif command == "listen":
            transport._session.declare_subscriber(
                rest[0], lambda sample: happened("overheard", str(sample.key_expr), sample.payload.to_string())
            )
            happened("listening", rest[0])
        elif command == "declare":
            transport._token = transport._session.liveliness().declare_token(
                f"collegium/{place.network}/{place.name}/alive"
            )
        elif command == "bytes":
            happened("bytes", transport.sent_bytes, transport.received_bytes)
        elif command == "flood":  # so many frames of so many bytes, a pause after each: the longest call of all
            count, size, pause = rest
            longest = 0.0
            for k in range(count):
                begun = time.monotonic()
                transport.broadcast(k.to_bytes(4, "little") + bytes(size - 4))
                longest = max(longest, time.monotonic() - begun)
                if pause:
                    time.sleep(pause)
            happened("flooded", longest)
        elif command == "counted":
            happened("counted", len(counted), counted == sorted(counted))
        elif command == "close":
            begun = time.monotonic()
            transport.close()
            transport.broadcast(b"after the end")
            for peer in place.neighbours:
                transport.send(peer.number, b"after the end")
            transport.close()
            if diagnosis is not None:
                diagnosis.close()
            happened("closed", time.monotonic() - begun)
            return


if __name__ == "__main__":
    _main()
