"""What robust combines share: who is there, how far values are apart, the mean of those that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import Floats, Mask
from collegium.protocol.combine.base import Combine


class RobustCombine(Combine):
    """A combine that some liars in a neighbourhood cannot move as far as they like: fewer than half of the values."""

    least = 3
    """How many values an agent needs for it, its own included."""

    def bears(self, m: int) -> int:
        return (m - 1) // 2

    def check_seats(self, seats: Sequence[Seat]) -> None:
        for seat in seats:
            heard = len(seat.senders) + (seat.own is None)  # its own value is there in any case
            if heard < self.least:
                raise RuleError(
                    f"{self} needs {self.least} values in every neighbourhood, the agent's own included, but agent "
                    f"{seat.agent} has {heard}: add links, or choose a combine for fewer liars"
                )


class ForLiars(RobustCombine):
    """A robust combine whose one setting is the number of liars it bears, among `per_liar` values for each and more."""

    per_liar: ClassVar[int] = 2
    more: ClassVar[int] = 1
    liars: int

    def __post_init__(self) -> None:
        name = fields(self)[0].name  # type: ignore[arg-type]  # those derived from it are dataclasses
        liars = whole_number(getattr(self, name), f"{name}, the number of liars,", RuleError, at_least=1)
        object.__setattr__(self, name, liars)
        object.__setattr__(self, "liars", liars)
        object.__setattr__(self, "least", self.per_liar * liars + self.more)

    def bears(self, m: int) -> int:
        return self.liars if m >= self.least else 0

    def breaks_at(self, m: int) -> int:
        return min(self.liars + 1, m) if m >= self.least else m  # of fewer values, an agent keeps its own


def lengths(differences: Floats) -> Floats:
    """The Euclidean lengths (…) of differences (…, w) of messages.

    Where messages have several numbers they are all but the last of entries that sum to zero; the last one counts
    too, so that no class is measured by another rule than the others.
    """
    if differences.shape[-1] == 1:
        return np.abs(differences[..., 0])
    # Squares of very large or small numbers would overflow; powers of two change no other digit.
    _, exponent = np.frexp(np.abs(differences).max(axis=-1))
    scaled = np.ldexp(differences, -exponent[..., None])
    total, last = scaled[..., 0] ** 2, scaled[..., 0]
    for j in range(1, differences.shape[-1]):  # in this order whatever the shape of the batch
        total, last = total + scaled[..., j] ** 2, last + scaled[..., j]
    return np.asarray(np.ldexp(np.sqrt(total + last**2), exponent))


def ranks(values: Floats, there: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The place of each value among those that are there, smallest first, and how many are: (m, …) and (…).

    Of equal values the agent with the smaller number comes first; whoever is not there comes last.
    """
    order = np.argsort(np.where(there, values, np.inf), axis=0, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(len(values)).reshape(-1, *[1] * (values.ndim - 1)), axis=0)
    return places, np.asarray(there.sum(axis=0))


def mean_of(keep: Mask, values: Floats, weights: Floats, own: Floats) -> Floats:
    """The weighted mean of the values that are kept, (m, n) or (m, n, w); the agent's own where none is."""
    keep = keep if keep.ndim == 3 else keep[:, :, None]
    total, share = np.zeros(own.shape), np.zeros(own.shape)
    for kept, weight, value in zip(keep, weights, values, strict=True):
        part = weight[:, None] * kept
        total += part * np.where(kept, value, 0.0)
        share += part
    return np.where(share > 0, total / np.where(share > 0, share, 1.0), own)


def shortened(values: Floats, weights: Floats, own: Floats, limits: Floats) -> Floats:
    """Own values plus the weighted differences to all others, none longer than `limits` (n,)."""
    total = own.copy()
    for value, weight in zip(values, weights, strict=True):
        difference = np.where(weight[:, None] > 0, value - own, 0.0)
        length = lengths(difference)
        factor = np.where(length > limits, limits / np.where(length > 0, length, 1.0), 1.0)
        total += weight[:, None] * factor[:, None] * difference
    return total


def distances(values: Floats, weights: Floats, own: Floats) -> tuple[Floats, Mask]:
    """How far each value that is there is from the agent's own, (m, n), and which are there."""
    there = weights > 0
    return lengths(np.where(there[:, :, None], values - own, 0.0)), there
