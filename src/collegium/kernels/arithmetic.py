"""The loops of averaging, compiled: what one block of items, or one range of agents, does in a round.

Arrays lie agents-by-items, so that the innermost loop runs over items and vectorises while every sum is taken over
neighbours in ascending order, in double precision and without fast-math. Flags and counters are doubles too, for lanes
of one width.

Scores of d classes have w = d - 1 coordinates that travel. They are w copies of the network side by side: row
j·K + k of an array is coordinate j of agent k. Only what looks at all coordinates of an agent at once (whether it
speaks, its label, its errors, its statistic) knows that they belong together.

All of it is in one file, because numba looks no further than a function's own file to see whether what it has kept is
still true.
"""

import os
import tempfile
from typing import Any

import numpy as np

from collegium.kernels import ALWAYS as _ALWAYS
from collegium.kernels import DELTA as _DELTA
from collegium.kernels import LABEL as _LABEL

if not any(os.access(folder, os.W_OK) for folder in (os.path.dirname(__file__), os.path.expanduser("~"))):
    # numba refuses to start where compiled code cannot be kept at all
    os.environ.setdefault("NUMBA_CACHE_DIR", tempfile.mkdtemp(prefix="collegium-"))

import numba

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
def emit(
    lo: int, hi: int, items: int, first: bool, x: Any, scores: Any, sent: Any, fired: Any, streak: Any, rule: Any,
    key0: Any, key1: Any, salt0: Any, salt1: Any, audience: Any, spoken: Any,
) -> int:  # fmt: skip
    """Agents lo … hi-1 decide whether to send and what.

    Counts their transmissions for the first `items` columns, and per item too unless `spoken` is empty. Columns
    beyond only fill up a whole number of vectors.
    """
    accumulate, trigger, limit, patience, levels, bound, scale, half_step = rule
    K, width = audience.size, x.shape[1]
    top = levels - 1.0
    always = first or trigger == _ALWAYS
    marked = fired.shape[0] > 1  # else one row, which stays in the first-level cache
    scratch, outgoing, hashes = np.empty(width), np.empty(width), np.empty(width, np.uint32)
    transmissions = heard = 0
    for k in range(lo, hi):
        speaks, cost = fired[k if marked else 0], audience[k]
        if not always:
            if trigger == _DELTA:
                heard = _moved(x, sent, k, K, limit, speaks)
            else:
                heard = _unsure(x, k, K, limit, patience, streak, speaks)
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
def _moved(x: Any, sent: Any, k: int, K: int, limit: float, speaks: Any) -> int:
    """1 where an entry of agent k has moved by more than the limit from what it sent last, else 0; how many have."""
    own, said, count = x[k], sent[k], 0
    for i in range(own.size):
        speaking = 1.0 if abs(own[i] - said[i]) > limit else 0.0
        speaks[i] = speaking
        count += 1 if speaking > 0.0 else 0
    if x.shape[0] == K:
        return count
    rest, count = said - own, 0
    for row in range(k + K, x.shape[0], K):
        own, said = x[row], sent[row]
        for i in range(own.size):
            change = own[i] - said[i]
            speaks[i] = 1.0 if abs(change) > limit else speaks[i]
            rest[i] -= change
    for i in range(rest.size):
        speaking = 1.0 if abs(rest[i]) > limit else speaks[i]
        speaks[i] = speaking
        count += 1 if speaking > 0.0 else 0
    return count


@_compiled
def _unsure(x: Any, k: int, K: int, limit: float, patience: float, streak: Any, speaks: Any) -> int:
    """0 where the label of agent k has stayed for long enough and is clear enough, else 1; how many are 1."""
    count, settled, several = 0, streak[k], x.shape[0] > K
    clear = streak[K + k] if several else x[k]
    for i in range(clear.size):
        unsettled = 1.0 if settled[i] < patience else 0.0
        speaking = unsettled if abs(clear[i]) >= limit else 1.0
        speaks[i] = speaking
        count += 1 if speaking > 0.0 else 0
    return count


