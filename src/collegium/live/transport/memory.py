"""Agents of one process: a hub passes frames from thread to thread. For tests, and for trials without a network."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from collegium.live.transport.base import Place, Presence, Receive, Transport


class Hub:
    """Where agents of one process meet."""

    def __init__(self) -> None:
        self._members: dict[int, MemoryTransport] = {}
        self._lock = threading.Lock()

    def join(self, member: MemoryTransport) -> None:
        """An agent joins: it and its neighbours are reported to each other."""
        with self._lock:
            self._members[member.place.number] = member
            for peer in member.place.neighbours:
                other = self._members.get(peer.number)
                if other is not None:
                    other.post(lambda o=other: o.presence(member.place.number, True))  # type: ignore[misc]
                    member.post(lambda n=peer.number: member.presence(n, True))  # type: ignore[misc]

    def leave(self, member: MemoryTransport) -> None:
        """An agent leaves."""
        with self._lock:
            if self._members.pop(member.place.number, None) is not None:
                for peer in member.place.neighbours:
                    other = self._members.get(peer.number)
                    if other is not None:
                        other.post(lambda o=other: o.presence(member.place.number, False))  # type: ignore[misc]

    def pass_on(self, sender: int, numbers: list[int], frame: bytes) -> None:
        """A frame for those of `numbers` that have joined."""
        for number in numbers:
            other = self._members.get(number)
            if other is not None:
                other.post(lambda o=other: o.take(sender, frame))  # type: ignore[misc]


class MemoryTransport(Transport):
    """One agent's connection to the hub, with a thread that delivers to it."""

    def __init__(self, place: Place, hub: Hub) -> None:
        self.place, self._hub = place, hub
        self._audience = [peer.number for peer in place.audience]
        self._neighbours = {peer.number: [peer.number] for peer in place.neighbours}
        self._post: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def open(self, receive: Receive, presence: Presence) -> None:
        self._receive, self.presence = receive, presence
        self._thread = threading.Thread(target=self._carry, name=f"{self.place.name}-post", daemon=True)
        self._thread.start()
        self._hub.join(self)

    def broadcast(self, frame: bytes) -> None:
        self._pass_on(self._audience, frame)

    def send(self, number: int, frame: bytes) -> None:
        self._pass_on(self._neighbours[number], frame)

    def close(self) -> None:
        self._hub.leave(self)
        self._post.put(None)
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def post(self, task: Callable[[], None]) -> None:
        """Run a task on this agent's thread."""
        self._post.put(task)

    def take(self, sender: int, frame: bytes) -> None:
        """A frame that arrived."""
        self.received_bytes += len(frame)
        self._receive(sender, frame)

    def _pass_on(self, numbers: list[int], frame: bytes) -> None:
        self.sent_bytes += len(frame) * len(numbers)
        self._hub.pass_on(self.place.number, numbers, frame)

    def _carry(self) -> None:
        while (task := self._post.get()) is not None:
            task()
