"""`Schedule`: who hears whom in round t."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from collegium._util.seat import Seat
from collegium.protocol.base import Rule


@runtime_checkable
class Schedule(Protocol):
    """Every agent's place in every round. A `Policy` is the schedule that never changes."""

    @property
    def size(self) -> int:
        """K, the number of agents."""

    @property
    def rule(self) -> Rule | None:
        """The rule it was made for, if it needs one of its own: `collaborate` uses it unless told otherwise."""

    def at(self, t: int) -> Sequence[Seat]:
        """The K seats of round t = 1, 2, …; the same every time it is asked for."""
