"""Virtual time: events at their times, in order."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from collegium.checks.base import expect

_LONGEST = 120.0  # seconds


class Clock:
    """Time that goes from event to event."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._count = 0

    def at(self, time: float, event: Callable[[], object]) -> None:
        """Something happens at a time; of what happens at the same time, what was planned first."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, event))

    def run(self) -> None:
        """Until nothing more happens."""
        while self._events:
            self.now, _, event = heapq.heappop(self._events)
            expect(self.now < _LONGEST, "the network never comes to rest")
            event()
