"""An agent's own HTTP port: items in, decisions out, status and metrics.

    POST /v1/items        one item or many, with scores or views; answered when the network has decided
    GET  /v1/items/{id}   a result that is still remembered
    GET  /v1/recent       the items that came last, round by round, decided or not
    GET  /v1/status       the agent and its neighbours
    GET  /healthz         the process runs              GET /readyz        all its neighbours are connected
    GET  /metrics         for Prometheus                GET /openapi.json  all this, for machines

Every refusal is {"error": "a sentence"}. Nothing in a request is ever used as a path to a file.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import math
import re
import socket
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import msgspec
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from collegium.errors import CollegiumError, LiveError
from collegium.live import openapi
from collegium.live.agent import Agent, Busy, ItemResult
from collegium.live.items import (
    JPEG,
    PNG,
    Batch,
    Doubles,
    Limits,
    Refusal,
    check_kind,
    options_of,
    parse,
    parse_name,
    switch,
)
from collegium.live.metrics import Metrics

_logger = logging.getLogger("collegium.live")
_LARGE = 1 << 18  # bodies from here on are decoded by the worker, so that the port stays responsive
_NO_TOKEN_NEEDED = "/healthz"
_LIMITS = Limits()
_T = TypeVar("_T")


@dataclass(frozen=True)
class ServiceSettings:
    """Limits of the port."""

    token_sha256: str | None = None
    """SHA-256 of the bearer token, in hexadecimal; None: no token is needed."""
    limits: Limits = _LIMITS
    requests: int = 256
    """Requests in progress."""
    held: int = 32 << 20
    """Bytes of request bodies in progress."""
    queue: int = 8
    """Requests that wait for the model, or to be decoded."""
    body_seconds: float = 30.0
    """For a client to send its body."""
    answer_seconds: float = 120.0
    """For the network to decide; then the client is told to retry later."""
    grace_seconds: float = 15.0
    """At the end, for what was accepted to be answered."""

    def __post_init__(self) -> None:
        if self.token_sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", self.token_sha256):
            raise LiveError("token_sha256 must be the SHA-256 of the token: 64 hexadecimal digits")


_SETTINGS = ServiceSettings()


def app(agent: Agent, settings: ServiceSettings = _SETTINGS) -> Starlette:
    """The web application of one agent."""
    service = _Service(agent, settings)
    application = Starlette(
        routes=[
            Route("/v1/items", service.post_items, methods=["POST"]),
            Route("/v1/items/{id:path}", service.get_item, methods=["GET"]),
            Route("/v1/recent", service.get_recent, methods=["GET"]),
            Route("/v1/status", service.get_status, methods=["GET"]),
            Route("/healthz", service.get_health, methods=["GET"]),
            Route("/readyz", service.get_readiness, methods=["GET"]),
            Route("/metrics", service.get_metrics, methods=["GET"]),
            Route("/openapi.json", service.get_openapi, methods=["GET"]),
        ],
        middleware=[Middleware(_Admission, service)],
        exception_handlers={Refusal: _refused, Busy: _busy, HTTPException: _no_such},  # type: ignore[dict-item]
        lifespan=service.lifespan,
    )
    application.router.redirect_slashes = False
    application.state.settings = settings
    return application


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _plain_value(value: Any) -> Any:
    """Labels may be NumPy's own numbers and texts."""
    if isinstance(value, np.generic):
        return value.item()
    return str(value)


_encode = msgspec.json.Encoder(enc_hook=_plain_value).encode


def _json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(_encode(content), status, headers, "application/json")


