"""One agent of a live network: an engine, its transport, a lock and a timer."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from msgspec.structs import replace
from numpy.typing import NDArray

from collegium.errors import LiveError
from collegium.live import results
from collegium.live.alarm import Alarm
from collegium.live.answers import ItemResult, Name, Recent, Status
from collegium.live.asynchronous import AsynchronousEngine
from collegium.live.engine import Effects, Engine
from collegium.live.frame_reader import FrameReader, Frames
from collegium.live.gain import Gains
from collegium.live.peer_diagnosis import Unreachable
from collegium.live.privacy import Spending, spending_of
from collegium.live.spans import Spans
from collegium.live.table import Doubles
from collegium.live.transport.base import Place, Transport
from collegium.live.waiters import deliver

_log = logging.getLogger("collegium.live")
_FEW = 16  # items of a submission up to which its messages are worth no frame of their own
_STARVED = 0.5  # seconds for which frames to be read may put off what is overdue


class Agent:
    """An agent that may be used from any thread; settings are those of `Engine`; mode="asynchronous" is without rounds.

    score: from views (n, …) to local statistics, (n,) or (n, classes); without it scores must come from outside.
    gains: what tuning left it with. A gain counts for what its model makes of views; at an agent without a model, for
        the scores it is given (`enter`). What is submitted has its gain already.
    traces: where spans of its items go, a `TracerProvider` of OpenTelemetry; by default nowhere.
    spending: what its items have cost, with rules that add noise to scores; by default nothing yet, without a limit.
    """

    def __init__(
        self,
        place: Place,
        weights: Mapping[int, float],
        agents: Sequence[str],
        *,
        score: Callable[[NDArray[Any]], Doubles] | None = None,
        gains: Gains | None = None,
        spending: Spending | None = None,
        traces: Any = None,
        **settings: Any,
    ) -> None:
        settings.setdefault("first_handle", secrets.randbits(32))
        self.spending = spending or spending_of(settings.get("rule"))
        if self.spending is not None:
            settings["charge"] = self.spending.charge
        make = AsynchronousEngine if settings.pop("mode", "") == "asynchronous" else Engine
        engine: Engine = make(place, weights, agents, now=time.monotonic(), **settings)
        self.place, self.name, self.number, self.deadlines = place, place.name, place.number, engine.deadlines
        self.classes, self.rounds, self.rule, self.bound = engine.classes, engine.rounds, engine.rule, engine.bound
        self._engine, self.model, self.gains, self._sets = engine, score, gains or Gains(), engine.sets
        self._spans = None if traces is None else Spans(engine, traces)
        self.check_sets()
        self._lock = threading.RLock()
        self._alarm = Alarm(f"{self.name}-deadlines", self._look_after)
        self._reader = FrameReader(place, self._read, self._alarm)
        self.receive = self._reader.receive
        self._transport: Transport | None = None
        self.is_stopped = False
        self.was_ready = not place.neighbours  # whether all neighbours have been connected at once
        self.on_presence: Callable[[int, bool], object] = lambda number, is_there: None

    def start(self, transport: Transport) -> None:
        """Join the network."""
        self._transport = transport
        self._alarm.start()
        transport.on_going = lambda number: self._do(self._engine.going, number)
        transport.open(self.receive, self.presence)

    def stop(self) -> None:
        """Leave it; requests that wait for an item fail."""
        with self._lock:
            self.is_stopped = True
            waiting = self._engine.stop()
        if self._transport is not None:
            self._transport.close()
        self._alarm.stop()
        for ticket in waiting:
            ticket.error = ticket.error or f"{self.name} was stopped before the item was decided"
        deliver(waiting)

    def score(self, views: NDArray[Any]) -> Doubles:
        """Local statistics of views; slow, so call it in a thread of its own."""
        if self.model is None:
            raise LiveError(f"{self.name} has no model: send it scores instead of views")
        return self.model(views)

    def enter(self, names: Sequence[Name], scores: Doubles, given: bool) -> Doubles:
        """What scores become by the agent's gain; given: they come from outside, not from the model."""
        return scores if given and self.model is not None else self.gains.enter(names, scores)

    def check_sets(self) -> None:
        """Prediction sets are those of the gains with which they were learned: tuned agents have none."""
        self._engine.sets = None if self.gains.now.session else self._sets

    def submit(self, names: Sequence[Name], scores: Doubles, trace: bool = False) -> Future[list[ItemResult]]:
        """Begin items with this agent's local statistics of them; see `Engine.submit`.

        What is called when the future is done is called by a thread that brings neighbours' messages: let it be short.
        """
        called = time.monotonic()
        with self._lock:
            if self.is_stopped:
                raise LiveError(f"{self.name} is stopping")
            # While others are under way, the messages of a few items go along with theirs.
            is_held = len(names) <= _FEW and self._engine.table.active > 0 and self._reader.is_holding
            try:
                ticket, effects = self._engine.submit(names, scores, trace, time.monotonic(), later=is_held)
            except LiveError:
                self._do(self._engine.receive, ())  # what neighbours had begun was begun all the same
                raise
            self._perform(effects)
            if is_held:
                self._alarm.at(self._reader.held_until)
        if self._spans is not None:
            self._spans.submitted(names, called, time.monotonic())
        deliver(effects.completed)
        return ticket.future

    def submit_unkept(self, names: Sequence[Name], scores: Doubles) -> Future[list[ItemResult]]:
        """As `submit`, of what no journal keeps: a conversation of tuning does not outlive the process."""
        return Agent.submit(self, names, scores)

    def result(self, name: Name, trace: bool = False) -> ItemResult | None:
        """The result of an item, if it is decided and remembered."""
        with self._lock:
            return results.result(self._engine, name, trace)

    def is_pending(self, name: Name) -> bool:
        """Whether an item is in hand and not decided."""
        with self._lock:
            return results.is_pending(self._engine, name)

    def in_hand(self) -> int:
        """How many items were submitted here and are not decided."""
        with self._lock:
            return 0 if self.is_stopped else self._engine.mine + len(self._engine.backlog)

    def knows(self, names: Sequence[Name]) -> list[bool]:
        """Which items were begun here, announced to it, or are remembered; of a stopped agent, those decided."""
        with self._lock:
            if self.is_stopped:
                return [results.result(self._engine, name, False) is not None for name in names]
            return results.knows(self._engine, names)

    def unfinished(self) -> int:
        """How many items are in hand, also those submitted elsewhere."""
        with self._lock:
            return 0 if self.is_stopped else self._engine.table.active + len(self._engine.backlog)

    def holds(self, names: Sequence[Name]) -> bool:
        """Whether a submission has to wait a moment: not within an epoch; see `Epochs`."""
        return False

    def _read(self, frames: Frames) -> bool:
        """Process frames; whether several items are under way, so that the next frames may wait for each other."""
        if not frames and not self._engine.progress.has_new:
            return False
        self._do(self._engine.receive, frames)
        return self._engine.table.active > 1

    def _do(self, call: Callable[..., Effects], *arguments: Any) -> None:
        """Call the engine, and do what it wants done."""
        with self._lock:
            if self.is_stopped:
                return
            self._perform(effects := call(*arguments, time.monotonic()))
        deliver(effects.completed)

    def presence(self, number: int, is_there: bool) -> None:
        """A neighbour's token came or went."""
        self._do(self._engine.presence, number, is_there)
        self.was_ready = self.was_ready or self.why_not_ready() is None
        self.on_presence(number, is_there)

    def drain(self) -> None:
        """This agent is about to stop: it notifies its neighbours, and takes part only in what was submitted here."""
        with self._lock:
            self._engine.drain()
        if self._transport is not None:
            self._transport.say_going()

    def close(self) -> None:
        """The next epoch of the network is about to begin: neighbours learn at once of the items of this one."""
        self._do(self._engine.close)

    def explain(self, number: int | None, reason: str) -> None:
        """Why a neighbour is not there, or that another peer (None) was refused."""
        _log.warning("%s: %s", self.name, reason)
        self._do(self._engine.explain, number, reason, not isinstance(reason, Unreachable))

    def deny(self, number: int, reason: str) -> None:
        """A neighbour is revoked, or with an empty reason trusted again."""
        with self._lock:
            self._engine.deny(number, reason)

    def _perform(self, effects: Effects) -> None:
        """Send, log and set the timer; the lock is held, so that frames leave in order."""
        for to, data in effects.frames if (carrier := self._transport) is not None else ():
            try:
                carrier.broadcast(data) if to is None else carrier.send(to, data)  # type: ignore[union-attr]
            except LiveError as problem:  # as good as lost: whoever misses it will ask
                _log.warning("%s: %s", self.name, problem)
        for level, text in effects.log:
            _log.log(level, "%s", text)
        self._alarm.at(effects.wake)

    def _look_after(self) -> None:
        self._reader.read()  # before what is overdue is looked for: it may have arrived
        now = time.monotonic()
        if self._reader.has_frames and now < self._engine.wake + _STARVED:
            self._alarm.at(max(self._reader.held_until, now))
        elif now >= self._engine.wake:
            self._do(self._engine.tick)
        else:
            self._alarm.at(self._engine.wake)

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
        sent, received = (one.sent_bytes, one.received_bytes) if (one := self._transport) else (0, 0)
        with self._lock:
            status = results.status(self._engine, time.monotonic(), sent, received)
        privacy, gains = None if self.spending is None else self.spending.shown(), self.gains.now
        return replace(status, gain=gains.gain, tuning=gains.session, privacy=privacy)
