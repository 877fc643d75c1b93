"""Averaging, compiled: many items, many realisations and whole sweeps at once.

A second implementation of what the rules of `collegium.protocol` do, number for number (`collegium.check_rule`
proves it). Arrays lie agents-by-items, so that the innermost loop runs over items and vectorises while every sum is
taken over neighbours in ascending order, in double precision and without fast-math. Flags and counters are doubles
too, for lanes of one width.

Scores of d classes have w = d - 1 coordinates that travel. They are w copies of the network side by side: row
j·K + k of an array is coordinate j of agent k. Only what looks at all coordinates of an agent at once (whether it
speaks, its label, its errors, its statistic) knows that they belong together.

Small networks are cut into blocks of items that stay in the cache, all rounds of a block before the next;
large ones into ranges of agents, round by round. Pieces run on threads without the interpreter's lock, never
inside a compiled parallel region, so forking and calling from several threads are safe. The result does not
depend on the number of threads (`COLLEGIUM_THREADS`).
"""

import math
import os
import tempfile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium import links
from collegium._util.randomness import U64, item_keys, sender_salts
from collegium.kernels import ALWAYS as _ALWAYS
from collegium.kernels import DELTA as _DELTA
from collegium.kernels import LABEL as _LABEL
from collegium.kernels import Numbers
from collegium.kernels.job import Job, Recorded
from collegium.kernels.threads import spread, threads
from collegium.links import Lossy
from collegium.policy import Policy
from collegium.protocol import HoldLast
from collegium.protocol.base import message_width

if not any(os.access(folder, os.W_OK) for folder in (os.path.dirname(__file__), os.path.expanduser("~"))):
    # numba refuses to start where compiled code cannot be kept at all
    os.environ.setdefault("NUMBA_CACHE_DIR", tempfile.mkdtemp(prefix="collegium-"))

import numba

Doubles = NDArray[np.float64]

