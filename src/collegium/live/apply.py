"""`collegium live apply`: change a network while it runs, as its next epoch; see `change` for how agents go over."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from collegium._serving.server import is_loopback
from collegium._util.files import atomic_write
from collegium.errors import InputFileError, LiveError, PolicyError
from collegium.live import config, configuration, keys, launcher, signing
from collegium.live.answers import Status
from collegium.live.config import AgentFile, Model, Port, Secrets
from collegium.live.folder import (
    NetworkSettings,
    agree,
    bracketed,
    free_ports,
    host_of,
    in_use,
    largest_scores,
    model_of,
    rounds_of,
)
from collegium.live.launcher import Member
from collegium.policy import Policy
from collegium.protocol import Rule, registry
from collegium.schedule import Schedule
from collegium.team import Team


@dataclass(frozen=True)
class Wanted:
    """What is to change; whatever is None stays as it is."""

    policy: Policy | Schedule | None = None
    """Over the agents that stay, in their order, and then those that are added; or over the team's."""
    team: Team | None = None
    """Agents are matched by name: others than its own leave, and those that are new join."""
    add: Sequence[str] = ()
    remove: Sequence[str] = ()
    rounds: int | None = None
    rule: Rule | None = None
    hosts: Sequence[str] = ("127.0.0.1",)
    """Of agents that join, in turn."""
    ports: tuple[int, int] | None = None
    """Of the first agent that joins, for neighbours and for users; 0: free ones. None: the next after the highest."""
    trusted: Sequence[str] = ()
    new_authority: bool = False
    """Whether another authority takes over: both are trusted, and it signs the agents' next certificates."""


@dataclass(frozen=True)
class Applied:
    """A configuration that was written, and what became of it within the time that was waited."""

    number: int
    joining: list[str]
    leaving: list[str]
    seconds: float | None
    """Until all agents that run on this machine were in the new epoch; None if none runs, or not all are."""
    waiting: dict[str, str]
    """What the agents say that are not there yet."""


def apply(folder: str | Path, wanted: Wanted, wait: float = 30.0) -> Applied:
    """Write and sign the next configuration, start the agents that join where others run, and wait for the switch."""
    folder = Path(folder)
    with launcher.alone(folder):
        network, authority = launcher.with_authority(folder)
        network = _without_unsigned(folder, network)
        try:
            files, joining, leaving = _next(folder, network, authority, wanted)
            ca = keys.next_authority(authority, network[0].file.agent.network) if wanted.new_authority else ""
            content = configuration.signed([file for _, file in files], authority, ca)
            number = files[0][1].talk.epoch
            running = [member for member in network if member.pid is not None]
            if running and joining:
                new = [one for one in launcher.members(folder) if one.path in joining]
                launcher.start(new)
                running += new
            begun = time.monotonic()
            if ca:
                with atomic_write(authority.certificate, sync=True, mode=0o644) as written:
                    written.write(ca.encode())
            configuration.write(folder, content)
        except BaseException:
            _without_unsigned(folder, launcher.members(folder))
            raise
    for member in running:
        with suppress(ProcessLookupError):
            if (pid := member.pid) is not None:
                os.kill(pid, signal.SIGHUP)
    waiting = _wait(running, joining, number, begun + wait) if running else {}
    seconds = time.monotonic() - begun if running and not waiting else None
    if ca and seconds is not None:
        launcher.renew(folder)
    if not waiting:
        for path, file in files:
            if all(member.path != path for member in running):  # a copy of what runs elsewhere, or one that is down
                _write(path, file)
        for path in leaving:
            if all(member.path != path or member.pid is None for member in running):
                path.rename(path.with_suffix(".left"))
    gone = [member.file.agent.name for member in network if member.path in leaving]
    names = {path: file.agent.name for path, file in files}
    return Applied(number, [names[path] for path in joining], gone, seconds, waiting)


def _without_unsigned(folder: Path, network: list[Member]) -> list[Member]:
    """All but agents that were to join by a configuration that was never signed, since `apply` was ended before: they
    are ended, and their files removed."""
    newest = _newest(folder, network)
    unsigned = [one.path for one in network if one.file.agent.joins and one.file.talk.epoch > newest]
    launcher.stop(unsigned)
    for path in unsigned:
        for one in folder.glob(f"{path.stem}.*"):
            one.unlink()
    return [one for one in network if one.path not in unsigned]


