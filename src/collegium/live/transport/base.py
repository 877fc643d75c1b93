"""What carries frames between an agent and its neighbours, and what an agent must know of its place to use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from collegium._serving.tls import Tls as Tls

Receive = Callable[[int, bytes], None]
Presence = Callable[[int, bool], None]


@dataclass(frozen=True)
class Peer:
    """A neighbour: its number and name in the network, and where it listens, such as `tls/10.0.0.3:7003`."""

    number: int
    name: str
    endpoint: str


@dataclass(frozen=True)
class Place:
    """One agent's place: its name, where it listens, its senders (`hears`) and its receivers (`audience`)."""

    network: str
    number: int
    name: str
    listen: str
    hears: tuple[Peer, ...]
    audience: tuple[Peer, ...]
    tls: Tls | None

    @property
    def neighbours(self) -> tuple[Peer, ...]:
        """All senders and receivers of this agent, once each, by number."""
        return tuple(sorted({*self.hears, *self.audience}, key=lambda peer: peer.number))


class Transport(ABC):
    """Frames out, frames in, and which neighbours are connected.

    The number given to `receive` is that of the sender by its key, never by what the frame claims. `receive` and
    `presence` are called from threads of the transport, never from within an agent's `broadcast` or `send`, also before
    `open` returns; they may call both, but not `close`. Frames of one sender's `broadcast` arrive in its order, and so
    do those it sends to one peer, but the two may overtake each other; frames may be lost, when a link breaks or a
    receiver does not keep up. A frame sent after `presence` reported a neighbour reaches it. `sent_bytes` and
    `received_bytes` count payload, once for every link it takes.
    """

    sent_bytes: int = 0
    received_bytes: int = 0
    on_going: Callable[[int], object] = staticmethod(lambda number: None)
    """Called like `presence`, when a neighbour says that it goes for a moment; one that comes back is reported again,
    without having left."""

    def say_going(self) -> None:  # noqa: B027 - a transport that cannot tell does without
        """Tell neighbours that this agent closes and may be back in a moment."""

    @abstractmethod
    def open(self, receive: Receive, presence: Presence) -> None:
        """Begin: listen, connect, and report what arrives until `close`."""

    @abstractmethod
    def broadcast(self, frame: bytes) -> None:
        """Send a frame to all receivers of this agent."""

    @abstractmethod
    def send(self, number: int, frame: bytes) -> None:
        """Send a frame to one neighbour, sender or receiver, and to no other; KeyError if there is none."""

    @abstractmethod
    def close(self) -> None:
        """End: nothing new is reported. Closing twice is harmless."""
