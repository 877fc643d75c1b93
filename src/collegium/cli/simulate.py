"""`collegium simulate`: scores and a network in; decisions, errors, transmissions and bits out."""

from __future__ import annotations

import csv
import json
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from collegium.cli import compiled
from collegium.cli.complete import among
from collegium.cli.network_argument import (
    NETWORK_HELP,
    NetworkOption,
    PolicyName,
    complete_network,
    either,
    read_network_or_policy,
    unchanging,
)
from collegium.cli.rules import Bits, Bound, RuleName, read_rule
from collegium.cli.score_tables import CLASSES_HELP, LABELS_HELP, SCORES_HELP, Scores, read_scores
from collegium.cli.swapped import hint_swapped
from collegium.cli.tables import check_output, write_table
from collegium.errors import RuleError

if TYPE_CHECKING:
    from collegium.network import Run
    from collegium.schedule import Schedule

MAILBOXES = ("hold-last", "hold-last:hold", "renormalise")
LINKS = ("perfect", "lossy:0.3,seed=1", "delayed:2", "cut:[0,1],5,9")
ATTACKS = (
    "stubborn:2.0", "sign-flip:1.0", "little-is-enough:1.0", "inner-product:1.0", "mimic", "two-faced:2.0",
    "silence:0.5", "split:2.0", "dissension:1.0", "at-start:sign-flip",
)  # fmt: skip
"""As they are written."""


