"""Views at the door: lists with gaps and tables with selectors become aligned arrays, or a sentence."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_selector

from collegium._util.views import gather
from collegium.errors import DataError

TABLE = np.arange(12.0).reshape(4, 3)
FRAME = pd.DataFrame(TABLE, columns=list("abc"), index=[7, 3, 5, 1])


def objects(*items):
    array = np.empty(len(items), object)
    array[:] = items
    return array


# A list of arrays


def test_arrays_go_through_untouched():
    given = [np.zeros((4, 2, 2), np.uint8), TABLE, np.array(["a", "b", "c", "d"])]
    views, missing = gather(given, 3)
    assert all(one is other for one, other in zip(views, given, strict=True))
    assert missing.shape == (4, 3)
    assert missing.dtype == bool
    assert not missing.any()


def test_lists_and_frames_become_arrays():
    views, missing = gather((TABLE.tolist(), FRAME), 2)
    assert isinstance(views[0], np.ndarray)
    assert views[1] is FRAME
    assert all(np.array_equal(view, TABLE) for view in views)
    assert not missing.any()


class Foreign:
    """An array of another library, with types of its own."""

    dtype = "foreign.float64"

    def __len__(self):
        return 4

    def __array__(self, dtype=None, copy=None):
        return np.where(np.arange(12).reshape(4, 3) // 3 == 1, np.nan, TABLE)


def test_arrays_of_other_libraries():
    (array,), missing = gather([Foreign()], 1)
    assert np.array_equal(array[2:], TABLE[2:])
    assert missing[:, 0].tolist() == [False, True, False, False]


def test_a_view_that_is_none_is_missing_for_all_items():
    views, missing = gather([None, TABLE, None], 3)
    assert missing.tolist() == [[True, False, True]] * 4
    assert [len(view) for view in views] == [4, 4, 4]
    assert views[1] is TABLE


ROWS = {
    "list with None": ([[1, 2], None, [3, 4]], [1]),
    "objects with None": (objects(np.ones(2), np.ones(2), None), [2]),
    "None first": ([None, None, [3, 4]], [0, 1]),
    "all None": ([None, None, None], [0, 1, 2]),
    "NaN rows": (np.array([[1.0, 2.0], [np.nan, 3.0], [np.nan, np.nan]]), [2]),
    "NaN rows in float32": (np.array([[np.nan] * 2, [1, 2], [3, 4]], np.float32), [0]),
    "NaN images": (np.stack([np.full((2, 2), value) for value in (np.nan, 1.0, np.nan)]), [0, 2]),
    "one number each": (np.array([1.0, np.nan, 3.0]), [1]),
    "NaN rows in lists": ([[1, 2], [float("nan"), float("nan")], [3, 4]], [1]),
    "whole numbers": (np.zeros((3, 2), int), []),
    "no features": (np.empty((3, 0)), []),
    "texts": (["ab", None, "c"], [1]),
    "texts in objects": (objects("ab", None, "c"), [1]),
    "a table of objects": (np.array([["a", 1.0], [None, None], [None, 2.0]], object), [1]),
    "a frame of all kinds": (pd.DataFrame({"x": [1.0, None, 3.0], "s": ["a", None, None]}), [1]),
    "a series with its own index": (pd.Series([None, "b", "c"], index=[5, 6, 7], dtype=object), [0]),
    "a series of texts": (pd.Series(["a", None, "c"], index=[5, 6, 7]), [1]),
    "a frame with NA": (pd.DataFrame({"x": pd.array([1, None, 3], "Int64"), "s": ["a", None, "b"]}), [1]),
    "a frame of NA": (pd.DataFrame({"x": pd.array([1, None, 3], "Int64")}), [1]),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_are_missing(name):
    view, expected = ROWS[name]
    (array, _), missing = gather([view, np.zeros(3)], 2)
    assert isinstance(array, (np.ndarray, pd.DataFrame))
    assert len(array) == 3
    assert np.flatnonzero(missing[:, 0]).tolist() == expected
    assert not missing[:, 1].any()


def test_rows_that_are_there_keep_their_numbers():
    images = [np.full((2, 2), 7, np.uint8), None, np.full((2, 2), 9, np.uint8)]
    (array,), _ = gather([images], 1)
    assert array.dtype == np.uint8
    assert array.shape == (3, 2, 2)
    assert array[[0, 2], 0, 0].tolist() == [7, 9]
    (array,), _ = gather([[None, [1.5, np.nan]]], 1)
    assert array[1, 0] == 1.5
    assert np.isnan(array[1, 1])


@pytest.mark.parametrize("gap", [[], [None]])
def test_objects_that_hold_rows_alike_become_one_array(gap):
    (array,), _ = gather([objects(*gap, np.ones(2), np.zeros(2))], 1)
    assert array.dtype == np.float64
    assert array.shape == (2 + len(gap), 2)


def test_what_was_given_is_not_changed():
    rows = [None, [1.0, 2.0]]
    gather([rows], 1)
    assert rows == [None, [1.0, 2.0]]
    held = objects(None, np.ones(2))
    gather([held], 1)
    assert held[0] is None


def test_no_items():
    views, missing = gather([np.empty((0, 3)), [], None], 3)
    assert [len(view) for view in views] == [0, 0, 0]
    assert missing.shape == (0, 3)


LISTS = {
    "too few": ([TABLE], "a list of 2 arrays, one per agent; got 1"),
    "too many": ([TABLE] * 3, "a list of 2 arrays, one per agent; got 3"),
    "one table": (TABLE, r"for one table, give Team\(columns=…\). Got ndarray"),
    "one frame": (FRAME, r"Team\(columns=…\).* Got DataFrame"),
    "a text": ("ab", r"a list of 2 arrays.* Got str"),
    "nothing": (None, r"a list of 2 arrays.* Got NoneType"),
    "all missing": ([None, None], "all views are missing: at least one agent must see something"),
    "not aligned": ([TABLE, TABLE[:3]], "different numbers of items: 4, 3"),
    "a number": ([TABLE, 5], "view 1 must be an array whose first axis is the items; got 5"),
    "words": ([TABLE, "four"], "view 1 must be an array whose first axis is the items; got 'four'"),
    "a dictionary": ([{1: 2, 3: 4, 5: 6, 7: 8}, TABLE], "view 0: the parts of a view must be arrays"),
    "ragged": ([TABLE, [[1], [1, 2], [1], [1]]], "view 1 is ragged: all items of one agent's view"),
    "ragged with a gap": ([[None, [1], [1, 2], [1]], TABLE], "view 0 is ragged"),
    "ragged objects": ([objects(*(np.ones(n) for n in (1, 2, 1, 1))), TABLE], "view 0 is ragged"),
    "sparse": ([sparse.csr_array(TABLE), TABLE], "view 0 .*sparse"),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_refused(name):
    views, message = LISTS[name]
    with pytest.raises(DataError, match=message):
        gather(views, 2)


def test_misaligned_views_name_the_missing_one():
    with pytest.raises(DataError, match="different numbers of items: 4, missing, 3"):
        gather([TABLE, None, TABLE[:3]], 3)


# One table, a selector per agent

SELECTORS = {
    "a number": (1, [1]),
    "numbers": ([2, 0], [2, 0]),
    "an array of numbers": (np.array([0, 2]), [0, 2]),
    "one of NumPy's": (np.int64(2), [2]),
    "a negative number": (-1, [2]),
    "a pair": ((0, 1), [0, 1]),
    "a range": (range(1, 3), [1, 2]),
    "a slice": (slice(1, None), [1, 2]),
    "a backward slice": (slice(None, None, -1), [2, 1, 0]),
    "a mask": (np.array([True, False, True]), [0, 2]),
    "a list of truths": ([False, True, True], [1, 2]),
    "a function": (lambda X: [np.asarray(X).shape[1] - 1], [2]),
    "nothing at all": ([], []),
}


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("table", [TABLE, FRAME, TABLE.tolist()], ids=["array", "frame", "list"])
def test_selectors_by_place(name, table):
    selector, expected = SELECTORS[name]
    views, missing = gather(table, 2, [selector, 0])
    assert np.array_equal(views[0], TABLE[:, expected])
    assert views[0].shape == (4, len(expected))
    assert np.array_equal(views[1], TABLE[:, :1])
    assert not missing.any()


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("b", [1]),
        (["c", "a"], [2, 0]),
        (("a", "c"), [0, 2]),
        (slice("a", "b"), [0, 1]),
        (slice(None, "b"), [0, 1]),
        (slice("b", None), [1, 2]),
        (pd.Index(["b", "c"]), [1, 2]),
        (np.array(["a", "c"]), [0, 2]),
        (make_column_selector("a|c"), [0, 2]),
        (lambda X: X.columns[X.mean() > 5], [1, 2]),
        (pd.Series([True, False, True], index=list("abc")), [0, 2]),
    ],
    ids=[
        "one",
        "list",
        "pair",
        "slice",
        "to",
        "from",
        "index",
        "array",
        "scikit-learn",
        "function",
        "series of truths",
    ],
)
def test_selectors_by_name(selector, expected):
    views, _ = gather(FRAME, 1, [selector])
    assert list(views[0].columns) == [FRAME.columns[k] for k in expected]  # an agent's own model may ask for names
    assert np.array_equal(views[0], TABLE[:, expected])


def test_numbers_are_places_whatever_the_columns_are_called():
    frame = pd.DataFrame(TABLE, columns=[2, 1, 0])
    assert np.array_equal(gather(frame, 1, [[0]])[0][0], TABLE[:, :1])


def test_columns_of_several_kinds():
    frame = pd.DataFrame({"age": [30, 40], "name": ["x", "y"], "height": [1.5, np.nan]})
    views, missing = gather(frame, 3, ["age", ["name"], ["height"]])
    assert views[0]["age"].dtype.kind == "i"
    assert views[1].to_numpy().tolist() == [["x"], ["y"]]
    assert missing.tolist() == [[False, False, False], [False, False, True]]


def test_gaps_in_the_columns_of_one_agent():
    table = TABLE.copy()
    table[2, :2] = np.nan
    table[0, 0] = np.nan
    _, missing = gather(table, 2, [[0, 1], [1, 2]])
    assert missing.tolist() == [[False, False], [False, False], [True, False], [False, False]]


TABLES = {
    "too few selectors": (TABLE, [0], "one selector per agent: 2 agents, 1 selectors"),
    "no list of selectors": (TABLE, 0, "selector"),
    "a list of views": ([TABLE, TABLE], [0, 1], r"one table of shape \(items, columns\)"),
    "a row": (TABLE[0], [0, 1], "one table of shape"),
    "nothing": (None, [0, 1], "one table of shape"),
    "a ragged list": ([[1, 2], [1]], [0, 1], "table|ragged"),
    "a sparse table": (sparse.csr_array(TABLE), [0, 1], "sparse"),
    "out of range": (TABLE, [0, 3], "columns of agent 1 cannot be picked: index 3 is out of bounds"),
    "out of range in a frame": (FRAME, [0, 3], "columns of agent 1 cannot be picked: .*bounds"),
    "an unknown name": (FRAME, ["a", "height"], "columns of agent 1 cannot be picked: .*height"),
    "names of an array": (TABLE, ["a", "b"], "columns of agent 0 cannot be picked"),
    "a short mask": (TABLE, [[True, False], 0], "columns of agent 0 cannot be picked: boolean"),
    "a short mask of a frame": (FRAME, [[True, False], 0], "columns of agent 0 cannot be picked"),
    "a fraction": (TABLE, [0.5, 0], "columns of agent 0 cannot be picked"),
    "no selector": (TABLE, [None, 0], "columns of agent 0 cannot be picked"),
    "no selector for a frame": (FRAME, [None, 0], "columns of agent 0 cannot be picked"),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_refused(name):
    table, columns, message = TABLES[name]
    with pytest.raises(DataError, match=message):
        gather(table, 2, columns)
