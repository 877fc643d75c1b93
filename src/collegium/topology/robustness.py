"""(r, s)-robustness of a graph: how many liars its agents can bear, exactly for few agents and by bounds for many.

A set S of agents is r-reachable if some of its members hear r others outside it. A graph is r-robust if of any two
disjoint non-empty sets at least one is r-reachable, and (r, s)-robust if, besides, the members of the two that hear r
outside their own set are all of the one, all of the other, or at least s together. [leblanc2013]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXACT = 16
"""Up to so many agents all pairs of sets are looked at."""

Sets = NDArray[np.int64]


def senders_of(heard: Sequence[Any]) -> Sets:
    """Whom each agent hears, itself left out, as bits of one number each, shape (K,)."""
    return np.array([sum(1 << int(l) for l in one if int(l) != k) for k, one in enumerate(heard)], np.int64)


def outside(senders: Sets) -> NDArray[np.int8]:
    """How many agents outside each of the 2^K sets each of its members hears, shape (2^K, K); -1 for the others."""
    K = len(senders)
    sets = np.arange(1 << K, dtype=np.int64)
    found = np.empty((1 << K, K), np.int8)
    for k in range(K):
        found[:, k] = np.where(sets >> k & 1, np.bitwise_count(senders[k] & ~sets).astype(np.int8), np.int8(-1))
    return found


def largest_r(senders: Sets) -> int:
    """The largest r for which the graph is r-robust: the least, over disjoint pairs, of the better one's reach."""
    K = len(senders)
    if K < 2:
        return 0
    reach = outside(senders).max(axis=1).astype(np.int64)
    reach[0] = K
    return int(np.maximum(reach, _least_within(reach, K)[::-1])[1:-1].min())


def largest_s(senders: Sets, r: int) -> int:
    """The largest s for which the graph is (r, s)-robust; 0 if it is not even r-robust."""
    K = len(senders)
    if K < 2:
        return K
    counts = (outside(senders) >= r).sum(axis=1)
    members = np.bitwise_count(np.arange(1 << K, dtype=np.int64)).astype(np.int64)
    counts = np.where(counts == members, 2 * K, counts)  # sets all of whose members hear r others fail no pair
    counts[0] = 2 * K
    return min(int((counts + _least_within(counts, K)[::-1])[1:-1].min()), K)


def _least_within(value: NDArray[np.int64], K: int) -> NDArray[np.int64]:
    """The least value of all subsets of each set: one pass for every agent. Reversed, it is that of the complement."""
    least = value.copy()
    for k in range(K):
        halves = least.reshape(-1, 2, 1 << k)
        np.minimum(halves[:, 1], halves[:, 0], out=halves[:, 1])
    return least
