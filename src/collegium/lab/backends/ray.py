"""Jobs as tasks of a Ray cluster, one that exists or one made for the occasion."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from collegium.errors import BackendError
from collegium.lab.backends.base import Backend, J, R

RETRIES = 3
_SETTINGS = b"\0\0\0\4\0\0\0\0\0"
"""With which both sides of HTTP/2, which Ray speaks, begin."""
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS


class Ray(Backend):
    """Tasks of one core each on the cluster at `address` (else RAY_ADDRESS), or on a new one here with `workers` cores.

    A task whose worker is lost is tried again elsewhere. Results come back to this process, which alone writes files:
    the nodes need no common disk, only the data sets.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.address = address
        self.workers = workers

    def map(self, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
        """As they come."""
        ray = _ray()
        mine = not ray.is_initialized()
        if mine:
            self._connect(ray)
        try:

            @ray.remote(num_cpus=1, max_retries=RETRIES)  # type: ignore[untyped-decorator]
            def task(job: J) -> R:
                return function(job)

            running = {task.remote(job): job for job in jobs}
            while running:
                done, _ = ray.wait(list(running), num_returns=1)
                for reference in done:
                    yield running.pop(reference), ray.get(reference)
        except ray.exceptions.RayTaskError as problem:
            raise (problem.cause or problem) from None
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as problem:
            raise BackendError(f"the Ray cluster lost a task {RETRIES + 1} times: {problem}") from None
        finally:
            if mine:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        address = (self.address or os.environ.get("RAY_ADDRESS", "")).strip()
        settings: dict[str, Any] = {"address": address, "log_to_driver": False}
        if address:
            _knock(address)
        else:  # "local": without an address Ray would join any cluster it finds here, and refuse a number of cores
            settings |= {"address": "local", "num_cpus": self.workers}
            settings |= {"include_dashboard": False, "configure_logging": False}
        try:
            ray.init(**settings)
        except (ConnectionError, RuntimeError, ValueError) as problem:
            where = f"the Ray cluster at {address}" if address else "a local Ray cluster"
            hint = " (does it want a token? RAY_AUTH_MODE=token sends yours)" if address else ""
            raise BackendError(f"cannot reach {where}: {str(problem).splitlines()[0]}{hint}") from None


def _knock(address: str) -> None:
    """Notice within seconds that no server is there, or not Ray: Ray itself tries for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdigit():
        return  # "auto" and the like
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=5) as line:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            line.sendall(_GREETING)
            answer = line.recv(len(_SETTINGS))
    except (OSError, OverflowError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise BackendError(f"cannot reach the Ray cluster at {address}: {reason}") from None
    if answer[3:4] != _SETTINGS[3:4]:
        raise BackendError(f"{address} is not the port of a Ray cluster: `ray start --head` names it, mostly 6379")


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise BackendError(
            "running on Ray needs the extra: pip install 'collegium[ray]'. --backend process needs nothing."
        ) from None
    return ray
