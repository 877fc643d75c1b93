"""Whatever a user calls the two classes becomes +1 and -1."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium._util.labels import to_signs
from collegium.errors import LabelError

OBJECTS = np.array(["no", "yes", "yes"], object)


@pytest.mark.parametrize(
    "y",
    [
        [-1, 1, 1],
        [0, 1, 1],
        [1, 2, 2],
        [3, 8, 8],
        [0.0, 1.0, 1.0],
        [-1.0, 1.0, 1.0],
        [False, True, True],
        ["cat", "dog", "dog"],
        (0, 1, 1),
        np.array([0, 1, 1], np.uint8),
        np.array([-1, 1, 1], np.int8),
        np.array(["a", "b", "b"]),
        OBJECTS,
        pd.Series([0, 1, 1], index=[7, 3, 5]),
        pd.Series(["a", "b", "b"], dtype="category"),
    ],
)
def test_the_larger_of_two_values_is_plus_one(y):
    signs = to_signs(y, 3)
    assert signs.dtype == np.int8
    assert signs.tolist() == [-1, 1, 1]


@pytest.mark.parametrize(
    ("y", "classes", "signs"),
    [
        (["cat", "dog", "cat"], ("cat", "dog"), [1, -1, 1]),
        (["cat", "dog", "cat"], ("dog", "cat"), [-1, 1, -1]),
        ([3, 8, 3], (3, 8), [1, -1, 1]),
        ([3, 8, 3], [8, 3], [-1, 1, -1]),
        ([0, 1, 0], np.array([1, 0]), [-1, 1, -1]),
        ([1.0, 0.0, 1.0], (0, 1), [-1, 1, -1]),
        ([True, False, True], (True, False), [1, -1, 1]),
        ([8, 8, 8], (3, 8), [-1, -1, -1]),
        (["dog"] * 3, ("dog", "cat"), [1, 1, 1]),
        (OBJECTS, ("no", "yes"), [1, -1, -1]),
    ],
)
def test_the_first_class_named_is_plus_one(y, classes, signs):
    assert to_signs(y, 3, classes).tolist() == signs


@given(st.lists(st.sampled_from([0, 1]), min_size=2, max_size=30).filter(lambda y: len(set(y)) == 2))
@settings(deadline=None)
def test_all_encodings_agree(y):
    expected = [2 * label - 1 for label in y]
    for encode in (int, float, bool, str, lambda label: 7 - 3 * (1 - label), lambda label: ["egg", "hen"][label]):
        assert to_signs([encode(label) for label in y], len(y)).tolist() == expected
    assert to_signs(y, len(y), classes=(0, 1)).tolist() == [-sign for sign in expected]


@pytest.mark.parametrize("classes", [None, (0, 1)])
def test_no_items_have_no_labels(classes):
    signs = to_signs([], 0, classes)
    assert signs.dtype == np.int8
    assert signs.shape == (0,)


def test_the_labels_passed_are_left_alone():
    y = np.array([-1, 1, 1], np.int8)
    to_signs(y, 3)[0] = 1
    assert y.tolist() == [-1, 1, 1]


@pytest.mark.parametrize(
    ("y", "n", "classes", "message"),
    [
        ([1, 1, 1], 3, None, r"two classes, got 1: 1\. Pass classes=\(first, second\)"),
        (["cat", "cat"], 2, None, r"two classes, got 1: 'cat'\. Pass classes="),
        ([0, 1, 2], 3, None, "two classes, got 3: 0, 1, 2"),
        ([-1, 0, 1], 3, None, "two classes, got 3: -1, 0, 1"),
        (["a", "b", "c"], 3, None, "two classes, got 3: 'a', 'b', 'c'"),
        (list(range(9)), 9, None, "two classes, got 9: 0, 1, 2, 3, 4, …"),
        ([0.1, 0.2, 0.3, 0.4], 4, None, r"two classes, got 4: 0\.1, 0\.2"),
        ([0, float("nan"), 1], 3, None, r"NaN: 1 of 3 \(first: item 1\)"),
        ([0, 1, float("inf"), float("nan")], 4, (0, 1), r"NaN: 1 of 4 \(first: item 3\)"),
        ([0, 1, 7], 3, (0, 1), "label 7 of item 2 is neither 0 nor 1"),
        (["cat", "cow", "dog"], 3, ("cat", "dog"), "label 'cow' of item 1 is neither 'cat' nor 'dog'"),
        (["0", "1"], 2, (0, 1), "label '0' of item 0 is neither 0 nor 1"),
        (["0", "1"], 2, np.array([0, 1]), "label '0' of item 0 is neither 0 nor 1"),
        ([0, 1], 2, ("cat", "dog"), "label 0 of item 0 is neither 'cat' nor 'dog'"),
        ([0, 1], 3, None, r"one per item: expected 3, got an array of shape \(2,\)"),
        ([0, 1], 0, None, r"one per item: expected 0, got an array of shape \(2,\)"),
        ([], 2, None, r"one per item: expected 2, got an array of shape \(0,\)"),
        ([[0], [1]], 2, None, r"one per item: expected 2, got an array of shape \(2, 1\)"),
        (1, 1, None, r"one per item: expected 1, got an array of shape \(\)"),
        ([0, 1], 2, (1, 1), r"two different classes, got \(1, 1\)"),
        ([0, 1], 2, (0, 1, 2), r"two different classes, got \(0, 1, 2\)"),
        ([0, 1], 2, (1,), r"two different classes, got \(1,\)"),
        (np.array([0, "a", 1], object), 3, None, "mix values that cannot be compared: use one type"),
        ([0, None, 1], 3, None, "mix values that cannot be compared: use one type"),
    ],
)
def test_refused_with_the_reason(y, n, classes, message):
    with pytest.raises(LabelError, match=message):
        to_signs(y, n, classes)


def test_labels_that_are_objects_are_named_too():
    with pytest.raises(LabelError, match="label 'c' of item 2 is neither 'a' nor 'b'"):
        to_signs(np.array(["a", "b", "c"], object), 3, classes=("a", "b"))


@pytest.mark.parametrize(
    ("y", "classes"), [([[1], [1, 2]], None), ([0, 1], 3), (np.array(["NaT", "2020"], "M8[Y]"), None)]
)
def test_strange_labels_are_refused(y, classes):
    with pytest.raises(LabelError):
        to_signs(y, 2, classes)


@pytest.mark.parametrize("y", [[1, "a"], ["a", "b", float("nan"), "a"], pd.array(["a", pd.NA])])
def test_mixed_and_missing_labels_are_refused(y):
    with pytest.raises(LabelError):
        to_signs(y, len(y))
