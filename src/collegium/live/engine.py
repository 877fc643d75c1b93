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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium._util.randomness import U64, item_ids, seed64
from collegium.errors import LiveError, RuleError, ScoreError
from collegium.live import recovery
from collegium.live.account import Account
from collegium.live.answers import Busy, Conflict, Name
from collegium.live.evidence import Sets
from collegium.live.item_states import ItemStates
from collegium.live.naming import Handles, runs_of
from collegium.live.peers import Budget, Deadlines, Neighbour, State
from collegium.live.results import results
from collegium.live.table import (
    ANNOUNCED,
    DECIDED,
    GIVEN,
    LATE,
    NO_VIEW,
    PENDING,
    RECEIVED,
    RUNNING,
    UNCHANGED,
    Rows,
    Table,
    rerun,
)
from collegium.live.transport.base import Place
from collegium.live.waiters import Backlog, Ticket, Waiters
from collegium.live.wire import MOST_ITEMS, NUMBER, Dialect, Frame, FrameError, Kind, about, decode, encode, encode_one
from collegium.protocol import DeGroot, HoldLast, Rule, Seat
from collegium.protocol.base import LOST, OWN, SILENT, Inbox
from collegium.protocol.base import RECEIVED as HEARD

Doubles = NDArray[np.float64]
Rounds = NDArray[np.int32]
_PING = 0.5  # seconds between questions to a connected neighbour that answers nothing
_QUESTIONS = (200.0, 400.0)  # a second and at once: frames of a neighbour that are no messages, per 1 kB
_FROM_ZERO = (2000.0, 4000.0)  # a second and at once: items a neighbour began that have no view here
_GRACE = 10  # times its budget, dropped within a second or so, and a neighbour is left out
_BACKLOG = 4  # times as many items may wait as may be pending
_OVERLOADED = 4  # times as long an overloaded agent waits for views: those who send them are told to retry
_ANSWERS = (Kind.NOT_YET, Kind.DECLINED, Kind.PONG)
_STATUS = np.array([LOST, SILENT, HEARD, LOST], np.uint8)  # of a message that is PENDING, UNCHANGED, RECEIVED, DECLINED


@dataclass(frozen=True)
class Limits:
    """What an agent may use."""

    memory: int = 32 << 20
    """Bytes for items pending and remembered."""
    pending: int | None = None
    """Items at most that are submitted here, begun and not decided; a quarter of what fits if None."""
    from_zero: float = _FROM_ZERO[0]
    """Items a second at most in which the agent takes part without a view, for each neighbour that begins them."""


