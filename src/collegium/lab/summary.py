"""A summary small enough to keep: means with intervals as CSV, figures as PNG, the claims as a page."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collegium.errors import InputFileError
from collegium.lab import figures
from collegium.lab.laboratory import Laboratory
from collegium.lab.study import Study, repetitions_of
from collegium.lab.table import Table
from collegium.measures import mean_interval

_KEYS = ["n0", "quantity", "method", "agent", "round", "x"]


def write(lab: Laboratory, names: Sequence[str], folder: Path) -> list[Path]:
    """Write the summary of the finished studies into a folder; gives the files."""
    studies = lab.finished(names)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = [path for study in studies for path in (_means(lab, study, folder), *_figures(lab, study, folder))]
        page = folder / "README.md"
        page.write_text(_page(lab, studies), encoding="utf-8")
    except OSError as problem:
        raise InputFileError(f"cannot write into {folder}: {problem.strerror or problem}") from None
    return [*made, page]


def _means(lab: Laboratory, study: Study, folder: Path) -> Path:
    table = lab.table(study)
    table = table[table["quantity"] != "pixel"]
    path = folder / f"{study.name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*_KEYS, "mean", "ci95", "repetitions"])
        for key, part in table.groupby(_KEYS, dropna=False, sort=False):
            mean, half = mean_interval(part["value"].to_numpy())
            cells = ["" if value != value else f"{value:.6g}" for value in (mean, half)]
            writer.writerow([*("" if value != value else value for value in key), *cells, len(part)])
    return path


def _figures(lab: Laboratory, study: Study, folder: Path) -> list[Path]:
    made = []
    for name, figure in _drawn(lab.table(study), study).items():
        path = folder / f"{name}.png"
        figures.save(figure, path, dpi=90)
        made.append(path)
    return made


def _drawn(table: Table, study: Study) -> dict[str, Any]:
    """The figures, without those that show items of the data sets: these are not ours to hand on."""
    figures = study.draw(table)
    if (table["quantity"] == "pixel").any():
        return {name: figure for name, figure in figures.items() if name.endswith("-network")}
    return figures


def _page(lab: Laboratory, studies: Sequence[Study]) -> str:
    """Claims, then every study with its figures."""
    claims = lab.claims([study.name for study in studies])
    lines = [
        "# Results",
        "",
        "Made by `collegium study summary` from a real run; pictures of items stay with the data.",
        "",
        "## Claims",
        "",
    ]
    lines += ["| study | claim | verdict | evidence |", "|---|---|---|---|"]
    lines += [f"| {c.study} | {c.claim} | {c.verdict} | {c.evidence} |" for c in claims]
    for study in studies:
        table = lab.table(study)
        lines += ["", f"## {study.title}", "", f"{study.figures}. Repetitions: {repetitions_of(table)}.", ""]
        lines += [f"![{name}]({name}.png)" for name in _drawn(table, study)]
    return "\n".join(lines) + "\n"
