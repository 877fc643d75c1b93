"""Robust fusion of all scores at once, as flooding gives them, and evidence against agents over many items."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number
from collegium.errors import ScoreError

Floats = NDArray[np.float64]


def contradictions(scores: ArrayLike) -> Floats:
    """How often each agent's decision is not that of the others' median, shape (K,), for scores (n, K) or (n, K, C).

    Nobody needs labels for it. An honest agent contradicts others as often as it and they are wrong, less than half of
    the time; one that always lies, more. Scores that are missing are NaN. Of two classes, a score of zero, or a median
    of zero, decides nothing and contradicts nobody. An agent that never decided has NaN.
    """
    values = _by_class(scores)
    if values.shape[1] < 2:
        raise ScoreError("contradictions are those of an agent with others: at least two agents")
    found = np.empty(values.shape[1])
    for k in range(values.shape[1]):
        others = np.full((len(values), values.shape[2]), np.nan)
        rest = np.delete(values, k, axis=1)
        some: Any = np.isfinite(rest).any(axis=1).all(axis=-1)
        others[some] = np.nanmedian(rest[some], axis=1)
        both = np.isfinite(values[:, k]).all(axis=1) & np.isfinite(others).all(axis=1)
        if values.shape[2] == 1:
            both &= (values[:, k, 0] != 0) & (others[:, 0] != 0)
        found[k] = np.mean(_decision(values[both, k]) != _decision(others[both])) if both.any() else np.nan
    return found


def _decision(values: Floats) -> NDArray[Any]:
    return np.sign(values[:, 0]) if values.shape[1] == 1 else values.argmax(axis=1)


def suspects(scores: ArrayLike, z: float = 3.0) -> NDArray[np.int64]:
    """Agents that contradict the others in more than half of the items by z standard errors: evidence, no proof."""
    values, z = _by_class(scores), real_number(z, "z", ScoreError, at_least=0)
    limit = 0.5 + z * math.sqrt(0.25 / max(len(values), 1))
    return np.flatnonzero(contradictions(values) > limit)


def fuse(scores: ArrayLike, clip: float, without: ArrayLike = ()) -> Floats:
    """The mean of all scores cut to ±clip, shape (n,) or (n, C), without some agents: the same at all who have all.

    scores: (n, K), or (n, K, C) of several classes, whose largest entry is cut and the others with it; NaN where there
        is none. A liar moves an entry of the mean by at most 2 · clip / K.
    """
    values, clip = _by_class(scores).copy(), real_number(clip, "clip", ScoreError, above=0)
    left_out = np.asarray(without)
    if left_out.size and not (left_out.dtype.kind in "iu" and np.isin(left_out, np.arange(values.shape[1])).all()):
        raise ScoreError(f"agents that are left out are numbers from 0 to {values.shape[1] - 1}, got {without!r:.60}")
    values[:, left_out.astype(np.int64)] = np.nan
    there = np.asarray(np.isfinite(values).all(axis=2))
    largest = np.where(there, np.abs(values).max(axis=2), 0.0)
    factor = np.where(largest > clip, clip / np.where(largest > clip, largest, 1.0), 1.0)
    total = np.where(there[:, :, None], values * factor[:, :, None], 0.0).sum(axis=1)
    found = total / np.maximum(there.sum(axis=1), 1)[:, None]
    return np.asarray(found[:, 0] if np.ndim(scores) == 2 else found, np.float64)


def _by_class(scores: ArrayLike) -> Floats:
    values = np.asarray(scores, np.float64)
    if values.ndim not in (2, 3):
        raise ScoreError(f"scores have shape (items, agents) or (items, agents, classes), got {values.shape}")
    return values[:, :, None] if values.ndim == 2 else values
