"""`collegium simulate`: scores and a network in; decisions, errors, transmissions and bits out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from collegium.cli import compiled
from collegium.cli.complete import among
from collegium.cli.labelled import read_classes
from collegium.cli.network_argument import NETWORK_HELP, PolicyName, complete_network, read_network_or_policy
from collegium.cli.rules import Bits, Bound, RuleName, read_rule
from collegium.cli.tables import Scores, check_output, read_scores, write_table
from collegium.errors import RuleError

if TYPE_CHECKING:
    from collegium.network import Run

MAILBOXES = ("hold-last", "hold-last:hold", "renormalise")
LINKS = ("perfect", "lossy:0.3,seed=1", "delayed:2", "cut:[0,1],5,9")
"""As they are written."""


def simulate(
    scores: Annotated[Path, typer.Argument(help="Scores, a row per item and a column per agent: CSV, NPY or Parquet.")],
    network: Annotated[str, typer.Argument(metavar="NETWORK", help=NETWORK_HELP, autocompletion=complete_network)],
    policy: PolicyName = None,
    rounds: Annotated[int | None, typer.Option(help="Communication rounds; those of a network file, or 20.")] = None,
    rule: RuleName = None,
    bits: Bits = None,
    bound: Bound = None,
    mailbox: Annotated[
        str,
        typer.Option(
            help=f"What a silent or lost message stands for: {', '.join(MAILBOXES)}.", autocompletion=among(*MAILBOXES)
        ),
    ] = "hold-last",
    links: Annotated[
        str, typer.Option(help=f"What gets through: {', '.join(LINKS)}.", autocompletion=among(*LINKS))
    ] = "perfect",
    labels: Annotated[
        str | None, typer.Option(metavar="FILE|COLUMN", help="True classes; a column named label is found by itself.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="FIRST,SECOND", help="Which label is +1 and which is -1.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For rules that draw.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every decision (CSV, NPY or Parquet).")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw error against rounds; needs labels.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Run agents with these scores over a network, and see what they decide and what it costs."""
    from collegium import kernels
    from collegium.network import collaborate
    from collegium.protocol import registry

    check_output(out)
    if plot is not None:
        from collegium import plots

        plots.check_name(plot)
    table = read_scores(scores, labels)
    if plot is not None and (table.labels is None or not len(table.labels)):
        raise RuleError("--plot draws errors and needs labels of at least one item: give --labels")
    chosen_mailbox, chosen_links = registry.from_text(mailbox, "mailbox"), registry.from_text(links, "links")
    names = read_classes(classes, table.labels)
    built, file = read_network_or_policy(network, policy)
    rounds = (20 if file is None else file.rounds) if rounds is None else rounds
    if file is not None and rule is None and bits is None and bound is None:
        chosen = file.rule
    else:
        chosen = read_rule(rule or "degroot", bits, bound, rounds, float(np.abs(table.values).max(initial=0.0)))
    items = table.items
    if kernels.numbers(chosen) is not None:
        compiled.announce()
    run = collaborate(
        table.values, built, rounds, chosen, seed, items=items, mailbox=chosen_mailbox, links=chosen_links
    )
    errors = None if table.labels is None else run.errors(table.labels, names)
    if plot is not None and errors is not None:
        plots.save(plots.error_figure(errors, {}, f"{chosen} on {network}"), plot)
    if out is not None:
        _write(out, run)
    if as_json:
        typer.echo(json.dumps(_facts(run, errors, _class_names(table, names)), allow_nan=False))
    else:
        _print(run, errors, _class_names(table, names), out, plot)


def _class_names(table: Scores, names: list[Any] | None) -> list[str] | None:
    """The labels of the classes +1 and -1, in this order."""
    if table.labels is None or not len(table.labels):
        return None
    return [str(name) for name in (names or sorted(set(table.labels.tolist()), reverse=True))]


def _facts(run: Run, errors: Any, classes: list[str] | None) -> dict[str, Any]:
    n, K = run.statistics.shape[1:]
    return {
        "agents": K,
        "items": n,
        "rounds": run.rounds,
        "classes": classes,  # of the decisions +1 and -1
        "item_names": run.items,
        "decisions": run.decisions().tolist(),
        "statistics": run.statistics[-1].tolist(),
        "errors": None if errors is None or not n else errors.tolist(),
        "transmissions": run.transmissions.tolist(),
        "bits": run.bits.tolist(),
    }


def _write(path: Path, run: Run) -> None:
    n, K = run.statistics.shape[1:]
    numbered = np.arange(n) if run.items is None or path.suffix.lower() == ".npy" else np.array(run.items)
    columns = {"item": numbered} | {f"agent {k}": run.decisions()[:, k] for k in range(K)}
    write_table(path, columns | {"transmissions": run.transmissions, "bits": run.bits})


def _print(run: Run, errors: Any, classes: list[str] | None, out: Path | None, plot: Path | None) -> None:
    console = Console(highlight=False, markup=False)
    n, K = run.statistics.shape[1:]
    console.print(str(run))
    if not n:
        return
    decisions = run.decisions()
    agreed = (decisions == decisions[:, :1]).all(axis=1).mean()
    console.print(f"all {K} agents agree on {100 * agreed:.1f} % of the items")
    if classes is not None:
        console.print(f"+1 is {classes[0]}, -1 is {classes[1]}")
    if errors is not None:
        table = Table("round", "mean error", "best agent", "worst agent", title="error in %", title_justify="left")
        for t in sorted({t for t in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, run.rounds) if t <= run.rounds}):
            row = 100 * errors[t]
            table.add_row(
                str(t), f"{row.mean():.2f}", f"{row.min():.2f} ({row.argmin()})", f"{row.max():.2f} ({row.argmax()})"
            )
        console.print(table)
    if out is None and n * K <= 400:
        table = Table("item", *(f"agent {k}" for k in range(K)), title="decisions", title_justify="left")
        for i, row in enumerate(decisions):
            table.add_row(str(i) if run.items is None else str(run.items[i]), *(f"{label:+d}" for label in row))
        console.print(table)
    elif out is None:
        console.print("decisions: --out FILE writes them all, --json prints them")
    for path in (out, plot):
        if path is not None:
            console.print(f"written: {path}")
