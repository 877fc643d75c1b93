"""`Combine`: how an agent makes one value of its neighbours' values."""

from __future__ import annotations

from abc import ABC, abstractmethod

from collegium.protocol.base import Floats


class Combine(ABC):
    """A function of the values of the m agents heard, ascending, for n items at once."""

    @abstractmethod
    def __call__(self, values: Floats, weights: Floats, own: Floats) -> Floats:
        """The combined values (n, w), from values (m, n, w), weights (m, n) and the agent's own last value (n, w).

        Weights of an item sum to one; a weight of 0 means that this agent is to be left out.
        """
