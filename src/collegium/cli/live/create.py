"""`collegium live init`: a new network, as a folder."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from collegium.cli.live.shared import AsJson, QuantiserBound, Trust, counted, listed, need, print_members, sized
from collegium.cli.network_argument import PolicyName, read_network_or_policy, topology_option
from collegium.cli.rules import Bits, RuleName, read_rule
from collegium.cli.score_tables import CLASSES_HELP
from collegium.errors import InputFileError, PolicyError, RuleError


class Absent(StrEnum):
    """What replaces a message that never arrived."""

    RENORMALISE = "renormalise"
    HOLD = "hold"


class Mode(StrEnum):
    """Whether agents go from round to round together."""

    SYNCHRONOUS = "synchronous"
    ASYNCHRONOUS = "asynchronous"


def init(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The new folder.")],
    team: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A team that Team.save wrote; without one, agents are given scores."),
    ] = None,
    topology: Annotated[
        str | None,
        topology_option("ring, grid and others alone take the team's size. The team's own if left out."),
    ] = None,
    trust: Trust = None,
    policy: PolicyName = None,
    hosts: Annotated[
        str, typer.Option(metavar="HOST,…", help="One for each agent, or fewer, used in turn.")
    ] = "127.0.0.1",
    rounds: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="The network file's, schedule's or team's own, else 20.")
    ] = None,
    rule: RuleName = None,
    bits: Bits = None,
    bound: QuantiserBound = None,
    score_bound: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            min=0,
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
    privacy_budget: Annotated[
        float | None,
        typer.Option(metavar="EPSILON", min=0, help="What an agent's items may cost together, with laplace-once."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="Answers have a set of classes that lacks the true one for at most this share of items."),
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="Answers say whether they are sure: of those at most this share is wrong.")
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="asynchronous: no rounds; agents keep running sums, each on its own clock, and answer when their "
            "statistic stands still. For links that lose much."
        ),
    ] = Mode.SYNCHRONOUS,
    still: Annotated[float, typer.Option(min=0.04, help="With --mode asynchronous: for so many seconds.")] = 0.25,
    journal: Annotated[
        bool, typer.Option("--journal", help="Accepted items outlive an agent's process, in a file beside its own.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a network's folder: a file, a certificate and a model for each agent, and what goes to which host."""
    need()
    from collegium.live.folder import NetworkSettings, create
    from collegium.live.peers import Deadlines
    from collegium.schedule import own_rounds, own_rule
    from collegium.team import Team

    trusted = listed(trust)
    try:
        saved = None if team is None else Team.load(team, trusted=trusted)
    except InputFileError as problem:
        raise InputFileError(re.sub(r"Team\.load\(folder, trusted=\[(.*?)\]\)", _as_option, str(problem))) from None
    if topology is None and saved is None:
        raise PolicyError("give --team, or --topology for agents that are given scores, such as --topology ring:9")
    if classes is not None and saved is not None:
        raise InputFileError("a team has its own classes: leave out --classes")
    over, kept = (saved.policy, None) if topology is None else read_network_or_policy(sized(topology, saved), policy)  # type: ignore[union-attr]
    if mode is Mode.ASYNCHRONOUS:
        if rounds is not None:
            raise RuleError("asynchronous agents have no rounds: leave out --rounds")
        rule = rule or "running-sums"
    has_own = topology is not None and over.rule is not None  # then the team's are not meant for it
    rounds = rounds or (kept.rounds if kept else saved.rounds if saved and not has_own else None) or own_rounds(over)
    if rule is None and bits is None and bound is None and (kept or (saved and not has_own)):
        chosen = (kept.rule if kept else saved.rule) or own_rule(over)  # type: ignore[union-attr]
    else:
        largest = 2.0 if saved is not None and saved.bounded else None
        chosen = read_rule(rule, bits, bound, rounds, largest, over.rule)
    settings = NetworkSettings(
        listed(hosts) or ["127.0.0.1"],
        rounds,
        chosen,
        seed,
        port,
        http_port,
        tls,
        Deadlines(
            deadline,
            min(0.25, deadline),
            view_deadline,
            max(Deadlines().item, view_deadline + deadline),
            still,
            min(Deadlines().pace, still / 4),
        ),
        absent.value,
        bound=score_bound,
        classes=_classes(classes),
        trusted=trusted,
        journal=journal,
        budget=privacy_budget,
        alpha=alpha,
        error=error,
        mode=mode.value,
    )
    files = create(out, over, saved, settings)
    if as_json:
        from collegium.live import launcher

        print_members(launcher.members(out), as_json)
        return
    typer.echo(
        f"{counted(len(files))} in {out}: see {out / 'README.md'}, or run them all here: collegium live up {out}"
    )


def _classes(written: str | None) -> list[int | str]:
    """The classes in the order of an agent's file: of two, that of -1 first; numbers if all of them are."""
    names = [name.strip() for name in (written or "1,-1").split(",")]
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        raise InputFileError(f"--classes wants two different names or more, such as left,right,ahead; got {written!r}")
    are_numbers = all(re.fullmatch("-?[0-9]{1,9}", name) for name in names)
    found: list[int | str] = [int(name) if are_numbers else name for name in names]
    return found[::-1] if len(found) == 2 else found


def _as_option(found: re.Match[str]) -> str:
    """Types to trust, as this command line wants them."""
    return f"--trust {found[1].replace(chr(39), '').replace(' ', '')}"
