"""`collegium certify`: the guarantee that held-out scores support, beside the error they show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium.cli.labelled import Labelled, read_labelled
from collegium.cli.network_argument import (
    NETWORK_HELP,
    NetworkOption,
    PolicyName,
    complete_network,
    either,
    read_network_or_policy,
)
from collegium.cli.score_tables import CLASSES_HELP, LABELS_HELP, SCORES_HELP
from collegium.cli.swapped import hint_swapped
from collegium.cli.tables import check_writable

if TYPE_CHECKING:
    from collegium.planner import NetworkFile
    from collegium.protocol import Rule
    from collegium.schedule import Schedule
    from collegium.theory import Certificate, Evidence


def certify(
    scores: Annotated[Path, typer.Argument(help=SCORES_HELP)],
    network: Annotated[
        str | None, typer.Argument(metavar="NETWORK", help=NETWORK_HELP, autocompletion=complete_network)
    ] = None,
    network_option: NetworkOption = None,
    policy: PolicyName = None,
    labels: Annotated[str | None, typer.Option(metavar="FILE|COLUMN", help=LABELS_HELP)] = None,
    classes: Annotated[str | None, typer.Option(metavar="A,B,…", help=CLASSES_HELP)] = None,
    rounds: Annotated[
        int | None, typer.Option(min=0, help="Communication rounds; those of a network file or schedule, or 20.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="With which the margin is to hold.")] = 0.95,
    beta: Annotated[
        float | None, typer.Option(help="Half the range of every score, if it is known; else the largest seen.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Prediction sets that miss the true class of at most this share of items.")
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="Decide only what can be decided with at most this share of errors.")
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
    """What is guaranteed, from scores of items that no agent was trained on: exact bounds first, then the paper's."""
    from collegium import theory
    from collegium.cli.rules import read_rule
    from collegium.network import collaborate
    from collegium.protocol import Quantised
    from collegium.schedule import own_rounds, own_rule
    from collegium.theory.mixing import is_linear

    network = either(network, network_option)
    if plot is not None:
        from collegium import plots

        plots.check_name(plot)
        check_writable(plot)
    given = read_labelled(scores, labels, classes)
    over, file = read_network_or_policy(network, policy)
    rule = own_rule(over) if file is None else file.rule
    rounds = (own_rounds(over) if file is None else file.rounds) if rounds is None else rounds
    inner = rule.rule if type(rule) is Quantised else rule
    if is_linear(inner):
        rule = inner
        bits, statistics, coarseness = _rounded(bits, file, rule, given, over, rounds, beta, raw, seed)
    else:  # no theorem covers it: held-out items speak for themselves
        if bits is not None:
            rule = read_rule(None, bits, None, rounds, float(abs(given.scores).max()) or 1.0, inner)
        statistics, coarseness = collaborate(given.scores, over, rounds, rule, seed).statistics, 0.0
        bits = rule.bits if type(rule) is Quantised else None
    found = theory.certify(
        given.scores, given.y, over, rounds, confidence=confidence, beta=beta, tau=tau, bits=bits, raw=raw,
        exact=exact, classes=given.classes, statistics=statistics, coarseness=coarseness, rule=rule,
    )  # fmt: skip
    hint_swapped(float(found.errors[0].mean()), len(given.y), 1 if given.scores.ndim == 2 else given.scores.shape[2])
    if plot is not None:
        plots.save(plots.certificate_figure(found, f"{scores.name} over {network}"), plot)
    if as_json:
        typer.echo(
            json.dumps(
                {"agents": given.agents, "classes": given.names or None, **found.to_dict(alpha, error)},
                allow_nan=False,
            )
        )
        return
    console = Console(highlight=False, markup=False)
    print_certificate(console, found, given.names, given.agents, alpha, error)
    if plot is not None:
        console.print(f"written: {plot}")


def _rounded(
    bits: int | None,
    file: NetworkFile | None,
    averaging: Rule,
    given: Labelled,
    over: Schedule,
    rounds: int,
    beta: float | None,
    raw: bool,
    seed: int,
) -> tuple[int | None, Any, float]:
    """The bits asked for or a network file's, what comes of such rounding, and how wide its range is."""
    from collegium import theory
    from collegium.cli.rules import read_rule
    from collegium.network import collaborate
    from collegium.protocol import Quantised

    own = file.rule if file is not None and type(file.rule) is Quantised else None
    if bits is None and own is None:
        return None, None, 0.0
    size, C = float(abs(given.scores).max()) or 1.0, len(given.classes)
    widest = (beta or 0.0) / float(theory.quantiser_beta(1.0, raw=raw, classes=C))  # of an entry, for this β
    width = own.bits if bits is None and own is not None else bits
    prepared = averaging.prepared(over, rounds, rounded=True)
    bound = None if own is None else own.bound
    rule = cast("Quantised", read_rule(None, width, bound, rounds, max(size, widest), prepared))
    statistics = collaborate(given.scores, over, rounds, rule, seed).statistics
    return rule.bits, statistics, rule.bound / (1 if raw else 2)


