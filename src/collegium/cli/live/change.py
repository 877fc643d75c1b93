"""`collegium live apply`: change a network while it runs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from collegium.cli.live.shared import AsJson, Folder, QuantiserBound, Trust, listed, need, sized
from collegium.cli.network_argument import PolicyName, read_network_or_policy, topology_option
from collegium.cli.rules import Bits, RuleName, read_rule
from collegium.errors import LiveError


def apply_network(
    folder: Folder,
    topology: Annotated[str | None, topology_option("As it is if left out.")] = None,
    policy: PolicyName = None,
    team: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New models; agents that are only in it join, others leave.")
    ] = None,
    trust: Trust = None,
    add: Annotated[str | None, typer.Option(metavar="NAME,…", help="Agents that join; without a team.")] = None,
    remove: Annotated[str | None, typer.Option(metavar="NAME,…", help="Agents that leave.")] = None,
    hosts: Annotated[str, typer.Option(metavar="HOST,…", help="Of those that join, in turn.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, help="For neighbours of the first that joins; 0: a free one.")
    ] = None,
    http_port: Annotated[int | None, typer.Option(min=0, help="And for its users; 0: a free one.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, max=10_000)] = None,
    rule: RuleName = None,
    bits: Bits = None,
    bound: QuantiserBound = None,
    new_authority: Annotated[
        bool, typer.Option("--new-authority", help="Another certificate authority, beside the one there is.")
    ] = False,
    wait: Annotated[float, typer.Option(min=1, help="Seconds to wait for the agents of this machine.")] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Change a network while it runs: agents, who hears whom, rounds, rule, models.

    The folder's ca.key signs the new configuration. Agents prepare it and go over when all that can be reached have it;
    items that were begun before end as they began. Exit code 1 if agents of this machine are not there in time.
    """
    need()
    from collegium.live.apply import Wanted, apply
    from collegium.team import Team

    if (port is None) is not (http_port is None):
        raise LiveError("an agent that joins listens on two ports: give --port and --http-port, or neither")
    trusted = listed(trust)
    saved = None if team is None else Team.load(team, trusted=trusted)
    over = None if topology is None else read_network_or_policy(sized(topology, saved), policy)[0]
    chosen = read_rule(rule, bits, bound, rounds or 20, None, over.rule if over else None) if rule or bits else None
    found = apply(
        folder,
        Wanted(
            over, saved, listed(add), listed(remove), rounds, chosen, listed(hosts) or ["127.0.0.1"],
            None if port is None or http_port is None else (port, http_port), trusted, new_authority,
        ),
        wait,
    )  # fmt: skip
    if as_json:
        from dataclasses import asdict

        typer.echo(json.dumps(asdict(found)))
    else:
        for verb, names in (("joins", found.joining), ("leaves", found.leaving)):
            for name in names:
                typer.echo(f"{name} {verb}")
        if found.seconds is not None:
            typer.echo(f"epoch {found.number}: all agents of this machine are in it after {found.seconds:.1f} s")
        elif not found.waiting:
            typer.echo(
                f"epoch {found.number} is signed. No agent runs here: copy {folder / 'epoch.json'} beside the "
                "file of any agent, which passes it on, and to each host the new files of its agents"
            )
        for name, why in found.waiting.items():
            typer.echo(f"{name}: {why}", err=True)
    if found.waiting:
        raise typer.Exit(1)
