"""The file of one agent: everything it must know to take part, and nothing of the others' models."""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from collegium._util.seat import Seat
from collegium.agents.pipeline import ScorePipeline
from collegium.errors import CollegiumError, InputFileError, ScoreError
from collegium.live import signing
from collegium.live.engine import Limits
from collegium.live.peers import Deadlines
from collegium.live.sets import Sets
from collegium.live.transport.base import Peer, Place, Tls
from collegium.live.transport.faulty import Faults
from collegium.protocol import Rule, RunningSums, registry

_ENDPOINT = re.compile(r"(tls|tcp)/(\[[0-9a-fA-F:.]+\]|[^:/\s\[\]]+):\d{1,5}")
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
Number = Annotated[int, Meta(ge=0, le=65535)]


Absent = Literal["renormalise", "hold"]
Mode = Literal["synchronous", "asynchronous"]


def digest(content: bytes) -> str:
    """16 hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    """A table of the file: unknown settings are refused, since they are mostly misspelt."""


class Who(_Table):
    """The agent itself."""

    name: str
    number: Number
    network: Digest
    """The network's identity."""
    listen: str
    """Where neighbours reach it, such as tls/10.0.0.3:7403."""
    weights: Digest
    """A hash of the weights in `hears`, so that an edited one does not go unnoticed."""
    reachable: Annotated[int, Meta(ge=0)] = 0
    """How many agents' views can be in its statistic after all rounds; 0: all."""
    joins: bool = False
    """Whether it has yet to be let in: its neighbours switch to a configuration that has it, and then it begins."""

    @property
    def host(self) -> str:
        """Of where it listens."""
        return self.listen.partition("/")[2].rpartition(":")[0].strip("[]")


class Talk(_Table):
    """What all agents of the network agree on."""

    weights: Digest
    """A hash of everybody's weights."""
    agents: Annotated[list[str], Meta(min_length=1, max_length=65536)]
    """Everybody's names, by number."""
    bound: Annotated[float, Meta(gt=0)]
    """The largest score of any agent: a message beyond it is refused."""
    rounds: Annotated[int, Meta(ge=1, le=10_000)] = 20
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    rule: str = "degroot"
    """As on the command line: quantised:(delta-trigger:0.1),4,2.0; one of your own must be installed."""
    absent: Absent = "renormalise"
    mode: Mode = "synchronous"
    """asynchronous: without rounds, with running sums, each agent on its own clock."""
    models: list[Digest] = []
    """A hash of everybody's model and what turns its output into a score, so that another one does not go unnoticed."""
    public_keys: list[Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]] = []
    """Everybody's, by number, where the rule signs or masks scores; the private ones are in `agent-K.private`."""
    schedule: str = ""
    """Who hears whom in which round, such as exact:9; none where it is the same in all."""
    epoch: Annotated[int, Meta(ge=0)] = 0
    """How often it was changed while the network ran; see `collegium live apply`."""


class Heard(_Table):
    """A sender to this agent, or itself: then without an endpoint."""

    number: Number
    name: str
    weight: Annotated[float, Meta(gt=0, le=1)]
    """Its share of a combination; where a schedule says who is heard when, its mean over all rounds."""
    bound: Annotated[float, Meta(gt=0)]
    """Its largest score: a first message beyond it is refused."""
    endpoint: str = ""


class Hearer(_Table):
    """A receiver of this agent."""

    number: Number
    name: str
    endpoint: str


class Model(_Table):
    """How views become local statistics: the model's scores, then `ScorePipeline`."""

    classes: list[int | float | bool | str]
    """The labels: of -1 and +1, or of each entry of a score."""
    path: str = ""
    """The model's file or folder, beside this file; none for an agent that is given scores."""
    temperature: float | list[float] = 1.0
    """One number; with vector scaling, of more than two classes, one for each."""
    center: float | list[float] = 0.0
    """One number; of more than two classes, one for each."""
    gain: float = 1.0
    bounded: bool = False
    trusted: list[str] = []
    """Types in the model's file that are known to do no harm, beyond those skops knows."""

    def pipeline(self) -> ScorePipeline:
        """From the model's scores, (n,) or (n, C) of C > 2 classes, to local statistics of the same shape."""
        values = {name: getattr(self, name) for name in ("temperature", "center", "gain", "bounded")}
        C = len(self.classes)
        for name in ("temperature", "center"):
            if isinstance(values[name], list) and (C == 2 or len(values[name]) != C):
                wanted = "one number" if C == 2 else f"one number, or {C}, one for each class"
                raise InputFileError(f"model.{name} must be {wanted}; got {len(values[name])} numbers")
        if C > 2:
            values["classes"] = C
            values["center"] = self.center if isinstance(self.center, list) else [self.center] * C
        try:
            return ScorePipeline.from_dict(values)
        except ScoreError as problem:
            raise InputFileError(f"model.{problem}") from None


class Secrets(_Table):
    """Certificates, beside this file."""

    ca: str
    certificate: str
    key: str


