"""`collegium live init`: a network as a folder, one set of files per agent, and a note of what goes to which host."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import ipaddress
import secrets
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from collegium._serving.server import is_loopback
from collegium._team_files.folder import new_folder
from collegium._util.files import atomic_write
from collegium._util.seat import Seat
from collegium.errors import LiveError, PolicyError, RuleError
from collegium.live import config, keys, model, signing
from collegium.live.config import AgentFile, Heard, Hearer, Hiding, Model, Port, Secrets, Talk, Who
from collegium.live.configuration import Member
from collegium.live.peers import Deadlines
from collegium.live.sets import of_team
from collegium.live.transport.faulty import Faults
from collegium.policy import Policy
from collegium.protocol import DeGroot, Rule, RunningSums, registry
from collegium.schedule import Schedule
from collegium.team import Team

TOKEN = "token"
"""The file with the token that ports reachable from other machines require."""
BOUND = 1e3
"""The largest score of an agent whose training scores are not known."""
_MARGIN = 4.0  # times its largest training score, an agent's score may be
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class NetworkSettings:
    """Settings of a new network."""

    hosts: Sequence[str] = (_LOOPBACK,)
    """One for each agent, or fewer: then they are used in turn."""
    rounds: int = 20
    rule: Rule = DeGroot()
    seed: int = 0
    port: int = 7400
    """Agent k listens to its neighbours on this + k; 0 looks for free ports of this machine."""
    http_port: int = 8400
    """And to its users on this + k; 0 looks for free ones."""
    tls: bool = True
    deadlines: Deadlines = Deadlines()
    absent: config.Absent = "renormalise"
    faults: Faults | None = None
    bound: float | None = None
    """The largest score of an agent; by default from its training scores, and `BOUND` where there are none."""
    classes: Sequence[int | float | bool | str] = (-1, 1)
    """The classes of a network whose agents are given scores; a team has its own."""
    alpha: float | None = None
    """Answers have prediction sets that lack the true class of at most this share of items; of a team only."""
    error: float | None = None
    """Answers say whether the agent is sure: of those at most this share is wrong; of a team only."""
    journal: bool = False
    """Whether accepted items outlive an agent's process, in a file `agent-K.journal`."""
    budget: float | None = None
    """What the items of an agent may cost it in privacy, with rules that add noise; no limit if None."""
    mode: config.Mode = "synchronous"
    """asynchronous: no rounds; agents keep running sums, each on its own clock."""
    trusted: Sequence[str] = ()
    """Types in models' files that are to be loaded although skops does not know them."""


def create(
    out: str | Path, policy: Policy | Schedule, team: Team | None = None, settings: NetworkSettings | None = None
) -> list[Path]:
    """Write the network's folder, whole or not at all; the agents' files. Without a team, agents are given scores.

    policy: who hears whom, in all rounds or, as a schedule, in each; its rule and rounds belong into `settings`.
    """
    out, settings = Path(out), settings or NetworkSettings()
    K = policy.size
    if team is not None and len(team.agents) != K:
        raise PolicyError(f"the team has {len(team.agents)} agents and the network {K}: choose a topology of that size")
    if settings.mode == "asynchronous":
        settings = _without_rounds(policy, settings)
    over = rounds_of(policy, settings)
    if settings.budget is not None and not settings.rule.codec.adds_noise:
        raise LiveError("a privacy budget is for rules that add noise, such as averaging with the codec laplace-once")
    names = [str(name) for name, _ in team.agents] if team is not None else [f"agent-{k}" for k in range(K)]
    for name in names:
        keys.check_name(name)
    hosts = [host_of(settings.hosts[k % len(settings.hosts)], settings.tls) for k in range(K)]
    ports, http_ports = free_ports((settings.port, settings.http_port), hosts)
    taken = [(hosts[k], port) for k in range(K) for port in (ports[k], http_ports[k])]
    if len(set(taken)) < len(taken):
        raise LiveError(
            "the ports for neighbours and those for users overlap: choose --port and --http-port further apart"
        )
    sets = of_team(team, policy, settings.rounds, settings.rule, settings.alpha, settings.error)
    network = secrets.token_hex(8)
    token = secrets.token_urlsafe(24) if not all(map(is_loopback, hosts)) else None
    endpoints = [f"{'tls' if settings.tls else 'tcp'}/{bracketed(hosts[k])}:{ports[k]}" for k in range(K)]
    bounds = largest_scores(team, K, settings)
    talk, places = agree(policy, over, settings, network, names, endpoints, bounds)
    with new_folder(out) as folder:
        authority = keys.create_authority(folder, network) if settings.tls else None
        models = [
            Model(list(settings.classes)) if team is None else model_of(team, k, folder, f"agent-{k}", settings.trusted)
            for k in range(K)
        ]
        if signing.needs_keys(settings.rule):
            talk.public_keys = [signing.create(folder / f"agent-{k}.private", settings.rule) for k in range(K)]
        talk.models = [config.hash_of_model(one, folder) for one in models]
        for k in range(K):
            stem = f"agent-{k}"
            secret = None
            if authority is not None:
                keys.issue(authority, folder, names[k], [hosts[k]], stem=stem, days=730 - k % 74)
                secret = Secrets("ca.pem", f"{stem}.pem", f"{stem}.key")
            public = not is_loopback(hosts[k])
            file = AgentFile(
                places[k].agent,
                talk,
                places[k].hears,
                places[k].audience,
                models[k],
                Port(
                    hosts[k],
                    http_ports[k],
                    hashlib.sha256(token.encode()).hexdigest() if token and public else None,
                    journal=f"{stem}.journal" if settings.journal else "",
                    https=public and settings.tls,
                ),
                secret,
                settings.deadlines,
                faults=settings.faults,
                privacy=None if settings.budget is None else Hiding(settings.budget),
                sets=None if sets is None else sets[k],
            )
            about = f"{names[k]}: agent {k} of {K} in network {network}.\nRun it with: collegium live agent {stem}.toml"
            config.checked(msgspec.to_builtins(file))
            (folder / f"{stem}.toml").write_text(config.write(file, about), encoding="utf-8")
        if token:
            with atomic_write(folder / TOKEN, mode=0o600) as written:
                written.write(f"{token}\n".encode())
        (folder / "README.md").write_text(
            _readme(folder, names, hosts, network, bool(token), settings), encoding="utf-8"
        )
    return [out / f"agent-{k}.toml" for k in range(K)]


