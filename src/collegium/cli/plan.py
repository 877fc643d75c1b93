"""`collegium plan`: which network, weights, rounds, bits and stopping rule for an error or a budget."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium.cli import compiled
from collegium.cli.certify import print_certificate
from collegium.cli.labelled import read_labelled
from collegium.cli.score_tables import CLASSES_HELP, LABELS_HELP, SCORES_HELP
from collegium.cli.tables import check_output, check_writable

if TYPE_CHECKING:
    from collegium.planner import Answer, Plan


def plan(
    scores: Annotated[Path, typer.Option(metavar="FILE", help=SCORES_HELP)],
    labels: Annotated[str | None, typer.Option(metavar="FILE|COLUMN", help=LABELS_HELP)] = None,
    classes: Annotated[str | None, typer.Option(metavar="A,B,…", help=CLASSES_HELP)] = None,
    target_error: Annotated[float | None, typer.Option(help="The cheapest plan with at most this error.")] = None,
    budget_bits: Annotated[float | None, typer.Option(help="The best plan with at most so many bits per item.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="The most rounds to try.")] = 20,
    loss: Annotated[float, typer.Option(help="The part of the messages that is lost; plans must survive it.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="For the halves and for rules that draw.")] = 0,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the recommended network (JSON), to simulate or run live.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the front of error against bits.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Search for the best way to collaborate: chosen on one half of the items, reported on the other.

    Ends with exit code 1 if what was asked is not met there.
    """
    from collegium import planner

    check_output(save, (".json",))
    if plot is not None:
        from collegium import plots

        plots.check_name(plot)
    for path in (save, plot):
        check_writable(path)
    given = read_labelled(scores, labels, classes)
    compiled.announce()
    answer = planner.plan(
        given.scores, given.y, target_error=target_error, budget_bits=budget_bits, rounds=rounds, seed=seed,
        classes=given.classes, loss=loss,
    )  # fmt: skip
    best = answer.recommended
    if save is not None:
        planner.write_network(save, planner.NetworkFile(best.policy, best.rule, best.rounds, best.description))
    if plot is not None:
        plots.save(plots.plan_figure(answer, f"{scores.name}: error against bits"), plot)
    if as_json:
        typer.echo(
            json.dumps(
                {"agents": given.agents, "classes": given.names or None} | _facts(answer, len(given.classes)),
                allow_nan=False,
            )
        )
        raise typer.Exit(0 if answer.met else 1)
    console = Console(highlight=False, markup=False)
    _print(console, answer, given.names, given.agents)
    for path in (save, plot):
        if path is not None:
            console.print(f"written: {path}")
    raise typer.Exit(0 if answer.met else 1)


def _facts(answer: "Answer", C: int) -> dict[str, Any]:
    return {
        "met": answer.met,
        "recommended": _plan(answer.recommended, C),
        "reasons": list(answer.reasons),
        "alone": {"error": answer.alone.mean, "ci95": answer.alone.half},
        "front": [_plan(one, C) for one in answer.front],
        "certificate": answer.certificate.to_dict(),
        "searched": answer.searched,
        "seconds": answer.seconds,
    }


def _plan(one: "Plan", C: int) -> dict[str, Any]:
    return {
        "topology": one.topology,
        "policy": one.weighing,
        "rule": repr(one.rule),
        "rounds": one.rounds,
        "message_bits": one.rule.message_bits(1 if C == 2 else C),
        "error": one.error.mean,
        "ci95": one.error.half,
        "bits": one.bits.mean,
        "chosen_error": one.chosen_error,
        "chosen_bits": one.chosen_bits,
    }


def _print(console: Console, answer: "Answer", names: tuple[str, ...], agents: tuple[str, ...]) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), title="by bits per item", title_justify="left")
    for name in ("bits\nper item", "error %\n± 95 %", "chosen by\nerror %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("plan", overflow="fold")
    for one in answer.front:
        mark = "★ " if one == answer.recommended else ""
        error = f"{100 * one.error.mean:.2f} ± {100 * one.error.half:5.2f}"
        table.add_row(f"{one.bits.mean:,.0f}", error, f"{100 * one.chosen_error:.2f}", f"{mark}{one.description}")
    console.print(table)
    console.print(f"{answer.searched:,} combinations in {answer.seconds:.1f} s")
    console.print(f"{'recommended' if answer.met else 'not met; nearest'}: {answer.recommended.description}")
    for reason in answer.reasons:
        console.print(f"- {reason}")
    console.print("\nWhat is guaranteed to agents that are never silent, with messages of this size:")
    print_certificate(console, answer.certificate, names, agents)
