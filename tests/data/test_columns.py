from itertools import combinations

import numpy as np
import pytest
from scipy.stats import spearmanr

from collegium import data
from collegium.errors import DataError

rng = np.random.default_rng(3)
TABLE = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 6)) + rng.normal(size=(60, 6))


def across(columns):
    """Mean |rho| between columns of different agents, pair by pair."""
    pairs = [(i, j) for a, b in combinations(columns, 2) for i in a for j in b]
    return np.mean([abs(spearmanr(TABLE[:, i], TABLE[:, j]).statistic) for i, j in pairs])


def test_lowest_and_highest_are_those_of_all_partitions():
    halves = [(set(one), set(range(6)) - set(one)) for one in combinations(range(6), 3)]
    every = [across(half) for half in halves]
    for correlation, best in ((0.0, min(every)), (1.0, max(every))):
        split = data.split_columns(TABLE, 2, correlation=correlation)
        assert split.correlation == pytest.approx(best)
        assert across(split.columns) == pytest.approx(split.correlation)
        assert (split.lowest, split.highest) == pytest.approx((min(every), max(every)))


def test_more_is_more():
    wide = rng.normal(size=(100, 4)) @ rng.normal(size=(4, 40)) + rng.normal(size=(100, 40))
    splits = [data.split_columns(wide, 5, correlation=c) for c in (0.0, 0.25, 0.5, 0.75, 1.0)]
    for split, part in zip(splits, (0, 0.25, 0.5, 0.75, 1), strict=True):
        wanted = split.lowest + part * (split.highest - split.lowest)
        step = 0.01 * (split.highest - split.lowest)  # there are some 600 exchanges to choose from
        assert abs(split.correlation - wanted) < step
    assert splits[0].highest - splits[0].lowest > 0.01


def test_every_column_once_and_balance():
    wide = rng.normal(size=(30, 50))
    equal, uneven = data.split_columns(wide, 7), data.split_columns(wide, 7, balance=0.2, seed=1)
    for split in (equal, uneven):
        assert sorted(sum(split.columns, ())) == list(range(50))
        assert all(split.columns)
    assert {len(one) for one in equal.columns} == {7, 8}
    assert max(map(len, uneven.columns)) >= 15
    again = data.split_columns(wide, 7, balance=0.2, seed=1)
    assert again.columns == uneven.columns
    views = uneven.views(wide)
    np.testing.assert_array_equal(views[2], wide[:, list(uneven.columns[2])])


def test_constant_columns_resemble_nothing():
    split = data.split_columns(np.ones((5, 4)), 2)
    assert (split.correlation, split.lowest, split.highest) == (0, 0, 0)
    assert data.split_columns(TABLE, 1).columns == ((0, 1, 2, 3, 4, 5),)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: data.split_columns([["a"], ["b"]], 1), "must hold numbers"),
        (lambda: data.split_columns(TABLE[0], 2), "shape"),
        (lambda: data.split_columns(TABLE, 7), "agents must be a whole number between 1 and 6; got 7"),
        (lambda: data.split_columns(TABLE, 2, correlation=2), "correlation must be"),
        (lambda: data.split_columns(TABLE, 2, balance=0), "balance must be"),
        (lambda: data.split_columns([[1.0, np.nan]] * 2, 2), "finite"),
        (lambda: data.split_columns(TABLE, 2).views(TABLE[:, :4]), "6 columns"),
    ],
)
def test_mistakes(call, sentence):
    with pytest.raises(DataError, match=sentence):
        call()
