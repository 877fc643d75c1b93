"""One or two numbers per item, of any kind, become finite scores of shape (n,); everything else is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.agents._outputs import log_odds, numbers, probabilities_to_scores, to_scores
from collegium.errors import ModelError


@pytest.mark.parametrize("form", [list, np.array, lambda rows: np.array(rows, np.float32)])
@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ([1.5, -2.0, 0.0], [1.5, -2.0, 0.0]),
        ([[1.5], [-2.0], [0.0]], [1.5, -2.0, 0.0]),
        ([[1.0, 3.0], [2.0, 0.5], [0.0, 0.0]], [2.0, -1.5, 0.0]),
        ([1, -1, 1], [1.0, -1.0, 1.0]),
    ],
)
def test_shapes(form, outputs, expected):
    scores = to_scores(form(outputs), 3, "it")
    assert scores.dtype == np.float64
    assert scores.tolist() == expected


def test_positive_names_the_column_of_plus_one():
    assert to_scores([[1.0, 3.0]], 1, "it", positive=0).tolist() == [-2.0]
    with pytest.raises(ModelError, match=r"positive.* between 0 and 1; got 2"):
        to_scores([[1.0, 3.0]], 1, "it", positive=2)


@pytest.mark.parametrize("shape", [(0,), (0, 1), (0, 2)])
def test_no_items(shape):
    assert to_scores(np.empty(shape), 0, "it").shape == (0,)


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16", "int64"])
def test_torch_tensors_with_gradients_and_of_any_type(kind):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, kind)
    tensor = torch.tensor([[1.0, 3.0], [2.0, 0.0]]).to(kind)
    tensor.requires_grad_(kind.is_floating_point)
    assert to_scores(tensor, 2, "it").tolist() == [2.0, -2.0]


def test_tensors_that_are_no_scores():
    torch = pytest.importorskip("torch")
    with pytest.raises(ModelError, match="answers yes or no"):
        to_scores(torch.tensor([True, False]), 2, "it")
    with pytest.raises(ModelError, match="real numbers"):
        to_scores(torch.tensor([1j, 2j]), 2, "it")


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (np.zeros((3, 0)), r"it must answer 3 items .* got shape \(3, 0\)"),
        ([[0.0, 0.0, 0.0], [1.0, np.nan, 2.0], [1.0, 1.0, 1.0]], r"contain NaN: 1 of 3 items \(first: item 1\)"),
        ([[0.0, 0.0, -np.inf]] * 3, "contain NaN: 3 of 3"),
        (np.zeros((1, 3)), r"got shape \(1, 3\)"),
        (np.zeros((3, 2, 1)), r"got shape \(3, 2, 1\)"),
        (np.zeros(4), r"got shape \(4,\)"),
        (0.5, r"got shape \(\)"),
        ([0.0, np.nan, np.nan], r"of it contain NaN: 2 of 3 items \(first: item 1\)"),
        ([0.0, 0.0, np.inf], r"contain infinite values: 1 of 3 items \(first: item 2\)"),
        ([[np.inf, np.inf]] * 3, "contain NaN: 3 of 3"),
        ([[-1e308, 1e308]] * 3, "contain infinite values: 3 of 3"),
        ([True, False, True], "answers yes or no, but a score is needed"),
        (["a", "b", "c"], "must answer with real numbers"),
        ([1j, 2j, 3j], "must answer with real numbers"),
        ([None, 1.0, "x"], "must answer with real numbers"),
        ([[1.0], [1.0, 2.0], [3.0]], "all rows alike"),
        (np.ma.masked_equal([1.0, 2.0, 3.0], 2.0), "must answer with real numbers"),
    ],
)
def test_refusals(outputs, message):
    with pytest.raises(ModelError, match=message):
        to_scores(outputs, 3, "it")


def test_scores_do_not_share_memory_with_the_outputs():
    outputs = np.zeros((3, 1))
    to_scores(outputs, 3, "it")[:] = 7.0
    numbers(outputs, "it")[:] = 7.0
    assert not outputs.any()


@given(st.floats(-13, 13), st.floats(1e-9, 0.4))
def test_log_odds_invert_the_logistic_function_within_the_clip(f, clip):
    p = 1 / (1 + np.exp(-f))
    limit = np.log((1 - clip) / clip)
    expected = np.clip(f, -limit, limit)
    # an error of eps in p near 1 is one of eps / (1 - p) in its log-odds, and 1 - p >= exp(-14)
    assert log_odds([p], clip)[0] == pytest.approx(expected, abs=8 * np.finfo(float).eps * np.exp(14))


def test_certainty_is_clipped_alike_on_both_sides():
    sure = log_odds([0.0, 0.5, 1.0], 1e-3)
    assert sure[0] == -sure[2] == pytest.approx(-np.log(999), rel=1e-14)
    assert sure[1] == 0


def test_the_complement_keeps_what_float32_loses_near_one():
    q = np.float32(2.345e-6)
    p = np.float32(1) - q
    exact = np.log1p(-float(q)) - np.log(float(q))
    assert abs(log_odds(p, 1e-9, q) - exact) < 1e-6
    assert abs(log_odds(p, 1e-9) - exact) > 1e-3


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([0.5, 1.2], None, r"between 0 and 1; got 1\.2"),
        ([0.5, -0.2], None, r"between 0 and 1; got -0\.2"),
        ([0.5, 0.5], [0.5, 3.0], "between 0 and 1; got 3"),
        ([0.5, 0.5], [0.5, 0.6], "must sum to 1"),
    ],
)
def test_what_is_no_probability(p, q, message):
    with pytest.raises(ModelError, match=message):
        log_odds(p, 1e-6, q)


@pytest.mark.parametrize("clip", [0.0, 0.5, -1e-6, np.nan, "small", True])
def test_clip_out_of_range(clip):
    with pytest.raises(ModelError, match="clip must be a finite number, above 0"):
        log_odds([0.5], clip)


def test_probabilities_of_each_shape():
    two = np.array([[0.25, 0.75], [1.0, 0.0]])
    expected = [np.log(3), -np.log((1 - 1e-6) / 1e-6)]
    for outputs in (two, two[:, 1], two[:, 1:]):
        assert probabilities_to_scores(outputs, 2, "it") == pytest.approx(expected)
    assert probabilities_to_scores(two, 2, "it", positive=0) == pytest.approx([-s for s in expected])


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([[0.2, 0.3]], "^it: the probabilities .* must sum to 1"),
        ([3.0], "^it: probabilities must lie between"),
        ([[0.2, 0.3, 0.6]], "^it: the probabilities of the classes must sum to 1"),
        ([[0.2, -0.3, 1.1]], "^it: probabilities must lie between 0 and 1; got -0.3"),
        ([[[0.2, 0.3, 0.5]]], r"it must answer 1 items .* got shape \(1, 1, 3\)"),
        ([np.nan], "scores of it contain NaN"),
    ],
)
def test_probabilities_refused(outputs, message):
    with pytest.raises(ModelError, match=message):
        probabilities_to_scores(outputs, 1, "it")


def test_probabilities_of_several_classes():
    p = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    logs = np.log([[0.5, 0.3, 0.2], [1.0, 1e-6, 1e-6]])
    np.testing.assert_allclose(
        probabilities_to_scores(p, 2, "it"), logs - logs.mean(axis=1, keepdims=True), rtol=1e-12, atol=1e-12
    )
