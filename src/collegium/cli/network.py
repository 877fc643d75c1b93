"""`collegium network`: build or read a network and print its properties."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from collegium.cli.network_argument import (
    UNCHANGING_HELP,
    NetworkOption,
    PolicyName,
    complete_network,
    either,
    read_policy,
)
from collegium.cli.tables import check_output, write_table
from collegium.errors import InputFileError, PolicyError, RuleError

if TYPE_CHECKING:
    from collegium.policy import Policy


def network(
    network: Annotated[
        str | None, typer.Argument(metavar="NETWORK", help=UNCHANGING_HELP, autocompletion=complete_network)
    ] = None,
    network_option: NetworkOption = None,
    policy: PolicyName = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Say how many liars it bears, and which links would help most.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the network (PNG, PDF or SVG).")] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the matrix A (CSV, NPY or Parquet).")] = None,
) -> None:
    """Build or read a network: its size, links, mixing and Perron weights."""
    network = either(network, network_option)
    if plot is not None:
        from collegium import plots

        plots.check_name(plot)
    check_output(save, (".csv", ".npy", ".parquet", ".npz"))
    with Console(stderr=True, markup=False).status(f"analysing {network} …"):
        built = read_policy(network, policy)
        facts = describe(built)
        if trust:
            facts["trust"] = describe_trust(built)
    if plot is not None:
        agents = "1 agent" if built.size == 1 else f"{built.size} agents"
        plots.save(plots.network_figure(built, f"{network}: {agents}, {built.links} links"), plot)
    if save is not None:
        _save(built, save)
    if as_json:
        typer.echo(json.dumps(facts))
        return
    console = Console(markup=False)
    table = Table(show_header=False, title=network, title_justify="left")
    table.add_row("agents K", str(facts["agents"]))
    table.add_row("links (directed, without self-loops)", str(facts["links"]))
    table.add_row("σ_A (second-largest eigenvalue modulus)", _eigenvalue(facts["slem"]))
    table.add_row(
        "mixing time (rounds to within 1/4)",
        "not computed for so many agents" if _is_large(built) else str(facts["mixing_time"]),
    )
    table.add_row("doubly stochastic (all weigh equally)", "yes" if facts["doubly_stochastic"] else "no")
    table.add_row("Perron vector", _vector(built.perron))
    if trust:
        for name, value in _trust_rows(facts["trust"]):
            table.add_row(name, value)
    console.print(table)
    if facts["rounds_to_1_percent"]:
        _print_reach(console, facts["rounds_to_1_percent"])
    for path in (plot, save):
        if path is not None:
            console.print(f"written: {path}", highlight=False)


def describe(policy: Policy) -> dict[str, Any]:
    """The facts of a network; what is too much work for a large one is None."""
    return {
        "agents": policy.size,
        "links": policy.links,
        "slem": _slem(policy),
        "perron": policy.perron.tolist(),
        "mixing_time": None if _is_large(policy) else policy.mixing_time,
        "doubly_stochastic": policy.is_doubly_stochastic,
        "rounds_to_1_percent": _reach(policy),
    }


def _reach(policy: Policy) -> list[dict[str, Any]] | None:
    from collegium.planner.reach import MOST_AGENTS, rounds_to

    return None if policy.size > MOST_AGENTS else [one._asdict() for one in rounds_to(policy)]


def _print_reach(console: Console, found: list[dict[str, Any]]) -> None:
    table = Table("averaging by", "rounds", "transmissions", "numbers in each", "mean", title_justify="left")
    table.title = "until 1 % of the disagreement is left, whatever the scores"
    for one in found:
        rounds, sent = ("not within 20 000", "") if one["rounds"] is None else (one["rounds"], one["transmissions"])
        table.add_row(one["method"], str(rounds), str(sent), str(one["numbers"]), one["limit"])
    console.print(table)


def describe_trust(policy: Policy) -> dict[str, Any]:
    """How many liars a network bears: [least, greatest] possible where only bounds are known."""
    from collegium import trust

    found = trust.robustness(policy.graph)
    return {
        "exact": found.exact,
        "r": list(found.r),
        "liars": list(found.liars),
        "liars_per_neighbourhood": list(found.local_liars),
        "smallest_neighbourhood": int(policy.graph.neighbourhood_sizes.min()),
        "median_bears": found.neighbourhood,
        "robust_rules": _robust_rules(policy) if not _is_large(policy) else None,
        "helpful_links": [list(link) for link in trust.helpful_links(policy.graph)] if not _is_large(policy) else None,
    }


def _robust_rules(policy: Policy) -> list[str]:
    """Robust rules that run on the network, each for as many liars in a neighbourhood as it takes."""
    from collegium.protocol import combine, registry

    seats = policy.at(1)
    most = (int(policy.graph.neighbourhood_sizes.min()) - 1) // 2
    found = []
    for family in (
        combine.TrimmedMean,
        combine.SelfCentred,
        combine.NearestNeighbours,
        combine.MeanSubsequence,
        combine.OutlierScissor,
    ):
        for liars in range(most, 0, -1):
            with suppress(RuleError):
                family(liars).check_seats(seats)
                found.append(registry.to_text(family(liars)))
                break
    return found + ["median", "clipped"] * (most > 0)


def _trust_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    def between(pair: list[int]) -> str:
        return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]} to {pair[1]}"

    links, rules = facts["helpful_links"], facts["robust_rules"]
    shown = "not computed for so many agents" if links is None else ", ".join(f"{i}–{j}" for i, j in links)
    return [
        ("r-robust, r" + ("" if facts["exact"] else " (bounds)"), between(facts["r"])),
        ("liars W-MSR bears in the whole network, each saying the same to all", between(facts["liars"])),
        ("liars it bears in every neighbourhood", between(facts["liars_per_neighbourhood"])),
        ("liars a median bears in the smallest neighbourhood", str(facts["median_bears"])),
        (
            "robust rules it takes, with the most liars in a neighbourhood",
            "not computed for so many agents" if rules is None else ", ".join(rules) or "none",
        ),
        ("links that would help most, one after the other", shown or "none is missing"),
    ]


def _slem(policy: Policy) -> float | None:
    try:
        return policy.slem
    except PolicyError:  # a large directed network whose eigenvalues lie too close together
        return None


def _eigenvalue(slem: float | None) -> str:
    if slem is None:
        return "not found: too many eigenvalues of nearly the same modulus"
    return f"{slem:.6g}" if slem < 0.9999 else f"1 - {1 - slem:.4g}"


def _save(policy: Policy, path: Path) -> None:
    if path.suffix.lower() == ".npz":
        from scipy import sparse

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            sparse.save_npz(path, policy.sparse)
        except OSError as problem:
            raise InputFileError(f"cannot write {path}: {problem.strerror or problem}") from problem
    elif _is_large(policy):
        raise InputFileError(f"{path}: a matrix of {policy.size} agents is written sparse, as .npz")
    else:
        write_table(path, {f"agent {k}": policy.A[:, k] for k in range(policy.size)})


def _is_large(policy: Policy) -> bool:
    from collegium.topology.base import DENSE_LIMIT

    return policy.size > DENSE_LIMIT


def _vector(perron: np.ndarray[Any, Any]) -> str:
    if len(perron) <= 24:
        return "  ".join(f"{weight:.4f}" for weight in perron)
    return f"from {perron.min():.3g} (agent {perron.argmin()}) to {perron.max():.3g} (agent {perron.argmax()})"
