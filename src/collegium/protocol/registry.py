"""Rules, their parts, mailboxes, links and schedules as text or plain data, and back.

A part is a frozen dataclass with a name: `delta-trigger:0.1` on the command line and in an agent's file,
`{"delta-trigger": {"threshold": 0.1}}` in JSON. Names of one's own come from packages that list them in the
entry-point group `collegium.rules`; within one process `register` will do.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from collegium.errors import CollegiumError, RuleError
from collegium.protocol.base import Rule

GROUP = "collegium.rules"
P = TypeVar("P")

_PARTS = {
    "rule": (
        "protocol",
        "Rule",
        "DeGroot SocialLearning DeltaTrigger LabelStability Averaging Quantised Robust Ceca Polynomial Chebyshev "
        "PushSum RunningSums Flood",
    ),
    "combine": (
        "protocol.combine",
        "Combine",
        "WeightedMean TrimmedMean Median Clipped SelfCentred NearestNeighbours MeanSubsequence OutlierScissor",
    ),
    "trigger": ("protocol.trigger", "Trigger", "Always Delta LabelStable"),
    "codec": ("protocol.codec", "Codec", "Float64 Quantise LaplaceOnce"),
    "mailbox": ("protocol.mailbox", "Mailbox", "HoldLast Renormalise"),
    "attack": (
        "trust.attacks",
        "Attack",
        "AtStart Stubborn SignFlip LittleIsEnough InnerProduct Mimic TwoFaced Silence Split Dissension",
    ),
    "links": ("links", "Links", "Perfect Lossy Delayed Cut"),
    "schedule": ("schedule", "Schedule", "Alternating Pairwise Exact OnePeerExponential EigenvalueSteps"),
}
"""Of every kind of part: its module, its base, and those that are built in; delta-trigger is DeltaTrigger."""
_NETWORKS = {"graph": ("topology", "Graph"), "policy": ("policy", "Policy"), "weights": ("schedule.weights", "Weights")}


def _written(class_name: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "-", class_name.replace("DeGroot", "Degroot")).lower()


_BUILT_IN = {
    kind: {_written(one): (module, one) for one in classes.split()} for kind, (module, _, classes) in _PARTS.items()
} | {"network": _NETWORKS}
_BUILT_IN["rule"] |= {"signed-flood": ("trust", "SignedFlood"), "masked-mean": ("trust", "MaskedMean")}
_EARLIER = {one: name for name, (_, one) in _BUILT_IN["rule"].items() if one != "Averaging"}
"""What files of the first version call the rules."""
_registered: dict[str, type] = {}
_LONGEST, _DEEPEST = 20_000, 20
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def register(name: str, kind: type[P]) -> type[P]:
    """Give a part of one's own a name, in this process; a package does it by an entry point, for all processes."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RuleError(f"a name has letters, digits, - and _, and begins with a letter; got {name!r}")
    if not _is_frozen(kind):
        raise RuleError(
            f"{kind!r:.60} must be a frozen dataclass, the class itself, to be written as text and read back"
        )
    taken = name in _EARLIER or any(name in names for names in _shared_names())
    earlier = _registered.get(name, kind)  # a class that was written again, as in a notebook, takes its own place
    if taken or (earlier.__module__, earlier.__qualname__) != (kind.__module__, kind.__qualname__):
        raise RuleError(f"the name {name!r} is taken")
    _registered[name] = kind
    return kind


def _is_frozen(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind) and bool(getattr(kind, "__dataclass_params__").frozen)  # noqa: B009


def names(kind: str = "rule") -> list[str]:
    """The names of all built-in parts of a kind, and of all parts of one's own."""
    return [*_BUILT_IN[kind], *own_names()]


def own_names() -> list[str]:
    """The names of all parts that are not built in."""
    return [*_registered, *_installed()]


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def fingerprint() -> str:
    """What changes with the code of installed parts: their packages' versions and modules."""
    found = hashlib.sha256()
    for name, point in sorted(_installed().items()):
        spec = find_spec(point.module.partition(".")[0])
        origin = None if spec is None or spec.origin is None else Path(spec.origin)
        files = [] if origin is None else [origin]
        if spec is not None and origin is not None and spec.submodule_search_locations:
            files = sorted(origin.parent.rglob("*.py"))
        found.update(f"{name}={point.value}".encode() + b"".join(file.read_bytes() for file in files))
    return found.hexdigest()


def _shared_names() -> list[dict[str, tuple[str, str]]]:
    """Built-in names that stand for the same everywhere: those of attacks are only looked for among attacks."""
    return [names for kind, names in _BUILT_IN.items() if kind != "attack"]


