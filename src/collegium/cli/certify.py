"""`collegium certify`: the guarantee that held-out scores support, beside the error they show."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium.cli.labelled import CLASSES_HELP, LABELS_HELP, SCORES_HELP, read_labelled
from collegium.cli.networks import NETWORK_HELP, POLICY_HELP, read_policy

if TYPE_CHECKING:
    from collegium.theory import Certificate


def certify(
    scores: Annotated[Path, typer.Argument(help=SCORES_HELP)],
    network: Annotated[str, typer.Argument(metavar="NETWORK", help=NETWORK_HELP)],
    policy: Annotated[str | None, typer.Option(metavar="RULE", help=POLICY_HELP)] = None,
    labels: Annotated[str | None, typer.Option(metavar="FILE|COLUMN", help=LABELS_HELP)] = None,
    classes: Annotated[str | None, typer.Option(metavar="FIRST,SECOND", help=CLASSES_HELP)] = None,
    rounds: Annotated[int, typer.Option(min=0, help="Communication rounds.")] = 20,
    confidence: Annotated[float, typer.Option(help="Of the margin.")] = 0.95,
    beta: Annotated[
        float | None, typer.Option(help="Half the range of every score, if it is known; else the largest seen.")
    ] = None,
    tau: Annotated[float, typer.Option(help="Dependence of views given the class; 1 if independent.")] = 1.0,
    bits: Annotated[int | None, typer.Option(help="Of rounded messages; full precision by default.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="The scores are not centred.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw guarantee and error against rounds.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """What is guaranteed, from scores of items that no agent was trained on, beside what is measured."""
    from collegium import theory

    if plot is not None:
        from collegium import plots

        plots.check_name(plot)
    given = read_labelled(scores, labels, classes)
    over = read_policy(network, policy)
    found = theory.certify(
        given.scores, given.signs, over, rounds, confidence=confidence, beta=beta, tau=tau, bits=bits, raw=raw,
        classes=(1, -1),
    )  # fmt: skip
    if plot is not None:
        plots.save(plots.certificate_figure(found, f"{scores.name} over {network}"), plot)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), allow_nan=False))
        return
    console = Console(highlight=False, markup=False)
    print_certificate(console, found)
    if plot is not None:
        console.print(f"written: {plot}")


def print_certificate(console: Console, found: "Certificate") -> None:
    """The estimates, and guarantee and measurement for some rounds."""
    off = found.to_dict()["largest_correlation"]
    known = "as given" if found.beta_is_given else "the largest seen, which a new item may exceed"
    means = ", ".join(
        f"{one.mean:.4g} ± {one.half:.3g} for {sign}" for one, sign in ((found.plus, "+1"), (found.minus, "-1"))
    )
    console.print(
        f"aggregate on {found.items[0]} and {found.items[1]} held-out items: {means}\n"
        f"margin δ = {found.delta:.4g} with confidence {100 * found.confidence:g} %; β = {found.beta:.4g}, {known}\n"
        f"dependence: τ = {found.tau:g} assumed; largest correlation given the class {off:.2f}, variance of the "
        f"aggregate {found.inflation:.2f} times that of uncorrelated agents"
    )
    if found.delta <= 0:
        console.print("no guarantee: with this confidence the margin may be 0 or less")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 2))
    for name in ("round", "measured %", "worst agent %", "guaranteed %", "worst agent %"):
        table.add_column(name, justify="right")
    last = len(found.errors) - 1
    for row in found.rows():
        t = int(row["round"])
        if t in (0, 1, 2, 3, 5, 10, 20, 50, 100, last):
            table.add_row(str(t), *(_percent(row[name]) for name in ("error", "worst_error", "bound", "worst_bound")))
    table.add_row("∞", _percent(found.measured_limit), "", _percent(found.limit), "")
    console.print(table)


def _percent(value: float) -> str:
    return "–" if value != value else f"{100 * value:.2f}"
