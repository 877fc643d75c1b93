"""The machine as this process may use it: cores, memory, and what is installed. Loads nothing it reports on."""

import math
import os
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def cores() -> int:
    """How many cores this process may use: those it is bound to, or fewer where a container gets only a share."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = core_share()
    return bound if share is None else max(1, min(bound, math.ceil(share)))


@cache
def core_share() -> float | None:
    """Cores' worth of time a container (cgroup) gets, None if there is no limit."""
    shares = []
    for text in _limits("cpu.max"):
        quota, _, period = text.partition(" ")
        if quota.isdigit() and period.isdigit():
            shares.append(int(quota) / int(period))
    return min(shares, default=None)


def free_memory() -> int | None:
    """Bytes that can still be had, None where that is not known."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    allowed = [int(text) for text in _limits("memory.max") if text.isdigit()]
    used = [int(text) for text in _limits("memory.current") if text.isdigit()]
    return min(free, max(0, min(allowed) - max(used))) if allowed and used else free


def versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def description() -> str:
    """What kind of machine it is.

    >>> description().endswith(platform.release())
    True
    """
    count = cores()
    return f"{platform.machine()}, {count} core{'s' * (count != 1)}, {platform.system()} {platform.release()}"


def _limits(name: str) -> list[str]:
    """A setting of this process's control group and of those around it (Linux, version 2)."""
    root = Path("/sys/fs/cgroup")
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    own = next((line[3:] for line in lines if line.startswith("0::")), "/")
    here = root / own.strip("/")
    found = []
    for folder in (here, *here.parents):
        try:
            found.append((folder / name).read_text().strip())
        except OSError:  # the outermost group has none
            continue
        if folder == root:
            break
    return found
