"""What a backend does: call a function on many jobs and hand the results over as they come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

J = TypeVar("J")
R = TypeVar("R")


class Backend(ABC):
    """Jobs in, (job, result) pairs out, in whatever order they are finished. Functions and jobs must be picklable."""

    inner_workers: int | None = 1
    """How many processes a job may start for itself; None: as many as there are cores."""

    @abstractmethod
    def map(self, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        """Results as they come. An error inside a job is raised here."""

    def __repr__(self) -> str:
        settings: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in settings.items())})"
