"""`collegium simulate`: scores and a network in; decisions, errors, transmissions and bits out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from collegium.cli import compiled
from collegium.cli.complete import among
from collegium.cli.network_argument import NETWORK_HELP, PolicyName, complete_network, read_network_or_policy
from collegium.cli.rules import Bits, Bound, RuleName, read_rule
from collegium.cli.score_tables import CLASSES_HELP, LABELS_HELP, SCORES_HELP, Scores, read_scores
from collegium.cli.tables import check_output, write_table
from collegium.errors import RuleError

if TYPE_CHECKING:
    from collegium.network import Run

MAILBOXES = ("hold-last", "hold-last:hold", "renormalise")
LINKS = ("perfect", "lossy:0.3,seed=1", "delayed:2", "cut:[0,1],5,9")
"""As they are written."""


def simulate(
    scores: Annotated[Path, typer.Argument(help=SCORES_HELP)],
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
    labels: Annotated[str | None, typer.Option(metavar="FILE|COLUMN", help=LABELS_HELP)] = None,
    classes: Annotated[str | None, typer.Option(metavar="A,B,…", help=CLASSES_HELP)] = None,
    seed: Annotated[int, typer.Option(help="For rules that draw.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every decision (CSV, NPY or Parquet).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw error against rounds, which needs labels, or one --item.")
    ] = None,
    item: Annotated[
        str | None, typer.Option(metavar="ITEM", help="Draw this item's statistics, by its name or place.")
    ] = None,
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
    table = read_scores(scores, labels, classes)
    place = None if item is None else _place(item, table)
    if plot is None and item is not None:
        raise RuleError("--item says what to draw: give --plot too")
    if plot is not None and place is None and (table.labels is None or not len(table.labels)):
        raise RuleError("--plot draws errors and needs labels of at least one item: give --labels, or --item to draw")
    chosen_mailbox, chosen_links = registry.from_text(mailbox, "mailbox"), registry.from_text(links, "links")
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
    errors = None if table.labels is None else run.errors(table.labels, table.classes or None)
    if plot is not None and place is not None:
        shown = table.class_names or ("+1", "-1")
        plots.save(plots.statistic_figure(run, place, shown, f"item {item}: {chosen} on {network}"), plot)
    elif plot is not None and errors is not None:
        plots.save(plots.error_figure(errors, {}, f"{chosen} on {network}"), plot)
    names = table.class_names or None
    if out is not None:
        _write(out, run, names)
    if as_json:
        typer.echo(json.dumps(_facts(run, errors, names), allow_nan=False))
    else:
        _print(run, errors, names, out, plot)


def _place(item: str, table: Scores) -> int:
    names = [str(name) for name in range(len(table.values))] if table.items is None else list(map(str, table.items))
    if item not in names:
        raise RuleError(f"there is no item {item!r}: they are {', '.join(names[:3])} …")
    return names.index(item)


def _decisions(run: Run, names: tuple[str, ...] | None) -> NDArray[Any]:
    """+1 and -1, or the classes' names where there are several."""
    return run.decisions() if run.numbers == 1 or names is None else np.array(names)[run.decisions()]


def _facts(run: Run, errors: Any, names: tuple[str, ...] | None) -> dict[str, Any]:
    n, K = run.statistics.shape[1:3]
    return {
        "agents": K,
        "items": n,
        "rounds": run.rounds,
        "classes": names,  # of the decisions +1 and -1, or of the entries of a statistic
        "item_names": run.items,
        "decisions": _decisions(run, names).tolist(),
        "statistics": run.statistics[-1].tolist(),
        "errors": None if errors is None or not n else errors.tolist(),
        "transmissions": run.transmissions.tolist(),
        "bits": run.bits.tolist(),
    }


def _write(path: Path, run: Run, names: tuple[str, ...] | None) -> None:
    n, K = run.statistics.shape[1:3]
    plain = path.suffix.lower() == ".npy"  # numbers only
    numbered = np.arange(n) if run.items is None or plain else np.array(run.items)
    decisions = _decisions(run, None if plain else names)
    columns = {"item": numbered} | {f"agent {k}": decisions[:, k] for k in range(K)}
    write_table(path, columns | {"transmissions": run.transmissions, "bits": run.bits})


def _print(run: Run, errors: Any, names: tuple[str, ...] | None, out: Path | None, plot: Path | None) -> None:
    console = Console(highlight=False, markup=False)
    n, K = run.statistics.shape[1:3]
    console.print(str(run))
    if not n:
        return
    decisions = _decisions(run, names)
    agreed = (decisions == decisions[:, :1]).all(axis=1).mean()
    console.print(f"all {K} agents agree on {100 * agreed:.1f} % of the items")
    if run.numbers > 1 and names is not None:
        console.print(f"{run.numbers} classes: {', '.join(names)}")
    elif names is not None and errors is not None:
        console.print(f"+1 is {names[0]}, -1 is {names[1]}")
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
            table.add_row(
                str(i) if run.items is None else str(run.items[i]),
                *(f"{label:+d}" if run.numbers == 1 else str(label) for label in row),
            )
        console.print(table)
    elif out is None:
        console.print("decisions: --out FILE writes them all, --json prints them")
    for path in (out, plot):
        if path is not None:
            console.print(f"written: {path}")
