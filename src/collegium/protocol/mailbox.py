"""What a message that did not come stands for: a named choice, never an accident of a loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from collegium.errors import RuleError
from collegium.protocol.base import LOST, SILENT, Inbox, Mask


class Mailbox(ABC):
    """Turns what arrived, and what arrived before, into the values and weights a rule combines.

    An agent's own entry always arrives: when it stays silent, that is the value it sent last.
    """

    @abstractmethod
    def read(self, inbox: Inbox, known: Mask) -> Inbox:
        """The inbox for the rule; where a message is SILENT or LOST, `inbox.values` has the last one that came.

        known: whether any ever came from this sender, shape (m, n); where not, the value is 0.
        """


@dataclass(frozen=True)
class HoldLast(Mailbox):
    """A silent neighbour still means what it sent last: the event-triggered protocol of the paper. [hu2026, App. H.3]

    lost: what a lost message means: "renormalise" leaves its sender out of this round and scales the other weights up
        to one; "hold" takes its last value, and 0, which favours no class, if there is none.
    """

    lost: Literal["renormalise", "hold"] = "renormalise"

    def __post_init__(self) -> None:
        if self.lost not in ("renormalise", "hold"):
            raise RuleError(f'a lost message means "renormalise" or "hold", got {self.lost!r}')

    def read(self, inbox: Inbox, known: Mask) -> Inbox:
        if self.lost == "hold":
            return inbox
        return leave_out((inbox.status == LOST) | ((inbox.status == SILENT) & ~known), inbox, known)


@dataclass(frozen=True)
class Renormalise(Mailbox):
    """Whoever is silent, or whose message is lost, is left out and the weights of the others are scaled up to one.

    Choose it where an old value is worse than none. If nothing arrived at all, the last values are held.
    """

    def read(self, inbox: Inbox, known: Mask) -> Inbox:
        gone = (inbox.status == LOST) | (inbox.status == SILENT)
        return leave_out(gone, inbox, known, np.ones(gone.shape[1], np.bool_))


def leave_out(gone: Mask, inbox: Inbox, known: Mask, scaled: Mask | None = None) -> Inbox:
    """The inbox with weights of those who are there, scaled up to one.

    An item for which nobody is left keeps its weights and the last values; whoever was never heard then counts with
    the agent's own value.

    scaled: for which items weights are scaled, shape (n,); by default where a sender is left out. So no item's numbers
        depend on what happened to others in the batch.
    """
    scaled = np.asarray(gone.any(axis=0)) if scaled is None else scaled
    if not scaled.any():
        return inbox
    shares, total = inbox.weights * ~gone, np.zeros(gone.shape[1])
    for share in shares:
        total += share
    alone = total == 0
    shares /= np.where(alone | ~scaled, 1.0, total)
    if not alone.any():
        return inbox._replace(weights=shares)
    weights = np.where(alone, inbox.weights, shares)
    values = np.where((alone & ~known)[:, :, None], inbox.own, inbox.values)
    return inbox._replace(values=values, weights=weights)
