"""All agents of a folder on this machine: start them, query them, end them."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from collegium.errors import InputFileError, LiveError
from collegium.live import config, keys, revocation, running
from collegium.live.answers import Status
from collegium.live.client import Client
from collegium.live.folder import TOKEN, bracketed


@dataclass(frozen=True)
class Member:
    """An agent of a folder."""

    path: Path
    file: config.AgentFile

    @property
    def log(self) -> Path:
        """The file its process logs to."""
        return running.log(self.path)

    @property
    def pid(self) -> int | None:
        """Its process on this machine, if it runs."""
        return running.process(self.path)

    def client(self, timeout: float = 30.0) -> Client:
        """A client of its port."""
        port, folder = self.file.http, self.path.parent
        token = None
        if port.token_sha256:
            try:
                token = (folder / TOKEN).read_text().strip()
            except OSError:
                raise InputFileError(f"{folder / TOKEN} is missing: {self.file.agent.name} needs a token") from None
        address = f"{bracketed(port.host)}:{port.port}"
        if not port.https:
            return Client(f"http://{address}", token, timeout=timeout)
        assert self.file.tls is not None
        mine = (folder / self.file.tls.certificate, folder / self.file.tls.key) if port.client_certificates else None
        return Client(f"https://{address}", token, ca=folder / self.file.tls.ca, certificate=mine, timeout=timeout)

    def start(self) -> None:
        """Start its process, apart from this one."""
        start([self])

    def is_another(self, status: Status) -> str | None:
        """That another agent answers on this one's port; None if it is the agent itself."""
        me = self.file.agent
        if (status.network, status.number) == (me.network, me.number):
            return None
        return f"agent {status.number} of network {status.network} answers on port {self.file.http.port}"

    def exit_message(self) -> str:
        """Why it ended, from the end of its log; empty if that has no reason."""
        try:
            lines = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].removeprefix("collegium: ") if lines and lines[-1].startswith("collegium: ") else ""


def members(folder: str | Path) -> list[Member]:
    """The agents of a folder, by number."""
    found = [Member(path, config.read(path)) for path in _paths(Path(folder))]
    return sorted(found, key=lambda one: (one.file.agent.number, one.path))


