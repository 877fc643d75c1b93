"""An agent's HTTP application: items in, decisions out, status and metrics.

    POST /v1/items        one item or many, with scores or views; answered when the network has decided
    GET  /v1/items/{id}   a result that is still remembered
    GET  /v1/recent       the items that came last, round by round, decided or not
    GET  /v1/status       the agent and its neighbours
    GET  /healthz         the process runs              GET /readyz        all its neighbours are connected
    GET  /metrics         for Prometheus                GET /openapi.json  all this, for machines

Every refusal is {"error": "a sentence"}. Nothing in a request is ever used as a path to a file. It is plain ASGI: a
request costs one task, one timer and no layers. It is served by `Server`, whose protocol can wake a request.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np

from collegium._serving.limits import JSON, Admission, ClientGone, Receive, Refusal, ServiceSettings
from collegium._serving.protocol import WAKE
from collegium._serving.server import Server, is_loopback, listen
from collegium.errors import LiveError
from collegium.live.agent import Agent
from collegium.live.answers import Accepted, Error, Pending, Readiness
from collegium.live.http import openapi
from collegium.live.http.items import options_of, parse_name, switch
from collegium.live.http.metrics import Metrics
from collegium.live.http.submissions import Request, Submissions
from collegium.live.transport.base import Tls

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
_logger = logging.getLogger("collegium.live")
_ITEM = "/v1/items/{id}"
_SETTINGS = ServiceSettings()


def _plain_value(value: Any) -> Any:
    """Labels may be NumPy's own numbers and texts."""
    return value.item() if isinstance(value, np.generic) else str(value)


_encode = msgspec.json.Encoder(enc_hook=_plain_value).encode


class Answer(NamedTuple):
    """A response: a body, or a struct to be sent as JSON."""

    content: Any
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    kind: str = JSON


def agent_server(
    agent: Agent,
    settings: ServiceSettings = _SETTINGS,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    tls: Tls | None = None,
    client_certificates: bool = False,
    started: Callable[[], object] = lambda: None,
) -> Server:
    """An agent's port, taken; open to other machines only with a token or certificates of clients."""
    if client_certificates and tls is None:
        raise LiveError("client certificates need HTTPS: give the port a certificate and a key of its own")
    bound = listen(host, port, to_others=settings.token_sha256 is not None or client_certificates)
    if tls is None and not is_loopback(bound.getsockname()[0]):
        _logger.warning("the token travels unencrypted to %s: give the port a certificate", host)
    return Server(
        App(agent, settings), bound, tls=tls, client_certificates=client_certificates, started=started,
        connections=4 * settings.requests, grace_seconds=settings.grace_seconds,
    )  # fmt: skip


