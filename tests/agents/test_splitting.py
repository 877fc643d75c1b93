"""Balanced samples and held-out parts: the right sizes, every item once, chance where it belongs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from collegium.agents._splitting import balanced, folds, split
from collegium.errors import DataError


def labels(first, second):
    return np.random.default_rng(0).permutation(np.repeat([1, -1], [first, second])).astype(np.int8)


def rng(seed=0):
    return np.random.default_rng(seed)


@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_a_balanced_sample_has_half_of_each_class(first, second, data):
    y = labels(first, second)
    half = data.draw(st.integers(1, min(first, second)))
    rows = balanced(y, 2 * half, rng(half))
    assert rows.dtype == np.int64
    assert len(set(rows.tolist())) == 2 * half
    assert y[rows].sum() == 0


def test_all_that_can_be_had():
    y = labels(7, 12)
    rows = balanced(y, None, rng())
    assert len(rows) == 14
    assert set(np.flatnonzero(y == 1)) <= set(rows)


def test_the_seed_decides():
    y = labels(50, 50)
    assert balanced(y, 20, rng(1)).tolist() == balanced(y, 20, rng(1)).tolist()
    assert balanced(y, 20, rng(1)).tolist() != balanced(y, 20, rng(2)).tolist()


def test_every_item_is_as_likely_as_any_other_in_every_place():
    y = labels(4, 6)
    runs = 2000
    generator = rng(3)
    drawn = np.array([balanced(y, 4, generator) for _ in range(runs)])
    low, high = binom.interval(0.999 ** (1 / 14), runs, [0.5] * 4 + [2 / 6] * 6)
    order = np.concatenate([np.flatnonzero(y == 1), np.flatnonzero(y == -1)])
    counts = np.array([(drawn == item).sum() for item in order])
    assert (counts >= low).all()
    assert (counts <= high).all()
    # and each of the four places holds a +1 half of the time
    low, high = binom.interval(0.999 ** (1 / 14), runs, 0.5)
    ones = (y[drawn] == 1).sum(0)
    assert ((ones >= low) & (ones <= high)).all()


@pytest.mark.parametrize("n0", [3, 16, 200, 13])
def test_samples_that_cannot_be_had_name_the_largest(n0):
    with pytest.raises(DataError, match=rf"even number, at most 14: .* 7 and 12 items; got {n0}$"):
        balanced(labels(7, 12), n0, rng())


@pytest.mark.parametrize("n0", [0, -2, 1, 2.0, "all", True])
def test_sizes_that_are_none(n0):
    with pytest.raises(DataError, match="n0 must be a whole number, at least 2"):
        balanced(labels(7, 12), n0, rng())


def test_a_class_that_is_not_there():
    with pytest.raises(DataError, match=r"at most 0: .* 5 and 0 items"):
        balanced(labels(5, 0), 2, rng())


@given(st.integers(2, 40), st.integers(2, 40), st.floats(0.01, 0.9), st.booleans(), st.integers(0, 99))
def test_both_parts_together_are_everything(first, second, part, stratify, seed):
    y = labels(first, second)
    inside, outside = split(y, part, rng(seed), stratify)
    assert sorted([*inside, *outside]) == list(range(first + second))
    if stratify:
        for sign, n in ((1, first), (-1, second)):
            assert (y[outside] == sign).sum() == min(max(round(part * n), 1), n - 1)
    else:
        assert len(outside) == min(max(round(part * len(y)), 1), len(y) - 1)


@pytest.mark.parametrize(("n0", "held"), [(1000, 200), (390, 78), (10, 2), (20, 4), (4, 2)])
def test_a_fifth_of_each_class_is_held_out(n0, held):
    y = labels(n0 // 2, n0 // 2)
    inside, outside = split(y, 0.2, rng())
    assert (len(inside), len(outside)) == (n0 - held, held)
    assert y[inside].sum() == y[outside].sum() == 0


def test_without_strata_the_classes_fall_as_they_may():
    y = labels(50, 50)
    sums = {int(y[split(y, 0.2, rng(seed), stratify=False)[1]].sum()) for seed in range(20)}
    assert len(sums) > 3


def test_the_seed_decides_the_split_too():
    y = labels(20, 20)
    one, two, other = (np.concatenate(split(y, 0.2, rng(seed))).tolist() for seed in (1, 1, 2))
    assert one == two != other


def test_the_order_is_random():
    y = np.repeat([1, -1], 50).astype(np.int8)
    for part in split(y, 0.4, rng()):
        assert 0 < (y[part][: len(part) // 2] == 1).sum() < len(part) // 2


@pytest.mark.parametrize(("first", "second"), [(1, 5), (5, 1), (0, 5), (1, 1), (0, 0)])
def test_too_few(first, second):
    with pytest.raises(DataError, match=f"^{first + second} items are too few .* two of each class"):
        split(labels(first, second), 0.2, rng())


@pytest.mark.parametrize("part", [0, 0.0, 0.91, -0.2, np.nan, "fifth"])
def test_parts_that_are_none(part):
    with pytest.raises(DataError, match="validation must be a finite number, above 0"):
        split(labels(5, 5), part, rng())


# More than two classes


def test_several_classes_are_balanced_and_split_class_by_class():
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(3), [10, 20, 30]))
    assert np.bincount(y[balanced(y, None, rng())]).tolist() == [10, 10, 10]
    assert np.bincount(y[balanced(y, 12, rng())]).tolist() == [4, 4, 4]
    with pytest.raises(DataError, match=r"a multiple of 3, at most 30: one part in 3 .* 10, 20 and 30 items; got 13"):
        balanced(y, 13, rng())
    learned, held = split(y, 0.2, rng())
    assert np.bincount(y[held]).tolist() == [2, 4, 6]
    assert sorted([*learned, *held]) == list(range(60))
    with pytest.raises(DataError, match="two of each class"):
        split(np.array([0, 0, 1, 1, 2]), 0.2, rng())


@pytest.mark.parametrize("y", [labels(13, 24), np.arange(37) % 5], ids=["two", "five"])
@pytest.mark.parametrize("count", [2, 5])
def test_folds_hold_every_item_out_once(y, count):
    parts = list(folds(y, count, rng()))
    assert len(parts) == count
    assert sorted(np.concatenate([held for _, held in parts])) == list(range(37))
    for learned, held in parts:
        assert sorted([*learned, *held]) == list(range(37))
        for one in np.unique(y):
            assert abs((y[held] == one).sum() - (y == one).sum() / count) < 1
    assert max(len(held) for _, held in parts) - min(len(held) for _, held in parts) <= 1
    again = list(folds(y, count, rng(1)))
    assert any((a[1] != b[1]).any() for a, b in zip(parts, again, strict=True) if len(a[1]) == len(b[1]))
