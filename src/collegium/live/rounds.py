"""The rounds of items: begin them, send a round's messages, combine what came, until they are decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from collegium._util.seat import Seat
from collegium.live.evidence import Sets
from collegium.live.item_states import ItemStates
from collegium.live.naming import runs_of
from collegium.live.privacy import Noise
from collegium.live.table import (
    NO_VIEW,
    PENDING,
    RECEIVED,
    RUNNING,
    UNCHANGED,
    Doubles,
    Rounds,
    Rows,
    Some,
    Table,
    in_round,
    span,
    together,
)
from collegium.live.wire import MOST_ITEMS, NUMBER, Dialect, Frame, Kind, Single
from collegium.protocol import HoldLast, Rule
from collegium.protocol.base import LOST, OWN, SILENT, Inbox, completed
from collegium.protocol.base import RECEIVED as HEARD

_APART = 4  # parts of a frame, each of one round, up to which each is handled as a stretch of memory
_STATUS = np.array([LOST, SILENT, HEARD, LOST], np.uint8)  # of a message that is PENDING, UNCHANGED, RECEIVED, DECLINED


class Progress:
    """The items of one agent and how far they are.

    seats: the agent's place in each round; senders: all it hears in any of them, itself included, ascending.
    on_decided, on_failed: called with items when they are decided, or given up because the rule raised an exception.
    """

    def __init__(
        self,
        rule: Rule,
        seats: Sequence[Seat],
        senders: NDArray[np.int32],
        dialect: Dialect,
        seed: int,
        capacity: int,
        d: int,
        absent: Literal["renormalise", "hold"],
        first_handle: int,
    ) -> None:
        m, self.agent = len(senders), seats[0].agent
        self.seats, self.dialect, self.T, self.d = seats, dialect, dialect.rounds, d
        self.changes = any(seat is not seats[0] for seat in seats)
        """Whether the agent hears others, or with other weights, in some rounds than in others."""
        self._places = [np.searchsorted(senders, seat.senders) for seat in seats]
        self._own = int(np.searchsorted(senders, self.agent)) if self.agent in senders else None
        waits = np.zeros((self.T, m), np.bool_)
        for t, places in enumerate(self._places):
            waits[t, places] = places != self._own
        self.table = Table(self.T, m, capacity, dialect.width, d, waits)
        self.states, self.sets = ItemStates(rule, seats, seed, capacity, d), Sets()
        self._hands_on = rule.hands_on
        self._sends_own = [rule.sends_own(seat) for seat in seats]
        self._me = self.sets.index(1 << self.agent)
        self.single = Single(dialect)
        self._heads = self.single.heads(self.agent)
        self.left_out = senders != self.agent
        """Senders that rounds do not wait for."""
        self.leaves_some_out = bool(self.left_out.any())
        self.missed = np.zeros(m, np.int64)
        """Messages of each sender that were missing when a round went on."""
        self.done = 0
        """Rounds completed, summed over items."""
        self.on_decided: Callable[[Rows, float], None] = lambda rows, now: None
        self.on_failed: Callable[[Rows, Exception], None] = lambda rows, problem: None
        self.on_round: Callable[[Rows | int, Rounds | int, float], None] | None = None
        """Called with items and the rounds that were combined just now."""
        self.noise: Noise | None = None
        """What hides this agent's own scores."""
        self._mailbox = HoldLast(lost=absent)
        self._all_heard = [np.where(seat.senders == self.agent, OWN, HEARD).astype(np.uint8) for seat in seats]
        self._next_handle = first_handle
        self._touched: list[Some] = []
        self._marked = np.zeros(capacity, np.bool_)
        self._all_rows = np.arange(capacity)
        self._outgoing: list[tuple[Rows, Rounds]] = []

    def wait_for(self, place: int, is_waited_for: bool) -> None:
        """Rounds wait for a sender, or no longer: then those that wait for it alone go on."""
        self.left_out[place] = not is_waited_for
        self.leaves_some_out = bool(self.left_out.any())
        if not is_waited_for:
            self.touch(np.flatnonzero(self.table.state == RUNNING))

    @property
    def has_new(self) -> bool:
        """Whether there is something to be sent."""
        return bool(self._outgoing)

    @property
    def has_touched(self) -> bool:
        """Whether some items may go on."""
        return bool(self._touched)

    def touch(self, rows: Some) -> None:
        """These items may go on."""
        self._touched.append(rows)

    def begin(self, rows: Rows, scores: Doubles, view: int | NDArray[Any], now: float) -> None:
        """Own scores are known, or zero without a view: the first message goes out."""
        if not len(rows):
            return
        table, at = self.table, span(rows)
        table.begin(rows)
        table.score[at], table.view[at] = scores, view
        if self.noise is not None and (seen := table.view[rows] != NO_VIEW).any():
            scores = scores.copy()
            scores[seen] = self.noise.hide(table.id[rows[seen]], scores[seen])
        if self._hands_on:
            scores = np.where((table.view[at] == NO_VIEW)[:, None], np.nan, scores)
        self.states.begin(at, table.id[at], scores)
        table.evidence[at] = np.where(table.view[at] != NO_VIEW, self._me, 0)
        at, t = together(rows, table.first[rows])
        table.trace[t - 1, at] = self.states.statistic(at)
        table.handle[at] = (self._next_handle + np.arange(len(rows))) & 0xFFFFFFFF
        self._next_handle = (self._next_handle + len(rows)) & 0xFFFFFFFF
        self._emit(rows, table.first[rows], now)

    def _emit(self, rows: Rows, rounds: Rounds, now: float) -> None:
        table, own = self.table, self._own
        at, t = together(rows, rounds)
        if self.changes and not isinstance(t, int):
            for some in _by_round(rounds):
                self._emit(rows[some], rounds[some], now)
            return
        try:
            codes, spoke = self.states.emit(at, t)
        except Exception as problem:
            self.on_failed(rows, problem)
            return
        evidence = table.evidence[at] if not self.changes or self._sends_own[t - 1] else table.others[at]
        table.sent[t - 1, at], table.sent_set[t - 1, at] = codes, evidence
        if spoke is None:
            table.spoke[t - 1, at], table.own_set[at] = True, evidence
        else:
            table.spoke[t - 1, at] = spoke
            table.own_set[rows[spoke]] = evidence[spoke]
        if own is not None:
            table.inbox[t - 1, own, at], table.inbox_set[t - 1, own, at] = self.states.own(at), table.own_set[at]
        table.since[at], table.asks[:, at] = now, 0
        self._outgoing.append((rows, rounds))
        self._touched.append(at)

    def _touched_rows(self) -> Rows:
        """Items that may go on, each once, in order."""
        touched, self._touched = self._touched, []
        if all(isinstance(rows, slice) and rows == touched[0] for rows in touched):
            return self._all_rows[touched[0]]
        for rows in touched:
            self._marked[rows] = True
        every = np.flatnonzero(self._marked)  # much quicker than `np.unique`
        self._marked[every] = False
        return every

    def advance(self, now: float) -> None:
        """Go on with every item whose round is complete, as far as it goes."""
        table = self.table
        while self._touched:
            rows = self._touched_rows()
            running = table.state[rows] == RUNNING
            if not running.all():
                rows = rows[running]
            if not len(rows):
                continue
            rounds = table.round[rows]
            at, t = together(rows, rounds)
            messages = in_round(table.message, t, at)
            if PENDING in messages:
                ready = ((messages != PENDING) | self.left_out[:, None] | table.gave_up[:, at]).all(axis=0)
                if not ready.any():
                    continue
                rows, rounds, messages = rows[ready], rounds[ready], messages[:, ready]
            for some in _by_round(rounds) if self.changes and not isinstance(t, int) else [slice(None)]:
                self._go_on(rows[some], rounds[some], messages[:, some], now)

    def _go_on(self, rows: Rows, rounds: Rounds, messages: NDArray[np.uint8], now: float) -> None:
        """The messages of these rounds are there: combine them, then decide or send the next ones."""
        try:
            self._absorb(*together(rows, rounds), messages)
        except Exception as problem:
            self.on_failed(rows, problem)
            return
        if self.on_round is not None:
            self.on_round(rows, rounds, now)
        ends = rounds == self.T
        if ends.any():
            self.on_decided(rows[ends], now)
            rows, rounds = rows[~ends], rounds[~ends]
        if len(rows):
            rounds = rounds + 1
            self.table.round[rows] = rounds
            self._emit(rows, rounds, now)

    def _absorb(self, at: Some, t: int | Rounds, messages: NDArray[np.uint8]) -> None:
        table, n = self.table, messages.shape[1]
        which = t - 1 if isinstance(t, int) else 0
        seat, places = self.seats[which], self._places[which]
        values, sets = in_round(table.inbox, t, at), in_round(table.inbox_set, t, at)
        if self.changes:
            values, sets, messages = values[places], sets[places], messages[places]
        own = self.states.own(at) if seat.own is None else values[seat.own]
        inbox = Inbox(values, _spread(seat.weights, n), _spread(self._all_heard[which], n), own)
        if not (messages == RECEIVED).all():
            inbox = self._fill_in(at, t, places, messages, inbox, sets)
        if self.states.remembers:
            if self.changes:
                came = np.concatenate([sets[seat.senders != self.agent], table.others[at][None]])
                table.others[at] = self.sets.unions(came)
            sets = np.concatenate([sets, table.evidence[at][None]])
        statistic = self.states.absorb(at, seat, inbox)
        table.evidence[at] = self.sets.unions(sets)
        table.trace[t, at], table.done[at] = statistic, t
        self.done += n
        ends = np.broadcast_to(np.asarray(t) == self.T, n)
        if ends.any():
            rows = self._all_rows[at] if isinstance(at, slice) else at
            table.agreed[rows[ends]] = self._agree(inbox.values[:, ends], statistic[ends])

    def _fill_in(
        self, at: Some, t: int | Rounds, places: Rows, messages: NDArray[np.uint8], inbox: Inbox, sets: NDArray[Any]
    ) -> Inbox:
        """Put a sender's last message where it sent nothing new, and note which messages are missing altogether."""
        status, known = inbox.status.copy(), np.ones(inbox.status.shape, np.bool_)
        for i in np.flatnonzero((messages != RECEIVED).any(axis=1)).tolist():
            place, received = int(places[i]), messages[i] == RECEIVED
            status[i] = _STATUS[messages[i]]
            last, last_set, ever = self.table.last_received(at, t, place)
            held = np.where(ever[:, None], last, 0.0)
            inbox.values[i] = np.where(received[:, None], inbox.values[i], held)
            known[i] = ever
            gone = ~received & ~((messages[i] == UNCHANGED) & ever)
            counts = ever if self._mailbox.lost == "hold" else ever & ~gone
            sets[i] = np.where(received, sets[i], np.where(counts, last_set, 0))
            self.missed[place] += int(gone.sum())
            self.table.missed[place, at] |= gone
        return self._mailbox.read(inbox._replace(status=status), known)

    def _agree(self, values: Doubles, statistic: Doubles) -> NDArray[np.bool_]:
        """Whether all messages have the label of the statistic, shapes (m, n, w) and (n, d) to (n,)."""
        if self._hands_on:  # messages have scores of others, and no label of the sender
            return np.ones(len(statistic), np.bool_)
        if self.d == 1:
            return np.asarray((np.sign(values[:, :, 0]) == np.sign(statistic[:, 0])).all(axis=0))
        labels = statistic.argmax(axis=1)
        whole = [one if one.shape[1] == self.d else completed(one) for one in values]
        return np.asarray(np.logical_and.reduce([one.argmax(axis=1) == labels for one in whole]))

    def average(self, row: int, t: int, now: float) -> list[bytes]:
        """Go on with the only item of a scalar rule for as long as every message is there; frames to be broadcast."""
        table, own, m = self.table, self._own, len(self.left_out)
        sent: list[tuple[int, float]] = []
        first = t + 1
        while (messages := table.message[t - 1, :, row].tolist()).count(RECEIVED) == m:
            values, sets = table.inbox[t - 1, :, row, 0].tolist(), table.inbox_set[t - 1, :, row].tolist()
            statistic, evidence = self.states.average(row, values), self.sets.union(tuple(sets))
            table.trace[t, row, 0], table.evidence[row], table.done[row] = statistic, evidence, t
            self.done += 1
            if self.on_round is not None:
                self.on_round(row, t, now)
            if t == self.T:
                sign = (statistic > 0) - (statistic < 0)
                table.agreed[row] = all((value > 0) - (value < 0) == sign for value in values)
                frames = self._singles(row, first, sent)
                self.on_decided(np.array([row]), now)
                return frames
            table.round[row] = t = t + 1
            table.since[row], table.asks[:, row], table.sent[t - 1, row, 0] = now, 0, statistic
            table.spoke[t - 1, row] = True
            table.sent_set[t - 1, row] = table.own_set[row] = evidence
            if own is not None:
                table.inbox[t - 1, own, row, 0], table.inbox_set[t - 1, own, row] = statistic, evidence
            if not table.named.item(row):
                self._outgoing.append((np.array([row]), np.array([t], np.int32)))
                break
            sent.append((evidence, statistic))
        if PENDING not in messages or True in table.gave_up[:, row].tolist():  # go on as with any other item
            self.touch(slice(row, row + 1))
        return self._singles(row, first, sent)

    def _singles(self, row: int, t: int, sent: Sequence[tuple[int, float]]) -> list[bytes]:
        """Frames of an item's evidence and messages from round t on, two rounds in one where that can be."""
        handle, frames = self.table.handle.item(row), []
        while sent:
            evidence = sent[0][0]
            values = [value for index, value in sent[:2] if index == evidence]
            frames.append(self.single.write(self._heads, handle, t, self.sets.members[evidence], values))
            sent, t = sent[len(values) :], t + len(values)
        return frames

    def new_messages(self) -> Iterator[tuple[int | None, Frame]]:
        """What is to be sent, in as few frames as it takes, and to whom: None is to all receivers."""
        outgoing, self._outgoing = self._outgoing, []
        for i, (rows, t) in enumerate(outgoing):
            alive = self.table.state[rows] >= RUNNING
            if not alive.all():
                outgoing[i] = rows[alive], t[alive]
        outgoing = [part for part in outgoing if len(part[0])]
        if not self.changes:
            for frame in self.messages(outgoing, is_resent=False):
                yield None, frame
            for rows, _ in outgoing:
                self.table.named[rows] = True
            return
        to: dict[int, list[tuple[Rows, Rounds]]] = {}  # each round has its receivers, who need the items' names
        for rows, t in outgoing:
            for receiver in self.seats[t.item(0) - 1].receivers.tolist():
                to.setdefault(receiver, []).append((rows, t))
        for receiver, parts in to.items():
            for frame in self.messages(parts, is_resent=False):
                yield receiver, frame

    def messages(self, parts: Sequence[tuple[Rows, Rounds]], is_resent: bool) -> Iterator[Frame]:
        """Messages of these rounds; resent ones name their items, since the receiver may not know the handles."""
        if len(parts) > _APART:
            rows, t = (np.concatenate(one) for one in zip(*parts, strict=True))
            order = np.lexsort((self.table.handle[rows], t))
            parts = [(rows[order], t[order])]
        if sum(len(rows) for rows, _ in parts) > MOST_ITEMS:
            for rows, t in parts:
                for start in range(0, len(rows), MOST_ITEMS):
                    part = slice(start, start + MOST_ITEMS)
                    yield self._frame([(rows[part], t[part])], is_resent)
        elif parts:
            yield self._frame(parts, is_resent)

    def _frame(self, parts: Sequence[tuple[Rows, Rounds]], is_resent: bool) -> Frame:
        table, runs, ids, columns = self.table, [], [], []
        for rows, rounds in parts:
            at, t = together(rows, rounds)
            named = table.named[at] & (not is_resent)
            runs += runs_of(table.handle[at], rounds, named)
            ids.append(table.id[at][~named])
            columns.append((table.spoke[t - 1, at], table.sent[t - 1, at], table.sent_set[t - 1, at]))
        spoke, codes, indices = (_joined(column) for column in zip(*columns, strict=True))
        sets, set_of = [self.sets.members[int(indices[0])]], None
        if (indices != indices[0]).any():
            distinct, inverse = np.unique(indices, return_inverse=True)
            sets, set_of = [self.sets.members[index] for index in distinct.tolist()], inverse.astype(np.uint16)
        mask = None if spoke.all() else spoke
        codes = codes if mask is None else codes[mask]
        codes = codes if self.dialect.bits == NUMBER else codes.astype(np.uint32)
        return Frame(Kind.ROUND, self.agent, runs, _joined(ids), sets, set_of, mask, codes, is_resent)

    def forget_sets(self) -> None:
        """Make room for sets of agents, if few are left."""
        if self.sets.is_crowded:
            table, known = self.table, self.table.state != 0
            used = (table.evidence, table.own_set, table.others, table.sent_set[:, known], table.inbox_set[:, :, known])
            self.sets.forget([*used, np.array([self._me])])


def _spread(one: NDArray[Any], n: int) -> NDArray[Any]:
    """The same for n items, (m,) to (m, n), without a copy: as `np.broadcast_to`, in a tenth of its time."""
    return np.ndarray((len(one), n), one.dtype, one, strides=(one.strides[0], 0))


def _by_round(rounds: Rounds) -> Iterator[Rows]:
    """Where each round is, one after the other."""
    for t in np.unique(rounds).tolist():
        yield np.flatnonzero(rounds == t)


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
