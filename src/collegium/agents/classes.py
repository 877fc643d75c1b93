"""Which classes an agent knows, and what its scores say of those it does not: nothing.

A model answers in the order of its own classes. A team, a score record and a network speak of all classes in one order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.labels import to_places, to_signs
from collegium._util.views import is_gap
from collegium.agents.base import Doubles
from collegium.errors import LabelError, ModelError

Places = NDArray[np.intp]


def known_classes(model: Any) -> list[Any] | None:
    """The classes that a model, or the estimator inside it, says its scores are of; None if it does not say."""
    for holder in (model, getattr(model, "estimator_", None), getattr(model, "estimator", None)):
        for name in ("classes_", "classes"):
            known = getattr(holder, name, None)
            if known is not None and np.ndim(known) == 1:
                return list(np.asarray(known).tolist())
    return None


def places_of(known: Sequence[Any] | None, classes: Sequence[Any] | NDArray[Any]) -> Places:
    """Where a model's classes are among those of the team.

    A model that does not say knows all of them. -1 and 1 may stand for any two labels, and 0 … C-1 for any C.
    """
    everything, C = list(np.asarray(classes).tolist()), len(classes)
    if known is None:
        return np.arange(C)
    if any(one not in everything for one in known) or len(set(known)) < len(known):
        if list(known) == ([-1, 1] if C == 2 else list(range(C))):
            return np.arange(C)
        raise ModelError(
            f"its classes are {list(known)}, but the team's are {everything}: an agent may know some of them, and no "
            "other"
        )
    return np.array([everything.index(one) for one in known], np.intp)


def agreed_classes(agents: Sequence[tuple[str, Any]], classes: Sequence[Any] | None = None) -> NDArray[Any]:
    """The labels that fitted models decide between: those given, or those the models know.

    agents: (name, model). Models that know their classes must agree with each other; with `classes` of more than two,
    each may know some of them.
    """
    if classes is not None and (
        np.ndim(classes) != 1 or len(classes) < 2 or len(set(np.asarray(classes).tolist())) < len(classes)
    ):
        raise ModelError(f"classes must be different labels, two or more: of two those of -1 and +1; got {classes!r}")
    agreed = None if classes is None else np.asarray(classes)
    who = "classes= says"
    for name, model in agents:
        known = known_classes(model)
        if known is None or known == [-1, 1]:  # signs, which may stand for any two labels
            continue
        if agreed is None:
            agreed, who = np.asarray(known), f"agent {name!r} knows"
        elif classes is not None and len(agreed) > 2:
            try:
                places_of(known, agreed)
            except ModelError as mistake:
                raise ModelError(f"agent {name!r}: {mistake}") from None
        elif known != agreed.tolist():
            advice = "give classes= with all of them if each agent knows only some"
            if len(agreed) == len(known) == 2:
                advice = f"the second is +1, so their scores would mean different things. Fit them alike, or {advice}"
            raise ModelError(f"agent {name!r} knows the classes {known}, while {who} {agreed.tolist()}: {advice}.")
    return np.array([-1, 1]) if agreed is None else agreed


def spread(scores: Doubles, places: Places, C: int) -> Doubles:
    """A model's scores, (n,) of two classes or (n, c) of its own c, as scores of all C: (n,) if C is 2, else (n, C).

    The evidence for a class that the model does not know is 0; that for the others still sums to zero.

    >>> spread(np.array([3.0]), np.array([0, 2]), 4)
    array([[-1.5,  0. ,  1.5,  0. ]])
    """
    n, c = len(scores), scores.shape[1] if scores.ndim == 2 else 2
    if n and c != max(len(places), 2):
        says = "one number" if c == 2 else f"{c} numbers"
        raise ModelError(f"it gives {says} per item, for {c} classes; it should be {_form(len(places))}")
    if C == 2:
        return scores.reshape(n) * (float(places[1] - places[0]) if len(places) == 2 else 0.0)
    spread_out = np.zeros((n, C))
    if n and len(places) > 1:
        spread_out[:, places] = np.column_stack([-scores / 2, scores / 2]) if scores.ndim == 1 else scores
    return spread_out


def targets(y: ArrayLike, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels as a model learns from them, shape (n,), and its classes: -1 and 1 if there are two, else as they are."""
    labels = np.asarray(y)
    classes = _distinct(labels) if labels.ndim == 1 else labels
    if labels.ndim != 1 or len(labels) != n or len(classes) <= 2:
        return to_signs(y, n).astype(np.int64), np.array([-1, 1])  # which says what is wrong with them
    return labels, classes


def inside(y: ArrayLike, n: int, classes: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Labels of a team's classes as they are called inside: +1 for the second of two, else places 0 … C-1."""
    if len(classes) == 2:
        return to_signs(y, n, classes=(classes[1], classes[0]))
    return to_places(y, n, len(classes), classes=list(classes))


def labels_inside(y: ArrayLike, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Whatever a user calls the classes as +1 and -1, or as places of more than two; and the classes, ascending."""
    from sklearn.utils import column_or_1d
    from sklearn.utils.multiclass import check_classification_targets

    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        raise LabelError(
            f"y must be one label per item, shape (n,); got shape {y.shape}. Of columns with a 1 for the class, pass "
            "y.argmax(axis=1)"
        )
    y = column_or_1d(y, warn=True) if y.ndim == 2 else y
    if len(y) != n:
        to_signs(y, n)  # which says so
    if not n:
        raise LabelError("there are no items: a team is fitted on labelled ones")
    gaps = [i for i, label in enumerate(y.tolist()) if is_gap(label)]
    if gaps:
        raise LabelError(f"{len(gaps)} of {n} items have no label (first: item {gaps[0]}): leave them out")
    classes = _distinct(y)
    try:
        if len(classes) > 2:  # two numbers are two classes, whatever the numbers
            check_classification_targets(y)
    except ValueError as refusal:
        raise LabelError(f"labels must be of one kind, a few different ones: {refusal}") from None
    if len(classes) < 2:
        found = ", ".join(map(repr, classes.tolist()))
        raise LabelError(f"a team decides between two classes or more; y holds {len(classes)} class: {found}")
    return inside(y, n, classes), classes


def _distinct(labels: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.unique(labels)
    except TypeError:
        raise LabelError("labels mix values that cannot be compared: use one type for all") from None


def _form(c: int) -> str:
    return "one, of two classes" if c <= 2 else f"{c}, of its {c} classes"
