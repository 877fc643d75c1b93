"""Results of an engine's items, and its status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collegium.live.answers import (
    ByteCounts,
    Evidence,
    ItemCounts,
    ItemResult,
    Name,
    NeighbourStatus,
    Number,
    Quantiles,
    Recent,
    RecentItem,
    Status,
)
from collegium.live.naming import identities
from collegium.live.peers import Neighbour, State
from collegium.live.table import ANNOUNCED, DECIDED, FREE, GIVEN, LATE, NO_VIEW, Rows, rerun
from collegium.protocol import Ceca, registry

if TYPE_CHECKING:
    from collegium.live.engine import Engine

_LISTED = 32
_VIEWS = {NO_VIEW: "missing", GIVEN: "given", LATE: "late"}


def results(engine: Engine, names: Sequence[Name], rows: Rows, trace: bool) -> list[ItemResult]:
    """Results of decided items."""
    table, n = engine.table, len(rows)
    statistics = table.trace[table.done[rows], rows]
    labels = _labels(statistics)
    everybody, shown = [one.peer.name for one in engine.heard], {}
    evidence = table.evidence[rows].tolist()
    for index in set(evidence):
        shown[index] = _evidence(engine, index)
    missed: Sequence[list[str]] = [[]] * n
    heard: Sequence[list[str]] = [everybody] * n
    gone = table.missed[[one.place or 0 for one in engine.heard]][:, rows].T
    if gone.any():
        missed = [[who for who, is_gone in zip(everybody, one, strict=True) if is_gone] for one in gone.tolist()]
        heard = [[who for who in everybody if who not in one] for one in missed]
    # Column by column: items of one request are mostly decided together, and this costs a fraction of one by one.
    columns: tuple[Iterable[Any], ...] = (
        names,
        [engine.classes[label] for label in labels.tolist()],
        _numbers(statistics),
        _numbers(table.score[rows]),
        _settled(engine, rows, labels).tolist(),
        [shown[index] for index in evidence],
        engine.rounds_of(rows).tolist(),
        [_VIEWS[view] for view in table.view[rows].tolist()],
        heard,
        missed,
        np.round((table.ended[rows] - table.born[rows]) * 1e3, 3).tolist(),
        [_trace(table.trace[:, row]) for row in rows.tolist()] if trace else repeat(None, n),
    )
    if engine.sets is not None:
        columns += engine.sets.answer(statistics, _complete(engine, rows), engine.classes)
    return list(map(ItemResult, *columns))


def _numbers(values: NDArray[np.float64]) -> list[Any]:
    """One number an item for two classes, a list for more."""
    numbers: list[Any] = (values[:, 0] if values.shape[1] == 1 else values).tolist()
    return numbers


def _trace(steps: NDArray[np.float64]) -> list[Number | None]:
    known = np.asarray(~np.isnan(steps).any(axis=1))
    return [step if is_known else None for step, is_known in zip(_numbers(steps), known.tolist(), strict=True)]


def _labels(statistics: NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices of classes; of a tie, the first, as `Team.predict` has it."""
    if statistics.shape[1] == 1:
        return np.asarray(statistics[:, 0] > 0, np.intp)
    return np.asarray(statistics.argmax(axis=1))


