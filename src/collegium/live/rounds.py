"""The rounds of items: begin them, send a round's messages, combine what came, until they are decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from collegium._util.seat import Seat
from collegium.live.evidence import Sets
from collegium.live.item_states import ItemStates
from collegium.live.naming import runs_of
from collegium.live.table import NO_VIEW, PENDING, RECEIVED, RUNNING, UNCHANGED, Doubles, Rounds, Rows, Table
from collegium.live.wire import MOST_ITEMS, NUMBER, Dialect, Frame, Kind, encode_one
from collegium.protocol import HoldLast, Rule
from collegium.protocol.base import LOST, OWN, SILENT, Inbox, completed
from collegium.protocol.base import RECEIVED as HEARD

_STATUS = np.array([LOST, SILENT, HEARD, LOST], np.uint8)  # of a message that is PENDING, UNCHANGED, RECEIVED, DECLINED


class Progress:
    """The items of one agent and how far they are.

    on_decided, on_failed: told of items when they are decided, or given up because the rule raised an exception.
    """

    def __init__(
        self,
        rule: Rule,
        seat: Seat,
        dialect: Dialect,
        seed: int,
        capacity: int,
        d: int,
        absent: Literal["renormalise", "hold"],
        first_handle: int,
    ) -> None:
        m = len(seat.senders)
        self.seat, self.dialect, self.T, self.d = seat, dialect, dialect.rounds, d
        self.table = Table(self.T, m, capacity, dialect.width, d, seat.own)
        self.states, self.sets = ItemStates(rule, seat, seed, capacity, d), Sets()
        self._me = self.sets.index(1 << seat.agent)
        self.left_out = np.arange(m) != seat.own
        """Senders that rounds do not wait for."""
        self.is_somebody_left_out = bool(self.left_out.any())
        self.missed = np.zeros(m, np.int64)
        """Messages of each sender that were missing when a round went on."""
        self.done = 0
        """Rounds completed, summed over items."""
        self.on_decided: Callable[[Rows, float], None] = lambda rows, now: None
        self.on_failed: Callable[[Rows, Exception], None] = lambda rows, problem: None
        self._mailbox = HoldLast(lost=absent)
        self._all_heard = np.where(np.arange(m) == seat.own, OWN, HEARD).astype(np.uint8)[:, None]
        self._next_handle = first_handle
        self._touched: list[Rows] = []
        self._marked = np.zeros(capacity, np.bool_)
        self._outgoing: list[tuple[Rows, Rounds]] = []

    def wait_for(self, place: int, is_waited_for: bool) -> None:
        """Rounds wait for a sender, or no longer: then those that wait for it alone go on."""
        self.left_out[place] = not is_waited_for
        self.is_somebody_left_out = bool(self.left_out.any())
        if not is_waited_for:
            self.touch(np.flatnonzero(self.table.state == RUNNING))

    @property
    def has_touched(self) -> bool:
        """Whether some items may go on."""
        return bool(self._touched)

    def touch(self, rows: Rows) -> None:
        """These items may go on."""
        self._touched.append(rows)

    def begin(self, rows: Rows, scores: Doubles, view: int | NDArray[Any], now: float) -> None:
        """Own scores are known, or zero without a view: the first message goes out."""
        if not len(rows):
            return
        table = self.table
        table.begin(rows)
        self.states.begin(rows, table.id[rows], scores)
        table.score[rows], table.view[rows] = scores, view
        table.evidence[rows] = np.where(table.view[rows] != NO_VIEW, self._me, 0)
        first = table.first[rows]
        table.trace[rows, first - 1] = self.states.statistic(rows)
        table.handle[rows] = (self._next_handle + np.arange(len(rows))) & 0xFFFFFFFF
        self._next_handle = (self._next_handle + len(rows)) & 0xFFFFFFFF
        self._emit(rows, first, now)

    def _emit(self, rows: Rows, t: Rounds, now: float) -> None:
        table = self.table
        try:
            codes, spoke = self.states.emit(rows, t)
        except Exception as problem:
            self.on_failed(rows, problem)
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

    def advance(self, now: float) -> None:
        """Go on with every item whose round is complete, as far as it goes."""
        table = self.table
        while self._touched:
            for rows in self._touched:
                self._marked[rows] = True
            self._touched = []
            rows = np.flatnonzero(self._marked)  # each once, in order; much quicker than `np.unique`
            self._marked[rows] = False
            rows = rows[table.state[rows] == RUNNING]
            if not len(rows):
                continue
            t = table.round[rows]
            messages = table.message[rows, t - 1]
            if PENDING in messages:
                ready = ((messages != PENDING) | self.left_out | table.gave_up[rows]).all(axis=1)
                if not ready.any():
                    continue
                rows, t, messages = rows[ready], t[ready], messages[ready]
            try:
                self._absorb(rows, t, messages)
            except Exception as problem:
                self.on_failed(rows, problem)
                continue
            ends = t == self.T
            if ends.any():
                self.on_decided(rows[ends], now)
                rows, t = rows[~ends], t[~ends]
            if len(rows):
                table.round[rows] = t + 1
                self._emit(rows, t + 1, now)

    def _absorb(self, rows: Rows, t: Rounds, messages: NDArray[np.uint8]) -> None:
        table, seat = self.table, self.seat
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
        self.done += n
        ends = t == self.T
        if ends.any():
            table.agreed[rows[ends]] = self._agree(inbox.values[:, ends], statistic[ends])

    def _fill_in(self, rows: Rows, t: Rounds, messages: NDArray[np.uint8], inbox: Inbox, sets: NDArray[Any]) -> Inbox:
        """Put a sender's last message where it sent nothing new, and note which messages are missing altogether."""
        status, known = inbox.status.copy(), np.ones(inbox.status.shape, np.bool_)
        for place in np.flatnonzero((messages != RECEIVED).any(axis=0)).tolist():
            received = messages[:, place] == RECEIVED
            status[place] = _STATUS[messages[:, place]]
            last, last_set, ever = self.table.last_received(rows, t, place)
            held = np.where(ever[:, None], last, 0.0)
            inbox.values[place] = np.where(received[:, None], inbox.values[place], held)
            known[place] = ever
            gone = ~received & ~((messages[:, place] == UNCHANGED) & ever)
            counts = ever if self._mailbox.lost == "hold" else ever & ~gone
            sets[:, place] = np.where(received, sets[:, place], np.where(counts, last_set, 0))
            self.missed[place] += int(gone.sum())
            self.table.missed[rows, place] |= gone
        return self._mailbox.read(inbox._replace(status=status), known)

    def _agree(self, values: Doubles, statistic: Doubles) -> NDArray[np.bool_]:
        """Whether all messages have the label of the statistic, shapes (m, n, w) and (n, d) to (n,)."""
        if self.d == 1:
            return np.asarray((np.sign(values[:, :, 0]) == np.sign(statistic[:, 0])).all(axis=0))
        labels = statistic.argmax(axis=1)
        whole = [one if one.shape[1] == self.d else completed(one) for one in values]
        return np.asarray(np.logical_and.reduce([one.argmax(axis=1) == labels for one in whole]))

    def average(self, row: int, t: int, now: float) -> Iterator[bytes]:
        """Go on with the only item of a scalar rule for as long as every message is there; frames to be broadcast."""
        table, own = self.table, self.seat.own
        m = len(self.seat.senders)
        while (messages := table.message[row, t - 1].tolist()).count(RECEIVED) == m:
            values, sets = table.inbox[row, t - 1, :, 0].tolist(), table.inbox_set[row, t - 1].tolist()
            if own is not None:
                values[own], sets[own] = table.sent.item(row, t - 1, 0), table.own_set.item(row)
            statistic, evidence = self.states.average(row, values), self.sets.union(tuple(sets))
            table.trace[row, t], table.evidence[row], table.done[row] = statistic, evidence, t
            self.done += 1
            if t == self.T:
                sign = (statistic > 0) - (statistic < 0)
                table.agreed[row] = all((value > 0) - (value < 0) == sign for value in values)
                self.on_decided(np.array([row]), now)
                return
            table.round[row] = t = t + 1
            table.since[row], table.asks[row], table.sent[row, t - 1] = now, 0, statistic
            table.spoke[row, t - 1] = True
            table.sent_set[row, t - 1] = table.own_set[row] = evidence
            item = None if table.named.item(row) else table.id.item(row)
            table.named[row] = True
            handle, agents = table.handle.item(row), self.sets.members[evidence]
            yield encode_one(self.seat.agent, handle, t, item, agents, statistic, self.dialect)
        if PENDING not in messages or table.gave_up[row].any():
            self.touch(np.array([row]))

    def new_messages(self) -> Iterator[Frame]:
        """What is to be broadcast, in as few frames as it takes."""
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
        yield from self.messages(rows, t, is_resent=False)
        self.table.named[rows] = True

    def messages(self, rows: Rows, t: Rounds, is_resent: bool) -> Iterator[Frame]:
        """Messages of these rounds; resent ones name their items, since the receiver may not know the handles."""
        table = self.table
        for start in range(0, len(rows), MOST_ITEMS):
            some, rounds = rows[start : start + MOST_ITEMS], t[start : start + MOST_ITEMS]
            spoke, codes = table.spoke[some, rounds - 1], table.sent[some, rounds - 1]
            if not spoke.all():
                codes = codes[spoke]
            indices = table.sent_set[some, rounds - 1]
            sets, set_of = [self.sets.members[int(indices[0])]], None
            if (indices != indices[0]).any():
                distinct, inverse = np.unique(indices, return_inverse=True)
                sets, set_of = [self.sets.members[index] for index in distinct.tolist()], inverse.astype(np.uint16)
            named = table.named[some] & (not is_resent)
            runs = runs_of(table.handle[some], rounds, named)
            ids = table.id[some[~named]] if named.any() else table.id[some]
            mask = None if spoke.all() else spoke
            codes = codes if self.dialect.bits == NUMBER else codes.astype(np.uint32)
            yield Frame(Kind.ROUND, self.seat.agent, runs, ids, sets, set_of, mask, codes, is_resent)

    def forget_sets(self) -> None:
        """Make room for sets of agents, if few are left."""
        if self.sets.is_crowded:
            table, known = self.table, self.table.state != 0
            used = (table.evidence, table.own_set, table.sent_set[known], table.inbox_set[known])
            self.sets.forget([*used, np.array([self._me])])
