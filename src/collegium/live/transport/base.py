"""What carries frames between an agent and its neighbours, and what an agent must know of its place to use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Receive = Callable[[int, bytes], None]
Presence = Callable[[int, bool], None]


@dataclass(frozen=True)
class Peer:
    """A neighbour: its number and name in the network, and where it listens, such as `tls/10.0.0.3:7003`."""

    number: int
    name: str
    endpoint: str


@dataclass(frozen=True)
class Tls:
    """An agent's own certificate and key, and the certificate of the authority that signed all of the network."""

    ca: Path
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Place:
    """One agent's place: who it is, where it listens, whom it hears and who hears it."""

    network: str
    number: int
    name: str
    listen: str
    hears: tuple[Peer, ...]
    audience: tuple[Peer, ...]
    tls: Tls | None

    @property
    def neighbours(self) -> tuple[Peer, ...]:
        """Everybody this agent hears or is heard by, once each, by number."""
        return tuple(sorted({*self.hears, *self.audience}, key=lambda peer: peer.number))


class Transport(ABC):
    """Frames out, frames in, and who is there.

    The number given to `receive` is that of the sender by its key, never by what the frame claims. `receive` and
    `presence` are called from threads of the transport, never from within somebody's `say` or `ask`, also before `open`
    returns; they may call `say` and `ask`, but not `close`. What one sender says arrives in its order, and so does what
    it asks, but the two may overtake each other; frames may be lost, when a link breaks or a receiver does not keep up.
    A frame said after `presence` told of a neighbour reaches it. `said_bytes` and `heard_bytes` count payload, once for
    every link it takes.
    """

    said_bytes: int = 0
    heard_bytes: int = 0

    @abstractmethod
    def open(self, receive: Receive, presence: Presence) -> None:
        """Begin: listen, connect, and report what comes until `close`."""

    @abstractmethod
    def say(self, frame: bytes) -> None:
        """Send a frame to the audience."""

    @abstractmethod
    def ask(self, frame: bytes) -> None:
        """Send a frame to those this agent hears."""

    @abstractmethod
    def close(self) -> None:
        """End: nothing new is reported. Closing twice is harmless."""
