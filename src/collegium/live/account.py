"""Counters of an agent: items by result, rounds, latencies, overload."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium.live.answers import Histogram

LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds of the latency histogram, in seconds."""
_LULL = 1.0  # seconds without a submission that had to wait, and the overload is over


class Account:
    """Counters that only grow, and how long items have taken lately."""

    def __init__(self, now: float) -> None:
        self.begun = now
        self.done = self.from_zero = self.with_missing = self.incomplete = self.past_deadline = 0
        self.refused = self.no_room = self.failed = self.asked = self.epochs = 0
        self.overload_seconds = 0.0
        self._overloaded_at: float | None = None
        self._overload_noted = 0.0
        self._latencies = np.zeros(len(LATENCIES) + 1, np.int64)
        self._sum = self._largest = 0.0
        self._lately: float | None = None

    def decided(self, seconds: NDArray[np.float64]) -> None:
        """Items that took so long are decided."""
        self.done += len(seconds)
        if len(seconds) == 1:  # without the price of arrays of one number
            mean = seconds.item()
            self._latencies[sum(bound < mean for bound in LATENCIES)] += 1
            self._sum += mean
            self._largest = max(self._largest, mean)
        else:
            self._latencies += np.bincount(np.searchsorted(LATENCIES, seconds), minlength=len(LATENCIES) + 1)
            self._sum += float(seconds.sum())
            self._largest = max(self._largest, float(seconds.max(initial=0.0)))
            mean = float(seconds.mean())
        self._lately = mean if self._lately is None else self._lately + (mean - self._lately) / 8

    @property
    def retry_after(self) -> float:
        """In how many seconds a full agent will have room: by then what is pending now is decided."""
        return 1.0 if self._lately is None else min(max(self._lately, 0.1), 10.0)

    @property
    def is_overloaded(self) -> bool:
        """Whether submissions have to wait, or had to within the last second."""
        return self._overloaded_at is not None

    def overloaded(self, now: float) -> bool:
        """A submission has to wait, or is refused; whether that is new."""
        is_new = self._overloaded_at is None
        if self._overloaded_at is not None:
            self.overload_seconds += max(now - self._overload_noted, 0.0)
        else:
            self._overloaded_at = now
        self._overload_noted = now
        return is_new

    def not_overloaded(self, now: float) -> bool:
        """No submission waits now; whether an overload ended by that."""
        if self._overloaded_at is None or now - self._overload_noted < _LULL:
            return False
        self._overloaded_at = None
        return True

    def histogram(self) -> Histogram:
        """Latencies as Prometheus has them."""
        return Histogram(list(LATENCIES), self._latencies.tolist(), self._sum)

    def quantile(self, q: float) -> float | None:
        """Latency that so many stay below, in milliseconds, within its step of the histogram; None before any item."""
        total = int(self._latencies.sum())
        if not total:
            return None
        below = np.concatenate([[0], np.cumsum(self._latencies)])
        place = min(int(np.searchsorted(below[1:], q * total)), len(LATENCIES) - 1)
        share = (q * total - below[place]) / max(below[place + 1] - below[place], 1)
        edges = (0.0, *LATENCIES)
        found = float(edges[place] + min(share, 1.0) * (edges[place + 1] - edges[place]))
        return round(1e3 * min(found, self._largest), 2)  # a step is wide: no quantile is larger than the largest
