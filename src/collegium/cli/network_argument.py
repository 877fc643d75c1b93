"""Networks as written on the command line: `ring:12`, `erdos-renyi:12,links=24,seed=7`, or a matrix file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collegium.cli.complete import among
from collegium.errors import CollegiumError, GraphError, InputFileError, PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collegium.planner import NetworkFile
    from collegium.policy import Policy
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
POLICIES = ("uniform", "metropolis", "laplacian")
"""As `collegium.policy` calls them."""

NETWORK_HELP = (
    "A topology such as ring:12, grid:3x4 or erdos-renyi:12,links=24,seed=7, or a file: the matrix A, or a network "
    "from collegium plan."
)
complete_network = among(*(example for _, example in FAMILIES.values()))
PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="RULE",
        help=f"How agents weigh received messages on a topology: {', '.join(POLICIES)} (default uniform).",
        autocompletion=among(*POLICIES),
    ),
]


def read_policy(written: str, rule: str | None) -> Policy:
    """The policy meant by a network and a weighing rule as written on the command line."""
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
        raise InputFileError(f"{written!r} is neither a topology nor a file. Topologies: {examples}")
    if rule is not None:
        raise PolicyError(f"{written} holds the weights themselves: leave out --policy {rule}")
    if _is_network_file(path):
        from collegium.planner import read_network

        return read_network(path).policy
    try:
        return Policy(read_matrix(path))
    except PolicyError as problem:
        raise PolicyError(f"{written}: {problem}") from None


def read_network_or_policy(written: str, rule: str | None) -> tuple[Policy, NetworkFile | None]:
    """The policy meant, and the network file it came from, if it did: with a rule and a number of rounds of its own."""
    policy = read_policy(written, rule)
    if written.partition(":")[0] in FAMILIES or not _is_network_file(Path(written)):
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
