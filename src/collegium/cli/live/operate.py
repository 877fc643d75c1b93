"""The agents of a folder: run and end them, what they are at, their certificates."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium.cli.live.shared import AsJson, Folder, counted, need, print_members

if TYPE_CHECKING:
    from collegium.live.answers import Status
    from collegium.live.launcher import Member


def agent(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One agent's file, such as net/agent-3.toml.")],
) -> None:
    """Run one agent until SIGTERM or Ctrl-C."""
    need()
    # The agent replaces this process, so that it does not keep what the command line has loaded.
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "collegium.live", str(file)])


def up(
    folder: Folder,
    wait: Annotated[float, typer.Option(min=1, help="Seconds until all must be ready.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Run all agents of a folder on this machine."""
    need()
    from collegium.live import launcher

    network = launcher.up(folder, wait)
    print_members(network, as_json)
    if as_json:
        return
    for name in launcher.revoked(folder):
        typer.echo(f"{name} is revoked and was not started")
    typer.echo(
        f"{counted(len(network))} up. status: collegium live status {folder} · end: collegium live down {folder}"
    )


def status(folder: Folder, as_json: AsJson = False) -> None:
    """The state of every agent and its neighbours; exit code 1 if an agent is down."""
    need()
    from collegium.live import launcher

    found, denied = list(launcher.statuses(folder)), launcher.revoked(folder)
    if as_json:
        from msgspec import to_builtins

        rows = [
            {"agent": m.file.agent.name, **({"down": s} if isinstance(s, str) else to_builtins(s))} for m, s in found
        ]
        typer.echo(json.dumps(rows))
    else:
        _print_statuses(found, denied)
    if any(isinstance(one, str) and member.file.agent.name not in denied for member, one in found):
        raise typer.Exit(1)


def _print_statuses(found: "list[tuple[Member, Status | str]]", denied: list[str]) -> None:
    from collegium.live import signing, suspicion

    columns = ("agent", "state", "neighbours", "pending", "decided", "incomplete", "p50 ms", "p99 ms", "kB sent")
    table = Table(*columns, box=box.SIMPLE_HEAD, padding=0)  # which fits into 80 characters
    for name, column in zip(columns, table.columns, strict=True):  # names and numbers take more lines, heads none
        column.overflow, column.min_width = "fold", max(map(len, name.split()))
    notes = []
    for member, one in found:
        name = member.file.agent.name
        if isinstance(one, str):
            table.add_row(name, "revoked" if name in denied else "down")
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
        against = [(n.name, suspicion.evidence(n.far, n.compared)) for n in one.neighbours]
        notes += [f"{name}: {suspect}: {evidence}" for suspect, evidence in against if evidence]
        notes += [f"{name}: {n.name} handed on {n.forged} forged scores" for n in one.neighbours if n.forged]
        notes += [f"{name}: {caught} {signing.LIED}" for caught in one.caught]
        notes += [f"{name}: {reason} ({times}×)" for reason, times in one.refused_peers.items()]
        notes += [f"{name}: {one.change}"] if one.change else []
        if one.privacy is not None:
            most = "" if one.privacy.budget is None else f" of {one.privacy.budget:g}"
            notes.append(f"{name}: ε = {one.privacy.spent:g}{most} spent, {one.privacy.epsilon:g} an item")
        if one.overloaded_s:
            notes.append(f"{name}: overloaded for {one.overloaded_s:.1f} s: items waited or were refused")
    console = Console(highlight=False, markup=False)
    console.print(table)
    for note in notes:
        console.print(note, soft_wrap=True)


def renew(
    folder: Folder,
    days: Annotated[
        int, typer.Option(min=1, max=36500, help="How long they are valid, at most as long as the authority's own.")
    ] = 730,
) -> None:
    """New certificates for all agents, made with the folder's ca.key; running agents take theirs within seconds."""
    need()
    from collegium.live import launcher

    end = launcher.renew(folder, days)
    typer.echo(
        f"new certificates in {folder}, the first valid until {end:%Y-%m-%d}: agents that run here take theirs within "
        "seconds; copy to each other host its agents' .key and then .pem"
    )


def revoke(
    folder: Folder,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Its name, such as agent-3.")],
    restore: Annotated[bool, typer.Option(help="Trust it again, with a new certificate.")] = False,
) -> None:
    """Refuse an agent in the whole network, by a list that the folder's ca.key signs; no agent is restarted."""
    need()
    from collegium.live import launcher

    number = launcher.revoke(folder, agent, restore)
    verb = "is trusted again: copy its new .key and .pem to its host" if restore else "is revoked"
    typer.echo(
        f"{agent} {verb} (list {number}): agents that run here know within a second and pass it on; "
        f"if none does, copy {folder / 'revoked.json'} beside the file of any agent"
    )


def down(folder: Folder) -> None:
    """End all agents of a folder that run on this machine."""
    need()
    from collegium.live import launcher

    count = launcher.down(folder)
    typer.echo(f"{counted(count)} ended" if count else "none was running")


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"
