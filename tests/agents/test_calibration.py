"""The temperature against closed forms and brute force, and what is true of it whatever the scores."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit

from collegium.agents.calibration import HOTTEST, temperature, temperatures
from collegium.errors import CollegiumError


def loss(scores, y, T):
    """Cross-entropy of the softmax of two logits whose difference is the score."""
    return float(np.mean(np.logaddexp(0, -np.asarray(scores) * np.asarray(y) / T)))


@pytest.mark.parametrize("a", [1e-7, 0.3, 2.0, 11.0, 1e8])
@pytest.mark.parametrize(("right", "n"), [(3, 4), (9, 10), (51, 100)])
def test_equal_margins_have_a_closed_form(a, right, n):
    y = np.where(np.arange(n) % 2, 1, -1)
    scores = a * y * np.where(np.arange(n) < right, 1, -1)
    expected = a / np.log(right / (n - right))
    assert temperature(scores, y) == pytest.approx(expected, rel=1e-9)


def test_posterior_log_odds_need_no_temperature():
    p = np.array([0.6, 0.75, 0.9])
    counts = np.array([10, 20, 40])
    scores, y = [], []
    for q, n in zip(p, counts, strict=True):
        scores += [np.log(q / (1 - q))] * n
        y += [1] * round(q * n) + [-1] * round((1 - q) * n)
    assert temperature(scores, y) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_brute_force(seed, scale):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], 60)
    scores = scale * (y + 1.5 * rng.normal(size=60))
    grid = np.geomspace(0.01, 1000, 5001)
    best = grid[np.argmin(np.logaddexp(0, -np.outer(1 / grid, scores * y)).mean(1))]
    step = grid[1] / grid[0]
    assert best / step < temperature(scores, y) < best * step


@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0, 1e4])
def test_where_all_are_right_each_counts_as_right_n_plus_one_times_in_n_plus_two(size):
    y = np.array([1, -1, 1, -1])
    assert temperature(size * y, y) == pytest.approx(size / np.log(5), rel=1e-9)
    scores = size * y * [1, 2, 3, 0.0]
    grid = size * np.geomspace(0.01, 100, 20001)
    rows = np.outer(1 / grid, scores * y)
    smooth = (5 / 6 * np.logaddexp(0, -rows) + 1 / 6 * np.logaddexp(0, rows)).mean(1)
    assert temperature(scores, y) == pytest.approx(grid[np.argmin(smooth)], rel=1e-3)


def test_more_items_all_right_are_colder():
    found = [temperature(np.ones(n), np.ones(n)) for n in (1, 4, 40, 400)]
    assert (np.diff(found) < 0).all()
    assert found[-1] > 0.1


@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])
def test_scores_no_better_than_chance_are_hottest(size):
    y = np.array([1, -1, 1, -1])
    assert temperature(size * y * [1, 1, -1, -1], y) == pytest.approx(HOTTEST * size)
    assert temperature(-size * y, y) == pytest.approx(HOTTEST * size)
    assert temperature(size * np.ones(4), y) == pytest.approx(HOTTEST * size)
    assert HOTTEST == 100


def test_an_agent_that_says_nothing_stays_as_it_is():
    assert temperature(np.zeros(4), [1, -1, 1, -1]) == 1


margins = st.lists(st.floats(-30, 30).map(lambda x: round(x, 3)), min_size=1, max_size=30)


@given(margins, st.randoms())
def test_no_neighbour_is_better(values, random):
    y = np.array([random.choice((-1, 1)) for _ in values])
    scores = np.array(values) * y
    assume(np.mean(values) > 0 and min(values) < 0)  # else there is no finite minimum
    T = temperature(scores, y)
    here = loss(scores, y, T)
    slack = 64 * np.finfo(float).eps * max(1, here)  # a mean of at most 30 numbers
    for other in (T * 0.999, T * 1.001, T * 0.5, T * 2, 1.0):
        assert here <= loss(scores, y, other) + slack


@given(st.lists(st.floats(0.5, 5), min_size=3, max_size=20), st.floats(0.1, 0.5), st.floats(0.1, 10))
def test_scaled_scores_have_a_scaled_temperature(right, wrong, factor):
    margins = np.array([*right, -wrong])  # more right than wrong, and not all right: an inner minimum
    y = np.where(np.arange(len(margins)) % 2, 1, -1)
    T = temperature(margins * y, y)
    # the slope is known to a few eps, and the place of its root to that over the curvature
    p = expit(margins / T)
    curvature = np.mean((margins / T) ** 2 * p * (1 - p))
    assert temperature(factor * margins * y, y) == pytest.approx(factor * T, rel=1e-12 + 1e-14 / curvature)


def test_order_and_the_names_of_the_classes_do_not_matter():
    rng = np.random.default_rng(3)
    y = rng.choice([-1, 1], 50)
    scores = y + rng.normal(size=50) * 2
    T = temperature(scores, y)
    assert temperature(scores[::-1], y[::-1]) == pytest.approx(T, rel=1e-9)
    assert temperature(-scores, -y) == pytest.approx(T, rel=1e-12)
    assert temperature(scores.tolist(), y.tolist()) == T


def test_one_temperature_per_agent():
    rng = np.random.default_rng(4)
    y = rng.choice([-1, 1], 50)
    scores = y[:, None] * [1, 3, 0.2] + rng.normal(size=(50, 3))
    T = temperatures(scores, y)
    assert T.shape == (3,)
    assert T.tolist() == [temperature(scores[:, k], y) for k in range(3)]


@pytest.mark.parametrize(
    ("scores", "y"),
    [
        ([1.0, np.nan], [1, -1]),
        ([1.0, np.inf], [1, -1]),
        ([[1.0], [2.0], [-1.0]], [1, 1, 1]),
        ([1.0, 2.0], [1, -1, 1]),
        ([1.0, 2.0], [0, 1]),
        ([], []),
        (["high", "low"], [1, -1]),
        (1.0, [1]),
    ],
    ids=["NaN", "infinite", "a column", "more labels", "other labels", "nothing", "texts", "a single number"],
)
def test_scores_that_have_no_temperature(scores, y):
    with pytest.raises(CollegiumError, match=r"\w+ \w+ \w+"):
        temperature(scores, y)
