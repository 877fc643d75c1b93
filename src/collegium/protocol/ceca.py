"""The rule of exact schedules: two averages to remember, one to send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import RECEIVED, Floats, Inbox, Outbox, Rule, completed, message_width


class TwoAverages(NamedTuple):
    a: Floats
    """The average of m + 1 agents, this one among them, shape (n, w)."""
    h: Floats
    """The average of the m others, shape (n, w)."""
    m: NDArray[np.int64]
    """How many others, shape (n,)."""


@dataclass(frozen=True)
class Ceca(Rule[TwoAverages]):
    r"""Exact averaging of any number of agents: CECA-2P. It is the rule that `schedule.exact` brings.

    An agent keeps $a$, the average of $m + 1$ agents with itself, and $h$, the average of the $m$ others. In a round
    everybody sends one of them and hears one other agent's, $r$:

    $$ \text{heard } a: \quad a' = \tfrac12 (a + r), \quad h' = \frac{m h + (m+1) r}{2m+1}, \quad m' = 2m + 1 $$

    $$ \text{heard } h: \quad a' = \frac{(m+1) a + m r}{2m+1}, \quad h' = \tfrac12 (h + r), \quad m' = 2m $$

    The schedule says which: where an agent's own weight is one half, $a$ is sent, else $h$. All weights are convex, so
    quantised messages need no larger range than the scores; an agent's own terms are never rounded.

    A lost message leaves the receiver with its own averages (h becomes a if there is none yet): statistics are still
    weighted averages of the scores, with total weight one, but no longer with equal weights, and agents disagree. The
    earlier the loss, the more agents miss the lost scores. Nothing repairs it later: over links that lose messages use
    `RunningSums`. [ding2023]

    >>> import collegium
    >>> from collegium import schedule
    >>> collegium.collaborate([[1.0, 2.0, 6.0]], schedule.exact(3)).statistics[-1]
    array([[3., 3., 3.]])
    """

    def width(self, d: int) -> int:
        return message_width(d)

    def init(self, seat: Seat, scores: Floats) -> TwoAverages:
        x = scores[:, : self.width(scores.shape[1])]
        return TwoAverages(x, np.zeros_like(x), np.zeros(len(x), np.int64))

    def emit(self, seat: Seat, state: TwoAverages, draws: Draws) -> tuple[Outbox, TwoAverages]:
        return Outbox(state.a if _sends_a(seat) else state.h), state

    def absorb(self, seat: Seat, state: TwoAverages, inbox: Inbox) -> TwoAverages:
        sends_a, (a, h, m) = _sends_a(seat), state
        if len(seat.senders) == 1:  # the average is complete: nothing is sent any more
            return state
        other = 1 - seat.own  # type: ignore[operator]
        came, r = (inbox.status[other] == RECEIVED)[:, None], inbox.values[other]
        unequal = (m / (2 * m + 1))[:, None]
        if sends_a:
            heard = TwoAverages(0.5 * a + 0.5 * r, unequal * h + (1 - unequal) * r, 2 * m + 1)
            h = np.where(m[:, None] == 0, a, h)
        else:
            heard = TwoAverages((1 - unequal) * a + unequal * r, 0.5 * h + 0.5 * r, 2 * m)
        return TwoAverages(np.where(came, heard.a, a), np.where(came, heard.h, h), heard.m)

    def sends_own(self, seat: Seat) -> bool:
        return _sends_a(seat)

    def statistic(self, state: TwoAverages) -> Floats:
        return completed(state.a)


def _sends_a(seat: Seat) -> bool:
    """Whether this is a round in which everybody sends the average with itself."""
    if seat.own is None or len(seat.senders) > 2:
        raise RuleError(
            f"Ceca is the rule of schedule.exact, where an agent hears itself and at most one other; agent "
            f"{seat.agent} hears {len(seat.senders)}. Use DeGroot() on other networks"
        )
    return bool(seat.weights[seat.own] == 0.5)
