"""One self-contained HTML page: every figure with its numbers, the claims, the methods, how it was made."""

from __future__ import annotations

import base64
import html
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from collegium.agents.optimisation import ADAM, SGD
from collegium.errors import InputFileError
from collegium.fusion import all_methods, coordination_table
from collegium.fusion.oracle import CentralOracle
from collegium.lab import figures, networks
from collegium.lab.claims import Claim
from collegium.lab.laboratory import Laboratory
from collegium.lab.study import Study, repetitions_of
from collegium.lab.table import Table

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --good: #009e73; --bad: #d55e00; --open: #888; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; } img { max-width: 100%; background: white; border-radius: 4px; }
table { border-collapse: collapse; font-size: .85rem; margin: 1rem 0; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td:first-child { white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } details { margin: .5rem 0 1.5rem; }
summary { cursor: pointer; } .wide { overflow-x: auto; } .holds { color: var(--good); font-weight: 600; }
.fails { color: var(--bad); font-weight: 600; } .open { color: var(--open); font-weight: 600; }
"""
_CLASSES = {"holds": "holds", "does not hold": "fails", "undecided": "open"}
_MOST_ROWS = 400
_DRAWING = ("COLOURS", "MARKERS")


def write(lab: Laboratory, names: Sequence[str], path: Path) -> None:
    """Write the report on the finished studies."""
    studies = lab.finished(names)
    claims = lab.claims([study.name for study in studies])
    links = "".join(f"<a href='#{study.name}'>{study.name}</a>" for study in studies)
    body = [
        "<h1>Test-time collaborative classification: what was found</h1>",
        f"<nav>{links}</nav>",
        "<h2>Claims</h2>",
        _claims(claims),
        "<h2>Methods</h2>",
        _methods(),
        *(_study(study, lab.table(study)) for study in studies),
        "<h2>How it was made</h2>",
        _about(lab),
    ]
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Collegium: results</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{_STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as problem:
        raise InputFileError(f"cannot write {path}: {problem.strerror or problem}") from None


def _study(study: Study, table: Table) -> str:
    about = f"{study.figures}. Repetitions: {repetitions_of(table)}."
    parts = [f"<h2 id='{study.name}'>{html.escape(study.title)}</h2><p>{html.escape(about)}</p>"]
    for name, figure in study.draw(table).items():
        coded = base64.b64encode(figures.to_bytes(figure, "png", dpi=110)).decode()
        parts.append(f"<h3>{html.escape(name)}</h3><img alt='{html.escape(name)}' src='data:image/png;base64,{coded}'>")
    parts.append(f"<details><summary>numbers</summary>{_numbers(table)}</details>")
    parts.append(f"<details><summary>parameters</summary>{_listed(_parameters(study))}</details>")
    return "".join(parts)


def _parameters(study: Study) -> dict[str, str]:
    """The constants at the head of the modules that the study's classes are in."""
    found = {}
    for kind in type(study).__mro__:
        for name, value in vars(sys.modules[kind.__module__]).items():
            if name.isupper() and kind.__module__.startswith("collegium.lab.studies") and name not in _DRAWING:
                found[name] = np.array2string(value, precision=4) if isinstance(value, np.ndarray) else repr(value)
    return found


def _listed(rows: dict[str, str]) -> str:
    cells = "".join(f"<tr><td>{name}</td><td>{html.escape(value)}</td></tr>" for name, value in rows.items())
    return f"<div class='wide'><table>{cells}</table></div>"


def _numbers(table: Table) -> str:
    """Means over repetitions, as many rows as are worth scrolling through."""
    shown = table[table["quantity"] != "pixel"]
    keys = ["n0", "quantity", "method", "agent", "round", "x"]
    grouped = shown.groupby(keys, dropna=False, sort=False)["value"].agg(["mean", "std", "count"]).reset_index()
    note = ""
    if len(grouped) > _MOST_ROWS:
        whole = grouped[(grouped["agent"] < 0) | (grouped["quantity"] == "relative gain")]
        note = f"<p>{len(grouped)} rows; {min(len(whole), _MOST_ROWS)} of them here, all in the tables folder.</p>"
        grouped = whole.iloc[:_MOST_ROWS]
    heads = "".join(f"<th>{name}</th>" for name in grouped.columns)
    rows = "".join(
        f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in grouped.itertuples(index=False, name=None)
    )
    return f"{note}<div class='wide'><table><tr>{heads}</tr>{rows}</table></div>"


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f"<td>{html.escape(value)}</td>"
    return f"<td class='number'>{'' if value != value else f'{value:.5g}'}</td>"


def _claims(claims: Sequence[Claim]) -> str:
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in _CLASSES}
    rows = "".join(
        f"<tr><td>{claim.study}</td><td>{html.escape(claim.claim)}</td>"
        f"<td class='{_CLASSES[claim.verdict]}'>{claim.verdict}</td><td>{html.escape(claim.evidence)}</td></tr>"
        for claim in claims
    )
    said = f"{counts['holds']} hold, {counts['does not hold']} do not hold, {counts['undecided']} are undecided"
    heads = "<tr><th>study</th><th>claim</th><th>verdict</th><th>evidence</th></tr>"
    return f"<p>{said}.</p><div class='wide'><table>{heads}{rows}</table></div>"


def _methods() -> str:
    methods = all_methods(networks.cifar(), branch=object(), oracle=CentralOracle(None))
    rows = coordination_table(methods)
    heads = "".join(f"<th>{name}</th>" for name in rows[0])
    cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row.values())}</tr>" for row in rows)
    return f"<div class='wide'><table><tr>{heads}</tr>{cells}</table></div>"


def _about(lab: Laboratory) -> str:
    facts = {
        "CIFAR-10 network": repr(networks.cifar()),
        "ModelNet network": repr(networks.modelnet()),
        "CIFAR-10 training": repr(ADAM),
        "ModelNet training": repr(SGD),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    for name in ("collegium", "numpy", "scipy", "scikit-learn", "torch", "numba", "pandas"):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            continue
    plan = lab.folder / "plan.json"
    settings = html.escape(plan.read_text()) if plan.exists() else ""
    return f"{_listed(facts)}<h3>settings and seed of the last run</h3><pre>{settings}</pre>"
