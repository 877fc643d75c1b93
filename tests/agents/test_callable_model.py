"""Any function is a model, if its answer is one or two finite numbers per item."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from collegium.agents.callable_model import CallableModel
from collegium.errors import ModelError

VIEW = np.array([[1.0, 2.0], [5.0, 3.0], [0.0, 0.0]])


def first_column(view):
    return view[:, 0]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (first_column, [1.0, 5.0, 0.0]),
        (lambda view: view[:, :1], [1.0, 5.0, 0.0]),
        (lambda view: view, [1.0, -2.0, 0.0]),
        (lambda view: view.tolist(), [1.0, -2.0, 0.0]),
    ],
)
def test_answers(function, expected):
    assert CallableModel(function).scores(VIEW).tolist() == expected


def test_positive_column():
    assert CallableModel(lambda view: view, positive=0).scores(VIEW).tolist() == [-1.0, 2.0, 0.0]


def test_torch_answer():
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(2, 2)
    scores = CallableModel(lambda view: layer(torch.tensor(view, dtype=torch.float32))).scores(VIEW)
    weight, bias = (parameter.detach().double().numpy() for parameter in (layer.weight, layer.bias))
    assert scores == pytest.approx((VIEW @ weight.T + bias) @ [-1, 1], abs=1e-5)


def test_never_called_for_nothing():
    assert CallableModel(lambda view: 1 / 0).scores(VIEW[:0]).shape == (0,)


def test_the_view_is_not_changed_through_the_answer():
    view = VIEW.copy()
    CallableModel(first_column).scores(view)[:] = 9.0
    assert np.array_equal(view, VIEW)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda view: view.sum(), r"CallableModel of <lambda> must answer 3 items .* got shape \(\)"),
        (lambda view: view[None], r"must answer 3 items .* for logits of C classes, \(3, C\); got shape \(1, 3, 2\)"),
        (lambda view: np.log(view[:, 0] - 1e9), "CallableModel of <lambda> failed on a view of shape .*invalid value"),
        (lambda view: view[:, 0] * np.nan, "contain NaN: 3 of 3"),
        (lambda view: view.missing, r"failed on a view of shape \(3, 2\): AttributeError"),
        (5, "wants a function, got 5"),
    ],
)
def test_bad_functions(function, message):
    with pytest.raises(ModelError, match=message):
        CallableModel(function).scores(VIEW)


def test_no_view():
    with pytest.raises(ModelError, match="first axis is the items"):
        CallableModel(first_column).scores(3.0)


def test_it_was_fitted_elsewhere():
    model = CallableModel(first_column)
    check_is_fitted(model)
    with pytest.raises(ModelError, match="CallableModel was fitted elsewhere"):
        model.fit(VIEW, [1, -1, 1])


def test_clones_and_pickles():
    model = CallableModel(first_column, positive=0)
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.get_params() == model.get_params()
        assert copy.scores(VIEW).tolist() == [1.0, 5.0, 0.0]


def test_logits_of_several_classes_lose_their_mean():
    rows = np.array([[1.0, 2.0, 6.0], [0.0, 0.0, 0.0]])
    assert CallableModel(lambda view: rows, classes=("a", "b", "c")).scores(rows).tolist() == [[-2, -1, 3], [0, 0, 0]]


def test_probabilities_are_warned_of_or_taken_for_what_they_are():
    p = np.linspace(0.05, 0.95, 12)
    with pytest.warns(UserWarning, match='kind="probabilities"'):
        CallableModel(lambda view: p).scores(p)
    with pytest.warns(UserWarning, match="lie between 0 and 1"):
        CallableModel(lambda view: np.column_stack([1 - p, p])).scores(p)
    rare = np.linspace(0.01, 0.4, 60)  # of a class that is rarely likely
    with pytest.warns(UserWarning, match="negative for the other class"):
        CallableModel(lambda view: rare).scores(rare)
    assert len(CallableModel(lambda view: rare[:20]).scores(rare[:20])) == 20  # so few may well be of one sign
    expected = np.log(p) - np.log(1 - p)
    for answer in (p, np.column_stack([1 - p, p])):
        found = CallableModel(lambda view, answer=answer: answer, kind="probabilities").scores(p)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    three = np.column_stack([p / 2, p / 2, 1 - p])
    found = CallableModel(lambda view: three, kind="probabilities").scores(p)
    np.testing.assert_allclose(found, np.log(three) - np.log(three).mean(axis=1, keepdims=True), atol=1e-12)
    with pytest.raises(ModelError, match="kind must be one of"):
        CallableModel(lambda view: p, kind="odds").scores(p)
