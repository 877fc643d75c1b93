"""One agent of a live network: an engine, its transport, a lock and a timer."""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import LiveError
from collegium.live import results
from collegium.live.answers import ItemResult, Name, Recent, Status
from collegium.live.engine import Effects, Engine
from collegium.live.peer_diagnosis import Unreachable
from collegium.live.transport.base import Place, Transport
from collegium.live.waiters import deliver

Doubles = NDArray[np.float64]
_log = logging.getLogger("collegium.live")
_QUEUED = 512  # frames of one neighbour that wait to be read; a flood beyond them is lost
_QUEUED_BYTES = 16 << 20  # and so many bytes
_IN_TURN = 16  # frames of one neighbour that are read before it is another's turn
_HOLD, _LONGEST_HOLD = 6.0, 0.006  # how long frames wait, by the time the last ones took, and in seconds at most
_STARVED = 0.5  # seconds for which frames to be read may put off what is overdue


class Agent:
    """An agent that may be used from any thread; settings are those of `Engine`.

    score: from views (n, …) to local statistics, (n,) or (n, classes); without it scores must come from outside.
    """

    def __init__(
        self,
        place: Place,
        weights: Mapping[int, float],
        agents: Sequence[str],
        *,
        score: Callable[[NDArray[Any]], Doubles] | None = None,
        **settings: Any,
    ) -> None:
        settings.setdefault("first_handle", secrets.randbits(32))
        self._engine = Engine(place, weights, agents, now=time.monotonic(), **settings)
        self.place, self.name, self.number = place, place.name, place.number
        self.classes, self.rounds, self.rule = self._engine.classes, self._engine.rounds, self._engine.rule
        self._score = score
        self._lock = threading.RLock()
        self._reading = threading.Lock()
        # A full queue drops its oldest frame: what is lost is asked for again.
        self._senders = [peer.number for peer in place.hears]
        self._queues = {peer.number: deque[bytes](maxlen=_QUEUED) for peer in place.neighbours}
        self._timer = threading.Condition()
        self._wake = math.inf
        self._held_until = 0.0
        self._watch: threading.Thread | None = None
        self._transport: Transport | None = None
        self._is_closed = False
        self.on_presence: Callable[[int, bool], object] = lambda number, is_there: None

    def start(self, transport: Transport) -> None:
        """Join the network."""
        self._transport = transport
        self._watch = threading.Thread(target=self._keep_watch, name=f"{self.name}-deadlines", daemon=True)
        self._watch.start()
        transport.open(self.receive, self.presence)

    def stop(self) -> None:
        """Leave it; those who wait for an item are told."""
        with self._lock:
            self._is_closed = True
            waiting = self._engine.stop()
        with self._timer:
            self._timer.notify()
        if self._transport is not None:
            self._transport.close()
        if self._watch is not None:
            self._watch.join()
        for ticket in waiting:
            ticket.error = ticket.error or f"{self.name} was stopped before the item was decided"
        deliver(waiting)

    def score(self, views: NDArray[Any]) -> Doubles:
        """Local statistics of views; slow, so call it in a thread of its own."""
        if self._score is None:
            raise LiveError(f"{self.name} has no model: send it scores instead of views")
        return self._score(views)

    def submit(self, names: Sequence[Name], scores: Doubles, trace: bool = False) -> Future[list[ItemResult]]:
        """Begin items with this agent's local statistics of them; see `Engine.submit`.

        What is called when the future is done is called by a thread that brings neighbours' messages: let it be short.
        """
        with self._lock:
            if self._is_closed:
                raise LiveError(f"{self.name} is stopping")
            try:
                ticket, effects = self._engine.submit(names, scores, trace, time.monotonic())
            except LiveError:
                self._do(self._engine.receive, ())  # what neighbours had begun was begun all the same
                raise
            self._perform(effects)
        deliver(effects.completed)
        return ticket.future

    def result(self, name: Name, trace: bool = False) -> ItemResult | None:
        """The result of an item, if it is decided and remembered."""
        with self._lock:
            return results.result(self._engine, name, trace)

    def is_pending(self, name: Name) -> bool:
        """Whether an item is in hand and not decided."""
        with self._lock:
            return results.is_pending(self._engine, name)

    # ── what comes in ─────────────────────────────────────────────────────────────────────────────────────────────

    def receive(self, sender: int, data: bytes) -> None:
        """A frame from a neighbour.

        Frames of several neighbours come at once, each on a thread of its own. Whoever is at work takes those of the
        others along, in turn, so that a flood of one does not delay those of the rest.
        """
        queue = self._queues.get(sender)
        if queue is None or self._is_closed:
            return
        if sum(map(len, queue)) < _QUEUED_BYTES:  # else it is lost, and asked for again
            queue.append(data)
        # Whoever stops reading looks again: a frame may have come since, brought by a thread that found it at work.
        while self._has_frames() and not self._is_held() and self._reading.acquire(blocking=False):
            try:
                self._read()
            finally:
                self._reading.release()

    def _has_frames(self) -> bool:
        return not self._is_closed and any(self._queues.values())

    def _is_held(self) -> bool:
        """Whether frames wait for others, so that messages of many items go into one: the timer will read them."""
        if self._held_until <= time.monotonic() or all(self._queues[number] for number in self._senders):
            return False  # time is up, or every sender has a frame here: nothing more is to be waited for
        self._call_at(self._held_until)
        return True

    def _read(self) -> None:
        while self._has_frames():
            begun = time.monotonic()
            self._do(self._engine.receive, self._arrived())
            if self._engine.table.active > 1:
                ended = time.monotonic()
                self._held_until = ended + min(_HOLD * (ended - begun), _LONGEST_HOLD)
                return

    def _do(self, call: Callable[..., Effects], *arguments: Any) -> None:
        """Call the engine, and do what it wants done."""
        with self._lock:
            if self._is_closed:
                return
            effects = call(*arguments, time.monotonic())
            self._perform(effects)
        deliver(effects.completed)

    def _arrived(self) -> Iterator[tuple[int, bytes]]:
        for number, queue in self._queues.items():
            for _ in range(min(len(queue), _IN_TURN)):
                yield number, queue.popleft()

    def presence(self, number: int, is_there: bool) -> None:
        """A neighbour's token came or went."""
        self._do(self._engine.presence, number, is_there)
        self.on_presence(number, is_there)

    def explain(self, number: int | None, reason: str) -> None:
        """Why a neighbour is not there, or that another peer (None) was refused."""
        _log.warning("%s: %s", self.name, reason)
        with self._lock:
            self._engine.explain(number, reason, is_refused=not isinstance(reason, Unreachable))

    def _perform(self, effects: Effects) -> None:
        """Send, log and set the timer; the lock is held, so that frames leave in order."""
        carrier = self._transport
        for to, data in effects.frames if carrier is not None else ():
            try:
                carrier.broadcast(data) if to is None else carrier.send(to, data)  # type: ignore[union-attr]
            except LiveError as problem:  # as good as lost: whoever misses it will ask
                _log.warning("%s: %s", self.name, problem)
        for level, text in effects.log:
            _log.log(level, "%s", text)
        self._call_at(effects.wake)

    def _call_at(self, when: float) -> None:
        if when < self._wake:
            with self._timer:
                self._wake = min(self._wake, when)
                self._timer.notify()

    def _keep_watch(self) -> None:
        """Call the engine when it wants to be called; asleep while nothing is pending."""
        while True:
            with self._timer:
                if self._is_closed:
                    return
                left = self._wake - time.monotonic()
                if left > 0:
                    self._timer.wait(None if left == math.inf else left)
                    continue
                self._wake = math.inf
            try:
                self._look_after()
            except Exception:  # without this thread nothing overdue would ever be noticed
                _log.exception("%s: a deadline could not be handled", self.name)

    def _look_after(self) -> None:
        with self._reading:
            self._read()  # before what is overdue is looked for: it may have arrived
        now = time.monotonic()
        if self._has_frames() and now < self._engine.wake + _STARVED:
            self._call_at(max(self._held_until, now))
        elif now >= self._engine.wake:
            self._do(self._engine.tick)
        else:
            self._call_at(self._engine.wake)

    def recent(self, most: int = 8) -> Recent:
        """The items that came last, newest first, as far as they are."""
        with self._lock:
            return results.recent(self._engine, most, time.monotonic())

    def why_not_ready(self) -> str | None:
        """What is missing for full rounds; None if nothing is."""
        with self._lock:
            return results.why_not_ready(self._engine)

    def status(self) -> Status:
        """The state of the agent and its neighbours."""
        carried = self._transport
        sent, received = (carried.sent_bytes, carried.received_bytes) if carried else (0, 0)
        with self._lock:
            return results.status(self._engine, time.monotonic(), sent, received)
