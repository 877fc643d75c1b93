"""Client of an agent's port: send it its views or scores of items and get the network's decisions."""

from __future__ import annotations

import http.client
import io
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._serving.limits import JSON, NPY, RETRY_AFTER
from collegium._util.arguments import real_number, whole_number
from collegium.errors import LiveError
from collegium.live.answers import (
    Conflict,
    Error,
    ItemResult,
    ItemResults,
    Labelled,
    Name,
    Recent,
    RecentItem,
    Status,
    TuningStep,
)
from collegium.live.http.items import LARGEST_NUMBER, LONGEST_NAME

_LONGEST_ADDRESS = 16_000
_MOST_BYTES = 4 << 20
_MOST_JSON = 1 << 20
_POLL = 0.05
_RETRY = 0.1
_T = TypeVar("_T", bound=msgspec.Struct)
_json = msgspec.json.Encoder().encode


class Client:
    """One agent's port, with a connection kept open for each thread that uses it.

    token: its bearer token, if it needs one; ca: the file of the authority that signed its certificate;
    certificate: a file with a certificate and key of our own, or the pair of two files;
    timeout: seconds for an answer, retries included: items and results are asked for again while the agent is busy, is
    about to stop, or is not there because it is being restarted (sending an item twice is harmless);
    batch: items in one request.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        ca: str | Path | None = None,
        certificate: str | Path | tuple[str | Path, str | Path] | None = None,
        timeout: float = 60.0,
        batch: int = 1000,
    ) -> None:
        wrong = LiveError(f"an agent's address is like http://127.0.0.1:8003 or https://host:8003; got {url!r:.200}")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise wrong from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise wrong
        if token is not None and not (token.isascii() and token.isprintable()):
            raise LiveError("a token is one line of printable characters: is its file damaged?")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._host, self._port = parts.hostname, port
        self._timeout = real_number(timeout, "timeout", LiveError, above=0)
        self._batch = whole_number(batch, "batch", LiveError, at_least=1)
        self._most: int | None = None
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._tls = _tls(ca, certificate) if parts.scheme == "https" else None
        if self._tls is None and (ca or certificate):
            raise LiveError(f"certificates are for https; {self.url} is not encrypted")
        self._connections: dict[threading.Thread, http.client.HTTPConnection] = {}
        self._lock = threading.Lock()

    def decide(
        self,
        names: Iterable[Name],
        *,
        scores: ArrayLike | None = None,
        views: ArrayLike | None = None,
        trace: bool = False,
    ) -> list[ItemResult]:
        """Send the agent its scores or views of these items, wait for the network, and return the results in order.

        Other agents must get theirs at about the same time: call each agent from a thread of its own, or `give` first.
        """
        deadline = time.monotonic() + self._timeout
        results: list[ItemResult] = []
        for address, kind, body in self._requests(names, scores, views, trace=trace, wait=True):
            _, answer = self._insist("POST", address, deadline, body, kind)
            results += self._decoded(answer, ItemResults).items
        return results

    def give(self, names: Iterable[Name], *, scores: ArrayLike | None = None, views: ArrayLike | None = None) -> None:
        """Send the agent its scores or views and do not wait for the decision; `result` has it later."""
        deadline = time.monotonic() + self._timeout
        for address, kind, body in self._requests(names, scores, views, trace=False, wait=False):
            self._insist("POST", address, deadline, body, kind)

    def result(self, name: Name, *, wait: float = 0.0, trace: bool = False) -> ItemResult | None:
        """The result of an item; None if not decided after waiting so long, never submitted or forgotten."""
        address = f"/v1/items/{_quoted(name)}{'?trace=1' if trace else ''}"
        until = time.monotonic() + wait
        while True:
            status, answer = self._insist("GET", address, time.monotonic() + self._timeout, passing=(404,))
            if status == 200:
                return self._decoded(answer, ItemResult)
            if time.monotonic() + _POLL > until:
                return None
            time.sleep(_POLL)

    def status(self) -> Status:
        """The state of the agent and its neighbours."""
        return self._get("/v1/status", Status)

    def recent(self, items: int = 8) -> list[RecentItem]:
        """The latest items, newest first, decided or not, round by round."""
        return self._get(f"/v1/recent?items={items}", Recent).items

    def tune(self, session: str, step: str, **settings: Any) -> TuningStep:
        """One step of a tuning at this agent: check, run, use or drop; `live.tune_network` does all, at all agents."""
        return self._post("/v1/tune", TuningStep, session=session, step=step, **settings)

    def label(self, name: Name, label: Any, *, rate: float = 0.05) -> Labelled:
        """Send the agent the label of an item it has decided: it moves its gain, see `collegium.tuning.Online`.

        Send it to all agents, one item after the other. Sending it again changes nothing.
        """
        return self._post(f"/v1/items/{_quoted(name)}/label", Labelled, label=label, rate=rate)

    def ready(self, wait: float = 0.0) -> bool:
        """Whether the agent and all its neighbours are connected, after waiting for that at most so long."""
        until = time.monotonic() + wait
        while True:
            try:
                deadline = min(max(until, time.monotonic() + 1.0), time.monotonic() + self._timeout)
                if self._request("GET", "/readyz", deadline, passing=(503,))[0] == 200:
                    return True
            except _Unreachable:
                pass
            if time.monotonic() + _POLL > until:
                return False
            time.sleep(_POLL)

    def close(self) -> None:
        """Close the connections of all threads; the next request opens one anew."""
        with self._lock:
            connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    # ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _requests(
        self, names: Iterable[Name], scores: ArrayLike | None, views: ArrayLike | None, *, trace: bool, wait: bool
    ) -> Iterator[tuple[str, str, bytes]]:
        """Address, type and body of each request these items need."""
        if (scores is None) == (views is None):
            raise LiveError("give either scores or views")
        if isinstance(names, (str, bytes, int)):
            raise LiveError(f"names are a list of items, also for one: [{names!r:.100}]")
        values = np.asarray(scores if views is None else views)
        listed = [_name(name) for name in names]
        if values.ndim < (1 if views is None else 2) or len(values) != len(listed) or values.dtype.kind not in "fiub":
            what, shape = ("scores", "(items,)") if views is None else ("views", "(items, …)")
            raise LiveError(f"{what} must be numbers of shape {shape}: {len(listed)} items, shape {values.shape}")
        if views is None and values.ndim > 2:
            raise LiveError(f"scores must have shape (items,), or (items, classes); got {values.shape}")
        options = f"?trace={int(trace)}&wait={int(wait)}"
        if self._most is None and len(listed) > 1:
            _, answer = self._insist("GET", "/v1/status", time.monotonic() + self._timeout)
            self._most = self._decoded(answer, Status).items.most  # an agent of many rounds holds fewer items
        step = min(self._batch, self._most or 1)
        if views is not None and listed:
            step = max(1, min(step, _MOST_BYTES * len(values) // max(values.nbytes, 1)))
        for start in range(0, len(listed), step):
            some, numbers = listed[start : start + step], values[start : start + step]
            if views is None:
                columns = {"ids": some, "scores": numbers.astype(np.float64).tolist()}
                yield f"/v1/items{options}", JSON, _json(columns)
            else:
                yield from _view_requests(some, numbers, options)

    def _get(self, address: str, kind: type[_T]) -> _T:
        _, answer = self._request("GET", address, time.monotonic() + self._timeout)
        return self._decoded(answer, kind)

    def _post(self, address: str, kind: type[_T], **body: Any) -> _T:
        _, answer = self._insist("POST", address, time.monotonic() + self._timeout, _json(body), JSON)
        return self._decoded(answer, kind)

    def _decoded(self, answer: bytes, kind: type[_T]) -> _T:
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise LiveError(f"what answers at {self.url} is not an agent of this version of collegium") from None

    def _insist(self, method: str, address: str, deadline: float, *given: Any, **named: Any) -> tuple[int, bytes]:
        """A request that is made again, until the deadline, when nobody answers at all."""
        while True:
            try:
                return self._request(method, address, deadline, *given, **named)
            except _Unreachable as problem:
                if not problem.may_come_back or time.monotonic() + _RETRY >= deadline:
                    raise
            time.sleep(_RETRY)

    def _request(
        self,
        method: str,
        address: str,
        deadline: float,
        body: bytes | None = None,
        kind: str = "",
        passing: Sequence[int] = (),
    ) -> tuple[int, bytes]:
        """Status and body of the answer; a status that is an error is raised unless it is among `passing`."""
        headers = {**self._headers, "Content-Type": kind} if kind else self._headers
        while True:
            status, answer = self._exchange(method, address, deadline, body, headers)
            if status < 300 or status in passing:
                return status, answer
            refusal = _refusal(answer)
            left = deadline - time.monotonic()
            pause = RETRY_AFTER if refusal.retry_after is None else max(refusal.retry_after, 0.01)
            may_wait = status == 429 or (status == 503 and refusal.retry_after is not None)
            if not may_wait or pause >= left:
                busy = f" (waited {self._timeout:g} s for it)" if may_wait else ""
                what = Conflict if status == 409 else LiveError
                raise what(f"{self.url} answered {status}: {refusal.error}{busy}")
            time.sleep(pause)

    def _exchange(
        self, method: str, address: str, deadline: float, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        while True:
            connection, is_new = self._connection()
            left = deadline - time.monotonic()
            if left <= 0:
                raise _Unreachable(f"{self.url} did not answer within {self._timeout:g} s")
            connection.timeout = left
            try:
                if connection.sock is None:
                    connection.connect()
                connection.sock.settimeout(left)
                try:
                    connection.request(method, address, body, headers)
                except (BrokenPipeError, ConnectionResetError):
                    if is_new is False:
                        raise
                    # It may have refused the body before all of it was sent: its answer has the reason.
                response = connection.getresponse()
                answer = response.read()
                if response.will_close:
                    connection.close()
                return response.status, answer
            except ssl.SSLCertVerificationError as problem:
                connection.close()
                raise _Unreachable(f"{self.url} has a certificate we do not trust: {problem.verify_message}") from None
            except TimeoutError:
                connection.close()
                raise _Unreachable(f"{self.url} did not answer within {self._timeout:g} s") from None
            except (OSError, http.client.HTTPException) as problem:
                connection.close()
                # A connection kept open may have been closed at the other end meanwhile; a retry is harmless.
                if is_new:
                    reason = str(problem) or type(problem).__name__
                    raise _Unreachable(f"cannot reach {self.url}: {reason}", may_come_back=True) from None

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        """This thread's connection, and whether it is yet to be opened."""
        me = threading.current_thread()
        with self._lock:
            connection = self._connections.get(me)
            if connection is None:
                for thread in [one for one in self._connections if not one.is_alive()]:
                    self._connections.pop(thread).close()
                if self._tls is None:
                    connection = http.client.HTTPConnection(self._host, self._port)
                else:
                    connection = http.client.HTTPSConnection(self._host, self._port, context=self._tls)
                self._connections[me] = connection
        return connection, connection.sock is None