def _paths(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputFileError(f"{folder}: no such folder; collegium live init makes one")
    paths = [path.resolve() for path in folder.glob("agent-*.toml") if not path.name.endswith(".next.toml")]
    if not paths:
        raise InputFileError(f"{folder} has no agent-*.toml in it: it is not a network that collegium live init made")
    return paths


def up(folder: str | Path, wait: float = 30.0) -> list[Member]:
    """Start every agent that does not run yet and wait until all of them are connected to their neighbours.

    Revoked agents are not started, and not in the list.
    """
    denied = revoked(folder)
    network = [member for member in members(folder) if member.file.agent.name not in denied]
    with alone(Path(folder)):
        started = [member for member in network if member.pid is None]
        begun = time.monotonic()
        start(started)
    end = time.monotonic() + wait
    for member in network:
        while (reason := _not_ready_reason(member, begun if member in started else None)) is not None:
            ended = next((one for one in started if one.pid is None), None)
            if ended is not None:
                stop([one.path for one in started])
                raise LiveError(f"{ended.file.agent.name} ended at once: {ended.exit_message() or 'its log is empty'}")
            if time.monotonic() > end:
                stop([one.path for one in started])
                name = member.file.agent.name
                raise LiveError(
                    f"{name} is not ready after {wait:g} s ({reason}): see {member.log}; all were ended again"
                )
            time.sleep(0.05)
    return network


def down(folder: str | Path, wait: float = 20.0) -> int:
    """End the agents of a folder that run on this machine; how many there were."""
    here = [path for path in _paths(Path(folder)) if running.process(path) is not None]
    stop(here, wait)
    return len(here)


def revoked(folder: str | Path) -> list[str]:
    """The names of the folder's agents that its list revokes."""
    network, folder = members(folder), Path(folder)
    tls, me = network[0].file.tls, network[0].file.agent
    names = [] if tls is None else revocation.read(folder, folder / tls.ca, me.network).names
    return [name for name in names if any(member.file.agent.name == name for member in network)]


def statuses(folder: str | Path) -> Iterator[tuple[Member, Status | str]]:
    """Every agent's status, or why there is none."""
    for member in members(folder):
        try:
            with member.client(timeout=3.0) as client:
                status = client.status()
            yield member, member.is_another(status) or status
        except LiveError as problem:
            is_here = member.pid is not None
            yield member, str(problem) if is_here else member.exit_message() or f"{problem}; its log: {member.log}"


def renew(folder: str | Path, days: int = 730) -> datetime:
    """New certificates for all agents of a folder that has the authority's key; when the first of them ends.

    An authority that is to take over (`apply`) signs from now on.
    """
    network, authority = with_authority(folder)
    with alone(Path(folder)):
        keys.take_over(authority)
        denied = revoked(folder)
        trusted = [member for member in network if member.file.agent.name not in denied]
        if not trusted:
            raise LiveError(f"every agent of {folder} is revoked: trust one again with collegium live revoke --restore")
        return min(_issue(authority, member, days) for member in trusted)


def revoke(folder: str | Path, agent: str, restore: bool = False) -> int:
    """Refuse an agent everywhere, or trust it again with a new certificate; the number of that list."""
    network, authority = with_authority(folder)
    member = next((one for one in network if agent in (one.file.agent.name, one.path.stem)), None)
    if member is None:
        names = ", ".join(one.file.agent.name for one in network)
        raise LiveError(f"{folder} has no agent {agent!r}; there are {names}")
    assert member.file.tls is not None
    me = member.file.agent
    with alone(Path(folder)):
        serial = keys.serial(member.path.parent / member.file.tls.certificate)
        if restore:
            _issue(authority, member, 730)
        return revocation.change(Path(folder), authority, me.network, [me.name], [serial], restore=restore).number


def with_authority(folder: str | Path) -> tuple[list[Member], keys.Authority]:
    """The agents of a folder, and its authority, whose key is there."""
    network = members(folder)
    if network[0].file.tls is None:
        raise LiveError(
            f"{folder} is a network without certificates, and this is signed: init it anew without --no-tls"
        )
    authority = keys.Authority(Path(folder) / "ca.pem", Path(folder) / "ca.key")
    if not authority.key.exists():
        raise InputFileError(f"{authority.key} is missing: certificates are signed where collegium live init was run")
    return network, authority


def _issue(authority: keys.Authority, member: Member, days: int) -> datetime:
    """A new certificate. Those of a network end one after the other, over a tenth of their life."""
    me = member.file.agent
    days -= me.number % (days // 10 + 1)
    tls = keys.issue(authority, member.path.parent, me.name, [me.host], days=days, stem=member.path.stem, replace=True)
    return keys.check(tls, me.name)


def stop(paths: list[Path], wait: float = 20.0) -> None:
    """End the processes of agents' files, those that take too long at once."""
    left = paths
    for which, seconds in ((signal.SIGTERM, wait), (signal.SIGKILL, 5.0)):
        for number in map(running.process, left):
            if number is not None:  # it has ended meanwhile
                with suppress(ProcessLookupError):
                    os.kill(number, which)
        end = time.monotonic() + seconds
        while (left := [path for path in left if running.process(path) is not None]) and time.monotonic() < end:
            time.sleep(0.02)
    for path in paths:
        if path not in left:
            with suppress(OSError):  # a folder that cannot be written: a note of no process is harmless
                running.forget(path)


def start(network: list[Member]) -> None:
    """Start processes that go on without this one, all from one that has loaded what they need."""
    if network:
        ended = subprocess.run(
            [sys.executable, "-m", "collegium.live", "--start"], input="\n".join(str(one.path) for one in network),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        if ended.returncode:
            reason = ended.stderr.strip().rpartition("\n")[2].removeprefix("collegium: ")
            raise LiveError(reason or "no process could be started")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other process starts agents of this folder meanwhile, or signs anything for them."""
    _paths(folder)  # which refuses what is no network
    try:
        (folder / running.RUN).mkdir(exist_ok=True)
        lock = (folder / running.RUN / "lock").open("w")
    except OSError as problem:
        raise LiveError(f"{folder} cannot be locked against other commands: {problem}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _not_ready_reason(member: Member, started: float | None) -> str | None:
    """Why an agent is not ready; None if it is. started: when its process was, if that was just now."""
    try:
        with member.client(timeout=3.0) as client:
            status = client.status()
    except LiveError:
        return "it does not answer"
    if started is not None and status.up_s > time.monotonic() - started:  # from a copy of the folder, perhaps
        return f"a process that was there before answers on port {member.file.http.port}"
    return member.is_another(status) or status.not_ready_reason
