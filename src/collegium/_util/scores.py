"""Validation of scores: numbers of shape (items, agents), all finite."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.errors import ScoreError

Doubles = NDArray[np.float64]


def check_scores(scores: ArrayLike, K: int) -> Doubles:
    """Scores as float64 of shape (n, K), all finite."""
    try:
        given = np.asarray(scores)
        if isinstance(scores, np.ma.MaskedArray) or given.dtype.kind not in "fiubO":
            raise TypeError
        values = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ScoreError("scores must be real numbers, none masked, in an array of shape (items, agents)") from None
    if values.size == 0 and values.ndim < 2:
        values = values.reshape(0, K)
    if values.ndim != 2:
        raise ScoreError(f"scores must have shape (items, agents) = (n, {K}), got an array of shape {values.shape}")
    n, columns = values.shape
    if columns != K:
        turned = f" There are {n} rows: pass scores.T?" if n == K else ""
        raise ScoreError(
            f"scores have {columns} columns, but the network has {K} agents: one column per agent.{turned}"
        )
    if not np.isfinite(values).all():
        bad = ~np.isfinite(values)
        kind = "NaN" if np.isnan(values).any() else "infinite values"
        k = int(np.flatnonzero(bad.any(axis=0))[0])
        rows = np.flatnonzero(bad[:, k])
        more = int(np.count_nonzero(bad.any(axis=0))) - 1
        raise ScoreError(
            f"scores contain {kind}: agent {k}, {len(rows)} of {n} items (first: item {rows[0]})"
            f"{f', and {more} more agents' if more else ''}. Drop the items or fix the model of agent {k}."
        )
    return values
