"""Faults on purpose: a transport that loses, doubles, delays and reorders what the one inside it would have sent."""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from collegium._util.arguments import real_number
from collegium.errors import LiveError
from collegium.live.transport.base import Presence, Receive, Transport


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may happen to a frame on its way out."""

    loss: float = 0.0
    """Probability that it never arrives."""
    duplicate: float = 0.0
    """Probability that it arrives twice."""
    delay: float = 0.0
    """Seconds it takes longer."""
    jitter: float = 0.0
    """The delay is anything within ± this many seconds, so that frames overtake each other."""
    garbage: float = 0.0
    """Probability that some of its bytes are changed."""
    seed: Annotated[int, Meta(ge=0)] = 0

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "garbage"):
            real_number(getattr(self, name), f"the probability {name}", LiveError, at_least=0, at_most=1)
        for name in ("delay", "jitter"):
            real_number(getattr(self, name), f"the {name}", LiveError, at_least=0)


class FaultyTransport(Transport):
    """A transport with faults; presence is left as it is."""

    def __init__(self, inner: Transport, faults: Faults) -> None:
        self._inner, self._faults = inner, faults
        self._random = random.Random(faults.seed)
        self._due: list[tuple[float, int, Callable[[bytes], None], bytes]] = []
        self._count = itertools.count()
        self._wake = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._carry, name="faults", daemon=True)

    @property
    def sent_bytes(self) -> int:  # type: ignore[override]
        return self._inner.sent_bytes

    @property
    def received_bytes(self) -> int:  # type: ignore[override]
        return self._inner.received_bytes

    def say_going(self) -> None:
        self._inner.say_going()

    def open(self, receive: Receive, presence: Presence) -> None:
        self._inner.on_going = self.on_going
        self._thread.start()
        self._inner.open(receive, presence)

    def broadcast(self, frame: bytes) -> None:
        self._send(self._inner.broadcast, frame)

    def send(self, number: int, frame: bytes) -> None:
        self._send(partial(self._inner.send, number), frame)

    def close(self) -> None:
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()
        self._inner.close()

    def _send(self, way: Callable[[bytes], None], frame: bytes) -> None:
        faults, chance = self._faults, self._random.random
        with self._wake:
            if chance() < faults.loss:
                return
            if chance() < faults.garbage:
                spoiled = bytearray(frame)
                for _ in range(3):
                    spoiled[self._random.randrange(len(spoiled))] = self._random.randrange(256)
                frame = bytes(spoiled)
            for _ in range(2 if chance() < faults.duplicate else 1):
                wait = faults.delay + self._random.uniform(-faults.jitter, faults.jitter)
                heapq.heappush(self._due, (time.monotonic() + max(wait, 0.0), next(self._count), way, frame))
            self._wake.notify()

    def _carry(self) -> None:
        while True:
            with self._wake:
                if self._is_closed:
                    return
                now = time.monotonic()
                if not self._due or self._due[0][0] > now:
                    self._wake.wait(self._due[0][0] - now if self._due else None)
                    continue
                _, _, way, frame = heapq.heappop(self._due)
            way(frame)
