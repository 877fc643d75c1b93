"""What a trigger promises: everybody sends at first, and each item is decided by itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from collegium.checks import base
from collegium.checks.base import Check, expect
from collegium.protocol.base import Floats, Mask
from collegium.protocol.states import leaves
from collegium.protocol.trigger import Trigger

_ITEMS, _ROUNDS = 7, 6


def check_trigger(trigger: Trigger) -> list[str]:
    """Check that a trigger keeps the promises averaging relies on; returns what held and what was skipped.

    >>> from collegium.protocol.trigger import Delta
    >>> check_trigger(Delta(0.1))[3]
    'everybody sends in round 1'
    """
    return base.run(str(trigger), trigger_checks(trigger))


def trigger_checks(trigger: Trigger) -> list[Check]:
    """The checks of `check_trigger`, one by one."""
    checks = {
        "everybody sends in round 1": _sends_at_first,
        "decides for every item whether it is sent": _masks,
        "its memory is arrays that keep their form": _memory_keeps_its_form,
        "leaves what it is given as it was": _leaves_inputs,
        "any order and split of items": _any_split,
    }
    return base.part_checks(trigger, Trigger, "collegium.protocol.trigger", checks)


def _paths(width: int) -> Floats:
    """Values of every round, shape (rounds + 1, n, w): some move, some come to rest, some change sign."""
    t = np.arange(_ROUNDS + 1.0)[:, None, None]
    place = np.arange(float(_ITEMS * width)).reshape(_ITEMS, width)
    return np.asarray(np.sin(place) + np.cos(place + t) * 0.5 ** (t * (np.arange(_ITEMS)[:, None] % 3)))


def _history(trigger: Trigger, paths: Floats) -> Iterator[tuple[Mask | None, Any]]:
    """What a trigger decides in every round, and its memory after that."""
    memory, sent = trigger.start(paths[0]), paths[0].copy()
    for before, after in pairwise(paths):
        speaks = trigger.speaks(before, memory)
        sent = before.copy() if speaks is None else np.where(np.asarray(speaks)[:, None], before, sent)
        memory = trigger.update(memory, before, after, sent)
        yield speaks, memory


def _sends_at_first(trigger: Trigger) -> None:
    for width in (1, 3):
        values = _paths(width)[0]
        speaks = trigger.speaks(values, trigger.start(values))
        expect(speaks is None or bool(np.all(speaks)), "before the first update it must send about every item")


def _masks(trigger: Trigger) -> None:
    for width in (1, 3):
        for speaks, _ in _history(trigger, _paths(width)):
            expect(
                speaks is None
                or (isinstance(speaks, np.ndarray) and speaks.dtype == np.bool_ and speaks.shape == (_ITEMS,)),
                f"speaks must be a mask of shape ({_ITEMS},) or None; got {speaks!r:.80}",
            )


def _memory_keeps_its_form(trigger: Trigger) -> None:
    paths = _paths(3)
    first = _form(trigger.start(paths[0]))
    for _, memory in _history(trigger, paths):
        form = _form(memory)
        expect(form == first, f"its memory is {form} after an update, {first} at first: live agents keep one form")


def _form(memory: Any) -> list[str]:
    parts = []
    for leaf in leaves(memory):
        expect(
            isinstance(leaf, np.ndarray) and leaf.shape[:1] == (_ITEMS,),
            f"its memory of {_ITEMS} items holds {leaf!r:.60}: it is a tuple of arrays with the items on axis 0",
        )
        parts.append(f"{leaf.dtype}{list(leaf.shape)}")
    return parts


def _leaves_inputs(trigger: Trigger) -> None:
    paths = _paths(3)
    given = paths.copy()
    for _ in _history(trigger, given):
        expect(np.array_equal(given, paths), "it changes the values it is given: work on a copy")


def _any_split(trigger: Trigger) -> None:
    for width in (1, 3):
        paths = _paths(width)
        whole = list(_history(trigger, paths))
        for rows in (np.arange(_ITEMS)[::-1], np.arange(3), np.arange(3, _ITEMS), np.array([5])):
            for (speaks, memory), (some, its) in zip(whole, _history(trigger, paths[:, rows]), strict=True):
                expect(
                    np.array_equal(_all(speaks, _ITEMS)[rows], _all(some, len(rows)))
                    and all(map(np.array_equal, [leaf[rows] for leaf in leaves(memory)], leaves(its))),
                    "its decision on an item depends on the other items of the batch",
                )


def _all(speaks: Mask | None, n: int) -> Mask:
    return np.ones(n, np.bool_) if speaks is None else speaks