@_compiled
def _rank(x: Any, k: int, K: int, ranks: Any) -> float:
    """All entries of agent k but the last ranked: the largest, the second, which is the largest (the first of equals).

    The fourth of `ranks` is the last entry, whose place is returned: who looks at a rank lets it in on the way.
    """
    best, second, label, last = ranks[0], ranks[1], ranks[2], ranks[3]
    _start_rank(x[k], x[k + K], best, second, label, last)
    place = 1
    for row in range(k + 2 * K, x.shape[0], K):
        place += 1
        _enter(x[row], float(place), best, second, label, last)
    return place + 1.0


@_compiled
def _start_rank(first: Any, entry: Any, best: Any, second: Any, label: Any, last: Any) -> None:
    for i in range(first.size):
        value, leader = entry[i], first[i]
        larger = value > leader
        best[i] = value if larger else leader
        second[i] = leader if larger else value
        label[i] = 1.0 if larger else 0.0
        last[i] = -leader - value


@_compiled
def _enter(entry: Any, place: float, best: Any, second: Any, label: Any, last: Any) -> None:
    for i in range(entry.size):
        value, leader, follower, holder = entry[i], best[i], second[i], label[i]
        larger = value > leader
        best[i] = value if larger else leader
        second[i] = leader if larger else max(follower, value)
        label[i] = place if larger else holder
        last[i] -= value


