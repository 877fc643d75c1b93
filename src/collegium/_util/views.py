"""Validation of views: a list of K arrays, or one table and a selector per agent; what is missing is noticed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import DataError

AnyViews = Any
"""A list of K arrays aligned by item (None for a view that is missing), the same by agents' names, or one table."""


class Views:
    """K views of the same items that scikit-learn can cut by item: for `cross_val_score`, `train_test_split`, searches.

    To scikit-learn a plain list of K arrays has K items. This one has as many as the arrays.

    views: a list of K arrays aligned by item, None where a view is missing, or a dictionary of them by agents' names.

    >>> both = Views({"left": np.arange(6).reshape(3, 2), "right": np.array(["a", "b", "c"])})
    >>> len(both), both[[2, 0]]["right"].tolist()
    (3, ['c', 'a'])
    """

    def __init__(self, views: Sequence[Any] | Mapping[str, Any]) -> None:
        self.names = list(views) if isinstance(views, Mapping) else None
        self.arrays = [
            np.asarray(view) if isinstance(view, (list, tuple)) else view
            for view in (views.values() if isinstance(views, Mapping) else views)
        ]
        gather(self.arrays, len(self.arrays))  # which refuses what does not align

    @property
    def shape(self) -> tuple[int, int]:
        """Items and agents."""
        return len(self), len(self.arrays)

    def __len__(self) -> int:
        return next(len(view) for view in self.arrays if view is not None)

    def __getitem__(self, chosen: Any) -> Any:
        """One view by its agent's name, or some items of all."""
        if isinstance(chosen, str):
            return self.arrays[(self.names or []).index(chosen)]
        if isinstance(chosen, tuple):  # scikit-learn asks for rows, ...
            chosen = chosen[0]
        if isinstance(chosen, slice):
            chosen = np.arange(len(self))[chosen]
        some = [None if view is None else rows(view, np.atleast_1d(chosen)) for view in self.arrays]
        return Views(some if self.names is None else dict(zip(self.names, some, strict=True)))

    def __repr__(self) -> str:
        of = "" if self.names is None else f" of {', '.join(self.names)}"
        return f"Views({len(self)} items, {len(self.arrays)} views{of})"


def named_parts(parts: Mapping[str, Any]) -> NDArray[Any]:
    """Arrays aligned by item, such as token ids and their attention mask, as one view: a structured array (n,).

    >>> view = named_parts({"input_ids": [[5, 7], [9, 0]], "attention_mask": [[1, 1], [1, 0]]})
    >>> view.shape, view["attention_mask"].tolist()
    ((2,), [[1, 1], [1, 0]])
    """
    try:
        arrays = {str(name): np.asarray(part) for name, part in parts.items()}
        lengths = {len(array) for array in arrays.values()}
    except (ValueError, TypeError):
        raise DataError("the parts of a view must be arrays whose first axis is the items, none ragged") from None
    if len(lengths) != 1 or any(array.dtype.kind not in "fiub" for array in arrays.values()):
        shapes = ", ".join(f"{name} {array.dtype} {array.shape}" for name, array in arrays.items())
        raise DataError(f"the parts of a view must be numbers of the same items; got {shapes or 'none'}")
    view = np.empty(lengths.pop(), [(name, array.dtype, array.shape[1:]) for name, array in arrays.items()])
    for name, array in arrays.items():
        view[name] = array
    return view


def in_order(X: AnyViews, names: Sequence[str]) -> AnyViews:
    """Views by agents' names as a list in the order of the agents; anything else as it is."""
    if isinstance(X, Views):
        X = X.arrays if X.names is None else dict(zip(X.names, X.arrays, strict=True))
    if not isinstance(X, Mapping) or hasattr(X, "tocsr"):  # some sparse matrices are dictionaries
        return X
    unknown = [name for name in X if name not in names]
    absent = [name for name in names if name not in X]
    if unknown or absent:
        wrong = f"there is no agent {unknown[0]!r}" if unknown else f"none for {absent[0]!r} (None if it is missing)"
        raise DataError(f"views by name must be those of the agents {', '.join(map(repr, names))}: {wrong}")
    return [X[name] for name in names]