def kind_of(name: str, what: str = "rule") -> type[Any]:
    """The class of that name."""
    name = _EARLIER.get(name, name)
    for built_in in (_BUILT_IN[what], *_shared_names()):
        if name in built_in:
            return _attribute(*built_in[name])
    if name in _registered:
        return _registered[name]
    point = _installed().get(name)
    if point is None:
        raise RuleError(
            f"there is no {what} {name!r}; known are {', '.join(names(what))}. One of your own must be installed here, "
            f"by a package with an entry point in the group {GROUP}"
        )
    try:
        found: type[Any] = point.load()
    except Exception as problem:
        raise RuleError(f"{name!r} ({point.value}) cannot be loaded: {type(problem).__name__}: {problem}") from problem
    if not _is_frozen(found):
        raise RuleError(f"{name!r} ({point.value}) must be a frozen dataclass")
    return found


def _attribute(module: str, name: str) -> type[Any]:
    return cast("type[Any]", getattr(import_module(f"collegium.{module}"), name))


def name_of(part: Any) -> str:
    """The name of a part's class."""
    kind = type(part)
    for what, built_in in _BUILT_IN.items():
        for name, (_, attribute) in built_in.items():
            if attribute == kind.__name__ and kind_of(name, what) is kind:
                return name
    for name, own in _registered.items():
        if own is kind:
            return name
    for name, point in _installed().items():
        if point.attr == kind.__qualname__ and kind_of(name) is kind:
            return name
    raise RuleError(
        f"{kind.__name__} has no name to write it by: list it in the entry-point group {GROUP} of a package, "
        "or, for this process alone, call collegium.protocol.register"
    )


# ── plain data ────────────────────────────────────────────────────────────────────────────────────────────────────────


def to_data(value: Any) -> Any:
    """A part as plain data for JSON: `{name: {setting: value}}`."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise RuleError(f"only finite numbers can be written, got {value}")
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, (list, tuple)):
        return [to_data(one) for one in value]
    if hasattr(value, "to_data"):
        return {name_of(value): value.to_data()}
    return {name_of(value): {field.name: to_data(getattr(value, field.name)) for field in _settings(type(value))}}


def from_data(data: Any, what: str = "rule") -> Any:
    """The part that plain data stands for; `what` is its kind: rule, mailbox, links, schedule, …"""
    return _of_kind(_from_data(data, what), str(data), what)


def rule_from_data(data: Any) -> Rule:
    """The rule that plain data stands for."""
    return cast(Rule, from_data(data))


def _from_data(data: Any, what: str) -> Any:
    if isinstance(data, list):
        return tuple(_from_data(one, what) for one in data)
    if not isinstance(data, dict):
        return data
    if len(data) != 1 or not isinstance(name := next(iter(data)), str) or not isinstance(data[name], dict):
        raise RuleError(f"a {what} is written as {{name: {{setting: value}}}}, got {str(data)[:80]}")
    kind = kind_of(name, what)
    if hasattr(kind, "from_data"):
        return kind.from_data(data[name])
    return _make(name, kind, (), {key: _from_data(one, what) for key, one in data[name].items()})


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def to_text(part: Any) -> str:
    """A part as one line: `quantised:(delta-trigger:0.1),4,2.0`.

    >>> from collegium.protocol import DeltaTrigger, Quantised
    >>> to_text(Quantised(DeltaTrigger(0.1), bits=4, bound=2.0))
    'quantised:(delta-trigger:0.1),4,2.0'
    >>> from collegium.protocol import Chebyshev, Flood
    >>> to_text(Chebyshev()), to_text(Flood(12))
    ('chebyshev', 'flood:12')
    """
    fields = list(_settings(type(part)))
    while fields and fields[-1].default is None and getattr(part, fields[-1].name) is None:
        fields.pop()  # what is left to be found out need not be written
    settings = [
        f"{field.name}={_text(getattr(part, field.name))}" if field.kw_only else _text(getattr(part, field.name))
        for field in fields
    ]
    return name_of(part) + (":" + ",".join(settings) if settings else "")


def from_text(text: str, what: str = "rule") -> Any:
    """The part that a line stands for; `what` is its kind: rule, mailbox, links, schedule, …

    >>> from_text("lossy:0.3,seed=1", "links")
    Lossy(loss=0.3, seed=1)
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise RuleError(f"a {what} is a line of at most {_LONGEST} characters, got {str(text)[:60]!r}")
    return _of_kind(_from_text(text, what, 0), text, what)


def rule_from_text(text: str) -> Rule:
    """The rule that a line stands for.

    >>> rule_from_text("label-stability:2,confidence=0.5")
    LabelStability(patience=2, confidence=0.5)
    """
    return cast(Rule, from_text(text))


def _of_kind(part: Any, written: str, what: str) -> Any:
    if not isinstance(part, _attribute(*_PARTS[what][:2])):
        if what == "rule":
            for kind in ("combine", "trigger", "codec"):
                if isinstance(part, _attribute(*_PARTS[kind][:2])):
                    raise RuleError(f"{written!r:.80} is no rule but a {kind}: write averaging:{kind}=({written:.80})")
        raise RuleError(f"{written!r:.80} is no {what}; known are {', '.join(names(what))}")
    return part


