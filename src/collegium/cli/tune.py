"""`collegium tune`: agents learn how much each should count, from labelled scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from collegium.cli.complete import among
from collegium.cli.labelled import internal, read_record
from collegium.cli.network_argument import (
    NETWORK_HELP,
    NetworkOption,
    PolicyName,
    complete_network,
    either,
    read_network_or_policy,
)
from collegium.cli.rules import Bits, Bound, RuleName, read_rule
from collegium.cli.score_tables import CLASSES_HELP, LABELS_HELP, SCORES_HELP, read_scores
from collegium.cli.swapped import alone, hint_swapped
from collegium.cli.tables import check_output, write_table
from collegium.errors import InputFileError, LabelError

if TYPE_CHECKING:
    from collegium.tuning import Tuning

ABOUT = 1e-3
"""Averages that are off by more than this share make errors of held-out items approximate."""


def tune(
    scores: Annotated[Path, typer.Argument(help=SCORES_HELP)],
    network: Annotated[
        str | None,
        typer.Argument(
            metavar="NETWORK",
            help=f"{NETWORK_HELP} Or exact: any two agents may be linked, and averages take the fewest messages.",
            autocompletion=complete_network,
        ),
    ] = None,
    network_option: NetworkOption = None,
    policy: PolicyName = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Communication rounds; by default those of a network file or schedule, or as many as reach the limit."
        ),
    ] = None,
    rule: RuleName = None,
    bits: Bits = None,
    bound: Bound = None,
    links: Annotated[
        str, typer.Option(help="What gets through: perfect, or lossy:0.3,1 (3 of 10 messages lost, seed 1).")
    ] = "perfect",
    passes: Annotated[
        int | None,
        typer.Option(min=1, help="How often what was heard is averaged again; by default until it is within 1 %."),
    ] = None,
    labels: Annotated[str | None, typer.Option(metavar="FILE|COLUMN", help=LABELS_HELP)] = None,
    classes: Annotated[str | None, typer.Option(metavar="A,B,…", help=CLASSES_HELP)] = None,
    loss: Annotated[
        str, typer.Option(help="logistic or ridge.", autocompletion=among("logistic", "ridge"))
    ] = "logistic",
    per_class: Annotated[bool, typer.Option("--per-class", help="A gain per agent and class.")] = False,
    conversations: Annotated[
        int | None, typer.Option(min=1, help="Directions to go; by default 1, or 4 from 20 items per agent on.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the gains (CSV or Parquet).")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the gains.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Let agents learn how much each should count, from averages of labelled items over a network.

    Of a score record the validation items teach, and the test items show what came of it.
    """
    from collegium import schedule, tuning
    from collegium.protocol import registry
    from collegium.tuning.conversation import averaging

    network = either(network, network_option)
    check_output(out, (".csv", ".parquet"))
    if plot is not None:
        from collegium import plots

        plots.check_name(plot)
    values, y, names, class_names, test = _read(scores, labels, classes)
    K = values.shape[1]
    hint_swapped(alone(values, y), len(y), 1 if values.ndim == 2 else values.shape[2])
    over, file = read_network_or_policy(f"exact:{K}" if network == "exact" else network, policy)
    get_through = registry.from_text(links, "links")
    if file is None and rule is None and bits is None and bound is None:
        over, chosen = averaging(over, rounds, None, get_through), None
    elif file is not None and rule is None and bits is None and bound is None:
        rounds, chosen = file.rounds if rounds is None else rounds, file.rule
    else:
        rounds = (schedule.own_rounds(over) if file is None else file.rounds) if rounds is None else rounds
        seen = [values] if test is None else [values, test[0]]
        largest = max(float(np.abs(np.nan_to_num(part)).max(initial=0.0)) for part in seen)
        chosen = read_rule(rule, bits, bound, rounds, largest, over.rule, over)
    found = tuning.tune(
        values, y, over, rounds, chosen, loss=loss, per_class=per_class, conversations=conversations, passes=passes,
        links=get_through,
    )  # fmt: skip
    after = None if test is None else _errors(found, test, over, rounds, chosen)
    facts = _facts(found, names, after) | {"classes": list(class_names)}
    if out is not None:
        write_table(out, _columns(found, names, class_names))
    if plot is not None:
        title = f"{_kept(found, names)}; {found.labelled_items} labelled items"
        plots.save(plots.gains_figure(found.gains, names, title, class_names), plot)
    if as_json:
        typer.echo(json.dumps(facts, allow_nan=False))
    else:
        _print(found, names, class_names, after, [path for path in (out, plot) if path is not None])