def print_certificate(
    console: Console,
    found: Certificate,
    names: Sequence[str],
    agents: Sequence[str],
    alpha: float | None = None,
    error: float | None = None,
) -> None:
    """What held-out items say, then measurement, bounds and the paper's guarantee for some rounds, then its estimates.

    `names` are those of the classes.
    """
    evidence = found.evidence
    if evidence is not None:
        for line in _said(evidence, agents, alpha, error):
            console.print(line)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 2))
    for name in ("round", "measured %", "worst agent", "at most", "worst agent", "if normal", "by range"):
        table.add_column(name, justify="right")
    last = len(found.errors) - 1
    for t in range(last + 1):
        if t in (0, 1, 2, 3, 5, 10, 20, 50, 100, last):
            cells = [found.errors[t].mean(), found.errors[t].max()]
            if evidence is None:
                cells += [float("nan")] * 3
            else:
                cells += [evidence.at_most[t].mean(), evidence.at_most[t].max(), evidence.normal[t].max()]
            table.add_row(str(t), *(_percent(float(one)) for one in (*cells, found.bound[t].max())))
    if found.bits is None and not found.no_theorem:
        table.add_row("∞", _percent(found.measured_limit), "", "", "", "", _percent(found.limit))
    console.print(table)
    if found.no_theorem:
        console.print(
            f'"at most" needs nothing but held-out items, "if normal" that statistics are normal given the class; no '
            f"theorem covers {found.no_theorem}, so that there is nothing by range"
        )
        return
    off = found.to_dict()["largest_correlation"]
    known = "as given" if found.beta_is_given else "the largest seen, which a new item may exceed"
    how = "" if found.exact else " (approximately, by Student)"
    console.print(
        '"at most" needs nothing but held-out items, "if normal" that statistics are normal given the class, '
        '"by range" (the paper\'s, for the worst agent) what follows:\n'
        f"{_means(found, names)}\n"
        f"margin δ = {found.delta:.4g} with confidence {100 * found.confidence:g} %{how}\n"
        f"β = {found.beta:.4g}, {known}\n"
        f"dependence: τ = {found.tau:g} assumed; largest correlation given the class {off:.2f}, variance of the "
        f"aggregate {found.inflation:.2f} times that of uncorrelated agents"
    )
    if found.delta <= 0:
        console.print("no guarantee by range: with this confidence the margin may be 0 or less")
    elif found.vacuous:
        rivals = f", summed over {len(found.items) - 1} rivals," if len(found.items) > 2 else ""
        console.print(
            f"no guarantee by range: the margin is {found.delta / found.beta:.2g} of β, for which the bound{rivals} "
            'stays above 100 % however many rounds there are; what holds is "at most"'
        )


def _said(evidence: Evidence, agents: Sequence[str], alpha: float | None, error: float | None) -> list[str]:
    """What held-out items say, in sentences."""
    rounds, K = len(evidence.errors) - 1, evidence.errors.shape[1]
    worst = int(evidence.at_most[-1].argmax())
    lines = [
        f"{evidence.items} held-out items, confidence {100 * evidence.confidence:g} %: after {rounds} rounds the worst "
        f"agent ({agents[worst]}) errs in at most {_percent(float(evidence.at_most[-1, worst]))} % of all items "
        f"(measured {_percent(float(evidence.errors[-1, worst]))} %)"
    ]
    for name, one in (("alone", evidence.against_alone), ("the average", evidence.against_average)):
        surely = int((one.confidence >= evidence.confidence).sum())
        least, most = int(one.gain.argmin()), int(one.gain.argmax())
        lines.append(
            f"better than {name}: {surely} of {K} agents with that confidence; they gain from "
            f"{100 * one.gain[least]:+.1f} ({agents[least]}) to {100 * one.gain[most]:+.1f} points ({agents[most]}, at "
            f"least {100 * one.gain_at_least[most]:+.1f})"
        )
    if alpha is not None:
        sizes = evidence.sizes(alpha)
        share = 100 * evidence.conformal.coverage(alpha)[0]
        shares = [100 * float(part.mean()) for part in (sizes == 1, sizes > 1, sizes == 0)]
        lines.append(
            f"prediction sets that have the true class of {share:.4g} % of all items: {shares[0]:.1f} % have one "
            f"class, {shares[1]:.1f} % several, {shares[2]:.1f} % none (mean over agents)"
        )
    if error is not None:
        rule = evidence.abstention(error)
        able = int(np.isfinite(rule.bound).sum())
        lines.append(
            f"errors among decided items at most {100 * error:g} %: {able} of {K} agents can decide, "
            f"{100 * float(rule.share.mean()):.0f} % of the items on average"
        )
        if not able:
            lines.append("nothing can be decided so: that needs more held-out items, or better agents")
    return lines


def _means(found: Certificate, names: Sequence[str]) -> str:
    """The estimates that the margin comes from."""
    if len(found.items) == 2:
        two = names or ("+1", "-1")
        means = ", ".join(
            f"{one.mean:.4g} ± {one.half:.3g} for {sign}" for one, sign in ((found.plus, two[0]), (found.minus, two[1]))
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
    """A share; a bound above 1, as a union over rivals may give, is none."""
    return "–" if value != value else "none" if value > 1 else f"{100 * value:.2f}"
