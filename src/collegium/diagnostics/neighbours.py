"""Counting neighbours in two spaces at once: all pairs of points, compiled, in threads."""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]


@njit(cache=True, parallel=True)
def counts(a: Doubles, b: Doubles, k: int) -> tuple[Counts, Counts]:
    """For every point, how many others are nearer in a alone, and in b alone, than its k-th neighbour is in both.

    Distances are largest coordinate differences. One pass per point keeps its distances to all others in the cache:
    first both spaces for the k-th smallest, then a count in each.
    """
    n = len(a)
    near_a = np.empty(n, np.int64)
    near_b = np.empty(n, np.int64)
    for i in prange(n):
        in_a = np.zeros(n)
        in_b = np.zeros(n)
        smallest = np.full(k, np.inf)
        for j in range(n):
            largest = 0.0
            for d in range(a.shape[1]):
                largest = max(largest, abs(a[i, d] - a[j, d]))
            in_a[j] = largest
            largest = 0.0
            for d in range(b.shape[1]):
                largest = max(largest, abs(b[i, d] - b[j, d]))
            in_b[j] = largest
            both = max(in_a[j], in_b[j])
            if j != i and both < smallest[k - 1]:
                place = k - 1
                while place > 0 and smallest[place - 1] > both:
                    smallest[place] = smallest[place - 1]
                    place -= 1
                smallest[place] = both
        radius = smallest[k - 1]
        count_a = 0
        count_b = 0
        for j in range(n):
            if j != i:
                count_a += in_a[j] < radius
                count_b += in_b[j] < radius
        near_a[i] = count_a
        near_b[i] = count_b
    return near_a, near_b
