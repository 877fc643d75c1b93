"""The score pipeline against its formula, written out once more and number by number."""

import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from collegium.agents import ScorePipeline, Scores, bounded, temperature
from collegium.errors import ScoreError
from collegium.fusion import AvgStat

SETTINGS = [
    dict(zip(("center", "calibrate", "bounded"), chosen, strict=True)) for chosen in product((False, True), repeat=3)
]
RNG = np.random.default_rng(0)
Y = RNG.choice([-1, 1], 40)
TRAIN, VAL, TEST = (RNG.normal(size=(n, 3)) * [0.1, 2, 30] + [0.3, -1, 5] for n in (50, 40, 9))
VAL += 2 * Y[:, None]
FULL = {"temperature": [0.5, 3.0, 7.0], "center": [0.1, -0.2, 0.0], "gain": [1.0, 0.25, -3.0], "bounded": True}


def formula(f, T, center, gain, bound):
    """In the order of the design: divide, bound, subtract, multiply.

    Arrays of the same shape as those the pipeline sees, so that even the last bit of a tanh is the same.
    """
    f = f / T
    if bound:
        f = np.tanh(f / 2)
    f = f - center
    return f * gain


def by_hand(center, calibrate, bounded):
    """Statistics of the test scores, from the training and validation scores."""
    T = np.array([temperature(VAL[:, k], Y) if calibrate else 1.0 for k in range(3)])
    middle = formula(TRAIN, T, 0.0, 1.0, bounded).sum(axis=0) / len(TRAIN) if center else np.zeros(3)
    return formula(TEST, T, middle, 1.0, bounded)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.floats(-10, 10), st.floats(-10, 10), st.booleans())
def test_every_number_is_that_of_the_formula(f, T, center, gain, bound):
    pipeline = ScorePipeline([T, 1.0], [center, 0.0], [gain, 1.0], bound)
    two = np.array([[f, 0.0]])
    assert pipeline(two).tolist() == formula(two, np.array([T, 1.0]), np.array([center, 0]), [gain, 1], bound).tolist()
    assert pipeline[0](two[:, 0]).tolist() == formula(two[:, 0], T, center, gain, bound).tolist()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_fitted_pipelines_give_the_formula_bit_for_bit(settings):
    pipeline = ScorePipeline.fit(TRAIN, VAL, Y, **settings)
    assert np.array_equal(pipeline(TEST), by_hand(**settings))
    assert pipeline.gain.tolist() == [1, 1, 1]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_records_and_fusion_use_the_same_pipeline(settings):
    record = Scores(TRAIN, VAL, TEST, RNG.choice([-1, 1], 50), Y, RNG.choice([-1, 1], 9))
    assert np.array_equal(record.statistics(**settings), by_hand(**settings))
    assert np.array_equal(AvgStat(**settings).fit(record).statistics(TEST), by_hand(**settings))


def test_what_a_record_says_of_temperatures_is_taken():
    T = np.array([1.0, 2.0, 4.0])
    record = Scores(TRAIN, VAL, TEST, RNG.choice([-1, 1], 50), Y, RNG.choice([-1, 1], 9), temperature=T)
    assert np.array_equal(record.pipeline(center=False, calibrate=True)(TEST), TEST / T)


def test_the_gain_comes_last():
    pipeline = ScorePipeline([2.0], [0.5], [10.0], bounded=True)
    assert pipeline([[3.0]])[0, 0] == 10.0 * (np.tanh(0.75) - 0.5)


@pytest.mark.parametrize("bound", [False, True])
def test_a_missing_view_is_no_evidence(bound):
    pipeline = ScorePipeline([1.0, 2.0], [5.0, 7.0], [3.0, -1.0], bound)
    ready = pipeline([[np.nan, 1.0], [1.0, np.nan]])
    assert ready[0, 0] == ready[1, 1] == 0
    assert ready[0, 1] == pipeline([[0.0, 1.0], [0.0, 0.0]])[0, 1]
    assert math.copysign(1, ready[1, 1]) == 1  # not the -0 that a gain of -1 would leave