def rounds_of(policy: Policy | Schedule, settings: NetworkSettings) -> list[Sequence[Seat]]:
    """Everybody's place in each round, or once where all are the same; refused if the rule cannot be used there."""
    over: list[Sequence[Seat]] = [
        policy.at(t) for t in range(1, 2 if isinstance(policy, Policy) else settings.rounds + 1)
    ]
    if not over:
        raise PolicyError("a schedule of one agent has no rounds: give it two agents or more")
    for seats in over:
        settings.rule.check_seats(seats)
    settings.rule.sends_own(over[0][0])  # which refuses a network that the rule is not made for
    return over


def agree(
    policy: Policy | Schedule,
    over: list[Sequence[Seat]],
    settings: NetworkSettings,
    network: str,
    names: list[str],
    endpoints: list[str],
    bounds: list[float],
) -> tuple[Talk, list[Member]]:
    """What all agents of a network agree on, models aside, and the place of each."""
    K = len(names)
    reachable = _reachable(over, settings.rounds if settings.mode == "synchronous" else K)
    hears = [
        [
            Heard(l, names[l], weight, bounds[l], "" if l == k else endpoints[l])
            for l, weight in _mean_weights([seats[k] for seats in over])
        ]
        for k in range(K)
    ]
    all_weights = config.digest("".join(map(config.hash_of_weights, hears)).encode())
    rule = registry.to_text(settings.rule.prepared(policy, settings.rounds))
    talk = Talk(all_weights, names, max(bounds), settings.rounds, settings.seed, rule, settings.absent)
    talk.mode = settings.mode
    talk.schedule = "" if isinstance(policy, Policy) else registry.to_text(policy)
    places = [
        Member(
            Who(names[k], k, network, endpoints[k], config.hash_of_weights(hears[k]), reachable[k]),
            hears[k],
            [Hearer(j, names[j], endpoints[j]) for j in range(K) if j != k and any(h.number == k for h in hears[j])],
        )
        for k in range(K)
    ]
    return talk, places


def _without_rounds(policy: Policy | Schedule, settings: NetworkSettings) -> NetworkSettings:
    """Settings of a network without rounds, if it can be one."""
    if not isinstance(policy, Policy):
        raise PolicyError(
            "a schedule has other senders in each round, and asynchronous agents have no rounds: use ring:9"
        )
    if type(settings.rule) is not RunningSums:
        raise RuleError(
            f"asynchronous agents keep running sums, and {registry.describe(settings.rule)} needs rounds: leave out "
            "--rule and --bits, or --mode asynchronous"
        )
    return dataclasses.replace(settings, rounds=1)


def model_of(team: Team, k: int, folder: Path, stem: str, trusted: Sequence[str]) -> Model:
    """The model of a team's agent, written into the folder."""
    settings = team.pipeline_[k].to_dict()
    settings.pop("classes", None)  # there are as many as labels
    return Model(
        [_plain(label) for label in team.classes_],
        model.write(team, k, folder, stem),
        trusted=list(trusted),
        **settings,
    )