class _Unreachable(LiveError):
    """No answer at all; an agent that is being restarted may come back."""

    def __init__(self, sentence: str, may_come_back: bool = False) -> None:
        super().__init__(sentence)
        self.may_come_back = may_come_back


def _view_requests(names: list[Name], views: NDArray[Any], options: str) -> Iterator[tuple[str, str, bytes]]:
    """Views keep their type in NPY; only names that no address can list go as JSON."""
    first = names[0]
    if isinstance(first, int) and names == list(range(first, first + len(names))):
        yield f"/v1/items{options}&first={first}", NPY, _npy(views)
        return
    if any(isinstance(name, str) and "," in name for name in names):
        step = max(1, _MOST_JSON * len(views) // (25 * views.size))  # a number takes up to 25 characters
        for start in range(0, len(names), step):
            some, numbers = names[start : start + step], views[start : start + step].astype(np.float64)
            yield f"/v1/items{options}", JSON, _json({"ids": some, "views": numbers.tolist()})
        return
    quoted = [_quoted(name) for name in names]
    start, length = 0, 0
    for stop, text in enumerate(quoted):
        if length + len(text) >= _LONGEST_ADDRESS:
            yield f"/v1/items{options}&ids={','.join(quoted[start:stop])}", NPY, _npy(views[start:stop])
            start, length = stop, 0
        length += len(text) + 1
    yield f"/v1/items{options}&ids={','.join(quoted[start:])}", NPY, _npy(views[start:])


def _npy(views: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(views), allow_pickle=False)
    return file.getvalue()


def _name(name: Any) -> Name:
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool) and 0 <= name <= LARGEST_NUMBER:
        return int(name)
    if isinstance(name, str) and 1 <= len(name) <= LONGEST_NAME:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise LiveError(f"the name {ascii(name)[:100]} has characters that cannot be written") from None
        return str(name)
    raise LiveError(
        f"an item's name is a whole number from 0 to {LARGEST_NUMBER} or a string of 1 to {LONGEST_NAME} characters; "
        f"got {name!r:.100}"
    )


def _quoted(name: Name) -> str:
    return quote(str(_name(name)), safe="")


def _refusal(answer: bytes) -> Error:
    try:
        return msgspec.json.decode(answer, type=Error)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Error(ascii(answer.decode("latin-1"))[1:200] or "nothing more")


def _tls(ca: str | Path | None, certificate: str | Path | tuple[str | Path, str | Path] | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
        if certificate is not None:
            files = certificate if isinstance(certificate, tuple) else (certificate, None)
            context.load_cert_chain(*files)
    except (OSError, ssl.SSLError) as problem:
        raise LiveError(f"the certificates cannot be used: {problem}") from None
    return context