@_compiled
def combine(
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
def combine_lossy(
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
def combine_remembering(
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
def blend(
    lo: int, hi: int, alpha: float, beta: float, gamma: float, now: Any, before: Any, heard: Any,
    indptr: Any, indices: Any, weights: Any,
) -> None:  # fmt: skip
    """Agents lo … hi-1 put the weighted sum of what they hear, what they sent and what they sent before together.

    It takes the place of what they sent before, which nobody else needs.
    """
    if now.shape[1] == 1:
        sent, result = now.reshape(-1), before.reshape(-1)
        for k in range(lo, hi):
            total = 0.0
            for m in range(indptr[k], indptr[k + 1]):
                total += weights[m] * sent[indices[m]]
            result[k] = alpha * total + beta * sent[k] + gamma * result[k]
        return
    combine(lo, hi, now, now, heard, True, indptr, indices, weights)
    for k in range(lo, hi):
        total, own, result = heard[k], now[k], before[k]
        for i in range(own.size):
            result[i] = alpha * total[i] + beta * own[i] + gamma * result[i]


@_compiled
def take(
    lo: int, hi: int, z: Any, sent: Any, taken: Any, indptr: Any, indices: Any,
    loss: Any, key0: Any, key1: Any, salt0: Any, salt1: Any,
) -> None:  # fmt: skip
    """Agents lo … hi-1 add what arrives to what they hold, z (numbers, agents, items).

    Where `taken` (links, numbers, items) has entries, messages are totals, of which the difference to the last is new.
    """
    hashes = np.full(z.shape[2], 0xFFFFFFFF, np.uint32)
    for k in range(lo, hi):
        for m in range(indptr[k], indptr[k + 1]):
            l = indices[m]
            if l == k:
                continue
            if loss > 0:
                _hash(hashes, key0, key1, salt0[m], salt1[m])
            for j in range(z.shape[0]):
                if taken.shape[0] > 0:
                    _take_total(hashes, loss, z[j, k], sent[j, l], taken[m, j])
                else:
                    _take_share(hashes, loss, z[j, k], sent[j, l])


@_compiled
def _take_total(hashes: Any, loss: Any, held: Any, total: Any, taken: Any) -> None:
    for i in range(held.size):
        new, old = total[i], taken[i]
        came = hashes[i] >= loss
        held[i] += new - old if came else 0.0
        taken[i] = new if came else old


@_compiled
def _take_share(hashes: Any, loss: Any, held: Any, share: Any) -> None:
    for i in range(held.size):
        new = share[i]
        held[i] += new if hashes[i] >= loss else 0.0


@_compiled
def turn(x: Any, items: int, page: Any, lo: int) -> None:
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
def settle(lo: int, hi: int, K: int, first: bool, x: Any, following: Any, streak: Any) -> None:
    """Count unchanged labels.

    Of several classes, streak has 3K rows: the counts, the lead of every agent's label over the second, the labels.
    They are kept for the round that follows, because ranking entries is most of the work.
    """
    width = x.shape[1]
    if x.shape[0] == K:
        for k in range(lo, hi):
            before, after, count = x[k], following[k], streak[k]
            for i in range(width):
                same = ((before[i] > 0.0) == (after[i] > 0.0)) & ((before[i] < 0.0) == (after[i] < 0.0))
                count[i] = count[i] + 1.0 if same else 0.0
        return
    ranks = np.empty((4, width))
    best, second, label, last = ranks[0], ranks[1], ranks[2], ranks[3]
    for k in range(lo, hi):
        count, lead, known = streak[k], streak[K + k], streak[2 * K + k]
        if first:
            place = _rank(x, k, K, ranks)
            for i in range(width):
                holder = label[i]
                known[i] = place if last[i] > best[i] else holder
        place = _rank(following, k, K, ranks)
        for i in range(width):
            value, leader, follower, holder, streaks = last[i], best[i], second[i], label[i], count[i] + 1.0
            larger = value > leader
            now = place if larger else holder
            count[i] = streaks if known[i] == now else 0.0
            lead[i] = (value if larger else leader) - (leader if larger else max(follower, value))
            known[i] = now


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
        place = _rank(x, k, K, ranks)
        best, second, label, last, wrong = ranks[0], ranks[1], ranks[2], ranks[3], items - width
        for i in range(width):
            value, leader, holder = last[i], best[i], label[i]
            now = place if value > leader else holder
            clear = (leader > second[i]) & (value != leader) | (value > leader)
            wrong += 0 if (now == labels[i]) & clear else 1
        errors[k] += wrong


@_inlined
def _padded(labels: Any, lo: int, hi: int, several: bool) -> Any:
    """Labels of a block, and of columns without an item one that is neither: sign 0, or place -1."""
    padded = np.full(_width(hi - lo), -1.0 if several else 0.0)
    padded[: hi - lo] = labels[lo:hi]
    return padded


@_compiled
def block(
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
    streak = np.zeros((K if rows == K else 3 * K, width))
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
                now = emit(
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
                combine(0, rows, sent, fired, following, hold, indptr[network], indices, weights)
                if trigger == _LABEL:
                    settle(0, K, K, t == 1, x, following, streak)
                x, following = following, x
        if keep:
            if statistics.shape[0] == 1:
                if t < rounds:
                    continue
                page = statistics[0]
            else:
                page = statistics[t]
            turn(x, items, page, lo)
        else:
            totals[t] += transmissions
            _count_errors(x, truth, items, errors[t])


@_compiled
def configurations(
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
            block(
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
    path, streaks = np.zeros((rounds + 1, rows, width)), np.zeros((rounds + 1, K if rows == K else 3 * K, width))
    for k in range(rows):
        for i in range(hi - lo):
            path[0, k, i] = scores[lo + i, k]
    truth, mistakes = _padded(labels, lo, hi, rows > K), np.zeros((rounds + 1, K), np.int64)
    for t in range(rounds + 1):
        if t > 0:
            combine(0, rows, path[t - 1], path[t - 1], path[t], True, indptr, indices, weights)
            streaks[t] = streaks[t - 1]
            settle(0, K, K, t == 1, path[t - 1], path[t], streaks[t])
        _count_errors(path[t], truth, hi - lo, mistakes[t])
    return path, streaks, mistakes
