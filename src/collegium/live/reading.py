"""Messages of neighbours: checked, and put where their rounds will find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collegium._util.randomness import U64
from collegium.live.peers import Neighbour, State
from collegium.live.table import (
    ANNOUNCED,
    NO_VIEW,
    PENDING,
    RECEIVED,
    RUNNING,
    UNCHANGED,
    Doubles,
    Rounds,
    Rows,
    together,
)
from collegium.live.wire import Frame, FrameError

_APART = 4  # runs of a frame up to which each is handled as a stretch of memory
if TYPE_CHECKING:
    from collegium.live.engine import Engine


def take_in(engine: Engine, n: Neighbour, frame: Frame, now: float) -> bool:
    """The messages of a frame; whether any of them is of use."""
    values = engine.rule.codec.decode(frame.values)
    _check_values(engine, n, frame, values)
    rows, ids, rounds = _located(engine, n, frame, now)
    indices = [engine.progress.sets.index(members) for members in frame.sets]
    sets: Any = indices[0] if frame.set_of is None else np.array(indices, np.uint16)[frame.set_of]
    kinds: Any = RECEIVED
    if frame.spoke is not None:
        kinds, heard = np.where(frame.spoke, RECEIVED, UNCHANGED), values
        values = np.zeros((len(rows), heard.shape[1]))
        values[frame.spoke] = heard
    stops = np.cumsum([run.items for run in frame.runs]).tolist() if 1 < len(frame.runs) <= _APART else [len(rows)]
    is_of_use, start = False, 0
    for stop in stops:
        part = slice(start, stop)
        some = [one if isinstance(one, int) else one[part] for one in (kinds, values, sets)]
        is_of_use |= _put(engine, n, rows[part], ids[part], rounds[part], *some, is_resent=frame.is_resent, now=now)
        start = stop
    return is_of_use


def _put(
    engine: Engine, n: Neighbour, rows: Rows, ids: U64, rounds: Rounds, kinds: Any, values: Any, sets: Any,
    *, is_resent: bool, now: float,
) -> bool:  # fmt: skip
    """Messages, or that there is none, where their rounds will find them; whether any is of use."""
    table, place = engine.table, n.place
    assert place is not None
    are_known = bool(rows.min() >= 0)
    at, t = together(rows, rounds) if are_known else (rows, rounds)
    states = table.state[at]
    running = states == RUNNING
    valid = (table.id[at] == ids) & (table.message[t - 1, place, at] == PENDING)
    if not (are_known and running.all()):
        valid &= (rows >= 0) & (running | (states == ANNOUNCED))
    if not valid.all():
        if not valid.any():
            return False
        rows, rounds, running = rows[valid], rounds[valid], running[valid]
        kinds, values, sets = (one if isinstance(one, int) else one[valid] for one in (kinds, values, sets))
        at, t = together(rows, rounds)
    are_running = bool(running.all())
    if not are_running:
        lower(engine, rows, rounds)
    # Its messages about items that it began, and nobody here has seen, count for nothing.
    if table.view.item(rows[0]) != NO_VIEW or ((table.view[at] != NO_VIEW) | (table.origin[at] != n.peer.number)).any():
        engine.got_message(n, now)
    due = table.round[at] == t
    due = due if are_running else due & running
    if due.any():
        engine.progress.touch(at if due.all() else rows[due])
        first = int(due.argmax())
        _measure(engine, n, rows.item(first), rounds.item(first), is_resent, now)
    table.message[t - 1, place, at] = kinds
    table.inbox[t - 1, place, at] = values
    table.inbox_set[t - 1, place, at] = sets
    table.gave_up[place, at] &= kinds != RECEIVED
    return True


def lower(engine: Engine, rows: Rows, t: Rounds) -> None:
    """An item that waits for its view begins with the earliest round of any neighbour's message."""
    table = engine.table
    earlier = (table.state[rows] == ANNOUNCED) & (t < table.first[rows])
    for row, first in zip(rows[earlier].tolist(), t[earlier].tolist(), strict=True):
        table.first[row] = table.round[row] = min(first, table.first.item(row))
        table.done[row] = table.first[row] - 1


def take_in_one(engine: Engine, n: Neighbour, data: bytes, now: float) -> bool:
    """One number about one item that is under way, or those of two rounds: what `take_in` does, in a fraction of its
    time. Neighbours of two colours, as on a grid, send two rounds at a time once one colour is a round ahead.

    False, and nothing is done, if it is not that: then the general way has to look.
    """
    table, progress, place, bound = engine.table, engine.progress, n.place, n.bound
    found = engine.single.read(data) if n.state is State.UP else None
    if found is None or place is None:
        return False
    handle, first, agents, values = found
    row, item = n.handles.find_one(handle)
    if not 1 <= first <= engine.rounds + 1 - len(values) or agents >= engine.beyond or row < 0:
        return False
    if table.state.item(row) != RUNNING or table.id.item(row) != item or table.view.item(row) == NO_VIEW:
        return False
    for t, value in enumerate(values, first):
        if not abs(value) <= bound or table.message.item(t - 1, place, row) != PENDING:
            return False
    n.asked_at = None
    n.sent_message(now)
    views = progress.sets.index(agents)
    for t, value in enumerate(values, first):
        table.inbox[t - 1, place, row, 0] = value
        table.message[t - 1, place, row] = RECEIVED
        table.inbox_set[t - 1, place, row] = views
    table.gave_up[place, row] = False
    if table.round.item(row) == first:
        _measure(engine, n, row, first, False, now)
        if progress.states.is_scalar and table.active == 1 and not progress.leaves_some_out:
            frames = progress.average(row, first, now)
            if frames:
                engine.broadcast(frames)
        else:
            progress.touch(slice(row, row + 1))
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
    if most <= n.bound:
        return
    rounds = frame.rounds if frame.spoke is None else frame.rounds[frame.spoke]
    limit = np.where(rounds == 1, n.bound, engine.largest)
    if not (np.abs(values) <= limit[:, None]).all():
        raise FrameError(f"a message of {most:.6g}, beyond what it may be ({limit.min():.6g})")


def _measure(engine: Engine, n: Neighbour, row: int, t: int, is_resent: bool, now: float) -> None:
    """How long a message took; those of round 1 wait for views, and do not measure the neighbour's pace."""
    if not is_resent and (t > 1 or engine.rounds == 1):
        n.responded(max(now - engine.table.since.item(row), 0.0))