def describe(rule: Any) -> str:
    """A rule for people: as on the command line, numbers with four digits, its bits in words.

    >>> from collegium.protocol import DeltaTrigger, Quantised
    >>> describe(Quantised(DeltaTrigger(0.123456), bits=4, bound=2.0))
    'delta-trigger:0.1235, 4 bits within ±2'
    """
    from collegium.protocol.polynomial import Polynomial
    from collegium.protocol.quantised import Quantised

    if type(rule) is Polynomial:
        return f"polynomial of {len(rule.steps)} steps"
    if type(rule) is Quantised:
        return f"{describe(rule.rule)}, {rule.bits} bits within ±{rule.bound:.4g}"
    try:
        return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.4g}", to_text(rule))
    except RuleError:  # it has no name: it can be run all the same
        return str(rule)


def _text(value: Any) -> str:
    plain = to_data(value) if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, bool):
        return {None: "none", True: "true", False: "false"}[plain]
    if isinstance(plain, (int, float)):
        return repr(plain)
    if isinstance(plain, str):
        return plain if _NAME.fullmatch(plain) and _value(plain, "", "", 0) == plain else json.dumps(plain)
    if isinstance(plain, (list, tuple)):
        return f"[{','.join(map(_text, plain))}]"
    if hasattr(plain, "to_data"):  # a network
        return json.dumps(to_data(plain))
    return f"({to_text(plain)})"


def _from_text(text: str, what: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise RuleError(f"{text[:60]!r} has more than {_DEEPEST} brackets within each other")
    name, _, rest = text.strip().partition(":")
    kind = kind_of(name, what)
    if not depth and name in _NETWORKS:
        raise RuleError(f"{name!r} is no {what}; known are {', '.join(names(what))}")
    given: list[Any] = []
    named: dict[str, Any] = {}
    for setting in _split(rest, text) if rest else ():
        key, equals, value = setting.partition("=")
        key = key.strip()
        if not equals or not key.isidentifier():
            given.append(_value(setting, what, text, depth))
        elif key in named:
            raise RuleError(f"{text!r:.80} gives {key} twice")
        else:
            named[key] = _value(value, what, text, depth)
    return _make(name, kind, tuple(given), named)


def _value(text: str, what: str, whole: str, depth: int) -> Any:
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        return _from_text(text[1:-1], what, depth + 1)
    if text.startswith("[") and text.endswith("]"):
        inner = text[1:-1]
        return tuple(_value(one, what, whole, depth + 1) for one in _split(inner, whole)) if inner.strip() else ()
    if text.startswith("{") and text.endswith("}"):
        try:
            return _from_data(json.loads(text), what)
        except ValueError:
            raise RuleError(f"cannot read {text[:60]!r}: it is no JSON") from None
    if text == "none":
        return None
    for read in (int, float, json.loads):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _split(text: str, whole: str) -> Iterator[str]:
    """The parts between commas that stand in no brackets."""
    depth = start = 0
    quoted = escaped = False
    for place, letter in enumerate(text):
        quoted ^= letter == '"' and not escaped
        escaped = letter == "\\" and not escaped
        if not quoted:
            depth += (letter in "([{") - (letter in ")]}")
            if letter == "," and depth == 0:
                yield text[start:place]
                start = place + 1
        if depth < 0:
            break
    if depth or quoted:
        raise RuleError(f"cannot read {whole!r:.80}: brackets or quotes do not match")
    yield text[start:]


def _make(name: str, kind: type[Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        return kind(*given, **named)
    except (TypeError, CollegiumError) as problem:
        parts = [*own_names(), *(name for names in _BUILT_IN.values() for name in names)]
        for value in (*given, *named.values()):
            if isinstance(value, str) and value.partition(":")[0] in parts:
                raise RuleError(f"a part of {name} is written in brackets: ({value})") from None
        if isinstance(problem, CollegiumError):
            raise
        wanted = [field.name + ("" if field.default is MISSING else f"={field.default}") for field in _settings(kind)]
        got = [*map(str, given), *(f"{key}={value}" for key, value in named.items())]
        takes = f"{name} takes {', '.join(wanted) or 'no settings'}; given: {', '.join(got) or 'none'}"
        raise RuleError(takes if len(given) + len(named) != len(wanted) or named else f"{takes}: {problem}") from None


def _settings(kind: type[Any]) -> list[Field[Any]]:
    """The fields of a part that are its settings."""
    if not is_dataclass(kind):
        raise RuleError(f"{kind.__name__} must be a frozen dataclass to be written as text and read back")
    return [field for field in fields(kind) if field.init]