def check_indexes(views: Sequence[Any], labels: Any = None) -> None:
    """Refuse data frames whose indexes say that their rows are not of the same items, and labels in another order.

    An index 0, 1, 2, … says nothing of other items than these.
    """
    framed = [(f"view {k}", view.index) for k, view in enumerate(views) if hasattr(view, "iloc")]
    if not framed:
        return
    (first, index), others = framed[0], framed[1:]
    if hasattr(labels, "iloc"):
        others = [*others, ("y", labels.index)]
    for other, its in others:
        if len(its) != len(index) or index.equals(its):
            continue
        is_same_set = len(index.symmetric_difference(its)) == 0
        is_counted = any(one.tolist() == list(range(len(one))) for one in (index, its))
        if not is_same_set and (other == "y" or is_counted):
            continue
        i = next(i for i, (a, b) in enumerate(zip(index, its, strict=True)) if a != b)
        one, another = (rows.item() if isinstance(rows, np.generic) else rows for rows in (index[i], its[i]))
        kind = "the same items in another order" if is_same_set else "other items"
        raise DataError(
            f"by their indexes {first} and {other} have {kind}: row {i} is {one!r} in one and {another!r} in the "
            "other. Rows of all views belong together: sort one by .loc[other.index], or use reset_index(drop=True) if "
            "the indexes mean nothing"
        )


def gather(X: AnyViews, K: int, columns: Sequence[Any] | None = None) -> tuple[list[Any], NDArray[np.bool_]]:
    """K arrays or data frames aligned by item, and which of them are missing for which item, shape (n, K).

    A view is missing for all items where it is None, and for an item where it is None or all its numbers are NaN.
    """
    given = _selected(X, K, columns) if columns is not None else _listed(X, K)
    given = [_whole(view, k) for k, view in enumerate(given)]
    lengths = {len(view) for view in given if view is not None}
    if not lengths:
        raise DataError("all views are missing: at least one agent must see something")
    if len(lengths) > 1:
        sizes = ", ".join("missing" if view is None else str(len(view)) for view in given)
        raise DataError(f"views must align by item, but they have different numbers of items: {sizes}")
    check_indexes(given)
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


def _whole(view: Any, k: int) -> Any:
    """A view of named parts as one array; any other as it is."""
    try:
        return named_parts(view) if isinstance(view, Mapping) else view
    except DataError as mistake:
        raise DataError(f"view {k}: {mistake}") from None


def rows(view: Any, chosen: NDArray[Any]) -> Any:
    """Some items of a view, by place or by mask."""
    return view.iloc[chosen] if hasattr(view, "iloc") else view[chosen]


def _listed(X: Any, K: int) -> list[Any]:
    if not isinstance(X, (list, tuple)):
        raise DataError(
            f"views must be a list of {K} arrays, one per agent, or a dictionary of them by agents' names; for one "
            "table, give Team(columns=…). "
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
            said = refusal.args[0] if isinstance(refusal, KeyError) and refusal.args else refusal  # without its quotes
            raise DataError(f"columns of agent {k} cannot be picked: {said}") from None
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
        words = [name for name in ([] if isinstance(chosen, slice) else chosen) if isinstance(name, str)]
        if words:
            raise KeyError(f"{words[0]!r} is a name, but the table is an array without names: give a data frame")
        return np.ascontiguousarray(X[:, chosen] if isinstance(chosen, slice) or chosen else X[:, :0])
    ends = (chosen.start, chosen.stop) if isinstance(chosen, slice) else chosen
    named = any(isinstance(name, str) for name in ends)
    absent = [name for name in ends if isinstance(name, str) and name not in X.columns]
    if absent:
        there = ", ".join(map(str, X.columns[:8])) + (", …" if len(X.columns) > 8 else "")
        raise KeyError(f"the table has no column {absent[0]!r}; it has {there}")
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
        absent = np.array([is_gap(item) for item in view], bool)
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
        absent |= np.array([all(map(is_gap, row.ravel())) for row in array], bool)
    return array, absent


def is_gap(value: Any) -> bool:
    """None, NaN, and what pandas calls NA and NaT."""
    if value is None:
        return True
    try:
        return np.ndim(value) == 0 and bool(value != value)
    except (TypeError, ValueError):
        return True  # NA does not know whether it is itself


def _refuse(k: int, view: Any) -> Any:
    raise DataError(f"view {k} must be an array whose first axis is the items; got {view!r:.80}")
