"""The loop itself: every agent sends, links and mailbox say what arrives, every agent absorbs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collegium._util.randomness import Draws, item_keys
from collegium.errors import CollegiumError, RuleError
from collegium.kernels.job import Job, Recorded
from collegium.links import Perfect
from collegium.network._delivery import Direct, ThroughLinks
from collegium.policy import Policy
from collegium.protocol.base import Floats, Rule
from collegium.protocol.sending import encoded


def reference_run(job: Job, rule: Rule) -> Recorded:
    """Run a rule by the rule itself: what every fast path must equal number for number."""
    doing: list[Any] = ["init", 0, 0]
    rule = rule.prepared(job.schedule, job.rounds)
    try:
        return _run(job, rule, doing)
    except (AttributeError, IndexError, TypeError, ValueError) as problem:
        if isinstance(problem, CollegiumError):
            raise
        what, agent, t = doing
        raise RuleError(
            f"{rule} failed in {what}, agent {agent}, round {t}: {type(problem).__name__}: {problem}"
        ) from problem


def _run(job: Job, rule: Rule, doing: list[Any]) -> Recorded:
    """`doing` says what the rule is at: its method, the agent and the round."""
    n, K, d = job.scores.shape
    width, keys = rule.width(d), item_keys(np.array([job.seed], np.uint64), job.ids)
    delivery: Direct | ThroughLinks = (Direct if type(job.links) is Perfect else ThroughLinks)(job, width)
    statistics = np.empty((1 if job.final else job.rounds + 1, n, K, d))
    costs = np.zeros((job.rounds, n), np.int64)
    spoke = None
    seats = job.schedule.at(1)
    scores = job.scores if job.liars is None else job.liars.start(job.scores, job.seed)
    states = [rule.init(seat, scores[:, seat.agent].copy()) for seat in seats]
    _note(statistics[0], rule, states, doing)
    for t in range(1, job.rounds + 1):
        if t > 1:
            seats = job.schedule.at(t)
        sent, outboxes = [], []
        draws = [Draws.of_keys(keys, k, t) for k in range(K)]
        for k, seat in enumerate(seats):
            doing[:] = "emit", k, t
            outbox, states[k] = rule.emit(seat, states[k], draws[k])
            outboxes.append(outbox)
        if job.liars is not None:
            outboxes = job.liars.lies(seats, outboxes, job.scores, rule, draws)
        for k, seat in enumerate(seats):
            doing[:] = "emit", k, t
            message = encoded(rule, seat, outboxes[k], draws[k], width)
            sent.append(message)
            if message.spoke is None:
                costs[t - 1] += len(seat.receivers)
            else:
                costs[t - 1] += len(seat.receivers) * message.spoke
                if not job.final:
                    spoke = np.ones((job.rounds, n, K), np.bool_) if spoke is None else spoke
                    spoke[t - 1, :, k] = message.spoke
        if isinstance(delivery, Direct):
            differs = any(message.values.ndim == 3 for message in sent)
            if differs and t > 1:
                raise RuleError(f"{rule} sends one message per receiver in round {t}, but did not in round 1")
            if differs or (type(job.schedule) is not Policy and any(message.spoke is not None for message in sent)):
                delivery = delivery.by_link()
        delivery.post(t, seats, sent)
        for k, seat in enumerate(seats):
            inbox = delivery.inbox(t, seat)
            doing[:] = "absorb", k, t
            states[k] = rule.absorb(seat, states[k], inbox)
        if not job.final:
            _note(statistics[t], rule, states, doing)
    if job.final:
        _note(statistics[0], rule, states, doing)
    return Recorded(statistics, costs, spoke)


def _note(page: Floats, rule: Rule, states: Sequence[Any], doing: list[Any]) -> None:
    for k, state in enumerate(states):
        doing[:2] = "statistic", k
        statistic = np.asarray(rule.statistic(state))
        if statistic.shape != page[:, k].shape or statistic.dtype != np.float64:
            raise RuleError(
                f"{rule}.statistic must be an array of float64 of shape {page[:, k].shape} for {len(page)} items, "
                f"got {statistic.dtype} of shape {statistic.shape}"
            )
        page[:, k] = statistic
    if not np.isfinite(page).all():
        k = int(np.argwhere(~np.isfinite(page))[0][1])
        raise RuleError(f"{rule}.statistic must be finite, agent {k} has {page[:, k][~np.isfinite(page[:, k])][0]}")
