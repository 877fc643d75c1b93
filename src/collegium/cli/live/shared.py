"""What the commands of `collegium live` share."""

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium.cli.network_argument import FAMILIES, SCHEDULES
from collegium.errors import BackendError

if TYPE_CHECKING:
    from collegium.live.launcher import Member
    from collegium.team import Team

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="What collegium live init wrote.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Trust = Annotated[
    str | None,
    typer.Option(metavar="TYPE,…", help="Types in the team's files to load although skops does not know them."),
]
QuantiserBound = Annotated[
    float | None, typer.Option(help="Range of the quantiser: no message may be larger. 2 for a bounded team.")
]
_COLUMNS = ("agent", "process", "users", "neighbours", "file")


def print_members(network: list["Member"], as_json: bool) -> None:
    """Where agents are, as a table or as JSON."""
    rows = []
    for member in network:
        port = member.file.http
        url = f"http{'s' if port.https else ''}://{port.host}:{port.port}"
        rows.append((member.file.agent.name, member.pid, url, member.file.agent.listen, str(member.path)))
    if as_json:
        typer.echo(json.dumps([dict(zip(_COLUMNS, row, strict=True)) for row in rows]))
        return
    table = Table(*_COLUMNS[:-1], box=box.SIMPLE_HEAD)
    for name, pid, url, listen, _ in rows:
        table.add_row(name, str(pid or "elsewhere"), url, listen)
    Console(highlight=False, markup=False).print(table)


def sized(written: str, team: "Team | None") -> str:
    """`ring` alone is a ring of the team's size, `grid` the squarest one; `exact` alone is a schedule of its size."""
    if team is None or written not in (*FAMILIES, *SCHEDULES):
        return written
    K = len(team.agents)
    if written in SCHEDULES or "x" not in FAMILIES[written][1]:
        return f"{written}:{K}"
    from collegium.topology.deterministic import squarest

    return "{}:{}x{}".format(written, *squarest(K))


def listed(written: str | None) -> list[str]:
    """The names between commas."""
    return [name.strip() for name in (written or "").split(",") if name.strip()]


def counted(count: int) -> str:
    """A number of agents."""
    return "1 agent" if count == 1 else f"{count} agents"


def need() -> None:
    """The live extra, or an error on how to install it."""
    try:
        for name in ("cryptography", "msgspec", "uvicorn", "zenoh"):
            import_module(name)
    except ImportError as problem:
        raise BackendError(f"live agents need {problem.name}: pip install 'collegium[live]'") from None
