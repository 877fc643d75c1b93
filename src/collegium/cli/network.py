"""`collegium network`: build or read a network and print its properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from collegium.cli.network_argument import NETWORK_HELP, PolicyName, complete_network, read_policy
from collegium.cli.tables import check_output, write_table
from collegium.errors import InputFileError, PolicyError

if TYPE_CHECKING:
    from collegium.policy import Policy


def network(
    network: Annotated[str, typer.Argument(metavar="NETWORK", help=NETWORK_HELP, autocompletion=complete_network)],
    policy: PolicyName = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the network (PNG, PDF or SVG).")] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the matrix A (CSV, NPY or Parquet).")] = None,
) -> None:
    """Build or read a network: its size, links, mixing and Perron weights."""
    if plot is not None:
        from collegium import plots

        plots.check_name(plot)
    check_output(save, (".csv", ".npy", ".parquet", ".npz"))
    with Console(stderr=True, markup=False).status(f"analysing {network} …"):
        built = read_policy(network, policy)
        facts = describe(built)
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
    console.print(table)
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
    }


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