def _settled(engine: Engine, rows: Rows, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
    table = engine.table
    before = table.trace[np.maximum(table.done[rows] - 1, 0), rows]
    if engine.d == 1:
        same = np.sign(before[:, 0]) == np.sign(table.trace[table.done[rows], rows, 0])
    else:
        same = before.argmax(axis=1) == labels
    complete = _complete(engine, rows)
    if engine.stood_still is not None:
        return np.asarray(complete & engine.stood_still[rows], np.bool_)
    if type(engine.rule) is Ceca and engine.reachable == len(engine.agents):
        return np.asarray(complete, np.bool_)  # it is the average: what the labels were before does not matter
    return np.asarray(same & complete & table.agreed[rows], np.bool_)


def _complete(engine: Engine, rows: Rows) -> NDArray[np.bool_]:
    """Whether every view that can be is in the statistic, after all rounds and with no message missing."""
    table = engine.table
    complete = engine.is_complete(table.evidence[rows]) & (table.done[rows] == engine.rounds)
    return np.asarray(complete & ~table.missed[:, rows].any(axis=0), np.bool_)


def _evidence(engine: Engine, index: int) -> Evidence:
    members = engine.progress.sets.members[index]
    missing: list[str] = []
    if members.bit_count() < engine.reachable == len(engine.agents):
        missing = [name for k, name in enumerate(engine.agents) if not members >> k & 1][:_LISTED]
    return Evidence(members.bit_count(), engine.reachable, missing)


def result(engine: Engine, name: Name, trace: bool) -> ItemResult | None:
    """The result of an item, if it is decided and remembered."""
    row = _row(engine, name)
    if row < 0 or engine.table.state.item(row) != DECIDED:
        return None
    return results(engine, [name], np.array([row]), trace)[0]


def is_pending(engine: Engine, name: Name) -> bool:
    """Whether an item is in hand, or waits to be begun, and is not decided."""
    row = _row(engine, name)
    return int(identities([name])[0]) in engine.backlog if row < 0 else engine.table.state.item(row) != DECIDED


def knows(engine: Engine, names: Sequence[Name]) -> list[bool]:
    """Which items were begun here or by a neighbour, or wait to be begun, and are not forgotten."""
    ids = identities(names)
    found: list[bool] = ((engine.table.rows(ids) >= 0) | engine.backlog.has(ids)).tolist()
    return found


def _row(engine: Engine, name: Name) -> int:
    """The row of an item: of its second run if there is one."""
    table, ids = engine.table, identities([name])
    row, again = table.find(int(ids[0])), table.find(int(rerun(ids)[0]))
    return again if again >= 0 and (row < 0 or table.view.item(row) == NO_VIEW) else row


def recent(engine: Engine, most: int, now: float) -> Recent:
    """The items that came last, newest first, as far as they are."""
    table = engine.table
    known = np.flatnonzero(table.state != FREE)
    rows = known[np.argsort(-table.born[known], kind="stable")[:most]]
    items = [_recent(engine, row, now) for row in rows.tolist()]
    return Recent(engine.name, engine.number, engine.rounds, items)


def _recent(engine: Engine, row: int, now: float) -> RecentItem:
    table = engine.table
    state, done = table.state.item(row), table.done.item(row)
    is_decided = state == DECIDED
    trace = _trace(table.trace[: done + 1, row])
    one = np.array([row])
    return RecentItem(
        f"{table.id.item(row):016x}",
        done,
        is_decided,
        "waiting" if state == ANNOUNCED else _VIEWS[table.view.item(row)],
        None if state == ANNOUNCED else _numbers(table.score[one])[0],
        trace[-1],
        trace,
        table.spoke[:done, row].tolist(),
        bool(_settled(engine, one, _labels(table.trace[table.done[one], one]))[0]) if is_decided else None,
        None if state == ANNOUNCED else _evidence(engine, table.evidence.item(row)),
        [n.peer.name for n in engine.heard if n.place is not None and table.missed.item(n.place, row)],
        round(1e3 * (now - table.born.item(row)), 3),
    )


def why_not_ready(engine: Engine) -> str | None:
    """What is missing for full rounds; None if nothing is. Whoever is revoked is not missing."""
    away = [
        n.peer.name
        for n in engine.neighbours.values()
        if not n.revoked and (not n.is_present or n.is_expected or (n.place is not None and n.is_left_out))
    ]
    return f"waiting for {', '.join(away)}" if away else None


def status(engine: Engine, now: float, sent: int, received: int) -> Status:
    """The state of the agent and its neighbours."""
    account, reason = engine.account, why_not_ready(engine)
    return Status(
        name=engine.name,
        number=engine.number,
        network=engine.place.network,
        ready=reason is None,
        not_ready_reason=reason,
        rule=registry.describe(engine.rule),
        rounds=engine.rounds,
        agents=list(engine.agents),
        classes=list(engine.classes),
        neighbours=[_neighbour(engine, n, now) for n in engine.neighbours.values()],
        refused_peers=dict(engine.refused_peers),
        items=ItemCounts(
            pending=engine.table.active,
            waiting=len(engine.backlog),
            most=engine.most,
            **{name: getattr(account, name) for name in _COUNTS},
        ),
        rounds_done=engine.progress.done,
        re_requested=account.asked,
        overloaded_s=round(account.overload_seconds, 3),
        bytes=ByteCounts(sent, received),
        latency_ms=Quantiles(account.quantile(0.5), account.quantile(0.99)),
        latency=account.histogram(),
        up_s=round(now - account.begun, 3),
        mass=engine.mass(),
        caught=[] if engine.witness is None else [engine.agents[k] for k in sorted(engine.witness.proofs)],
    )


_COUNTS = (
    "done", "from_zero", "with_missing", "incomplete", "past_deadline", "refused", "no_room", "failed",
)  # fmt: skip


def _neighbour(engine: Engine, n: Neighbour, now: float) -> NeighbourStatus:
    is_heard, suspicion = n.place is not None, engine.progress.states.suspicion
    missed = 0 if n.place is None else int(engine.progress.missed[n.place])
    return NeighbourStatus(
        n.peer.name,
        n.peer.number,
        "both" if is_heard and n.hears else "in" if is_heard else "out",
        State.REFUSED if n.revoked else n.shown(now),
        n.revoked or (n.reason if n.state is not State.UP or n.rejected or n.is_expected else ""),
        None if n.response is None else round(n.response * 1e3, 3),
        round(n.deadline * 1e3, 3),
        missed,
        n.rejected,
        n.over_budget,
        int(suspicion.compared[n.peer.number]) if is_heard else 0,
        int(suspicion.far[n.peer.number]) if is_heard else 0,
        0 if engine.witness is None else engine.witness.forged[n.peer.number],
    )
