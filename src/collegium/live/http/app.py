"""An agent's HTTP application: items in, decisions out, status and metrics.

    POST /v1/items        one item or many, with scores or views; answered when the network has decided
    GET  /v1/items/{id}   a result that is still remembered
    GET  /v1/recent       the items that came last, round by round, decided or not
    GET  /v1/status       the agent and its neighbours
    POST /v1/tune         one step of a tuning: the network learns how much each agent should count
    POST /v1/items/{id}/label   the label of a decided item: the agent moves its own gain
    GET  /healthz         the process runs              GET /readyz        all its neighbours are connected
    GET  /metrics         for Prometheus                GET /openapi.json  all this, for machines

Every refusal is {"error": "a sentence"}. Nothing in a request is ever used as a path to a file. It is plain ASGI: a
request costs one task, one timer and no layers. It is served by `Server`, whose protocol can wake a request.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, NamedTuple

from collegium._serving.limits import JSON, RETRY_AFTER, Admission, ClientGone, Receive, Refusal, ServiceSettings
from collegium._serving.protocol import WAKE
from collegium._serving.server import Server, is_loopback, listen, named_host
from collegium.errors import LiveError
from collegium.live.agent import Agent
from collegium.live.answers import Accepted, Error, Pending, Readiness, encode
from collegium.live.http import openapi
from collegium.live.http.items import options_of, parse_name, switch
from collegium.live.http.metrics import Metrics
from collegium.live.http.submissions import Request, Submissions
from collegium.live.http.tuning import Tunings
from collegium.live.transport.base import Tls

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
_logger = logging.getLogger("collegium.live")
_ITEM = "/v1/items/{id}"
_LABEL = f"{_ITEM}/label"
_SETTINGS = ServiceSettings()


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
    application = App(agent, settings, is_local=is_loopback(bound.getsockname()[0]))
    return Server(
        application, bound, tls=tls, client_certificates=client_certificates, started=started,
        connections=4 * settings.requests, grace_seconds=settings.grace_seconds,
        ending=application.drain, is_drained=lambda: not agent.in_hand(),
    )  # fmt: skip


class App:
    """The web application of one agent."""

    def __init__(self, agent: Agent, settings: ServiceSettings = _SETTINGS, is_local: bool = False) -> None:
        self.agent, self.settings, self._is_local = agent, settings, is_local
        self.routes: dict[str, tuple[str, Callable[[Request], Awaitable[Answer]]]] = {
            "/v1/items": ("POST", self.post_items),
            _ITEM: ("GET", self.get_item),
            "/v1/recent": ("GET", self.get_recent),
            "/v1/status": ("GET", self.get_status),
            "/v1/tune": ("POST", self.post_tune),
            _LABEL: ("POST", self.post_label),
            "/healthz": ("GET", self.get_health),
            "/readyz": ("GET", self.get_readiness),
            "/metrics": ("GET", self.get_metrics),
            "/openapi.json": ("GET", self.get_openapi),
        }
        self._is_draining = False
        self.starting_until = 0.0
        """Until when items are refused unless all neighbours have been there: some may connect just now."""
        self._admission = Admission(settings)
        self._responses: Counter[tuple[str, int]] = Counter()
        """Responses by path and status, for /metrics."""
        self.certificate_end: Callable[[], float] | None = None
        """When the agent's certificate ends, in seconds since 1970."""
        self._metrics = Metrics(
            agent, self._responses, lambda: self.certificate_end() if self.certificate_end else None
        )
        # A request with more items than can ever be pending would be asked to retry for ever.
        self._limits = replace(settings.limits, items=min(settings.limits.items, agent.status().items.most))
        self._submissions = Submissions(agent, replace(settings, limits=self._limits), self._admission)
        self._tunings = Tunings(agent, settings.limits, self._admission)

    def reload(self, port: Any) -> None:
        """Use the tokens of an agent's file, as it is now."""
        self._admission.use(replace(self.settings, token_sha256=port.token_sha256, reader_sha256=port.reader_sha256))

    def drain(self) -> None:
        """Accept no more items: the agent is about to stop. What was accepted is decided first."""
        self._is_draining = True
        self.agent.drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        path: str = scope["path"]
        endpoint = path if path in self.routes else "other"
        if path.startswith("/v1/items/"):  # an item may be called x/label, too
            is_read = scope["method"] in ("GET", "HEAD")
            endpoint = _LABEL if path.endswith("/label") and not is_read else _ITEM
        request = Request(path, scope["query_string"], dict(scope["headers"]), receive, scope["extensions"][WAKE])
        try:
            answer = await self._answer(endpoint, scope["method"], request)
            body = answer.content if isinstance(answer.content, bytes) else encode(answer.content)
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
            if self._is_local:
                _check_host(request.headers)
            if is_counted:
                self._admission.check(request.headers, is_reading=method in ("GET", "HEAD"))
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

    def _check_stays(self) -> None:
        if self._is_draining:
            raise Refusal(503, f"{self.agent.name} is about to stop: retry when it is back", RETRY_AFTER)
        if not self.agent.was_ready and time.monotonic() < self.starting_until:
            reason = f"{self.agent.name} has just started: {self.agent.why_not_ready()}"
            raise Refusal(503, reason, RETRY_AFTER / 4)

    async def post_items(self, request: Request) -> Answer:
        self._check_stays()
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

    async def post_tune(self, request: Request) -> Answer:
        self._check_stays()
        return Answer(await self._tunings.step(request))

    async def post_label(self, request: Request) -> Answer:
        self._check_stays()
        name = parse_name(request.path.removeprefix("/v1/items/").removesuffix("/label"))
        return Answer(await self._tunings.label(request, name))

    # ── the agent's state ────────────────────────────────────────────────────────────────────────────────────────

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
        reason = "it is about to stop" if self._is_draining else self.agent.why_not_ready()
        if reason is None:
            return Answer(Readiness(True))
        return Answer(Readiness(False, f"{self.agent.name} is not ready: {reason}"), 503)

    async def get_metrics(self, _: Request) -> Answer:
        return Answer(self._metrics.text(), kind=self._metrics.content_type)

    async def get_openapi(self, _: Request) -> Answer:
        is_secured = self.settings.token_sha256 is not None
        return Answer(openapi.document(self.agent.name, self._limits, len(self.agent.classes), is_secured))


def _check_host(headers: dict[bytes, bytes]) -> None:
    """A page in a browser can give 127.0.0.1 a name of its own, and then read what a port answers: not this one."""
    name = named_host(headers.items())
    if name is not None and not is_loopback(name):
        raise Refusal(421, f"this port is for programs of this machine: call it 127.0.0.1 or localhost, not {name!r}")


def _refused(refusal: Refusal) -> Answer:
    headers: list[tuple[bytes, bytes]] = []
    if refusal.retry_after is not None:  # whole seconds, as HTTP wants them; the body has the exact time
        headers.append((b"retry-after", str(max(1, math.ceil(refusal.retry_after))).encode()))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status in (401, 408, 413) or (refusal.status == 503 and refusal.retry_after):
        headers.append((b"connection", b"close"))
    after = None if refusal.retry_after is None else round(refusal.retry_after, 3)
    return Answer(Error(str(refusal), after), refusal.status, tuple(headers))
