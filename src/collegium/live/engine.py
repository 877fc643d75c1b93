"""The engine of one agent: scores in, frames in and out, decisions out; no thread, lock, clock or socket.

Rounds are synchronous for each item: the agent sends its message of round t, waits for those of its senders, combines
them and goes on. What all items have to send goes into one frame. A network in which all is well never waits for a
timer: the messages themselves drive it. When a message is overdue its sender is asked for it (`recovery`); one whose
messages do not come is left out until one does. An item has a deadline of its own, after which it is decided with what
is there. Every result names the neighbours it had to do without and the agents whose views are in it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium._util.randomness import U64, seed64
from collegium._util.seat import Seat
from collegium.errors import LiveError, RuleError
from collegium.live import reading, recovery, submissions
from collegium.live.account import Account
from collegium.live.answers import ItemResult, Mass, Name
from collegium.live.naming import Handles
from collegium.live.peers import Budget, Deadlines, Neighbour, State
from collegium.live.privacy import with_noise
from collegium.live.results import results
from collegium.live.rounds import Progress
from collegium.live.sets import Sets
from collegium.live.signing import LIED, Witness
from collegium.live.table import (
    ANNOUNCED,
    GIVEN,
    NO_VIEW,
    PENDING,
    RUNNING,
    Bools,
    Doubles,
    Rounds,
    Rows,
    Table,
    in_round,
    rerun,
)
from collegium.live.transport.base import Place
from collegium.live.waiters import Backlog, Ticket, Waiters
from collegium.live.wire import MOST_ITEMS, NUMBER, Dialect, Frame, FrameError, Kind, about, decode, encode
from collegium.protocol import DeGroot, Rule

_PING = 0.5  # seconds between questions to a connected neighbour that answers nothing
_QUESTIONS = (200.0, 400.0)  # a second and at once: frames of a neighbour that are no messages, per 1 kB
_GRACE = 10  # times its budget, dropped within a second or so, and a neighbour is left out
_REFUSED = 20  # kinds of refused peers that are counted
_MERCY = 1000  # and at least so much
_BACKLOG = 4  # times as many items may wait as may be pending
_OVERLOADED = 4  # times as long an overloaded agent waits for views: those who send them are told to retry
_ANSWERS = (Kind.NOT_YET, Kind.DECLINED, Kind.PONG)


@dataclass(frozen=True)
class Limits:
    """What an agent may use."""

    memory: int | None = None
    """Bytes for items pending and remembered; 32 MB for each number of a message, up to four, if None."""
    pending: int | None = None
    """Items at most that are submitted here, begun and not decided; a quarter of what fits if None."""
    from_zero: float = 2000.0
    """Items a second at most in which the agent takes part without a view, for each neighbour that begins them."""


@dataclass(slots=True)
class Effects:
    """What is to be done after a call: frames to send, requests to answer, lines to log, and when to call `tick`."""

    frames: list[tuple[int | None, bytes]] = field(default_factory=list)
    """To one neighbour, or (None) to all receivers."""
    completed: list[Ticket] = field(default_factory=list)
    log: list[tuple[int, str]] = field(default_factory=list)
    wake: float = math.inf


class Engine:
    """The items, neighbours and rounds of one agent.

    weights: how much each sender counts, this agent's own weight among them, by number; they sum to one.
    seats: the agent's place in each round, where they differ; `weights` then names everybody it hears in any of them.
    agents: everybody's names, by number; they bound what evidence there can be.
    reachable: how many agents' views can be in this one's statistic after all rounds; all, if None.
    policy: a hash of what all agents must agree on; frames made under another are refused.
    sets: the thresholds of its prediction sets, if answers are to have any.
    absent: what a message that never came stands for: "renormalise" leaves it out, "hold" keeps the sender's last.
    bounds: the largest score of each neighbour, by number; bound: of this agent; largest: of anybody.
    secret: what noise on this agent's own scores is made of, with rules that add it; a random one if None.
    keys: what it signs or masks its scores with, where the rule does; those of a simulation if None.
    charge: told the identities of items before this agent's scores of them enter; it may refuse them by raising.
    first_handle: a random one, since neighbours may remember handles of a life before this one.
    """

    stood_still: Bools | None = None
    """Without rounds: which items were answered because their statistic stood still."""

    def __init__(
        self,
        place: Place,
        weights: Mapping[int, float],
        agents: Sequence[str],
        *,
        rule: Rule = DeGroot(),
        rounds: int = 20,
        seats: Sequence[Seat] | None = None,
        seed: int = 0,
        classes: Sequence[Any] = (-1, 1),
        sets: Sets | None = None,
        reachable: int | None = None,
        policy: int = 0,
        bound: float = 1e300,
        bounds: Mapping[int, float] | None = None,
        largest: float = 1e300,
        deadlines: Deadlines = Deadlines(),
        absent: Literal["renormalise", "hold"] = "renormalise",
        limits: Limits = Limits(),
        secret: bytes | None = None,
        keys: Any = None,
        charge: Callable[[U64], object] = lambda ids: None,
        first_handle: int = 0,
        now: float = 0.0,
    ) -> None:
        self.place, self.name, self.number = place, place.name, place.number
        self.classes, self.rule, self.deadlines, self.sets = tuple(classes), rule, deadlines, sets
        self.rounds = whole_number(rounds, "rounds", RuleError, at_least=1, at_most=10_000)
        heard = {peer.number for peer in place.hears}
        if set(weights) - {self.number} != heard:
            raise LiveError(f"{self.name} has weights for {sorted(weights)} and hears {sorted(heard)}")
        self.agents = tuple(agents)
        for number, name in ((self.number, self.name), *((peer.number, peer.name) for peer in place.neighbours)):
            if self.agents[number : number + 1] != (name,):
                raise LiveError(f"agent {number} is {name}, but not by the names of all agents: {self.agents}")
        self.reachable = reachable or len(self.agents)
        senders = sorted(weights)
        if seats is None:
            own = senders.index(self.number) if self.number in weights else None
            weight, receivers = [weights[number] for number in senders], [peer.number for peer in place.audience]
            seat = Seat(self.number, np.array(senders, np.int32), own, np.array(weight), np.array(receivers, np.int32))
            seats = [seat] * self.rounds
        elif len(seats) != self.rounds or not {l for seat in seats for l in seat.senders.tolist()} <= set(senders):
            raise LiveError(f"{self.name} has {len(seats)} seats for {self.rounds} rounds, or hears others in them")
        self.d = 1 if len(self.classes) == 2 else len(self.classes)
        width, m = rule.width(self.d), len(senders)
        memory = limits.memory or min(width, 4) << 25
        capacity = Table.capacity_for(self.rounds, m, memory, width, self.d)
        self.most = min(limits.pending or capacity // 4, capacity // 2)
        self.bound = min(bound, rule.max_score(self.rounds))
        largest = rule.codec.reach(min(largest, rule.max_score(self.rounds)), width)
        self.largest = largest * rule.message_growth(self.rounds) * (1 + 1e-9)
        inner, noise = with_noise(rule, secret, self.d)
        self.witness = keys if isinstance(keys, Witness) else None
        if keys is not None:
            inner = inner.with_keys(keys)  # type: ignore[attr-defined]  # rules that sign or mask have it
        self.charge = charge
        self.dialect = Dialect(
            int(place.network, 16), policy, rule.codec.message_bits, self.rounds, width, len(self.agents)
        )
        self.progress = Progress(
            inner,
            seats,
            np.array(senders, np.int32),
            self.dialect,
            seed64(seed),
            capacity,
            self.d,
            absent,
            first_handle,
        )
        self.progress.on_decided, self.progress.on_failed = self._decided, self._failed
        self.tell_decided: Callable[[Rows, float], None] | None = None
        """Told of items that were decided just now."""
        self.progress.noise = noise
        self.table = self.progress.table
        self.single, self.beyond = self.progress.single, 1 << len(self.agents)
        self.waiters, self.backlog = Waiters(capacity), Backlog(_BACKLOG * self.most)
        growth = rule.message_growth(1) * (1 + 1e-9)
        self.neighbours = {
            peer.number: Neighbour(
                peer,
                senders.index(peer.number) if peer in place.hears else None,
                peer in place.audience,
                deadlines,
                min(rule.codec.reach((bounds or {}).get(peer.number, 1e300), width) * growth, self.largest),
                Handles(capacity),
                Budget(*_QUESTIONS),
                Budget(limits.from_zero, 2 * limits.from_zero),
                self.single.heads(peer.number) if width == 1 and self.dialect.bits == NUMBER else (),
            )
            for peer in place.neighbours
        }
        self.heard = [n for n in self.neighbours.values() if n.place is not None]
        self._relayed = Budget(limits.from_zero, 2 * limits.from_zero)
        self._told = Budget(limits.from_zero, 2 * limits.from_zero)
        self._effects = Effects()
        self.account = Account(now)
        self.refused_peers: dict[str, int] = {}
        self._caught = 0  # agents whose lies were logged
        self.is_draining = self.is_closed = False
        self.wake = math.inf
        """When to call `tick`."""
        self._soonest = min(deadlines.least, deadlines.view / 8)

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def submit(
        self, names: Sequence[Name], scores: Doubles, trace: bool, now: float, later: bool = False
    ) -> tuple[Ticket, Effects]:
        """Begin items with this agent's own scores, (n,) or (n, d); the ticket will have their results, in order.

        An item submitted before with the same score is not begun again: sending again is harmless. With another score
        it is refused (`Conflict`). An item decided without this agent's view, which comes only now, runs once more.
        Items wait while the agent is busy. If too many do (`Busy`), those that neighbours have begun are begun.
        later: what is to be sent may wait for the next call, and share a frame with what that one sends.
        """
        ticket = submissions.submit(self, names, scores, trace, now)
        return ticket, self._done(now, later)

    def receive(self, frames: Iterable[tuple[int, bytes]], now: float) -> Effects:
        """Frames from neighbours, by number; nonsense is counted and otherwise without effect."""
        for sender, data in frames:
            self._read(sender, data, now)
        return self._done(now)

    def presence(self, number: int, is_there: bool, now: float) -> Effects:
        """A neighbour's token came or went."""
        n = self.neighbours.get(number)
        if n is not None and (n.is_present != is_there or n.is_expected):
            self.log(logging.INFO, f"{n.peer.name} {'is connected' if is_there else 'has left'}")
            if is_there:
                n.connected()
                self.table.named[:] = False  # it may know none of the handles
                recovery.tell_open(self, n)
            else:
                n.disconnected()
            self._sync(n)
        return self._done(now)

    def going(self, number: int, now: float) -> Effects:
        """A neighbour says that it goes for a moment: what it owes is waited for, and not asked for meanwhile."""
        n = self.neighbours.get(number)
        if n is not None and n.is_present:
            if not n.is_expected:
                self.log(logging.INFO, f"{n.peer.name} goes for a moment")
            n.going(now)
        return self._done(now)

    def drain(self) -> None:
        """This agent is about to stop: it takes part in no item for which it has no view."""
        self.is_draining = True

    def close(self, now: float) -> Effects:
        """The next epoch is about to begin: items that others have begun in this one are announced at once, so that all
        know them by then, however long views are waited for."""
        self.is_closed, table = True, self.table
        self._tell(np.flatnonzero((table.state == ANNOUNCED) & ~table.announced & (table.first == 1)), now)
        return self._done(now)

    def explain(self, number: int | None, reason: str, is_refused: bool, now: float) -> Effects:
        """Why a neighbour is not connected, or that another peer (None) was refused."""
        if number is None:
            self.refused_peers[reason] = self.refused_peers.pop(reason, 0) + 1
            while len(self.refused_peers) > _REFUSED:
                self.refused_peers.pop(next(iter(self.refused_peers)))
        n = None if number is None else self.neighbours.get(number)
        if n is not None and n.is_expected and is_refused:  # whoever is in its place now is another
            n.disconnected()
            self._sync(n)
        if n is not None and (n.is_expected or not n.is_present):
            if is_refused and n.state is State.AWAY:
                n.become(State.REFUSED)
            n.reason = reason
        return self._done(now)

    def deny(self, number: int, reason: str) -> None:
        """A neighbour is revoked, or with an empty reason trusted again."""
        n = self.neighbours.get(number)
        if n is not None:
            n.revoked = reason

    def tick(self, now: float) -> Effects:
        """Look after what is overdue; to be called at `Effects.wake`."""
        wakes = [self._end_items(now), self._end_waits(now), recovery.ask(self, now), self._watch(now)]
        self.progress.forget_sets()
        goes_on = self.progress.has_touched  # then there are new deadlines, which `_done` expects soon
        self.wake = max(min(wakes), now + self._soonest / 2)
        wake = self.wake
        effects = self._done(now)
        if not goes_on:
            effects.wake = self.wake = wake
        return effects

    def stop(self) -> list[Ticket]:
        """Nothing more will be decided: those who still wait, once each."""
        waiting = dict.fromkeys([*self.waiters.drain(), *self.backlog.drain()])
        return [ticket for ticket in waiting if not ticket.error]

    def _done(self, now: float, later: bool = False) -> Effects:
        """Go on with what is ready, then hand out what is to be done."""
        decided = self.account.done
        self.progress.advance(now)
        # Before other items are begun: they may use rows that were decided just now.
        if self.progress.has_new and not (later and self.account.done == decided):
            self._send_new()
        while self.is_overloaded and submissions.admit(
            self, now
        ):  # what begins may be decided at once, and make room again
            self.progress.advance(now)
            self._send_new()
        for agent in list(self.witness.proofs)[self._caught :] if self.witness is not None else ():
            self._caught += 1
            self.log(logging.WARNING, f"{self.agents[agent]} {LIED}")
        effects, self._effects = self._effects, Effects()
        effects.completed, self.waiters.completed = self.waiters.completed, []
        if self.table.active or any(n.state in (State.SILENT, State.OVER_BUDGET) for n in self.heard):
            self.wake = min(self.wake, now + self._soonest)
        else:
            self.wake = math.inf
        effects.wake = self.wake
        return effects

    def _send_new(self) -> None:
        for to, frame in self.progress.new_messages():
            self.send(to, frame)

    def log(self, level: int, text: str) -> None:
        """A line for the log."""
        self._effects.log.append((level, f"{self.name}: {text}"))

    # ── submissions ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def mine(self) -> int:
        """Items in their rounds that were submitted here."""
        return int(np.count_nonzero((self.table.state == RUNNING) & (self.table.view != NO_VIEW)))

    @property
    def is_overloaded(self) -> bool:
        """Whether submissions wait, or were refused just now."""
        return bool(len(self.backlog)) or self.account.is_overloaded

    # ── frames ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, sender: int, data: bytes, now: float) -> None:
        n = self.neighbours.get(sender)
        if n is None or (data.startswith(n.heads) and reading.take_in_one(self, n, data, now)):
            return
        if n.state is State.OVER_BUDGET:
            n.over_budget += 1
            return
        try:
            if len(data) > 1 and data[1] != Kind.ROUND:
                cost = 1 + len(data) / 1024
                if self._within(n, n.questions, cost, now) < cost:
                    return
            frame = decode(data, self.dialect)
            if frame.sender != sender:
                raise FrameError(f"a frame that claims to come from agent {frame.sender}")
            if not (n.hears if frame.kind is Kind.RESEND else frame.kind is Kind.PING or n.place is not None):
                raise FrameError("a frame from an agent that has no part in this one's rounds")
            if n.heard():
                self._sync(n)
            if (frame.is_resent or frame.kind in _ANSWERS) and n.question_at is not None:
                n.answered(now, was_lost=frame.is_resent)
                self.wake = now if frame.is_resent else self.wake  # there may be more to ask for
            if frame.kind is Kind.ROUND:
                if not reading.take_in(self, n, frame, now):
                    self._within(n, n.questions, 1 + len(data) / 1024, now)  # what is of no use costs its sender
            elif frame.kind is Kind.RESEND:
                recovery.answer(self, n, frame, now)
            elif frame.kind is Kind.NOT_YET:
                recovery.put_off(self, n, frame, now)
            elif frame.kind is Kind.DECLINED:
                recovery.declined(self, n, frame)
            elif frame.kind is Kind.ANNOUNCE:
                rows = self.rows_of(frame.ids, 1, n, now)
                rows = rows[rows >= 0]
                self._tell(rows[(self.table.state[rows] == ANNOUNCED) & ~self.table.announced[rows]], now)
            elif frame.kind is Kind.PING:
                self.send(n.peer.number, Frame(Kind.PONG, self.number))
        except FrameError as problem:
            n.rejected += 1
            n.reason = f"sent {problem}"
            self._within(n, n.questions, 1 + len(data) / 1024, now)

    def _within(self, n: Neighbour, budget: Budget, wanted: float, now: float) -> float:
        """As much as a neighbour's budget allows; far beyond it, the neighbour is left out."""
        granted = budget.take(wanted, now)
        n.over_budget += math.ceil(wanted - granted)
        if budget.excess > max(_GRACE * budget.rate, _MERCY) and n.state in (State.UP, State.SILENT, State.MUTE):
            n.leave_out(State.OVER_BUDGET, "sends far more than it may", now)
            self.log(logging.WARNING, f"{n.peer.name} sends far more than it may: left out for {n.until - now:.0f} s")
            self._sync(n)
        return granted

    def send(self, to: int | None, frame: Frame) -> None:
        """To one neighbour, or to all receivers."""
        if to is not None or self.place.audience:
            self._effects.frames.append((to, encode(frame, self.dialect)))

    def _sync(self, n: Neighbour) -> None:
        """A neighbour's state changed: rounds that wait for it alone may go on."""
        if n.place is not None:
            self.progress.wait_for(n.place, not n.is_left_out)

    def leave_out(self, n: Neighbour, state: State, reason: str, now: float) -> None:
        """Rounds go on without a neighbour that is connected."""
        self.log(logging.WARNING, f"{n.peer.name} {reason}: rounds go on without it")
        n.leave_out(state, reason, now)
        self._sync(n)

    def not_back(self, n: Neighbour) -> None:
        """A neighbour that went for a moment is away for longer."""
        self.log(logging.WARNING, f"{n.peer.name} is not back: rounds go on without it")
        n.become(State.SILENT, "went, and is not back")
        self._sync(n)

    def broadcast(self, frames: Iterable[bytes]) -> None:
        """To all receivers, as they are."""
        if self.place.audience:
            self._effects.frames += [(None, data) for data in frames]

    def got_message(self, n: Neighbour, now: float) -> None:
        """A neighbour's message arrived that is of use."""
        if n.sent_message(now):
            self._sync(n)

    # ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def rows_of(self, ids: U64, t: int, n: Neighbour, now: float) -> Rows:
        """The rows of items a neighbour speaks about, taken in hand if they are new and there is room; else -1."""
        rows = self.table.rows(ids)
        if (rows < 0).any():
            fresh = np.unique(ids[rows < 0])
            self._announced(fresh, t, n, now)
            rows = self.table.rows(ids)
        return rows

    def _announced(self, ids: U64, t: int, n: Neighbour, now: float) -> None:
        table = self.table
        in_backlog = self.backlog.has(ids)
        waiting, ids = ids[in_backlog], ids[~in_backlog]
        # Whatever neighbours begin, there is room for what is submitted here, and for what other neighbours begin.
        open_ones = int(np.count_nonzero((table.state == ANNOUNCED) & (table.origin == n.peer.number)))
        room = min(table.room() - max(self.most - self.mine, 0) - len(waiting), table.capacity // 2 - open_ones)
        room = min(max(room, 0), len(ids))
        if room < len(ids):
            self.account.no_room += len(ids) - room
            self._within(n, n.from_zero, len(ids) - room, now)
        waiting = waiting[: table.room()]
        if len(waiting):
            submissions.begin_waiting(self, waiting, table.announce(waiting, now, 1, n.peer.number), now)
        ids = ids[:room]
        if not len(ids):
            return
        rows = table.announce(ids, now, t, n.peer.number)
        before = table.rows(rerun(ids))
        table.only_with_view[rows] = table.are_past(ids) | (before >= 0)
        # What runs once more has this agent's view already, if it had one the first time.
        seen = (before >= 0) & (table.view[before] != NO_VIEW) & ~table.are_past(ids)
        seen &= np.cumsum(seen) <= self._within(n, n.from_zero, int(seen.sum()), now)
        if seen.any():
            self.progress.begin(rows[seen], table.score[before[seen]], GIVEN, now)
        if self.is_closed and t == 1:
            self._tell(rows[table.state[rows] == ANNOUNCED], now)

    def _tell(self, rows: Rows, now: float) -> None:
        """Tell neighbours of items before the first message on them, so that all wait for their views together.

        No more than a neighbour may begin: whoever invents items must not make this agent look as if it did.
        """
        rows = rows[: int(self._told.take(len(rows), now))]
        self.table.announced[rows] = True
        for start in range(0, len(rows), MOST_ITEMS):
            ids = self.table.id[rows[start : start + MOST_ITEMS]]
            self.send(None, about(Kind.ANNOUNCE, self.number, ids, np.ones(len(ids), np.int32)))

    def view_wait(self) -> float:
        """How long views are waited for now."""
        return self.deadlines.view * (_OVERLOADED if self.is_overloaded else 1)

    def _end_waits(self, now: float) -> float:
        """Items whose view did not come: take part from zero, or not at all; when to look again."""
        table, wait = self.table, self.view_wait()
        rows = np.flatnonzero(table.state == ANNOUNCED)
        if not len(rows) or self.is_draining:
            return math.inf
        waited = now - table.born[rows]
        over = rows[waited >= wait]
        if len(over):
            self._begin_from_zero(over, now)
        rows, waited = rows[waited < wait], waited[waited < wait]
        # Views mostly come within moments of each other: only where one does not is it worth telling others.
        early, untold = self.deadlines.view / 8, ~table.announced[rows] & (table.first[rows] == 1)
        self._tell(rows[untold & (waited >= early)], now)
        times = np.where(untold & (waited < early), early - waited, wait - waited)
        return now + float(times.min()) if len(rows) else math.inf

    def _begin_from_zero(self, rows: Rows, now: float) -> None:
        table = self.table
        never = table.only_with_view[rows]
        for number in np.unique(table.origin[rows[~never]]).tolist():
            n = self.neighbours.get(number)
            of_it = np.flatnonzero(~never & (table.origin[rows] == number))
            granted = self._relayed.take(len(of_it), now)
            if n is not None:
                granted = min(granted, self._within(n, n.from_zero, len(of_it), now))
            never[of_it[int(granted) :]] = True
        declined = rows[never]
        if len(declined):
            self.account.no_room += len(declined)
            self.decline(None, table.id[declined], table.first[declined])
            table.drop(declined)
        self.progress.begin(rows[~never], np.zeros((int((~never).sum()), self.d)), NO_VIEW, now)

    def decline(self, to: int | None, ids: U64, rounds: Rounds) -> None:
        """Say that this agent takes no part in items."""
        for start in range(0, len(ids), MOST_ITEMS):
            part = slice(start, start + MOST_ITEMS)
            self.send(to, about(Kind.DECLINED, self.number, ids[part], rounds[part]))

    def _end_items(self, now: float) -> float:
        """Decide items whose deadline has come with what is there; when the next one comes."""
        table = self.table
        rows = np.flatnonzero(table.state == RUNNING)
        if not len(rows):
            return math.inf
        ends = table.born[rows] + self.deadlines.item
        over = rows[ends <= now]
        if len(over):
            self.account.past_deadline += len(over)
            self.log(logging.WARNING, f"{len(over)} items were decided at their deadline, before the last round")
            table.missed[:, over] |= in_round(table.message, table.round[over], over) == PENDING
            # Before the first round ends, the statistic of some rules has no view at all.
            early = over[table.done[over] < table.first[over]]
            table.evidence[early[(table.trace[table.done[early], early] == 0).all(axis=1)]] = 0
            self._decided(over, now)
        left = ends[ends > now]
        return float(left.min()) if len(left) else math.inf

    def _watch(self, now: float) -> float:
        """Look after neighbours that are left out; when to look again."""
        wake = math.inf
        for n in self.neighbours.values():
            if n.state is State.OVER_BUDGET:
                if now >= n.until:
                    n.become(State.UP)
                    self._sync(n)
                else:
                    wake = min(wake, n.until)
            elif n.state is State.SILENT:
                self.ping(n, _PING, now)
                wake = min(wake, n.pinged_at + _PING)
        return wake

    def ping(self, n: Neighbour, every: float, now: float) -> None:
        """Ask whether a neighbour is there, every so many seconds."""
        if now - n.pinged_at >= every:
            n.pinged_at = now
            n.question_at = now
            self.send(n.peer.number, Frame(Kind.PING, self.number))

    # ── the end of items ──────────────────────────────────────────────────────────────────────────────────────────

    def _decided(self, rows: Rows, now: float) -> None:
        table, account = self.table, self.account
        table.decide(rows, now)
        account.decided(now - table.born[rows])
        account.from_zero += int((table.view[rows] == NO_VIEW).sum())
        account.with_missing += int(table.missed[:, rows].any(axis=0).sum())
        account.incomplete += int((~self.is_complete(table.evidence[rows])).sum())
        if self.tell_decided is not None:
            self.tell_decided(rows, now)
        self.waiters.decided(rows, self.results)

    def rounds_of(self, rows: Rows) -> NDArray[np.int32]:
        """Rounds of decided items that this agent took part in."""
        return np.asarray(self.table.done[rows] - self.table.first[rows] + 1, np.int32)

    def mass(self) -> Mass | None:
        """The sums of an agent that keeps running sums without rounds."""
        return None

    def is_complete(self, evidence: NDArray[np.uint16]) -> Bools:
        """Whether sets of agents, by index, have every view that can be in a statistic here."""
        members, indices = self.progress.sets.members, evidence.tolist()
        full = {index: members[index].bit_count() >= self.reachable for index in set(indices)}
        return np.array([full[index] for index in indices], np.bool_)

    def _failed(self, rows: Rows, problem: Exception) -> None:
        """The rule raised: those who wait are told, and the items are given up here."""
        sentence = f"{self.rule} failed at {self.name}: {type(problem).__name__}: {problem}"
        self.log(logging.ERROR, f"{len(rows)} items were given up: {sentence}")
        table = self.table
        self.account.failed += len(rows)
        self.waiters.fail(rows, sentence)
        self.decline(None, table.id[rows], table.round[rows])
        table.drop(rows)

    def results(self, names: Sequence[Name], rows: Rows, trace: bool) -> list[ItemResult]:
        """Results of decided items."""
        return results(self, names, rows, trace)
