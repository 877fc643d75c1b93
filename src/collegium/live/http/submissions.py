"""Items of a request: read, scored by the agent's model, submitted, and waited for."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from collegium._serving.limits import JPEG, PNG, Admission, ClientGone, Receive, Refusal, ServiceSettings
from collegium.errors import CollegiumError, LiveError
from collegium.live.agent import Agent
from collegium.live.answers import Accepted, Busy, Conflict, ItemResult, ItemResults
from collegium.live.http.items import Batch, Doubles, check_kind, parse
from collegium.trust import BudgetExceeded

_LARGE = 1 << 18  # bodies from here on are decoded by the worker, so that the port stays responsive
_STATUSES = {BudgetExceeded: 403, Busy: 429, Conflict: 409, LiveError: 503, CollegiumError: 422}  # the first that fits
_MOMENT = 0.02  # seconds between two looks whether items begin
_T = TypeVar("_T")


class Request(NamedTuple):
    """A request, as far as it has arrived."""

    path: str
    query: bytes
    headers: dict[bytes, bytes]
    receive: Receive
    wake: Callable[[], None]
    """Makes `receive` return."""


def refusal_of(problem: CollegiumError) -> Refusal:
    """What the agent refuses, with the status for it."""
    if isinstance(problem, Refusal):
        return problem
    status = next(status for kind, status in _STATUSES.items() if isinstance(problem, kind))
    return Refusal(status, str(problem), getattr(problem, "retry_after", None))


def kind_of(request: Request) -> str:
    """The kind of its body, if it is one that can be read."""
    kind = check_kind(request.headers.get(b"content-type", b"").decode("latin-1"))
    if request.headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refusal(415, "send the body as it is, without a Content-Encoding")
    return kind


class Submissions:
    """What is submitted through a port."""

    def __init__(self, agent: Agent, settings: ServiceSettings, admission: Admission) -> None:
        self._agent, self._settings, self._admission = agent, settings, admission
        self._worker: ThreadPoolExecutor | None = None
        self._queued = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._decided: deque[Callable[[], None]] = deque()
        self._is_waking = False

    @contextmanager
    def open(self) -> Iterator[None]:
        """The worker lives as long as the port is open."""
        self._loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, f"{self._agent.name}-model") as self._worker:
            yield

    async def decide(self, request: Request) -> ItemResult | ItemResults | Accepted:
        """The result of one item, or those of many; how many were accepted if the request does not wait."""
        kind = kind_of(request)
        pieces: list[bytes] = []
        most, hint = self._settings.limits.of(kind), "send fewer items at a time, or NPY for JSON"
        try:
            await self._admission.read(request.receive, request.headers, pieces, most, hint)
            model = self._agent.model
            batch, scores = await self._items(kind, request.query, pieces)
            await self._beginning(batch)
            if model is not self._agent.model:  # a new epoch has begun, with another one
                batch, scores = await self._items(kind, request.query, pieces)
        finally:
            self._admission.release(pieces)
        decided = self._submit(batch, self._agent.enter(batch.names, scores, given=batch.scores is not None))
        if not batch.wait:
            return Accepted(len(batch.names))
        if not decided.done():
            await self._decision(decided, request)
        try:
            results = decided.result()
        except LiveError as problem:
            raise Refusal(503, str(problem)) from None
        return results[0] if batch.alone else ItemResults(results)

    async def _beginning(self, batch: Batch) -> None:
        """Until items begin: between two epochs of the network none do, for a moment."""
        end = asyncio.get_running_loop().time() + self._settings.answer_seconds
        while self._agent.holds(batch.names) and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_MOMENT)

    async def _items(self, kind: str, query: bytes, pieces: list[bytes]) -> tuple[Batch, Doubles]:
        """The items and their scores; whatever may take long is done by the worker, one request after the other."""
        classes, body = len(self._agent.classes), b"".join(pieces)
        if kind in (PNG, JPEG) or len(body) > _LARGE:
            return await self._in_worker(lambda: self._scored(parse(kind, query, body, self._settings.limits, classes)))
        batch = parse(kind, query, body, self._settings.limits, classes)
        return (batch, batch.scores) if batch.scores is not None else await self._in_worker(lambda: self._scored(batch))

    async def _in_worker(self, work: Callable[[], _T]) -> _T:
        if self._queued >= self._settings.queue or self._worker is None:
            raise Refusal(429, f"{self._queued} requests wait for the model of {self._agent.name} already: retry")
        self._queued += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)
        finally:
            self._queued -= 1

    def _scored(self, batch: Batch) -> tuple[Batch, Doubles]:
        if batch.scores is not None:
            return batch, batch.scores
        assert batch.views is not None
        try:
            scores = np.asarray(self._agent.score(batch.views), np.float64)
        except CollegiumError as problem:
            raise Refusal(422, str(problem)) from None
        except (ValueError, TypeError) as problem:
            reason = (str(problem).splitlines() or ["no reason given"])[0][:300]
            raise Refusal(422, f"the model of {self._agent.name} refuses views of this shape: {reason}") from None
        classes = len(self._agent.classes)
        shape = (len(batch.names),) if classes <= 2 else (len(batch.names), classes)
        if scores.shape != shape or not bool(np.isfinite(scores).all()):
            wanted = "one finite number" if classes <= 2 else f"{classes} finite numbers"
            raise Refusal(422, f"the model of {self._agent.name} does not give {wanted} for each of these views")
        return batch, scores

    def _submit(self, batch: Batch, scores: Doubles) -> Future[list[ItemResult]]:
        try:
            return self._agent.submit(batch.names, scores, batch.trace)
        except CollegiumError as problem:
            raise refusal_of(problem) from None

    async def _decision(self, decided: Future[list[ItemResult]], request: Request) -> None:
        """Until the network has decided; no longer than allowed, and not for a client that is gone."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._settings.answer_seconds, request.wake)
        decided.add_done_callback(partial(self._wake, request.wake))
        try:
            while not decided.done():
                if (await request.receive())["type"] == "http.disconnect":
                    raise ClientGone
                if loop.time() > timer.when() - 0.001:  # timers may be a little early
                    seconds = self._settings.answer_seconds
                    raise Refusal(503, f"not decided within {seconds:g} s; GET /v1/items/… has the result later")
        finally:
            timer.cancel()

    def _wake(self, request: Callable[[], None], _: object) -> None:
        """Called by any thread; the loop is woken once for all requests that were decided together."""
        self._decided.append(request)
        if not self._is_waking:
            self._is_waking = True
            assert self._loop is not None
            with suppress(RuntimeError):  # the port is closed by now, and no request waits
                self._loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        self._is_waking = False  # first: what is appended from here on wakes the loop again
        while self._decided:
            self._decided.popleft()()
