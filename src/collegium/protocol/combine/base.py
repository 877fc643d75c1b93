"""`Combine`: how an agent makes one value of its neighbours' values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from collegium._util.seat import Seat
from collegium.protocol.base import Floats


class Combine(ABC):
    """A function of the values of the m agents heard, ascending, for n items at once."""

    @abstractmethod
    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        """The combined values (n, w), from values (m, n, w), weights (m, n) and the agent's own last value (n, w).

        Weights of an item sum to one; a weight of 0 means that this agent is to be left out.
        """

    def bears(self, m: int) -> int:
        """How many liars among m values, the agent's own included, cannot move the result as far as they like."""
        return 0

    def breaks_at(self, m: int) -> int:
        """How many liars among m values, the agent's own not one of them, can move the result as far as they like; m if
        none can."""
        return min(self.bears(m) + 1, m)

    def check_seats(self, seats: Sequence[Seat]) -> None:  # noqa: B027 — most have nothing to check
        """Raise where some agent hears too few others for what the combine promises; a plain mean promises nothing."""
