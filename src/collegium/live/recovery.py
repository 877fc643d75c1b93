"""Messages that do not come: ask the sender for them, answer those who ask, and give up in time.

A question goes to the sender alone and so does its answer. Few messages are asked for at first, and more only when the
answer shows that they were lost; while the sender says that they are not sent yet, the time between questions doubles.
What counts is messages, not signs of life: a sender that only answers is left out all the same, later.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from collegium.live.peers import MOST_STRIKES, Neighbour, State
from collegium.live.table import ANNOUNCED, DECLINED, PENDING, RUNNING, Rows
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
    pending = table.message[running, table.round[running] - 1] == PENDING
    pending &= ~table.gave_up[running]
    for n in engine.heard:
        place = n.place
        assert place is not None
        if n.is_left_out:
            continue
        rows = running[pending[:, place]]
        if not len(rows):
            n.asked_at = None
            continue
        since = table.since[rows]
        oldest = float(since.min())
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
        table.message[over, table.round[over] - 1, n.place] = DECLINED
        table.gave_up[over, n.place] = True
        n.late_at = now
        if n.promised < now:
            n.strikes = min(n.strikes + 1, MOST_STRIKES)
        engine.progress.touch(over)
    left = limits > now
    return rows[left], float(limits[left].min()) if left.any() else math.inf


def _question(engine: Engine, n: Neighbour, rows: Rows, now: float) -> float:
    """Ask once more for what is overdue; when the next message will be."""
    table, deadline, place = engine.table, n.deadline, n.place
    longest = max(n.deadlines.longest / 4, deadline)
    waits = np.minimum(deadline * 2.0 ** table.asks[rows, place], longest)
    due = np.maximum(table.since[rows], table.asked[rows, place]) + waits
    late = rows[due <= now]
    wake = float(due[due > now].min()) if (due > now).any() else math.inf
    if n.asked_at is not None:  # a ping costs less than the question once more, to tell whether it is still there
        engine.ping(n, deadline, now)
        wake = min(wake, n.pinged_at + deadline)
    if not len(late):
        return wake
    late = late[np.argsort(table.since[late], kind="stable")[: n.window]]
    late = late[np.argsort(table.round[late], kind="stable")]
    table.asked[late, place] = now
    engine.account.asked += len(late)
    n.asked_at, n.question_at = now if n.asked_at is None else n.asked_at, now
    engine.send(n.peer.number, about(Kind.RESEND, engine.number, table.id[late], table.round[late]))
    return min(wake, now + deadline)


def put_off(engine: Engine, n: Neighbour, frame: Frame, now: float) -> None:
    """A sender answers that its messages are not sent yet: ask it less often, and wait as long as it says."""
    table, place = engine.table, n.place
    rows = table.rows(frame.ids)
    rows = rows[rows >= 0]
    table.asks[rows, place] = np.minimum(table.asks[rows, place] + 1, _DOUBLINGS)
    n.promised = max(n.promised, now + min(frame.runs[0].handle / 1e3, engine.deadlines.patience))


def declined(engine: Engine, n: Neighbour, frame: Frame) -> None:
    """A sender takes no part: these items wait for it no longer, until a message of it comes."""
    rows = engine.table.rows(frame.ids)
    rows = rows[rows >= 0]
    engine.table.gave_up[rows, n.place] = True
    engine.progress.touch(rows)


def answer(engine: Engine, n: Neighbour, frame: Frame, now: float) -> None:
    """Send again what a neighbour has not received, or say that it is not sent yet, or never will be."""
    table, to = engine.table, n.peer.number
    t = frame.rounds
    rows = np.concatenate(
        [
            engine.rows_of(frame.ids[stop - run.items : stop], run.round, n, now)
            for run, stop in zip(frame.runs, np.cumsum([run.items for run in frame.runs]).tolist(), strict=True)
        ]
    )
    known = (rows >= 0) & (table.id[rows] == frame.ids)
    begun = known & (table.state[rows] >= RUNNING)
    sent = begun & (table.first[rows] <= t) & (t <= table.round[rows])
    if sent.any():
        for messages in engine.progress.messages(rows[sent], t[sent], is_resent=True):
            engine.send(to, messages)
    later = known & ((table.state[rows] == ANNOUNCED) & (table.first[rows] <= t))
    later |= begun & (table.state[rows] == RUNNING) & (table.round[rows] < t)
    never = ~sent & ~later
    if never.any():
        engine.decline(to, frame.ids[never], t[never])
    if later.any():
        engine.send(to, about(Kind.NOT_YET, engine.number, frame.ids[later], t[later], _wait(engine, rows[later], now)))


def _wait(engine: Engine, rows: Rows, now: float) -> int:
    """How many milliseconds more items may wait for views or for messages of others, at most."""
    table = engine.table
    announced = rows[table.state[rows] == ANNOUNCED]
    until = now
    if len(announced):
        until = float(table.born[announced].max()) + engine.view_wait()
    running = rows[table.state[rows] == RUNNING]
    if len(running):
        missing = (table.message[running, table.round[running] - 1] == PENDING) & ~table.gave_up[running]
        for n in engine.heard:
            if not n.is_left_out and missing[:, n.place].any():
                until = max(until, n.patient_until(float(table.since[running].min())))
    return max(int(1e3 * (until + engine.deadlines.least - now)), 1)
