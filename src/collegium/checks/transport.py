"""What a transport promises, tried on three agents that send to each other in a circle."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

from collegium.checks import base
from collegium.checks.base import Check, listed
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


def check_transport(
    make: Callable[[Place], Transport], endpoints: tuple[str, str, str] = ("check/0", "check/1", "check/2")
) -> list[str]:
    """Check that a transport carries frames as live agents rely on; returns what was checked.

    `make` gives a new transport for a place; three are made for each check, 0 → 1 → 2 → 0, at these endpoints if they
    matter.

    >>> from collegium.live.transport.memory import Hub, MemoryTransport
    >>> hub = Hub()
    >>> check_transport(lambda place: MemoryTransport(place, hub))[0]
    'neighbours are reported'
    """
    return base.run(getattr(make, "__name__", "the transport"), transport_checks(make, endpoints))


@listed
def transport_checks(
    make: Callable[[Place], Transport], endpoints: tuple[str, str, str] = ("check/0", "check/1", "check/2")
) -> Iterator[Check]:
    """The checks of `check_transport`, one by one."""
    for name, function in (
        ("neighbours are reported", lambda seats: None),
        ("frames reach the receivers, and no other agent, in order and unchanged", _broadcasts),
        ("a frame for one neighbour reaches that one only", _sends_to_one),
        ("bytes are counted", _counts),
        ("leaving is reported, and closing twice is harmless", _leaves),
    ):
        yield Check(name, partial(_among_three, make, endpoints, function))


def _among_three(
    make: Callable[[Place], Transport], endpoints: tuple[str, str, str], function: Callable[[list[_Seat]], None]
) -> None:
    """Try something with three agents that have met."""
    peers = [Peer(k, f"agent-{k}", endpoints[k]) for k in range(3)]
    places = [
        Place("c0ffee", k, f"agent-{k}", endpoints[k], (peers[(k - 1) % 3],), (peers[(k + 1) % 3],), None)
        for k in range(3)
    ]
    seats = [_Seat(make(place)) for place in places]
    try:
        for seat in seats:
            seat.open()
        for k, seat in enumerate(seats):
            seat.wait({(k + 1) % 3: True, (k + 2) % 3: True}, f"agent {k} did not see both its neighbours")
        function(seats)
    finally:
        for seat in seats:
            seat.transport.close()


def _broadcasts(seats: list[_Seat]) -> None:
    frames = [bytes([i % 256]) * (1 + i * i) for i in range(64)] + [bytes(1 << 20)]
    for frame in frames:
        seats[0].transport.broadcast(frame)
    for i, frame in enumerate(frames):
        sender, came = seats[1].next(f"frame {i} of agent 0")
        if sender != 0:
            raise CheckError(f"a frame of agent 0 was given as one of agent {sender}")
        if came != frame:
            raise CheckError(f"frame {i} of agent 0 arrived changed or out of order")
    if threading.get_ident() in seats[1].threads:
        raise CheckError(
            "agent 1 was given frames from within the broadcast of agent 0: use a thread of the transport's own"
        )
    time.sleep(_QUIET)
    if not seats[2].came.empty():
        raise CheckError("agent 2 is no receiver of agent 0, but got its frames")


def _sends_to_one(seats: list[_Seat]) -> None:
    for i in range(64):
        seats[1].transport.send(0, b"to its sender %d" % i)
        seats[1].transport.send(2, b"to its receiver %d" % i)
    for number, who in ((0, "sender"), (2, "receiver")):
        for i in range(64):
            came = seats[number].next(f"frame {i} of agent 1 to its {who}")
            if came != (1, b"to its %s %d" % (who.encode(), i)):
                raise CheckError(
                    f"frame {i} of agent 1 to its {who} went to another, or arrived changed or out of order"
                )
    time.sleep(_QUIET)
    for number in (0, 2):
        if not seats[number].came.empty():
            raise CheckError(f"agent {number} got a frame of agent 1 that was not for it, or one twice")


def _counts(seats: list[_Seat]) -> None:
    seats[0].transport.broadcast(bytes(1000))
    seats[1].next("a frame of agent 0")
    seats[0].transport.send(1, bytes(10))
    seats[1].next("a frame of agent 0 to agent 1")
    sent, received = seats[0].transport.sent_bytes, seats[1].transport.received_bytes
    if not 0 < sent == received:
        raise CheckError(f"agent 0 counts {sent} bytes sent, agent 1 {received} bytes received of the same frames")


def _leaves(seats: list[_Seat]) -> None:
    seats[2].transport.close()
    seats[2].transport.close()
    for k in (0, 1):
        seats[k].wait({2: False}, f"agent {k} did not see agent 2 leave")
