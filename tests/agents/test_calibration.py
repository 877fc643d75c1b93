"""The temperature against closed forms and brute force, and what is true of it whatever the scores."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit

from collegium.agents.calibration import HOTTEST, class_temperature, temperature, temperatures, vector_scaling
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


# More than two classes


def classes_and_scores(seed, C=4, n=80, scale=3.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, C, n)
    f = scale * (np.eye(C)[y] + rng.normal(size=(n, C)))
    return f - f.mean(axis=1, keepdims=True), y


def class_loss(f, y, T, b=0.0):
    z = f / T + b
    return float(np.mean(np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_brute_force_for_several_classes(seed, scale):
    f, y = classes_and_scores(seed, scale=scale)
    grid = np.geomspace(0.01, 1000, 5001)
    best = grid[np.argmin([class_loss(f, y, T) if scale / 50 < T else np.inf for T in grid])]
    step = grid[1] / grid[0]
    assert best / step < temperature(f, y) < best * step
    np.testing.assert_allclose(temperatures(np.stack([f, 2 * f], axis=1), y), np.array([1, 2]) * temperature(f, y))


@pytest.mark.parametrize("kind", ["some wrong", "all right", "chance"])
def test_two_columns_have_the_temperature_of_their_difference(kind):
    rng = np.random.default_rng(5)
    y = rng.choice([-1, 1], 60)
    f = {"some wrong": y + 2 * rng.normal(size=60), "all right": y * (1 + rng.random(60)), "chance": -y * 1.0}[kind]
    two = class_temperature(np.column_stack([-f, f]) / 2, (y > 0).astype(int))
    assert two == pytest.approx(temperature(f, y), rel=1e-9)


def test_an_offset_is_what_scores_leave_out():
    """Likelihoods at T = 2 and classes of different frequency: without the offset the temperature is another."""
    rng = np.random.default_rng(0)
    prior = np.array([0.7, 0.2, 0.1])
    y = rng.choice(3, 20_000, p=prior)
    x = y + rng.normal(size=len(y))
    f = -((x[:, None] - np.arange(3)) ** 2)  # twice the log-likelihood
    assert class_temperature(f, y, np.log(prior)) == pytest.approx(2, rel=0.06)
    grid = np.linspace(0.5, 4, 3501)
    best = grid[np.argmin([class_loss(f, y, T, np.log(prior)) for T in grid])]
    assert class_temperature(f, y, np.log(prior)) == pytest.approx(best, abs=1e-3)
    assert abs(temperature(f - f.mean(axis=1, keepdims=True), y) / 2 - 1) > 0.06


def test_vector_scaling_undoes_what_was_done_to_each_class():
    rng = np.random.default_rng(1)
    n, w, b = 40_000, np.array([0.5, 1.0, 2.0]), np.array([0.5, -0.25, -0.25])
    z = rng.normal(size=(n, 3)) * 2
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    T, shift = vector_scaling((z - b) / w, y)
    np.testing.assert_allclose(1 / T, w, rtol=0.05)
    np.testing.assert_allclose(shift, b, atol=0.05)


def test_vector_scaling_is_the_smallest_penalised_cross_entropy():
    f, y = classes_and_scores(3)
    T, b = vector_scaling(f, y)
    common = temperature(f, y)

    def loss(T, b):
        return len(y) * class_loss(f, y, T, b) + 0.5 * ((common / T - 1) ** 2).sum() + 0.5 * (b**2).sum()

    rng = np.random.default_rng(0)
    least = loss(T, b)
    assert least <= loss(np.full(4, common), np.zeros(4))
    for _ in range(200):
        assert least <= loss(T * np.exp(0.01 * rng.normal(size=4)), b + 0.01 * rng.normal(size=4)) + 1e-9


def test_several_classes_need_their_places():
    with pytest.raises(CollegiumError, match="label 4 of item 0 is none of 0, 1, 2"):
        temperature([[1.0, 0.0, -1.0]], [4])
    with pytest.raises(CollegiumError, match="at least one"):
        temperature(np.empty((0, 3)), [])
