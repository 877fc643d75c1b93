"""Messages that do not come: ask the sender for them, answer those who ask, and give up in time.

A question goes to the sender alone and so does its answer. Few messages are asked for at first, and more only when the
answer shows that they were lost; while the sender answers NOT_YET, the time between questions doubles.
What counts is messages, not signs of life: a sender that only answers is left out all the same, later.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from collegium.live.peers import Neighbour, State
from collegium.live.reading import lower
from collegium.live.table import ANNOUNCED, DECLINED, PENDING, RUNNING, Rounds, Rows, in_round
from collegium.live.wire import Frame, Kind, about

if TYPE_CHECKING:
    from collegium.live.engine import Engine

_DOUBLINGS = 4


def ask(engine: Engine, now: float) -> float:
    """Ask for what is overdue, and leave out whose messages do not come; when to look again."""
    table, wake = engine.table, math.inf
    running = np.flatnonzero(table.state == RUNNING)
    if not len(running):
        return wake
    pending = in_round(table.message, table.round[running], running) == PENDING
    pending &= ~table.gave_up[:, running]
    for n in engine.heard:
        place = n.place
        assert place is not None
        if n.is_left_out:
            continue
        rows = running[pending[place]]
        if not len(rows):
            n.asked_at = None
            continue
        since = table.since[rows]
        oldest = float(since.min())
        if now < n.expected:
            wake = min(wake, n.expected, _give_up(engine, n, rows, now)[1])
            continue
        if n.is_expected:
            engine.not_back(n)
            continue
        if n.has_gone_silent(now):
            engine.leave_out(n, State.SILENT, "does not answer", now)
            continue
        limit = n.patient_until(oldest)
        if now >= limit:
            engine.leave_out(n, State.MUTE, f"answers, but has sent no message for {now - oldest:.1f} s", now)
            n.late_at = now
            continue
        rows, limit = _give_up(engine, n, rows, now)
        if len(rows):
            wake = min(wake, limit, _question(engine, n, rows, now))
    return wake


def _give_up(engine: Engine, n: Neighbour, rows: Rows, now: float) -> tuple[Rows, float]:
    """Wait no longer for messages on single items, when others came meanwhile; those still waited for, until when."""
    table, patience = engine.table, n.deadlines.patience
    since = table.since[rows]
    limits = np.minimum(np.maximum(since + patience, n.promised), since + 2 * patience)
    over = rows[limits <= now]
    if len(over):
        table.message[table.round[over] - 1, n.place, over] = DECLINED
        table.gave_up[n.place, over] = True
        n.late_at = now
        if n.promised < now:
            n.strike(now)
        engine.progress.touch(over)
    left = limits > now
    return rows[left], float(limits[left].min()) if left.any() else math.inf


def _question(engine: Engine, n: Neighbour, rows: Rows, now: float) -> float:
    """Ask once more for what is overdue; when the next message will be."""
    table, deadline, place = engine.table, n.deadline, n.place
    longest = max(n.deadlines.longest / 4, deadline)
    waits = np.minimum(deadline * 2.0 ** table.asks[place, rows], longest)
    due = np.maximum(table.since[rows], table.asked[place, rows]) + waits
    late = rows[due <= now]
    wake = float(due[due > now].min()) if (due > now).any() else math.inf
    if n.asked_at is not None:  # a ping costs less than the question once more, to tell whether it is still there
        engine.ping(n, deadline, now)
        wake = min(wake, n.pinged_at + deadline)
    if not len(late):
        return wake
    late = late[np.argsort(table.since[late], kind="stable")[: n.window]]
    late = late[np.argsort(table.round[late], kind="stable")]
    table.asked[place, late] = now
    engine.account.asked += len(late)
    n.asked_at, n.question_at = now if n.asked_at is None else n.asked_at, now
    engine.send(n.peer.number, about(Kind.RESEND, engine.number, table.id[late], table.round[late]))
    return min(wake, now + deadline)


def put_off(engine: Engine, n: Neighbour, frame: Frame, now: float) -> None:
    """A sender answers that its messages are not sent yet: ask it less often, and wait as long as it asks for."""
    table, place = engine.table, n.place
    rows = table.rows(frame.ids)
    rows = rows[rows >= 0]
    table.asks[place, rows] = np.minimum(table.asks[place, rows] + 1, _DOUBLINGS)
    n.promised = max(n.promised, now + min(frame.runs[0].handle / 1e3, engine.deadlines.patience))


def declined(engine: Engine, n: Neighbour, frame: Frame) -> None:
    """A sender takes no part: these items wait for it no longer, until a message of it comes."""
    rows = engine.table.rows(frame.ids)
    rows = rows[rows >= 0]
    engine.table.gave_up[n.place, rows] = True
    engine.progress.touch(rows)


def answer(engine: Engine, n: Neighbour, frame: Frame, now: float) -> None:
    """Send again what a neighbour has not received, or answer that it is not sent yet, or never will be."""
    table, to = engine.table, n.peer.number
    t = frame.rounds
    rows = np.concatenate(
        [
            engine.rows_of(frame.ids[stop - run.items : stop], run.round, n, now)
            for run, stop in zip(frame.runs, np.cumsum([run.items for run in frame.runs]).tolist(), strict=True)
        ]
    )
    known = (rows >= 0) & (table.id[rows] == frame.ids)
    lower(engine, rows[known], t[known])
    begun = known & (table.state[rows] >= RUNNING)
    sent = begun & (table.first[rows] <= t) & (t <= table.round[rows])
    if sent.any():
        for messages in engine.progress.messages(_from(engine, rows[sent], t[sent]), is_resent=True):
            engine.send(to, messages)
    later = known & ((table.state[rows] == ANNOUNCED) & (table.first[rows] <= t))
    later |= begun & (table.state[rows] == RUNNING) & (table.round[rows] < t)
    never = ~sent & ~later
    if never.any():
        engine.decline(to, frame.ids[never], t[never])
    if later.any():
        engine.send(to, about(Kind.NOT_YET, engine.number, frame.ids[later], t[later], _wait(engine, rows[later], now)))


def _from(engine: Engine, rows: Rows, t: Rounds) -> list[tuple[Rows, Rounds]]:
    """Items and all rounds of them from t on that are sent: who is behind need not ask for each."""
    last = engine.table.round[rows]
    return [
        (rows[t + more <= last], (t + more)[t + more <= last]) for more in range(int((last - t).max(initial=0)) + 1)
    ]


def tell_open(engine: Engine, n: Neighbour) -> None:
    """A neighbour came: the items that wait for it, since it may be a new process and know of none."""
    table = engine.table
    rows = np.flatnonzero(table.state == RUNNING)
    if len(rows) and n.hears:
        if n.place is not None:
            rows = rows[in_round(table.message, table.round[rows], rows)[n.place] == PENDING]
        if len(rows):
            for messages in engine.progress.messages(_from(engine, rows, table.first[rows]), is_resent=True):
                engine.send(n.peer.number, messages)


def _wait(engine: Engine, rows: Rows, now: float) -> int:
    """How many milliseconds more items may wait for views or for messages of others, at most."""
    table = engine.table
    announced = rows[table.state[rows] == ANNOUNCED]
    until = now
    if len(announced):
        until = float(table.born[announced].max()) + engine.view_wait()
    running = rows[table.state[rows] == RUNNING]
    if len(running):
        missing = in_round(table.message, table.round[running], running) == PENDING
        missing &= ~table.gave_up[:, running]
        for n in engine.heard:
            if not n.is_left_out and missing[n.place].any():
                until = max(until, n.patient_until(float(table.since[running].min())))
    return max(int(1e3 * (until + engine.deadlines.least - now)), 1)
