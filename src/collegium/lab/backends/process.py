"""Several jobs at a time, in processes of this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from collegium._util.arguments import whole_number
from collegium._util.processes import follow_parent
from collegium.errors import BackendError
from collegium.lab.backends.base import Backend, J, R

RETRIES = 2


class Process(Backend):
    """`workers` processes (as many as there are cores, if None). Jobs of a process that died are tried again."""

    def __init__(self, workers: int | None = None) -> None:
        from joblib import cpu_count

        self.workers = cpu_count() if workers is None else whole_number(workers, "workers", BackendError, at_least=1)

    def map(self, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        """As they come; a process that dies takes the others' work with it, so all unfinished jobs begin again."""
        left = list(jobs)
        for attempt in range(RETRIES + 1):
            try:
                for job, result in self._pass(function, left):
                    left.remove(job)
                    yield job, result
                return
            except BrokenProcessPool:
                if attempt == RETRIES:
                    raise BackendError(
                        f"processes of the laboratory died {RETRIES + 1} times (no memory left?): "
                        f"{len(left)} jobs are not done. What is finished is kept: resume with fewer workers."
                    ) from None

    def _pass(self, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        waiting = list(jobs)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(self.workers, max(len(jobs), 1)), context, initializer=follow_parent) as pool:
            running: dict[Future[R], J] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < self.workers:
                        job = waiting.pop(0)
                        running[pool.submit(function, job)] = job
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield running.pop(future), future.result()
            finally:
                for future in running:
                    future.cancel()
