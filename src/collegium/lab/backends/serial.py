"""One job after the other, each with all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from collegium.lab.backends.base import Backend, J, R


class Serial(Backend):
    """In this process; a job may use `workers` processes of its own (as many as there are cores, if None)."""

    def __init__(self, workers: int | None = None) -> None:
        self.inner_workers = workers

    def map(self, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        """In the order given."""
        for job in jobs:
            yield job, function(job)
