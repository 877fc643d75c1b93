"""Agents that know only some of the classes: their scores in the team's order, and nothing for the rest."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from collegium.agents import CallableModel, SklearnModel
from collegium.agents.classes import inside, known_classes, places_of, spread, targets
from collegium.errors import LabelError, ModelError


def test_who_says_which_classes():
    view, y = np.arange(6.0)[:, None], list("abcabc")
    fitted = LogisticRegression().fit(view, y)
    for model in (
        fitted,
        SklearnModel(fitted),
        SklearnModel(FrozenEstimator(fitted)),
        SklearnModel(fitted).fit(view, y),
    ):
        assert known_classes(model) == ["a", "b", "c"]
    assert known_classes(CallableModel(np.sum, classes=("x", "y"))) == ["x", "y"]
    assert known_classes(CallableModel(np.sum)) is None
    assert known_classes(LogisticRegression()) is None


@pytest.mark.parametrize(
    ("known", "classes", "places"),
    [
        (None, "abc", [0, 1, 2]),
        (["a", "b", "c"], "abc", [0, 1, 2]),
        (["c", "a"], "abc", [2, 0]),
        ([-1, 1], "ab", [0, 1]),
        ([0, 1, 2], "abc", [0, 1, 2]),
        ([0, 2], [0, 1, 2], [0, 2]),
        ([1], [0, 1, 2], [1]),
    ],
)
def test_places(known, classes, places):
    assert places_of(known, list(classes)).tolist() == places


@pytest.mark.parametrize("known", [["a", "d"], [-1, 1], ["a", "a"], [0, 1]])
def test_other_classes_are_refused(known):
    with pytest.raises(ModelError, match="an agent may know some of them, and no other"):
        places_of(known, ["a", "b", "c"])


def test_evidence_for_unknown_classes_is_zero():
    three = np.array([[3.0, -1.0, -2.0]])
    assert spread(three, np.array([1, 3, 0]), 4).tolist() == [[-2.0, 3.0, 0.0, -1.0]]
    assert spread(np.array([3.0, -1.0]), np.array([2, 0]), 3).tolist() == [[1.5, 0, -1.5], [-0.5, 0, 0.5]]
    assert spread(np.array([3.0]), np.array([1]), 3).tolist() == [[0, 0, 0]]
    assert spread(np.array([3.0, -1.0]), np.array([0, 1]), 2).tolist() == [3.0, -1.0]
    assert spread(np.array([3.0, -1.0]), np.array([1, 0]), 2).tolist() == [-3.0, 1.0]
    assert spread(np.empty(0), np.arange(3), 3).shape == (0, 3)
    assert spread(np.empty(0), np.arange(2), 2).shape == (0,)


@pytest.mark.parametrize(
    ("scores", "places", "C", "message"),
    [
        (
            np.zeros((2, 5)),
            np.arange(3),
            3,
            "gives 5 numbers per item, for 5 classes; it should be 3, of its 3 classes",
        ),
        (
            np.zeros((2, 3)),
            np.arange(2),
            2,
            "gives 3 numbers per item, for 3 classes; it should be one, of two classes",
        ),
        (np.zeros(2), np.arange(3), 3, "gives one number per item, for 2 classes; it should be 3"),
    ],
)
def test_scores_of_another_number_of_classes(scores, places, C, message):
    with pytest.raises(ModelError, match=message):
        spread(scores, places, C)


def test_labels_inside():
    assert targets(["b", "a"], 2)[0].tolist() == [1, -1]
    labels, classes = targets(["b", "a", "c"], 3)
    assert labels.tolist() == ["b", "a", "c"]
    assert classes.tolist() == ["a", "b", "c"]
    assert inside(["b", "a"], 2, ["a", "b"]).tolist() == [1, -1]
    assert inside(["b", "a", "c"], 3, ["a", "b", "c"]).tolist() == [1, 0, 2]
    with pytest.raises(LabelError, match="two classes, got 1"):
        targets(["a", "a"], 2)
    with pytest.raises(LabelError, match="one per item"):
        targets(["a", "b", "c"], 4)
    with pytest.raises(LabelError, match="cannot be compared"):
        targets(np.array(["a", 2, None], object), 3)
