"""Validation of views: a list of K arrays, or one table and a selector per agent; what is missing is noticed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import DataError

Views = Any
"""A list of K arrays aligned by item (None for a view that is missing), or one table with columns."""


def gather(X: Views, K: int, columns: Sequence[Any] | None = None) -> tuple[list[Any], NDArray[np.bool_]]:
    """K arrays or data frames aligned by item, and which of them are missing for which item, shape (n, K).

    A view is missing for all items where it is None, and for an item where it is None or all its numbers are NaN.
    """
    given = _selected(X, K, columns) if columns is not None else _listed(X, K)
    lengths = {len(view) for view in given if view is not None}
    if not lengths:
        raise DataError("all views are missing: at least one agent must see something")
    if len(lengths) > 1:
        sizes = ", ".join("missing" if view is None else str(len(view)) for view in given)
        raise DataError(f"views must align by item, but they have different numbers of items: {sizes}")
    n = lengths.pop()
    missing = np.zeros((n, K), bool)
    views = []
    for k, view in enumerate(given):
        if view is None:
            missing[:, k] = True
            views.append(np.empty((n, 0)))
        else:
            array, missing[:, k] = _array(view, k)
            views.append(array)
    return views, missing


def rows(view: Any, chosen: NDArray[Any]) -> Any:
    """Some items of a view, by place or by mask."""
    return view.iloc[chosen] if hasattr(view, "iloc") else view[chosen]


def _listed(X: Any, K: int) -> list[Any]:
    if not isinstance(X, (list, tuple)):
        raise DataError(
            f"views must be a list of {K} arrays, one per agent; for one table, give Team(columns=…). "
            f"Got {type(X).__name__}"
        )
    if len(X) != K:
        raise DataError(f"views must be a list of {K} arrays, one per agent; got {len(X)}")
    for k, view in enumerate(X):
        if hasattr(view, "tocsr"):
            raise DataError(f"view {k} is sparse, which is not supported: pass its toarray()")
        if view is not None and (isinstance(view, str) or not hasattr(view, "__len__")):
            _refuse(k, view)
    return list(X)


def _selected(X: Any, K: int, columns: Sequence[Any]) -> list[Any]:
    if isinstance(columns, str) or not isinstance(columns, Sequence) or len(columns) != K:
        given = len(columns) if isinstance(columns, Sequence) and not isinstance(columns, str) else repr(columns)
        raise DataError(f"columns must be a list, one selector per agent: {K} agents, {given} selectors")
    X = table(X)
    views = []
    for k, selector in enumerate(columns):
        try:
            views.append(_columns(X, selector(X) if callable(selector) else selector))
        except (ValueError, TypeError, KeyError, IndexError) as refusal:
            raise DataError(f"columns of agent {k} cannot be picked: {refusal}") from None
    return views


def table(X: Any) -> Any:
    """One table of shape (items, columns): a data frame as it is, anything else as an array."""
    if hasattr(X, "iloc"):
        return X
    if hasattr(X, "tocsr"):
        raise DataError("sparse tables are not supported: pass X.toarray()")
    try:
        values = np.asarray(X)
    except ValueError:
        raise DataError("with columns=, pass one table of shape (items, columns); got a ragged list") from None
    if values.ndim != 2:
        raise DataError(
            f"with columns=, pass one table of shape (items, columns); got shape {values.shape}. "
            "Reshape your data: a single item is X.reshape(1, -1)."
        )
    return values


def _columns(X: Any, chosen: Any) -> Any:
    """Some columns of a table, by place (numbers, a slice, a mask) or, in a data frame, by name; a frame stays one."""
    if chosen is None:
        raise TypeError("nothing is selected")
    if isinstance(chosen, (str, int, np.integer)):
        chosen = [chosen]
    elif not isinstance(chosen, slice):
        chosen = list(chosen)
    if not hasattr(X, "iloc"):
        return np.ascontiguousarray(X[:, chosen] if isinstance(chosen, slice) or chosen else X[:, :0])
    ends = (chosen.start, chosen.stop) if isinstance(chosen, slice) else chosen
    named = any(isinstance(name, str) for name in ends)
    return X.loc[:, chosen] if named else X.iloc[:, chosen]


def _array(view: Any, k: int) -> tuple[Any, NDArray[np.bool_]]:
    """One view as an array, or the data frame it is, and which of its items are missing."""
    if hasattr(view, "iloc") and view.ndim == 2:
        return view, view.isna().to_numpy().all(axis=1) & (view.shape[1] > 0)
    if hasattr(view, "iloc"):
        view = view.to_numpy()
    if not isinstance(view, (list, tuple, np.ndarray)):
        view = np.asarray(view)
        if view.ndim == 0:
            _refuse(k, view)
    absent = np.zeros(len(view), bool)
    if isinstance(view, (list, tuple)) or (view.dtype.kind == "O" and view.ndim == 1):
        view = list(view)
        absent = np.array([_is_gap(item) for item in view], bool)
        if absent.all() and len(absent):
            return np.empty((len(absent), 0)), absent
        if absent.any():
            shown = view[int(np.flatnonzero(~absent)[0])]
            blank = "" if isinstance(shown, str) else np.zeros_like(np.asarray(shown))
            view = [blank if gap else item for gap, item in zip(absent, view, strict=True)]
    try:
        array = np.asarray(view)
    except ValueError:
        raise DataError(f"view {k} is ragged: all items of one agent's view must have the same shape") from None
    if array.ndim == 0:
        _refuse(k, view)
    if array.dtype.kind == "f" and array.size:
        absent |= np.isnan(array.reshape(len(array), -1)).all(axis=1)
    elif array.dtype.kind == "O" and array.ndim > 1:
        absent |= np.array([all(map(_is_gap, row.ravel())) for row in array], bool)
    return array, absent


def _is_gap(value: Any) -> bool:
    """None, NaN, and what pandas calls NA and NaT."""
    if value is None:
        return True
    try:
        return np.ndim(value) == 0 and bool(value != value)
    except (TypeError, ValueError):
        return True  # NA does not know whether it is itself


def _refuse(k: int, view: Any) -> Any:
    raise DataError(f"view {k} must be an array whose first axis is the items; got {view!r:.80}")
