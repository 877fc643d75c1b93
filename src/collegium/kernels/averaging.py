"""Averaging, compiled: many items, many realisations and whole sweeps at once.

A second implementation of what the rules of `collegium.protocol` do, number for number (`collegium.check_rule`
proves it); the loops are in `arithmetic`.

Small networks are cut into blocks of items that stay in the cache, all rounds of a block before the next;
large ones into ranges of agents, round by round. Pieces run on threads without the interpreter's lock, never
inside a compiled parallel region, so forking and calling from several threads are safe. The result does not
depend on the number of threads (`COLLEGIUM_THREADS`).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium import links
from collegium._util.randomness import U64, item_keys, sender_salts
from collegium.kernels import ALWAYS as _ALWAYS
from collegium.kernels import DELTA as _DELTA
from collegium.kernels import Numbers
from collegium.kernels.arithmetic import (
    block,
    combine,
    combine_lossy,
    combine_remembering,
    configurations,
    emit,
    settle,
    turn,
)
from collegium.kernels.job import Job, Recorded
from collegium.kernels.threads import spread, threads
from collegium.links import Lossy
from collegium.policy import Policy
from collegium.protocol import HoldLast
from collegium.protocol.base import message_width

Doubles = NDArray[np.float64]

_BLOCK = 4096  # doubles per array of a block, so that its half dozen arrays stay in the second-level cache
_WIDE = 192  # items of a block from which the loops over them are worth starting, where it stays below 6 · _BLOCK
_LARGE = 500_000  # products in a round from which it is worth sharing out the agents of one block
_SHARED = 4_000_000  # doubles a sweep may keep of the rounds its rules share
_NOBODY = np.zeros((0, 0, 0), np.bool_)


class Arrays(NamedTuple):
    """A job as plain arrays. Round t is over network (t - 1) % P, where P is 1 unless the schedule changes."""

    scores: Doubles  # (n, w·K)
    indptr: U64  # (P, w·K + 1) unsigned, like the indices: then no index can be meant from the end, none is checked
    indices: NDArray[np.uint32]  # of all networks, one after the other, each w times
    weights: Doubles
    audience: NDArray[np.int64]  # (P, K) transmissions one broadcast costs
    rounds: int
    seed: int
    ids: U64  # (n,)
    hold: bool  # HoldLast, else Renormalise
    final: bool  # keep only the last statistics
    loss: np.uint32 = np.uint32(0)  # a message is lost if its hash is below
    loss_seed: int = 0
    held: bool = False  # a lost message stands for the last one; else its sender is left out

    @property
    def size(self) -> int:
        """K, the number of agents."""
        return int(self.audience.shape[1])

    @property
    def parts(self) -> int:
        """w, how many numbers of a score travel."""
        return int(self.scores.shape[1]) // self.size

    @property
    def work(self) -> int:
        """Products in a round."""
        return len(self.scores) * len(self.indices) // len(self.indptr)


class Tally(NamedTuple):
    """What a sweep gives, for every configuration."""

    errors: NDArray[np.int64]  # (configurations, rounds + 1, K) wrong or undecided items
    transmissions: NDArray[np.int64]  # (configurations, rounds + 1) so far, over all items


def arrays(job: Job) -> Arrays:
    """A job as plain arrays."""
    schedule, (n, K, d) = job.schedule, job.scores.shape
    if type(schedule) is Policy:
        graph = schedule.graph
        indptr, indices = graph.indptr[None].view(np.uint64), graph.indices.view(np.uint32)
        weights, audience = schedule.weights, graph.audience_sizes[None]
    else:
        rounds = [schedule.at(t) for t in range(1, max(job.rounds, 1) + 1)]
        sizes = np.array([[len(seat.senders) for seat in seats] for seats in rounds], np.uint64)
        ends = np.cumsum(sizes.ravel()).reshape(sizes.shape)
        indptr = np.concatenate([ends[:, :1] - sizes[:, :1], ends], axis=1)
        indices = np.concatenate([seat.senders for seats in rounds for seat in seats]).astype(np.uint32)
        weights = np.concatenate([seat.weights for seats in rounds for seat in seats])
        audience = np.array([[len(seat.receivers) for seat in seats] for seats in rounds], np.int64)
    w = message_width(d)
    if w > 1:
        starts, ends = indptr[:, 0].tolist(), indptr[:, -1].tolist()
        indptr = np.concatenate(
            [w * indptr[:, :1] + (indptr[:, :-1] - indptr[:, :1]) + j * (indptr[:, -1:] - indptr[:, :1])
             for j in np.arange(w, dtype=np.uint64)] + [w * indptr[:, -1:]], axis=1,
        )  # fmt: skip
        indices = np.concatenate(
            [indices[a:b] + np.uint32(j * K) for a, b in zip(starts, ends, strict=True) for j in range(w)]
        )
        weights = np.concatenate([weights[a:b] for a, b in zip(starts, ends, strict=True) for _ in range(w)])
    found = Arrays(
        np.moveaxis(job.scores[:, :, :w], 2, 1).reshape(n, w * K), indptr, indices, weights, audience,
        job.rounds, job.seed, job.ids,
        isinstance(job.mailbox, HoldLast), job.final,
    )  # fmt: skip
    if not isinstance(job.links, Lossy):
        return found
    loss = np.uint32(math.ceil(job.links.loss * 2.0**32))
    return found._replace(loss=loss, loss_seed=job.links.seed, held=job.mailbox == HoldLast("hold"))


def run(job: Arrays, rule: Numbers) -> Recorded:
    """All rounds of one rule for all items."""
    n, rows = job.scores.shape
    few_blocks = n <= _block_size(n, rows) * (threads() - 1)
    if job.loss:
        return _run_lossy(job, rule)
    return _run_large(job, rule) if few_blocks and job.work >= _LARGE else _run_blocks(job, rule)


def _records(job: Arrays, rule: Numbers) -> tuple[Doubles, NDArray[np.int64], NDArray[np.bool_]]:
    """Room for statistics, transmissions of each round, and who spoke, where not everybody does."""
    n, K, w = len(job.scores), job.size, job.parts
    always = rule.trigger == _ALWAYS
    spoke = _NOBODY if job.final or always else np.zeros((job.rounds, n, K), np.bool_)
    costs = np.zeros((0, 0) if always else (job.rounds, n), np.int64)
    return np.empty((1 if job.final else job.rounds + 1, n, K, w if w == 1 else w + 1)), costs, spoke


def _recorded(
    job: Arrays, rule: Numbers, statistics: Doubles, costs: NDArray[np.int64], spoke: NDArray[np.bool_]
) -> Recorded:
    if rule.trigger == _ALWAYS:  # every item costs the same, and needs no place of its own
        networks = job.audience.sum(axis=1)
        each = networks[np.arange(job.rounds) % len(networks)]
        costs = np.broadcast_to(each[:, None], (job.rounds, len(job.scores)))
    return Recorded(statistics, costs, None if spoke is _NOBODY else spoke)


def _run_blocks(job: Arrays, rule: Numbers) -> Recorded:
    n, rows = job.scores.shape
    statistics, costs, spoke = _records(job, rule)
    no_labels, no_errors, no_totals = np.zeros(0), np.zeros((0, 0), np.int64), np.zeros(0, np.int64)
    no_path = np.zeros((0, 0, 0))
    keys, salts = _keys(job, [job.seed], rule.levels > 0)
    numbers = _numbers(rule)

    def piece(lo: int, hi: int) -> None:
        block(
            lo, hi, job.scores, job.indptr, job.indices, job.weights, job.audience, job.rounds, job.hold, numbers,
            keys[0][0], keys[1][0], salts[0], salts[1],
            True, statistics, costs, spoke, no_labels, no_errors, no_totals, 0, no_path, no_path, no_errors,
        )  # fmt: skip

    spread(piece, n, _block_size(n, rows), work=job.work * job.rounds)
    return _recorded(job, rule, statistics, costs, spoke)


def sweep(job: Arrays, rules: list[Numbers], seeds: list[int], labels: Doubles) -> Tally:
    """Errors and transmissions of every rule with every seed, counted on the fly; configurations rule by rule.

    labels: signs, or places of several classes.
    """
    n, rows = job.scores.shape
    keys, salts = _keys(job, seeds, any(rule.levels for rule in rules))
    numbers = np.array([_numbers(rule) for rule in rules for _ in seeds]).reshape(-1, 8)
    count = len(rules) * len(seeds)
    errors = np.zeros((count, job.rounds + 1, job.size), np.int64)
    transmissions = np.zeros((count, job.rounds + 1), np.int64)
    size = _width(rows)
    known = np.repeat([_outspoken_rounds(rule, job) for rule in rules], len(seeds))
    if known.max(initial=0) * rows * min(size, n) > _SHARED:
        known[:] = 0

    def piece(lo: int, hi: int) -> None:
        configurations(
            lo, hi, size, job.scores, job.indptr, job.indices, job.weights, job.audience, job.rounds, job.hold, numbers,
            keys[0], keys[1], salts[0], salts[1], labels, errors, transmissions, known,
        )  # fmt: skip

    spread(piece, count, max(1, count // (4 * threads())), work=count * job.work * job.rounds)
    return Tally(errors, transmissions)


def _outspoken_rounds(rule: Numbers, job: Arrays) -> int:
    """For how many rounds nobody can be silent yet: round 1, or until a label can have been stable for long enough."""
    if rule.accumulate or rule.levels or not job.hold or len(job.indptr) > 1:
        return 0
    return min(rule.patience or int(rule.trigger == _DELTA), job.rounds)


def _run_large(job: Arrays, rule: Numbers) -> Recorded:
    """Round by round, the agents shared out over the threads."""
    n, K = len(job.scores), job.size
    start = np.ascontiguousarray(job.scores.T)
    x = np.zeros_like(start) if rule.accumulate else start
    spare = [np.empty_like(x), np.empty_like(x)]  # two, because the scores themselves are never written over
    plain = rule == Numbers() and job.hold
    sent, fired = (x, x) if plain else (np.zeros_like(x), np.ones((K, n)))
    streak = np.zeros((K if len(x) == K else 3 * K, n)) if rule.patience else x
    numbers = _numbers(rule)
    (key0, key1), _ = _keys(job, [job.seed], rule.levels > 0, salted=False)
    statistics, costs, spoke = _records(job, rule)
    turn(x, n, statistics[0], 0)
    size = -(-K // (threads() * 4))
    spoken = np.zeros((-(-K // size), n))
    for t in range(1, job.rounds + 1):
        following = spare[t % 2]
        network = (t - 1) % len(job.indptr)
        indptr, audience = job.indptr[network], job.audience[network]
        if plain:
            sent = x
        else:
            salt0, salt1 = _salts(job, np.array(t)) if rule.levels else (key0[0], key1[0])
            spoken[:] = 0

            def speak(lo: int, hi: int) -> None:
                emit(
                    lo, hi, n, t == 1, x, start, sent, fired, streak, numbers,
                    key0[0], key1[0], salt0, salt1, audience, spoken[lo // size],
                )  # fmt: skip

            spread(speak, K, size, work=job.work)
            if len(costs):
                costs[t - 1] = spoken.sum(axis=0)
            if spoke is not _NOBODY:
                spoke[t - 1] = fired.T > 0

        def listen(lo: int, hi: int) -> None:
            for row in range(0, len(x), K):
                combine(row + lo, row + hi, sent, fired, following, job.hold, indptr, job.indices, job.weights)
            if rule.patience:
                settle(lo, hi, K, t == 1, x, following, streak)

        spread(listen, K, size, work=job.work)
        x = following
        if not job.final:
            turn(x, n, statistics[t], 0)
    turn(x, n, statistics[-1], 0)
    return _recorded(job, rule, statistics, costs, spoke)


def _run_lossy(job: Arrays, rule: Numbers) -> Recorded:
    """Blocks of items, round by round, over links that lose messages."""
    (n, rows), K = job.scores.shape, job.size
    statistics, costs, spoke = _records(job, rule)
    numbers, (indptr, audience) = _numbers(rule), (job.indptr[0], job.audience[0])
    keys, salts = _keys(job, [job.seed], rule.levels > 0)
    receivers = np.repeat(np.arange(rows), np.diff(indptr.astype(np.int64)))
    rounds = range(1, job.rounds + 1)
    item_words = links.keys_of(job.loss_seed, job.ids)
    # A message is lost with all its coordinates.
    link_words = links.salts_of(job.indices.astype(np.int64) % K, receivers % K, np.arange(1, job.rounds + 1)[:, None])
    # Where everybody sends and counts itself, and the lost are left out, nothing of earlier rounds is ever needed.
    counted = np.count_nonzero(job.indices == receivers) == rows
    remembers = rule.trigger != _ALWAYS or job.held or not counted

    def piece(lo: int, hi: int) -> None:
        items = hi - lo
        start = np.ascontiguousarray(job.scores[lo:hi].T)
        x = np.zeros_like(start) if rule.accumulate else start
        sent, following, streak = np.zeros_like(x), np.empty_like(x), np.zeros((K if rows == K else 3 * K, items))
        fired, spent = np.ones((K, items)), np.zeros(items)
        last = np.zeros((len(job.indices), items) if remembers else (0, 0))
        known = np.zeros(last.shape)
        if not job.final or not job.rounds:
            turn(x, items, statistics[0], lo)
        for t in rounds:
            spent[:] = 0
            if rule == Numbers():
                sent = x
            else:
                key0, key1 = (word[0][lo:hi] if rule.levels else word[0] for word in keys)
                salt0, salt1 = (word[t - 1] if rule.levels else word[0] for word in salts)
                emit(
                    0, K, items, t == 1, x, start, sent, fired, streak, numbers,
                    key0, key1, salt0, salt1, audience, spent,
                )  # fmt: skip
            if len(costs):
                costs[t - 1, lo:hi] = spent
            if spoke is not _NOBODY:
                spoke[t - 1, lo:hi] = fired.T > 0
            words = item_words[0][lo:hi], item_words[1][lo:hi], link_words[0][t - 1], link_words[1][t - 1]
            if remembers:
                combine_remembering(
                    sent, fired, following, job.hold, job.held, indptr, job.indices, job.weights, job.loss, *words,
                    last, known,
                )  # fmt: skip
            else:
                combine_lossy(sent, following, job.hold, indptr, job.indices, job.weights, job.loss, *words)
            if rule.patience:
                settle(0, K, K, t == 1, x, following, streak)
            x, following = following, np.empty_like(x) if x is start else x
            if not job.final or t == job.rounds:
                turn(x, items, statistics[0 if job.final else t], lo)

    spread(piece, n, (1 if remembers else 4) * _block_size(n, rows), work=2 * job.work * job.rounds)
    return _recorded(job, rule, statistics, costs, spoke)


def _numbers(rule: Numbers) -> tuple[float, ...]:
    scale = (rule.levels - 1) / (2 * rule.bound) if rule.levels else 0.0
    half_step = rule.bound / (rule.levels - 1) if rule.levels else 0.0
    return (
        float(rule.accumulate), float(rule.trigger), rule.limit, float(rule.patience),
        float(rule.levels), rule.bound, scale, half_step,
    )  # fmt: skip


def _keys(job: Arrays, seeds: list[int], drawn: bool, salted: bool = True) -> tuple[Any, Any]:
    """Hash words per (seed, item) and per (round, row); none where nothing is drawn."""
    if not drawn:
        return (np.zeros((len(seeds), 1), np.uint32),) * 2, (np.zeros((1, 1), np.uint32),) * 2
    keys = item_keys(np.array(seeds, np.uint64)[:, None], job.ids)
    return keys, _salts(job, np.arange(1, job.rounds + 1)[:, None]) if salted else None


def _salts(job: Arrays, rounds: NDArray[np.int64]) -> tuple[Any, Any]:
    row = np.arange(job.scores.shape[1])
    return sender_salts(row % job.size, rounds, row // job.size)


def _width(rows: int) -> int:
    """Items of a block: whole vectors."""
    return max(16, max(_BLOCK // rows, min(_WIDE, 6 * _BLOCK // rows)) // 16 * 16)


def _block_size(n: int, rows: int) -> int:
    return max(16, min(_width(rows), -(-n // threads())))
