"""What a missing message means: a named choice, never an accident of a loop."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


class Mailbox(ABC):
    """Turns what arrived, and what was heard before, into the values and weights a rule combines.

    An agent's own entry always arrives: when it stays silent, that is the value it sent last.
    """

    @abstractmethod
    def read(
        self, arrived: Sequence[float | None], last: Sequence[float | None], weights: Sequence[float]
    ) -> tuple[Sequence[float], Sequence[float]]:
        """Values and weights from this round's messages and the last one ever heard from each (None: nothing yet)."""


@dataclass(frozen=True)
class HoldLast(Mailbox):
    """A silent neighbour still means what it said last; one never heard counts as 0, which favours no class.

    This is the event-triggered protocol of the paper. [hu2026, App. H.3]

    >>> HoldLast().read([1.0, None], [0.5, -2.0], [0.5, 0.5])
    ([1.0, -2.0], [0.5, 0.5])
    """

    def read(
        self, arrived: Sequence[float | None], last: Sequence[float | None], weights: Sequence[float]
    ) -> tuple[Sequence[float], Sequence[float]]:
        held = [0.0 if value is None else value for value in last]
        return [held[i] if value is None else value for i, value in enumerate(arrived)], weights


@dataclass(frozen=True)
class Renormalise(Mailbox):
    """A silent neighbour is left out and the weights of the others are scaled up to one.

    Choose it for lossy links, where an old value is worse than none. If nothing arrived at all, the last values
    are held.

    >>> Renormalise().read([1.0, None], [0.5, -2.0], [0.25, 0.75])
    ([1.0], [1.0])
    """

    def read(
        self, arrived: Sequence[float | None], last: Sequence[float | None], weights: Sequence[float]
    ) -> tuple[Sequence[float], Sequence[float]]:
        heard = [(value, weight) for value, weight in zip(arrived, weights, strict=True) if value is not None]
        if not heard:
            return HoldLast().read(arrived, last, weights)
        total = 0.0
        for _, weight in heard:
            total += weight
        return [value for value, _ in heard], [weight / total for _, weight in heard]