_BLOCK = 4096  # doubles per array of a block, so that its half dozen arrays stay in the second-level cache
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
        _block(
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
    size = max(_BLOCK // rows // 16 * 16, 16)
    known = np.repeat([_outspoken_rounds(rule, job) for rule in rules], len(seeds))
    if known.max(initial=0) * rows * min(size, n) > _SHARED:
        known[:] = 0

    def piece(lo: int, hi: int) -> None:
        _configurations(
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
    streak = np.zeros((K, n)) if rule.patience else x
    numbers = _numbers(rule)
    (key0, key1), _ = _keys(job, [job.seed], rule.levels > 0, salted=False)
    statistics, costs, spoke = _records(job, rule)
    _turn(x, n, statistics[0], 0)
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
                _emit(
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
                _combine(row + lo, row + hi, sent, fired, following, job.hold, indptr, job.indices, job.weights)
            if rule.patience:
                _settle(lo, hi, x, following, streak)

        spread(listen, K, size, work=job.work)
        x = following
        if not job.final:
            _turn(x, n, statistics[t], 0)
    _turn(x, n, statistics[-1], 0)
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
        sent, following, streak = np.zeros_like(x), np.empty_like(x), np.zeros((K, items))
        fired, spent = np.ones((K, items)), np.zeros(items)
        last = np.zeros((len(job.indices), items) if remembers else (0, 0))
        known = np.zeros(last.shape)
        if not job.final or not job.rounds:
            _turn(x, items, statistics[0], lo)
        for t in rounds:
            spent[:] = 0
            if rule == Numbers():
                sent = x
            else:
                key0, key1 = (word[0][lo:hi] if rule.levels else word[0] for word in keys)
                salt0, salt1 = (word[t - 1] if rule.levels else word[0] for word in salts)
                _emit(
                    0, K, items, t == 1, x, start, sent, fired, streak, numbers,
                    key0, key1, salt0, salt1, audience, spent,
                )  # fmt: skip
            if len(costs):
                costs[t - 1, lo:hi] = spent
            if spoke is not _NOBODY:
                spoke[t - 1, lo:hi] = fired.T > 0
            words = item_words[0][lo:hi], item_words[1][lo:hi], link_words[0][t - 1], link_words[1][t - 1]
            if remembers:
                _combine_remembering(
                    sent, fired, following, job.hold, job.held, indptr, job.indices, job.weights, job.loss, *words,
                    last, known,
                )  # fmt: skip
            else:
                _combine_lossy(sent, following, job.hold, indptr, job.indices, job.weights, job.loss, *words)
            if rule.patience:
                _settle(0, K, x, following, streak)
            x, following = following, np.empty_like(x) if x is start else x
            if not job.final or t == job.rounds:
                _turn(x, items, statistics[0 if job.final else t], lo)

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


def _block_size(n: int, rows: int) -> int:
    return max(16, min(_BLOCK // rows // 16 * 16, -(-n // threads())))


_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")
_inlined = numba.njit(nogil=True, cache=True, error_model="numpy", inline="always")


@_inlined
def _lowbias32(h: Any) -> Any:
    h = np.uint32(h ^ (h >> np.uint32(16)))
    h = np.uint32(h * np.uint32(0x21F0AAAD))
    h = np.uint32(h ^ (h >> np.uint32(15)))
    h = np.uint32(h * np.uint32(0xD35A2D97))
    return np.uint32(h ^ (h >> np.uint32(15)))


@_inlined
def _width(items: int) -> int:
    """Columns for that many items: whole vectors, so that no remainder is done one by one."""
    return (items + 15) // 16 * 16 if items > 1 else 1


@_compiled
def _emit(
    lo: int, hi: int, items: int, first: bool, x: Any, scores: Any, sent: Any, fired: Any, streak: Any, rule: Any,
    key0: Any, key1: Any, salt0: Any, salt1: Any, audience: Any, spoken: Any,
) -> int:  # fmt: skip
    """Agents lo … hi-1 decide whether to speak and what.

    Counts their transmissions for the first `items` columns, and per item too unless `spoken` is empty. Columns
    beyond only fill up a whole number of vectors.
    """
    accumulate, trigger, limit, patience, levels, bound, scale, half_step = rule
    K, width = audience.size, x.shape[1]
    top = levels - 1.0
    always = first or trigger == _ALWAYS
    marked = fired.shape[0] > 1  # else one row, which stays in the first-level cache
    scratch, outgoing, hashes = np.empty(width), np.empty(width), np.empty(width, np.uint32)
    ranks = np.empty((4, 0 if always or x.shape[0] == K else width))
    transmissions = heard = 0
    for k in range(lo, hi):
        speaks, cost = fired[k if marked else 0], audience[k]
        if not always:
            if trigger == _DELTA:
                _moved(x, sent, k, K, limit, speaks)
            else:
                _unsure(x, k, K, limit, patience, streak[k], speaks, ranks)
            heard = 0
            for i in range(width):
                heard += 1 if speaks[i] > 0.0 else 0
            for i in range(items, width):
                heard -= 1 if speaks[i] > 0.0 else 0
            if heard == 0:
                continue
        for row in range(k, x.shape[0], K):
            own, said = x[row], sent[row]
            message = own
            if accumulate:
                for i in range(width):
                    scratch[i] = own[i] + scores[row, i]
                message = scratch
            if levels > 0:
                a, b = salt0[row], salt1[row]
                for i in range(width):  # apart from the doubles below: twice as many lanes
                    hashes[i] = _lowbias32(np.uint32((key0[i] ^ a) + (key1[i] ^ b)))
                for i in range(width):
                    place = (message[i] + bound) * scale
                    below = min(max(np.floor(place), 0.0), top - 1.0)
                    index = below + (1.0 if np.float64(hashes[i]) * 2.0**-32 < place - below else 0.0)
                    scratch[i] = (2.0 * index - top) * half_step
                message = scratch
            if not always:
                # What goes out is written apart from what went out: a conditional store in place would be a masked
                # one, which some processors do lane by lane.
                for i in range(width):
                    new, old = message[i], said[i]
                    outgoing[i] = new if speaks[i] > 0.0 else old
                message = outgoing
            for i in range(width):
                said[i] = message[i]
        if always:
            transmissions += cost * items
            for i in range(spoken.size):
                spoken[i] += cost
        else:
            transmissions += cost * heard
            for i in range(spoken.size):
                spoken[i] += cost * speaks[i]
    return transmissions


@_compiled
def _moved(x: Any, sent: Any, k: int, K: int, limit: float, speaks: Any) -> None:
    """1 where an entry of agent k has moved by more than the limit from what it sent last, else 0."""
    own, said = x[k], sent[k]
    for i in range(own.size):
        speaks[i] = 1.0 if abs(own[i] - said[i]) > limit else 0.0
    if x.shape[0] == K:
        return
    rest = said - own
    for row in range(k + K, x.shape[0], K):
        own, said = x[row], sent[row]
        for i in range(own.size):
            change = own[i] - said[i]
            speaks[i] = 1.0 if abs(change) > limit else speaks[i]
            rest[i] -= change
    for i in range(rest.size):
        speaks[i] = 1.0 if abs(rest[i]) > limit else speaks[i]


@_compiled
def _unsure(x: Any, k: int, K: int, limit: float, patience: float, settled: Any, speaks: Any, ranks: Any) -> None:
    """0 where the label of agent k has stayed for long enough and is clear enough, else 1."""
    if x.shape[0] == K:
        own = x[k]
        for i in range(own.size):
            unsettled = 1.0 if settled[i] < patience else 0.0
            speaks[i] = unsettled if abs(own[i]) >= limit else 1.0
    else:
        _rank(x, k, K, ranks)
        best, second = ranks[0], ranks[1]
        for i in range(best.size):
            unsettled = 1.0 if settled[i] < patience else 0.0
            speaks[i] = unsettled if best[i] - second[i] >= limit else 1.0


@_compiled
def _rank(x: Any, k: int, K: int, ranks: Any) -> None:
    """The largest entry of agent k, the second, which is the largest (the first of equals), and the last entry."""
    best, second, label, last = ranks[0], ranks[1], ranks[2], ranks[3]
    first = x[k]
    for i in range(first.size):
        best[i], second[i], label[i], last[i] = first[i], -np.inf, 0.0, -first[i]
    place = 0
    for row in range(k + K, x.shape[0], K):
        place += 1
        _enter(x[row], float(place), best, second, label)
        entry = x[row]
        for i in range(entry.size):
            last[i] -= entry[i]
    _enter(last, place + 1.0, best, second, label)


@_compiled
def _enter(entry: Any, place: float, best: Any, second: Any, label: Any) -> None:
    for i in range(entry.size):
        value, leader, follower, holder = entry[i], best[i], second[i], label[i]
        larger = value > leader
        best[i] = value if larger else leader
        second[i] = leader if larger else max(follower, value)
        label[i] = place if larger else holder


@_compiled
def _combine(
    lo: int,
    hi: int,
    sent: Any,
    fired: Any,
    following: Any,
    hold: bool,
    indptr: Any,
    indices: Any,
    weights: Any,
) -> None:
    """Agents lo … hi-1 take the weighted sum of what they hear."""
    items = sent.shape[1]
    if hold and items == 1:
        said, heard = sent.reshape(-1), following.reshape(-1)
        for k in range(lo, hi):
            total = 0.0
            for m in range(indptr[k], indptr[k + 1]):
                total += weights[m] * said[indices[m]]
            heard[k] = total
    elif hold:
        for k in range(lo, hi):
            result, j, end = following[k], np.int64(indptr[k]), np.int64(indptr[k + 1])
            # Three at a time, then two: fewer passes over the result, the same order of summation.
            if end - j >= 3:
                u, v, w = weights[j], weights[j + 1], weights[j + 2]
                a, b, c = sent[indices[j]], sent[indices[j + 1]], sent[indices[j + 2]]
                for i in range(items):
                    result[i] = ((0.0 + u * a[i]) + v * b[i]) + w * c[i]
                j += 3
            else:
                for i in range(items):
                    result[i] = 0.0
            while end - j >= 2:
                u, v = weights[j], weights[j + 1]
                a, b = sent[indices[j]], sent[indices[j + 1]]
                for i in range(items):
                    result[i] = (result[i] + u * a[i]) + v * b[i]
                j += 2
            if j < end:
                u, a = weights[j], sent[indices[j]]
                for i in range(items):
                    result[i] += u * a[i]
    else:
        for k in range(lo, hi):
            base = k // fired.shape[0] * fired.shape[0]
            for i in range(items):
                share = 0.0
                for m in range(indptr[k], indptr[k + 1]):
                    l = indices[m]
                    if l == k or fired[l - base, i] > 0.0:
                        share += weights[m]
                total = 0.0
                for m in range(indptr[k], indptr[k + 1]):
                    l = indices[m]
                    if share == 0.0:
                        total += weights[m] * sent[l, i]
                    elif l == k or fired[l - base, i] > 0.0:
                        total += (weights[m] / share) * sent[l, i]
                following[k, i] = total


@_compiled
def _combine_lossy(
    sent: Any, following: Any, hold: bool, indptr: Any, indices: Any, weights: Any,
    loss: Any, key0: Any, key1: Any, salt0: Any, salt1: Any,
) -> None:  # fmt: skip
    """Everybody takes the weighted sum of what got through; weights are scaled up where something did not."""
    items = sent.shape[1]
    share, whole, hashes = np.empty(items), np.empty(items, np.uint32), np.empty(items, np.uint32)
    first = np.int64(indptr[0])
    arrived = np.empty((np.diff(indptr.astype(np.int64)).max(), items))
    for k in range(sent.shape[0]):
        start, end = np.int64(indptr[k]), np.int64(indptr[k + 1])
        share[:], whole[:] = 0.0, np.uint32(1)
        for m in range(start, end):
            if indices[m] == k:
                hashes[:] = np.uint32(0xFFFFFFFF)
            else:
                _hash(hashes, key0, key1, salt0[m - first], salt1[m - first])
            _arrive(hashes, loss, weights[m], arrived[m - start], whole, share)
        result = following[k]
        for i in range(items):
            result[i] = 0.0
            share[i] = 1.0 if hold and whole[i] == 1 else share[i]
        for m in range(start, end):
            _add(result, arrived[m - start], share, sent[indices[m]])


@_compiled
def _combine_remembering(
    sent: Any, fired: Any, following: Any, hold: bool, held: bool, indptr: Any, indices: Any, weights: Any,
    loss: Any, key0: Any, key1: Any, salt0: Any, salt1: Any, last: Any, known: Any,
) -> None:  # fmt: skip
    """The same where what is silent or lost may stand for the last message that came over the link."""
    items = sent.shape[1]
    share, whole, hashes = np.empty(items), np.empty(items), np.empty(items, np.uint32)
    first = np.int64(indptr[0])
    arrived = np.empty((np.diff(indptr.astype(np.int64)).max(), items))
    for k in range(sent.shape[0]):
        start, end = np.int64(indptr[k]), np.int64(indptr[k + 1])
        base = k // fired.shape[0] * fired.shape[0]
        share[:], whole[:] = 0.0, 1.0
        for m in range(start, end):
            here = arrived[m - start]
            if indices[m] == k:
                here[:], known[m], last[m] = 1.0, 1.0, sent[k]
            else:
                _hash(hashes, key0, key1, salt0[m - first], salt1[m - first])
                _remember(hashes, loss, hold, sent[indices[m]], fired[indices[m] - base], last[m], known[m], here)
                if held:
                    here[:] = 1.0
            _weigh(here, weights[m], whole, share)
        result, alone = following[k], False
        for i in range(items):
            result[i] = 0.0
            share[i] = 1.0 if hold and whole[i] > 0.0 else share[i]
            alone = alone or share[i] == 0.0
        for m in range(start, end):
            _add(result, arrived[m - start], share, last[m])
        if alone:  # nobody is there: the last values, or the agent's own where nothing ever came
            for i in range(items):
                if share[i] == 0.0:
                    result[i] = 0.0
                    for m in range(start, end):
                        result[i] += weights[m] * (last[m, i] if known[m, i] > 0.0 else sent[k, i])


# Loops of their own, so that each is compiled into vector instructions.


@_compiled
def _turn(x: Any, items: int, page: Any, lo: int) -> None:
    """Statistics agents-by-items into their page, items-by-agents; the last of several classes from the others."""
    K, d = page.shape[1], page.shape[2]
    flat = page.reshape(page.shape[0], K * d)
    full = x
    if d > 1:  # every agent's entries together, so that what follows is one loop over the rows
        full = np.empty((K * d, x.shape[1]))
        for k in range(K):
            last = full[k * d + d - 1]
            for j in range(d - 1):
                entry, given = full[k * d + j], x[j * K + k]
                for i in range(last.size):
                    entry[i] = given[i]
                    last[i] = last[i] - given[i] if j else -given[i]
    for i in range(items):
        for row in range(K * d):
            flat[lo + i, row] = full[row, i]


@_compiled
def _hash(hashes: Any, key0: Any, key1: Any, salt0: Any, salt1: Any) -> None:
    for i in range(hashes.size):
        hashes[i] = _lowbias32(np.uint32((key0[i] ^ salt0) + (key1[i] ^ salt1)))


@_compiled
def _arrive(hashes: Any, loss: Any, weight: float, here: Any, whole: Any, share: Any) -> None:
    """The weight where the message arrived, whether all did so far, and the sum of weights so far."""
    for i in range(hashes.size):
        hashes[i] = np.uint32(1) if hashes[i] >= loss else np.uint32(0)
    for i in range(hashes.size):
        whole[i] = whole[i] & hashes[i]
    for i in range(hashes.size):
        got = np.float64(np.int32(hashes[i])) * weight
        here[i] = got
        share[i] += got


@_compiled
def _remember(hashes: Any, loss: Any, hold: bool, sent: Any, fired: Any, last: Any, known: Any, here: Any) -> None:
    """Keep what arrived over a link; `here` is 1 where its sender counts in this round, else 0."""
    for i in range(hashes.size):
        hashes[i] = np.uint32(1) if hashes[i] >= loss else np.uint32(0)
    for i in range(hashes.size):
        here[i] = np.float64(np.int32(hashes[i]))
    for i in range(hashes.size):
        fresh = here[i] * fired[i]
        new, old, sure = sent[i], last[i], known[i]
        last[i] = new if fresh > 0.0 else old
        sure = 1.0 if fresh > 0.0 else sure
        known[i] = sure
        here[i] = here[i] * sure if hold else fresh


@_compiled
def _weigh(here: Any, weight: float, whole: Any, share: Any) -> None:
    for i in range(here.size):
        whole[i] *= here[i]
        here[i] *= weight
        share[i] += here[i]


@_compiled
def _add(result: Any, here: Any, share: Any, value: Any) -> None:
    for i in range(result.size):
        result[i] += here[i] / share[i] * value[i]


@_compiled
def _settle(lo: int, hi: int, x: Any, following: Any, streak: Any) -> None:
    """Count unchanged labels."""
    K, width = streak.shape
    if x.shape[0] == K:
        for k in range(lo, hi):
            before, after, count = x[k], following[k], streak[k]
            for i in range(width):
                same = ((before[i] > 0.0) == (after[i] > 0.0)) & ((before[i] < 0.0) == (after[i] < 0.0))
                count[i] = count[i] + 1.0 if same else 0.0
        return
    earlier, later = np.empty((4, width)), np.empty((4, width))
    for k in range(lo, hi):
        _rank(x, k, K, earlier)
        _rank(following, k, K, later)
        before, after, count = earlier[2], later[2], streak[k]
        for i in range(width):
            count[i] = count[i] + 1.0 if before[i] == after[i] else 0.0


@_compiled
def _count_errors(x: Any, labels: Any, items: int, errors: Any) -> None:
    """Add every agent's wrong or undecided items; columns without an item have a label that nothing equals."""
    K, width = errors.size, x.shape[1]
    if x.shape[0] == K:
        for k in range(K):
            wrong, row = items - width, x[k]
            for i in range(width):
                wrong += 1 if row[i] * labels[i] <= 0.0 else 0
            errors[k] += wrong
        return
    ranks = np.empty((4, width))
    for k in range(K):
        _rank(x, k, K, ranks)
        best, second, label, wrong = ranks[0], ranks[1], ranks[2], items - width
        for i in range(width):
            wrong += 0 if (label[i] == labels[i]) & (best[i] > second[i]) else 1
        errors[k] += wrong


@_inlined
def _padded(labels: Any, lo: int, hi: int, several: bool) -> Any:
    """Labels of a block, and of columns without an item one that is neither: sign 0, or place -1."""
    padded = np.full(_width(hi - lo), -1.0 if several else 0.0)
    padded[: hi - lo] = labels[lo:hi]
    return padded


@_compiled
def _block(
    lo: int, hi: int, scores: Any, indptr: Any, indices: Any, weights: Any, audience: Any, rounds: int, hold: bool,
    rule: Any, key0: Any, key1: Any, salt0: Any, salt1: Any,
    keep: bool, statistics: Any, costs: Any, spoke: Any, labels: Any, errors: Any, totals: Any,
    known: int, path: Any, streaks: Any, mistakes: Any,
) -> None:  # fmt: skip
    """All rounds for items lo … hi-1: statistics, costs and who spoke kept (keep), or errors and totals counted.

    The first `known` rounds, in which everybody speaks, are those of `_outspoken`.
    """
    items, rows, K = hi - lo, scores.shape[1], audience.shape[1]
    accumulate, trigger, levels = rule[0], rule[1], rule[4]
    plain = trigger == _ALWAYS and not accumulate and levels == 0 and hold
    width = _width(items)
    start = np.zeros((rows, width))
    for k in range(rows):
        for i in range(items):
            start[k, i] = scores[lo + i, k]
    x = np.zeros((rows, width)) if accumulate else start.copy()
    following = np.empty((rows, width))
    sent = x if plain else np.zeros((rows, width))
    noted = spoke.shape[0] > 0
    fired = np.ones((K if noted or not hold else 1, width))
    streak = np.zeros((K, width))
    per_item = np.zeros(items if costs.shape[0] > 0 else 0)
    block_key0, block_key1 = np.zeros(width, np.uint32), np.zeros(width, np.uint32)
    if levels > 0:
        block_key0[:items], block_key1[:items] = key0[lo:hi], key1[lo:hi]
    truth = np.zeros(0) if keep else _padded(labels, lo, hi, rows > K)
    networks = indptr.shape[0]
    broadcast = audience[0].sum()
    transmissions = 0
    moving = True
    for t in range(rounds + 1):
        if t < known:
            totals[t] += broadcast * items * t
            errors[t] += mistakes[t]
            continue
        if t == known and known > 0:
            transmissions = broadcast * items * known
            x[:], sent[:], streak[:] = path[t], path[t - 1], streaks[t]
        elif t > 0 and moving:
            network = (t - 1) % networks
            broadcast = audience[network].sum()
            if plain:
                sent = x
                transmissions += broadcast * items
                per_item[:] = broadcast
            else:
                per_item[:] = 0.0
                r = t - 1 if levels > 0 else 0
                now = _emit(
                    0, K, items, t == 1, x, start, sent, fired, streak, rule,
                    block_key0, block_key1, salt0[r], salt1[r], audience[network], per_item,
                )  # fmt: skip
                transmissions += now
                # If nobody speaks, everyone goes on hearing what it heard: nothing changes from here on.
                moving = now > 0 or not hold or broadcast == 0 or networks > 1
            for i in range(per_item.size):
                costs[t - 1, lo + i] = np.int64(per_item[i])
            if noted:
                for i in range(items):
                    for k in range(K):
                        spoke[t - 1, lo + i, k] = fired[k, i] > 0.0
            if moving:
                _combine(0, rows, sent, fired, following, hold, indptr[network], indices, weights)
                if trigger == _LABEL:
                    _settle(0, K, x, following, streak)
                x, following = following, x
        if keep:
            if statistics.shape[0] == 1:
                if t < rounds:
                    continue
                page = statistics[0]
            else:
                page = statistics[t]
            _turn(x, items, page, lo)
        else:
            totals[t] += transmissions
            _count_errors(x, truth, items, errors[t])


@_compiled
def _configurations(
    lo: int, hi: int, size: int, scores: Any, indptr: Any, indices: Any, weights: Any, audience: Any, rounds: int,
    hold: bool, rules: Any, key0: Any, key1: Any, salt0: Any, salt1: Any, labels: Any, errors: Any, totals: Any,
    known: Any,
) -> None:  # fmt: skip
    """Configurations lo … hi-1 of a sweep, block by block."""
    shared = known[lo:hi].max()
    nothing, no_costs, nobody = np.empty((0, 0, 0, 0)), np.empty((0, 0), np.int64), np.empty((0, 0, 0), np.bool_)
    n, seeds = scores.shape[0], key0.shape[0]
    for first in range(0, n, size):
        last = min(first + size, n)
        path, streaks, mistakes = _outspoken(
            first, last, scores, indptr[0], indices, weights, shared, labels, audience.shape[1]
        )
        for c in range(lo, hi):
            r = rules[c]
            rule = (r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7])
            _block(
                first, last, scores, indptr, indices, weights, audience, rounds, hold, rule,
                key0[c % seeds], key1[c % seeds], salt0, salt1,
                False, nothing, no_costs, nobody, labels, errors[c], totals[c], known[c], path, streaks, mistakes,
            )  # fmt: skip


@_compiled
def _outspoken(
    lo: int, hi: int, scores: Any, indptr: Any, indices: Any, weights: Any, rounds: int, labels: Any, K: int
) -> Any:  # fmt: skip
    """Rounds of items lo … hi-1 while everybody speaks, shared by a sweep: statistics, unchanged labels and errors."""
    rows, width = scores.shape[1], _width(hi - lo)
    path, streaks = np.zeros((rounds + 1, rows, width)), np.zeros((rounds + 1, K, width))
    for k in range(rows):
        for i in range(hi - lo):
            path[0, k, i] = scores[lo + i, k]
    truth, mistakes = _padded(labels, lo, hi, rows > K), np.zeros((rounds + 1, K), np.int64)
    for t in range(rounds + 1):
        if t > 0:
            _combine(0, rows, path[t - 1], path[t - 1], path[t], True, indptr, indices, weights)
            streaks[t] = streaks[t - 1]
            _settle(0, K, path[t - 1], path[t], streaks[t])
        _count_errors(path[t], truth, hi - lo, mistakes[t])
    return path, streaks, mistakes
