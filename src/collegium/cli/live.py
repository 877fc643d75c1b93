"""`collegium live`: agents as processes that exchange messages over a real network."""

import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium.cli.labelled import CLASSES_HELP
from collegium.cli.network_argument import FAMILIES, NETWORK_HELP, PolicyName, complete_network, read_network_or_policy
from collegium.cli.rules import Bits, RuleName, read_rule
from collegium.errors import BackendError, InputFileError, PolicyError

if TYPE_CHECKING:
    from collegium.data import Dataset
    from collegium.live.answers import ItemResult, Status
    from collegium.live.launcher import Member
    from collegium.team import Team

app = typer.Typer(
    help="Agents as processes of their own over a real network.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="What collegium live init wrote.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


class Absent(StrEnum):
    """What replaces a message that never arrived."""

    RENORMALISE = "renormalise"
    HOLD = "hold"


@app.command()
def init(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The new folder.")],
    team: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A team that Team.save wrote; without one, agents are given scores."),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            metavar="NETWORK",
            help=f"{NETWORK_HELP} ring, grid and others alone take the team's size. The team's own if left out.",
            autocompletion=complete_network,
        ),
    ] = None,
    trust: Annotated[
        str | None,
        typer.Option(metavar="TYPE,…", help="Types in the team's files to load although skops does not know them."),
    ] = None,
    policy: PolicyName = None,
    hosts: Annotated[
        str, typer.Option(metavar="HOST,…", help="One for each agent, or fewer, used in turn.")
    ] = "127.0.0.1",
    rounds: Annotated[int | None, typer.Option(min=1, max=10_000, help="The team's own, else 20.")] = None,
    rule: RuleName = None,
    bits: Bits = None,
    bound: Annotated[
        float | None, typer.Option(help="Range of the quantiser: no message may be larger. 2 for a bounded team.")
    ] = None,
    score_bound: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Largest score of an agent: a larger one is refused. By default 4 times its largest in training; 1000 "
            "without a team.",
        ),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B,…", help=f"Without a team. {CLASSES_HELP} By default 1,-1.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For rules that draw.")] = 0,
    port: Annotated[
        int, typer.Option(min=0, help="Agent k listens to its neighbours on this + k; 0: free ports.")
    ] = 7400,
    http_port: Annotated[int, typer.Option(min=0, help="And its users on this + k; 0: free ports.")] = 8400,
    tls: Annotated[bool, typer.Option("--tls/--no-tls", help="Certificates for all agents, or none at all.")] = True,
    deadline: Annotated[
        float, typer.Option(min=0.01, help="Longest wait for a neighbour in a round, in seconds.")
    ] = 2.0,
    view_deadline: Annotated[float, typer.Option(min=0.01, help="Longest wait for an agent's own view.")] = 1.0,
    absent: Annotated[
        Absent, typer.Option(help="A message that never arrived: left out and weights scaled up, or the last one kept.")
    ] = Absent.RENORMALISE,
) -> None:
    """Write a network's folder: a file, a certificate and a model for each agent, and what goes to which host."""
    _need()
    from collegium.live.folder import NetworkSettings, create
    from collegium.live.peers import Deadlines
    from collegium.team import Team

    trusted = [name.strip() for name in (trust or "").split(",") if name.strip()]
    try:
        saved = None if team is None else Team.load(team, trusted=trusted)
    except InputFileError as problem:
        raise InputFileError(re.sub(r"Team\.load\(folder, trusted=\[(.*?)\]\)", _as_option, str(problem))) from None
    if topology is None and saved is None:
        raise PolicyError("give --team, or --topology for agents that are given scores, such as --topology ring:9")
    if classes is not None and saved is not None:
        raise InputFileError("a team has its own classes: leave out --classes")
    over, kept = (saved.policy, None) if topology is None else read_network_or_policy(_sized(topology, saved), policy)  # type: ignore[union-attr]
    rounds = rounds or (kept.rounds if kept else saved.rounds if saved else 20)
    if rule is None and bits is None and bound is None and (kept or saved):
        chosen = kept.rule if kept else saved.rule  # type: ignore[union-attr]
    else:
        chosen = read_rule(rule or "degroot", bits, bound, rounds, 2.0 if saved is not None and saved.bounded else None)
    settings = NetworkSettings(
        [host for host in hosts.split(",") if host.strip()] or ["127.0.0.1"],
        rounds,
        chosen,
        seed,
        port,
        http_port,
        tls,
        Deadlines(deadline, min(0.25, deadline), view_deadline, max(Deadlines.item, view_deadline + deadline)),
        absent.value,
        bound=score_bound,
        classes=_classes(classes),
        trusted=trusted,
    )
    files = create(out, over, saved, settings)
    typer.echo(
        f"{_agents(len(files))} in {out}: see {out / 'README.md'}, or run them all here: collegium live up {out}"
    )


