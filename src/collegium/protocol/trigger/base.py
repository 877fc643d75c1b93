"""`Trigger`: when an agent sends its value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic

from collegium.protocol.base import Floats, Mask, S


class Trigger(ABC, Generic[S]):
    """Says for n items at once whether an agent sends. Its memory is a tuple of arrays with the items on axis 0."""

    @abstractmethod
    def start(self, x: Floats) -> S:
        """The memory before the first round, from the agent's first values (n, w)."""

    @abstractmethod
    def speaks(self, x: Floats, memory: S) -> Mask | None:
        """Which items the agent sends about, shape (n,); None: all. Before the first `update` it must be all."""

    @abstractmethod
    def update(self, memory: S, before: Floats, after: Floats, sent: Floats) -> S:
        """The memory after a round: the value before and after it, and what was sent last, each (n, w)."""
