"""A port: an application served by Uvicorn on an address taken beforehand; agents and the dashboard have one each."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from collegium._serving.crowd import Crowd
from collegium._serving.limits import CannotListen
from collegium._serving.protocol import CarefulProtocol
from collegium._serving.tls import Tls
from collegium.errors import LiveError


def listen(host: str, port: int, *, to_others: bool, hint: str = "") -> socket.socket:
    """A port, taken at once; 0 is any free one.

    to_others: whether machines other than this one may connect; hint: what to do if the port is taken.
    """
    if not host:
        raise LiveError("name the address to listen on, such as 127.0.0.1; 0.0.0.0 is all of them")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError, OverflowError) as problem:
        raise CannotListen(f"{host!r:.100} is not an address to listen on: {problem}") from None
    if not to_others and not is_loopback(str(address[0])):
        raise LiveError(
            f"{host} can be reached from other machines, so the port needs a token or client certificates; "
            "set one of them, or listen on 127.0.0.1"
        )
    # asyncio turns Nagle's delay off only where the protocol is named.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()  # from here on nobody else can take it
    except OSError as problem:
        bound.close()
        raise CannotListen(f"cannot listen on {host}, port {port}: {problem.strerror or problem}{hint}") from None
    return bound


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def named_host(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The host that a request names, without its port; None if it names none."""
    host = next((value for name, value in headers if name == b"host"), None)
    if host is None:
        return None
    written = host.decode("latin-1").lower()
    return written[1:].partition("]")[0] if written.startswith("[") else written.partition(":")[0]


class Server:
    """An application on a bound port, open while `run` runs.

    tls: serve HTTPS; client_certificates: accept only clients with a certificate of the same authority;
    connections: how many at once, idle ones beyond them are closed;
    grace_seconds: at the end, for requests in progress;
    started, ending: called when the port is open, and when it is to end;
    is_drained: whether nothing is left that was accepted: until then, and within the grace, the port stays open.
    """

    def __init__(
        self,
        application: Callable[..., Any],
        bound: socket.socket,
        *,
        tls: Tls | None = None,
        client_certificates: bool = False,
        connections: int = 1024,
        grace_seconds: float = 15.0,
        started: Callable[[], object] = lambda: None,
        ending: Callable[[], object] = lambda: None,
        is_drained: Callable[[], bool] = lambda: True,
    ) -> None:
        host, port = bound.getsockname()[:2]
        self.application: Any = application
        self.crowd: Crowd[CarefulProtocol] = Crowd(connections)
        protocol = type("Protocol", (CarefulProtocol,), {"crowd": self.crowd})
        config = uvicorn.Config(
            application, host, port, http=protocol, loop="asyncio", ws="none", lifespan="on", interface="asgi3",
            log_config=None, access_log=False, proxy_headers=False, server_header=False, date_header=False,
            timeout_keep_alive=75, timeout_graceful_shutdown=math.ceil(grace_seconds),
            ssl_certfile=tls.certificate if tls else None, ssl_keyfile=tls.key if tls else None,
            ssl_ca_certs=str(tls.ca) if tls and client_certificates else None,
            ssl_cert_reqs=ssl.CERT_REQUIRED if client_certificates else ssl.CERT_NONE,
        )  # fmt: skip
        try:
            config.load()
        except (OSError, ssl.SSLError) as problem:
            bound.close()
            raise LiveError(f"the certificate of the port cannot be used: {problem}") from None
        self._started = threading.Event()
        self._uvicorn = _Uvicorn(config, [self._started.set, started], ending, is_drained, grace_seconds)
        self._socket = bound
        self.url = url(bound, is_https=tls is not None)

    def run(self) -> None:
        """Serve until `stop`, SIGTERM or SIGINT; what was accepted by then is answered first."""
        try:
            self._uvicorn.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Stop from another thread."""
        self._uvicorn.end()

    def wait_started(self, seconds: float) -> bool:
        """Whether the port is open, after waiting for it at most so long."""
        return self._started.wait(seconds)


def url(bound: socket.socket, *, is_https: bool = False) -> str:
    """The address of a bound port."""
    host, port = bound.getsockname()[:2]
    return f"http{'s' if is_https else ''}://{f'[{host}]' if ':' in host else host}:{port}"


class _Uvicorn(uvicorn.Server):
    """Uvicorn without a clock that wakes it ten times a second, and a signal that ends the port, not the process."""

    def __init__(
        self,
        config: uvicorn.Config,
        started: Sequence[Callable[[], object]],
        ending: Callable[[], object],
        is_drained: Callable[[], bool],
        grace: float,
    ) -> None:
        super().__init__(config)
        self._on_started, self._on_ending, self._is_drained, self._grace = started, ending, is_drained, grace
        self._wake: Callable[[], object] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.config.ssl:
            loop = asyncio.get_running_loop()
            # Uvicorn has no setting for it, and asyncio's minute is long for idle connections.
            slow = partial(loop.create_server, ssl_handshake_timeout=CarefulProtocol.head_seconds)
            loop.create_server = slow  # type: ignore[method-assign]
        await super().startup(sockets)
        for tell in self._on_started:
            tell()

    async def main_loop(self) -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        self._wake = partial(loop.call_soon_threadsafe, ended.set)
        if not self.should_exit:
            await ended.wait()
        self._wake = None
        self._on_ending()
        latest = loop.time() + self._grace
        while not self._is_drained() and loop.time() < latest and not self.force_exit:
            await asyncio.sleep(0.02)

    def end(self) -> None:
        self.should_exit = True
        if self._wake is not None:
            self._wake()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit  # the second signal does not wait for open requests
        self.end()
