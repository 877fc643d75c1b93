"""What an agent knows of a neighbour: whether it is connected, how quickly it responds, what it sent was refused."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number
from collegium._util.randomness import U64
from collegium.errors import LiveError
from collegium.live.transport.base import Peer

Rows = NDArray[np.intp]
_ASKED = 8.5  # deadlines, one re-request each: with a fifth of all frames lost, eight without answer are rare
_AT_FIRST = 8  # re-requests within the longest wait, to one whose response time is not known
_OF_A_LIST = 32  # what remembering a list costs, in items
_REMEMBERED = 1 << 17  # items in the lists remembered of one neighbour; a sender counts on half of it


class State(StrEnum):
    """The state of a neighbour."""

    UP = "up"
    LATE = "late"
    """It is connected, but some round lately went on without its message."""
    DOWN = "down"
    """It is gone or does not answer: rounds leave it out until a frame of it arrives."""
    REFUSED = "refused"
    """It answers but cannot take part: a certificate, or frames of another network."""


@dataclass(frozen=True)
class Deadlines:
    """How long to wait, in seconds."""

    longest: float = 2.0
    """For a neighbour's message in one round, at most, however slow it has been (and `view`, if it waits for one)."""
    least: float = 0.25
    """No message is re-requested or counted as lost before this, so that a busy machine's pause is no failure."""
    view: float = 1.0
    """For this agent's own view of an item a neighbour has announced; then it takes part from zero."""

    def __post_init__(self) -> None:
        for name in ("longest", "least", "view"):
            value = real_number(getattr(self, name), f"the deadline {name}", LiveError, above=0)
            object.__setattr__(self, name, value)
        if self.least > self.longest:
            raise LiveError(f"the least deadline ({self.least:g} s) is longer than the longest ({self.longest:g} s)")


@dataclass
class Neighbour:
    """A neighbour, as seen from this agent."""

    peer: Peer
    is_heard: bool
    hears: bool
    deadlines: Deadlines
    is_present: bool = False
    """Whether its liveliness token is there."""
    is_excused: bool = True
    """Whether it is left out: rounds do not wait for it."""
    response: float | None = None
    """Usual time from our own message to its message, in seconds; None before the first."""
    spread: float = 0.0
    asked_at: float | None = None
    """When the first unanswered re-request was sent."""
    late_at: float = 0.0
    missed: int = 0
    """Messages missing when a round went on."""
    rejected: int = 0
    reason: str = ""
    """Why it is down or refused, or what was wrong with its last rejected frame."""
    is_refused: bool = False
    _lists: OrderedDict[int, tuple[Rows, U64]] = field(default_factory=OrderedDict, repr=False)
    _listed: int = field(default=0, repr=False)

    def heard(self) -> None:
        """A frame of it arrived: it is up."""
        self.asked_at, self.is_excused, self.is_refused = None, False, False

    def measure(self, seconds: float) -> None:
        """Its message arrived so long after our own: mean and mean deviation, as TCP keeps them."""
        seconds = max(seconds, 0.0)
        if self.response is None:
            self.response, self.spread = seconds, seconds / 2
        else:
            self.spread += (abs(seconds - self.response) - self.spread) / 4
            self.response += (seconds - self.response) / 8

    @property
    def deadline(self) -> float:
        """How long after our own message its message is overdue, from its response times so far."""
        usual = self.deadlines.longest / _AT_FIRST if self.response is None else self.response + 4 * self.spread
        return min(max(usual, self.deadlines.least), self.deadlines.longest)

    def has_gone_silent(self, now: float) -> bool:
        """Whether several re-requests brought no frame at all."""
        if self.asked_at is None:
            return False
        deadline, longest = self.deadline, self.deadlines.longest
        if self.response is None:  # it may be about to begin
            return now - self.asked_at > max(longest - deadline, longest / 2)
        # Well before others count as lost the messages of those that wait for it.
        return now - self.asked_at > min(_ASKED * deadline, longest / 2)

    def state(self, now: float) -> State:
        """Its state now."""
        if self.is_refused:
            return State.REFUSED
        if (self.is_heard and self.is_excused) or (not self.is_present and not self.is_heard):
            return State.DOWN
        return State.LATE if now - self.late_at < 10 * self.deadlines.longest and self.late_at else State.UP

    def remember(self, number: int, rows: Rows, ids: U64) -> None:
        """It named a list of items."""
        self._forget(number)
        self._lists[number] = rows, ids
        self._listed += len(ids) + _OF_A_LIST
        while self._listed > _REMEMBERED and len(self._lists) > 1:
            self._forget(next(iter(self._lists)))

    def recall(self, number: int) -> tuple[Rows, U64] | None:
        """A list it named before."""
        if number in self._lists:
            self._lists.move_to_end(number)
        return self._lists.get(number)

    def _forget(self, number: int) -> None:
        known = self._lists.pop(number, None)
        if known is not None:
            self._listed -= len(known[1]) + _OF_A_LIST
