"""Arithmetic of several classes: entries that sum to zero, and how far the true class is ahead of each rival."""

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def centred(x: Doubles) -> Doubles:
    """The same entries less their mean over the classes, the last axis.

    >>> centred(np.array([3.0, 0.0, 0.0]))
    array([ 2., -1., -1.])
    """
    return np.asarray(x - x.mean(axis=-1, keepdims=True))


def rival_margins(statistics: Doubles, places: NDArray[np.intp]) -> Doubles:
    """The entry of the true class less that of each rival: shape (n, …, C-1) from statistics (n, …, C).

    places: the true classes, 0 … C-1, shape (n,). The rivals of class y are y+1, y+2, …, counted round; the decision is
    right where all margins are positive.

    >>> rival_margins(np.array([[2.0, 1.0, -3.0], [2.0, 1.0, -3.0]]), np.array([0, 2]))
    array([[ 1.,  5.],
           [-5., -4.]])
    """
    C = statistics.shape[-1]
    order = (places[:, None] + np.arange(C)) % C
    order = order.reshape(len(places), *[1] * (statistics.ndim - 2), C)
    x = np.take_along_axis(statistics, np.broadcast_to(order, statistics.shape), axis=-1)
    return np.asarray(x[..., :1] - x[..., 1:])


def named(x: Doubles) -> Doubles:
    """1 for the largest of the entries (…, C), 0 for the others; nothing but 0 where two are largest.

    >>> named(np.array([[2.0, 1.0, -3.0], [1.0, 1.0, -2.0]]))
    array([[1., 0., 0.],
           [0., 0., 0.]])
    """
    largest = x == x.max(axis=-1, keepdims=True)
    return np.where(largest.sum(axis=-1, keepdims=True) == 1, largest, False).astype(np.float64)


def widest_difference(statistics: Doubles) -> float:
    """The largest difference between two entries of a statistic (…, C); of one number (…, 1), its largest size."""
    if statistics.shape[-1] == 1:
        return float(np.abs(statistics).max())
    return float((statistics.max(axis=-1) - statistics.min(axis=-1)).max())
