"""Validation of labels: whatever a user calls the classes becomes +1 and -1, or 0 … C-1, inside."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.errors import LabelError


def to_signs(y: ArrayLike, n: int, classes: Sequence[Any] | None = None) -> NDArray[np.int8]:
    """Labels of n items as +1 / -1.

    With `classes=(first, second)` the first is +1, and y may hold only one of them. Without it, -1/+1 stay as
    they are and otherwise the larger of the two values found is +1 (so 0/1 and False/True mean what they say).

    >>> to_signs([0, 1, 1], 3)
    array([-1,  1,  1], dtype=int8)
    >>> to_signs(["cat", "dog"], 2, classes=("cat", "dog"))
    array([ 1, -1], dtype=int8)
    """
    labels = _one_per_item(y, n)
    if n == 0:
        return np.empty(0, np.int8)
    kinds = {isinstance(label, str) for label in y} if isinstance(y, (list, tuple)) else set()
    if len(kinds) > 1:
        raise LabelError("labels mix text and other values: use one kind for all")
    try:
        missing = np.flatnonzero(np.asarray(labels != labels, bool))  # NaN and its kin are unlike themselves
    except TypeError:
        raise LabelError("labels contain missing values (NA)") from None
    if len(missing):
        raise LabelError(f"labels contain NaN: {len(missing)} of {n} (first: item {missing[0]})")
    if classes is None:
        found = _distinct(labels)
        if len(found) != 2:
            named = ", ".join(repr(value) for value in found[:5])
            few = "Pass classes=(first, second) if only one of them occurs here."
            many = "A score that is one number is for two classes; of more, every class has its own."
            raise LabelError(
                f"labels must be of two classes, got {len(found)}: {named}{', …' if len(found) > 5 else ''}. "
                f"{few if len(found) < 2 else many}"
            )
        positive, negative = found[1], found[0]
    else:
        if not isinstance(classes, (Sequence, np.ndarray)) or len(classes) != 2 or classes[0] == classes[1]:
            raise LabelError(f"classes must name two different classes, got {classes!r}")
        positive, negative = classes
    is_positive, is_negative = labels == positive, labels == negative
    unknown = np.flatnonzero(~(is_positive | is_negative))
    if len(unknown):
        raise LabelError(
            f"label {_plain(labels[unknown[0]])!r} of item {unknown[0]} is neither {_plain(positive)!r} nor "
            f"{_plain(negative)!r}"
        )
    return np.where(is_positive, np.int8(1), np.int8(-1))


def to_places(y: ArrayLike, n: int, C: int, classes: Sequence[Any] | None = None) -> NDArray[np.intp]:
    """Labels of n items as places 0 … C-1 among the classes; without `classes` they are places already.

    >>> to_places(["b", "a", "c"], 3, 3, classes=("a", "b", "c"))
    array([1, 0, 2])
    """
    labels = _one_per_item(y, n)
    remedy = "" if classes is not None else ". Of classes with names, give classes= in the order of the scores' entries"
    if classes is None:
        classes = range(C)
    if len(classes) != C:
        raise LabelError(f"the scores are of {C} classes, but {len(classes)} are named")
    place = {_plain(one): c for c, one in enumerate(classes)}
    for i, label in enumerate(labels.tolist()):
        if label not in place:
            raise LabelError(f"label {label!r} of item {i} is none of {', '.join(map(repr, place))}{remedy}")
    return np.array([place[label] for label in labels.tolist()], np.intp)


def to_entries(y: ArrayLike, n: int, C: int, classes: Sequence[Any] | None = None) -> NDArray[np.intp]:
    """Labels of n items as places 0 … C-1; of two classes +1 has place 0 and -1 has place 1.

    >>> to_entries([1, -1], 2, 2)
    array([0, 1])
    """
    return to_places(y, n, C, classes) if C > 2 else np.where(to_signs(y, n, classes) > 0, 0, 1)


def _one_per_item(y: ArrayLike, n: int) -> NDArray[Any]:
    try:
        labels = np.asarray(y)
    except ValueError:
        raise LabelError("labels must be a plain list, one per item") from None
    if labels.ndim != 1 or len(labels) != n:
        raise LabelError(f"labels must be one per item: expected {n}, got an array of shape {labels.shape}")
    return labels


def _distinct(labels: NDArray[Any]) -> list[Any]:
    try:
        return [_plain(value) for value in np.unique(labels)]
    except TypeError:
        raise LabelError("labels mix values that cannot be compared: use one type for all") from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
