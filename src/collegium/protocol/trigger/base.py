"""`Trigger`: when an agent sends its value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    M = _TypeVar("M", default=Any)
else:
    M = TypeVar("M")


class Trigger(ABC, Generic[M]):
    """Says for n items at once whether an agent sends. Its memory is a tuple of arrays with the items on axis 0."""

    @abstractmethod
    def start(self, x: Floats) -> M:
        """The memory before the first round, from the agent's first values (n, w)."""

    @abstractmethod
    def speaks(self, x: Floats, memory: M) -> Mask | None:
        """Which items the agent sends about, shape (n,); None: all. Before the first `update` it must be all."""

    @abstractmethod
    def update(self, memory: M, before: Floats, after: Floats, sent: Floats) -> M:
        """The memory after a round: the value before and after it, and what was sent last, each (n, w)."""