class Port(_Table):
    """Where users reach the agent."""

    host: str = "127.0.0.1"
    port: Number = 0
    token_sha256: Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")] | None = None
    reader_sha256: Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")] | None = None
    """Of a token for reading only: status, metrics, results."""
    journal: str = ""
    """A file, beside this one, in which accepted items outlive the process; none if empty."""
    https: bool = False
    """With the agent's own certificate."""
    client_certificates: bool = False
    """Accept only clients with a certificate of the network's authority."""


class Room(_Table):
    """What the agent may use."""

    memory_mb: Annotated[int, Meta(ge=1, le=65536)] | None = None
    pending: Annotated[int, Meta(ge=1)] | None = None
    from_zero: Annotated[float, Meta(gt=0)] = Limits.from_zero
    """Items a second in which it takes part without a view of its own, for each neighbour that begins them."""


class Hiding(_Table):
    """Noise on the agent's own scores, with rules that add it."""

    budget: Annotated[float, Meta(gt=0)] | None = None
    """What all its items may cost together: beyond it they are refused. None: no limit."""


class AgentFile(_Table):
    """The whole file."""

    agent: Who
    talk: Talk
    hears: list[Heard]
    audience: list[Hearer] = []
    model: Model = msgspec.field(default_factory=lambda: Model([-1, 1]))
    http: Port = msgspec.field(default_factory=Port)
    tls: Secrets | None = None
    deadlines: Deadlines = Deadlines()
    limits: Room = msgspec.field(default_factory=Room)
    faults: Faults | None = None
    """On purpose, for trials."""
    privacy: Hiding | None = None
    sets: Sets | None = None

    def place(self, folder: Path) -> Place:
        """The agent's place in the network."""
        tls = self.tls
        return Place(
            self.agent.network,
            self.agent.number,
            self.agent.name,
            self.agent.listen,
            tuple(Peer(h.number, h.name, h.endpoint) for h in self.hears if h.number != self.agent.number),
            tuple(Peer(h.number, h.name, h.endpoint) for h in self.audience),
            None if tls is None else Tls(folder / tls.ca, folder / tls.certificate, folder / tls.key),
        )

    def check_model(self, folder: Path) -> None:
        """Refuse a model, temperature, center or gain other than that with which the network was made."""
        agreed = self.talk.models[self.agent.number : self.agent.number + 1]
        if agreed and agreed != [hash_of_model(self.model, folder)]:
            raise InputFileError(
                f"the model of {self.agent.name}, or its temperature, center or gain, is not the one this network was "
                "made with: all agents have to know of a change, so make it with collegium live apply"
            )

    def policy(self) -> int:
        """A hash of what all must agree on: agents with different ones do not understand each other."""
        talk = msgspec.structs.replace(self.talk, rule=registry.to_text(self.rule()))  # however it was spelt
        return int(digest(msgspec.json.encode((talk, self.model.classes))), 16)

    def rule(self) -> Rule:
        """The rule that is meant."""
        try:
            return registry.rule_from_text(self.talk.rule)
        except CollegiumError as problem:
            raise InputFileError(f"talk.rule: {problem}") from None

    def seats(self) -> list[Seat] | None:
        """The agent's place in each round, where they differ."""
        if not self.talk.schedule:
            return None
        try:
            schedule = registry.from_text(self.talk.schedule, "schedule")
            if schedule.size != len(self.talk.agents):
                raise InputFileError(f"it is for {schedule.size} agents, and there are {len(self.talk.agents)}")
            return [schedule.at(t)[self.agent.number] for t in range(1, self.talk.rounds + 1)]
        except CollegiumError as problem:
            raise InputFileError(f"talk.schedule: {problem}") from None

    def agent_settings(self) -> dict[str, Any]:
        """What `Agent` takes besides its place and its model."""
        return {
            "weights": {heard.number: heard.weight for heard in self.hears},
            "agents": self.talk.agents,
            "reachable": self.agent.reachable,
            "bound": next((h.bound for h in self.hears if h.number == self.agent.number), self.talk.bound),
            "bounds": {heard.number: heard.bound for heard in self.hears},
            "largest": self.talk.bound,
            "rule": self.rule(),
            "rounds": self.talk.rounds,
            "seats": self.seats(),
            "seed": self.talk.seed,
            "classes": tuple(self.model.classes),
            "sets": self.sets,
            "policy": self.policy(),
            "deadlines": self.deadlines,
            "absent": self.talk.absent,
            "mode": self.talk.mode,
            "limits": Limits((self.limits.memory_mb or 0) << 20, self.limits.pending, self.limits.from_zero),
        }

    def transport_faults(self) -> Faults | None:
        """Faults on purpose, if any are wanted; each agent has its own."""
        return self.faults and msgspec.structs.replace(self.faults, seed=self.faults.seed + self.agent.number)


