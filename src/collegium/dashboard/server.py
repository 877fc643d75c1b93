"""Serve a feed until Ctrl-C."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from collegium.dashboard.app import app
from collegium.dashboard.sources import Feed
from collegium.errors import LiveError


def listen(host: str, port: int) -> socket.socket:
    """The port, taken before anything is loaded, so that one in use is noticed at once."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError, OverflowError) as problem:
        raise LiveError(f"{host!r:.100} is not an address to listen on: {problem}") from None
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()  # another dashboard on the same port is refused from here on
    except OSError as problem:
        bound.close()
        reason = problem.strerror or problem
        raise LiveError(f"cannot listen on {host}, port {port}: {reason}; --port 0 takes a free one") from None
    return bound


def url(bound: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


class _Uvicorn(uvicorn.Server):
    """Ends open feeds before it waits for their connections to close."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None], ending: asyncio.Event) -> None:
        super().__init__(config)
        self._open, self._ending = started, ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._open()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True
        self._ending.set()


def serve(feed: Feed, bound: socket.socket, started: Callable[[], None]) -> None:
    """Serve on a bound port until SIGINT or SIGTERM; `started` is called once it is open."""
    ending = asyncio.Event()
    config = uvicorn.Config(
        app(feed, str(bound.getsockname()[0]), ending), loop="asyncio", http="httptools", ws="none", lifespan="off",
        log_config=None, access_log=False, proxy_headers=False, server_header=False, limit_concurrency=64,
        timeout_graceful_shutdown=2,
    )  # fmt: skip
    try:
        _Uvicorn(config, started, ending).run(sockets=[bound])
    except KeyboardInterrupt:
        pass
    finally:
        feed.close()
        bound.close()
