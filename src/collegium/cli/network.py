"""`collegium network`: build or read a network and say what it is like."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from collegium.cli.networks import NETWORK_HELP, POLICY_HELP, read_policy
from collegium.cli.tables import write_table
from collegium.policy import Policy
from collegium.topology.base import DENSE_LIMIT


def network(
    network: Annotated[str, typer.Argument(metavar="NETWORK", help=NETWORK_HELP)],
    policy: Annotated[str | None, typer.Option(metavar="RULE", help=POLICY_HELP)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the network (PNG, PDF or SVG).")] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the matrix A (CSV, NPY or Parquet).")] = None,
) -> None:
    """Build or read a network: its size, links, mixing and everybody's say in the end."""
    with Console(stderr=True).status(f"looking at {network} …"):
        built = read_policy(network, policy)
        facts = describe(built)
    if plot is not None:
        from collegium import plots

        plots.save(plots.network_figure(built, f"{network}, {built.size} agents, {built.links} links"), plot)
    if save is not None:
        _save(built, save)
    if as_json:
        typer.echo(json.dumps(facts))
        return
    console = Console()
    table = Table(show_header=False, title=network, title_justify="left")
    table.add_row("agents K", str(facts["agents"]))
    table.add_row("links (directed, without self-loops)", str(facts["links"]))
    table.add_row("σ_A (second-largest eigenvalue modulus)", f"{facts['slem']:.6g}")
    table.add_row("mixing time (rounds to within 1/4)", _shown(facts["mixing_time"]))
    table.add_row("doubly stochastic (all have an equal say)", "yes" if facts["doubly_stochastic"] else "no")
    table.add_row("Perron vector", _vector(built.perron))
    console.print(table)
    for path in (plot, save):
        if path is not None:
            console.print(f"written: {path}", highlight=False)


def describe(policy: Policy) -> dict[str, Any]:
    """The facts of a network; the mixing time is None for networks too large to look at every pair."""
    return {
        "agents": policy.size,
        "links": policy.links,
        "slem": policy.slem,
        "perron": policy.perron.tolist(),
        "mixing_time": policy.mixing_time if policy.size <= DENSE_LIMIT else None,
        "doubly_stochastic": policy.is_doubly_stochastic,
    }


def _save(policy: Policy, path: Path) -> None:
    if path.suffix == ".npz" or policy.size > DENSE_LIMIT:
        from scipy import sparse

        path = path.with_suffix(".npz")
        sparse.save_npz(path, policy.sparse)
    else:
        write_table(path, {f"agent {k}": policy.A[:, k] for k in range(policy.size)})


def _shown(mixing_time: int | None) -> str:
    return f"not computed above {DENSE_LIMIT} agents" if mixing_time is None else str(mixing_time)


def _vector(perron: np.ndarray[Any, Any]) -> str:
    if len(perron) <= 24:
        return "  ".join(f"{weight:.4f}" for weight in perron)
    return f"from {perron.min():.3g} (agent {perron.argmin()}) to {perron.max():.3g} (agent {perron.argmax()})"