def largest_scores(team: Team | None, K: int, settings: NetworkSettings) -> list[float]:
    """The largest score of each agent, with a margin over its training scores."""
    largest = getattr(team, "largest_scores_", None)
    if settings.bound is not None:
        return [settings.bound] * K
    return [BOUND] * K if largest is None else [float(_MARGIN * max(score, 1e-3)) for score in largest]


def _mean_weights(seats: Sequence[Seat]) -> list[tuple[int, float]]:
    """Whom an agent hears in any round, ascending, and with which weight on average."""
    total: dict[int, float] = {}
    for seat in seats:
        for l, weight in zip(seat.senders.tolist(), seat.weights.tolist(), strict=True):
            total[l] = total.get(l, 0.0) + weight
    return [(l, total[l] / len(seats)) for l in sorted(total)]


def _reachable(over: Sequence[Sequence[Seat]], rounds: int) -> list[int]:
    """How many agents' views can be in each agent's statistic after all rounds; the last seats stay as they are."""
    K = len(over[0])
    senders = [[seat.senders.tolist() for seat in seats] for seats in over]
    sets = [1 << k for k in range(K)]
    for t in range(rounds):
        before, sets = sets, [0] * K
        for k, heard in enumerate(senders[min(t, len(over) - 1)]):
            for l in heard:
                sets[k] |= before[l]
        if sets == before and t >= len(over):
            break
    return [one.bit_count() for one in sets]


def _plain(label: Any) -> Any:
    value = label.item() if isinstance(label, np.generic) else label
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def host_of(host: str, tls: bool) -> str:
    """A host as it was given, if neighbours can connect to it."""
    host = host.strip().removeprefix("[").removesuffix("]")
    if not host or any(sign in host for sign in "/ @[]"):
        raise LiveError(f"a host is a name or an address, such as 10.0.0.3; got {host!r}")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        raise LiveError(f"{host} is no address that neighbours can connect to: give the one they reach this host by")
    if address.version == 6 and tls:
        raise LiveError(f"with certificates Zenoh connects to names and IPv4 addresses, not to {host}: give its name")
    return host


def bracketed(host: str) -> str:
    """A host as it stands before a port."""
    return f"[{host}]" if ":" in host else host


def free_ports(firsts: tuple[int, ...], hosts: list[str]) -> list[list[int]]:
    """As many rows of ports as there are first ones; all of them are different where free ones are looked for."""
    rows = []
    with ExitStack() as held:
        for first in firsts:
            last = first + len(hosts) - 1
            if last > 65535:
                raise LiveError(f"ports {first} to {last} are not all between 1 and 65535")
            rows.append(list(range(first, last + 1)) if first else [_free(host, held) for host in hosts])
    return rows


def in_use(host: str, port: int) -> bool:
    """Whether a port is taken on this machine; of another machine nothing is known."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that has just been closed is free
        try:
            tried.bind((host, port))
        except OSError as problem:
            return problem.errno == errno.EADDRINUSE
    return False


def _free(host: str, held: ExitStack) -> int:
    taken = held.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
    try:
        taken.bind((host, 0))
    except OSError as problem:
        raise LiveError(
            f"free ports can be found on this machine only, not on {host}: give --port and --http-port "
            f"({problem.strerror or problem})"
        ) from None
    return int(taken.getsockname()[1])


def _how(settings: NetworkSettings) -> str:
    return f"{settings.rounds} rounds of {settings.rule}" if settings.mode == "synchronous" else "without rounds"


def _readme(
    folder: Path, names: list[str], hosts: list[str], network: str, has_token: bool, settings: NetworkSettings
) -> str:
    lines = [
        f"# Network {network}: {len(names)} agents, {_how(settings)}",
        "",
        "Copy to each host the files of its agents, keys readable by their owner only, and run there",
        "`collegium live agent agent-K.toml` for each. All on this machine: `collegium live up` with this folder.",
        "",
        "| host | agent | files |",
        "| --- | --- | --- |",
    ]
    for k, (name, host) in enumerate(zip(names, hosts, strict=True)):
        files = sorted(path.name for path in folder.glob(f"agent-{k}[.-]*"))
        shared = ["ca.pem"] if settings.tls else []
        lines.append(f"| {host} | {name} | {', '.join(f'`{file}`' for file in [*files, *shared])} |")
    lines.append("")
    if settings.tls:
        lines.append("`ca.key` goes to no host: whoever has it can make certificates for this network.")
    if has_token:
        lines.append(f"`{TOKEN}` is what clients send as bearer token; agents know only its hash.")
    return "\n".join(lines) + "\n"
