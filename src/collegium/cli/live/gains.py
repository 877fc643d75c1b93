"""`collegium live tune`: agents of a running network learn how much each should count."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium.cli.complete import among
from collegium.cli.live.shared import AsJson, Folder, need
from collegium.cli.score_tables import read_scores
from collegium.cli.tables import ITEM_NAMES, LABEL_NAMES, read_table
from collegium.errors import InputFileError

if TYPE_CHECKING:
    from collegium.live.launcher import Member


def tune(
    folder: Folder,
    labels: Annotated[Path, typer.Option(metavar="FILE", help="A table with columns item and label.")],
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The agents' scores of these items, with a column item and one per agent; without it, those of items "
            "the agents have decided and remember.",
        ),
    ] = None,
    loss: Annotated[
        str, typer.Option(help="logistic or ridge.", autocompletion=among("logistic", "ridge"))
    ] = "logistic",
    conversations: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Directions to go; by default 1, or 4 from 20 items per agent on."),
    ] = None,
    per_class: Annotated[bool, typer.Option("--per-class", help="A gain per agent and class.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let the agents of a running network learn how much each should count, from labelled items.

    They converse among themselves, and each keeps its gain beside its own file. All use the new gains or none does; an
    agent that is away when it begins is named and keeps the gain it has. Exit code 1 if one leaves in the middle,
    misses a message or does not agree.
    """
    need()
    from collegium.live import launcher
    from collegium.live.tune_network import NotTuned, tune_network

    network = launcher.members(folder)
    names, given = _labelled_items(labels)
    columns = None if scores is None else _columns_of_agents(scores, names, network)
    try:
        found = tune_network(
            network, names, given, columns, loss=loss, conversations=conversations, per_class=per_class
        )
    except NotTuned as reason:
        typer.echo(f"collegium: {reason}", err=True)
        raise typer.Exit(1) from None
    if as_json:
        from msgspec import to_builtins

        typer.echo(json.dumps(to_builtins(found)))
        return
    learned = next(one.learned for one in found if one.learned is not None)
    console = Console(highlight=False, markup=False)
    kept = {"tuned": "tuned gains are used", "best agent": f"{learned.best_agent} alone counts from now on"}
    outcome = kept.get(learned.kept, "equal gains are used" if learned.kept == "equal" else "gains stay as they were")
    console.print(f"{len(names)} labelled items, {learned.held_out_items} of them held out: {outcome}")
    errors = Table("", "error in %", title="held-out items", title_justify="left", box=box.SIMPLE_HEAD)
    for name, error in (
        ("gains as they were", learned.error_before),
        ("equal gains", learned.error_equal),
        (f"best agent ({learned.best_agent})", learned.error_best),
        ("tuned", learned.error_tuned),
    ):
        errors.add_row(name, f"{100 * error:.2f}")
    console.print(errors)
    table = Table("agent", "gain", box=box.SIMPLE_HEAD)
    for one in found:
        gains = one.gain if isinstance(one.gain, list) else [one.gain]
        table.add_row(one.agent, " ".join(f"{gain:.3f}" for gain in gains))
    console.print(table)
    for one in found:
        if one.state == "away":
            console.print(f"{one.agent} was away: it keeps the gain it has, and the others were tuned without it")
    sent = sum(one.learned.bytes_sent for one in found if one.learned is not None)
    console.print(
        f"{learned.conversations} conversations about {learned.rows} rows, {sent / 1e6:.2f} MB sent by all agents, "
        f"{learned.seconds:.1f} s"
    )


def _labelled_items(path: Path) -> tuple[list[int | str], list[Any]]:
    table = read_table(path)
    items, table = table.pop(ITEM_NAMES)
    labels, table = table.pop(LABEL_NAMES)
    if items is None or labels is None:
        raise InputFileError(f"{path} must have a column item, which names the items, and a column label")
    return [_item(one) for one in items.tolist()], labels.tolist()


def _item(written: Any) -> int | str:
    """An item's name as a port takes it: whole numbers are numbers."""
    return int(written) if isinstance(written, float) and written.is_integer() else written


def _columns_of_agents(path: Path, names: list[int | str], network: "list[Member]") -> dict[str, list[Any]]:
    """The scores of these items by agent, None where one has no view."""
    import numpy as np

    classes = network[0].file.model.classes
    written = ",".join(map(str, classes[::-1] if len(classes) == 2 else classes))
    table = read_scores(path, classes=written)
    agents = [one.file.agent.name for one in network]
    if table.items is None:
        raise InputFileError(f"{path} must have a column item, which names the items as the labels do")
    if absent := [name for name in agents if name not in table.agents]:
        raise InputFileError(f"{path} has no column {absent[0]!r}: it needs one for each agent of the network")
    rows = {_item(item): row for item, row in zip(table.items, table.values, strict=True)}
    if unknown := [name for name in names if name not in rows]:
        raise InputFileError(f"{path} has no scores of the item {unknown[0]!r}, which has a label")
    chosen = np.array([rows[name] for name in names]).reshape(len(names), *table.values.shape[1:])
    return {
        name: [None if np.isnan(one).any() else one.tolist() for one in chosen[:, table.agents.index(name)]]
        for name in agents
    }