def _next(
    folder: Path, network: list[Member], authority: keys.Authority, wanted: Wanted
) -> tuple[list[tuple[Path, AgentFile]], list[Path], list[Path]]:
    """Every agent's file in the next epoch, by number; those of agents that join are written, and those that leave."""
    old = {member.file.agent.name: member for member in network}
    first = network[0].file
    behind = {one.file.agent.name for one in network if one.file.talk.epoch != first.talk.epoch or one.file.agent.joins}
    newest = _newest(folder, network)
    if behind or newest > first.talk.epoch:
        who = f": {', '.join(sorted(behind))} has yet to go over" if behind else ""
        raise LiveError(f"the change before this one (epoch {newest}) is not finished{who}; see collegium live status")
    names = _names(list(old), wanted)
    changed = (wanted.policy, wanted.team, wanted.rounds, wanted.rule)
    if not (wanted.add or wanted.remove or wanted.new_authority) and all(one is None for one in changed):
        raise LiveError(
            "nothing is to change: give --topology, --team, --add, --remove, --rounds, --rule or --new-authority"
        )
    policy = wanted.policy or (wanted.team.policy if wanted.team is not None else _policy(network, names))
    if policy.size != len(names):
        raise PolicyError(f"the network has {policy.size} agents and there are {len(names)}: {', '.join(names)}")
    settings = NetworkSettings(
        rounds=wanted.rounds or (wanted.team.rounds if wanted.team is not None else None) or first.talk.rounds,
        rule=wanted.rule or _for_any_size(first.rule()), seed=first.talk.seed, absent=first.talk.absent,
        mode=first.talk.mode,
        deadlines=first.deadlines, classes=first.model.classes,
    )  # fmt: skip
    over = rounds_of(policy, settings)
    joining = [name for name in names if name not in old]
    ports = _ports(network, wanted, joining)
    endpoints = [old[name].file.agent.listen if name in old else ports[name][0] for name in names]
    bounds = largest_scores(wanted.team, len(names), settings)
    if wanted.team is None:
        bounds = [_bound(old[name].file) if name in old else first.talk.bound for name in names]
    talk, places = agree(policy, over, settings, first.agent.network, names, endpoints, bounds)
    talk.epoch = newest + 1
    stem = max(int(found[1]) for one in folder.glob("agent-*") if (found := re.match(r"agent-(\d+)", one.name)))
    paths = {name: old[name].path for name in names if name in old}
    for i, name in enumerate(joining):
        paths[name] = folder.resolve() / f"agent-{stem + 1 + i}.toml"
    if signing.needs_keys(settings.rule):
        if type(settings.rule) is not type(first.rule()):
            raise LiveError(f"every agent needs a key for {settings.rule}, which this network has not: run init anew")
        known = dict(zip(first.talk.agents, first.talk.public_keys, strict=True))
        talk.public_keys = [
            known[name] if name in known else signing.create(paths[name].with_suffix(".private"), settings.rule)
            for name in names
        ]
    models = [_model(folder, name, k, paths[name], old, talk.epoch, wanted) for k, name in enumerate(names)]
    talk.models = [config.hash_of_model(one, folder) for one in models]
    files = []
    for k, name in enumerate(names):
        before = old[name].file if name in old else _new(first, name, paths[name], ports[name][1], wanted.hosts)
        file = msgspec.structs.replace(
            before, agent=places[k].agent, talk=talk, hears=places[k].hears, audience=places[k].audience,
            model=models[k], sets=None,
        )  # fmt: skip
        files.append((paths[name], config.checked(msgspec.to_builtins(file))))
    for path, file in files:
        me = file.agent
        if me.name in joining:
            host = me.listen.partition("/")[2].rpartition(":")[0].strip("[]")
            keys.issue(authority, folder, me.name, [host], stem=path.stem, days=730 - me.number % 74, replace=True)
            _write(path, msgspec.structs.replace(file, agent=msgspec.structs.replace(me, joins=True)))
        elif wanted.team is not None:
            _write(configuration.staged(path), file)
    return files, [paths[name] for name in joining], [old[name].path for name in old if name not in names]


def _for_any_size(rule: Rule) -> Rule:
    """The rule for a network of another size."""
    return replace(rule, agents=None) if hasattr(rule, "agents") else rule  # type: ignore[type-var]


def _newest(folder: Path, network: list[Member]) -> int:
    first = next((one.file for one in network if not one.file.agent.joins), network[0].file)
    assert first.tls is not None
    try:
        content = (folder / configuration.FILE).read_bytes()
    except FileNotFoundError:
        return first.talk.epoch
    except OSError as problem:
        raise InputFileError(f"{folder / configuration.FILE}: {problem.strerror or problem}") from None
    return max(configuration.decode(content, folder / first.tls.ca, first.agent.network).number, first.talk.epoch)


def _names(old: list[str], wanted: Wanted) -> list[str]:
    if wanted.team is not None:
        if wanted.add or wanted.remove:
            raise LiveError("a team says itself which agents there are: leave out --add and --remove")
        names = [str(name) for name, _ in wanted.team.agents]
    else:
        for name in wanted.remove:
            if name not in old:
                raise LiveError(f"there is no agent {name!r} to remove; there are {', '.join(old)}")
        for name in wanted.add:
            if name in old:
                raise LiveError(f"there is an agent {name!r} already")
        names = [name for name in old if name not in wanted.remove] + list(wanted.add)
    for name in names:
        keys.check_name(name)
    return names


