"""`check_transport`: the package's own transports pass, and each broken one is named."""

from __future__ import annotations

import contextlib
import socket
from typing import Any, ClassVar

import pytest

from collegium.checks import check_transport
from collegium.errors import CheckError
from collegium.live.transport.memory import Hub, MemoryTransport
from collegium.live.transport.zenoh import ZenohTransport


def test_the_transports_of_the_package_keep_their_promises() -> None:
    hub = Hub()
    assert len(check_transport(lambda place: MemoryTransport(place, hub))) == 5


@pytest.mark.live
def test_zenoh_keeps_them_too() -> None:
    ports = []
    with contextlib.ExitStack() as held:
        for _ in range(3):
            taken = held.enter_context(socket.socket())
            taken.bind(("127.0.0.1", 0))
            ports.append(f"tcp/127.0.0.1:{taken.getsockname()[1]}")
    first, second, third = ports
    assert len(check_transport(ZenohTransport, (first, second, third))) == 5


def test_a_transport_that_mixes_up_senders_is_found_out() -> None:
    class Mixed(MemoryTransport):
        def open(self, receive: Any, presence: Any) -> None:
            super().open(lambda sender, frame: receive((sender + 1) % 3, frame), presence)

    hub = Hub()
    with pytest.raises(CheckError, match="given as one of agent 1"):
        check_transport(lambda place: Mixed(place, hub))


def test_a_transport_that_gives_frames_within_broadcast_is_found_out() -> None:
    class Direct(MemoryTransport):
        seats: ClassVar[dict[int, Any]] = {}

        def open(self, receive: Any, presence: Any) -> None:
            super().open(receive, presence)
            self.seats[self.place.number] = receive

        def broadcast(self, frame: bytes) -> None:
            for peer in self.place.audience:
                self.seats[peer.number](self.place.number, frame)

    hub = Hub()
    with pytest.raises(CheckError, match="from within the broadcast"):
        check_transport(lambda place: Direct(place, hub))


def test_a_transport_that_sends_to_all_is_found_out() -> None:
    class Loud(MemoryTransport):
        def send(self, number: int, frame: bytes) -> None:
            for peer in self.place.neighbours:
                super().send(peer.number, frame)

    hub = Hub()
    with pytest.raises(CheckError, match="went to another"):
        check_transport(lambda place: Loud(place, hub))
