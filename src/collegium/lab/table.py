"""Results as one tidy table: a row per number, the columns all studies share, and one for each factor of the study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from collegium._util.files import atomic_write
from collegium._util.measures import mean_interval
from collegium.errors import BackendError, DataError, InputFileError

Table = Any
"""A pandas table with the columns of `StudyRow`, and one for each factor of the study."""
Factors = Mapping[str, type]
"""What a study varies besides N_0, agents and rounds: the names of its columns, each with str, int or float."""
NO_FACTORS: Mapping[str, Any] = MappingProxyType({})
_DTYPES = {str: "string", int: "Int64", float: "float64"}


class StudyRow(NamedTuple):
    """One number of a study."""

    study: str
    n0: int
    repetition: int
    quantity: str
    """What the number is: error, mean of a class, correlation …"""
    method: str
    """Who decided; empty where nobody did."""
    agent: int
    """-1 where it is no single agent's."""
    round: int
    """-1 where it is of no round."""
    value: float
    factors: Mapping[str, str | int | float] = NO_FACTORS
    """The levels of the study's factors it was found at; those it leaves out have no meaning for this number."""


COLUMNS = StudyRow._fields[:-1]
"""Those all studies share."""


def load_pandas() -> Any:
    """The pandas package, or the sentence that says how to get it."""
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        raise BackendError("the laboratory's tables need the extra: pip install 'collegium[lab]'") from None
    return pandas


def to_table(rows: Iterable[StudyRow], factors: Factors = NO_FACTORS) -> Table:
    """Rows as a table, in the order given, with a column for each factor."""
    pandas = load_pandas()
    check_factors(factors)
    rows = list(rows)
    for row in rows:
        if not isinstance(row, StudyRow):
            raise DataError(f"a study's rows are made by self.row(…), got {row!r:.60}")
        for name in row.factors.keys() - factors.keys():
            raise DataError(
                f"a row of {row.study} has the factor {name!r}: add its name and type to the study's factors"
            )
    table = pandas.DataFrame([row[: len(COLUMNS)] for row in rows], columns=list(COLUMNS))
    for name, kind in factors.items():
        levels = [row.factors.get(name) for row in rows]
        try:
            table[name] = pandas.array(levels, dtype=_DTYPES[kind])
        except (ValueError, TypeError) as problem:
            raise DataError(f"the factor {name!r} is declared as {kind.__name__}: {problem}") from None
    return table


def check_factors(factors: Factors) -> None:
    """Factors that a table can have as columns, or the sentence that says why not."""
    for name, kind in factors.items():
        if name in COLUMNS:
            raise DataError(f"a factor cannot be called {name!r}: all studies have a column of that name")
        if kind not in _DTYPES:
            raise DataError(f"the factor {name!r} must be declared as str, int or float; got {kind!r}")


def values(table: Table, **levels: str | int | float) -> Any:
    """The value of every repetition at these levels of columns (the mean, where several rows have them).

    It raises KeyError where there is none: then the table is of other settings than the one who asks.
    """
    for name, level in levels.items():
        table = table[table[name] == level]
    if not len(table):
        raise KeyError(", ".join(f"{name} {level}" for name, level in levels.items()))
    return table.groupby("repetition")["value"].mean()


def means(table: Table, factors: Factors) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of a smaller table, over repetitions: mean, half of its 95 % interval, how many there are.

    A factor that means nothing for any row has no column; where it means nothing for one row, that has NaN.
    """
    isna = load_pandas().isna
    keys = ["n0", "quantity", "method", "agent", "round", *(name for name in factors if table[name].notna().any())]
    rows = []
    for key, part in table.groupby(keys, dropna=False, sort=False):
        levels = (float("nan") if isna(level) else level for level in key)
        rows.append((*levels, *mean_interval(part["value"].to_numpy()), len(part)))
    return [*keys, "mean", "ci95", "repetitions"], rows


def restored(path: Path, study: str, factors: Factors) -> Table:
    """A table with the means and intervals of a CSV of `means`, in as many repetitions: not those there were.

    Good for drawing; a difference between two rows says nothing, since all rows rise and fall together.
    """
    pandas = load_pandas()
    try:
        known = pandas.read_csv(path, keep_default_na=False, na_values=[""])
        known["method"] = known["method"].fillna("")
        rows = [
            StudyRow(
                study, row["n0"], r, row["quantity"], row["method"], row["agent"], row["round"], value,
                {name: kind(row[name]) for name, kind in factors.items() if name in row and row[name] == row[name]},
            )
            for row in known.to_dict("records")
            for r, value in enumerate(_with_interval(row["mean"], row["ci95"], int(row["repetitions"])))
        ]  # fmt: skip
    except FileNotFoundError:
        raise InputFileError(f"there is no {path}") from None
    except (KeyError, ValueError, TypeError) as problem:
        raise InputFileError(f"{path} is not a CSV of study summary, or is damaged: {problem!r}") from None
    return to_table(rows, factors)


def _with_interval(mean: float, half: float, n: int) -> Any:
    """So many numbers with this mean, and this half of Student's 95 % interval."""
    if n < 2:
        return np.full(n, mean)
    z = np.linspace(-1, 1, n)
    return mean + z * half / mean_interval(z).half


def write(table: Table, path: Path) -> None:
    """Write a table as Parquet, whole or not at all; the same table gives the same bytes."""
    load_pandas()
    with atomic_write(path, parents=True) as file:
        table.to_parquet(file, index=False)


def read(path: Path) -> Table:
    """Read a table back."""
    pandas = load_pandas()
    try:
        return pandas.read_parquet(path)
    except FileNotFoundError:
        raise InputFileError(f"there is no table {path}: run the study first") from None
    except Exception as problem:  # pyarrow has many
        raise InputFileError(f"{path} is not a table, or is damaged: {problem}") from None
