"""Serve a feed until Ctrl-C."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from collegium._serving import server
from collegium.dashboard.app import app
from collegium.dashboard.sources import Feed


def listen(host: str, port: int) -> socket.socket:
    """The port, taken before anything is loaded, so that one in use is noticed at once."""
    return server.listen(host, port, to_others=True, hint="; --port 0 takes a free one")


def url(bound: socket.socket) -> str:
    """Where a browser finds it."""
    return server.url(bound).replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:") + "/"


def serve(feed: Feed, bound: socket.socket, started: Callable[[], None]) -> None:
    """Serve on a bound port until SIGINT or SIGTERM; `started` is called once it is open."""
    ending = asyncio.Event()  # ends open feeds, which else would be waited for
    application = app(feed, str(bound.getsockname()[0]), ending)
    try:
        with suppress(KeyboardInterrupt):
            server.Server(application, bound, connections=64, grace_seconds=2, started=started, ending=ending.set).run()
    finally:
        feed.close()
        bound.close()
