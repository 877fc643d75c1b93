"""Items submitted here: checked, begun, or waiting until the agent has room for them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import U64
from collegium._util.scores import centred
from collegium.errors import ScoreError
from collegium.live.answers import Busy, Conflict, Name
from collegium.live.naming import identities
from collegium.live.table import ANNOUNCED, DECIDED, GIVEN, LATE, NO_VIEW, RUNNING, Doubles, Rows, rerun
from collegium.live.waiters import Ticket

if TYPE_CHECKING:
    from collegium.live.engine import Engine


def submit(engine: Engine, names: Sequence[Name], scores: Doubles, trace: bool, now: float) -> Ticket:
    """See `Engine.submit`."""
    table, backlog, waiters = engine.table, engine.backlog, engine.waiters
    ids, scores = identities(names), checked(engine, names, scores)
    rows = table.rows(ids)
    late = (rows >= 0) & (table.state[rows] >= RUNNING) & (table.view[rows] == NO_VIEW)
    if late.any():
        ids = np.where(late, rerun(ids), ids)
        rows = table.rows(ids)
    check_conflicts(engine, names, ids, rows, scores)
    known, view = rows >= 0, np.where(late, LATE, GIVEN)
    waits = backlog.has(ids)
    fresh = np.flatnonzero(~known & ~waits)
    announced = np.flatnonzero(known & (table.state[rows] == ANNOUNCED))
    free = 0 if len(backlog) else max(min(engine.most - engine.mine, table.room()), 0)
    if len(backlog) + len(fresh) - free > backlog.most:
        engine.charge(ids[announced])
        _begin(engine, rows[announced], scores[announced], view[announced], now)
        engine.account.refused += len(fresh)
        note_overload(engine, now)
        raise Busy(min(engine.account.retry_after, engine.deadlines.view / 2))
    engine.charge(ids[np.concatenate([announced, fresh])])
    ticket = Ticket(names, trace)
    # Decided items are answered at once: their rows may be the next to be used again.
    is_done = known & (table.state[rows] == DECIDED)
    if is_done.any():
        done = np.flatnonzero(is_done)
        waiters.tell(ticket, done.tolist(), rows[done], engine.results)
    for place in [*np.flatnonzero(waits).tolist(), *fresh[free:].tolist()]:
        backlog.add(int(ids[place]), scores[place], (ticket, place))
    fresh = fresh[:free]
    if len(fresh):
        rows[fresh] = table.announce(ids[fresh], now, 1, -1)
    pending = np.flatnonzero((rows >= 0) & ~is_done)
    waiters.add(rows[pending], ticket, pending)
    begun = np.concatenate([announced, fresh])
    _begin(engine, rows[begun], scores[begun], view[begun], now)
    if len(backlog):
        note_overload(engine, now)
    return ticket


def _begin(engine: Engine, rows: Rows, scores: Doubles, view: NDArray[Any], now: float) -> None:
    """Own views are there: from the first round on, whatever round a neighbour's message was of."""
    engine.table.first[rows] = engine.table.round[rows] = 1
    engine.table.done[rows] = 0
    engine.progress.begin(rows, scores, view, now)


def note_overload(engine: Engine, now: float) -> None:
    """A submission has to wait, still waits, or is refused."""
    if engine.account.overloaded(now):
        engine.log(logging.WARNING, f"overloaded: {engine.mine} items are pending and {len(engine.backlog)} wait")


def admit(engine: Engine, now: float) -> bool:
    """Begin items that waited, some at a time, since items of one round share a frame; whether any began."""
    backlog = engine.backlog
    if not len(backlog):
        if engine.account.not_overloaded(now):
            engine.log(logging.INFO, f"no longer overloaded; {engine.account.refused} items were refused so far")
        return False
    note_overload(engine, now)
    free = min(engine.most - engine.mine, engine.table.room())
    if free < min(len(backlog), max(engine.most // 4, 1)):
        return False
    ids = backlog.first(free)
    begin_waiting(engine, ids, engine.table.announce(ids, now, 1, -1), now)
    return True


def begin_waiting(engine: Engine, ids: U64, rows: Rows, now: float) -> None:
    """Begin items that waited, in these rows."""
    scores, places = engine.backlog.take(ids.tolist())
    of_ticket: dict[Ticket, tuple[list[int], list[int]]] = {}
    for row, waiting in zip(rows.tolist(), places, strict=True):
        for ticket, place in waiting:
            some, at = of_ticket.setdefault(ticket, ([], []))
            some.append(row)
            at.append(place)
    for ticket, (some, at) in of_ticket.items():
        engine.waiters.add(np.array(some), ticket, np.array(at))
    engine.progress.begin(rows, np.array(scores).reshape(len(rows), engine.d), GIVEN, now)


def checked(engine: Engine, names: Sequence[Name], scores: Doubles) -> Doubles:
    n, d, most = len(names), engine.d, engine.bound
    scores = np.ascontiguousarray(scores, np.float64)
    if scores.shape != ((n,) if d == 1 else (n, d)):
        wanted = "one score each" if d == 1 else f"{d} scores each, one for each class"
        raise ScoreError(f"{n} items need {wanted}, but scores have shape {scores.shape}")
    scores = scores.reshape(n, d)
    if d > 1:
        scores = centred(scores)
    outside = np.flatnonzero(~(np.abs(scores) <= most).all(axis=1))
    if len(outside):
        i = int(outside[0])
        worst = scores[i, np.argmax(np.abs(scores[i]))]
        raise ScoreError(
            f"item {names[i]!r} has score {worst:.6g}; {engine.name} takes finite ones up to {most:.6g}, "
            "which its neighbours know as its bound"
        )
    return scores


def check_conflicts(engine: Engine, names: Sequence[Name], ids: U64, rows: Rows, scores: Doubles) -> None:
    table, backlog = engine.table, engine.backlog
    given = (rows >= 0) & (table.view[rows] != NO_VIEW)
    clash = given & (table.score[rows] != scores).any(axis=1)
    if len(backlog):
        for place, item in enumerate(ids.tolist()):
            clash[place] |= item in backlog and bool((backlog.score(item) != scores[place]).any())
    if clash.any():
        name, more = names[int(np.flatnonzero(clash)[0])], int(clash.sum()) - 1
        raise Conflict(
            f"item {name!r:.80}{f' (and {more} more)' if more else ''} was submitted to {engine.name} before with "
            "another score: an item keeps its first one; give another observation another name"
        )
