"""Results as one tidy table: a row per number, and nothing but these columns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from collegium._util.files import atomic_write
from collegium.errors import BackendError, InputFileError

Table = Any
"""A pandas table with the columns of `Row`."""


class Row(NamedTuple):
    """One number of a study."""

    study: str
    n0: int
    repetition: int
    quantity: str
    """What the number is: error, mean of a class, correlation …"""
    method: str
    """Who decided, or under which setting."""
    agent: int
    """-1 where it is no single agent's."""
    round: int
    """-1 where it is of no round."""
    value: float
    x: float = float("nan")
    """The setting that is varied, where there is one besides N_0 and rounds."""


def load_pandas() -> Any:
    """The pandas package, or the sentence that says how to get it."""
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        raise BackendError("the laboratory's tables need the extra: pip install 'collegium[lab]'") from None
    return pandas


def to_table(rows: Iterable[Row]) -> Table:
    """Rows as a table, in the order given."""
    pandas = load_pandas()
    return pandas.DataFrame(list(rows), columns=list(Row._fields))


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
