"""Histories of live networks on a virtual clock: ten thousand with faults, each of which a seed brings back."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from collegium.checks import histories
from collegium.checks.histories import KINDS, RULES, Fault, History, Plan, plan, run
from collegium.errors import CheckError
from collegium.live import recovery
from collegium.live.engine import Engine
from collegium.live.evidence import Sets
from collegium.live.item_states import ItemStates
from collegium.live.rounds import Progress
from collegium.live.table import PENDING, RUNNING, Rows, Table
from collegium.live.waiters import Waiters

CHUNK = 250


@pytest.mark.parametrize("first", range(0, 10_000, CHUNK))
def test_faulted_histories_keep_their_promises(first: int) -> None:
    """In chunks, which workers share."""
    for seed in range(first, first + CHUNK):
        run(plan(seed))


@pytest.mark.parametrize("first", range(0, 2_000, CHUNK))
def test_one_frame_in_twenty_may_be_lost_without_changing_a_number(first: int) -> None:
    for seed in range(first, first + CHUNK):
        one = plan(seed)
        lossy = replace(one, loss=0.05, jitter=min(one.jitter, 0.03), missing=0.0, faults=(), skew=0.0, pending=None)
        assert lossy.is_exact
        assert not lossy.is_healthy
        run(lossy)


def history(one: Plan) -> History:
    played = History(one)
    played.run()
    return played


def test_plans_have_faults_of_every_kind() -> None:
    plans = [plan(seed) for seed in range(1000)]
    assert {fault.kind for one in plans for fault in one.faults} == set(KINDS)
    assert {one.rule for one in plans} == set(range(len(RULES)))
    assert {one.network for one in plans} == set(range(len(histories.networks())))
    assert 50 < sum(one.is_healthy for one in plans) < 200
    busy = [history(one) for one in plans[:150] if one.pending and one.items == 6]
    assert sum(one.refusals for one in busy) > len(busy) > 5  # refused, and retried until all is answered


def test_a_seed_brings_a_history_back_byte_for_byte() -> None:
    """Also in another process, whose hashes of texts are others."""
    seeds = range(20, 32)
    digests = [run(plan(seed)) for seed in seeds]
    assert digests == [run(plan(seed)) for seed in seeds]
    assert len(set(digests)) == len(digests)
    program = f"from collegium.checks.histories import plan, run; print(*[run(plan(s)) for s in range({seeds[0]}, 32)])"
    for hashes in ("1", "2"):
        child = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hashes},
        )
        assert child.stdout.split() == digests


FAULTS = st.builds(
    lambda kind, agent, begin, seconds: Fault(kind, agent, begin, begin + seconds),
    st.sampled_from(KINDS),
    st.integers(0, 1),
    st.sampled_from([0.0, 0.01, 0.1, 1.0]),
    st.sampled_from([0.3, 1.5, 4.0]),
)
PLANS = st.builds(
    Plan,
    seed=st.integers(0, 2**32),
    network=st.integers(0, len(histories.networks()) - 1),
    rule=st.integers(0, len(RULES) - 1),
    rounds=st.integers(1, 4),
    items=st.integers(1, 3),
    batches=st.integers(1, 2),
    missing=st.sampled_from([0.0, 0.2, 0.5]),
    loss=st.sampled_from([0.0, 0.05, 0.2]),
    duplicate=st.sampled_from([0.0, 0.1]),
    jitter=st.sampled_from([0.0, 0.01, 0.2]),
    skew=st.sampled_from([0.0, 0.1]),
    pending=st.sampled_from([None, 1]),
    faults=st.lists(FAULTS, max_size=2).map(tuple),
)


@given(PLANS)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_plan_keeps_its_promises(one: Plan) -> None:
    run(one)


# ── every promise can be broken, and is noticed ───────────────────────────────────────────────────────────────────


def decide_twice(patch: pytest.MonkeyPatch) -> None:
    """What was decided is forgotten at once, so that a late frame begins it again."""
    decide = Table.decide

    def forgetting(self: Table, rows: Rows, now: float) -> None:
        decide(self, rows, now)
        for item in self.id[rows].tolist():
            del self._rows[item]
        self.state[rows] = 0

    patch.setattr(Table, "decide", forgetting)


def forget_tickets(patch: pytest.MonkeyPatch) -> None:
    """A request is told of the first of its items only."""
    tell = Waiters.tell

    def forgetful(self: Waiters, ticket: Any, places: list[int], rows: Rows, results: Callable[..., Any]) -> None:
        tell(self, ticket, places[:1], rows[:1], results)

    patch.setattr(Waiters, "tell", forgetful)


def count_early_messages(patch: pytest.MonkeyPatch) -> None:
    """Views in messages that came, but are not combined yet, count as evidence."""
    absorb = Progress._absorb

    def eager(self: Progress, rows: Rows, t: Any, messages: Any) -> None:
        absorb(self, rows, t, messages)
        table = self.table
        early = table.inbox_set[:, :, rows].reshape(-1, len(table.id[rows]))
        table.evidence[rows] = self.sets.unions(np.concatenate([early, table.evidence[rows][None]]))

    patch.setattr(Progress, "_absorb", eager)


def forget_a_sender(patch: pytest.MonkeyPatch) -> None:
    """What the last sender knows does not count: evidence is understated."""
    union = Sets.union
    patch.setattr(Sets, "union", lambda self, indices: union(self, indices[:-1] or indices))


def lose_rows(patch: pytest.MonkeyPatch) -> None:
    """Rows of dropped items are never used again."""
    drop = Table.drop

    def losing(self: Table, rows: Rows) -> None:
        drop(self, rows)
        self._free[self._head % self.capacity] = self._free[(self._head + self.room() - 1) % self.capacity]

    patch.setattr(Table, "drop", losing)


def wait_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Nobody is asked, left out or given up, and items have no deadline."""
    patch.setattr(recovery, "ask", lambda engine, now: np.inf)
    patch.setattr(Engine, "_end_items", lambda self, now: np.inf)


