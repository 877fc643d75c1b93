"""`Check`: one promise of a part, by name; `run` tries many and names every broken one."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, ParamSpec
from unittest import SkipTest

import numpy as np

from collegium.errors import CheckError, RuleError
from collegium.protocol import registry

P = ParamSpec("P")


@dataclass(frozen=True)
class Check:
    """One promise of a part, to be tried by calling it.

    It raises `CheckError` if the promise is broken, and `unittest.SkipTest`, which pytest shows as skipped, where it
    cannot be tried. So each is a test of its own:

        @pytest.mark.parametrize("check", rule_checks(MyRule()), ids=str)
        def test_my_rule(check):
            check()
    """

    name: str
    function: Callable[[], str | None] = field(repr=False)
    """Raises if the promise is broken; may return a more exact name for what held."""
    skipped: str | None = None
    """Why it cannot be tried, if it cannot."""

    def __call__(self) -> str:
        """Try it; what held."""
        if self.skipped is not None:
            raise SkipTest(self.skipped)
        try:
            return self.function() or self.name
        except (CheckError, SkipTest):
            raise
        except Exception as problem:
            raise CheckError(f"{type(problem).__name__}: {problem}") from problem

    def __str__(self) -> str:
        return self.name


def listed(function: Callable[P, Iterator[Check]]) -> Callable[P, list[Check]]:
    """A function that yields checks as one that gives a list: pytest takes no iterators as parameters."""

    @wraps(function)
    def all_of_them(*arguments: P.args, **settings: P.kwargs) -> list[Check]:
        return list(function(*arguments, **settings))

    return all_of_them


def run(part: str, checks: Iterable[Check]) -> list[str]:
    """Try all checks of a part; what held, and what was skipped and why. Every broken promise is in the one error."""
    done: list[str] = []
    failed: dict[str, str] = {}
    for check in checks:
        try:
            done.append(check())
        except SkipTest as reason:
            done.append(f"{check}: skipped, {reason}")
        except CheckError as problem:
            failed[str(check)] = " ".join(str(problem).split())
    if failed:
        lines, seen = [], dict[str, str]()
        for name, sentence in failed.items():
            first = seen.setdefault(sentence, name)
            lines.append(f"  {name}: {sentence if first is name else f'the same as {first}'}")
        count = f"{len(failed)} of {len(failed) + len(done)} checks"
        raise CheckError("\n".join([f"{part} fails {count}", *lines]))
    return done


def expect(condition: bool | np.bool, complaint: str) -> None:
    """Raise a broken promise unless the condition holds."""
    if not condition:
        raise CheckError(complaint)


def one_failure(name: str, complaint: str) -> Iterator[Check]:
    """The only check of something that is no such part at all."""

    def fail() -> None:
        raise CheckError(complaint)

    yield Check(name, fail)


def part_checks(part: Any, kind: type, public: str, checks: Mapping[str, Callable[..., None]]) -> list[Check]:
    """The checks of a part of a rule or of a network: that it is of its kind, its settings, then these by name.

    public: where users import the kind from.
    """
    name = kind.__name__
    if not isinstance(part, kind):
        is_one = f"is {name}" if name.endswith("s") else f"is a {name}"
        return list(one_failure(is_one, f"{part!r:.80} is not a {public}.{name}"))
    own = [Check(promise, partial(function, part)) for promise, function in checks.items()]
    return [*settings_checks(part, name.lower()), *own]


def settings_checks(part: Any, what: str) -> Iterator[Check]:
    """What is asked of every part: it is frozen, compares by value, and can be sent, written and read."""
    yield Check("is a frozen dataclass", partial(_is_frozen, part))
    yield from kept_checks(part, what)


def kept_checks(part: Any, what: str) -> Iterator[Check]:
    """That a part equals itself after pickling, and after being written and read."""
    yield Check("equals itself after pickling", partial(_pickles, part))
    yield Check("saved and loaded", partial(_is_read_back, part, what), _no_name(part))


def _is_frozen(part: Any) -> None:
    parameters = getattr(type(part), "__dataclass_params__", None)
    expect(
        parameters is not None and parameters.frozen,
        f"{type(part).__name__} must be a frozen dataclass: it holds settings only, what changes goes in and comes out",
    )
    hash(part)


def _pickles(part: Any) -> None:
    expect(
        pickle.loads(pickle.dumps(part)) == part,
        f"{part} does not equal itself after pickling: compare by value, keep only settings",
    )


def _is_read_back(part: Any, what: str) -> None:
    data = json.loads(json.dumps(registry.to_data(part), allow_nan=False))
    _expect_same(part, registry.from_data(data, what), f"written as {data}")
    if not hasattr(part, "to_data") and what != "schedule":  # networks are written as data only
        text = registry.to_text(part)
        _expect_same(part, registry.from_text(text, what), f"written as {text!r}")


def _expect_same(part: Any, read: Any, written: str) -> None:
    expect(
        type(read) is type(part) and read == part,
        f"{written} it is read as {read}: every setting must be a field of the dataclass, kept as it was given",
    )


def _no_name(part: Any) -> str | None:
    try:
        registry.name_of(part)
    except RuleError as problem:
        return str(problem)
    return None
