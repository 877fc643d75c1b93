"""What a port admits: the most one request may contain, how many there may be at once, and whoever has the token."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from collegium.errors import LiveError

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
JSON, PNG, JPEG = "application/json", "image/png", "image/jpeg"
NPY, NPZ = "application/x-npy", "application/x-npz"
RETRY_AFTER = 0.4
"""Seconds, for what a port itself refuses for now: less than half of what an agent waits for a view by default, so that
a retry is no reason for the others to decide without it."""


class Refusal(LiveError):
    """A request that cannot be done, with its HTTP status."""

    def __init__(self, status: int, sentence: str, retry_after: float | None = None) -> None:
        # What is quoted from a request must not reach a terminal or a log as it came.
        sentence = sentence[:600]
        if not sentence.isprintable():
            sentence = "".join(c if c.isprintable() else "?" for c in sentence)
        super().__init__(sentence)
        self.status = status
        self.retry_after = RETRY_AFTER if status == 429 and retry_after is None else retry_after


class CannotListen(LiveError):
    """An address is taken, or not this machine's: it may be free, or there, in a moment."""


class ClientGone(Exception):
    """The client closed its connection before it had an answer."""


@dataclass(frozen=True)
class Limits:
    """The most one request may contain."""

    items: int = 10_000
    bytes: int = 8 << 20
    json: int = 2 << 20
    """Bytes of JSON, which takes up to 25 times its size in memory while it is read; an array takes twice its size."""
    pixels: int = 4_000_000

    def of(self, kind: str) -> int:
        """Bytes of a body of this kind."""
        return min(self.json, self.bytes) if kind == JSON else self.bytes


@dataclass(frozen=True)
class ServiceSettings:
    """Limits of an agent's port."""

    token_sha256: str | None = None
    """SHA-256 of the bearer token, in hexadecimal; None: no token is needed."""
    reader_sha256: str | None = None
    """SHA-256 of a token with which everything may be read and nothing submitted."""
    limits: Limits = Limits()
    requests: int = 256
    """Requests in progress."""
    held: int = 32 << 20
    """Bytes of request bodies in progress."""
    queue: int = 8
    """Requests that wait for the model, or to be decoded."""
    answer_seconds: float = 120.0
    """For the network to decide; then the client is asked to retry later."""
    grace_seconds: float = 15.0
    """At the end, for what was accepted to be answered."""

    def __post_init__(self) -> None:
        for name in ("token_sha256", "reader_sha256"):
            given = getattr(self, name)
            if given is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", given):
                raise LiveError(f"{name} must be the SHA-256 of the token: 64 hexadecimal digits")


class Admission:
    """Checks tokens and counts what is in progress: requests, and the bytes of their bodies."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self.use(settings)
        self.requests = 0
        self._held = 0

    def use(self, settings: ServiceSettings) -> None:
        """From now on these tokens are right."""
        self._tokens = [one.lower() if one else None for one in (settings.token_sha256, settings.reader_sha256)]

    def check(self, headers: Mapping[bytes, bytes], is_reading: bool = False) -> None:
        """Raise `Refusal` unless one more request may be begun; is_reading: it changes nothing."""
        token, reader = self._tokens
        if token is not None:
            scheme, _, shown = headers.get(b"authorization", b"").partition(b" ")
            given = hashlib.sha256(shown.strip()).hexdigest() if scheme.lower() == b"bearer" else ""
            is_reader = reader is not None and hmac.compare_digest(given, reader)
            if is_reader and not is_reading:
                raise Refusal(403, "this token is for reading: items need the token of this agent")
            if not is_reader and not hmac.compare_digest(given, token):
                if b"authorization" in headers:
                    raise Refusal(401, "this is not the token of this network")
                raise Refusal(401, "this port needs a token: send the header Authorization: Bearer …")
        if self.requests >= self._settings.requests:
            raise Refusal(429, f"{self.requests} requests are in progress already: retry")

    async def read(
        self, receive: Receive, headers: Mapping[bytes, bytes], pieces: list[bytes], most: int, hint: str
    ) -> None:
        """Append a body piece by piece, of at most so many bytes; `release` them when they are no longer needed."""
        promised = headers.get(b"content-length", b"")
        if promised.isdigit() and int(promised) > most:
            raise _too_large(most, hint)
        size, is_whole = 0, False
        while not is_whole:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            piece = message.get("body", b"")
            is_whole = not message.get("more_body", False)
            size += len(piece)
            if size > most:
                raise _too_large(most, hint)
            if self._held + len(piece) > self._settings.held:
                raise Refusal(429, "as many bodies are read as can be held at once: retry")
            self._held += len(piece)
            pieces.append(piece)

    def release(self, pieces: list[bytes]) -> None:
        """A body that has been read is needed no longer."""
        self._held -= sum(map(len, pieces))


def _too_large(most: int, hint: str) -> Refusal:
    return Refusal(413, f"the body is larger than {most} bytes: {hint}")