def _classes(written: str | None) -> list[int | str]:
    """The classes in the order of an agent's file: of two, that of -1 first; numbers if all of them are."""
    names = [name.strip() for name in (written or "1,-1").split(",")]
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        raise InputFileError(f"--classes wants two different names or more, such as left,right,ahead; got {written!r}")
    are_numbers = all(re.fullmatch("-?[0-9]{1,9}", name) for name in names)
    found: list[int | str] = [int(name) if are_numbers else name for name in names]
    return found[::-1] if len(found) == 2 else found


@app.command()
def agent(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One agent's file, such as net/agent-3.toml.")],
) -> None:
    """Run one agent until SIGTERM or Ctrl-C."""
    _need()
    # The agent replaces this process, so that it does not keep what the command line has loaded.
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "collegium.live", str(file)])


@app.command()
def up(
    folder: Folder, wait: Annotated[float, typer.Option(min=1, help="Seconds until all must be ready.")] = 60.0
) -> None:
    """Run all agents of a folder on this machine."""
    _need()
    from collegium.live import launcher

    network = launcher.up(folder, wait)
    _print_members(network)
    typer.echo(
        f"{_agents(len(network))} up. status: collegium live status {folder} · end: collegium live down {folder}"
    )


@app.command()
def status(folder: Folder, as_json: AsJson = False) -> None:
    """The state of every agent and its neighbours; exit code 1 if an agent is down."""
    _need()
    from collegium.live import launcher

    found = list(launcher.statuses(folder))
    if as_json:
        from msgspec import json, to_builtins

        rows = [
            {"agent": m.file.agent.name, **({"down": s} if isinstance(s, str) else to_builtins(s))} for m, s in found
        ]
        typer.echo(json.encode(rows))
    else:
        _print_statuses(found)
    if any(isinstance(one, str) for _, one in found):
        raise typer.Exit(1)


def _print_statuses(found: "list[tuple[Member, Status | str]]") -> None:
    columns = ("agent", "state", "neighbours", "pending", "decided", "incomplete", "p50 ms", "p99 ms", "kB sent")
    table = Table(*columns, box=box.SIMPLE_HEAD)
    notes = []
    for member, one in found:
        name = member.file.agent.name
        if isinstance(one, str):
            table.add_row(name, "down")
            notes.append(f"{name}: {one}")
            continue
        states = [n.state for n in one.neighbours]
        counted = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        pending = one.items.pending + one.items.waiting
        table.add_row(
            name, "ready" if one.ready else "waiting", counted, str(pending), str(one.items.done),
            str(one.items.incomplete), _number(one.latency_ms.p50), _number(one.latency_ms.p99),
            f"{one.bytes.sent / 1e3:.1f}",
        )  # fmt: skip
        notes += [f"{name}: {n.name} {n.state}: {n.reason}" for n in one.neighbours if n.reason]
        notes += [
            f"{name}: {n.name} was over its budget {n.over_budget} times" for n in one.neighbours if n.over_budget
        ]
        notes += [f"{name}: {reason} ({times}×)" for reason, times in one.refused_peers.items()]
        if one.overloaded_s:
            notes.append(f"{name}: overloaded for {one.overloaded_s:.1f} s: items waited or were refused")
    console = Console(highlight=False, markup=False)
    console.print(table)
    for note in notes:
        console.print(note, soft_wrap=True)


@app.command()
def renew(
    folder: Folder,
    days: Annotated[
        int, typer.Option(min=1, max=36500, help="How long they are valid, at most as long as the authority's own.")
    ] = 730,
) -> None:
    """New certificates for all agents, made with the folder's ca.key; each agent takes its own when it starts anew."""
    _need()
    from collegium.live import launcher

    end = launcher.renew(folder, days)
    typer.echo(
        f"new certificates in {folder}, valid until {end:%Y-%m-%d}: copy to each host its agents' .pem and .key, "
        "then start them anew, one after the other"
    )


@app.command()
def down(folder: Folder) -> None:
    """End all agents of a folder that run on this machine."""
    _need()
    from collegium.live import launcher

    count = launcher.down(folder)
    typer.echo(f"{_agents(count)} ended" if count else "none was running")


@app.command()
def demo(
    items: Annotated[int, typer.Option(min=1, max=300, help="Handwritten digits to decide.")] = 200,
    classes: Annotated[
        str, typer.Option(metavar="A,B,…", help="Which digits to tell apart: two or more of 0 to 9.")
    ] = "3,8",
    rounds: Annotated[int, typer.Option(min=1)] = 20,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the network's folder here.")] = None,
) -> None:
    """Nine processes, one patch of a handwritten digit each, decide together; compared with the simulator."""
    _need()
    if keep is not None:
        from collegium._team_files.folder import check_new

        check_new(keep)
    with TemporaryDirectory(prefix="collegium-live-") as scratch:
        _demo(items, [name.strip() for name in classes.split(",")], rounds, keep or Path(scratch) / "net")