def simulate(
    scores: Annotated[Path, typer.Argument(help=SCORES_HELP)],
    network: Annotated[
        str | None, typer.Argument(metavar="NETWORK", help=NETWORK_HELP, autocompletion=complete_network)
    ] = None,
    network_option: NetworkOption = None,
    policy: PolicyName = None,
    rounds: Annotated[
        int | None, typer.Option(help="Communication rounds; those of a network file or schedule, or 20.")
    ] = None,
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
    attack: Annotated[
        str | None,
        typer.Option(help=f"What liars send, with --liars: {', '.join(ATTACKS)}, …", autocompletion=among(*ATTACKS)),
    ] = None,
    liars: Annotated[
        str | None,
        typer.Option(
            metavar="M|cut:M|K,K,…",
            help="How many agents lie, drawn by the seed, or with cut: those through which most of the network speaks; "
            "or which, by number or name: 3,7 or 3,",
        ),
    ] = None,
    liars_know: Annotated[
        bool, typer.Option("--liars-know", help="Liars know the labels, which must be given.")
    ] = False,
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
    from collegium.schedule import own_rounds

    network = either(network, network_option)
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
    rounds = (own_rounds(built) if file is None else file.rounds) if rounds is None else rounds
    if file is not None and rule is None and bits is None and bound is None:
        chosen = file.rule
    else:
        largest = float(np.abs(table.values).max(initial=0.0))
        chosen = read_rule(rule, bits, bound, rounds, largest, built.rule, built)
    items = table.items
    lying = _liars(attack, liars, liars_know, table, built, seed)
    if kernels.numbers(chosen) is not None:
        compiled.announce()
    run = collaborate(
        table.values, built, rounds, chosen, seed,
        items=items, mailbox=chosen_mailbox, links=chosen_links, liars=lying,
    )  # fmt: skip
    named = table.class_names[::-1] if run.numbers == 1 else table.class_names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of swapped classes, which is said below
        errors = None if table.labels is None else run.errors(table.labels, table.classes or None)
    run = replace(run, agents=table.agents or None, classes=None if named in ((), ("-1", "1")) else named)
    if plot is not None and place is not None:
        shown = table.class_names or ("+1", "-1")
        plots.save(plots.statistic_figure(run, place, shown, f"item {item}: {chosen} on {network}"), plot)
    elif plot is not None and errors is not None:
        plots.save(plots.error_figure(errors, {}, f"{chosen} on {network}", run.agents), plot)
    if out is not None:
        _write(out, run)
    if errors is not None:
        hint_swapped(float(errors[0].mean()), len(table.values), run.numbers)
    if as_json:
        typer.echo(json.dumps(_facts(run, errors, table.class_names), allow_nan=False))
    else:
        _print(run, errors, table.class_names, out, plot)


def _liars(attack: str | None, written: str | None, know: bool, table: Scores, over: Schedule, seed: int) -> Any:
    if attack is None and written is None and not know:
        return None
    if attack is None or written is None:
        raise RuleError("--attack says what liars send and --liars who lies: give both")
    if know and table.labels is None:
        raise RuleError("--liars-know needs labels: give --labels")
    from collegium import trust

    agents = _who(written, table, over, seed)
    return trust.Liars(agents, _attack(attack, over, agents), table.labels if know else None, table.classes or None)


def _who(written: str, table: Scores, over: Schedule, seed: int) -> list[int]:
    from collegium import corruption, trust

    place = {name: k for k, name in enumerate(table.agents)}
    on_cut = re.fullmatch(r"cut:([0-9]{1,18})", written)
    if on_cut:
        chosen: list[int] = trust.placement.on_cut(unchanging(over, "a schedule").graph, int(on_cut[1])).tolist()
        return chosen
    try:
        listed = next(csv.reader([written], skipinitialspace=True))
        numbers = [place[one] if one in place else int(one) for one in map(str.strip, listed) if one]
    except ValueError:
        raise RuleError(
            f"--liars is a number of agents, or a list of their numbers or names such as 3,7; got {written!r}"
        ) from None
    is_list = "," in written or len(numbers) != 1 or written.strip() in place
    return numbers if is_list else corruption.draw_agents(over.size, numbers[0], seed).tolist()


def _attack(written: str, over: Schedule, agents: list[int]) -> Any:
    """What liars send; `split` and `dissension` without a side or direction for every agent take the network's own."""
    from collegium.protocol import registry
    from collegium.trust import attacks

    name, _, rest = written.partition(":")
    if name not in ("split", "dissension") or "[" in rest:
        return registry.from_text(written, "attack")
    try:
        size = [float(rest)] if rest else []
    except ValueError:
        raise RuleError(f"the size of a lie must be a number, as in {name}:2.0; got {written!r}") from None
    fixed = unchanging(over, "a schedule")
    return attacks.Split.of(fixed.graph, agents, *size) if name == "split" else attacks.Dissension.along(fixed, *size)


def _place(item: str, table: Scores) -> int:
    names = [str(name) for name in range(len(table.values))] if table.items is None else list(map(str, table.items))
    if item not in names:
        raise RuleError(f"there is no item {item!r}: they are {', '.join(names[:3])} …")
    return names.index(item)


def _agents(run: Run, numbered: str = "{}") -> list[str]:
    """The agents' names, or numbers."""
    K = run.statistics.shape[2]
    return [numbered.format(k) for k in range(K)] if run.agents is None else list(run.agents)


def _facts(run: Run, errors: Any, names: tuple[str, ...]) -> dict[str, Any]:
    n, K = run.statistics.shape[1:3]
    return {
        "agents": K,
        "items": n,
        "rounds": run.rounds,
        "agent_names": run.agents,
        "classes": names or None,  # of two, the one that positive statistics stand for first; else as the entries
        "item_names": run.items,
        "liars": np.flatnonzero(~run.honest).tolist(),
        "decisions": run.labels().tolist(),
        "statistics": run.statistics[-1].tolist(),
        "errors": None if errors is None or not n else errors.tolist(),
        "transmissions": run.transmissions.tolist(),
        "bits": run.bits.tolist(),
    }


def _write(path: Path, run: Run) -> None:
    n = run.statistics.shape[1]
    plain = path.suffix.lower() == ".npy"  # numbers only
    numbered = np.arange(n) if run.items is None or plain else np.array(run.items)
    decisions, agents = run.decisions() if plain else run.labels(), _agents(run, "agent {}")
    if not {"item", "transmissions", "bits"}.isdisjoint(agents):
        agents = [f"agent {name}" for name in agents]
    columns = {"item": numbered} | {name: decisions[:, k] for k, name in enumerate(agents)}
    write_table(path, columns | {"transmissions": run.transmissions, "bits": run.bits})


def _print(run: Run, errors: Any, names: tuple[str, ...], out: Path | None, plot: Path | None) -> None:
    console = Console(highlight=False, markup=False)
    n, K = run.statistics.shape[1:3]
    console.print(str(run))
    if not n:
        return
    if run.liars is not None:
        lied = ", ".join(_agents(run)[k] for k in np.flatnonzero(~run.honest))
        console.print(f"liars: {lied}; what follows is of the {int(run.honest.sum())} others")
    agents, decisions = _agents(run), run.labels()[:, run.honest]
    agreed = (decisions == decisions[:, :1]).all(axis=1).mean()
    console.print(f"all {decisions.shape[1]} agents agree on {100 * agreed:.1f} % of the items")
    if run.numbers > 1 and names:
        console.print(f"{run.numbers} classes: {', '.join(names)}")
    elif names:
        console.print(f"positive scores are for {names[0]}, negative ones for {names[1]}")
    if errors is not None:
        table = Table("round", "mean error", "best agent", "worst agent", title="error in %", title_justify="left")
        for t in sorted({t for t in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, run.rounds) if t <= run.rounds}):
            row, who = 100 * errors[t][run.honest], np.flatnonzero(run.honest)
            best, worst = row.argmin(), row.argmax()
            table.add_row(
                str(t),
                f"{row.mean():.2f}",
                *(f"{row[k]:.2f} ({agents[who[k]]})" for k in (best, worst)),
            )
        console.print(table)
    if out is None and n * K <= 400:
        shown = [_agents(run, "agent {}")[k] for k in np.flatnonzero(run.honest)]
        table = Table("item", *shown, title="decisions", title_justify="left")
        for i, row in enumerate(decisions):
            table.add_row(
                str(i) if run.items is None else str(run.items[i]),
                *(f"{label:+d}" if run.classes is None and run.numbers == 1 else str(label) for label in row),
            )
        console.print(table)
    elif out is None:
        console.print("decisions: --out FILE writes them all, --json prints them")
    for path in (out, plot):
        if path is not None:
            console.print(f"written: {path}")
