"""`collegium certify`: the guarantee that held-out scores support, beside the error they show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium.cli.labelled import CLASSES_HELP, LABELS_HELP, SCORES_HELP, Labelled, read_labelled
from collegium.cli.network_argument import NETWORK_HELP, PolicyName, complete_network, read_network_or_policy
from collegium.cli.tables import check_writable
from collegium.errors import AssumptionError

if TYPE_CHECKING:
    from collegium.planner import NetworkFile
    from collegium.policy import Policy
    from collegium.theory import Certificate


def certify(
    scores: Annotated[Path, typer.Argument(help=SCORES_HELP)],
    network: Annotated[str, typer.Argument(metavar="NETWORK", help=NETWORK_HELP, autocompletion=complete_network)],
    policy: PolicyName = None,
    labels: Annotated[str | None, typer.Option(metavar="FILE|COLUMN", help=LABELS_HELP)] = None,
    classes: Annotated[str | None, typer.Option(metavar="A,B,…", help=CLASSES_HELP)] = None,
    rounds: Annotated[
        int | None, typer.Option(min=0, help="Communication rounds; those of a network file, or 20.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="With which the margin is to hold.")] = 0.95,
    beta: Annotated[
        float | None, typer.Option(help="Half the range of every score, if it is known; else the largest seen.")
    ] = None,
    tau: Annotated[float, typer.Option(help="Dependence of views given the class; 1 if independent.")] = 1.0,
    bits: Annotated[
        int | None, typer.Option(help="Of rounded messages; those of a network file, or full precision.")
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Hoeffding's margin, for any number of items.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="For rounding.")] = 0,
    raw: Annotated[bool, typer.Option("--raw", help="The scores are not centred.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw guarantee and error against rounds.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """What is guaranteed, from scores of items that no agent was trained on, beside what is measured."""
    from collegium import theory
    from collegium.protocol.averaging import tends_to_mean
    from collegium.protocol.registry import describe

    if plot is not None:
        from collegium import plots

        plots.check_name(plot)
        check_writable(plot)
    given = read_labelled(scores, labels, classes)
    over, file = read_network_or_policy(network, policy)
    if file is not None and not tends_to_mean(file.rule):
        raise AssumptionError(
            f"there is a guarantee for averaging, quantised or not, but none for {describe(file.rule)}, the rule of "
            f"{network}"
        )
    rounds = (20 if file is None else file.rounds) if rounds is None else rounds
    bits, errors, coarseness = _rounded(bits, file, given, over, rounds, beta, raw, seed)
    found = theory.certify(
        given.scores, given.y, over, rounds, confidence=confidence, beta=beta, tau=tau, bits=bits, raw=raw,
        exact=exact, classes=given.classes, errors=errors, coarseness=coarseness,
    )  # fmt: skip
    if plot is not None:
        plots.save(plots.certificate_figure(found, f"{scores.name} over {network}"), plot)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), allow_nan=False))
        return
    console = Console(highlight=False, markup=False)
    print_certificate(console, found, given.names)
    if plot is not None:
        console.print(f"written: {plot}")


def _rounded(
    bits: int | None,
    file: NetworkFile | None,
    given: Labelled,
    over: Policy,
    rounds: int,
    beta: float | None,
    raw: bool,
    seed: int,
) -> tuple[int | None, Any, float]:
    """The bits asked for or a network file's, the errors that such rounding makes, and how wide its range is."""
    from collegium import theory
    from collegium.network import collaborate
    from collegium.protocol import DeGroot, Quantised

    own = file.rule if file is not None and type(file.rule) is Quantised else None
    if bits is None and own is None:
        return None, None, 0.0
    size, C = float(abs(given.scores).max()) or 1.0, len(given.classes)
    widest = (beta or 0.0) / float(theory.quantiser_beta(1.0, raw=raw, classes=C))  # of an entry, for this β
    bound = own.bound if own is not None else max(size, widest)
    rule = Quantised(DeGroot(), own.bits if bits is None and own is not None else bits or 0, bound)
    errors = collaborate(given.scores, over, rounds, rule, seed).errors(given.y, classes=given.classes)
    return rule.bits, errors, bound / (1 if raw else 2)


def print_certificate(console: Console, found: Certificate, names: Sequence[str] = ()) -> None:
    """The estimates, and guarantee and measurement for some rounds; `names` are those of several classes."""
    off = found.to_dict()["largest_correlation"]
    known = "as given" if found.beta_is_given else "the largest seen, which a new item may exceed"
    how = "" if found.exact else " (approximately, by Student)"
    console.print(
        f"{_means(found, names)}\n"
        f"margin δ = {found.delta:.4g} with confidence {100 * found.confidence:g} %{how}\n"
        f"β = {found.beta:.4g}, {known}\n"
        f"dependence: τ = {found.tau:g} assumed; largest correlation given the class {off:.2f}, variance of the "
        f"aggregate {found.inflation:.2f} times that of uncorrelated agents"
    )
    if found.delta <= 0:
        console.print("no guarantee: with this confidence the margin may be 0 or less")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 2))
    for name in ("round", "measured %", "worst agent", "guaranteed %", "for the worst"):
        table.add_column(name, justify="right")
    last = len(found.errors) - 1
    for row in found.rows():
        t = int(row["round"])
        if t in (0, 1, 2, 3, 5, 10, 20, 50, 100, last):
            table.add_row(str(t), *(_percent(row[name]) for name in ("error", "worst_error", "bound", "worst_bound")))
    if found.bits is None:
        table.add_row("∞", _percent(found.measured_limit), "", _percent(found.limit), "")
    console.print(table)


def _means(found: Certificate, names: Sequence[str]) -> str:
    """The estimates that the margin comes from."""
    if len(found.items) == 2:
        means = ", ".join(
            f"{one.mean:.4g} ± {one.half:.3g} for {sign}" for one, sign in ((found.plus, "+1"), (found.minus, "-1"))
        )
        return f"aggregate on {found.items[0]} and {found.items[1]} held-out items: {means}"
    names = names or [str(place) for place in range(len(found.items))]
    lines = [f"the aggregate's lead over the nearest rival, on {sum(found.items)} held-out items:"]
    for c, (name, count) in enumerate(zip(names, found.items, strict=True)):
        rivals = [one for one in range(len(names)) if one != c]
        means, halves = found.margins.means[c], found.margins.halves[c]
        nearest = min(rivals, key=lambda one: means[one] - halves[one])
        lines.append(f"  {name} ({count}): {means[nearest]:.4g} ± {halves[nearest]:.3g} before {names[nearest]}")
    return "\n".join(lines)


def _percent(value: float) -> str:
    """A share; a union over rivals may promise more than everything, which is nothing."""
    return "–" if value != value else f"{100 * min(value, 1.0):.2f}"