def _demo(items: int, classes: list[str], rounds: int, folder: Path) -> None:
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from collegium import policy, topology
    from collegium.data import digits
    from collegium.live import launcher
    from collegium.live.folder import NetworkSettings, create
    from collegium.network import collaborate
    from collegium.team import Team

    console = Console(highlight=False, markup=False)
    available = sum(map(len, digits(classes)))
    train, test = digits(classes, test=min((items + 0.5) / available, 0.9))
    truth = _names(train), _names(test)
    names = [f"agent-{k}" for k in range(9)]
    team = Team(
        [(name, LogisticRegression()) for name in names], policy.uniform(topology.grid(3, 3)), rounds, workers=1
    )
    team.fit(train.views, truth[0])
    kinds = " and ".join([", ".join(f"{name}s" for name in classes[:-1]), f"{classes[-1]}s"])
    console.print(f"nine agents trained apart on {len(train)} handwritten {kinds}; starting nine processes …")
    create(folder, team.policy, team, NetworkSettings(rounds=rounds, port=0, http_port=0))
    n = min(items, len(test))

    def decide(k: int) -> "list[ItemResult]":
        with network[k].client() as client:
            return client.decide(range(n), views=test.views[k][:n], trace=True)

    begun = time.perf_counter()
    network = launcher.up(folder)
    started = time.perf_counter() - begun
    try:
        before = [_bytes(member) for member in network]
        with ThreadPoolExecutor(9) as pool:
            begun = time.perf_counter()
            answers = list(pool.map(decide, range(9)))
            seconds = time.perf_counter() - begun
        sent = sum(_bytes(member) for member in network) - sum(before)
    finally:
        launcher.down(folder)
    statistics = np.array([[one.trace for one in column] for column in answers], float).swapaxes(0, 2)
    simulated = collaborate(statistics[0], team.policy, rounds)
    scores = np.abs(statistics[0] - team.statistics([view[:n] for view in test.views])).max()
    latency = np.array([one.latency_ms for column in answers for one in column])
    wrong = [
        (team.classes_[(page > 0).astype(int) if page.ndim == 2 else page.argmax(axis=2)] != truth[1][:n, None]).mean()
        for page in (statistics[0], statistics[-1])
    ]
    table = Table("", "measured", box=box.SIMPLE_HEAD, show_header=False)
    table.add_row("first decisions of the middle agent", " ".join(one.label for one in answers[4][:12]))
    table.add_row("error alone (mean of nine)", f"{100 * wrong[0]:.1f} %")
    table.add_row(f"error after {rounds} rounds", f"{100 * wrong[1]:.1f} %")
    table.add_row("items decided by all nine", f"{n} in {seconds:.2f} s, after a start of {started:.1f} s")
    table.add_row(
        "latency of an item", f"median {np.median(latency):.0f} ms, 99 % within {np.quantile(latency, 0.99):.0f} ms"
    )
    table.add_row(
        "bytes sent per item, all agents", f"{sent / n:.0f}, of which {simulated.bits[0] / 8:.0f} are messages"
    )
    table.add_row("difference to the simulator", f"{np.abs(statistics - simulated.statistics).max():g}")
    table.add_row("scores here and in the team", f"within {scores:.1e}")
    console.print(table)
    console.print("next: collegium live init --help, to run your own team on your own hosts")


def _names(items: "Dataset") -> Any:
    """The class of every item by its name."""
    import numpy as np

    places = items.y if len(items.class_names) > 2 else np.where(items.y > 0, 0, 1)
    return np.array(items.class_names)[places]


def _bytes(member: "Member") -> int:
    with member.client() as client:
        return client.status().bytes.sent


def _print_members(network: list["Member"]) -> None:
    table = Table("agent", "process", "users", "neighbours", box=box.SIMPLE_HEAD)
    for member in network:
        port = member.file.http
        url = f"http{'s' if port.https else ''}://{port.host}:{port.port}"
        table.add_row(member.file.agent.name, str(member.pid or "elsewhere"), url, member.file.agent.listen)
    Console(highlight=False, markup=False).print(table)


def _as_option(found: re.Match[str]) -> str:
    """Types to trust, as this command line wants them."""
    return f"--trust {found[1].replace(chr(39), '').replace(' ', '')}"


def _sized(written: str, team: "Team | None") -> str:
    """`ring` alone is a ring of the team's size, `grid` the squarest one."""
    if written not in FAMILIES or team is None:
        return written
    K = len(team.agents)
    if "x" not in FAMILIES[written][1]:
        return f"{written}:{K}"
    from collegium.topology.deterministic import squarest

    return "{}:{}x{}".format(written, *squarest(K))


def _agents(count: int) -> str:
    return "1 agent" if count == 1 else f"{count} agents"


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:g}"


def _need() -> None:
    """The live extra, or an error on how to install it."""
    try:
        import cryptography
        import msgspec
        import uvicorn
        import zenoh  # noqa: F401
    except ImportError as problem:
        raise BackendError(f"live agents need {problem.name}: pip install 'collegium[live]'") from None
    del cryptography, msgspec, uvicorn