@dataclass
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
    agents: everybody's names, by number; they bound what evidence there can be.
    reachable: how many agents' views can be in this one's statistic after all rounds; all, if None.
    policy: a hash of what all agents must agree on; frames made under another are refused.
    absent: what a message that never came stands for: "renormalise" leaves it out, "hold" keeps the sender's last.
    bounds: the largest score of each neighbour, by number; bound: of this agent; largest: of anybody.
    first_handle: a random one, since neighbours may remember handles of a life before this one.
    """

    def __init__(
        self,
        place: Place,
        weights: Mapping[int, float],
        agents: Sequence[str],
        *,
        rule: Rule = DeGroot(),
        rounds: int = 20,
        seed: int = 0,
        classes: Sequence[Any] = (-1, 1),
        reachable: int | None = None,
        policy: int = 0,
        bound: float = math.inf,
        bounds: Mapping[int, float] | None = None,
        largest: float = math.inf,
        deadlines: Deadlines = Deadlines(),
        absent: Literal["renormalise", "hold"] = "renormalise",
        limits: Limits = Limits(),
        first_handle: int = 0,
        now: float = 0.0,
    ) -> None:
        self.place, self.name, self.number = place, place.name, place.number
        self.classes, self.rule, self.deadlines = tuple(classes), rule, deadlines
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
        own = senders.index(self.number) if self.number in weights else None
        seat = Seat(
            self.number,
            np.array(senders, np.int32),
            own,
            np.array([weights[number] for number in senders], np.float64),
            np.array([peer.number for peer in place.audience], np.int32),
        )
        self.d = 1 if len(self.classes) == 2 else len(self.classes)
        width, m = rule.width(self.d), len(senders)
        capacity = Table.capacity_for(self.rounds, m, limits.memory, width, self.d)
        self.most = min(limits.pending or capacity // 4, capacity // 2)
        self.bound = min(bound, rule.max_score(self.rounds))
        self.largest = min(largest, rule.max_score(self.rounds)) * rule.message_growth(self.rounds) * (1 + 1e-9)
        self.dialect = Dialect(
            int(place.network, 16), policy, rule.codec.message_bits, self.rounds, width, len(self.agents)
        )
        self.table = Table(self.rounds, m, capacity, width, self.d, own)
        self.states = ItemStates(rule, seat, seed64(seed), capacity, self.d)
        self.sets, self.waiters, self.backlog = Sets(), Waiters(), Backlog(_BACKLOG * self.most)
        self._me = self.sets.index(1 << self.number)
        self.neighbours = {
            peer.number: Neighbour(
                peer,
                senders.index(peer.number) if peer in place.hears else None,
                peer in place.audience,
                deadlines,
                (bounds or {}).get(peer.number, math.inf) * rule.message_growth(1) * (1 + 1e-9),
                Handles(capacity),
                Budget(*_QUESTIONS),
                Budget(limits.from_zero, 2 * limits.from_zero),
            )
            for peer in place.neighbours
        }
        self.heard = [n for n in self.neighbours.values() if n.place is not None]
        self._left_out = np.zeros(m, np.bool_)
        for n in self.heard:
            self._left_out[n.place] = True
        self._is_somebody_left_out = bool(self.heard)
        self._relayed = Budget(limits.from_zero, 2 * limits.from_zero)
        self._mailbox = HoldLast(lost=absent)
        self._all_heard = np.full((m, 1), HEARD, np.uint8)
        if own is not None:
            self._all_heard[own] = OWN
        self._next_handle = first_handle
        self._touched: list[Rows] = []
        self._outgoing: list[tuple[Rows, Rounds]] = []
        self._effects = Effects()
        self.mine = 0
        """Items in hand that were submitted here."""
        self.account = Account(now)
        self._wake = math.inf
        self._soonest = min(deadlines.least, deadlines.view / 8)

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def submit(self, names: Sequence[Name], scores: Doubles, trace: bool, now: float) -> tuple[Ticket, Effects]:
        """Begin items with this agent's own scores, (n,) or (n, d); the ticket will have their results, in order.

        An item submitted before with the same score is not begun again: sending again is harmless. With another score
        it is refused (`Conflict`). An item decided without this agent's view, which comes only now, runs once more.
        Items wait while the agent is busy. If too many do (`Busy`), those that neighbours have begun are begun.
        """
        ids, scores = identities(names), self._checked(names, scores)
        rows = self.table.rows(ids)
        late = np.zeros(len(ids), np.bool_)
        if (rows >= 0).any():
            late = (rows >= 0) & (self.table.state[rows] >= RUNNING) & (self.table.view[rows] == NO_VIEW)
            ids = np.where(late, rerun(ids), ids)
            rows[late] = self.table.rows(ids[late])
        self._check_conflicts(names, ids, rows, scores)
        waiting = np.array([self.backlog.score(item) is not None for item in ids.tolist()], np.bool_)
        fresh = (rows < 0) & ~waiting
        new = int(fresh.sum())
        announced = (rows >= 0) & (self.table.state[rows] == ANNOUNCED)
        free = 0 if len(self.backlog) else max(min(self.most - self.mine, self.table.room()), 0)
        if new > free and len(self.backlog) + new - free > self.backlog.most:
            self._begin(rows[announced], scores[announced], np.where(late[announced], LATE, GIVEN), now)
            self.account.refused += new
            self._note_overload(now)
            raise Busy(min(self.account.retry_after, self.deadlines.view / 2))
        ticket = Ticket(names, trace)
        # Decided items are told at once: their rows may be the next to be used again.
        done = np.flatnonzero((rows >= 0) & (self.table.state[rows] == DECIDED))
        if len(done):
            self.waiters.tell(ticket, done.tolist(), rows[done], self._results)
        running = np.flatnonzero((rows >= 0) & (self.table.state[rows] != DECIDED))
        for place in running.tolist():
            self.waiters.add(int(rows[place]), (ticket, place))
        for place in np.flatnonzero(waiting).tolist():
            self.backlog.add(int(ids[place]), scores[place], (ticket, place))
        at_once = np.flatnonzero(fresh)
        for place in at_once[free:].tolist():
            self.backlog.add(int(ids[place]), scores[place], (ticket, place))
        at_once = at_once[:free]
        if len(at_once):
            rows[at_once] = self.table.announce(ids[at_once], now, 1, -1)
            for place in at_once.tolist():
                self.waiters.add(int(rows[place]), (ticket, place))
        begun = np.concatenate([np.flatnonzero(announced), at_once])
        self._begin(rows[begun], scores[begun], np.where(late[begun], LATE, GIVEN), now)
        if len(self.backlog):
            self._note_overload(now)
        return ticket, self._done(now)

    def receive(self, frames: Iterable[tuple[int, bytes]], now: float) -> Effects:
        """Frames from neighbours, by number; nonsense is counted and otherwise without effect."""
        for sender, data in frames:
            self._read(sender, data, now)
        return self._done(now)

    def presence(self, number: int, is_there: bool, now: float) -> Effects:
        """A neighbour's token came or went."""
        n = self.neighbours.get(number)
        if n is not None and n.is_present != is_there:
            self._log(logging.INFO, f"{n.peer.name} {'is connected' if is_there else 'has left'}")
            if is_there:
                n.connected()
                self.table.named[:] = False  # it may know none of the handles
            else:
                n.disconnected()
            self._sync(n)
        return self._done(now)

    def explain(self, number: int, reason: str, is_refused: bool) -> None:
        """Why a neighbour is not connected."""
        n = self.neighbours.get(number)
        if n is not None and not n.is_present:
            if is_refused and n.state is State.AWAY:
                n.become(State.REFUSED)
            n.reason = reason

    def tick(self, now: float) -> Effects:
        """Look after what is overdue; to be called at `Effects.wake`."""
        wakes = [self._end_items(now), self._end_waits(now), recovery.ask(self, now), self._watch(now)]
        self._wake = max(min(wakes), now + self._soonest / 2)
        if self.sets.is_crowded:
            table, known = self.table, self.table.state != 0
            used = (table.evidence, table.own_set, table.sent_set[known], table.inbox_set[known])
            self.sets.forget([*used, np.array([self._me])])
        return self._done(now)

    def stop(self) -> list[Ticket]:
        """Nothing more will be decided: those who still wait."""
        return [*self.waiters.all(), *self.backlog.all()]

    def _done(self, now: float) -> Effects:
        """Go on with what is ready, then hand out what is to be done."""
        self._advance(now)
        self._admit(now)
        self._flush()
        effects, self._effects = self._effects, Effects()
        effects.completed, self.waiters.completed = self.waiters.completed, []
        if self.table.active or any(n.state in (State.SILENT, State.OVER_BUDGET) for n in self.heard):
            self._wake = min(self._wake, now + self._soonest)
        else:
            self._wake = math.inf
        effects.wake = self._wake
        return effects

    def touch(self, rows: Rows) -> None:
        """These items may go on."""
        self._touched.append(rows)

    def _log(self, level: int, text: str) -> None:
        self._effects.log.append((level, f"{self.name}: {text}"))

    # ── submissions ───────────────────────────────────────────────────────────────────────────────────────────────

    def _checked(self, names: Sequence[Name], scores: Doubles) -> Doubles:
        scores = np.ascontiguousarray(scores, np.float64)
        wanted = (len(names),) if self.d == 1 else (len(names), self.d)
        if scores.shape != wanted:
            raise ScoreError(f"{len(names)} items need scores of shape {wanted}, got {scores.shape}")
        scores = scores.reshape(len(names), self.d)
        if self.d > 1:  # entries of several classes sum to zero
            scores = scores - scores.mean(axis=1, keepdims=True)
        outside = ~(np.abs(scores) <= self.bound).all(axis=1)
        if outside.any():
            i = int(np.flatnonzero(outside)[0])
            raise ScoreError(
                f"item {names[i]!r} has score {scores[i, np.argmax(np.abs(scores[i]))]:.6g}; {self.name} takes finite "
                f"ones up to {self.bound:.6g}: its neighbours would refuse it ([model] bound, and {self.rule})"
            )
        return scores

    def _check_conflicts(self, names: Sequence[Name], ids: U64, rows: Rows, scores: Doubles) -> None:
        table = self.table
        given = (rows >= 0) & (table.view[rows] != NO_VIEW)
        clash = given & (table.score[rows] != scores).any(axis=1)
        if len(self.backlog):
            for place, item in enumerate(ids.tolist()):
                before = self.backlog.score(item)
                clash[place] |= before is not None and bool((before != scores[place]).any())
        if clash.any():
            name = names[int(np.flatnonzero(clash)[0])]
            more = f" (and {int(clash.sum()) - 1} more items)" if clash.sum() > 1 else ""
            raise Conflict(
                f"item {name!r:.80}{more} was submitted to {self.name} before with another score: an item keeps its "
                "first one; give another observation another name"
            )

    def _note_overload(self, now: float) -> None:
        if self.account.overloaded(now):
            self._log(logging.WARNING, f"overloaded: {self.mine} items are pending and {len(self.backlog)} wait")

    @property
    def is_overloaded(self) -> bool:
        """Whether submissions wait, or were refused just now."""
        return bool(len(self.backlog)) or self.account.is_overloaded

    def _admit(self, now: float) -> None:
        """Begin items that waited, some at a time: items of one round share a frame."""
        if not len(self.backlog):
            self.account.not_overloaded(now)
            return
        free = min(self.most - self.mine, self.table.room())
        if free < min(len(self.backlog), self.most // 4):
            return
        ids = self.backlog.first(free)
        rows = self.table.announce(ids, now, 1, -1)
        self._begin_waiting(ids, rows, now)
        self._advance(now)

    def _begin_waiting(self, ids: U64, rows: Rows, now: float) -> None:
        scores, places = self.backlog.take(ids.tolist())
        for row, waiting in zip(rows.tolist(), places, strict=True):
            for place in waiting:
                self.waiters.add(row, place)
        self._begin(rows, np.array(scores).reshape(len(rows), self.d), GIVEN, now)

    # ── frames ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, sender: int, data: bytes, now: float) -> None:
        n = self.neighbours.get(sender)
        if n is None:
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
            if frame.is_resent or frame.kind in _ANSWERS:
                n.answered(now, was_lost=frame.is_resent)
                self._wake = now if frame.is_resent else self._wake  # there may be more to ask for
            if frame.kind is Kind.ROUND:
                self._messages(n, frame, now)
            elif frame.kind is Kind.RESEND:
                recovery.answer(self, n, frame, now)
            elif frame.kind is Kind.NOT_YET:
                recovery.put_off(self, n, frame, now)
            elif frame.kind is Kind.DECLINED:
                self._declined(n, frame)
            elif frame.kind is Kind.ANNOUNCE:
                rows = self.rows_of(frame.ids, 1, n, now)
                rows = rows[rows >= 0]
                self._tell(rows[(self.table.state[rows] == ANNOUNCED) & ~self.table.announced[rows]])
            elif frame.kind is Kind.PING:
                self.send(n.peer.number, Frame(Kind.PONG, self.number))
        except FrameError as problem:
            n.rejected += 1
            n.reason = f"sent {problem}"

    def _within(self, n: Neighbour, budget: Budget, wanted: float, now: float) -> float:
        """As much as a neighbour's budget allows; far beyond it, the neighbour is left out."""
        granted = budget.take(wanted, now)
        n.over_budget += math.ceil(wanted - granted)
        if budget.excess > _GRACE * budget.rate and n.state in (State.UP, State.SILENT, State.MUTE):
            n.leave_out(State.OVER_BUDGET, "sends far more than it may", now)
            self._log(logging.WARNING, f"{n.peer.name} sends far more than it may: left out for {n.until - now:.0f} s")
            self._sync(n)
        return granted

    def send(self, to: int | None, frame: Frame) -> None:
        """To one neighbour, or to all receivers."""
        if to is not None or self.place.audience:
            self._effects.frames.append((to, encode(frame, self.dialect)))

    def _sync(self, n: Neighbour) -> None:
        """A neighbour's state changed: rounds that wait for it alone may go on."""
        if n.place is None:
            return
        self._left_out[n.place] = n.is_left_out
        self._is_somebody_left_out = bool(self._left_out.any())
        if n.is_left_out:
            self._touched.append(np.flatnonzero(self.table.state == RUNNING))

    def leave_out(self, n: Neighbour, state: State, reason: str, now: float) -> None:
        """Rounds go on without a neighbour that is connected."""
        self._log(logging.WARNING, f"{n.peer.name} {reason}: rounds go on without it")
        n.leave_out(state, reason, now)
        self._sync(n)

    def _messages(self, n: Neighbour, frame: Frame, now: float) -> None:
        table, place = self.table, n.place
        assert place is not None
        values = self.rule.codec.decode(frame.values)
        self._check_values(n, frame, values)
        if len(frame.runs) == 1 and frame.runs[0].items == 1:
            self._message(n, place, frame, values, now)
            return
        rows, ids, t = self._located(n, frame, now)
        valid = (rows >= 0) & (table.id[rows] == ids) & (table.state[rows] != DECIDED) & (table.state[rows] != 0)
        valid &= table.message[rows, t - 1, place] == PENDING
        if not valid.any():
            return
        if n.sent_message(now):
            self._sync(n)
        due = rows[valid & (table.round[rows] == t) & (table.state[rows] == RUNNING)]
        if len(due):
            self._measure(n, int(due[0]), frame, now)
            self._touched.append(due)
        indices = np.array([self.sets.index(members) for members in frame.sets], np.uint16)
        of_item = indices[frame.set_of] if frame.set_of is not None else indices[0]
        if frame.spoke is not None:
            silent = valid & ~frame.spoke
            table.message[rows[silent], t[silent] - 1, place] = UNCHANGED
            values, valid = values[valid[frame.spoke]], valid & frame.spoke
        elif not valid.all():
            values = values[valid]
        if not valid.all():
            rows, t = rows[valid], t[valid]
            of_item = of_item[valid] if frame.set_of is not None else of_item
        table.inbox[rows, t - 1, place] = values
        table.message[rows, t - 1, place] = RECEIVED
        table.inbox_set[rows, t - 1, place] = of_item
        table.gave_up[rows, place] = False

    def _message(self, n: Neighbour, place: int, frame: Frame, values: Doubles, now: float) -> None:
        """The same for one item, for which array operations would cost several times as much."""
        table, (handle, _, t, is_named) = self.table, frame.runs[0]
        if is_named:
            item = frame.ids.item()
            row = table.find(item)
            if row < 0:
                row = int(self.rows_of(frame.ids, t, n, now)[0])
            n.handles.learn(handle, np.array([row]), frame.ids)
        else:
            row, item = n.handles.find_one(handle)
        if row < 0 or table.id.item(row) != item or table.message.item(row, t - 1, place) != PENDING:
            return
        state = table.state.item(row)
        if state not in (ANNOUNCED, RUNNING):
            return
        if n.sent_message(now):
            self._sync(n)
        if len(values):
            table.inbox[row, t - 1, place] = values[0]
            table.message[row, t - 1, place] = RECEIVED
            table.inbox_set[row, t - 1, place] = self.sets.index(frame.sets[0])
            table.gave_up[row, place] = False
        else:
            table.message[row, t - 1, place] = UNCHANGED
        if state == RUNNING and table.round.item(row) == t:
            self._measure(n, row, frame, now)
            if self.states.is_scalar and table.active == 1 and not self._is_somebody_left_out and not self._touched:
                self._average(row, t, now)
            elif self._is_somebody_left_out or PENDING not in table.message[row, t - 1].tolist():
                self._touched.append(np.array([row]))

    def _average(self, row: int, t: int, now: float) -> None:
        """Go on with the only item of a scalar rule for as long as every message is there."""
        table, own, T = self.table, self.states.seat.own, self.rounds
        while all(message == RECEIVED for message in table.message[row, t - 1].tolist()):
            values, sets = table.inbox[row, t - 1, :, 0].tolist(), table.inbox_set[row, t - 1].tolist()
            if own is not None:
                values[own], sets[own] = table.sent.item(row, t - 1, 0), table.own_set.item(row)
            statistic, evidence = self.states.average(row, values), self.sets.union(tuple(sets))
            table.trace[row, t], table.evidence[row], table.done[row] = statistic, evidence, t
            self.account.rounds += 1
            if t == T:
                table.agreed[row] = all(
                    (value > 0) - (value < 0) == (statistic > 0) - (statistic < 0) for value in values
                )
                self._finish(np.array([row]), now)
                return
            table.round[row] = t = t + 1
            table.since[row], table.sent[row, t - 1], table.spoke[row, t - 1] = now, statistic, True
            table.sent_set[row, t - 1] = table.own_set[row] = evidence
            if self.place.audience:
                item = None if table.named.item(row) else table.id.item(row)
                members = self.sets.members[evidence]
                frame = encode_one(self.number, table.handle.item(row), t, item, members, statistic, self.dialect)
                self._effects.frames.append((None, frame))
                table.named[row] = True
        self._touched.append(np.array([row]))

    def _located(self, n: Neighbour, frame: Frame, now: float) -> tuple[Rows, U64, Rounds]:
        """Rows, identities and rounds of a frame's items; row -1 where they are not known and there is no room."""
        found, place = [], 0
        for handle, count, t, is_named in frame.runs:
            if is_named:
                ids = frame.ids[place : place + count]
                rows = self.rows_of(ids, t, n, now)
                n.handles.learn(handle, rows, ids)
                place += count
            else:
                rows, ids = n.handles.find(handle, count)
            found.append((rows, ids, np.full(count, t, np.int32)))
        if len(found) == 1:
            return found[0]
        rows, ids, rounds = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return rows, ids, rounds

    def _check_values(self, n: Neighbour, frame: Frame, values: Doubles) -> None:
        """Refuse numbers that no honest sender can have; NaN is none."""
        if not values.size:
            return
        most = max(-float(values.min()), float(values.max()))
        if most <= min(n.bound, self.largest):
            return
        rounds = frame.rounds
        if frame.spoke is not None:
            rounds = rounds[frame.spoke]
        limit = np.where(rounds == 1, min(n.bound, self.largest), self.largest)
        if not (np.abs(values) <= limit[:, None]).all():
            raise FrameError(f"a message of {most:.6g}, beyond what it may be ({limit.min():.6g})")

    def _declined(self, n: Neighbour, frame: Frame) -> None:
        """It takes no part: these items wait for it no longer, until a message of it comes."""
        if n.place is None:
            return
        rows = self.table.rows(frame.ids)
        rows = rows[rows >= 0]
        self.table.gave_up[rows, n.place] = True
        self._touched.append(rows)

    def _measure(self, n: Neighbour, row: int, frame: Frame, now: float) -> None:
        """How long a message took; those of round 1 wait for views, which says nothing of the neighbour's pace."""
        if not frame.is_resent and (frame.runs[0].round > 1 or self.rounds == 1):
            n.responded(max(now - self.table.since.item(row), 0.0))

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
        in_backlog = np.array([self.backlog.score(item) is not None for item in ids.tolist()], np.bool_)
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
            self._begin_waiting(waiting, table.announce(waiting, now, t, n.peer.number), now)
        ids = ids[:room]
        if not len(ids):
            return
        rows = table.announce(ids, now, t, n.peer.number)
        before = table.rows(rerun(ids))
        table.only_with_view[rows] = table.are_past(ids) | (before >= 0)
        # What runs once more has this agent's view already, if it had one the first time.
        seen = (before >= 0) & (table.view[before] != NO_VIEW)
        if seen.any():
            self._begin(rows[seen], table.score[before[seen]], GIVEN, now)

    def _tell(self, rows: Rows) -> None:
        """Tell neighbours of items before the first message on them, so that all wait for their views together."""
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
        if not len(rows):
            return math.inf
        waited = now - table.born[rows]
        over = rows[waited >= wait]
        if len(over):
            self._begin_from_zero(over, now)
        rows, waited = rows[waited < wait], waited[waited < wait]
        # Views mostly come within moments of each other: only where one does not is it worth telling others.
        early, untold = self.deadlines.view / 8, ~table.announced[rows] & (table.first[rows] == 1)
        self._tell(rows[untold & (waited >= early)])
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
        self._begin(rows[~never], np.zeros((int((~never).sum()), self.d)), NO_VIEW, now)

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
            self._log(logging.WARNING, f"{len(over)} items were decided at their deadline, before the last round")
            waiting = table.message[over, table.round[over] - 1] == PENDING
            table.missed[over] |= waiting
            self._finish(over, now)
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

    # ── rounds ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, rows: Rows, scores: Doubles, view: int | NDArray[Any], now: float) -> None:
        """Own scores are known, or zero without a view: send the first message."""
        if not len(rows):
            return
        table = self.table
        table.begin(rows)
        self.states.begin(rows, table.id[rows], scores)
        table.score[rows], table.view[rows] = scores, view
        has_view = table.view[rows] != NO_VIEW
        table.evidence[rows] = np.where(has_view, self._me, 0)
        self.mine += int(has_view.sum())
        first = table.first[rows]
        table.trace[rows, first - 1] = self.states.statistic(rows)
        table.handle[rows] = (self._next_handle + np.arange(len(rows))) & 0xFFFFFFFF
        self._next_handle = (self._next_handle + len(rows)) & 0xFFFFFFFF
        self._say(rows, first, now)

    def _say(self, rows: Rows, t: Rounds, now: float) -> None:
        table = self.table
        try:
            codes, spoke = self.states.emit(rows, t)
        except Exception as problem:
            self._fail(rows, problem)
            return
        evidence = table.evidence[rows]
        table.sent[rows, t - 1] = codes
        table.sent_set[rows, t - 1] = evidence
        if spoke is None:
            table.spoke[rows, t - 1], table.own_set[rows] = True, evidence
        else:
            table.spoke[rows, t - 1] = spoke
            table.own_set[rows[spoke]] = evidence[spoke]
        table.since[rows], table.asks[rows] = now, 0
        self._outgoing.append((rows, t))
        self._touched.append(rows)

    def _advance(self, now: float) -> None:
        """Go on with every item whose round is complete, as far as it goes."""
        table = self.table
        while self._touched:
            rows = self._touched[0] if len(self._touched) == 1 else np.unique(np.concatenate(self._touched))
            self._touched = []
            rows = rows[table.state[rows] == RUNNING]
            if not len(rows):
                continue
            t = table.round[rows]
            messages = table.message[rows, t - 1]
            if PENDING in messages:
                ready = ((messages != PENDING) | self._left_out | table.gave_up[rows]).all(axis=1)
                if not ready.any():
                    continue
                rows, t, messages = rows[ready], t[ready], messages[ready]
            try:
                self._absorb(rows, t, messages)
            except Exception as problem:
                self._fail(rows, problem)
                continue
            ends = t == self.rounds
            if ends.any():
                self._finish(rows[ends], now)
                rows, t = rows[~ends], t[~ends]
            if len(rows):
                table.round[rows] = t + 1
                self._say(rows, t + 1, now)

    def _absorb(self, rows: Rows, t: Rounds, messages: NDArray[np.uint8]) -> None:
        table, seat = self.table, self.states.seat
        m, n = len(seat.senders), len(rows)
        values, sets = table.inbox[rows, t - 1].swapaxes(0, 1), table.inbox_set[rows, t - 1]
        own = self.states.own(rows)
        if seat.own is not None:
            values[seat.own], sets[:, seat.own] = own, table.own_set[rows]
        weights, status = np.broadcast_to(seat.weights[:, None], (m, n)), np.broadcast_to(self._all_heard, (m, n))
        inbox = Inbox(values, weights, status, own)
        if not (messages == RECEIVED).all():
            inbox = self._fill_in(rows, t, messages, inbox, sets)
        if self.states.remembers:
            sets = np.concatenate([sets, table.evidence[rows][:, None]], axis=1)
        statistic = self.states.absorb(rows, inbox)
        table.evidence[rows] = self.sets.unions(sets)
        table.trace[rows, t], table.done[rows] = statistic, t
        self.account.rounds += n
        ends = t == self.rounds
        if ends.any():
            table.agreed[rows[ends]] = self._agree(inbox.values[:, ends], statistic[ends])

    def _fill_in(self, rows: Rows, t: Rounds, messages: NDArray[np.uint8], inbox: Inbox, sets: NDArray[Any]) -> Inbox:
        """Put a sender's last message where it sent nothing new, and note which messages are missing altogether."""
        status, known = inbox.status.copy(), np.ones(inbox.status.shape, np.bool_)
        is_held = self._mailbox.lost == "hold"
        for n in self.heard:
            place = n.place
            assert place is not None
            received = messages[:, place] == RECEIVED
            status[place] = _STATUS[messages[:, place]]
            if not received.all():
                last, last_set, ever = self.table.last_received(rows, t, place)
                held = np.where(ever[:, None], last, 0.0)
                inbox.values[place] = np.where(received[:, None], inbox.values[place], held)
                known[place] = ever
                gone = ~received & ~((messages[:, place] == UNCHANGED) & ever)
                counts = ever & (is_held | ~gone)
                sets[:, place] = np.where(received, sets[:, place], np.where(counts, last_set, 0))
                n.missed += int(gone.sum())
                self.table.missed[rows, place] |= gone
        return self._mailbox.read(inbox._replace(status=status), known)

    def _agree(self, values: Doubles, statistic: Doubles) -> NDArray[np.bool_]:
        """Whether all messages have the label of the statistic, shapes (m, n, w) and (n, d) to (n,)."""
        if self.d == 1:
            return np.asarray((np.sign(values[:, :, 0]) == np.sign(statistic[:, 0])).all(axis=0))
        if values.shape[2] == self.d - 1:
            values = np.concatenate([values, -values.sum(axis=2, keepdims=True)], axis=2)
        return np.asarray((values.argmax(axis=2) == statistic.argmax(axis=1)).all(axis=0))

    def _finish(self, rows: Rows, now: float) -> None:
        table, account = self.table, self.account
        table.decide(rows, now)
        account.decided(now - table.born[rows])
        viewed = table.view[rows] != NO_VIEW
        self.mine -= int(viewed.sum())
        account.from_zero += len(rows) - int(viewed.sum())
        account.with_missing += int(table.missed[rows].any(axis=1).sum())
        members, reachable = self.sets.members, self.reachable
        distinct, counts = np.unique(table.evidence[rows], return_counts=True)
        for index, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            account.incomplete += count if members[index].bit_count() < reachable else 0
        self.waiters.decided(rows, self._results)

    def _fail(self, rows: Rows, problem: Exception) -> None:
        """The rule raised: those who wait are told, and the items are given up here."""
        sentence = f"{self.rule} failed at {self.name}: {type(problem).__name__}: {problem}"
        self._log(logging.ERROR, f"{len(rows)} items were given up: {sentence}")
        table = self.table
        self.mine -= int((table.view[rows] != NO_VIEW).sum())
        self.account.failed += len(rows)
        self.waiters.fail(rows, sentence)
        self.decline(None, table.id[rows], table.round[rows])
        table.drop(rows)

    def _results(self, names: Sequence[Name], rows: Rows, trace: bool) -> list[Any]:
        return results(self, names, rows, trace)

    # ── what goes out ─────────────────────────────────────────────────────────────────────────────────────────────

    def _flush(self) -> None:
        """All new messages, in as few frames as it takes."""
        if not self._outgoing:
            return
        if len(self._outgoing) == 1:
            rows, t = self._outgoing[0]
        else:
            rows = np.concatenate([rows for rows, _ in self._outgoing])
            t = np.concatenate([t for _, t in self._outgoing])
            order = np.lexsort((self.table.handle[rows], t))
            rows, t = rows[order], t[order]
        self._outgoing = []
        alive = self.table.state[rows] >= RUNNING
        if not alive.all():
            rows, t = rows[alive], t[alive]
        self.say(None, rows, t)
        self.table.named[rows] = True

    def say(self, to: int | None, rows: Rows, t: Rounds) -> None:
        """Send messages of these rounds: new ones to all receivers, or those that one of them has asked for."""
        table = self.table
        for start in range(0, len(rows), MOST_ITEMS):
            some, rounds = rows[start : start + MOST_ITEMS], t[start : start + MOST_ITEMS]
            spoke, codes = table.spoke[some, rounds - 1], table.sent[some, rounds - 1]
            if spoke.all():
                mask = None
            else:
                mask, codes = spoke, codes[spoke]
            indices = table.sent_set[some, rounds - 1]
            sets, set_of = [self.sets.members[int(indices[0])]], None
            if (indices != indices[0]).any():
                distinct, inverse = np.unique(indices, return_inverse=True)
                sets, set_of = [self.sets.members[index] for index in distinct.tolist()], inverse.astype(np.uint16)
            is_resent = to is not None  # whoever asks may not know the handles
            named = table.named[some] & (not is_resent)
            runs = runs_of(table.handle[some], rounds, named)
            ids = table.id[some] if not named.any() else table.id[some[~named]]
            codes = codes if self.dialect.bits == NUMBER else codes.astype(np.uint32)
            self.send(to, Frame(Kind.ROUND, self.number, runs, ids, sets, set_of, mask, codes, is_resent))


def identities(names: Sequence[Name]) -> U64:
    """64-bit identities of items, as `collaborate(items=…)` has them; numbers and texts may be mixed."""
    kinds = {type(name) for name in names}
    if len(kinds) <= 1:
        return item_ids(np.asarray(names, object), len(names))
    ids = np.array([item_ids(np.asarray([name], object), 1)[0] for name in names], np.uint64)
    if len(np.unique(ids)) < len(ids):
        raise RuleError("items must be different")
    return ids