def _error(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return _json({"error": sentence}, status, headers)


def _later(sentence: str, seconds: float) -> Response:
    """429: the header has whole seconds, as HTTP wants them; the body has the exact time."""
    headers = {"Retry-After": str(max(1, math.ceil(seconds)))}
    return _json({"error": sentence, "retry_after": round(seconds, 3)}, 429, headers)


async def _refused(_: Request, refusal: Refusal) -> Response:
    if refusal.status == 429:
        return _later(str(refusal), 1.0)
    return _error(refusal.status, str(refusal), {"Connection": "close"} if refusal.status in (408, 413) else None)


async def _busy(_: Request, busy: Busy) -> Response:
    return _later(str(busy), busy.retry_after)


async def _no_such(request: Request, problem: HTTPException) -> Response:
    if problem.status_code == 405:
        allowed = ", ".join(sorted((problem.headers or {}).get("Allow", "").split(", ")))
        return _error(405, f"{request.method} is not possible here; possible: {allowed}", {"Allow": allowed})
    return _error(problem.status_code, f"{problem.detail}; /openapi.json lists what there is", None)


# ── the endpoints ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Service:
    def __init__(self, agent: Agent, settings: ServiceSettings) -> None:
        self.agent, self.settings = agent, settings
        self.responses: Counter[tuple[str, int]] = Counter()
        """Responses by path and status, for /metrics."""
        self.in_progress = 0
        self._held = 0
        self._queued = 0
        self._metrics = Metrics(agent, self.responses)
        # A request with more items than can ever be pending would be told to retry for ever.
        most = min(settings.limits.items, agent.status()["items"]["most"])
        self._limits = replace(settings.limits, items=most)
        self._openapi = _encode(openapi.document(agent.name, self._limits, settings.token_sha256 is not None))
        self._worker: ThreadPoolExecutor | None = None

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """The worker lives as long as the port is open."""
        with ThreadPoolExecutor(1, f"{self.agent.name}-model") as self._worker:
            yield

    async def post_items(self, request: Request) -> Response:
        kind = check_kind(request.headers.get("content-type", ""))
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refusal(415, "send the body as it is, without a Content-Encoding")
        pieces: list[bytes] = []
        try:
            await self._read(request, pieces, self._limits.of(kind))
            batch, scores = await self._items(kind, request.scope["query_string"], pieces)
        finally:
            self._held -= sum(map(len, pieces))
        decided = self._submit(batch, scores)
        if not batch.wait:
            return _json({"accepted": len(batch.names)}, 202)
        results = decided.result() if _is_decided(decided) else await self._decision(decided, request)
        return _json(results[0] if batch.alone else {"items": results})

    async def _read(self, request: Request, pieces: list[bytes], most: int) -> None:
        """Collect the body, never more of it than is allowed, and know how much all requests together hold."""
        too_large = Refusal(413, f"the body is larger than {most} bytes: send fewer items at a time, or NPY for JSON")
        promised = request.headers.get("content-length", "")
        if promised.isdecimal() and int(promised) > most:
            raise too_large
        size = 0
        try:
            async with asyncio.timeout(self.settings.body_seconds):
                async for piece in request.stream():
                    size += len(piece)
                    if size > most:
                        raise too_large
                    if self._held + len(piece) > self.settings.held:
                        raise Refusal(429, f"{self.agent.name} reads as many bodies as it can hold: retry")
                    self._held += len(piece)
                    pieces.append(piece)
        except TimeoutError:
            raise Refusal(408, f"the body did not arrive within {self.settings.body_seconds:g} s") from None

    async def _items(self, kind: str, query: bytes, pieces: list[bytes]) -> tuple[Batch, Doubles]:
        """The items and their scores; whatever may take long is done by the worker, one request after the other."""

        def parsed() -> Batch:
            return parse(kind, query, b"".join(pieces), self._limits)

        def scored(batch: Batch) -> tuple[Batch, Doubles]:
            return batch, self._score(batch) if batch.scores is None else batch.scores

        if kind in (PNG, JPEG) or sum(map(len, pieces)) > _LARGE:
            return await self._in_worker(lambda: scored(parsed()))
        batch = parsed()
        return (batch, batch.scores) if batch.scores is not None else await self._in_worker(lambda: scored(batch))

    async def _in_worker(self, work: Callable[[], _T]) -> _T:
        if self._queued >= self.settings.queue or self._worker is None:
            raise Refusal(429, f"{self._queued} requests wait for the model of {self.agent.name} already: retry")
        self._queued += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)
        finally:
            self._queued -= 1

    def _score(self, batch: Batch) -> Doubles:
        assert batch.views is not None
        try:
            scores = np.asarray(self.agent.score(batch.views), np.float64)
        except CollegiumError as problem:
            raise Refusal(422, str(problem)) from None
        except (ValueError, TypeError) as problem:
            reason = (str(problem).splitlines() or ["no reason given"])[0][:300]
            raise Refusal(422, f"the model of {self.agent.name} refuses views of this shape: {reason}") from None
        if scores.shape != (len(batch.names),) or not bool(np.isfinite(scores).all()):
            raise Refusal(
                422, f"the model of {self.agent.name} does not give one finite number for each of these views"
            )
        return scores

    def _submit(self, batch: Batch, scores: Doubles) -> Future[list[ItemResult]]:
        try:
            return self.agent.submit(batch.names, scores, batch.trace)
        except Busy:
            raise
        except LiveError as problem:
            raise Refusal(503, str(problem)) from None
        except CollegiumError as problem:
            raise Refusal(422, str(problem)) from None

    async def _decision(self, decided: Future[list[ItemResult]], request: Request) -> list[ItemResult]:
        """What the network decides; waits no longer than allowed, and not for a client that is gone."""
        loop = asyncio.get_running_loop()
        waiting = asyncio.Event()

        def notify(_: Future[list[ItemResult]]) -> None:
            with suppress(RuntimeError):  # the port is closed by now, and no request waits
                loop.call_soon_threadsafe(waiting.set)

        # Not asyncio.wrap_future: it would cancel the agent's future when the wait for a client ends.
        decided.add_done_callback(notify)
        tasks = [loop.create_task(waiting.wait()), loop.create_task(_gone(request))]
        try:
            await asyncio.wait(tasks, timeout=self.settings.answer_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        try:
            if decided.done():
                return decided.result()
        except LiveError as problem:
            raise Refusal(503, str(problem)) from None
        if tasks[1].done():
            raise ClientDisconnect
        seconds = self.settings.answer_seconds
        raise Refusal(503, f"not decided within {seconds:g} s; GET /v1/items/… has the result later")

    async def get_item(self, request: Request) -> Response:
        trace = switch(options_of(request.scope["query_string"], ("trace",)), "trace", False)
        name = parse_name(request.path_params["id"])
        result = self.agent.result(name, trace)
        if result is None and self.agent.is_pending(name):
            return _json({"id": name, "state": "pending"}, 202)
        result = result or self.agent.result(name, trace)  # it may have been decided between the two calls
        if result is None:
            raise Refusal(
                404, f"{self.agent.name} knows no item {name!r:.220}: it was never submitted here, or is forgotten"
            )
        return _json(result)

    async def get_recent(self, request: Request) -> Response:
        given = options_of(request.scope["query_string"], ("items",)).get("items", "8")
        if not (
            given.isascii() and given.isdecimal() and 1 <= int(given[:4]) <= openapi.MOST_RECENT and len(given) <= 4
        ):
            raise Refusal(422, f"items must be a number from 1 to {openapi.MOST_RECENT}, got {given[:40]!r}")
        agent = self.agent
        return _json(
            {"name": agent.name, "number": agent.number, "rounds": agent.rounds, "items": agent.recent(int(given))}
        )

    async def get_status(self, request: Request) -> Response:
        options_of(request.scope["query_string"], ())
        return _json(self.agent.status())

    async def get_health(self, _: Request) -> Response:
        return _json({"alive": True})

    async def get_readiness(self, _: Request) -> Response:
        reason = self.agent.why_not_ready()
        if reason is None:
            return _json({"ready": True})
        return _json({"ready": False, "error": f"{self.agent.name} is not ready: {reason}"}, 503)

    async def get_metrics(self, _: Request) -> Response:
        return Response(self._metrics.text(), media_type=self._metrics.content_type)

    async def get_openapi(self, _: Request) -> Response:
        return Response(self._openapi, media_type="application/json")


def _is_decided(decided: Future[list[ItemResult]]) -> bool:
    return decided.done() and decided.exception() is None


async def _gone(request: Request) -> None:
    """Until the client closes its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _endpoint(path: str) -> str:
    """A path as a label: one per endpoint, and `other` for all unknown paths."""
    if path in openapi.PATHS:
        return path
    return "/v1/items/{id}" if path.startswith("/v1/items/") else "other"


class _Admission:
    """Checks tokens, limits concurrent requests, and never sends a traceback."""

    def __init__(self, inner: ASGIApp, service: _Service) -> None:
        self._inner, self._service = inner, service
        token = service.settings.token_sha256
        self._token = token.lower() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        service, path, status = self._service, scope["path"], 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                service.responses[_endpoint(path), status] += 1
            await send(message)

        refusal: Response | None = None
        if path != _NO_TOKEN_NEEDED:
            if not self._has_token(scope):
                is_given = any(name == b"authorization" for name, _ in scope["headers"])
                sentence = "this port needs a token: send the header Authorization: Bearer …"
                sentence = "this is not the token of this network" if is_given else sentence
                refusal = _error(401, sentence, {"WWW-Authenticate": "Bearer", "Connection": "close"})
            elif service.in_progress >= service.settings.requests:
                refusal = _later(f"{service.in_progress} requests are in progress already: retry", 1.0)
        if refusal is not None:
            await refusal(scope, receive, noting)
            return
        service.in_progress += 1
        try:
            await self._inner(scope, receive, noting)
        except ClientDisconnect:
            _logger.debug("a client went away before its request was complete")
        except Exception:
            _logger.exception("%s %s failed", scope["method"], path)
            if not status:
                await _error(500, "internal error of the agent; its log has the details")(scope, receive, noting)
        finally:
            service.in_progress -= 1

    def _has_token(self, scope: Scope) -> bool:
        if self._token is None:
            return True
        for name, value in scope["headers"]:
            if name == b"authorization":
                scheme, _, token = value.partition(b" ")
                given = hashlib.sha256(token.strip()).hexdigest()
                return scheme.lower() == b"bearer" and hmac.compare_digest(given, self._token)
        return False


# ── the port ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Careful(HttpToolsProtocol):
    """Uvicorn's protocol with what it leaves open: how long a head may be, and how long a client may take."""

    head_bytes = 1 << 16
    head_seconds = 10.0
    answer_seconds = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_too_long = False
        self._stalled: asyncio.TimerHandle | None = None
        self._slow: asyncio.TimerHandle | None = None
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end_head()
        self._cancel_stalled()

    def data_received(self, data: bytes) -> None:
        is_within = self._slow is not None
        super().data_received(data)
        if is_within and self._slow is not None:  # nothing but head in this piece, and not its end
            self._unparsed += len(data)
            if self._unparsed > self.head_bytes and not self.transport.is_closing():
                self._refuse(431, b"the head of the request is too long")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._slow is None:
            self._begin_head()
        self._head_began = True

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_head()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and self.cycle.more_body:  # answered before all of the body arrived: the rest is not needed
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._cancel_stalled()
        self._stalled = self.loop.call_later(self.answer_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel_stalled()

    def send_400_response(self, msg: str) -> None:
        if self._is_too_long:
            self._refuse(431, b"the head of the request is too long")
        else:
            self._refuse(400, b"this is not HTTP/1.1")

    def _refuse(self, status: int, sentence: bytes) -> None:
        content = b'{"error":"' + sentence + b'"}'
        self.transport.write(
            STATUS_LINE[status]
            + b"content-type: application/json\r\nconnection: close\r\ncontent-length: "
            + str(len(content)).encode()
            + b"\r\n\r\n"
            + content
        )
        self.transport.close()

    def _begin_head(self) -> None:
        self._parsed = self._unparsed = 0
        self._head_began = False
        self._slow = self.loop.call_later(self.head_seconds, self._too_slow)

    def _end_head(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None

    def _cancel_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _count(self, size: int) -> None:
        self._parsed += size
        if self._parsed > self.head_bytes:
            self._is_too_long = True
            raise ValueError  # the parser stops, and Uvicorn calls send_400_response

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            if self._head_began:
                self._refuse(408, b"the head of the request did not arrive in time")
            else:
                self.transport.close()


class _Uvicorn(uvicorn.Server):
    """Uvicorn without a clock that wakes it ten times a second, and a signal that ends the port, not the process."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = started
        self._wake: Callable[[], object] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def main_loop(self) -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        self._wake = partial(loop.call_soon_threadsafe, ended.set)
        if not self.should_exit:
            await ended.wait()
        self._wake = None

    def end(self) -> None:
        self.should_exit = True
        if self._wake is not None:
            self._wake()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit  # the second signal does not wait for open requests
        self.end()


class Server:
    """An agent's port: bound when made, open while `run` runs.

    certificate, key: serve HTTPS; client_ca: accept only clients with a certificate of this authority.
    """

    def __init__(
        self,
        application: Starlette,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        client_ca: Path | None = None,
        access_log: bool = False,
        started: Callable[[], None] | None = None,
    ) -> None:
        settings: ServiceSettings = application.state.settings
        if client_ca is not None and certificate is None:
            raise LiveError("client certificates need HTTPS: give the port a certificate and a key of its own")
        family, address = _address(host, port)
        is_open = settings.token_sha256 is None and client_ca is None
        is_loopback = ipaddress.ip_address(address[0].partition("%")[0]).is_loopback
        if is_open and not is_loopback:
            raise LiveError(
                f"{host} can be reached from other machines, so the port needs a token or client certificates; "
                "set one of them, or listen on 127.0.0.1"
            )
        if certificate is None and not is_loopback:
            _logger.warning("the token travels unencrypted to %s: give the port a certificate", host)
        config = uvicorn.Config(
            application,
            host,
            port,
            loop="asyncio",
            http=_Careful,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=access_log,
            interface="asgi3",
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=4 * settings.requests,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=math.ceil(settings.grace_seconds),
            ssl_certfile=certificate,
            ssl_keyfile=key,
            ssl_ca_certs=None if client_ca is None else str(client_ca),
            ssl_cert_reqs=ssl.CERT_NONE if client_ca is None else ssl.CERT_REQUIRED,
        )
        try:
            config.load()
        except (OSError, ssl.SSLError) as problem:
            raise LiveError(f"the certificate of the port cannot be used: {problem}") from None
        self._started = threading.Event()
        self._uvicorn = _Uvicorn(config, self._started.set if started is None else partial(self._announce, started))
        # asyncio turns Nagle's delay off only where the protocol is named.
        self._socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(address)
        except OSError as problem:
            self._socket.close()
            raise LiveError(f"cannot listen on {host}, port {port}: {problem.strerror or problem}") from None
        shown, bound = self._socket.getsockname()[:2]
        self.url = f"http{'s' if certificate else ''}://{f'[{shown}]' if ':' in shown else shown}:{bound}"

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

    def _announce(self, started: Callable[[], None]) -> None:
        self._started.set()
        started()


def _address(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    if not host:
        raise LiveError("name the address to listen on, such as 127.0.0.1; 0.0.0.0 is all of them")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError, OverflowError) as problem:
        raise LiveError(f"{host!r:.100} is not an address to listen on: {problem}") from None
    return family, address