class App:
    """The web application of one agent."""

    def __init__(self, agent: Agent, settings: ServiceSettings = _SETTINGS) -> None:
        self.agent, self.settings = agent, settings
        self.routes: dict[str, tuple[str, Callable[[Request], Awaitable[Answer]]]] = {
            "/v1/items": ("POST", self.post_items),
            _ITEM: ("GET", self.get_item),
            "/v1/recent": ("GET", self.get_recent),
            "/v1/status": ("GET", self.get_status),
            "/healthz": ("GET", self.get_health),
            "/readyz": ("GET", self.get_readiness),
            "/metrics": ("GET", self.get_metrics),
            "/openapi.json": ("GET", self.get_openapi),
        }
        self._admission = Admission(settings)
        self._responses: Counter[tuple[str, int]] = Counter()
        """Responses by path and status, for /metrics."""
        self._metrics = Metrics(agent, self._responses)
        # A request with more items than can ever be pending would be told to retry for ever.
        self._limits = replace(settings.limits, items=min(settings.limits.items, agent.status().items.most))
        self._submissions = Submissions(agent, replace(settings, limits=self._limits), self._admission)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        path: str = scope["path"]
        endpoint = path if path in self.routes else _ITEM if path.startswith("/v1/items/") else "other"
        request = Request(path, scope["query_string"], dict(scope["headers"]), receive, scope["extensions"][WAKE])
        try:
            answer = await self._answer(endpoint, scope["method"], request)
            body = answer.content if isinstance(answer.content, bytes) else _encode(answer.content)
        except ClientGone:
            _logger.debug("a client went away before its request was complete")
            return
        except Exception:
            _logger.exception("%s %s failed", scope["method"], path)
            answer = Answer(b'{"error":"internal error of the agent; its log has the details"}', 500)
            body = answer.content
        self._responses[endpoint, answer.status] += 1
        kind, length = answer.kind.encode(), str(len(body)).encode()
        headers = [(b"content-type", kind), (b"content-length", length), *answer.headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _live(self, receive: Receive, send: Send) -> None:
        with self._submissions.open():
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, endpoint: str, method: str, request: Request) -> Answer:
        is_counted = endpoint != "/healthz"  # an agent with too much to do is alive
        try:
            if is_counted:
                self._admission.check(request.headers)
            if endpoint not in self.routes:
                raise Refusal(404, "Not Found; /openapi.json lists what there is")
            allowed, handle = self.routes[endpoint]
            if method != allowed and (method, allowed) != ("HEAD", "GET"):
                possible = "GET, HEAD" if allowed == "GET" else allowed
                sentence = f"{method[:20]} is not possible here; possible: {possible}"
                return Answer(Error(sentence), 405, ((b"allow", possible.encode()),))
            self._admission.requests += is_counted
            try:
                return await handle(request)
            finally:
                self._admission.requests -= is_counted
        except Refusal as refusal:
            return _refused(refusal)

    # ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def post_items(self, request: Request) -> Answer:
        decided = await self._submissions.decide(request)
        return Answer(decided, 202 if isinstance(decided, Accepted) else 200)

    async def get_item(self, request: Request) -> Answer:
        trace = switch(options_of(request.query, ("trace",)), "trace", False)
        name = parse_name(request.path.removeprefix("/v1/items/"))
        result = self.agent.result(name, trace)
        if result is None and self.agent.is_pending(name):
            return Answer(Pending(name), 202)
        result = result or self.agent.result(name, trace)  # it may have been decided between the two calls
        if result is None:
            raise Refusal(
                404, f"{self.agent.name} knows no item {name!r:.220}: it was never submitted here, or is forgotten"
            )
        return Answer(result)

    # ── what the agent says of itself ─────────────────────────────────────────────────────────────────────────────

    async def get_recent(self, request: Request) -> Answer:
        given = options_of(request.query, ("items",)).get("items", "8")
        if not (given.isascii() and given.isdecimal() and len(given) <= 4 and 1 <= int(given) <= openapi.MOST_RECENT):
            raise Refusal(422, f"items must be a number from 1 to {openapi.MOST_RECENT}, got {given[:40]!r}")
        return Answer(self.agent.recent(int(given)))

    async def get_status(self, request: Request) -> Answer:
        options_of(request.query, ())
        return Answer(self.agent.status())

    async def get_health(self, _: Request) -> Answer:
        return Answer(b'{"alive":true}')

    async def get_readiness(self, _: Request) -> Answer:
        reason = self.agent.why_not_ready()
        if reason is None:
            return Answer(Readiness(True))
        return Answer(Readiness(False, f"{self.agent.name} is not ready: {reason}"), 503)

    async def get_metrics(self, _: Request) -> Answer:
        return Answer(self._metrics.text(), kind=self._metrics.content_type)

    async def get_openapi(self, _: Request) -> Answer:
        is_secured = self.settings.token_sha256 is not None
        return Answer(openapi.document(self.agent.name, self._limits, len(self.agent.classes), is_secured))


def _refused(refusal: Refusal) -> Answer:
    headers: list[tuple[bytes, bytes]] = []
    if refusal.retry_after is not None:  # whole seconds, as HTTP wants them; the body has the exact time
        headers.append((b"retry-after", str(max(1, math.ceil(refusal.retry_after))).encode()))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status in (401, 408, 413):
        headers.append((b"connection", b"close"))
    after = None if refusal.retry_after is None else round(refusal.retry_after, 3)
    return Answer(Error(str(refusal), after), refusal.status, tuple(headers))
