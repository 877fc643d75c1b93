"""A live agent tunes its gain: conversations are ordinary items with names of their own, their results the averages."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import LiveError
from collegium.live.agent import Agent
from collegium.live.answers import Busy, ItemResult
from collegium.tuning.agent import Outcome, program
from collegium.tuning.learner import Learner

Doubles = NDArray[np.float64]
_AT_ONCE = 500
"""Rows that are in flight at a time."""


def tune(
    agent: Agent, scores: Doubles, learner: Learner, session: str, *, gain: Any = 1.0, per_class: bool = False,
    limit: float = np.inf, widest: float = np.inf, verify: bool = False, passes: int = 1, away: Collection[str] = (),
    timeout: float = 60.0, on_rows: Callable[[int], object] = lambda rows: None,
) -> Outcome:  # fmt: skip
    """Take part in tuning, with this agent's own scores of the labelled items, gain 1; call it at every agent at once.

    scores: (n,) or (n, C). learner: the labels and settings, the same at every agent. session: a name that no earlier
    tuning had. per_class, limit, widest, verify: see `collegium.tuning.agent.program`. passes: how often what was heard
    is averaged again. away: agents that take no part. on_rows: told how many rows each conversation has. If another
    neighbour's message is missing or nobody answers within `timeout` seconds, it is given up with a sentence. A gain is
    to be changed only where `agreed` is True. An agent that misses a message of the very last conversation gives up
    while others have agreed: whoever switches gains must hear of all agents first.
    """
    bound = agent.rule.max_score(agent.rounds)
    bound, limit = (one if one < 1e100 else np.inf for one in (bound, limit))
    run = program(
        agent.number,
        scores,
        learner,
        gain=gain,
        per_class=per_class,
        bound=bound,
        limit=limit,
        widest=widest,
        verify=verify,
    )
    rows, conversation = next(run), 0
    while True:
        heard = rows
        for again in range(passes):
            heard = _average(
                agent,
                np.clip(heard, -bound, bound) if again else heard,
                f"tuning {session} {conversation} {again}",
                away,
                timeout,
            )
        conversation += 1
        on_rows(len(rows))
        try:
            rows = run.send(heard)
        except StopIteration as done:
            outcome: Outcome = done.value
            break
    everybody = agent.status().agents
    if apart := [name for k, name in enumerate(everybody) if name not in away and k not in outcome.heard]:
        raise LiveError(f"{agent.name} heard nothing of {', '.join(apart)}: nothing is tuned")
    return outcome


def _average(agent: Agent, rows: Doubles, name: str, away: Collection[str], timeout: float) -> Doubles:
    """What the network says of rows (m, d)."""
    values = rows[:, 0] if rows.shape[1] == 1 else rows
    heard = []
    for start in range(0, len(rows), _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        try:
            results = _submitted(agent, [f"{name} {start + i}" for i in range(len(part))], part, timeout)
        except TimeoutError:
            raise LiveError(
                f"{name} was not decided within {timeout:g} s: an agent is not there or has no view"
            ) from None
        for result in results:
            missed = [who for who in result.missed if who not in away]
            if missed or result.view != "given":
                raise LiveError(f"{name} lacks messages of {', '.join(missed) or agent.name}: nothing is tuned")
            if back := [who for who in result.heard if who in away]:
                raise LiveError(f"{', '.join(back)} came back in the middle: nothing is tuned, try again")
        heard += [result.statistic for result in results]
    return np.array(heard, np.float64).reshape(rows.shape)


def _submitted(agent: Agent, names: list[str], values: Doubles, timeout: float) -> list[ItemResult]:
    """The results of items; an agent that is busy with others is asked again."""
    end = time.monotonic() + timeout
    while True:
        try:
            return agent.submit_unkept(names, values).result(max(end - time.monotonic(), 0.0))
        except Busy as busy:
            if time.monotonic() + busy.retry_after > end:
                raise
            time.sleep(busy.retry_after)
