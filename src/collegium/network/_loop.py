"""The loop itself: every agent sends, links and mailbox say what arrives, every agent absorbs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collegium._util.randomness import Draws, item_keys
from collegium.errors import RuleError
from collegium.kernels.job import Job, Recorded
from collegium.links import Perfect
from collegium.network._delivery import Direct, ThroughLinks
from collegium.protocol.base import Floats, Rule
from collegium.protocol.sending import encoded
from collegium.topology.seat import Seat


def reference_run(job: Job, rule: Rule) -> Recorded:
    """Run a rule by the rule itself: what every fast path must equal number for number."""
    n, K, d = job.scores.shape
    width, keys = rule.width(d), item_keys(np.array([job.seed], np.uint64), job.ids)
    delivery: Direct | ThroughLinks = (Direct if type(job.links) is Perfect else ThroughLinks)(job, width)
    statistics = np.empty((1 if job.final else job.rounds + 1, n, K, d))
    costs = np.zeros((job.rounds, n), np.int64)
    spoke = None
    seats = seats_of_round(job, 1)
    states = [rule.init(seat, np.ascontiguousarray(job.scores[:, seat.agent])) for seat in seats]
    _note(statistics[0], rule, states)
    for t in range(1, job.rounds + 1):
        if t > 1:
            seats = seats_of_round(job, t)
        sent = []
        for k, seat in enumerate(seats):
            draws = Draws.of_keys(keys, k, t)
            outbox, states[k] = rule.emit(seat, states[k], draws)
            message = encoded(rule, seat, outbox, draws, width)
            sent.append(message)
            if message.spoke is None:
                costs[t - 1] += len(seat.receivers)
            else:
                costs[t - 1] += len(seat.receivers) * message.spoke
                if not job.final:
                    spoke = np.ones((job.rounds, n, K), np.bool_) if spoke is None else spoke
                    spoke[t - 1, :, k] = message.spoke
        if isinstance(delivery, Direct) and any(message.values.ndim == 3 for message in sent):
            if t > 1:
                raise RuleError(f"{rule} sends one message per receiver in round {t}, but did not in round 1")
            delivery = ThroughLinks(job, width)
        delivery.post(t, seats, sent)
        for k, seat in enumerate(seats):
            states[k] = rule.absorb(seat, states[k], delivery.inbox(t, seat))
        if not job.final:
            _note(statistics[t], rule, states)
    if job.final:
        _note(statistics[0], rule, states)
    return Recorded(statistics, costs, spoke)


def _note(page: Floats, rule: Rule, states: Sequence[Any]) -> None:
    for k, state in enumerate(states):
        statistic = rule.statistic(state)
        if np.shape(statistic) != page[:, k].shape:
            raise RuleError(
                f"{rule}.statistic must have shape {page[:, k].shape} for {len(page)} items, got {np.shape(statistic)}"
            )
        page[:, k] = statistic


def seats_of_round(job: Job, t: int) -> Sequence[Seat]:
    """The seats of a round, one for each agent."""
    seats = job.schedule.at(t)
    K = job.scores.shape[1]
    if len(seats) != K or any(seat.agent != k for k, seat in enumerate(seats)):
        raise RuleError(f"round {t} of {job.schedule!r} must have a seat for each of {K} agents, in order")
    return seats
