"""A summary small enough to keep: means with intervals as CSV, figures as PNG, errors and claims as a page."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from collegium._util import machine, plugins
from collegium._util.measures import mean_interval
from collegium.errors import InputFileError
from collegium.lab import figures, statements
from collegium.lab import table as tables
from collegium.lab.laboratory import Laboratory
from collegium.lab.studies import STUDIES, find
from collegium.lab.studies.setup import Setup
from collegium.lab.study import PAIRED, Options, Origin, Study, about
from collegium.lab.table import Table, means

_STATEMENTS = "Statement by statement; the evidence is below, claim by claim."
_DPI = 90
_ERRORS = "In % of the decisions, with 95 % intervals over repetitions; in brackets how many, where a method has fewer."


def write(lab: Laboratory, names: Sequence[str], folder: Path) -> list[Path]:
    """Write the summary of the finished studies into a folder; gives the files."""
    studies = lab.finished(names)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = [path for study in studies for path in (_means(lab, study, folder), *_figures(lab, study, folder))]
        page = folder / "README.md"
        page.write_text(_page(lab, studies, _summary_command(folder, names), _records_of(folder)), encoding="utf-8")
    except OSError as problem:
        raise InputFileError(f"cannot write into {folder}: {problem.strerror or problem}") from None
    return [*made, page]


def redraw(folder: Path, names: Sequence[str]) -> list[Path]:
    """Draw the figures of a summary again from its CSVs, where records and tables are gone; gives the files.

    Only those that it has a picture of, none with pixels, which no CSV has, and none that means do not tell. Where a
    curve is a mean over agents its interval is the mean of theirs, which is at least as wide as it should be.
    """
    made = []
    there = [one.name for one in STUDIES.values() if not isinstance(one, Setup)]
    for study in find(names or there):
        path = folder / f"{study.name}.csv"
        if not names and not path.exists():
            continue
        with np.errstate(invalid="ignore"):  # the logarithm of a temperature that was never fitted
            drawn = study.draw(tables.restored(path, study.name, study.factors))
        for name, figure in drawn.items():
            picture = folder / f"{name}.png"
            if picture.exists() and not name.endswith(study.beyond_means):
                figures.save(figure, picture, dpi=_DPI)
                made.append(picture)
    if not made:
        raise InputFileError(f"there is nothing to draw again in {folder}: it has no CSV and PNG of one study")
    return made


def _means(lab: Laboratory, study: Study, folder: Path) -> Path:
    table = lab.table(study)
    table = table[table["quantity"] != "pixel"]
    path = folder / f"{study.name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        columns, rows = means(table, study.factors)
        writer.writerow(columns)
        for row in rows:
            writer.writerow([_digits(value) if isinstance(value, float) else value for value in row])
    return path


def _digits(value: float) -> str:
    return "" if value != value else f"{value:.6g}"


def _figures(lab: Laboratory, study: Study, folder: Path) -> list[Path]:
    made = []
    for name, figure in _drawn(lab.table(study), study).items():
        path = folder / f"{name}.png"
        figures.save(figure, path, dpi=_DPI)
        made.append(path)
    return made


def _drawn(table: Table, study: Study) -> dict[str, Any]:
    """The figures; those that show items of the data sets, which are not ours to hand on, with drawings instead."""
    return study.draw(table) | (study.stand_ins() if isinstance(study, Setup) else {})


def _records_of(folder: Path) -> str | None:
    """Where the records of a summary are kept: in it, or beside it for several of them."""
    for place in (folder / "records", folder.parent / "records"):
        if place.is_dir():
            return f"{place.parent.name}/{place.name}" if place.is_absolute() else place.as_posix()
    return None


def _page(lab: Laboratory, studies: Sequence[Study], command: str, kept: str | None) -> str:
    """How it was made, errors, claims, then every study with its figures; `kept`: where its records are."""
    tables = {study: lab.table(study) for study in studies}
    lines = [
        "# Results",
        "",
        "Made by `collegium study summary` from a real run; items are drawings: the data are not ours to hand on.",
        "",
        f"Summed up on {_machine()}. These commands ask for the same N_0 and as many repetitions, and write this page:",
        "",
        "```console",
        *_commands(tables, kept),
        command,
        "```",
    ]
    errors = {study: _errors(table) for study, table in tables.items()}
    if any(errors.values()):
        lines += ["", "## Errors", "", _ERRORS]
    for study, rows in errors.items():
        if rows:
            lines += ["", f"### {study.name}", "", *rows]
            paired = _errors(tables[study], PAIRED)
            if paired:
                lines += ["", "Less the error of ours in the same repetition, in percentage points:", "", *paired]
    claims = lab.claims([study.name for study in studies])
    stated = statements.table(claims)
    if stated:
        lines += ["", "## What the paper says", "", _STATEMENTS, "", *stated]
    lines += ["", "## Claims", "", "| study | claim | verdict | of | evidence |", "|---|---|---|---|---|"]
    shown = {study.name: study.figures for study in studies}
    lines += [f"| {c.study} | {c.claim} | {c.verdict} | {shown[c.study]} | {c.evidence} |" for c in claims]
    for study, table in tables.items():
        lines += ["", f"## {study.title}", "", about(study, table), ""]
        listed = study.tabulate(table)
        if listed:
            lines += [_row(listed[0]), "|---" * len(listed[0]) + "|", *(_row(row.values()) for row in listed), ""]
        lines += [f"![{name}]({name}.png)" for name in _drawn(table, study)]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _machine() -> str:
    known = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {})
    memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory" if known else ""
    numbers = machine.versions(("collegium", "numpy", "scipy", "scikit-learn", "torch", "numba", "pandas"))
    packages = ", ".join(f"{name} {number}" for name, number in numbers.items())
    here = f"{platform.machine()}, cores: {machine.cores()}{memory}, {platform.system()}"
    return f"{here}; Python {platform.python_version()}, {packages}"


def _commands(tables: dict[Study, Table], kept: str | None) -> list[str]:
    """Studies that are asked for in the same way come in one command; what is kept need not be trained."""
    together: dict[str, list[str]] = {}
    for study, table in tables.items():
        origin = study.origin or Origin(study.name)
        own = (f" --{name} {plugins.short(one)}" for name, one in origin._asdict().items() if name != "study" and one)
        together.setdefault("".join(own) + _asked(study, table), []).append(plugins.short(origin.study))
    if kept:
        together = {" --available": [name for names in together.values() for name in names]}
    first = [f"collegium study import {kept} --out results"] if kept else []
    return first + [f"collegium study run {' '.join(names)}{asked} --out results" for asked, names in together.items()]


def _summary_command(folder: Path, names: Sequence[str]) -> str:
    """Of a folder somewhere on this machine only the name is worth telling."""
    words = [folder.name if folder.is_absolute() else folder.as_posix(), *map(plugins.short, names)]
    return f"collegium study summary {' '.join(words)} --out results"


def _asked(study: Study, table: Table) -> str:
    """The options that give these sizes and repetitions: as few as will do."""
    several = "data" in table
    sets = table["data"] if several else [""] * len(table)
    found = {(one, int(n0), int(r)) for one, n0, r in zip(sets, table["n0"], table["repetition"], strict=True) if n0}
    if not found or not study.jobs(Options()):
        return ""
    sizes = tuple(sorted({n0 for _, n0, _ in found}))
    n0, reps = f" --n0 {','.join(map(str, sizes))}", 1 + max(r for *_, r in found)
    ways = {
        "": Options(),
        n0: Options(n0=sizes),
        f"{n0} --reps {reps}": Options(reps, sizes),
        f" --reps {reps}": Options(reps),
    }
    untrained = any(job.methods for job in study.jobs(Options())) and not table["method"].isin(["AdaBoost"]).any()
    without = " --trained 0" if untrained else ""
    for words, options in ways.items():
        if {(job.dataset if several else "", job.n0, job.repetition) for job in study.jobs(options)} == found:
            return words + without
    return f"{n0} --reps {reps}{without}"


def _errors(table: Table, quantity: str = "error") -> list[str]:
    """A row per method, a column per N_0, and per data set where a study has several.

    A cell with fewer repetitions than its column says how many it has.
    """
    whole = table[(table["quantity"] == quantity) & (table["agent"] < 0) & (table["round"] < 0)]
    if not len(whole):
        return []
    keys = ["data", "n0"] if "data" in whole else ["n0"]
    columns = {
        key: (part.index, part["repetition"].nunique()) for key, part in whole.groupby(keys, sort="data" not in whole)
    }
    lines = ["| method | " + " | ".join(_head(key, count) for key, (_, count) in columns.items()) + " |"]
    lines += ["|---|" + "---|" * len(columns)]
    for method, part in whole.groupby("method", sort=False):
        cells = []
        for index, count in columns.values():
            values = part.loc[part.index.intersection(index), "value"].to_numpy()
            cells.append(_cell(100 * values) + (f" ({len(values)})" if 0 < len(values) < count else ""))
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def _head(key: tuple[Any, ...], count: int) -> str:
    *data, n0 = key
    return f"{''.join(f'{name}, ' for name in data)}N_0 = {n0}, {count} repetition{'s' * (count != 1)}"


def _cell(values: Any) -> str:
    if not len(values):
        return "–"
    mean, half = mean_interval(values)
    return f"{mean:.1f}" if half != half else f"{mean:.1f} ± {half:.1f}"
