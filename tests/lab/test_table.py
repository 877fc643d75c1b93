"""Tables: a column for each factor, of its own type, that says nothing where it means nothing."""

import numpy as np
import pandas
import pytest

from collegium.errors import DataError, InputFileError
from collegium.lab import table as tables
from collegium.lab.table import StudyRow, means, to_table, values

FACTORS = {"family": str, "patience": int, "threshold": float}


def row(r, value, quantity="error", **factors):
    return StudyRow("mine", 100, r, quantity, "Ours", -1, 5, value, factors)


@pytest.fixture
def table():
    return to_table(
        [
            row(r, value + r, **levels)
            for r in (0, 1)
            for value, levels in (
                (1.0, {"family": "trigger", "threshold": 0.5}),
                (2.0, {"family": "stability", "patience": 2}),
                (3.0, {"family": "stability", "patience": 10}),
            )
        ],
        FACTORS,
    )


def test_factors_are_columns_of_their_type_also_from_the_file(table, tmp_path):
    assert list(table.columns) == [*tables.COLUMNS, *FACTORS]
    tables.write(table, tmp_path / "t.parquet")
    for one in (table, tables.read(tmp_path / "t.parquet")):
        assert [str(one[name].dtype) for name in FACTORS] == ["string", "Int64", "float64"]
        assert list(one["patience"].isna()) == [True, False, False] * 2
        assert one["patience"].max() == 10  # 2 < 10, as numbers go


def test_tables_without_a_factors_levels_join_those_with(table):
    """Some records have no rows of a kind: their parts have the same columns of the same types."""
    without = to_table([row(2, 0.0)], FACTORS)
    assert list(pandas.concat([without, table]).dtypes) == list(table.dtypes)
    assert len(to_table([], FACTORS).columns) == len(table.columns)


def test_values_at_levels_one_per_repetition(table):
    assert list(values(table, family="stability", patience=2)) == [2.0, 3.0]
    assert list(values(table, family="stability")) == [2.5, 3.5]  # over both patiences
    with pytest.raises(KeyError, match="family stability, patience 3"):
        values(table, family="stability", patience=3)


def test_means_say_nothing_of_factors_nobody_used(table):
    columns, rows = means(table[table["family"] == "trigger"], FACTORS)
    assert columns == [
        "n0",
        "quantity",
        "method",
        "agent",
        "round",
        "family",
        "threshold",
        "mean",
        "ci95",
        "repetitions",
    ]
    ((*place, mean, half, count),) = rows
    assert place == [100, "error", "Ours", -1, 5, "trigger", 0.5]
    assert (mean, count) == (1.5, 2)
    assert half == pytest.approx(12.706 * np.std([1, 2], ddof=1) / np.sqrt(2), rel=1e-4)
    by_family = {(one[5], one[6]): one[-3] for one in means(table, FACTORS)[1] if one[5] == "stability"}
    assert by_family == {("stability", 2): 2.5, ("stability", 10): 3.5}


@pytest.mark.parametrize(
    ("factors", "levels", "sentence"),
    [
        ({}, {"speed": 1}, "a row of mine has the factor 'speed': add its name and type to the study's factors"),
        ({"round": int}, {}, "a factor cannot be called 'round'"),
        ({"speed": complex}, {}, "the factor 'speed' must be declared as str, int or float"),
        ({"speed": int}, {"speed": "fast"}, "the factor 'speed' is declared as int"),
    ],
)
def test_what_is_wrong_with_factors_gets_a_sentence(factors, levels, sentence):
    with pytest.raises(DataError, match=sentence):
        to_table([row(0, 1.0, **levels)], factors)


def test_a_kept_csv_is_a_table_again(table, tmp_path):
    """With the same means, intervals and levels; the file is what a summary writes."""
    once = to_table([row(0, 5.0, "unit")], FACTORS)
    for one in (table, once):
        columns, rows = means(one, FACTORS)
        path = tmp_path / "mine.csv"
        pandas.DataFrame(rows, columns=columns).to_csv(path, index=False)
        again = tables.restored(path, "mine", FACTORS)
        assert list(again.columns) == list(one.columns)
        found, (_, known) = means(again, FACTORS), (columns, rows)
        assert found[0] == columns
        for after, before in zip(found[1], known, strict=True):
            assert after == pytest.approx(before, nan_ok=True)


def test_what_is_no_kept_csv(tmp_path):
    with pytest.raises(InputFileError, match=r"there is no .*mine\.csv"):
        tables.restored(tmp_path / "mine.csv", "mine", FACTORS)
    (tmp_path / "mine.csv").write_text("n0,mean\n5,1\n")
    with pytest.raises(InputFileError, match="not a CSV of study summary"):
        tables.restored(tmp_path / "mine.csv", "mine", FACTORS)
