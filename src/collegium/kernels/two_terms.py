"""Chebyshev and eigenvalue steps, compiled: averaging with a memory of one round; and exact schedules, by whole arrays.

What the rules of `collegium.protocol` do, number for number, at full precision; the first two over lossy links too.
"""

import numpy as np
from numpy.typing import NDArray

from collegium import links
from collegium.errors import RuleError
from collegium.kernels.arithmetic import blend, combine_lossy, turn
from collegium.kernels.averaging import Arrays, arrays
from collegium.kernels.job import Job, Recorded
from collegium.kernels.threads import spread, threads
from collegium.policy import Policy
from collegium.protocol.base import message_width
from collegium.protocol.polynomial import Step, TwoTerms
from collegium.schedule.exact import Exact

Doubles = NDArray[np.float64]


def run(job: Job, rule: TwoTerms, policy: Policy, rounds: int) -> Recorded:
    """All rounds of a rule over a policy, of which the first `rounds` are more than waiting."""
    plain = arrays(job._replace(schedule=policy))
    n = len(job.scores)
    now = plain.scores.T.copy()
    before, room = np.zeros_like(now), np.empty_like(now) if n > 1 or plain.loss else now
    statistics = np.empty((1 if job.final else job.rounds + 1, *job.scores.shape))
    turn(now, n, statistics[0], 0)
    for t in range(1, min(job.rounds, rounds) + 1):
        (_lossy_round if plain.loss else _round)(plain, t, rule.step(t), now, before, room)
        now, before = before, now
        if not job.final:
            turn(now, n, statistics[t], 0)
    if not np.isfinite(now).all():
        k = int(np.argwhere(~np.isfinite(now))[0][0]) % policy.size
        raise RuleError(f"{rule}.statistic must be finite, agent {k} has {now[~np.isfinite(now)][0]}")
    return _recorded(job, statistics, now, policy.links, rounds)


def _round(job: Arrays, t: int, step: Step, now: Doubles, before: Doubles, room: Doubles) -> None:
    """One round, the agents shared out over the threads; what comes of it stands in `before`."""
    (alpha, beta, gamma), K = step, job.size

    def listen(lo: int, hi: int) -> None:
        for row in range(0, len(now), K):
            blend(
                row + lo, row + hi, alpha, beta, gamma, now, before, room, job.indptr[0], job.indices, job.weights
            )  # fmt: skip

    spread(listen, K, -(-K // (threads() * 4)), work=job.work)


def _lossy_round(job: Arrays, t: int, step: Step, now: Doubles, before: Doubles, room: Doubles) -> None:
    """The same over links that lose messages, with all their coordinates."""
    alpha, beta, gamma = step
    receivers = np.repeat(np.arange(len(now)), np.diff(job.indptr[0].astype(np.int64)))
    salts = links.salts_of(job.indices.astype(np.int64) % job.size, receivers % job.size, np.array([t]))
    words = *links.keys_of(job.loss_seed, job.ids), *salts
    combine_lossy(now, room, True, job.indptr[0], job.indices, job.weights, job.loss, *words)
    before[:] = alpha * room + beta * now + gamma * before


def run_exact(job: Job, schedule: Exact) -> Recorded:
    """All rounds of `protocol.Ceca` over an exact schedule: everybody hears the agent so many places before it."""
    n, K, d = job.scores.shape
    w = message_width(d)
    a = np.ascontiguousarray(job.scores[:, :, :w].transpose(2, 1, 0))  # coordinates, agents, items
    h = np.zeros_like(a)
    statistics = np.empty((1 if job.final else job.rounds + 1, n, K, d))
    turn(a.reshape(w * K, n), n, statistics[0], 0)
    for t in range(1, min(job.rounds, schedule.rounds) + 1):
        m, digit = schedule.step(t)
        unequal = m / (2 * m + 1)
        r = np.roll(a if digit else h, m + digit, axis=1)
        if digit:
            a, h = 0.5 * a + 0.5 * r, unequal * h + (1 - unequal) * r
        else:
            a, h = (1 - unequal) * a + unequal * r, 0.5 * h + 0.5 * r
        if not job.final:
            turn(a.reshape(w * K, n), n, statistics[t], 0)
    return _recorded(job, statistics, a.reshape(w * K, n), K if K > 1 else 0, schedule.rounds)


def _recorded(job: Job, statistics: Doubles, last: Doubles, links: int, rounds: int) -> Recorded:
    """The record, where nothing happens any more after some rounds."""
    n = len(job.scores)
    for t in range(min(rounds, job.rounds) + 1, len(statistics)):
        statistics[t] = statistics[t - 1]
    if job.final:
        turn(last, n, statistics[0], 0)
    costs = np.where(np.arange(1, job.rounds + 1) <= rounds, links, 0)
    return Recorded(statistics, np.broadcast_to(costs[:, None], (job.rounds, n)), None)
