"""Pieces of work on threads that hold no interpreter lock."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from collegium._util.machine import cores

WORTH_A_THREAD = 200_000  # products below which a second thread costs more than it brings


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """One pool per process: a forked child makes its own."""
    return ThreadPoolExecutor(max(threads() - 1, 1), thread_name_prefix="collegium")


def threads() -> int:
    """How many threads share the work: COLLEGIUM_THREADS, or the cores this process may use."""
    wanted = os.environ.get("COLLEGIUM_THREADS", "")
    if wanted.isascii() and wanted.isdigit():
        return max(1, int(wanted))
    return cores()


def spread(piece: Callable[[int, int], None], total: int, size: int, work: float) -> None:
    """Call piece(lo, hi) for consecutive ranges of `size`, on several threads if the work is worth it."""
    starts = range(0, total, size)
    if len(starts) < 2 or threads() == 1 or work < WORTH_A_THREAD:
        for lo in starts:
            piece(lo, min(lo + size, total))
        return
    waiting = iter(starts)  # next() on a range iterator is atomic: each start is taken once

    def worker() -> None:
        for lo in waiting:
            piece(lo, min(lo + size, total))

    helpers = [_pool(os.getpid()).submit(worker) for _ in range(threads() - 1)]
    worker()
    for helper in helpers:
        helper.result()