def _policy(network: list[Member], names: list[str]) -> Policy | Schedule:
    """Who hears whom now."""
    talk = network[0].file.talk
    if names != talk.agents:
        raise PolicyError(f"who hears whom among {len(names)} agents? Give --topology, such as ring:{len(names)}")
    if talk.schedule:
        found: Schedule = registry.from_text(talk.schedule, "schedule")
        return found
    A = np.zeros((len(names), len(names)))
    for member in network:
        for heard in member.file.hears:
            A[heard.number, member.file.agent.number] = heard.weight
    return Policy(A)


def _bound(file: AgentFile) -> float:
    return next((one.bound for one in file.hears if one.number == file.agent.number), file.talk.bound)


def _ports(network: list[Member], wanted: Wanted, joining: list[str]) -> dict[str, tuple[str, Port]]:
    """Where agents that join listen, for neighbours and for users."""
    if not joining:
        if wanted.ports:
            raise LiveError("ports are for agents that join, and none does: leave out --port and --http-port")
        return {}
    hosts = [host_of(wanted.hosts[i % len(wanted.hosts)], tls=True) for i in range(len(joining))]
    ports, http_ports = free_ports(wanted.ports, hosts) if wanted.ports else _next_ports(network, hosts)
    token = next((one.file.http.token_sha256 for one in network if one.file.http.token_sha256), None)
    if token is None and not all(map(is_loopback, hosts)):
        raise LiveError("an agent that other machines reach needs a token, and this network has none: run init anew")
    found = {}
    for name, host, port, http_port in zip(joining, hosts, ports, http_ports, strict=True):
        public = not is_loopback(host)
        http = Port(host, http_port, token if public else None, https=public)
        found[name] = (f"tls/{bracketed(host)}:{port}", http)
    return found


def _next_ports(network: list[Member], hosts: list[str]) -> list[list[int]]:
    """For neighbours and for users: the first after those of the network that are in use nowhere."""
    listen = [int(one.file.agent.listen.rpartition(":")[2]) for one in network]
    http = [one.file.http.port for one in network]
    taken, rows = {*listen, *http}, []
    for highest in (max(listen), max(http)):
        row: list[int] = []
        for host in hosts:
            after = range((row[-1] if row else highest) + 1, 65536)
            port = next((port for port in after if port not in taken and not in_use(host, port)), None)
            if port is None:
                raise LiveError(f"no port above {highest} is free for an agent that joins: give --port and --http-port")
            row.append(port)
        rows.append(row)
        taken.update(row)
    return rows


def _new(first: AgentFile, name: str, path: Path, port: Port, hosts: Sequence[str]) -> AgentFile:
    """The file of an agent that joins, with the limits and deadlines of the others."""
    port.journal = f"{path.stem}.journal" if first.http.journal else ""
    return msgspec.structs.replace(
        first,
        http=port,
        tls=Secrets("ca.pem", f"{path.stem}.pem", f"{path.stem}.key"),
        model=Model(first.model.classes),
    )


def _model(folder: Path, name: str, k: int, path: Path, old: dict[str, Member], epoch: int, wanted: Wanted) -> Model:
    if wanted.team is not None:  # beside the model in use, which goes on until the switch
        return model_of(wanted.team, k, folder, f"{path.stem}-{epoch}", wanted.trusted)
    if name in old:
        return old[name].file.model
    some = next(iter(old.values())).file.model
    if some.path:
        raise LiveError(f"{name} needs a model: give --team, with all agents of the network")
    return Model(some.classes)


def _write(path: Path, file: AgentFile) -> None:
    me = file.agent
    about = f"{me.name}: agent {me.number} of {len(file.talk.agents)} in network {me.network}, epoch {file.talk.epoch}."
    with atomic_write(path, sync=True) as written:
        written.write(config.write(file, f"{about}\nRun it with: collegium live agent {path.name}").encode())


def _wait(running: list[Member], joining: list[Path], number: int, end: float) -> dict[str, str]:
    """What those say who are not in the new epoch when the time is over."""
    while True:
        waiting = {}
        for member in running:
            if member.pid is not None and (said := _behind(member, number)):
                waiting[member.file.agent.name] = said
            elif member.pid is None and member.path in joining:
                waiting[member.file.agent.name] = f"it ended: {member.exit_message() or f'see {member.log}'}"
        if not waiting or time.monotonic() > end:
            return waiting
        time.sleep(0.05)


def _behind(member: Member, number: int) -> str:
    """Why an agent is not in an epoch yet; nothing if it is."""
    try:
        with member.client(timeout=3.0) as client:
            status: Status = client.status()
    except LiveError as problem:
        return str(problem)
    if status.epoch >= number and not status.change:
        return ""
    return status.change or f"it is in epoch {status.epoch}"
