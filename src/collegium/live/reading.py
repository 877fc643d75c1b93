"""Messages of neighbours: checked, and put where their rounds will find them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collegium._util.randomness import U64
from collegium.live.peers import Neighbour
from collegium.live.table import ANNOUNCED, NO_VIEW, PENDING, RECEIVED, RUNNING, UNCHANGED, Doubles, Rounds, Rows
from collegium.live.wire import Frame, FrameError

if TYPE_CHECKING:
    from collegium.live.engine import Engine


def take_in(engine: Engine, n: Neighbour, frame: Frame, now: float) -> bool:
    """The messages of a frame; whether any of them is of use."""
    values = engine.rule.codec.decode(frame.values)
    _check_values(engine, n, frame, values)
    if len(frame.runs) == 1 and frame.runs[0].items == 1:
        return _take_in_one(engine, n, frame, values, now)
    table, place = engine.table, n.place
    assert place is not None
    rows, ids, t = _located(engine, n, frame, now)
    states = table.state[rows]
    valid = (rows >= 0) & (table.id[rows] == ids) & ((states == RUNNING) | (states == ANNOUNCED))
    valid &= table.message[rows, t - 1, place] == PENDING
    if not valid.any():
        return False
    _lower(engine, rows[valid], t[valid])
    mine = (table.view[rows] != NO_VIEW) | (table.origin[rows] != n.peer.number)
    if (valid & mine).any():  # what it says of items that it began, and nobody here has seen, counts for nothing
        engine.got_message(n, now)
    due = rows[valid & (table.round[rows] == t) & (states == RUNNING)]
    if len(due):
        _measure(engine, n, int(due[0]), frame, now)
        engine.progress.touch(due)
    indices = np.array([engine.progress.sets.index(members) for members in frame.sets], np.uint16)
    of_item = indices[np.zeros(len(rows), np.intp) if frame.set_of is None else frame.set_of]
    if frame.spoke is not None:
        silent = valid & ~frame.spoke
        table.message[rows[silent], t[silent] - 1, place] = UNCHANGED
        values, valid = values[valid[frame.spoke]], valid & frame.spoke
    elif not valid.all():
        values = values[valid]
    if not valid.all():
        rows, t, of_item = rows[valid], t[valid], of_item[valid]
    table.inbox[rows, t - 1, place] = values
    table.message[rows, t - 1, place] = RECEIVED
    table.inbox_set[rows, t - 1, place] = of_item
    table.gave_up[rows, place] = False
    return True


def _lower(engine: Engine, rows: Rows, t: Rounds) -> None:
    """An item that waits for its view begins with the earliest round that any neighbour speaks of."""
    table = engine.table
    earlier = (table.state[rows] == ANNOUNCED) & (t < table.first[rows])
    for row, first in zip(rows[earlier].tolist(), t[earlier].tolist(), strict=True):
        table.first[row] = table.round[row] = min(first, table.first.item(row))
        table.done[row] = table.first[row] - 1


def _take_in_one(engine: Engine, n: Neighbour, frame: Frame, values: Doubles, now: float) -> bool:
    """The same for one item, for which array operations would cost several times as much."""
    table, progress, place, (handle, _, t, is_named) = engine.table, engine.progress, n.place, frame.runs[0]
    assert place is not None
    if is_named:
        item = frame.ids.item()
        row = table.find(item)
        if row < 0:
            row = int(engine.rows_of(frame.ids, t, n, now)[0])
        n.handles.learn(handle, np.array([row]), frame.ids)
    else:
        row, item = n.handles.find_one(handle)
    if row < 0 or table.id.item(row) != item or table.message.item(row, t - 1, place) != PENDING:
        return False
    state = table.state.item(row)
    if state not in (ANNOUNCED, RUNNING):
        return False
    if state == ANNOUNCED and t < table.first.item(row):
        _lower(engine, np.array([row]), np.array([t], np.int32))
    if table.view.item(row) != NO_VIEW or table.origin.item(row) != n.peer.number:
        engine.got_message(n, now)
    if len(values):
        table.inbox[row, t - 1, place] = values[0]
        table.message[row, t - 1, place] = RECEIVED
        table.inbox_set[row, t - 1, place] = progress.sets.index(frame.sets[0])
        table.gave_up[row, place] = False
    else:
        table.message[row, t - 1, place] = UNCHANGED
    if state == RUNNING and table.round.item(row) == t:
        _measure(engine, n, row, frame, now)
        if progress.states.is_scalar and table.active == 1 and not progress.is_somebody_left_out:
            engine.broadcast(progress.average(row, t, now))
        else:
            progress.touch(np.array([row]))
    return True


def _located(engine: Engine, n: Neighbour, frame: Frame, now: float) -> tuple[Rows, U64, Rounds]:
    """Rows, identities and rounds of a frame's items; row -1 where they are not known and there is no room."""
    place = 0
    for handle, items, t, is_named in frame.runs:
        if is_named:
            ids = frame.ids[place : place + items]
            n.handles.learn(handle, engine.rows_of(ids, t, n, now), ids)
            place += items
    if len(frame.runs) == 1:
        return (*n.handles.find(handle, items), frame.rounds)
    first, count = (np.array([run[i] for run in frame.runs], np.int64) for i in (0, 1))
    start = np.cumsum(count) - count
    return (*n.handles.find_all(np.repeat(first - start, count) + np.arange(count.sum())), frame.rounds)


def _check_values(engine: Engine, n: Neighbour, frame: Frame, values: Doubles) -> None:
    """Refuse numbers that no honest sender can have; NaN is none."""
    if not values.size:
        return
    most = abs(values.item()) if values.size == 1 else max(-float(values.min()), float(values.max()))
    if most <= min(n.bound, engine.largest):
        return
    rounds = frame.rounds if frame.spoke is None else frame.rounds[frame.spoke]
    limit = np.where(rounds == 1, min(n.bound, engine.largest), engine.largest)
    if not (np.abs(values) <= limit[:, None]).all():
        raise FrameError(f"a message of {most:.6g}, beyond what it may be ({limit.min():.6g})")


def _measure(engine: Engine, n: Neighbour, row: int, frame: Frame, now: float) -> None:
    """How long a message took; those of round 1 wait for views, which says nothing of the neighbour's pace."""
    if not frame.is_resent and (frame.runs[0].round > 1 or engine.rounds == 1):
        n.responded(max(now - engine.table.since.item(row), 0.0))
