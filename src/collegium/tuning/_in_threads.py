"""The parts of several networks computed side by side, in threads: PyTorch lets go of Python while it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import nn

from collegium._util.arguments import whole_number
from collegium.errors import ModelError

T = TypeVar("T")
Map = Callable[..., list[Any]]
"""Like the built-in `map`, but all at once: `run(function, items, …)`."""


@contextmanager
def in_threads(workers: int | None, networks: Sequence[nn.Module]) -> Iterator[Map]:
    """Something to call a function on several items with, `workers` at a time (as many as there are cores, if None).

    Networks with dropout draw from the one stream of random numbers that the process has: they take turns, so that the
    same seed gives the same numbers.
    """
    from joblib import cpu_count

    workers = cpu_count() if workers is None else whole_number(workers, "workers", ModelError, at_least=1)
    draws = any(
        isinstance(part, nn.modules.dropout._DropoutNd) and part.p > 0
        for network in networks
        for part in network.modules()
    )
    if workers == 1 or draws or len(networks) == 1:
        yield lambda function, *items: [function(*one) for one in zip(*items, strict=True)]
        return
    with ThreadPoolExecutor(min(workers, len(networks))) as pool:

        def run(function: Callable[..., T], *items: Sequence[Any]) -> list[T]:
            # Every thread has these two for itself.
            learning, narrow = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")

            def one(*arguments: Any) -> T:
                with (
                    torch.set_grad_enabled(learning),
                    torch.autocast("cpu", dtype=torch.get_autocast_dtype("cpu"), enabled=narrow),
                ):
                    return function(*arguments)

            return list(pool.map(one, *items))

        yield run
