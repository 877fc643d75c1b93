"""`collegium data split`: the columns of one table dealt out to K agents, a file for each."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from collegium._util.files import atomic_write
from collegium.cli.tables import ITEM_NAMES, LABEL_NAMES
from collegium.data.columns import split_columns
from collegium.errors import DataError, InputFileError, brief


def split(
    table: Annotated[Path, typer.Argument(metavar="TABLE.csv", help="A table with a line of column names.")],
    agents: Annotated[int, typer.Option(metavar="K", help="How many agents share the columns.")],
    to: Annotated[Path, typer.Option(metavar="DIR", help="Where agent-1.csv … agent-K.csv go.")],
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column that every agent has; repeatable. By itself those named item, id, label or y.",
        ),
    ] = None,
    correlation: Annotated[
        float, typer.Option(metavar="0…1", help="0: views as independent as they can be; 1: as alike as they can be.")
    ] = 0.5,
    balance: Annotated[
        float, typer.Option(metavar="ALPHA", help="Equal numbers of columns (inf), any (1), very unequal (0.2).")
    ] = np.inf,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same split.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Deal the columns of a table out to K agents, to plan a network before the data are split for real."""
    names, rows = _read(table)
    usual = [place for place, name in enumerate(names) if name.strip().lower() in (*ITEM_NAMES, *LABEL_NAMES)]
    kept = usual if keep is None else [_place(names, one, table) for one in keep]
    if keep is None and kept:
        typer.echo(f"every agent has {', '.join(names[one] for one in kept)}; --keep says otherwise", err=True)
    dealt = [place for place in range(len(names)) if place not in kept]
    try:
        numbers = np.array([_codes([row[place] for row in rows]) for place in dealt]).T.reshape(len(rows), len(dealt))
        found = split_columns(numbers, agents, correlation=correlation, balance=balance, seed=seed)
    except DataError as problem:
        raise DataError(f"{table}: {problem}") from None
    for number in (re.fullmatch(r"agent-(\d+)\.csv", path.name) for path in to.glob("agent-*.csv")):
        if number is not None and int(number[1]) > agents:
            raise InputFileError(f"{to} has {number[0]} of another split: choose a new folder, or remove this one")
    files = {}
    for agent, chosen in enumerate(found.columns, 1):
        places = [*kept, *(dealt[one] for one in chosen)]
        file = to / f"agent-{agent}.csv"
        text = io.StringIO(newline="")
        csv.writer(text).writerows([row[place] for place in places] for row in [names, *rows])
        with atomic_write(file, parents=True) as written:
            written.write(text.getvalue().encode())
        files[str(file)] = [names[dealt[one]] for one in chosen]
    if as_json:
        facts = {"correlation": found.correlation, "lowest": found.lowest, "highest": found.highest, "files": files}
        typer.echo(json.dumps(facts))
        return
    for name, columns in files.items():
        typer.echo(f"{name}: {', '.join(columns)}")
    typer.echo(
        f"mean rank correlation between columns of different agents: {found.correlation:.3f} "
        f"(possible: {found.lowest:.3f} to {found.highest:.3f})"
    )


def _read(table: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with table.open(newline="") as text:
            names, *rows = [row for row in csv.reader(text) if row]
    except OSError as problem:
        raise InputFileError(f"{table} cannot be read: {problem.strerror or problem}") from None
    except (UnicodeDecodeError, csv.Error) as problem:
        raise InputFileError(f"{table} cannot be read: {brief(problem)}") from None
    except ValueError:
        raise InputFileError(f"{table} is empty: it needs a line of column names and a line per item") from None
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise InputFileError(f"{table}: row {number} has {len(row)} fields, the first line names {len(names)}")
    return names, rows


def _place(names: list[str], name: str, table: Path) -> int:
    if name not in names:
        raise InputFileError(f"{table} has no column {name!r}; it has {', '.join(names)[:300]}")
    return names.index(name)


def _codes(values: list[str]) -> list[float]:
    """Numbers as they are; words by their alphabetical order; nothing stands for the least."""
    try:
        numbers = [float(value) if value.strip() else -np.inf for value in values]
    except ValueError:
        order = {word: float(place) for place, word in enumerate(sorted(set(values)))}
        return [order[value] for value in values]
    least = min((number for number in numbers if np.isfinite(number)), default=0.0)
    return [number if np.isfinite(number) else least - 1 for number in numbers]
