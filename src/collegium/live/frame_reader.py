"""Frames that wait to be read: a queue for each neighbour, so that a flood of one does not delay those of others."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from collegium.live.alarm import Alarm
from collegium.live.transport.base import Place

Frames = list[tuple[int, bytes]]
_QUEUED = 512  # frames of one neighbour that wait; a full queue drops its oldest, which is asked for again
_QUEUED_BYTES = 16 << 20  # and so many bytes
_IN_TURN = 16  # frames of one neighbour that are read before it is another's turn
_HOLD, _LONGEST_HOLD = 6.0, 0.006  # how long frames wait, by the time the last ones took, and in seconds at most


class FrameReader:
    """Any thread may bring frames; one at a time reads those of all.

    process: takes some frames of each neighbour; returns whether the next ones may wait for each other, so that
        messages of many items go into one frame. They do for a moment, until every sender has a frame here.
    alarm: reads what was held, by `read`.
    """

    def __init__(self, place: Place, process: Callable[[Frames], bool], alarm: Alarm) -> None:
        self._queues = {peer.number: deque[bytes](maxlen=_QUEUED) for peer in place.neighbours}
        self._of_senders = [self._queues[peer.number] for peer in place.hears]
        self._process, self._alarm = process, alarm
        self._at_work = threading.Lock()
        self.held_until = 0.0

    @property
    def has_frames(self) -> bool:
        """Whether frames wait."""
        return any(self._queues.values())

    @property
    def is_holding(self) -> bool:
        """Whether frames wait for others."""
        return time.monotonic() < self.held_until

    def receive(self, sender: int, frame: bytes) -> None:
        """A frame has come, each on a thread of its own: whoever is at work takes those of the others along."""
        queue = self._queues.get(sender)  # nobody but neighbours has one
        if queue is not None and sum(map(len, queue)) < _QUEUED_BYTES:  # else it is lost, and asked for again
            queue.append(frame)
        while not self._is_held() and self._at_work.acquire(blocking=False):
            try:
                self._read()
            finally:
                self._at_work.release()
            if not self.has_frames:  # else one has come since, brought by a thread that found this one at work
                return

    def read(self) -> None:
        """Read some frames, held or not."""
        with self._at_work:
            self._read()

    def _is_held(self) -> bool:
        if not self.is_holding or all(self._of_senders):
            return False
        self._alarm.at(self.held_until)
        return True

    def _read(self) -> None:
        begun = time.monotonic()
        frames = [
            (number, queue.popleft())
            for number, queue in self._queues.items()
            if queue
            for _ in range(min(len(queue), _IN_TURN))
        ]
        if self._process(frames):
            ended = time.monotonic()
            self.held_until = ended + min(_HOLD * (ended - begun), _LONGEST_HOLD)
