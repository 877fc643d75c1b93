"""HTTP/1.1 as Uvicorn speaks it, careful with clients that send too much, too slowly, or do not read their answer."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from collegium._serving.crowd import Crowd

WAKE = "collegium.wake"


class _Part(Enum):
    """How much of a request has arrived."""

    NOTHING, HEAD, BODY, WHOLE = range(4)


_UNTIL_BODY = (_Part.NOTHING, _Part.HEAD)


class _Joined:
    """A transport that sends what is written within one step of the loop at once: a response's head with its body."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._inner, self._loop = inner, loop
        self._pieces: list[bytes] = []
        self.is_closing = inner.is_closing

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def close(self) -> None:
        self._flush()
        self._inner.close()

    def _flush(self) -> None:
        if self._pieces and not self._inner.is_closing():
            self._inner.write(b"".join(self._pieces))
        self._pieces.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class CarefulProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with what it leaves open: how long a head may be, and how long a client may take.

    An application that waits in `receive` for a client to leave can be made to look up by the extension WAKE of the
    scope, which makes `receive` return; so a request that waits for something else as well needs no second task.
    """

    crowd: Crowd[CarefulProtocol] = Crowd(1024)
    """All connections of the port; each port has a class of its own."""
    head_bytes = 1 << 16
    head_seconds = 10.0
    body_seconds = 30.0
    answer_seconds = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Joined(transport, self.loop))  # type: ignore[arg-type]
        too_many = self.crowd.enter(self, self.client[0] if self.client else "")
        if too_many is not None:
            too_many.transport.close()
        self._part, self._parsed, self._unparsed = _Part.NOTHING, 0, 0
        self._stalled: asyncio.TimerHandle | None = None
        self._slow: asyncio.TimerHandle | None = self.loop.call_later(self.head_seconds, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.crowd.leave(self)
        self._stop_clock()
        self._cancel_stalled()

    def data_received(self, data: bytes) -> None:
        before = self._part
        super().data_received(data)
        # Most requests come whole: only one that does not needs a timer.
        if self._slow is None and self._part in (_Part.HEAD, _Part.BODY):
            seconds = self.head_seconds if self._part is _Part.HEAD else self.body_seconds
            self._slow = self.loop.call_later(seconds, self._too_slow)
        if before in _UNTIL_BODY and self._part in _UNTIL_BODY:  # nothing but head in this piece, and not its end
            self._unparsed += len(data)
            if self._unparsed > self.head_bytes and not self.transport.is_closing():
                self._refuse(431, b"the head of the request is too long")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._part, self._parsed, self._unparsed = _Part.HEAD, 0, 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._part = _Part.BODY
        self._stop_clock()
        self.crowd.work(self)
        super().on_headers_complete()
        self.scope["extensions"] = {WAKE: self.cycle.message_event.set}  # type: ignore[dict-item]

    def on_message_complete(self) -> None:
        self._part = _Part.WHOLE
        self._stop_clock()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last:
            self.crowd.rest(self)
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
        if self._parsed > self.head_bytes:
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

    def _stop_clock(self) -> None:
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
            raise ValueError  # the parser stops, and Uvicorn calls send_400_response

    def _too_slow(self) -> None:
        if self.transport.is_closing():
            return
        if self._part is _Part.BODY and not self.pipeline and not self.cycle.response_started:
            self._refuse(408, b"the body of the request did not arrive in time")
        elif self._part is _Part.HEAD:
            self._refuse(408, b"the head of the request did not arrive in time")
        else:
            self.transport.close()
