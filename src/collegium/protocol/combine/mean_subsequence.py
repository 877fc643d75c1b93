"""Weighted mean-subsequence-reduced (W-MSR)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import Floats
from collegium.protocol.combine._robust import ForLiars, mean_of, ranks


@dataclass(frozen=True)
class MeanSubsequence(ForLiars):
    r"""The weighted mean without the F largest of the values above the agent's own and the F smallest of those below.

    An agent's own value is never dropped, so nobody is moved out of the range of the honest, in any round, by F liars
    among $m \ge 2F + 2$ values. All honest agents come to agree, whatever F liars in the whole network say as long as
    each says the same to all, if and only if the network is (F+1, F+1)-robust: with up to 16 agents that is checked
    before a run. Liars that tell neighbours different things can keep honest agents apart, within their range, unless
    the network is (F+1)-robust without the liars, wherever they are. [leblanc2013]

    >>> import numpy as np
    >>> MeanSubsequence(F=1)(np.array([[[1.0]], [[2.0]], [[90.0]]]), np.full((3, 1), 1 / 3), np.array([[1.0]]))
    array([[1.5]])
    """

    F: int
    more = 2

    def check_seats(self, seats: Sequence[Seat]) -> None:
        from collegium.topology.robustness import EXACT, largest_s, senders_of

        super().check_seats(seats)
        if len(seats) <= EXACT and largest_s(senders_of([seat.senders for seat in seats]), self.F + 1) < self.F + 1:
            raise RuleError(
                f"{self} needs a network that is ({self.F + 1}, {self.F + 1})-robust, and this one is not: as many "
                "liars can keep honest agents apart for ever. `collegium network --trust` lists links that would help"
            )

    def breaks_at(self, m: int) -> int:
        return min(self.F + 1, m)  # of fewer values than it needs, too, F are dropped on either side

    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        there = (weights > 0)[:, :, None]
        places, count = ranks(values, there)
        too_large = (values > own) & (places >= count - self.F)
        too_small = (values < own) & (places < self.F)
        return mean_of(there & ~too_large & ~too_small, values, weights, own)