def decide_late(patch: pytest.MonkeyPatch) -> None:
    """Items are decided seconds after their deadline."""
    patch.setattr(recovery, "ask", lambda engine, now: now + 1.0 if engine.table.active else np.inf)
    end = Engine._end_items

    def late(engine: Engine, now: float) -> float:
        running = np.flatnonzero(engine.table.state == RUNNING)
        until = engine.table.born[running].min(initial=np.inf) + engine.deadlines.item + 3.0
        return float(until) if len(running) and now < until else end(engine, now)

    patch.setattr(Engine, "_end_items", late)


def ask_nobody(patch: pytest.MonkeyPatch) -> None:
    """What does not come at once is left out."""

    def hasty(engine: Engine, now: float) -> float:
        table = engine.table
        running = np.flatnonzero(table.state == RUNNING)
        for row in running.tolist():
            table.gave_up[:, row] |= table.message[table.round[row] - 1, :, row] == PENDING
        engine.progress.touch(running)
        return np.inf

    patch.setattr(recovery, "ask", hasty)


def wait_for_timers(patch: pytest.MonkeyPatch) -> None:
    """Messages are put away, and only the clock goes on with them."""
    receive, tick = Engine.receive, Engine.tick

    def idle(self: Engine, frames: Any, now: float) -> Any:
        advance, self.progress.advance = self.progress.advance, lambda now: None  # type: ignore[method-assign]
        effects = receive(self, frames, now)
        self.progress.advance = advance  # type: ignore[method-assign]
        return effects

    def busy(self: Engine, now: float) -> Any:
        self.progress.touch(np.flatnonzero(self.table.state == RUNNING))
        return tick(self, now)

    patch.setattr(Engine, "receive", idle)
    patch.setattr(Engine, "tick", busy)


def sum_differently(patch: pytest.MonkeyPatch) -> None:
    """Own messages count a little less than they should."""
    own = ItemStates.own
    patch.setattr(ItemStates, "own", lambda self, rows: own(self, rows) * (1 - 1e-15))


MUTATIONS = {
    decide_twice: "decided item .* twice",
    forget_tickets: "never answered|completed a request without",
    count_early_messages: "claims views",
    forget_a_sender: "knows of views",
    lose_rows: "has lost rows",
    wait_for_ever: "still has|never comes to rest",
    decide_late: "took .* s for item",
    ask_nobody: "is not the simulator's|missed .* though nothing failed",
    wait_for_timers: "never answered|still has",
    sum_differently: "is not the simulator's",
}


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_every_promise_can_fail(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken on purpose, an engine is found out within a few hundred histories, by the promise that it breaks."""
    mutate(monkeypatch)
    complaints = (complaint(plan(seed)) for seed in range(400))
    assert any(re.search(MUTATIONS[mutate], found) for found in complaints)


def complaint(one: Plan) -> str:
    """What a history breaks, if anything."""
    try:
        run(one)
    except CheckError as problem:
        return str(problem)
    return ""


def test_a_broken_promise_shrinks_to_a_small_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_tickets(monkeypatch)
    quick = settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    small = find(PLANS, lambda one: bool(complaint(one)), settings=quick, random=random.Random(0))
    assert small == Plan(seed=0, network=0, rule=0, rounds=1, items=2)
    assert "never answered" in complaint(small)
