"""What becomes of an error in one message: the rule itself, with that message off by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.protocol.base import Floats, Inbox, Outbox, Rule


class _Off(NamedTuple):
    state: Any
    left: NDArray[np.float64]
    """How many rounds until the message that is off, 1: this one; shape (n,)."""


@dataclass(frozen=True)
class Disturbed(Rule[_Off]):
    """A rule that starts from nothing: an agent's score is the round in which its message is one too large.

    A score of 0: none of its messages is. What the statistics of a linear rule become is the weight of such an error.
    """

    rule: Rule

    def check_seats(self, seats: Sequence[Seat]) -> None:
        self.rule.check_seats(seats)

    def width(self, d: int) -> int:
        return self.rule.width(d)

    def init(self, seat: Seat, scores: Floats) -> _Off:
        return _Off(self.rule.init(seat, np.zeros_like(scores)), scores[:, 0])

    def emit(self, seat: Seat, state: _Off, draws: Draws) -> tuple[Outbox, _Off]:
        outbox, after = self.rule.emit(seat, state.state, draws)
        off = (state.left == 1).astype(np.float64)[:, None]
        return outbox._replace(values=outbox.values + off), _Off(after, state.left - 1)

    def absorb(self, seat: Seat, state: _Off, inbox: Inbox) -> _Off:
        return state._replace(state=self.rule.absorb(seat, state.state, inbox))

    def statistic(self, state: _Off) -> Floats:
        return self.rule.statistic(state.state)
