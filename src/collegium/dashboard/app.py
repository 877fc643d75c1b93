"""The dashboard's port: the page, the feed and what-ifs.

    GET  /                     the page; its parts are under /static/
    GET  /api/about            what stays as it is
    GET  /api/feed             snapshots as they come (server-sent events)
    GET  /api/views/{n}.png    what every agent sees of an item
    POST /api/what-if          {"item": …, "changes": {…}}: the item and the averages, with the changes

Files are read when the dashboard starts: nothing in a request is ever used as a path to one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from collegium._serving.limits import Admission, Refusal, ServiceSettings
from collegium._serving.server import is_loopback, named_host
from collegium.dashboard.sources import Feed
from collegium.dashboard.what_if import MOST_ROUNDS, Changes
from collegium.errors import CollegiumError

MOST_BODY = 1 << 14
_LOOK = 0.1  # seconds between checks for a new snapshot
_ALIVE = 10.0  # seconds after which a feed without a new snapshot sends a comment to keep the connection
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_PLAIN = {
    "threshold": "Threshold: a number from 0 on.",
    "patience": f"Patience: a whole number from 1 to {MOST_ROUNDS}.",
    "confidence": "Confidence: a number from 0 on.",
    "bits": "Message bits: a whole number from 1 to 64.",
    "rounds": f"Rounds: a whole number from 1 to {MOST_ROUNDS}.",
    "strength": "Strength: a number from 0 on.",
    "faulty": "Which: the numbers of agents.",
    "seed": "Seed of draws: a whole number from 0 on, below 2^53.",
}
"""What each control of the page takes, for requests with anything else."""
_encode = msgspec.json.Encoder().encode


class _Question(msgspec.Struct, forbid_unknown_fields=True):
    item: str
    changes: Changes


_question = msgspec.json.Decoder(_Question)


def app(feed: Feed, host: str, ending: asyncio.Event | None = None) -> Starlette:
    """The web application of one feed; `ending` is set when open feeds are to end."""
    page = _Page(feed, ending)
    return Starlette(
        routes=[
            Route("/", page.get_page, methods=["GET"]),
            Route("/static/{name}", page.get_file, methods=["GET"]),
            Route("/api/about", page.get_about, methods=["GET"]),
            Route("/api/feed", page.get_feed, methods=["GET"]),
            Route("/api/views/{number}.png", page.get_views, methods=["GET"]),
            Route("/api/what-if", page.post_what_if, methods=["POST"]),
        ],
        middleware=[Middleware(_HostCheck, host)],
        exception_handlers={HTTPException: _refused, CollegiumError: _mistake},  # type: ignore[dict-item]
    )


class _Page:
    def __init__(self, feed: Feed, ending: asyncio.Event | None) -> None:
        self._feed, self._ending = feed, ending
        self._admission = Admission(ServiceSettings())
        folder = Path(__file__).parent / "static"
        self._files = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in _KINDS}

    async def get_page(self, _: Request) -> Response:
        return self._file("index.html")

    async def get_file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404, "there is no such file")
        return self._file(name)

    def _file(self, name: str) -> Response:
        headers = {"Cache-Control": "no-cache"}
        return Response(self._files[name], 200, headers, _KINDS[Path(name).suffix])

    async def get_about(self, _: Request) -> Response:
        return _json(self._feed.about)

    async def get_views(self, request: Request) -> Response:
        number, views = request.path_params["number"], self._feed.views
        # Nine digits are enough; Python refuses to read some thousands.
        is_number = number.isascii() and number.isdecimal() and len(number) < 10
        if views is None or not is_number or int(number) >= len(views):
            raise HTTPException(404, "there are no views of this item")
        picture = await run_in_threadpool(views.strip, int(number))
        return Response(picture, 200, {"Cache-Control": "private, max-age=600"}, "image/png")

    async def get_feed(self, _: Request) -> Response:
        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(self._events(), 200, headers, "text/event-stream")

    async def _events(self) -> AsyncIterator[bytes]:
        sequence, quiet = -1, 0.0
        self._feed.watch(True)
        try:
            while self._ending is None or not self._ending.is_set():
                snapshot = await run_in_threadpool(self._feed.snapshot)
                if snapshot.sequence != sequence:
                    sequence, quiet = snapshot.sequence, 0.0
                    yield b"data: " + _encode(snapshot) + b"\n\n"
                elif quiet > _ALIVE:
                    quiet = 0.0
                    yield b": still here\n\n"
                # Changes meanwhile come with the next snapshot: a slow reader has no queue.
                await asyncio.sleep(_LOOK)
                quiet += _LOOK
        finally:
            self._feed.watch(False)

    async def post_what_if(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, "a what-if is JSON")
        pieces: list[bytes] = []
        try:
            hint = f"a what-if has at most {MOST_BODY}"
            await self._admission.read(request.receive, dict(request.scope["headers"]), pieces, MOST_BODY, hint)
            question = _question.decode(b"".join(pieces))
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            where = re.search(r"`\$\.changes\.(\w+)", str(problem))
            plain = _PLAIN.get(where[1]) if where else None
            raise HTTPException(422, plain or f"this is no what-if: {problem}") from None
        finally:
            self._admission.release(pieces)
        return _json(await run_in_threadpool(self._feed.answer, question.item, question.changes))


class _HostCheck:
    """Refuses other host names of this machine, which a foreign page may have given it, and adds security headers."""

    def __init__(self, inner: ASGIApp, host: str) -> None:
        self._inner = inner
        self._names = {"localhost", "127.0.0.1", "::1", host} if is_loopback(host) else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        if self._names is not None and named_host(scope["headers"]) not in self._names:
            answer = _json({"error": "this dashboard is for this machine alone: open it as localhost"}, 403)
            await answer(scope, receive, noting)
            return
        await self._inner(scope, receive, noting)


def _json(content: Any, status: int = 200) -> Response:
    return Response(_encode(content), status, {"Cache-Control": "no-store"}, "application/json")


async def _refused(_: Request, problem: HTTPException) -> Response:
    return _json({"error": problem.detail}, problem.status_code)


async def _mistake(_: Request, problem: CollegiumError) -> Response:
    return _json({"error": str(problem)}, problem.status if isinstance(problem, Refusal) else 422)