def read(path: Path) -> AgentFile:
    """Read an agent's file; every mistake in it is named."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputFileError(f"{path}: {problem.strerror or problem}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise InputFileError(f"{path} is not a TOML file: {problem}") from None
    try:
        return checked(content)
    except CollegiumError as problem:
        raise InputFileError(f"{path}: {problem}") from None


def checked(content: dict[str, Any]) -> AgentFile:
    """An agent's file from plain values, if all of it can be."""
    try:
        file = msgspec.convert(content, AgentFile)
    except msgspec.ValidationError as problem:
        raise InputFileError(_sentence(str(problem))) from None
    _check(file)
    rule, rounds = file.agent_settings()["rule"], file.talk.rounds
    if file.talk.mode == "asynchronous" and type(rule) is not RunningSums:
        raise InputFileError(f"talk.mode is asynchronous, which needs the rule running-sums and not {rule}")
    if signing.needs_keys(rule) and len(file.talk.public_keys) != len(file.talk.agents):
        raise InputFileError(f"talk.public_keys must have one of every agent, which {rule} needs: run init anew")
    if not rule.max_score(rounds) > 0:
        raise InputFileError(f"{rule} leaves no room for any score in {rounds} rounds: take more bits or fewer rounds")
    return file


def _sentence(problem: str) -> str:
    """A message of msgspec, with the file's own names first: `talk.rounds: expected int, got str`."""
    what, _, where = problem.replace("`", "").partition(" - at $")
    place = where.lstrip(".") or "the file"
    unknown = re.fullmatch("Object contains unknown field (.*)", what)
    missing = re.fullmatch("Object missing required field (.*)", what)
    if unknown and place == "talk" and unknown[1] in ("threshold", "patience", "confidence", "bits", "bound"):
        return (
            f"talk.{unknown[1]} is from an earlier version: write the whole rule in one line, such as "
            'rule = "quantised:(delta-trigger:0.1),4,2.0", or run init anew'
        )
    if unknown:
        return f"{place} has no setting {unknown[1]!r}: is it misspelt?"
    if missing:
        return f"{place} lacks {missing[1]!r}"
    return f"{place}: {what[:1].lower()}{what[1:]}"


def hash_of_model(model: Model, folder: Path) -> str:
    """What an agent's model and score pipeline are known by."""
    path = folder / model.path
    files = [] if not model.path else sorted(path.rglob("*")) if path.is_dir() else [path]
    try:
        content = b"".join(one.read_bytes() for one in files if one.is_file())
    except OSError as problem:
        raise InputFileError(f"the model {path} cannot be read: {problem.strerror or problem}") from None
    return digest(msgspec.json.encode(model.pipeline().to_dict()) + content)


def hash_of_weights(hears: Sequence[Heard]) -> str:
    """What an agent's weights are known by."""
    return digest(msgspec.json.encode([(heard.number, heard.weight.hex()) for heard in hears]))


def _check(file: AgentFile) -> None:
    numbers = [heard.number for heard in file.hears]
    if len(set(numbers)) < len(numbers):
        raise InputFileError("an agent is listed twice in hears")
    total = math.fsum(heard.weight for heard in file.hears)
    if not abs(total - 1) < 1e-6:
        raise InputFileError(f"the weights of those it hears, itself included, must sum to 1, not {total:.6g}")
    if file.agent.weights != hash_of_weights(file.hears):
        raise InputFileError(
            "its weights are not those it was made with: all agents have to know, use collegium live apply"
        )
    others = [heard.endpoint for heard in file.hears] + [hearer.endpoint for hearer in file.audience]
    for endpoint in (file.agent.listen, *others):
        if endpoint and not _ENDPOINT.fullmatch(endpoint):
            raise InputFileError(f"an endpoint is like tls/10.0.0.3:7403, got {endpoint!r:.80}")
    if len(file.model.classes) < 2:
        raise InputFileError("model.classes must name at least two classes")
    if len(set(file.model.classes)) < len(file.model.classes):
        raise InputFileError(f"model.classes must be different ones; got {file.model.classes}")
    agents = file.talk.agents
    known = {file.agent.number: file.agent.name}
    known |= {h.number: h.name for h in file.hears} | {h.number: h.name for h in file.audience}
    for number, name in known.items():
        if agents[number : number + 1] != [name]:
            raise InputFileError(
                f"talk.agents has no {name!r} at place {number}: change agents with collegium live apply"
            )
    if file.agent.reachable > len(agents):
        raise InputFileError(f"agent.reachable is {file.agent.reachable}, but there are {len(agents)} agents")
    if not all(math.isfinite(bound) for bound in (file.talk.bound, *(heard.bound for heard in file.hears))):
        raise InputFileError("every bound must be a finite number")
    file.model.pipeline()  # which refuses numbers that are not finite
    if file.sets is not None:
        file.sets.check(len(file.model.classes))


def write(file: AgentFile, about: str) -> str:
    """The text of an agent's file."""
    lines = [f"# {line}" for line in about.splitlines()]
    for name, content in msgspec.to_builtins(file).items():
        if isinstance(content, list):
            for one in content:
                lines += ["", f"[[{name}]]", *_settings(one)]
        elif content:
            lines += ["", f"[{name}]", *_settings(content)]
    return "\n".join(lines) + "\n"


def _settings(table: dict[str, Any]) -> list[str]:
    return [f"{name} = {_value(value)}" for name, value in table.items() if value not in (None, "")]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")  # JSON's strings are TOML's
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
