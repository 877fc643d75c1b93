"""What a transport promises, tried on three agents that send to each other in a circle: `collegium.check_transport`."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from collegium.errors import CheckError
from collegium.live.transport.base import Peer, Place, Transport

_SECONDS = 20.0
_QUIET = 0.3  # for what must not come


class _Seat:
    """One agent: its transport and what arrived."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.came: queue.Queue[tuple[int, bytes]] = queue.Queue()
        self.presence: queue.Queue[tuple[int, bool]] = queue.Queue()
        self.there: dict[int, bool] = {}
        self.threads: set[int] = set()
        """Those that brought frames."""

    def open(self) -> None:
        self.transport.open(self._receive, lambda number, is_there: self.presence.put((number, is_there)))

    def _receive(self, sender: int, frame: bytes) -> None:
        self.threads.add(threading.get_ident())
        self.came.put((sender, frame))

    def next(self, what: str) -> tuple[int, bytes]:
        try:
            return self.came.get(timeout=_SECONDS)
        except queue.Empty:
            raise CheckError(f"{what} did not arrive within {_SECONDS:g} s") from None

    def wait(self, expected: dict[int, bool], what: str) -> None:
        end = time.monotonic() + _SECONDS
        while any(self.there.get(number) != value for number, value in expected.items()):
            try:
                number, is_there = self.presence.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                raise CheckError(f"{what} within {_SECONDS:g} s; reported: {self.there}") from None
            self.there[number] = is_there


def run(make: Callable[[Place], Transport], endpoints: tuple[str, str, str]) -> list[str]:
    """Try everything; what was checked."""
    peers = [Peer(k, f"agent-{k}", endpoints[k]) for k in range(3)]
    places = [
        Place("c0ffee", k, f"agent-{k}", endpoints[k], (peers[(k - 1) % 3],), (peers[(k + 1) % 3],), None)
        for k in range(3)
    ]
    seats = [_Seat(make(place)) for place in places]
    passed = []
    try:
        for seat in seats:
            seat.open()
        for k, seat in enumerate(seats):
            seat.wait({(k + 1) % 3: True, (k + 2) % 3: True}, f"agent {k} did not see both its neighbours")
        passed.append("neighbours are reported")
        _sends(seats)
        passed.append("frames reach the receivers, and no other agent, in order and unchanged")
        _requests(seats)
        passed.append("requests reach the senders")
        _counts(seats)
        passed.append("bytes are counted")
        seats[2].transport.close()
        seats[2].transport.close()
        for k in (0, 1):
            seats[k].wait({2: False}, f"agent {k} did not see agent 2 leave")
        passed.append("leaving is reported, and closing twice is harmless")
    finally:
        for seat in seats:
            seat.transport.close()
    return passed


def _sends(seats: list[_Seat]) -> None:
    frames = [bytes([i % 256]) * (1 + i * i) for i in range(64)] + [bytes(1 << 20)]
    for frame in frames:
        seats[0].transport.say(frame)
    for i, frame in enumerate(frames):
        sender, came = seats[1].next(f"frame {i} of agent 0")
        if sender != 0:
            raise CheckError(f"a frame of agent 0 was given as one of agent {sender}")
        if came != frame:
            raise CheckError(f"frame {i} of agent 0 arrived changed or out of order")
    if threading.get_ident() in seats[1].threads:
        raise CheckError("agent 1 was given frames from within the say of agent 0: use a thread of the transport's own")
    time.sleep(_QUIET)
    if not seats[2].came.empty():
        raise CheckError("agent 2 is no receiver of agent 0, but got its frames")


def _requests(seats: list[_Seat]) -> None:
    seats[1].transport.ask(b"resend")
    if seats[0].next("the request of agent 1") != (1, b"resend"):
        raise CheckError("a request of agent 1 arrived changed, or with another sender")
    time.sleep(_QUIET)
    if not seats[2].came.empty():
        raise CheckError("agent 2 is no sender to agent 1, but got its request")


def _counts(seats: list[_Seat]) -> None:
    sent, received = seats[0].transport.sent_bytes, seats[1].transport.received_bytes
    if not 0 < sent == received:
        raise CheckError(f"agent 0 counts {sent} bytes sent, agent 1 {received} bytes received of the same frames")