def test_one_agent_and_some_agents():
    pipeline = ScorePipeline(**FULL)
    few = 8 * np.finfo(float).eps  # a tanh and four operations
    for k in range(3):
        np.testing.assert_allclose(pipeline[k](TEST[:, k]), pipeline(TEST)[:, k], rtol=0, atol=3 * few)
    np.testing.assert_allclose(pipeline[1:](TEST[:, 1:]), pipeline(TEST)[:, 1:], rtol=0, atol=3 * few)
    with pytest.raises(IndexError):
        pipeline[3]


@pytest.mark.parametrize("part", [slice(None), 0, slice(1, 2)], ids=["all", "one", "a team of one"])
def test_plain_values_and_back(part):
    pipeline = ScorePipeline(**FULL)[part]
    values = json.loads(json.dumps(pipeline.to_dict()))
    again = ScorePipeline.from_dict(values)
    assert again.to_dict() == values
    assert np.array_equal(again(TEST[:, part]), pipeline(TEST[:, part]))


def test_what_was_written_before_there_were_gains():
    old = {name: value for name, value in FULL.items() if name != "gain"}
    assert ScorePipeline.from_dict(old).gain.tolist() == [1, 1, 1]


@pytest.mark.parametrize("values", [{}, {"center": [1.0]}, {**FULL, "scale": 1}])
def test_values_of_something_else(values):
    with pytest.raises(ScoreError, match="made of temperature, center, gain, bounded, classes; got"):
        ScorePipeline.from_dict(values)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": [1.0, 0.0]}, "temperature of agent 1 must be positive and finite; got 0"),
        ({"temperature": math.inf}, "temperature must be positive and finite; got inf"),
        ({"temperature": [1.0], "center": [math.nan]}, "center of agent 0 must be finite; got nan"),
        ({"temperature": [1.0], "gain": [math.inf]}, "gain of agent 0 must be finite; got inf"),
        ({"temperature": [1.0, 1.0], "gain": [1.0, 1.0, 1.0]}, "gain must be numbers, one per agent"),
        ({"temperature": [[1.0], [1.0, 2.0]]}, "temperature must be numbers"),
        ({"temperature": "warm"}, "temperature must be numbers, one per agent; got 'warm'"),
    ],
)
def test_numbers_that_are_none(settings, message):
    with pytest.raises(ScoreError, match=message):
        ScorePipeline(**settings)


@pytest.mark.parametrize("scores", [[1.0, 2.0], [[1.0]], [[[1.0, 2.0, 3.0]]], 1.0])
def test_scores_of_others_are_not_stretched_to_fit(scores):
    with pytest.raises(ScoreError, match=r"scores must have shape \(items, 3\), one column per agent; got"):
        ScorePipeline(**FULL)(scores)


def test_no_training_scores_no_center():
    with pytest.raises(ScoreError, match="a center is the mean of training scores, and there are none"):
        ScorePipeline.fit(np.empty((0, 3)), VAL, Y, center=True, calibrate=False, bounded=False)


def test_it_is_frozen():
    T = np.ones(3)
    pipeline = ScorePipeline(T)
    T[0] = 9
    assert pipeline.temperature.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        pipeline.center[0] = 1
    with pytest.raises(AttributeError):
        pipeline.bounded = True


@given(st.floats(-700, 700))
def test_bounded_scores_are_the_posterior_stretched(f):
    assert bounded(np.array([f]))[0] == pytest.approx(2 * expit(f) - 1, abs=4 * np.finfo(float).eps)
    assert abs(bounded(np.array([f]))[0]) <= 1


# More than two classes


def centred(values):
    return values - values.mean(axis=-1, keepdims=True)


