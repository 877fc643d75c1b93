"""One agent of a live network: it takes scores of items, talks to its neighbours in rounds, and decides.

Rounds are synchronous for each item: the agent says its word of round t, waits for the words of those it hears,
combines them and goes on. Items of one round travel in one frame. A network in which all is well never waits for a
timer: the words themselves drive it. When a word is overdue the neighbour is asked, which brings back what was lost;
one that gives no sign of life is no longer waited for until it is heard again. Every outcome names the neighbours it
had to do without.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium._util.randomness import U64, item_ids, seed64
from collegium.errors import LiveError, RuleError, ScoreError
from collegium.live.account import Account
from collegium.live.answers import Busy, Evidence, ItemResult, Recent, RecentItem, Status
from collegium.live.item_states import ItemStates
from collegium.live.peer_diagnosis import Unreachable
from collegium.live.peers import Deadlines, Neighbour, State
from collegium.live.table import (
    ABSENT,
    DONE,
    FREE,
    GIVEN_UP,
    LATE_VIEW,
    NO_VIEW,
    SAID,
    TALKING,
    UNCHANGED,
    VIEW,
    VIEWLESS,
    Rows,
    Table,
)
from collegium.live.transport.base import Place, Transport
from collegium.live.wire import (
    MOST_ITEMS,
    NUMBER,
    Dialect,
    Frame,
    FrameError,
    Kind,
    decode,
    encode,
)
from collegium.protocol import DeGroot, HoldLast, Rule, Seat, registry
from collegium.protocol.base import LOST, OWN, RECEIVED, SILENT, Inbox

Name = int | str
Doubles = NDArray[np.float64]
_log = logging.getLogger("collegium.live")
_PING = 0.5  # seconds between questions to somebody who is silent although its token is there
_WAITING = 256  # frames that came while another was read; whoever brings more must wait
_LISTED = 1 << 16  # items in the lists that neighbours are counted on to remember
_STATUS = np.array([LOST, SILENT, RECEIVED, LOST], np.uint8)  # of a word that is ABSENT, UNCHANGED, SAID, GIVEN_UP
_VIEWS = {NO_VIEW: "missing", VIEW: "given", LATE_VIEW: "late"}


@dataclass(frozen=True)
class Limits:
    """What an agent may use."""

    memory: int = 32 << 20
    """Bytes for items pending and remembered."""
    pending: int | None = None
    """Items at most that are submitted here and not decided; a quarter of what fits if None."""


class _Ticket:
    """Somebody waits for these items."""

    def __init__(self, names: Sequence[Name], trace: bool) -> None:
        self.names, self.trace, self.open = names, trace, len(names)
        self.outcomes: list[ItemResult | None] = [None] * len(names)
        self.future: Future[list[ItemResult]] = Future()


class Agent:
    """The engine of one agent; it does no I/O but through its transport, and may be used from any thread.

    weights: how much each agent heard counts, this agent's own weight among them, by number; they sum to one.
    score: from views (n, …) to local statistics (n,); without it scores must come from outside.
    policy: a hash of what all agents must agree on; frames made under another are refused.
    absent: what a word that never came stands for: "renormalise" leaves it out, "hold" keeps the neighbour's last.
    """

    def __init__(
        self,
        place: Place,
        weights: Mapping[int, float],
        *,
        rule: Rule = DeGroot(),
        rounds: int = 20,
        seed: int = 0,
        classes: Sequence[Any] = (-1, 1),
        policy: int = 0,
        score: Callable[[NDArray[Any]], Doubles] | None = None,
        deadlines: Deadlines = Deadlines(),
        absent: Literal["renormalise", "hold"] = "renormalise",
        limits: Limits = Limits(),
    ) -> None:
        self.place, self.name, self.number = place, place.name, place.number
        self.classes, self.rule, self.deadlines = tuple(classes), rule, deadlines
        self.rounds = whole_number(rounds, "rounds", RuleError, at_least=1, at_most=10_000)
        self._score, self._mailbox = score, HoldLast(lost=absent)
        heard = {peer.number for peer in place.hears}
        if set(weights) - {self.number} != heard:
            raise LiveError(f"{self.name} has weights for {sorted(weights)} and hears {sorted(heard)}")
        senders = sorted(weights)
        seat = Seat(
            self.number,
            np.array(senders, np.int32),
            senders.index(self.number) if self.number in weights else None,
            np.array([weights[number] for number in senders], np.float64),
            np.array([peer.number for peer in place.audience], np.int32),
        )
        self._columns = {number: c for c, number in enumerate(sorted(heard))}
        self._neighbours = {
            peer.number: Neighbour(peer, peer in place.hears, peer in place.audience, deadlines)
            for peer in place.neighbours
        }
        self._heard = [self._neighbours[number] for number in self._columns]
        self._excused = np.ones(len(self._heard), np.bool_)
        self._somebody_excused = True
        largest = rule.max_score(self.rounds) * rule.message_growth(self.rounds) * (1 + 1e-9)
        width = rule.width(1)
        self._dialect = Dialect(int(place.network, 16), policy, rule.codec.message_bits, self.rounds, largest, width)
        capacity = Table.capacity_for(self.rounds, len(heard), limits.memory, width)
        self._most = min(limits.pending or capacity // 4, capacity // 2)
        self._table = Table(self.rounds, len(heard), capacity, width)
        self._states = ItemStates(rule, seat, seed64(seed), capacity)
        self._places = [place for place, number in enumerate(senders) if number != self.number]  # by column
        self._all_received = np.full((len(senders), 1), RECEIVED, np.uint8)
        if seat.own is not None:
            self._all_received[seat.own] = OWN
        self._lists: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        self._named: set[int] = set()
        self._listed = 0
        self._last_list = secrets.randbits(32)  # neighbours may remember lists of a life before this one
        self._touched: list[Rows] = []
        self._tickets: dict[int, list[tuple[_Ticket, int]]] = {}  # by row: who waits, and the item's place there
        self._completed: list[_Ticket] = []
        self._mine = 0  # items in hand that were submitted here
        self._lock = threading.Condition(threading.RLock())
        self._arrived: deque[tuple[int, bytes]] = deque()
        self._reading = threading.Lock()
        self._transport: Transport | None = None
        self._is_closed = False
        self._watch: threading.Thread | None = None
        self._account = Account()
        self._refused_peers: dict[str, int] = {}
        self.on_presence: Callable[[int, bool], object] = lambda number, is_there: None

    # ── life ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, transport: Transport) -> None:
        """Join the network."""
        self._transport = transport
        self._watch = threading.Thread(target=self._keep_watch, name=f"{self.name}-deadlines", daemon=True)
        self._watch.start()
        transport.open(self.receive, self.presence)

    def stop(self) -> None:
        """Leave it; whoever waits for an item is told."""
        with self._lock:
            self._is_closed = True
            waiting = {id(ticket): ticket for tickets in self._tickets.values() for ticket, _ in tickets}
            self._tickets.clear()
            self._lock.notify_all()
        if self._transport is not None:
            self._transport.close()
        if self._watch is not None:
            self._watch.join()
        for ticket in waiting.values():
            if not ticket.future.set_running_or_notify_cancel():
                continue
            ticket.future.set_exception(LiveError(f"{self.name} was stopped before the item was decided"))

    # ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def score(self, views: NDArray[Any]) -> Doubles:
        """Local statistics of views; slow, so call it in a thread of its own."""
        if self._score is None:
            raise LiveError(f"{self.name} has no model: send it scores instead of views")
        return self._score(views)

    def submit(self, names: Sequence[Name], scores: Doubles, trace: bool = False) -> Future[list[ItemResult]]:
        """Begin items with this agent's local statistics of them; their outcomes come in the order of the names.

        An item that is already in hand or remembered keeps its first score, so that sending again is harmless. What is
        called when the future is done is called by a thread that brings neighbours' words: let it be short.
        """
        ids = identities(names)
        scores = np.ascontiguousarray(scores, np.float64)
        if scores.shape != ids.shape:
            raise ScoreError(f"{len(ids)} items, but scores of shape {scores.shape}")
        most = self.rule.max_score(self.rounds)
        outside = np.flatnonzero(~(np.abs(scores) <= most))
        if len(outside):
            i = int(outside[0])
            raise ScoreError(
                f"item {names[i]!r} has score {scores[i]:.6g}; {self.rule} takes finite ones up to {most:.6g}"
            )
        with self._lock:
            if self._is_closed:
                raise LiveError(f"{self.name} is stopping")
            rows = self._table.rows(ids)
            fresh = rows < 0
            new = int(fresh.sum())
            if self._mine + new > self._most or new > self._table.room():
                self._account.refused += len(ids)
                raise Busy(min(self._account.retry_after, self.deadlines.view / 2))
            now = time.monotonic()
            ticket = _Ticket(names, trace)
            late = rows[~fresh]
            late = late[(self._table.state[late] != VIEWLESS) & (self._table.view[late] == NO_VIEW)]
            self._table.view[late] = LATE_VIEW
            # Decided items are told at once: their rows may be the next to be used again.
            done = np.flatnonzero(~fresh & (self._table.state[rows] == DONE))
            self._tell(ticket, done.tolist(), rows[done])
            if new:
                rows[fresh] = self._take(ids[fresh], now, 1)
            state = self._table.state[rows]
            state[done] = DONE
            self._mine += int((state == VIEWLESS).sum())
            waiting = state == VIEWLESS
            self._table.view[rows[waiting]] = VIEW
            self._begin(rows[waiting], scores[waiting], now)
            for place in np.flatnonzero(state != DONE).tolist():
                self._tickets.setdefault(int(rows[place]), []).append((ticket, place))
            self._advance()
        self._deliver()
        return ticket.future

    def result(self, name: Name, trace: bool = False) -> ItemResult | None:
        """The outcome of an item, if it is decided and remembered."""
        with self._lock:
            row = self._table.find(int(identities([name])[0]))
            if row < 0 or self._table.state[row] != DONE:
                return None
            return self._outcomes([name], np.array([row]), trace)[0]

    def is_pending(self, name: Name) -> bool:
        """Whether an item is in hand and not decided."""
        with self._lock:
            row = self._table.find(int(identities([name])[0]))
            return row >= 0 and self._table.state[row] != DONE

    # ── what comes in ─────────────────────────────────────────────────────────────────────────────────────────────

    def receive(self, sender: int, data: bytes) -> None:
        """A frame from a neighbour; nonsense is counted and otherwise without effect.

        Frames of several neighbours come at once, each on a thread of its own. Whoever is at work takes those of the
        others along, which need not wait for it.
        """
        self._arrived.append((sender, data))
        while self._arrived and self._reading.acquire(blocking=len(self._arrived) > _WAITING):
            try:
                with self._lock:
                    for _ in range(len(self._arrived)):
                        sender, data = self._arrived.popleft()
                        try:
                            self._read(sender, data)
                        except Exception:
                            _log.exception("a frame of agent %d could not be handled", sender)
                    self._advance()
            finally:
                self._reading.release()
            self._deliver()

    def _read(self, sender: int, data: bytes) -> None:
        neighbour = self._neighbours.get(sender)
        if neighbour is None or self._is_closed:
            return
        now = time.monotonic()
        try:
            frame = decode(data, self._dialect)
            if frame.sender != sender:
                raise FrameError(f"a frame that claims to come from agent {frame.sender}")
            asks = frame.kind in (Kind.ASK, Kind.PING)
            if not (neighbour.hears if asks else neighbour.is_heard):
                raise FrameError("a frame from an agent that has no part in this one's rounds")
            self._hear_again(neighbour)
            if frame.kind is Kind.ROUND:
                self._hear(neighbour, frame, now)
            elif frame.kind is Kind.NEWS:
                self._hear_news(frame, now)
            elif frame.kind is Kind.ASK and frame.list == self.number:
                self._answer(frame, now)
            elif frame.kind is Kind.PING and frame.list == self.number:
                self._transmit(encode(frame._replace(kind=Kind.WAIT, sender=self.number), self._dialect))
        except FrameError as problem:
            neighbour.rejected += 1
            neighbour.reason = f"sent {problem}"

    def presence(self, number: int, is_there: bool) -> None:
        """A neighbour's token came or went."""
        with self._lock:
            neighbour = self._neighbours.get(number)
            if neighbour is None or self._is_closed:
                return
            if is_there != neighbour.is_present:
                _log.info("%s: %s %s", self.name, neighbour.peer.name, "is here" if is_there else "has left")
            neighbour.is_present = is_there
            if is_there:
                self._hear_again(neighbour)
            else:
                self._excuse(neighbour, "has left the network")
            self._advance()
        self._deliver()
        self.on_presence(number, is_there)

    def explain(self, number: int | None, reason: str) -> None:
        """Why a neighbour is not there, or that another peer (None) was refused."""
        with self._lock:
            neighbour = None if number is None else self._neighbours.get(number)
            _log.warning("%s: %s", self.name, reason)
            if neighbour is None:
                self._refused_peers[reason] = self._refused_peers.pop(reason, 0) + 1
                while len(self._refused_peers) > 20:
                    self._refused_peers.pop(next(iter(self._refused_peers)))
            elif not neighbour.is_present:
                neighbour.is_refused, neighbour.reason = not isinstance(reason, Unreachable), reason

    def _hear_again(self, neighbour: Neighbour) -> None:
        neighbour.heard()
        column = self._columns.get(neighbour.peer.number)
        if column is not None and self._excused.item(column):
            self._excused[column] = False
            self._somebody_excused = bool(self._excused.any())

    def _excuse(self, neighbour: Neighbour, reason: str) -> None:
        if not neighbour.is_excused:
            _log.warning("%s: %s %s: rounds go on without it", self.name, neighbour.peer.name, reason)
        neighbour.is_excused, neighbour.reason, neighbour.asked_at = True, reason, None
        column = self._columns.get(neighbour.peer.number)
        if column is not None and not self._excused[column]:
            self._excused[column] = self._somebody_excused = True
            self._lock.notify_all()
            self._touched.append(np.flatnonzero(self._table.state == TALKING))

    def _hear(self, neighbour: Neighbour, frame: Frame, now: float) -> None:
        table, t = self._table, frame.round
        if frame.ids is not None:
            ids = frame.ids
            rows = table.rows(ids)
            fresh = rows < 0
            if fresh.any():
                rows[fresh] = self._take_heard(ids[fresh], now, t)
            neighbour.remember(frame.list, rows, ids)
        else:
            known = neighbour.recall(frame.list)
            if known is None or len(known[1]) != frame.size:
                return  # its naming was lost: the question for what is overdue brings it again
            rows, ids = known
        column = self._columns[neighbour.peer.number]
        values = self.rule.codec.decode(frame.values)
        if len(rows) == 1:
            self._take_in_one(neighbour, column, rows, ids.item(), values, t, now)
            return
        valid = (rows >= 0) & (table.id[rows] == ids)
        valid &= table.word[t - 1, column, rows] == ABSENT
        due = rows[valid & (table.round[rows] == t) & (table.state[rows] == TALKING)]
        if frame.spoke is not None:
            table.word[t - 1, column, rows[valid & ~frame.spoke]] = UNCHANGED
            values = values[valid[frame.spoke]]
            valid &= frame.spoke
        else:
            values = values[valid]
        spoken = rows[valid]
        table.word[t - 1, column, spoken] = SAID
        table.inbox[t - 1, self._places[column], spoken] = values
        if len(due):
            self._measure(neighbour, column, int(due[0]), t, now)
            self._touched.append(due)

    def _take_in_one(
        self, neighbour: Neighbour, column: int, rows: Rows, item: int, values: Doubles, t: int, now: float
    ) -> None:
        """The same for one item, for which array operations would cost several times as much."""
        table, row = self._table, rows.item()
        words = table.word[t - 1, :, row]
        if row < 0 or table.id.item(row) != item or words.item(column) != ABSENT:
            return
        if len(values):
            table.inbox[t - 1, self._places[column], row] = values[0]
            words[column] = SAID
        else:
            words[column] = UNCHANGED
        if table.round.item(row) == t and table.state.item(row) == TALKING:
            self._measure(neighbour, column, row, t, now)
            if self._states.is_plain and not self._somebody_excused:
                self._average(rows, row, t)
            elif self._somebody_excused or ABSENT not in words.tolist():
                self._touched.append(rows)

    def _average(self, rows: Rows, row: int, t: int) -> None:
        """Go on with one item of a plain rule for as long as every message is there."""
        table, own, heard = self._table, self._states.seat.own, len(self._heard)
        while (words := table.word[t - 1, :, row].tolist()).count(SAID) == heard:
            values = table.inbox[t - 1, : len(self._states.seat.senders), row, 0].tolist()
            if own is not None:
                values[own] = table.sent.item(t - 1, row, 0)
            statistic = self._states.average(row, values)
            table.trace[t, row] = statistic
            self._account.rounds += 1
            now = time.monotonic()
            if t == self.rounds:
                agreed = all((value > 0) - (value < 0) == (statistic > 0) - (statistic < 0) for value in values)
                table.agreed[row] = agreed and not table.missed[:, row].any()
                self._finish(rows, now)
                return
            t += 1
            table.round[row], table.since[row] = t, now
            table.sent[t - 1, row], table.spoke[t - 1, row] = statistic, True
            item = table.id.item(row)
            number, is_named = self._list(item.to_bytes(8, "little"), 1)
            self._named.add(number)
            ids = None if is_named else np.array([item], np.uint64)
            if self.place.audience:
                frame = Frame(Kind.ROUND, self.number, t, number, ids, 1, None, np.array([[statistic]]))
                self._transmit(encode(frame, self._dialect))
        if ABSENT not in words:
            self._touched.append(rows)

    def _measure(self, neighbour: Neighbour, column: int, row: int, t: int, now: float) -> None:
        """How long a word took; those of round 1 wait for views, which says nothing of the neighbour's ways."""
        if t > 1 or self.rounds == 1:
            begun = self._table.since.item(row)
            # A word that had to be asked for tells how long an answer takes, not how long its loss went unnoticed. But
            # one whose pace is not known may be asked too soon: what then comes is no answer.
            if neighbour.response is not None:
                begun = max(begun, self._table.asked.item(column, row))
            neighbour.measure(now - begun)

    def _answer(self, frame: Frame, now: float) -> None:
        """Say again what a neighbour has not heard, or that it is not said yet."""
        assert frame.ids is not None
        table, t = self._table, frame.round
        rows = table.rows(frame.ids)
        fresh = rows < 0
        if fresh.any():
            fresh &= ~table.are_past(frame.ids)  # not to be decided once more, from zero
            rows[fresh] = self._take_heard(frame.ids[fresh], now, t)
        known = rows >= 0
        said = known & (table.state[rows] != VIEWLESS) & (table.first[rows] <= t) & (table.round[rows] >= t)
        again = rows[said]
        if len(again):
            spoke = table.spoke[t - 1, again]
            messages = table.sent[t - 1, again[spoke]]
            self._send(again, t, messages, None if spoke.all() else spoke, afresh=True)
        # What it will never say, having come too late or having no room, it says at once.
        never = ~said & (~known | (table.first[rows] > t))
        if never.any():
            number, nobody = self._list(b"", 0)[0], np.zeros(int(never.sum()), np.bool_)
            silent = Frame(Kind.ROUND, self.number, t, number, frame.ids[never], len(nobody), nobody)
            self._transmit(encode(silent, self._dialect))
        waiting = frame.ids[~said & ~never]
        if len(waiting):
            self._transmit(encode(Frame(Kind.WAIT, self.number, t, 0, waiting, len(waiting)), self._dialect))

    def _hear_news(self, frame: Frame, now: float) -> None:
        """Items that somebody has heard of: views of them are waited for from now on, here and further on."""
        assert frame.ids is not None
        fresh = frame.ids[self._table.rows(frame.ids) < 0]
        fresh = fresh[~self._table.are_past(fresh)]
        rows = self._take_heard(fresh, now, 1)
        self._tell_news(rows[rows >= 0])

    def _tell_news(self, rows: Rows) -> None:
        """Tell neighbours of items before the first word on them, so that all wait for their views together."""
        self._table.told[rows] = True
        if not self.place.audience:
            return
        for start in range(0, len(rows), MOST_ITEMS):
            ids = self._table.id[rows[start : start + MOST_ITEMS]]
            self._transmit(encode(Frame(Kind.NEWS, self.number, 1, 0, ids, len(ids)), self._dialect))

    def _take(self, ids: U64, now: float, round: int) -> Rows:
        if not self._table.active:
            self._lock.notify_all()
        return self._table.take(ids, now, round)

    def _take_heard(self, ids: U64, now: float, round: int) -> Rows:
        """Rows for items heard of from neighbours; -1 where there is no room for them."""
        rows = np.full(len(ids), -1, np.intp)
        # Whatever neighbours tell of, there is room for what is submitted here.
        n = min(max(self._table.room() - max(self._most - self._mine, 0), 0), len(ids))
        if n < len(ids):
            self._account.no_room += len(ids) - n
        if n:
            rows[:n] = self._take(ids[:n], now, round)
        return rows

    # ── rounds ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, rows: Rows, scores: Doubles, now: float) -> None:
        """Own statistics are known: say the first word."""
        if not len(rows):
            return
        table = self._table
        self._states.begin(rows, table.id[rows], scores[:, None])
        table.score[rows], table.state[rows] = scores, TALKING
        first = table.first[rows]
        table.trace[first - 1, rows] = self._states.statistic(rows)[:, 0]
        for t in _distinct(first):
            self._say(rows[first == t], t, now)

    def _say(self, rows: Rows, t: int, now: float) -> None:
        table = self._table
        messages, spoke = self._states.emit(rows, t)
        speaking = rows if spoke is None else rows[spoke]
        table.sent[t - 1, speaking] = messages
        table.spoke[t - 1, speaking] = True
        table.since[rows] = now
        self._send(rows, t, messages, spoke)
        self._touched.append(rows)

    def _advance(self) -> None:
        """Go on with every item whose round is complete, as far as it goes."""
        table = self._table
        while self._touched:
            rows = self._touched[0] if len(self._touched) == 1 else np.unique(np.concatenate(self._touched))
            self._touched = []
            if len(rows) == 1:  # without arrays where nothing is to be sorted out
                t = table.round.item(rows[0])
                words = table.word[t - 1, :, rows].T
                if table.state.item(rows[0]) == TALKING and (self._somebody_excused or ABSENT not in words):
                    self._go_on(rows, t, words)
                continue
            rows = rows[table.state[rows] == TALKING]
            rounds = table.round[rows]
            distinct = _distinct(rounds)
            for t in distinct:
                at = rows if len(distinct) == 1 else rows[rounds == t]
                self._go_on(at, t, table.word[t - 1][:, at])

    def _go_on(self, rows: Rows, t: int, words: NDArray[np.uint8]) -> None:
        """End round t for those of its items that are ready."""
        if ABSENT in words:
            ready = ((words != ABSENT) | self._excused[:, None]).all(axis=0)
            rows, words = rows[ready], words[:, ready]
            if not len(rows):
                return
        self._absorb(rows, t, words)
        now = time.monotonic()
        if t == self.rounds:
            self._finish(rows, now)
        else:
            self._table.round[rows] = t + 1
            self._say(rows, t + 1, now)

    def _absorb(self, rows: Rows, t: int, words: NDArray[np.uint8]) -> None:
        table, seat = self._table, self._states.seat
        m, n = len(seat.senders), len(rows)
        values, own = table.inbox[t - 1, :m, rows].swapaxes(0, 1), self._states.own(rows)
        if seat.own is not None:
            values[seat.own] = own
        weights, status = seat.weights[:, None], self._all_received
        if n > 1:
            weights, status = np.broadcast_to(weights, (m, n)), np.broadcast_to(status, (m, n))
        inbox = Inbox(values, weights, status, own)
        if (words != SAID).any():
            inbox = self._fill_in(rows, t, words, inbox)
        statistic = self._states.absorb(rows, inbox)[:, 0]
        table.trace[t, rows] = statistic
        self._account.rounds += n
        if t == self.rounds:
            same = np.sign(inbox.values[:, :, 0]) == np.sign(statistic)
            table.agreed[rows] = same.all(axis=0) & ~table.missed[:, rows].any(axis=0)

    def _fill_in(self, rows: Rows, t: int, words: NDArray[np.uint8], inbox: Inbox) -> Inbox:
        """Put a neighbour's last message where it sent nothing new, and note which messages are missing altogether."""
        status, known = inbox.status.copy(), np.ones(inbox.status.shape, np.bool_)
        for c, (place, neighbour) in enumerate(zip(self._places, self._heard, strict=True)):
            received = words[c] == SAID
            status[place] = _STATUS[words[c]]
            if not received.all():
                last, ever = self._table.last_received(t, c, place, rows)
                held = np.where(ever[:, None], last, 0.0)
                inbox.values[place] = np.where(received[:, None], inbox.values[place], held)
                known[place] = ever
                gone = ~received & ~((words[c] == UNCHANGED) & ever)
                neighbour.missed += int(gone.sum())
                self._table.missed[c, rows] |= gone
        return self._mailbox.read(inbox._replace(status=status), known)

    def _finish(self, rows: Rows, now: float) -> None:
        table = self._table
        table.finish(rows, now)
        self._account.decided(now - table.born[rows])
        viewed = table.view[rows] == VIEW
        self._mine -= int(viewed.sum())
        self._account.from_zero += len(rows) - int(viewed.sum())
        self._account.with_missing += int(table.missed[:, rows].any(axis=0).sum())
        if self._tickets:
            news: dict[_Ticket, tuple[list[int], list[int]]] = {}
            for row in rows.tolist():
                for ticket, place in self._tickets.pop(row, ()):
                    places, decided = news.setdefault(ticket, ([], []))
                    places.append(place)
                    decided.append(row)
            for ticket, (places, decided) in news.items():
                self._tell(ticket, places, np.array(decided))

    def _tell(self, ticket: _Ticket, places: list[int], rows: Rows) -> None:
        """Outcomes for somebody who waits, while their rows are still theirs."""
        outcomes = self._outcomes([ticket.names[place] for place in places], rows, ticket.trace)
        for place, outcome in zip(places, outcomes, strict=True):
            ticket.outcomes[place] = outcome
        ticket.open -= len(places)
        if not ticket.open:
            self._completed.append(ticket)

    def _deliver(self) -> None:
        """Hand out outcomes, outside the lock."""
        while self._completed:
            try:
                ticket = self._completed.pop()
            except IndexError:
                return
            if ticket.future.set_running_or_notify_cancel():
                ticket.future.set_result([one for one in ticket.outcomes if one is not None])

    def _outcomes(self, names: Sequence[Name], rows: Rows, trace: bool) -> list[ItemResult]:
        table, T = self._table, self.rounds
        statistic = table.trace[T, rows]
        label = [self.classes[0] if value < 0 else self.classes[1] for value in statistic.tolist()]
        settled = self._settled(rows)
        everybody = [neighbour.peer.name for neighbour in self._heard]
        missed = table.missed[:, rows]
        some = np.asarray(missed.any(axis=0))
        latency = np.round((table.ended[rows] - table.born[rows]) * 1e3, 3).tolist()
        view, score = table.view[rows].tolist(), table.score[rows].tolist()
        made = []
        for i, (name, value) in enumerate(zip(names, statistic.tolist(), strict=True)):
            gone = [everybody[c] for c in np.flatnonzero(missed[:, i])] if some[i] else []
            heard = everybody if not gone else [who for who in everybody if who not in gone]
            steps = None
            if trace:
                steps = [None if step != step else step for step in table.trace[:, rows[i]].tolist()]
            made.append(
                ItemResult(
                    name,
                    label[i],
                    value,
                    score[i],
                    bool(settled[i]),
                    Evidence(0, 0, []),
                    T,
                    _VIEWS[view[i]],
                    heard,
                    gone,
                    latency[i],
                    steps,
                )
            )
        return made

    def _settled(self, rows: Rows) -> NDArray[np.bool_]:
        trace, T = self._table.trace, self.rounds
        return np.asarray(self._table.agreed[rows] & (np.sign(trace[T - 1, rows]) == np.sign(trace[T, rows])))

    # ── what goes out ─────────────────────────────────────────────────────────────────────────────────────────────

    def _send(
        self, rows: Rows, t: int, messages: NDArray[Any], spoke: NDArray[np.bool_] | None, afresh: bool = False
    ) -> None:
        """A round's words, in as many frames as it takes; `afresh` names the items again for somebody who lost them."""
        if not self.place.audience:
            return
        for start in range(0, len(rows), MOST_ITEMS):
            part = slice(start, start + MOST_ITEMS)
            ids = self._table.id[rows[part]]
            mask = None if spoke is None else spoke[part]
            if len(rows) <= MOST_ITEMS:
                words = messages
            else:
                whole = np.ones(len(rows), np.bool_) if spoke is None else spoke
                words = messages[int(whole[:start].sum()) : int(whole[: part.stop].sum())]
            if self._dialect.bits != NUMBER:
                words = words.astype(np.uint32)
            key = ids.tobytes()
            number, is_named = self._list(
                key if len(key) <= 64 else hashlib.blake2b(key, digest_size=16).digest(), len(ids)
            )
            if afresh:
                # Whoever asked may not know any list with these items: name those still in use when they come again.
                self._named.clear()
                is_named = False
            frame = Frame(Kind.ROUND, self.number, t, number, None if is_named else ids, len(ids), mask, words)
            self._named.add(number)
            self._transmit(encode(frame, self._dialect))

    def _list(self, key: bytes, items: int) -> tuple[int, bool]:
        """The number of a list of items, and whether neighbours know it already."""
        known = self._lists.get(key)
        if known is not None:
            self._lists.move_to_end(key)
            return known[0], known[0] in self._named
        self._last_list = (self._last_list + 1) & 0xFFFFFFFF
        self._lists[key] = self._last_list, items
        self._listed += items
        while self._listed > _LISTED and len(self._lists) > 1:
            _, (number, size) = self._lists.popitem(last=False)
            self._named.discard(number)
            self._listed -= size
        return self._last_list, False

    def _transmit(self, data: bytes, asks: bool = False) -> None:
        if self._transport is not None:
            try:
                (self._transport.ask if asks else self._transport.say)(data)
            except LiveError as problem:  # as good as lost: whoever misses it will ask
                _log.warning("%s: %s", self.name, problem)

    # ── deadlines ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _keep_watch(self) -> None:
        """Look after what is overdue; asleep while nothing is in hand and nobody's silence is in doubt."""
        pinged = 0.0
        while True:
            with self._lock:
                if self._is_closed:
                    return
                doubtful = [n for n in self._heard if n.is_excused and n.is_present]
                self._lock.wait(self.deadlines.least / 4 if self._table.active else _PING if doubtful else None)
                if self._is_closed:
                    return
                now = time.monotonic()
                if self._table.active:
                    self._look(now)
                if doubtful and now - pinged >= _PING:
                    pinged = now
                    for neighbour in doubtful:
                        ping = Frame(Kind.PING, self.number, 1, neighbour.peer.number, np.zeros(1, np.uint64), 1)
                        self._transmit(encode(ping, self._dialect), asks=True)
            self._deliver()

    def _look(self, now: float) -> None:
        table = self._table
        viewless = np.flatnonzero(table.state == VIEWLESS)
        waited = now - table.born[viewless]
        late = viewless[waited > self.deadlines.view]
        self._begin(late, np.zeros(len(late)), now)
        # Views mostly come within moments of each other: only where one does not is it worth telling others.
        untold = ~table.told[viewless] & (table.first[viewless] == 1)
        view = self.deadlines.view
        self._tell_news(viewless[untold & (waited > view / 8) & (waited <= view)])
        talking = np.flatnonzero(table.state == TALKING)
        waited = now - table.since[talking]
        for number, c in self._columns.items():
            neighbour = self._neighbours[number]
            if self._excused[c]:
                continue
            slow = waited > neighbour.deadline
            rows = talking[slow]
            if not len(rows):
                continue
            rounds = table.round[rows]
            missing = table.word[rounds - 1, c, rows] == ABSENT
            rows, rounds, waiting = rows[missing], rounds[missing], waited[slow][missing]
            if not len(rows):
                continue
            if neighbour.has_gone_silent(now):
                self._excuse(neighbour, "does not answer")
                continue
            # Somebody, near or far, may be waiting for its view.
            over = waiting > self.deadlines.longest + self.deadlines.view
            if over.any():
                table.word[rounds[over] - 1, c, rows[over]] = GIVEN_UP
                neighbour.late_at = now
                self._touched.append(rows[over])
            again = ~over & (now - table.asked[c, rows] > neighbour.deadline)
            for t in _distinct(rounds[again]):
                asked = rows[again & (rounds == t)][:MOST_ITEMS]
                table.asked[c, asked] = now
                self._account.asked += len(asked)
                neighbour.asked_at = now if neighbour.asked_at is None else neighbour.asked_at
                question = Frame(Kind.ASK, self.number, t, number, table.id[asked], len(asked))
                self._transmit(encode(question, self._dialect), asks=True)
        self._advance()

    # ── what it says of itself ────────────────────────────────────────────────────────────────────────────────────

    def recent(self, most: int = 8) -> Recent:
        """The items that came last, newest first, as far as they are: for somebody who looks on."""
        with self._lock:
            table, now = self._table, time.monotonic()
            known = np.flatnonzero(table.state != FREE)
            rows = known[np.argsort(-table.born[known], kind="stable")[:most]]
            items = [self._onlook(row, now) for row in rows.tolist()]
        return Recent(self.name, self.number, self.rounds, items)

    def _onlook(self, row: int, now: float) -> RecentItem:
        table = self._table
        state = table.state.item(row)
        is_decided = state == DONE
        reached = self.rounds if is_decided else table.round.item(row) - 1
        trace = [None if step != step else step for step in table.trace[: reached + 1, row].tolist()]
        seen = {
            "evidence": None,
            "identity": f"{table.id.item(row):016x}",
            "round": reached,
            "decided": is_decided,
            "view": "waiting" if state == VIEWLESS else _VIEWS[table.view.item(row)],
            "score": None if state == VIEWLESS else table.score.item(row),
            "statistic": trace[-1],
            "trace": trace,
            "spoke": table.spoke[:reached, row].tolist(),
            "settled": bool(self._settled(np.array([row]))[0]) if is_decided else None,
            "missed": [n.peer.name for c, n in enumerate(self._heard) if table.missed.item(c, row)],
            "age_ms": round(1e3 * (now - table.born.item(row)), 3),
        }
        return msgspec.convert(seen, RecentItem)

    def why_not_ready(self) -> str | None:
        """What is missing for full rounds; None if nothing is."""
        with self._lock:
            away = [n.peer.name for n in self._neighbours.values() if not n.is_present or (n.is_heard and n.is_excused)]
        return f"waiting for {', '.join(away)}" if away else None

    def status(self) -> Status:
        """The state of the agent and its neighbours."""
        not_ready_reason = self.why_not_ready()
        with self._lock:
            now = time.monotonic()
            carried, account = self._transport, self._account
            return msgspec.convert({
                "agents": [], "classes": list(self.classes), "overloaded_s": 0.0,
                "name": self.name,
                "number": self.number,
                "network": self.place.network,
                "ready": not_ready_reason is None,
                "not_ready_reason": not_ready_reason,
                "rule": registry.describe(self.rule),
                "rounds": self.rounds,
                "neighbours": [self._neighbour_status(n, now) for n in self._neighbours.values()],
                "refused_peers": dict(self._refused_peers),
                "items": {"pending": self._table.active, "most": self._most, **account.items(),
                          "waiting": 0, "incomplete": 0, "past_deadline": 0},
                "rounds_done": account.rounds,
                "re_requested": account.asked,
                "bytes": {"sent": carried.sent_bytes, "received": carried.received_bytes}
                if carried
                else {"sent": 0, "received": 0},
                "latency_ms": {"p50": account.quantile(0.5), "p99": account.quantile(0.99)},
                "latency": account.histogram(),
                "up_s": round(now - account.begun, 3),
            }, Status)  # fmt: skip

    def _neighbour_status(self, neighbour: Neighbour, now: float) -> dict[str, Any]:
        state = neighbour.state(now)
        return {
            "name": neighbour.peer.name,
            "number": neighbour.peer.number,
            "direction": {(True, True): "both", (True, False): "in"}.get((neighbour.is_heard, neighbour.hears), "out"),
            "state": str(state),
            "reason": neighbour.reason if state is not State.UP or neighbour.rejected else "",
            "response_ms": None if neighbour.response is None else round(neighbour.response * 1e3, 3),
            "deadline_ms": round(neighbour.deadline * 1e3, 3),
            "missed": neighbour.missed,
            "rejected_frames": neighbour.rejected,
            "over_budget": 0,
        }


def identities(names: Sequence[Name]) -> U64:
    """64-bit identities of items, as `collaborate(items=…)` has them; numbers and texts may be mixed."""
    kinds = {type(name) for name in names}
    if len(kinds) <= 1:
        return item_ids(np.asarray(names, object), len(names))
    ids = np.array([item_ids(np.asarray([name], object), 1)[0] for name in names], np.uint64)
    if len(np.unique(ids)) < len(ids):
        raise RuleError("items must be different")
    return ids


def _distinct(rounds: NDArray[np.int32]) -> list[int]:
    if not len(rounds):
        return []
    first = int(rounds[0])
    if len(rounds) == 1 or bool((rounds == first).all()):
        return [first]
    return [int(t) for t in np.unique(rounds)]
