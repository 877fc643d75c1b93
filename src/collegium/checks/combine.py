"""What a combine promises: one value of its neighbours' values, item by item, that stays among them."""

from __future__ import annotations

import numpy as np

from collegium.checks import base
from collegium.checks.base import Check, expect
from collegium.protocol.base import Floats
from collegium.protocol.combine import Combine

_SENDERS, _ITEMS = 5, 6
_SLACK = 64 * float(np.finfo(np.float64).eps)
"""Of a weighted sum of few values."""


def check_combine(combine: Combine) -> list[str]:
    """Check that a combine keeps the promises averaging relies on; returns what held and what was skipped.

    >>> from collegium.protocol.combine import WeightedMean
    >>> check_combine(WeightedMean())[3]
    'gives finite values of the right shape'
    """
    return base.run(str(combine), combine_checks(combine))


def combine_checks(combine: Combine) -> list[Check]:
    """The checks of `check_combine`, one by one."""
    checks = {
        "gives finite values of the right shape": _shape,
        "leaves what it is given as it was": _leaves_inputs,
        "equal values stay as they are": _keeps_agreement,
        "stays among the values": _stays_among,
        "a weight of 0 leaves an agent out": _leaves_out,
        "any order and split of items": _any_split,
    }
    return base.part_checks(combine, Combine, "collegium.protocol.combine", checks)


def _inputs(width: int = 3, senders: int = _SENDERS) -> tuple[Floats, Floats, Floats]:
    """Values (m, n, w), weights (m, n) and own values (n, w); the agent itself is the second of its senders."""
    values = np.sin(np.arange(float(senders * _ITEMS * width))).reshape(senders, _ITEMS, width)
    weights = 1.0 + np.arange(float(senders * _ITEMS)).reshape(senders, _ITEMS) % 4
    own = values[min(1, senders - 1)].copy()
    return values, weights / weights.sum(axis=0), own


def _shape(combine: Combine) -> None:
    for width in (1, 3):
        for senders in (1, 2, _SENDERS):
            values, weights, own = _inputs(width, senders)
            got = combine(values, weights, own)
            expect(
                isinstance(got, np.ndarray) and got.dtype == np.float64 and got.shape == own.shape,
                f"of values {values.shape} it must make float64 of shape {own.shape}; got {got!r:.80}",
            )
            expect(bool(np.isfinite(got).all()), f"of finite values of {senders} agents it makes some that are not")


def _leaves_inputs(combine: Combine) -> None:
    given = _inputs()
    copies = [one.copy() for one in given]
    combine(*given)
    for name, one, copy in zip(("values", "weights", "own"), given, copies, strict=True):
        expect(np.array_equal(one, copy), f"it changes the {name} it is given: work on a copy")


def _keeps_agreement(combine: Combine) -> None:
    values, weights, own = _inputs()
    got = combine(np.broadcast_to(own, values.shape).copy(), weights, own)
    off = float(np.abs(got - own).max())
    expect(off <= _SLACK, f"where all have the same value, it makes another of it, {off:.3g} away")


def _stays_among(combine: Combine) -> None:
    values, weights, own = _inputs()
    got, every = combine(values, weights, own), np.concatenate([values, own[None]])
    inside = (got >= every.min(axis=0) - _SLACK) & (got <= every.max(axis=0) + _SLACK)
    expect(
        bool(inside.all()),
        f"it gives {got[~inside][:1]}, which is beyond all values: a quantiser's range would be left",
    )


def _leaves_out(combine: Combine) -> None:
    values, weights, own = _inputs()
    weights[3] = 0.0
    weights /= weights.sum(axis=0)
    other = values.copy()
    other[3] = 1e6
    expect(
        np.array_equal(combine(values, weights, own), combine(other, weights, own)),
        "the value of an agent whose weight is 0 matters: it stands for a message that did not come",
    )


def _any_split(combine: Combine) -> None:
    values, weights, own = _inputs()
    weights[3, ::2] = 0.0  # senders that are left out differ by item
    weights /= weights.sum(axis=0)
    whole = combine(values, weights, own)
    for rows in (np.arange(_ITEMS)[::-1], np.arange(2), np.arange(2, _ITEMS), np.array([4]), np.arange(0)):
        some = combine(values[:, rows], weights[:, rows], own[rows])
        expect(np.array_equal(whole[rows], some), "an item's value depends on the other items of the batch")
