"""What this machine can do, so that the other figures mean something."""

import os
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def best_of(task: Callable[[], Any], repeat: int = 7, at_least: float = 0.5) -> float:
    """Seconds of the quickest of several runs after one to warm up: the least disturbed one.

    Short tasks are repeated for `at_least` seconds, so that one busy moment of the machine does not cover them all.
    """
    task()
    times: list[float] = []
    while len(times) < repeat or (sum(times) < at_least and len(times) < 2000):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def ratio_of(one: Callable[[], Any], other: Callable[[], Any], at_least: float = 1.0) -> float:
    """Quickest run of one over the quickest of the other, taken in turns: a busy moment of the machine meets both."""
    tasks = one, other
    times: tuple[list[float], list[float]] = [], []
    for task in tasks:  # one to warm up
        task()
    while len(times[0]) < 7 or sum(map(sum, times)) < at_least:
        for task, seconds in zip(tasks, times, strict=True):
            start = time.perf_counter()
            task()
            seconds.append(time.perf_counter() - start)
    return min(times[0]) / min(times[1])


def copy_bandwidth(threads: int) -> float:
    """Bytes read and written per second when copying an array far larger than any cache."""
    from concurrent.futures import ThreadPoolExecutor

    source = np.ones(32_000_000)
    target = np.empty_like(source)
    cuts = np.linspace(0, len(source), threads + 1).astype(int)

    def copy(piece: int) -> None:
        np.copyto(target[cuts[piece] : cuts[piece + 1]], source[cuts[piece] : cuts[piece + 1]])

    with ThreadPoolExecutor(threads) as pool:
        seconds = best_of(lambda: list(pool.map(copy, range(threads))))
    return 2 * source.nbytes / seconds


def multiply_add_rate() -> float:
    """Multiply-adds per second of NumPy's matrix product."""
    a = np.ones((1024, 1024))
    return 1024**3 / best_of(lambda: a @ a, repeat=3)


def limits() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0))
    return {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cores": cores,
        "copy_bytes_per_second_1_thread": copy_bandwidth(1),
        "copy_bytes_per_second_all_threads": copy_bandwidth(cores),
        "multiply_adds_per_second": multiply_add_rate(),
    }
