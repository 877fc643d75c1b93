"""`Schedule`: who hears whom in round t."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from collegium._util.arguments import whole_number
from collegium._util.seat import Seat
from collegium.errors import PolicyError
from collegium.protocol.base import Rule
from collegium.protocol.degroot import DeGroot
from collegium.topology import Graph


@runtime_checkable
class Schedule(Protocol):
    """Every agent's place in every round. A `Policy` is the schedule that never changes.

    One that is complete after some rounds may say so by a whole number `rounds`: `collaborate` then runs so many unless
    told otherwise, and in later rounds nobody hears anybody else.
    """

    @property
    def size(self) -> int:
        """K, the number of agents."""

    @property
    def rule(self) -> Rule | None:
        """The rule it was made for, if it needs one of its own: `collaborate` uses it unless told otherwise."""

    def at(self, t: int) -> Sequence[Seat]:
        """The K seats of round t = 1, 2, …; the same every time it is asked for."""


def own_rule(schedule: Schedule) -> Rule:
    """The rule that a schedule was made for; DeGroot, if it was made for none."""
    return schedule.rule or DeGroot()


def own_rounds(schedule: Schedule, default: int = 20) -> int:
    """How many rounds a schedule has: its own `rounds`, after which nothing is sent any more, or else a default."""
    rounds = getattr(schedule, "rounds", None)
    if rounds is None:
        return default
    return whole_number(rounds, "the rounds of a schedule", PolicyError)


def union(schedule: Schedule, rounds: int) -> Graph:
    """Who hears whom in any of the first rounds: the links that a schedule needs."""
    links = {(int(l), seat.agent) for t in range(1, rounds + 1) for seat in schedule.at(t) for l in seat.senders}
    sources, targets = np.array(sorted(links), np.int64).reshape(-1, 2).T
    return Graph.from_links(schedule.size, sources, targets)
