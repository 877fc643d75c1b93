"""A thread that calls when it is time to; asleep while nothing is to be done."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

_log = logging.getLogger("collegium.live")


class Alarm:
    """Calls `ring` at the earliest of the times it was set to, and then sleeps until it is set again."""

    def __init__(self, name: str, ring: Callable[[], object]) -> None:
        self._ring, self._set = ring, threading.Condition()
        self._at, self._is_over = math.inf, False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """From now on it rings."""
        self._thread.start()

    def stop(self) -> None:
        """It rings no more, once this returns."""
        with self._set:
            self._is_over = True
            self._set.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def at(self, when: float) -> None:
        """Ring at this time of the monotonic clock at the latest."""
        if when < self._at:
            with self._set:
                self._at = min(self._at, when)
                self._set.notify()

    def _run(self) -> None:
        while True:
            with self._set:
                if self._is_over:
                    return
                left = self._at - time.monotonic()
                if left > 0:
                    self._set.wait(None if left == math.inf else left)
                    continue
                self._at = math.inf
            try:
                self._ring()
            except Exception:  # without this thread nothing overdue would ever be noticed
                _log.exception("%s: a deadline could not be handled", self._thread.name)
