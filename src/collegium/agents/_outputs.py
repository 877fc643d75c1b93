"""The one place where whatever a model answers becomes scores: finite float64 numbers, one per item or per class."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number, whole_number
from collegium.agents.base import Doubles
from collegium.errors import ModelError

CLIP = 1e-6
"""Probabilities are kept this far from 0 and 1: no log-odds above 13.8."""
KINDS = ("score", "probabilities")
"""What the outputs of a function or module may be."""
_MANY = 50  # so many scores are hardly ever all of one sign
_SUM_TOLERANCE = 1e-3  # probabilities in half precision sum to one within this; logits do so only by accident


def to_scores(outputs: Any, n: int, what: str, positive: int = 1) -> Doubles:
    """The outputs of `what` for n items as finite scores, (n,) or (n, C), never sharing memory with them.

    Shapes (n,) and (n, 1) are scores already. Of two columns, two logits, the score is that of column `positive`
    minus that of the other. More columns are logits of C classes: what is left of them less their mean are the
    log-probabilities less theirs. Lists, NumPy arrays and torch tensors of any floating or whole type are taken.

    >>> to_scores([[0.5, 2.0], [1.0, -1.0]], 2, "the example")
    array([ 1.5, -2. ])
    >>> to_scores([[5.0, 2.0, -1.0]], 1, "the example")
    array([[ 3.,  0., -3.]])
    """
    whole_number(positive, "positive, the column of +1,", ModelError, at_most=1)
    values = numbers(outputs, what)
    if values.shape in ((n,), (n, 1)):
        scores = values.reshape(n)
    elif values.shape == (n, 2):
        with np.errstate(over="ignore", invalid="ignore"):  # infinities are reported below, with their place
            scores = values[:, positive] - values[:, 1 - positive]
    elif values.ndim == 2 and len(values) == n and values.shape[1] > 2:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = values - values.mean(axis=1, keepdims=True)
    else:
        raise ModelError(
            f"{what} must answer {n} items with shape ({n},), ({n}, 1) or, for logits of C classes, ({n}, C); "
            f"got shape {values.shape}"
        )
    finite = np.isfinite(scores)
    bad = np.flatnonzero(~(finite if scores.ndim == 1 else finite.all(axis=-1)))
    if len(bad):
        kind = "NaN" if np.isnan(scores).any() else "infinite values"
        raise ModelError(
            f"the scores of {what} contain {kind}: {len(bad)} of {n} items (first: item {bad[0]}). "
            "Look for gaps in the view, or fix the model."
        )
    return scores


def warn_of_probabilities(outputs: Any, what: str, remedy: str) -> None:
    """A word where outputs that are taken for scores look like probabilities: all of many between 0 and 1."""
    values = numbers(outputs, what)
    if not values.ndim or len(values) < 8 or not (values.min() >= 0 and values.max() <= 1):
        return
    if values.ndim == 2 and values.shape[1] > 1:
        found = bool((np.abs(values.sum(axis=1) - 1) <= _SUM_TOLERANCE).all())
    else:
        is_rare = len(values) >= _MANY and values.min() < values.max()  # of a rare class hardly any is above a half
        found = bool(is_rare or values.min() < 0.5 < values.max())
    if found:
        taken = (
            "logits" if values.ndim == 2 and values.shape[1] > 1 else "scores, which are negative for the other class"
        )
        warnings.warn(
            f"all outputs of {what} lie between 0 and 1, but they are taken for {taken}: {remedy}",
            stacklevel=4,
        )


def log_odds(p: ArrayLike, clip: float = CLIP, q: ArrayLike | None = None) -> Doubles:
    r"""$\log p - \log q$ for the probability p of +1 and q of -1, each clipped to [clip, 1 - clip] first.

    Without q it is 1 - p. Where a model gives both, pass both: near 1 a float32 says little about its complement.
    NaN stays NaN, for `to_scores` to report.

    >>> log_odds([0.5, 0.75, 1.0]).round(3)
    array([ 0.   ,  1.099, 13.816])
    """
    real_number(clip, "clip", ModelError, above=0, at_most=0.49)
    p = np.asarray(p, np.float64)
    q = 1 - p if q is None else np.asarray(q, np.float64)
    for one in (p, q):
        if ((one < -_SUM_TOLERANCE) | (one > 1 + _SUM_TOLERANCE)).any():
            strange = one[(one < -_SUM_TOLERANCE) | (one > 1 + _SUM_TOLERANCE)][0]
            raise ModelError(f"probabilities must lie between 0 and 1; got {strange:.6g}. Are they logits?")
    if (np.abs(p + q - 1) > _SUM_TOLERANCE).any():
        raise ModelError("the probabilities of the two classes must sum to 1 for each item; are they logits?")
    odds: Doubles = np.log(np.clip(p, clip, 1 - clip)) - np.log(np.clip(q, clip, 1 - clip))
    return odds


def log_probabilities(p: Doubles, clip: float = CLIP) -> Doubles:
    """Logarithms of the probabilities of C classes, shape (n, C), none below log(clip)."""
    real_number(clip, "clip", ModelError, above=0, at_most=0.49)
    outside = (p < -_SUM_TOLERANCE) | (p > 1 + _SUM_TOLERANCE)
    if outside.any():
        raise ModelError(f"probabilities must lie between 0 and 1; got {p[outside][0]:.6g}. Are they logits?")
    if (np.abs(p.sum(axis=1) - 1) > _SUM_TOLERANCE).any():
        raise ModelError("the probabilities of the classes must sum to 1 for each item; are they logits?")
    return np.asarray(np.log(np.clip(p, clip, 1.0)))


def probabilities_to_scores(outputs: Any, n: int, what: str, clip: float = CLIP, positive: int = 1) -> Doubles:
    """Probabilities of shape (n,) or (n, 1), of +1, or (n, 2), `positive` being the column of +1, as log-odds.

    Of more columns, C classes, the logarithms less their mean, shape (n, C).
    """
    values = numbers(outputs, what)
    try:
        if values.ndim == 2 and len(values) == n and values.shape[1] > 2:
            values = log_probabilities(values, clip)
        elif values.shape == (n, 2):
            whole_number(positive, "positive, the column of +1,", ModelError, at_most=1)
            values = log_odds(values[:, positive], clip, values[:, 1 - positive])
        elif values.shape in ((n,), (n, 1)):
            values = log_odds(values.reshape(n), clip)
    except ModelError as refusal:
        raise ModelError(f"{what}: {refusal}") from None
    return to_scores(values, n, what)  # which refuses any other shape


def numbers(outputs: Any, what: str) -> NDArray[np.float64]:
    """Outputs as a fresh float64 array of their own shape; answers yes or no are no scores."""
    if hasattr(outputs, "detach"):  # a torch tensor, known without importing torch
        outputs = outputs.detach().cpu()
        if not outputs.is_complex():
            outputs = outputs if "bool" in str(outputs.dtype) else outputs.double()
    try:
        given = np.asarray(outputs)
        if isinstance(outputs, np.ma.MaskedArray) or given.dtype.kind not in "fiubO":
            raise TypeError
        values = np.array(given, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must answer with real numbers, one per item or class, all rows alike") from None
    if given.dtype.kind == "b":
        raise ModelError(f"{what} answers yes or no, but a score is needed: positive for +1, larger when surer")
    return values
