"""All agents of a folder on this machine: start them, query them, end them."""

from __future__ import annotations

import fcntl
import json
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
from collegium.live import config, keys
from collegium.live.answers import Status
from collegium.live.client import Client
from collegium.live.folder import TOKEN

_RUN = "run"


@dataclass(frozen=True)
class Member:
    """An agent of a folder."""

    path: Path
    file: config.AgentFile

    @property
    def log(self) -> Path:
        """The file its process logs to."""
        return self._beside(".log")

    @property
    def pid(self) -> int | None:
        """Its process on this machine, if it runs."""
        try:
            note = json.loads(self._beside(".pid").read_text())
        except (OSError, ValueError):
            return None
        # A number may be in use again after a restart of the machine: the time the process began tells it apart. And a
        # copied folder has notes of processes that belong to the one it was copied from.
        is_ours = note.get("folder") == _identity(self.path.parent)
        return int(note["pid"]) if is_ours and _began(int(note["pid"])) == note["began"] else None

    def client(self, timeout: float = 30.0) -> Client:
        """A client of its port."""
        port, folder = self.file.http, self.path.parent
        token = None
        if port.token_sha256:
            try:
                token = (folder / TOKEN).read_text().strip()
            except OSError:
                raise InputFileError(f"{folder / TOKEN} is missing: {self.file.agent.name} needs a token") from None
        if not port.https:
            return Client(f"http://{_shown(port.host)}:{port.port}", token, timeout=timeout)
        assert self.file.tls is not None
        mine = (folder / self.file.tls.certificate, folder / self.file.tls.key) if port.client_certificates else None
        url = f"https://{_shown(port.host)}:{port.port}"
        return Client(url, token, ca=folder / self.file.tls.ca, certificate=mine, timeout=timeout)

    def start(self) -> int:
        """Start its process, apart from this one; its number."""
        self.log.parent.mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "collegium.live", str(self.path)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        note = {"pid": process.pid, "began": _began(process.pid), "folder": _identity(self.path.parent)}
        self._beside(".pid").write_text(json.dumps(note))
        _children[process.pid] = process
        return process.pid

    def exit_message(self) -> str:
        """Why it ended, from the end of its log; empty if that has no reason."""
        try:
            lines = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].removeprefix("collegium: ") if lines and lines[-1].startswith("collegium: ") else ""

    def _beside(self, ending: str) -> Path:
        return self.path.parent / _RUN / f"{self.path.stem}{ending}"


_children: dict[int, subprocess.Popen[bytes]] = {}


def members(folder: str | Path) -> list[Member]:
    """The agents of a folder, by number."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputFileError(f"{folder}: no such folder; collegium live init makes one")
    paths = sorted(folder.glob("agent-*.toml"), key=lambda path: (len(path.name), path.name))
    if not paths:
        raise InputFileError(f"{folder} has no agent-*.toml in it: it is not a network that collegium live init made")
    return [Member(path.resolve(), config.read(path)) for path in paths]


def up(folder: str | Path, wait: float = 30.0) -> list[Member]:
    """Start every agent that does not run yet and wait until all of them are connected to their neighbours."""
    network = members(folder)
    with _alone(Path(folder)):
        started = [member for member in network if member.pid is None]
        for member in started:
            member.start()
    end = time.monotonic() + wait
    waiting: dict[str, str] = {member.file.agent.name: "it does not answer" for member in network}
    while waiting:
        for member in started:
            if _has_ended(member):
                _stop(started)
                raise LiveError(
                    f"{member.file.agent.name} ended at once: {member.exit_message() or 'its log is empty'}"
                )
        if time.monotonic() > end:
            name, reason = next(iter(waiting.items()))
            log = next(member.log for member in network if member.file.agent.name == name)
            _stop(started)
            raise LiveError(f"{name} is not ready after {wait:g} s ({reason}): see {log}; all were ended again")
        for member in network:
            name = member.file.agent.name
            if name in waiting:
                not_yet = _not_ready_reason(member)
                if not_yet is None:
                    del waiting[name]
                else:
                    waiting[name] = not_yet
        time.sleep(0.05)
    return network


def down(folder: str | Path, wait: float = 20.0) -> int:
    """End the agents of a folder that run on this machine; how many there were."""
    running = [member for member in members(folder) if member.pid is not None]
    _stop(running, wait)
    return len(running)


def statuses(folder: str | Path) -> Iterator[tuple[Member, Status | str]]:
    """Every agent's status, or why there is none."""
    for member in members(folder):
        try:
            with member.client(timeout=3.0) as client:
                status = client.status()
            yield member, _wrong_agent(member, status) or status
        except LiveError as problem:
            is_here = member.pid is not None
            yield member, str(problem) if is_here else member.exit_message() or f"{problem}; its log: {member.log}"


def renew(folder: str | Path, days: int = 730) -> datetime:
    """New certificates for all agents of a folder that has the authority's key; when they end."""
    network = members(folder)
    if network[0].file.tls is None:
        raise LiveError(f"{folder} is a network without certificates")
    authority = keys.Authority(Path(folder) / "ca.pem", Path(folder) / "ca.key")
    if not authority.key.exists():
        raise InputFileError(f"{authority.key} is missing: certificates are renewed where collegium live init was run")
    ends = []
    for member in network:
        name, host = member.file.agent.name, member.file.agent.listen.partition("/")[2].rpartition(":")[0].strip("[]")
        tls = keys.issue(authority, member.path.parent, name, [host], days=days, stem=member.path.stem, replace=True)
        ends.append(keys.check(tls, name))
    return min(ends)


def _stop(network: list[Member], wait: float = 20.0) -> None:
    left = {member.pid: member for member in network}
    left.pop(None, None)
    for number in left:
        _kill(number, signal.SIGTERM)
    end = time.monotonic() + wait
    while left and time.monotonic() < end:
        left = {number: member for number, member in left.items() if not _has_ended(member)}
        time.sleep(0.02)
    for number in left:
        _kill(number, signal.SIGKILL)
        if number in _children:
            _children[number].wait()
    _reap()
    for member in network:
        if member.pid is None:
            member._beside(".pid").unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other process starts agents of this folder meanwhile."""
    (folder / _RUN).mkdir(exist_ok=True)
    with (folder / _RUN / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _identity(folder: Path) -> list[int]:
    """What a folder keeps when it is moved, and a copy has not."""
    found = folder.stat()
    return [found.st_dev, found.st_ino]


def _kill(number: int | None, which: signal.Signals) -> None:
    if number is not None:
        with suppress(ProcessLookupError):
            os.kill(number, which)


def _has_ended(member: Member) -> bool:
    _reap()
    return member.pid is None


def _reap() -> None:
    """Reap processes this one started that have ended."""
    for number, child in list(_children.items()):
        if child.poll() is not None:
            del _children[number]


def _began(number: int) -> str | None:
    """When a process began, in the kernel's ticks; None if there is no such process, or only its remains."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _not_ready_reason(member: Member) -> str | None:
    """Why an agent is not ready; None if it is."""
    try:
        with member.client(timeout=3.0) as client:
            status = client.status()
    except LiveError:
        return "it does not answer"
    return _wrong_agent(member, status) or status.not_ready_reason


def _wrong_agent(member: Member, status: Status) -> str | None:
    """That another agent answers on an agent's port; None if it is the agent itself."""
    me = member.file.agent
    if (status.network, status.number) == (me.network, me.number):
        return None
    return f"agent {status.number} of network {status.network} answers on port {member.file.http.port}"


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
