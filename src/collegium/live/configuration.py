"""What a network's authority has decided on: a numbered configuration, signed, which agents pass on.

    {"network": "…", "number": 3, "talk": {…}, "members": [{"agent": {…}, "hears": […], "audience": […]}, …],
     "signature": "3045…"}

It is the file `epoch.json` beside an agent's own file. It has every agent's place, the rule and the rounds, and of the
models nothing but their hashes: an agent with a new model finds it, and its temperature, center and gain, in its own
`agent-K.next.toml`. Number 0 is what `init` wrote.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from collegium._util.files import atomic_write
from collegium.errors import InputFileError, LiveError
from collegium.live import config, keys
from collegium.live.config import AgentFile, Heard, Hearer, Talk, Who

FILE = "epoch.json"


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent's place."""

    agent: Who
    hears: list[Heard]
    audience: list[Hearer] = []


class Configuration(keys.Signed, frozen=True):
    """A network, but for its models; a later one has a larger number and replaces it."""

    number: Annotated[int, Meta(ge=1)]
    talk: Talk
    members: list[Member]
    ca: str = ""
    """The certificates of the authorities that are trusted from now on; those that were, if empty."""
    signature: str = ""

    def member(self, name: str) -> Member | None:
        """The place of an agent; None if it has none."""
        return next((one for one in self.members if one.agent.name == name), None)


def signed(files: list[AgentFile], authority: keys.Authority, ca: str = "") -> bytes:
    """The configuration of agents' files, signed."""
    talk, network = files[0].talk, files[0].agent.network
    new = Configuration(network, talk.epoch, talk, [Member(one.agent, one.hears, one.audience) for one in files], ca)
    return keys.signed(authority, new)[1]


def decode(content: bytes, ca: Path, network: str) -> Configuration:
    """A configuration from its bytes, if this network's authority has signed it."""
    found = keys.read_signed(Configuration, content, ca, network, "a configuration of the network")
    if found.number != found.talk.epoch:
        raise LiveError(f"a configuration of the network has two numbers, {found.number} and {found.talk.epoch}")
    return found


def write(folder: Path, content: bytes) -> None:
    """Keep a configuration beside an agent's file."""
    with atomic_write(folder / FILE, sync=True, mode=0o644) as file:
        file.write(content)


def staged(path: Path) -> Path:
    """Where an agent's next file is, if it needs one."""
    return path.with_suffix(".next.toml")


def next_file(path: Path, now: AgentFile, new: Configuration) -> AgentFile | None:
    """An agent's file in a configuration; None if it has no part in it. InputFileError if it lacks its new model."""
    place = new.member(now.agent.name)
    if place is None:
        return None
    file = msgspec.structs.replace(now, agent=place.agent, talk=new.talk, hears=place.hears, audience=place.audience)
    if staged(path).exists():
        own = config.read(staged(path))
        if own.talk == new.talk:
            file = msgspec.structs.replace(file, model=own.model, sets=own.sets)
    elif msgspec.structs.replace(now.talk, epoch=new.number) != new.talk:
        file = msgspec.structs.replace(file, sets=None)  # they were learned with what is changed now
    file = config.checked(msgspec.to_builtins(file))
    try:
        file.check_model(path.parent)
    except InputFileError:
        raise InputFileError(
            f"{now.agent.name} lacks its new model: copy {staged(path).name} and the model it names beside {path.name}"
        ) from None
    return file
