"""Which process of this machine runs an agent: notes beside the agents' files."""

from __future__ import annotations

import json
from pathlib import Path

RUN = "run"
"""The part of a network's folder that has logs and notes."""


def log(agent: Path) -> Path:
    """The file an agent's process logs to."""
    return agent.parent / RUN / f"{agent.stem}.log"


def note(agent: Path, pid: int) -> None:
    """Note that a process runs the agent of a file."""
    found = {"pid": pid, "began": _began(pid), "folder": _identity(agent.parent)}
    _note_of(agent).write_text(json.dumps(found))


def forget(agent: Path) -> None:
    """Take the note away."""
    _note_of(agent).unlink(missing_ok=True)


def process(agent: Path) -> int | None:
    """The process that runs the agent of a file, if there is one."""
    try:
        found = json.loads(_note_of(agent).read_text())
    except (OSError, ValueError):
        return None
    # A number may be in use again after a restart of the machine: the time the process began tells it apart. And a
    # copied folder has notes of processes that belong to the one it was copied from.
    if found["began"] is None or found["folder"] != _identity(agent.parent):
        return None
    return int(found["pid"]) if _began(found["pid"]) == found["began"] else None


def _note_of(agent: Path) -> Path:
    return agent.parent / RUN / f"{agent.stem}.pid"


def _identity(folder: Path) -> list[int]:
    """What a folder keeps when it is moved, and a copy has not."""
    found = folder.stat()
    return [found.st_dev, found.st_ino]


def _began(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None if there is no such process, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # The first thread may be gone before the others, which keep the ports open until they have ended as well.
    return None if fields[0] == "Z" and int(fields[17]) <= 1 else fields[19]
