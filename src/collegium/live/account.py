"""Counters of an agent: items by result, rounds, latencies."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds of the latency histogram, in seconds."""


class Account:
    """Counters that only grow, and how long items have taken lately."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.done = self.from_zero = self.with_missing = self.refused = self.no_room = 0
        self.rounds = self.asked = 0
        self._latencies = np.zeros(len(LATENCIES) + 1, np.int64)
        self._sum = 0.0
        self._lately: float | None = None

    def decided(self, seconds: NDArray[np.float64]) -> None:
        """Items that took so long are decided."""
        self.done += len(seconds)
        self._latencies += np.bincount(np.searchsorted(LATENCIES, seconds), minlength=len(LATENCIES) + 1)
        self._sum += float(seconds.sum())
        mean = float(seconds.mean())
        self._lately = mean if self._lately is None else self._lately + (mean - self._lately) / 8

    @property
    def retry_after(self) -> float:
        """In how many seconds a full agent will have room: by then what is pending now is decided."""
        return 1.0 if self._lately is None else min(max(self._lately, 0.1), 10.0)

    def items(self) -> dict[str, int]:
        """Items by result."""
        return {name: getattr(self, name) for name in ("done", "from_zero", "with_missing", "refused", "no_room")}

    def histogram(self) -> dict[str, Any]:
        """Latencies as Prometheus has them."""
        return {"bounds": list(LATENCIES), "counts": self._latencies.tolist(), "sum": self._sum}

    def quantile(self, q: float) -> float | None:
        """Latency that so many stay below, in milliseconds, within its step of the histogram; None before any item."""
        total = int(self._latencies.sum())
        if not total:
            return None
        below = np.concatenate([[0], np.cumsum(self._latencies)])
        place = min(int(np.searchsorted(below[1:], q * total)), len(LATENCIES) - 1)
        share = (q * total - below[place]) / max(below[place + 1] - below[place], 1)
        edges = (0.0, *LATENCIES)
        return round(1e3 * float(edges[place] + min(share, 1.0) * (edges[place + 1] - edges[place])), 2)
