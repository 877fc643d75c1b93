"""Networks as written on the command line: `ring:12`, `erdos-renyi:12,links=24,seed=7`, or a matrix file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collegium.cli.complete import among
from collegium.errors import CollegiumError, GraphError, InputFileError, PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collegium.planner import NetworkFile
    from collegium.policy import Policy
    from collegium.schedule import Schedule
    from collegium.topology import Graph

FAMILIES = {
    "ring": ("ring", "ring:12"),
    "path": ("path", "path:5"),
    "star": ("star", "star:9"),
    "grid": ("grid", "grid:3x4"),
    "torus": ("torus", "torus:3x4"),
    "complete": ("complete", "complete:6"),
    "erdos-renyi": ("erdos_renyi", "erdos-renyi:12,links=24,seed=7"),
    "geometric": ("geometric", "geometric:30,radius=0.3,seed=1"),
    "small-world": ("small_world", "small-world:20,neighbours=4,rewire=0.1,seed=1"),
}
"""What `collegium.topology` calls each family, and how it is written here."""
SCHEDULES = {
    "exact": "exact:12",
    "one-peer-exponential": "one-peer-exponential:12",
    "eigenvalue-steps": "eigenvalue-steps:ring:12",
    "pairwise": "pairwise:ring:12",
    "alternating": "alternating:ring:12+grid:3x4",
}
"""Networks that change from round to round, of `collegium.schedule`, and how they are written here."""
POLICIES = ("uniform", "metropolis", "laplacian", "fastest")
"""As `collegium.policy` calls them."""

_TOPOLOGY_HELP = "A topology such as ring:12, grid:3x4 or erdos-renyi:12,links=24,seed=7,"
_FILE_HELP = "or a file: the matrix A, or a network from collegium plan."
UNCHANGING_HELP = f"{_TOPOLOGY_HELP} {_FILE_HELP}"
NETWORK_HELP = f"{_TOPOLOGY_HELP} a schedule such as exact:12 or pairwise:grid:3x4, {_FILE_HELP}"
"""Not pairwise:ring:12: help is printed with emoji, and has a ring."""
complete_network = among(*(example for _, example in FAMILIES.values()), *SCHEDULES.values())
NetworkOption = Annotated[
    str | None,
    typer.Option(
        "--network", metavar="NETWORK", help="NETWORK by its name, as for compare.", autocompletion=complete_network
    ),
]
"""For commands whose second argument is the network."""


def topology_option(left_out: str) -> Any:
    """The network of live agents, by either name; left_out: what it is without one."""
    return typer.Option(
        "--topology",
        "--network",
        metavar="NETWORK",
        help=f"{NETWORK_HELP} {left_out}",
        autocompletion=complete_network,
    )


PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="RULE",
        help=f"How agents weigh received messages on a topology: {', '.join(POLICIES)} (default uniform).",
        autocompletion=among(*POLICIES),
    ),
]


def either(argument: str | None, option: str | None) -> str:
    """The network that was written, as an argument or by its name."""
    if (argument is None) == (option is None):
        raise PolicyError("give one network, such as ring:12 or --network ring:12")
    return str(option if argument is None else argument)


def read_schedule(written: str, rule: str | None) -> Schedule:
    """The network meant, the same in all rounds or not, as written on the command line."""
    from collegium import schedule

    name, _, rest = written.partition(":")
    if name in ("exact", "one-peer-exponential"):
        if not re.fullmatch("[0-9]{1,18}", rest):
            raise GraphError(f"cannot read the number of agents in {written!r}: write {SCHEDULES[name]}")
        if rule is not None:
            raise PolicyError(f"{written} has its own weights: leave out --policy {rule}")
        build = schedule.exact if name == "exact" else schedule.one_peer_exponential
        return build(int(rest))
    if name in SCHEDULES and not rest:
        raise GraphError(f"{name} is a schedule of a network, which is missing: write {SCHEDULES[name]}")
    if name == "pairwise":
        if rule is not None:
            raise PolicyError(f"{written} has its own weights: leave out --policy {rule}")
        return schedule.pairwise(read_policy(rest, None).graph)
    if name == "eigenvalue-steps":
        return schedule.eigenvalue_steps(read_policy(rest, rule))
    if name == "alternating":
        return schedule.alternating([read_policy(one, rule) for one in rest.split("+")])
    return _read_policy(written, rule)


def read_policy(written: str, rule: str | None) -> Policy:
    """The policy meant by a network and a weighing rule as written on the command line."""
    return unchanging(read_schedule(written, rule), written)


def unchanging(schedule: Schedule, written: str) -> Policy:
    """The network as a policy; one that changes from round to round is refused."""
    from collegium.policy import Policy

    if not isinstance(schedule, Policy):
        raise PolicyError(f"{written} changes from round to round, and this needs a network that does not: use ring:12")
    return schedule


def _read_policy(written: str, rule: str | None) -> Schedule:
    from collegium import policy
    from collegium.cli.tables import read_matrix
    from collegium.policy import Policy

    name = written.partition(":")[0]
    if name in FAMILIES:
        if rule is not None and rule not in POLICIES:
            raise PolicyError(f"there is no policy {rule!r}: choose one of {', '.join(POLICIES)}")
        weigh: Callable[[Graph], Policy] = getattr(policy, rule or "uniform")
        return weigh(read_graph(written))
    path = Path(written)
    if not _exists(path):
        examples = ", ".join(example for _, example in FAMILIES.values())
        raise InputFileError(
            f"{written!r} is neither a topology nor a file. Topologies: {examples}; schedules: "
            f"{', '.join(SCHEDULES.values())}"
        )
    if rule is not None:
        raise PolicyError(f"{written} holds the weights themselves: leave out --policy {rule}")
    if _is_network_file(path):
        from collegium.planner import read_network

        return read_network(path).policy
    try:
        return Policy(read_matrix(path))
    except PolicyError as problem:
        raise PolicyError(f"{written}: {problem}") from None


def read_network_or_policy(written: str, rule: str | None) -> tuple[Schedule, NetworkFile | None]:
    """The network meant, and the file it came from, if it did: with a rule and a number of rounds of its own."""
    policy = read_schedule(written, rule)
    if written.partition(":")[0] in (*FAMILIES, *SCHEDULES) or not _is_network_file(Path(written)):
        return policy, None
    from collegium.planner import read_network

    return policy, read_network(written)


def _is_network_file(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def read_graph(written: str) -> Graph:
    """The graph meant by `family:size,name=value,…`."""
    from collegium import topology

    name, _, rest = written.partition(":")
    called, example = FAMILIES[name]
    build: Callable[..., Graph] = getattr(topology, called)
    sizes: list[int] = []
    named: dict[str, float] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if equals:
            if key.strip() in named:
                raise GraphError(f"{key.strip()} is set twice in {written!r}")
            named[key.strip()] = _number(value, written, example)
        elif re.fullmatch(r"[0-9]{1,18}(x[0-9]{1,18})?", part.strip()) and not sizes:
            sizes = [int(size) for size in part.strip().split("x")]
        else:
            raise GraphError(f"cannot read {part!r} in {written!r}: write {example}")
    if len(sizes) != (2 if "x" in example else 1):
        raise GraphError(f"cannot read the size in {written!r}: write {example}")
    try:
        return build(*sizes, **named)
    except TypeError:
        raise GraphError(f"{written!r} has a setting that {name} does not know: write {example}") from None
    except CollegiumError as problem:
        raise GraphError(f"{written}: {problem}") from None


def _number(text: str, written: str, example: str) -> int | float:
    try:
        return int(text) if re.fullmatch(r"\s*[+-]?[0-9]+\s*", text) else float(text)
    except ValueError:
        raise GraphError(f"{text!r} in {written!r} is not a number: write {example}") from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long to be one
        return False
