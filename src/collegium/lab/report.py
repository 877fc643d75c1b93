"""One self-contained HTML page: every figure with its numbers, the claims, the methods, how it was made."""

from __future__ import annotations

import html
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from collegium import plots
from collegium._util import machine, page
from collegium.agents.optimisation import ADAM, SGD
from collegium.fusion import all_methods, coordination_table
from collegium.fusion.oracle import CentralOracle
from collegium.lab import study_networks
from collegium.lab.claims import Claim
from collegium.lab.laboratory import Laboratory
from collegium.lab.study import Study, about
from collegium.lab.table import Table, means

_CLASSES = {"holds": "holds", "does not hold": "fails", "undecided": "open", "depends on the graph": "open"}
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
    page.write(path, "Collegium: results", body)


def _study(study: Study, table: Table) -> str:
    parts = [f"<h2 id='{study.name}'>{html.escape(study.title)}</h2><p>{html.escape(about(study, table))}</p>"]
    rows = study.tabulate(table)
    if rows:
        parts.append(page.table(rows[0], ([page.cell(value) for value in row.values()] for row in rows)))
    for name, figure in study.draw(table).items():
        parts.append(f"<h3>{html.escape(name)}</h3>{page.image(plots.to_bytes(figure, 'png', dpi=110), name)}")
    parts.append(f"<details><summary>numbers</summary>{_numbers(study, table)}</details>")
    parts.append(f"<details><summary>parameters</summary>{page.listed(_parameters(study))}</details>")
    return "".join(parts)


def _parameters(study: Study) -> dict[str, str]:
    """The constants at the head of the modules that the study's classes are in."""
    found = {}
    for kind in type(study).__mro__:
        if not issubclass(kind, Study) or kind.__module__ == Study.__module__:
            continue
        for name, value in vars(sys.modules[kind.__module__]).items():
            if name.isupper() and name not in _DRAWING:
                found[name] = np.array2string(value, precision=4) if isinstance(value, np.ndarray) else repr(value)
    return found


def _numbers(study: Study, table: Table) -> str:
    """Means over repetitions, as many rows as are worth scrolling through."""
    shown = table[table["quantity"] != "pixel"]
    columns, rows = means(shown, study.factors)
    note = ""
    if len(rows) > _MOST_ROWS:
        quantity, agent = columns.index("quantity"), columns.index("agent")
        whole = [row for row in rows if row[agent] < 0 or row[quantity] == "relative gain"][:_MOST_ROWS]
        note = f"<p>{len(rows)} rows; {len(whole)} of them here, all in the tables folder.</p>"
        rows = whole
    return f"{note}{page.table(columns, ([page.cell(value) for value in row] for row in rows))}"


def _claims(claims: Sequence[Claim]) -> str:
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in _CLASSES}
    rows = (
        [
            page.cell(one.study),
            page.cell(one.claim, "claim"),
            page.cell(one.verdict, _CLASSES[one.verdict]),
            page.cell(one.evidence),
        ]
        for one in claims
    )
    said = f"{counts['holds']} hold, {counts['does not hold']} do not hold, {counts['undecided']} are undecided"
    if counts["depends on the graph"]:
        said += f", {counts['depends on the graph']} depend on the graph"
    return f"<p>{said}.</p>{page.table(('study', 'claim', 'verdict', 'evidence'), rows)}"


def _methods() -> str:
    methods = all_methods(study_networks.of(9), branch=object(), oracle=CentralOracle(None))
    rows = coordination_table(methods)
    return page.table(rows[0], ([page.cell(value) for value in row.values()] for row in rows))


def _about(lab: Laboratory) -> str:
    facts = {
        "CIFAR-10 network": repr(study_networks.of(9)),
        "ModelNet network": repr(study_networks.of(12)),
        "CIFAR-10 training": repr(ADAM),
        "ModelNet training": repr(SGD),
        "machine": machine.description(),
        "python": platform.python_version(),
    }
    facts |= machine.versions(("collegium", "numpy", "scipy", "scikit-learn", "torch", "numba", "pandas"))
    plan = lab.folder / "plan.json"
    settings = html.escape(plan.read_text()) if plan.exists() else ""
    return f"{page.listed(facts)}<h3>settings and seed of the last run</h3><pre>{settings}</pre>"
