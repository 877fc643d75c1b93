"""The engine of an agent in a network without rounds: everybody sends on its own clock, and nothing is asked for again.

Agents keep running sums (`protocol.RunningSums`): a message is the total of all that its sender has ever given to each
receiver, so that a lost, late or doubled one does no harm. An agent answers when its statistic has stood still. What
the agents hold, and what is on its way, adds up to the scores and the number of views at any time. That would end if
an agent forgot what it took, or if others heard it than those it gave to; then the item begins a new epoch, in which
everybody starts again from its own score and no sum of an earlier one counts. A message names its epoch and its
sender's life, a number drawn when the process began, in the places where other frames have rounds and handles.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64
from collegium.errors import LiveError
from collegium.live import submissions
from collegium.live.answers import Busy, Conflict, Mass, Name
from collegium.live.engine import Effects, Engine
from collegium.live.naming import identities
from collegium.live.peers import Neighbour
from collegium.live.table import DECIDED, FREE, GIVEN, LATE, NO_VIEW, RUNNING, Bools, Doubles, Rows
from collegium.live.transport.base import Place
from collegium.live.waiters import Ticket
from collegium.live.wire import MOST_ITEMS, Frame, FrameError, Kind, Run, decode, encode, has_twins
from collegium.protocol import RunningSums
from collegium.protocol.push_sum import ratio, shared, with_count

STILL = 1e-9
"""By how much of itself, or of 1 if it is smaller, a statistic may move and stand still nevertheless."""
_MOST_EPOCHS = 1 << 29
_MOST = 1e15  # of a total: there its last digits are coarser than what stands still


class AsynchronousEngine(Engine):
    """As `Engine`, of which it has neighbours, table and answers; settings are the same, and rounds mean nothing.

    An agent without a view holds nothing at first and passes on what comes: answers are averages over the views there
    are. An item is open for the deadline `item`, answered or not: until then a view that comes late, or anything else
    that moves the statistic, changes the answer as soon as it stands still again.
    """

    def __init__(self, place: Place, weights: Mapping[int, float], agents: Sequence[str], **settings: Any) -> None:
        rule = settings.pop("rule", None) or RunningSums()
        if type(rule) is not RunningSums:
            raise LiveError(f"agents without rounds keep running sums, and {rule} needs rounds: use rule running-sums")
        super().__init__(place, weights, agents, **{**settings, "rule": rule, "rounds": 1, "seats": None})
        self.dialect = replace(self.dialect, rounds=2 * _MOST_EPOCHS)
        self.largest_score: float = settings.get("largest", 1e300)
        self.life = (settings.get("first_handle", 0) & 0xFFFFFFFF) or 1
        self._clock = random.Random(self.life)
        self._me = self.progress.sets.index(1 << self.number)
        N, m, w, d = self.table.capacity, len(weights), self.rule.width(self.d), self.d
        self.z = np.zeros((N, w))
        """This agent's part of the sum of the scores and, last, of the number of views."""
        self.given = np.zeros((N, w))
        self.taken = np.zeros((N, m, w))
        self.epoch = np.zeros(N, np.int64)
        self.lives = np.zeros((N, m), np.int64)
        """The life of each sender that something was taken from in this epoch; 0: nothing was."""
        self.heard_at = np.zeros((N, m))
        self.is_done = np.zeros((N, m), np.bool_)
        """Whether a sender said that it has answered."""
        self.anchor = np.zeros((N, d))
        """The statistic since when it has not moved, and since when."""
        self.since = np.zeros(N)
        self.until = np.zeros(N)
        """Until when the agent sends about an item it has answered."""
        self.receivers = np.zeros(N, np.int32)
        """To how many it gives in this epoch, and which ones, as a number that changes when they do."""
        self.which = np.zeros(N, np.int64)
        self.sends = np.zeros(N, np.int32)
        self.answered: Bools = np.zeros(N, np.bool_)
        self.stood_still: Bools = np.zeros(N, np.bool_)
        self._kept: tuple[NDArray[Any], ...] = (
            self.z, self.given, self.taken, self.epoch, self.lives, self.heard_at, self.is_done, self.anchor,
            self.since, self.until, self.receivers, self.which, self.sends, self.answered, self.stood_still,
            self.table.born, self.table.view, self.table.score, self.table.own_set, self.table.evidence,
        )  # fmt: skip
        self._audience: list[int] = []
        self._which = 0
        self._next = -math.inf  # when to send
        self._busy_until = -math.inf

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def submit(
        self, names: Sequence[Name], scores: Doubles, trace: bool, now: float, later: bool = False
    ) -> tuple[Ticket, Effects]:
        """Own scores of items, also of those that neighbours have begun or answered; see `Engine.submit`."""
        table, ids, scores = self.table, identities(names), submissions.checked(self, names, scores)
        rows = table.rows(ids)
        submissions.check_conflicts(self, names, ids, rows, scores)
        fresh, view = np.flatnonzero(rows < 0), table.view[rows]
        late = np.flatnonzero((rows >= 0) & (view == NO_VIEW) & self._is_open(rows, now))
        past = fresh[table.are_past(ids[fresh])]
        if len(past):
            raise Conflict(
                f"{self.name} answered item {names[past[0]]!r:.80} long ago and has forgotten it: name it anew"
            )
        if len(fresh) > self.most - self.mine or len(fresh) + len(late) > table.room():
            self.account.refused += len(fresh)
            submissions.note_overload(self, now)
            raise Busy(min(self.account.retry_after, self.deadlines.view / 2))
        ticket = Ticket(names, trace)
        rows[fresh] = self._begin(ids[fresh], now)
        was_answered = table.state[rows[late]] == DECIDED
        rows[late] = self._reopened(rows[late], now)
        new = np.concatenate([fresh, late])
        some = rows[new]
        table.score[some], table.view[some] = scores[new], GIVEN
        table.view[rows[late[was_answered]]] = LATE
        self.z[some] += with_count(scores[new])
        table.own_set[some] = self._united(table.own_set[some], np.full(len(some), self._me, np.uint16))
        self._moved(some, np.ones(len(some), np.bool_), now)
        ready = table.state[rows] == DECIDED
        if ready.any():
            self.waiters.tell(ticket, np.flatnonzero(ready).tolist(), rows[ready], self.results)
        self.waiters.add(rows[~ready], ticket, np.flatnonzero(~ready))
        return ticket, self._done(now)

    def presence(self, number: int, is_there: bool, now: float) -> Effects:
        """A neighbour's token came or went: if it hears this agent, the next message begins a new epoch."""
        n = self.neighbours.get(number)
        if n is not None and n.is_present != is_there:
            self.log(logging.INFO, f"{n.peer.name} {'is connected' if is_there else 'has left'}")
            n.connected() if is_there else n.disconnected()
            self._audience = [one.peer.number for one in self.neighbours.values() if one.hears and one.is_present]
            self._which += n.hears
        return self._done(now)

    def tick(self, now: float) -> Effects:
        """Answer what stands still or is at its deadline, and send if it is time to."""
        self._answer(np.flatnonzero(self.table.state == RUNNING), now)
        if now >= self._next:
            self._send(now)
            self._next = now + self.deadlines.pace * self._clock.uniform(0.9, 1.1)
        self.progress.forget_sets()
        return self._done(now)

    def _done(self, now: float, later: bool = False) -> Effects:
        effects, self._effects = self._effects, Effects()
        effects.completed, self.waiters.completed = self.waiters.completed, []
        is_active = self.table.active or self._busy_until > now
        effects.wake = self.wake = max(self._next, now) if is_active else math.inf
        if self.account.not_overloaded(now):
            self.log(logging.INFO, f"no longer overloaded; {self.account.refused} items were refused so far")
        return effects

    # ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_open(self, rows: Rows, now: float) -> Bools:
        return np.asarray(now - self.table.born[rows] < self.deadlines.item)

    def _begin(self, ids: U64, now: float) -> Rows:
        """Rows for new items, without a view."""
        table = self.table
        rows = table.announce(ids, now, 1, -1)
        table.begin(rows)
        table.trace[:, rows], table.view[rows] = 0.0, NO_VIEW
        self.answered[rows] = self.stood_still[rows] = False
        self.sends[rows] = 0
        self._start(rows, np.zeros(len(rows), np.int64), now)
        return rows

    def _start(self, rows: Rows, epoch: NDArray[np.int64], now: float) -> None:
        """An epoch begins: from the own score, if there is one, with nothing given or taken."""
        table, seen = self.table, self.table.view[rows] != NO_VIEW
        self.z[rows] = with_count(table.score[rows]) * seen[:, None]
        self.given[rows], self.taken[rows], self.lives[rows] = 0.0, 0.0, 0
        self.heard_at[rows], self.is_done[rows], self.epoch[rows] = -math.inf, False, epoch
        self.receivers[rows], self.which[rows] = len(self._audience), self._which
        table.own_set[rows] = np.where(seen, self._me, 0)
        self._moved(rows, np.ones(len(rows), np.bool_), now)

    def _renewed(self, rows: Rows, epoch: NDArray[np.int64], now: float) -> Rows:
        """A later epoch of items; their rows, which may be others."""
        rows = self._reopened(rows, now)
        self._start(rows, np.minimum(epoch, _MOST_EPOCHS - 1), now)
        self.account.epochs += len(rows)
        return rows

    def _reopened(self, rows: Rows, now: float) -> Rows:
        """Items that are to be answered once more if they were; their rows, which are others then."""
        table, rows = self.table, rows.copy()
        closed = np.flatnonzero(table.state[rows] == DECIDED)
        if len(closed):
            old, trace = rows[closed], table.trace[:, rows[closed]]
            kept, ids = [array[old] for array in self._kept], table.id[old]
            table.state[old] = FREE  # their rows are among those to be used next, which cannot be taken back
            rows[closed] = new = table.announce(ids, now, 1, -1)
            table.begin(new)
            for array, values in zip(self._kept, kept, strict=True):
                array[new] = values
            table.trace[:, new] = trace
        return rows

    def _moved(self, rows: Rows, surely: Bools, now: float) -> None:
        """Messages, a view or an epoch came: note which statistics have moved; those are not answered any more."""
        statistic = ratio(self.z[rows])
        scale = np.maximum(np.abs(statistic), 1.0)
        moved = surely | (np.abs(statistic - self.anchor[rows]) > STILL * scale).any(axis=1)
        rows, statistic = rows[moved], statistic[moved]
        if len(rows):
            rows = self._reopened(rows, now)
            self.anchor[rows], self.since[rows] = statistic, now
            self._linger(rows, now)

    def _united(self, sets: NDArray[np.uint16], more: NDArray[np.uint16]) -> NDArray[np.uint16]:
        if not len(sets):
            return sets
        union = np.asarray(self.progress.sets.unions(np.stack([sets, more])), np.uint16)
        return np.where(union, union, sets)  # 0: there are more different sets than can be remembered

    def _linger(self, rows: Rows, now: float) -> None:
        """Others have not finished: send about these items for some time more."""
        self.until[rows] = self._busy_until = now + 2 * self.deadlines.still

    def _answer(self, rows: Rows, now: float) -> None:
        """Items in their rows whose statistic stands still, or whose deadline has come."""
        if not len(rows):
            return
        table, since, age = self.table, self.since[rows], now - self.table.born[rows]
        there = np.array([n.place for n in self.heard if n.is_present], np.intp)
        heard = (self.heard_at[rows][:, there] >= since[:, None]) | self.is_done[rows][:, there]
        still = (now - since >= self.deadlines.still) & heard.all(axis=1) & (self.z[rows, -1] > 0)
        still &= (age >= self.deadlines.view) | self.is_complete(table.own_set[rows])
        over = age >= self.deadlines.item
        self.account.past_deadline += int((over & ~still & ~self.answered[rows]).sum())
        rows, still = rows[still | over], still[still | over]
        if not len(rows):
            return
        members = self.progress.sets.members
        before, now_in = (
            [members[index].bit_count() for index in some[rows].tolist()] for some in (table.evidence, table.own_set)
        )
        # After a new epoch that some have not joined, the answer before it is the better one.
        better = rows[np.array(now_in) >= np.array(before)]
        table.trace[0, rows], table.trace[1, better] = table.score[rows], ratio(self.z[better])
        table.evidence[better] = table.own_set[better]
        table.done[rows], self.stood_still[rows] = 1, still
        for n in self.heard:
            table.missed[n.place, rows] = self.heard_at[rows, n.place] == -math.inf
        self._linger(rows, now)
        again = self.answered[rows]
        self.answered[rows] = True
        if again.any():
            table.decide(rows[again], now)
            self.waiters.decided(rows[again], self.results)
        if not again.all():
            self._decided(rows[~again], now)

    # ── frames ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, now: float) -> None:
        """Give a share to each receiver: totals of all items that are not answered, or were just now."""
        state = self.table.state
        rows = np.flatnonzero((state == RUNNING) | ((state == DECIDED) & (self.until > now)))
        stale = self.which[rows] != self._which
        if stale.any():
            if int(stale.sum()) > self.table.room():
                rows = rows[~stale]
            else:
                rows[stale] = self._renewed(rows[stale], self.epoch[rows[stale]] + 1, now)
        if not len(rows) or not self._audience:
            return
        share, self.z[rows] = shared(self.z[rows], len(self._audience))
        self.given[rows] += share
        self.progress.done += len(rows)
        self.sends[rows] += 1
        code = 2 * self.epoch[rows] + (state[rows] == DECIDED) + 1
        order = np.argsort(code, kind="stable")
        rows, code = rows[order], code[order]
        for start in range(0, len(rows), MOST_ITEMS):
            part = slice(start, start + MOST_ITEMS)
            data = encode(self._frame(rows[part], code[part]), self.dialect)
            self._effects.frames += [(number, data) for number in self._audience]

    def _frame(self, rows: Rows, code: NDArray[np.int64]) -> Frame:
        table = self.table
        codes, counts = np.unique(code, return_counts=True)
        runs = [Run(self.life, n, one, True) for one, n in zip(codes.tolist(), counts.tolist(), strict=True)]
        indices, set_of = np.unique(table.own_set[rows], return_inverse=True)
        sets = [self.progress.sets.members[index] for index in indices.tolist()]
        which = None if len(sets) == 1 else set_of.astype(np.uint16)
        return Frame(Kind.ROUND, self.number, runs, table.id[rows], sets, which, None, self.given[rows])

    def _read(self, sender: int, data: bytes, now: float) -> None:
        n = self.neighbours.get(sender)
        if n is None:
            return
        try:
            frame = decode(data, self.dialect)
            if frame.sender != sender:
                raise FrameError(f"a frame that claims to come from agent {frame.sender}")
            if frame.kind is not Kind.ROUND or n.place is None:
                raise FrameError("a frame that has no part in a network without rounds")
            self._check(frame)
            n.sent_message(now)
            self._take_in(n, n.place, frame, now)
        except FrameError as problem:
            n.rejected += 1
            n.reason = f"sent {problem}"

    def _check(self, frame: Frame) -> None:
        """Refuse what no honest sender can have: a total is of so many views, each of them a score within its bound."""
        values = frame.values
        if not all(run.is_named for run in frame.runs) or frame.spoke is not None or has_twins(frame.ids):
            raise FrameError("totals of items that are not named, or named twice")
        count, most = values[:, -1], self.largest_score * (1 + 1e-9)
        if not ((count >= 0) & (count <= _MOST)).all():
            raise FrameError("a total of an impossible number of views")
        if not (np.abs(values[:, :-1]) <= (most * count)[:, None] + 1e-300).all():
            raise FrameError(f"a total beyond scores of {self.largest_score:.6g}")

    def _take_in(self, n: Neighbour, place: int, frame: Frame, now: float) -> None:
        table, codes, ids = self.table, frame.rounds.astype(np.int64) - 1, frame.ids
        if table.room() < len(ids):  # as if it were lost
            self.account.no_room += len(ids)
            return
        rows = table.rows(ids)
        unknown = (rows < 0) & ~table.are_past(ids)
        if table.room() - int(unknown.sum()) < table.capacity // 2:  # the rest is for what is submitted here
            self.account.no_room += int(unknown.sum())
        elif unknown.any():
            rows[unknown] = self._begin(ids[unknown], now)
        indices = np.array([self.progress.sets.index(members) for members in frame.sets], np.uint16)
        sets = indices[np.zeros(len(ids), np.intp) if frame.set_of is None else frame.set_of]
        lives = np.repeat([run.handle for run in frame.runs], [run.items for run in frame.runs])
        known = (rows >= 0) & self._is_open(rows, now)
        rows, epoch, is_done, values = rows[known], codes[known] >> 1, (codes[known] & 1) > 0, frame.values[known]
        sets, lives = sets[known], lives[known]
        ahead = epoch > self.epoch[rows]
        if ahead.any():
            rows[ahead] = self._renewed(rows[ahead], epoch[ahead], now)
        same = epoch == self.epoch[rows]
        # Whoever forgot what it took would take it again, and give its own score twice.
        another = same & (self.lives[rows, place] != 0) & (self.lives[rows, place] != lives)
        if another.any():
            self.log(logging.INFO, f"{n.peer.name} was restarted: {int(another.sum())} items begin a new epoch")
            rows[another] = self._renewed(rows[another], epoch[another] + 1, now)
            same &= ~another
        self._linger(rows[~is_done | ~same], now)
        at, values = rows[same], values[same]
        self.heard_at[at, place], self.is_done[at, place] = now, is_done[same]
        news = values[:, -1] > self.taken[at, place, -1]  # else it is one that was overtaken, or came twice
        at, values = at[news], values[news]
        if not len(at):
            return
        self.z[at] += values - self.taken[at, place]
        self.taken[at, place], self.lives[at, place] = values, lives[same][news]
        before = table.own_set[at]
        table.own_set[at] = self._united(before, sets[same][news])
        self._moved(at, table.own_set[at] != before, now)

    # ── what it shows ─────────────────────────────────────────────────────────────────────────────────────────────

    def rounds_of(self, rows: Rows) -> NDArray[np.int32]:
        """How often the agent sent about items."""
        return self.sends[rows]

    def mass(self) -> Mass:
        """What the agent had and took, and what it holds and gave, of all items it remembers: the same."""
        table = self.table
        rows = np.flatnonzero(table.state >= RUNNING)
        own = with_count(table.score[rows]) * (table.view[rows] != NO_VIEW)[:, None]
        taken, held = self.taken[rows].sum(axis=1), self.z[rows]
        given = self.given[rows] * self.receivers[rows, None]
        scale = np.maximum(np.abs(taken) + np.abs(given), 1.0)
        error = float((np.abs(own + taken - held - given) / scale).max(initial=0.0))
        own_, taken_, held_, given_ = (float(part[:, -1].sum()) for part in (own, taken, held, given))
        return Mass(own_, taken_, held_, given_, error, self.account.epochs)