MANY = centred(RNG.normal(size=(20, 3, 4)) * 3)
FULL_4 = {
    "temperature": [0.5, 3.0, 7.0],
    "center": centred(RNG.normal(size=(3, 4))).tolist(),
    "gain": [1.0, 0.25, -3.0],
    "classes": 4,
}
VECTOR_4 = FULL_4 | {"temperature": RNG.uniform(0.5, 2, size=(3, 4)).tolist()}


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("values", [FULL_4, VECTOR_4], ids=["temperature", "vector"])
def test_several_classes_number_by_number(values, bound):
    pipeline = ScorePipeline(**values, bounded=bound)
    made = pipeline(MANY)
    few = 64 * np.finfo(float).eps
    for i, k in product(range(20), range(3)):
        u = [f / T for f, T in zip(MANY[i, k], np.broadcast_to(values["temperature"][k], 4), strict=True)]
        u = [one - sum(u) / 4 for one in u]
        if bound:
            total = sum(math.exp(one) for one in u)
            u = [math.exp(one) / total - 1 / 4 for one in u]
        expected = [values["gain"][k] * (one - m) for one, m in zip(u, values["center"][k], strict=True)]
        np.testing.assert_allclose(made[i, k], expected, rtol=few, atol=few * 100)
        np.testing.assert_allclose(pipeline[k](MANY[i, k]), made[i, k], rtol=few, atol=few)
    np.testing.assert_allclose(made.sum(axis=2), 0, atol=1000 * few)
    again = ScorePipeline.from_dict(json.loads(json.dumps(pipeline.to_dict())))
    assert np.array_equal(again(MANY), made)
    assert np.array_equal(ScorePipeline.from_dict(pipeline[1].to_dict())(MANY[:, 1]), pipeline[1](MANY[:, 1]))


def test_two_classes_are_written_as_before():
    assert set(ScorePipeline(**FULL).to_dict()) == {"temperature", "center", "gain", "bounded"}


def test_a_missing_view_of_several_classes():
    holes = MANY.copy()
    holes[3, 1] = np.nan
    made = ScorePipeline(**FULL_4)(holes)
    assert (made[3, 1] == 0).all()
    others = np.ones((20, 3), bool)
    others[3, 1] = False
    assert np.array_equal(made[others], ScorePipeline(**FULL_4)(MANY)[others])


def test_the_center_of_several_classes_is_the_mean_of_each():
    y = RNG.integers(0, 4, 20)
    pipeline = ScorePipeline.fit(MANY, MANY, y, center=True, calibrate=True, bounded=False)
    T = np.array([temperature(MANY[:, k], y) for k in range(3)])
    np.testing.assert_allclose(pipeline.center, (MANY / T[:, None]).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(pipeline(MANY).mean(axis=0), 0, atol=1e-12)


@given(st.lists(st.floats(-300, 300), min_size=3, max_size=6))
def test_bounded_margins_are_differences_of_probabilities(f):
    C = len(f)
    b = bounded(np.array([f]), C)[0]
    assert (b >= -1 / C - 1e-15).all()
    assert (b <= 1 - 1 / C + 1e-15).all()
    assert abs(b.sum()) < 1e-14
    p = np.exp(np.array(f) - max(f)) / np.exp(np.array(f) - max(f)).sum()
    np.testing.assert_allclose(b[0] - b[1], p[0] - p[1], atol=1e-15)


@given(st.floats(-700, 700))
def test_the_bound_of_many_classes_is_that_of_two_where_the_others_are_out_of_the_question(f):
    """With all but two classes impossible, their margin is tanh(f/2)."""
    b = bounded(np.array([f / 2, -f / 2, -1e4]), 3)
    assert b[0] - b[1] == pytest.approx(bounded(np.array([f]))[0], abs=8 * np.finfo(float).eps)


@pytest.mark.parametrize("scores", [MANY[:, 0], MANY[:, :, :3], MANY[0]])
def test_other_classes_are_not_stretched_to_fit(scores):
    with pytest.raises(ScoreError, match=r"shape \(items, 3, 4\), 4 numbers, one per class, per agent; got"):
        ScorePipeline(**FULL_4)(scores)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": [1.0], "classes": 1}, "number of classes, must be a whole number, at least 2"),
        ({"temperature": [1.0, 1.0], "center": [[0.0] * 4] * 3, "classes": 4}, "temperature must be numbers"),
        ({"temperature": [1.0], "center": [[0.0] * 3], "classes": 4}, "center must be numbers"),
        ({"temperature": [[1.0, 1.0, 0.0]], "center": [[0.0] * 3], "classes": 3}, "temperature of agent 0 must be pos"),
    ],
)
def test_numbers_of_other_classes(settings, message):
    with pytest.raises(ScoreError, match=message):
        ScorePipeline(**settings)
