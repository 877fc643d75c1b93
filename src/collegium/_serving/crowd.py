"""The connections of one port: at most so many, and none that does nothing keeps another one out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)


class Crowd(Generic[C]):
    """Connections by the address they come from, and which of them are idle: without a request in progress.

    When there are more than `most`, an idle one has to go: of the address with most connections, the one that has been
    idle for longest. So whoever parks connections takes places from nobody but himself, and from others at his address
    only those they do not use.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.closed = 0
        """How many had to go."""
        self._addresses: dict[C, str] = {}
        self._count: Counter[str] = Counter()
        self._idle: dict[str, dict[C, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def enter(self, one: C, address: str) -> C | None:
        """A connection is made; the one that has to go for it, if any."""
        self._addresses[one] = address
        self._count[address] += 1
        goes = self._longest_idle() if len(self) > self.most else None
        self.rest(one)
        if goes is not None:
            self.closed += 1
            self.leave(goes)
        return goes

    def leave(self, one: C) -> None:
        """A connection is closed."""
        address = self._addresses.get(one)
        if address is not None:
            self.work(one)
            del self._addresses[one]
            self._count[address] -= 1
            if not self._count[address]:
                del self._count[address]

    def work(self, one: C) -> None:
        """A request began."""
        address = self._addresses.get(one, "")
        idle = self._idle.get(address, {})
        idle.pop(one, None)
        if not idle:
            self._idle.pop(address, None)

    def rest(self, one: C) -> None:
        """It has no request in progress any more."""
        if one in self._addresses:
            self._idle.setdefault(self._addresses[one], {})[one] = None

    def _longest_idle(self) -> C | None:
        if not self._idle:
            return None
        return next(iter(self._idle[max(self._idle, key=self._count.__getitem__)]))
