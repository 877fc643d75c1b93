"""Validation of scores: numbers of shape (items, agents) or (items, agents, classes), all finite."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.errors import ScoreError

Doubles = NDArray[np.float64]


def check_scores(scores: ArrayLike, K: int) -> Doubles:
    """Scores of two classes as float64 of shape (n, K), all finite."""
    values = check_scores_of_classes(scores, K)
    if values.shape[2] > 1:
        raise ScoreError(
            f"this is for two classes, one number per item and agent, (n, {K}); these scores are of {values.shape[2]}"
        )
    return values[:, :, 0]


def check_scores_of_classes(scores: ArrayLike, K: int) -> Doubles:
    """Scores as float64 of shape (n, K, d), all finite; d is 1 for two classes, else their number."""
    try:
        given = np.asarray(scores)
        if isinstance(scores, np.ma.MaskedArray) or given.dtype.kind not in "fiubO":
            raise TypeError
        values = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ScoreError("scores must be real numbers, none masked, in an array of shape (items, agents)") from None
    if values.size == 0 and values.ndim < 2:
        values = values.reshape(0, K)
    if values.ndim not in (2, 3):
        raise ScoreError(
            f"scores must have shape (items, agents) = (n, {K}), or (n, {K}, classes); got an array of shape "
            f"{values.shape}"
        )
    n, columns = values.shape[:2]
    if columns != K:
        turned = f" There are {n} rows: pass scores.T?" if n == K and values.ndim == 2 else ""
        raise ScoreError(
            f"scores have {columns} columns, but the network has {K} agents: one column per agent.{turned}"
        )
    flat = values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        certain = np.isfinite(flat @ flat)  # the quickest way to see that all are finite; large numbers need a look
    if not certain and not np.isfinite(values).all():
        bad = np.asarray(~np.isfinite(values).reshape(n, K, -1).all(axis=2))
        kind = "NaN" if np.isnan(values).any() else "infinite values"
        k = int(np.flatnonzero(bad.any(axis=0))[0])
        rows = np.flatnonzero(bad[:, k])
        more = int(np.count_nonzero(bad.any(axis=0))) - 1
        raise ScoreError(
            f"scores contain {kind}: agent {k}, {len(rows)} of {n} items (first: item {rows[0]})"
            f"{f', and {more} more agents' if more else ''}. Drop the items or fix the model of agent {k}."
        )
    return values[:, :, None] if values.ndim == 2 else _of_classes(values)


def _of_classes(values: Doubles) -> Doubles:
    """Scores (n, K, d) of several classes: they must sum to zero, since one number less travels."""
    d = values.shape[2]
    if d < 3:
        raise ScoreError(
            f"scores of shape (items, agents, classes) are for three classes or more, got {d}: two classes are one "
            "number, positive for the second class, in an array of shape (items, agents)"
        )
    if _sums_to_zero(values):
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        sums, size = np.abs(values.sum(axis=2)), np.abs(values / d).sum(axis=2)
    near = sums <= 1e-6 * np.maximum(size, 1.0)
    if not near.all():
        i, k = np.argwhere(~near)[0]
        raise ScoreError(
            f"scores of several classes must sum to zero over the classes: item {i}, agent {k} sums to "
            f"{sums[i, k]:.6g}. Take log-probabilities less their mean, scores - scores.mean(2, keepdims=True)"
        )
    return centred(values)


def centred(values: Doubles) -> Doubles:
    """Scores (…, d) of several classes less their mean, or as they are where the sum is zero but for rounding.

    What rounding left over is shared out, so that no entry has more of it than another; doing it twice changes nothing.
    """
    if _sums_to_zero(values):
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        sums, size = np.abs(values.sum(axis=-1)), np.abs(values).max(axis=-1, initial=0.0)
        off = ~(sums <= 1e-12 * size)
        if not off.any():
            return values
        return np.where(off[..., None], values - values.mean(axis=-1, keepdims=True), values)


def _sums_to_zero(values: Doubles) -> bool:
    """Whether all of (…, d) certainly sum to zero but for rounding, told by products: sums over a short axis are slow.

    A mean size is at most the largest, and two orders of summation differ by d² roundings of the largest at most.
    """
    if not values.size:
        return True
    d = values.shape[-1]
    rows = np.ascontiguousarray(values).reshape(-1, d)
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(rows) @ np.full(d, (1e-12 - 2 * d * d * np.finfo(np.float64).eps) / d)
        return bool(np.isfinite(size).all() and (np.abs(rows @ np.ones(d)) <= size).all())