def _read(
    path: Path, labels: str | None, classes: str | None
) -> tuple[Any, Any, tuple[str, ...], tuple[str, ...], Any]:
    """Labelled scores, the names of agents and classes, and items to see what came of it, if there are any."""
    if path.suffix.lower() == ".npz":
        if labels is not None or classes is not None:
            raise InputFileError(f"{path} is a score record and has its own labels: leave out --labels and --classes")
        record = read_record(path)
        return record.val, record.y_val, record.agent_names, record.class_names, (record.test, record.y_test)
    table = read_scores(path, labels, classes)
    if table.labels is None:
        raise LabelError(f"{path} has no column named label: give --labels, a column or a file")
    names = table.agents or tuple(f"agent {k}" for k in range(table.values.shape[1]))
    return table.values, internal(table, table.labels), names, table.class_names, None


def _errors(found: Tuning, test: Any, over: Any, rounds: int | None, rule: Any) -> tuple[float, float]:
    from collegium.network import collaborate

    scores, y = test
    return tuple(  # type: ignore[return-value]
        float(collaborate(x, over, rounds, rule, record="final").errors(y)[-1].mean()) for x in (scores, found(scores))
    )


def _facts(found: Tuning, names: tuple[str, ...], after: tuple[float, float] | None) -> dict[str, Any]:
    errors = {
        "as it was": found.error_before, "equal": found.error_equal,
        "best agent": found.error_best, "tuned": found.error_tuned,
    }  # fmt: skip
    facts = {
        "kept": found.kept,
        "agents": list(names),
        "gains": found.gains.tolist(),
        "shifts": found.shifts.tolist(),
        "best_agent": names[found.best_agent],
        "constant_agents": [names[k] for k in found.constant],
        "labelled_items": found.labelled_items,
        "held_out_items": found.held_out_items,
        "held_out_errors": errors,
        "conversations": found.conversations,
        "transmissions": found.transmissions,
        "bits": found.bits,
        "largest_deviation": found.largest_deviation,
        "agreed": found.agreed,
    }
    return facts if after is None else {**facts, "test_errors": {"equal": after[0], "kept": after[1]}}


def _kept(found: Tuning, names: tuple[str, ...]) -> str:
    """Which gains the agents have now."""
    return {
        "best agent": f"best agent, {names[found.best_agent]}, alone",
        "tuned": "tuned gains",
        "equal": "equal gains",
        "as it was": "gains as they were",
    }[found.kept]


def _columns(found: Tuning, names: tuple[str, ...], classes: tuple[str, ...]) -> dict[str, Any]:
    columns: dict[str, Any] = {"agent": np.array(names)}
    for name, values in (("gain", found.gains), ("shift", found.shifts)):
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {f"{name} {classes[c]}": values[:, c] for c in range(values.shape[1])}
    return columns


def _print(
    found: Tuning,
    names: tuple[str, ...],
    classes: tuple[str, ...],
    after: tuple[float, float] | None,
    written: list[Path],
) -> None:
    console = Console(highlight=False, markup=False)
    held_out = f"{found.labelled_items} labelled items, {found.held_out_items} of them held out"
    console.print(f"{held_out}: {_kept(found, names)}")
    table = Table("", "error in %", title="held-out items", title_justify="left")
    # Agents tell each other how often they are wrong by an average as well, which may be inexact.
    about = "about " if found.largest_deviation > ABOUT else ""
    for name, error, said in (
        ("equal gains", found.error_equal, about),
        # Not the error of the one that is best of all: each time the one that is best on the other items.
        (f"best agent, picked by other items ({about}{names[found.best_agent]})", found.error_best, about),
        ("tuned", found.error_tuned, about),
    ):
        table.add_row(name, f"{said}{100 * error:.2f}")
    console.print(table)
    if not found.agreed:
        console.print(
            f"agents did not all choose alike, since averages were off by up to {_percent(found.largest_deviation)}: "
            "nothing was changed. Give more --rounds or --bits, or a network that averages better, such as exact"
        )
    if after is not None:
        console.print(f"test items: {100 * after[0]:.2f} % wrong with equal gains, {100 * after[1]:.2f} % now")
    gains = Table("agent", *(classes if found.gains.ndim > 1 else ("gain",)), title="gains", title_justify="left")
    for name, gain in zip(names, found.gains, strict=True):
        gains.add_row(name, *(f"{value:.3f}" for value in np.atleast_1d(gain)))
    console.print(gains)
    for k in found.constant:
        console.print(f"{names[k]} has the same score for every labelled item: it says nothing")
    console.print(
        f"{found.conversations} conversations, {found.transmissions} transmissions, {found.bits} bits; averages off by "
        f"at most {_percent(found.largest_deviation)}"
    )
    for path in written:
        console.print(f"written: {path}")


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
