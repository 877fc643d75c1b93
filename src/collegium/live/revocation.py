"""Agents that are no longer trusted: a numbered list, signed by the network's authority, which agents pass on.

    {"network": "…", "number": 3, "names": ["agent-4"], "serials": ["5f…"], "signature": "3045…"}

It is the file `revoked.json` beside an agent's own file. An agent looks at it every half second, checks the signature,
refuses those in it, and gives the list to its neighbours, also to those that come back later. A list with a smaller
number, of another network or with a wrong signature changes nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta, field

from collegium._util.files import atomic_write
from collegium.errors import InputFileError, LiveError
from collegium.live import keys

FILE = "revoked.json"
_log = logging.getLogger("collegium.live")


class Revoked(keys.Signed, frozen=True):
    """The list; a later one has a larger number and replaces it."""

    number: Annotated[int, Meta(ge=0)] = 0
    names: list[str] = field(default_factory=list)
    """Agents that are refused, whatever certificate they show."""
    serials: list[str] = field(default_factory=list)
    """Certificates with which no agent starts, in hexadecimal."""
    signature: str = ""


def decode(content: bytes, ca: Path, network: str) -> Revoked:
    """A list from its bytes, if this network's authority has signed it."""
    return keys.read_signed(Revoked, content, ca, network, "a list of revoked agents")


def read(folder: Path, ca: Path, network: str) -> Revoked:
    """The list of a folder; an empty one if there is none."""
    try:
        return decode((folder / FILE).read_bytes(), ca, network)
    except FileNotFoundError:
        return Revoked(network)
    except OSError as problem:
        raise LiveError(f"{folder / FILE} cannot be read: {problem.strerror or problem}") from None


def change(
    folder: Path,
    authority: keys.Authority,
    network: str,
    names: list[str],
    serials: list[str],
    *,
    restore: bool = False,
) -> Revoked:
    """Revoke agents by name and certificates by serial number, or take the names off the list again; signed anew."""
    old = read(folder, authority.certificate, network)
    kept = [name for name in old.names if name not in names]
    new = Revoked(
        network, old.number + 1, kept if restore else [*kept, *names], list(dict.fromkeys([*old.serials, *serials]))
    )
    new, content = keys.signed(authority, new)
    _write(folder / FILE, content)
    return new


def _write(path: Path, content: bytes) -> None:
    with atomic_write(path, sync=True, mode=0o644) as file:
        file.write(content)


class Revocations:
    """The list as one running agent knows it: read from its folder, or brought by a neighbour.

    on_change: called with the list, from any thread, whenever a newer one is there.
    """

    def __init__(self, folder: Path, ca: Path, network: str, on_change: Callable[[Revoked], None]) -> None:
        self._path, self._ca, self._network, self._on_change = folder / FILE, ca, network, on_change
        self.known = Revoked(network)
        self.content = b""
        """The list as it is passed on; empty if there is none."""
        self._lock = threading.Lock()

    def offer(self, content: bytes, keep: bool = True) -> None:
        """Take a list over if it is newer; LiveError if it is not signed as it must be."""
        new = decode(content, self._ca, self._network)
        with self._lock:
            if new.number <= self.known.number:
                return
            self.known, self.content = new, content
        if keep:
            with suppress(OSError, InputFileError):  # a folder that cannot be written: it is asked for again next time
                _write(self._path, content)
        _log.warning("list %d of revoked agents: %s", new.number, ", ".join(new.names) or "none")
        self._on_change(new)
