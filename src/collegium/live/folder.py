"""`collegium live init`: a network as a folder, one set of files per agent, and a note of what goes to which host."""

from __future__ import annotations

import dataclasses
import hashlib
import ipaddress
import os
import secrets
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from collegium._team_files.folder import new_folder
from collegium.errors import LiveError, PolicyError
from collegium.live import config, keys, model
from collegium.live.config import AgentFile, Heard, Hearer, Model, Port, Secrets, Talk, Wait, Who
from collegium.live.peers import Deadlines
from collegium.policy import Policy
from collegium.protocol import DeGroot, Rule, registry
from collegium.team import Team

TOKEN = "token"
"""The file with the token that ports reachable from other machines require."""
BOUND = 1e3
"""The largest score of an agent whose training scores are not known."""
_MARGIN = 4.0  # times its largest training score, an agent's score may be
_LOOPBACK = "127.0.0.1"
_DEADLINES = Deadlines()


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
    deadlines: Deadlines = _DEADLINES
    absent: config.Absent = "renormalise"
    faults: config.Fault | None = None
    bound: float | None = None
    """The largest score of an agent; by default from its training scores, and `BOUND` where there are none."""
    classes: Sequence[int | float | bool | str] = (-1, 1)
    """The classes of a network whose agents are given scores; a team has its own."""
    trusted: Sequence[str] = ()
    """Types in models' files that are to be loaded although skops does not know them."""


def create(
    out: str | Path, policy: Policy, team: Team | None = None, settings: NetworkSettings | None = None
) -> list[Path]:
    """Write the network's folder, whole or not at all; the agents' files. Without a team, agents are given scores."""
    out, settings = Path(out), settings or NetworkSettings()
    K = policy.size
    if team is not None and len(team.agents) != K:
        raise PolicyError(f"the team has {len(team.agents)} agents and the network {K}: choose a topology of that size")
    names = [str(name) for name, _ in team.agents] if team is not None else [f"agent-{k}" for k in range(K)]
    for name in names:
        keys.check_name(name)
    hosts = [_host(settings.hosts[k % len(settings.hosts)], settings.tls) for k in range(K)]
    ports, http_ports = _ports((settings.port, settings.http_port), hosts)
    taken = [(hosts[k], port) for k in range(K) for port in (ports[k], http_ports[k])]
    if len(set(taken)) < len(taken):
        raise LiveError(
            "the ports for neighbours and those for users overlap: choose --port and --http-port further apart"
        )
    network = secrets.token_hex(8)
    token = secrets.token_urlsafe(24) if any(map(_is_public, hosts)) else None
    endpoints = [f"{'tls' if settings.tls else 'tcp'}/{_bracketed(hosts[k])}:{ports[k]}" for k in range(K)]
    graph = policy.graph
    bounds = _bounds(team, K, settings)
    reachable = _reachable(policy, settings.rounds)
    hears = [
        [
            Heard(int(l), names[l], float(weight), bounds[l], "" if l == k else endpoints[l])
            for l, weight in zip(
                graph.neighbours(k), policy.weights[graph.indptr[k] : graph.indptr[k + 1]], strict=True
            )
        ]
        for k in range(K)
    ]
    all_weights = config.digest("".join(map(config.hash_of_weights, hears)).encode())
    rule = registry.to_text(settings.rule)
    talk = Talk(all_weights, names, max(bounds), settings.rounds, settings.seed, rule, settings.absent)
    with new_folder(out) as folder:
        authority = keys.create_authority(folder, network) if settings.tls else None
        for k in range(K):
            stem = f"agent-{k}"
            secret = None
            if authority is not None:
                keys.issue(authority, folder, names[k], [hosts[k]], stem=stem)
                secret = Secrets("ca.pem", f"{stem}.pem", f"{stem}.key")
            public = _is_public(hosts[k])
            file = AgentFile(
                Who(names[k], k, network, endpoints[k], config.hash_of_weights(hears[k]), reachable[k]),
                talk,
                hears[k],
                [
                    Hearer(j, names[j], endpoints[j])
                    for j in range(K)
                    if j != k and any(h.number == k for h in hears[j])
                ],
                Model(list(settings.classes)) if team is None else _model(team, k, folder, stem, settings.trusted),
                Port(
                    hosts[k],
                    http_ports[k],
                    hashlib.sha256(token.encode()).hexdigest() if token and public else None,
                    https=public and settings.tls,
                ),
                secret,
                Wait(*dataclasses.astuple(settings.deadlines)),
                faults=settings.faults,
            )
            about = f"{names[k]}: agent {k} of {K} in network {network}.\nRun it with: collegium live agent {stem}.toml"
            config.checked(msgspec.to_builtins(file))
            (folder / f"{stem}.toml").write_text(config.write(file, about), encoding="utf-8")
        if token:
            with open(folder / TOKEN, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as written:
                written.write(token + "\n")
        (folder / "README.md").write_text(
            _readme(folder, names, hosts, network, bool(token), settings), encoding="utf-8"
        )
    return [out / f"agent-{k}.toml" for k in range(K)]


def _model(team: Team, k: int, folder: Path, stem: str, trusted: Sequence[str]) -> Model:
    settings = team.pipeline_[k].to_dict()
    settings.pop("classes", None)  # there are as many as labels
    return Model(
        [_plain(label) for label in team.classes_],
        model.write(team, k, folder, stem),
        trusted=list(trusted),
        **settings,
    )


def _bounds(team: Team | None, K: int, settings: NetworkSettings) -> list[float]:
    """The largest score of each agent, with a margin over its training scores."""
    largest = getattr(team, "largest_scores_", None)
    if settings.bound is not None:
        return [settings.bound] * K
    return [BOUND] * K if largest is None else [float(_MARGIN * max(score, 1e-3)) for score in largest]


def _reachable(policy: Policy, rounds: int) -> list[int]:
    """How many agents' views can be in each agent's statistic after all rounds."""
    senders = [policy.graph.neighbours(k).tolist() for k in range(policy.size)]
    sets = [1 << k for k in range(policy.size)]
    for _ in range(rounds):
        before, sets = sets, [0] * policy.size
        for k, heard in enumerate(senders):
            for l in heard:
                sets[k] |= before[l]
        if sets == before:
            break
    return [one.bit_count() for one in sets]


def _plain(label: Any) -> Any:
    value = label.item() if isinstance(label, np.generic) else label
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _host(host: str, tls: bool) -> str:
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


def _is_public(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _ports(firsts: tuple[int, ...], hosts: list[str]) -> list[list[int]]:
    """As many rows of ports as there are first ones; all of them are different where free ones are looked for."""
    rows = []
    with ExitStack() as held:
        for first in firsts:
            last = first + len(hosts) - 1
            if last > 65535:
                raise LiveError(f"ports {first} to {last} are not all between 1 and 65535")
            rows.append(list(range(first, last + 1)) if first else [_free(host, held) for host in hosts])
    return rows


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


def _readme(
    folder: Path, names: list[str], hosts: list[str], network: str, has_token: bool, settings: NetworkSettings
) -> str:
    lines = [
        f"# Network {network}: {len(names)} agents, {settings.rounds} rounds of {settings.rule}",
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
