"""Accepted items that outlive the process: a SQLite file beside the agent's own.

What a request submits is in the file before the request is answered, and a result is added when the item is decided. An
agent that starts again submits what it finds undecided, and what was decided just before its end, since others may need
its messages to decide the same; a result that was written once stays the result. It survives the end of the process at
any moment, `kill -9` included (SQLite's write-ahead log); a machine that loses its power may lose the last moments.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from collegium.errors import CollegiumError, LiveError
from collegium.live.agent import Agent
from collegium.live.answers import Busy, Conflict, ItemResult, Name, encode
from collegium.live.table import Doubles

KEEP = 600.0
"""Seconds for which results are kept."""
_AGAIN = 60.0  # seconds before the end, within which what was decided is submitted once more
_READY = 60.0  # seconds to wait for neighbours before items are submitted again
_SETTLE = 1.0  # and for theirs
_log = logging.getLogger("collegium.live")
_names = msgspec.json.Decoder(list[Name])
_results = msgspec.json.Decoder(list[ItemResult])


class Journal:
    """The file: one row for each request. Its methods may be called from any thread."""

    def __init__(self, path: Path) -> None:
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS requests"
                " (id INTEGER PRIMARY KEY, names BLOB, scores BLOB, at REAL, results BLOB, decided REAL)"
            )
            self._db.execute("SELECT id, names, scores, at, results, decided FROM requests LIMIT 1")
        except sqlite3.Error as problem:
            raise LiveError(f"the journal {path} cannot be used: {problem}") from None
        self._path = path
        self._lock = threading.Lock()
        self._last = next(self._rows("SELECT max(id) FROM requests"))[0] or 0  # of the lives before this one
        self._earlier: dict[Name, int] = {}  # items decided in a life before this one, and the request of each
        for number, names in self._rows("SELECT id, names FROM requests WHERE results IS NOT NULL ORDER BY id"):
            for name in _names.decode(names):
                self._earlier.setdefault(name, number)

    def accept(self, names: Sequence[Name], scores: Doubles) -> int:
        """Items are accepted, with scores (n,) or (n, d); the number of the request."""
        values = np.ascontiguousarray(scores, np.float64).tobytes()
        row = (msgspec.json.encode(names), values, time.time())
        return self._write("INSERT INTO requests (names, scores, at) VALUES (?, ?, ?)", [row])

    def decide(self, decided: Sequence[tuple[int, Sequence[ItemResult]]]) -> None:
        """Requests have their results."""
        now = time.time()
        rows = [(encode(results), now, number) for number, results in decided]
        self._write("UPDATE requests SET results = ?, decided = ? WHERE id = ?", rows)

    def forget(self, before: float) -> None:
        """Drop what was decided before a time."""
        self._write("DELETE FROM requests WHERE decided < ?", [(before,)])

    def replace(self) -> None:
        """Drop what was undecided at the beginning: it was submitted again, by requests of this life."""
        self._write("DELETE FROM requests WHERE decided IS NULL AND id <= ?", [(self._last,)])

    def result(self, name: Name) -> ItemResult | None:
        """The result of an item that was decided in a life before this one."""
        number = self._earlier.get(name)
        if number is None:
            return None
        for (results,) in self._rows("SELECT results FROM requests WHERE id = ?", number):
            return next((one for one in _results.decode(results) if one.id == name), None)
        return None

    def unfinished(self) -> list[tuple[Name, Doubles]]:
        """Items to be submitted again, in their order; each once, with its first score."""
        last = next(self._rows("SELECT max(max(at, coalesce(decided, 0))) FROM requests"))[0] or 0.0
        found: dict[Name, Doubles] = {}
        text = "SELECT names, scores FROM requests WHERE decided IS NULL OR decided > ? ORDER BY id"
        for content, values in self._rows(text, last - _AGAIN):
            names = _names.decode(content)
            for name, score in zip(names, np.frombuffer(values, np.float64).reshape(len(names), -1), strict=True):
                found.setdefault(name, score)
        return list(found.items())

    def close(self) -> None:
        """End."""
        with self._lock:
            self._db.close()

    def _rows(self, statement: str, *values: Any) -> Iterator[Any]:
        with self._lock:
            return iter(self._db.execute(statement, values).fetchall())

    def _write(self, statement: str, rows: list[tuple[Any, ...]]) -> int:
        """One transaction; the number of the last row that was inserted."""
        try:
            with self._lock:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    self._db.executemany(statement, rows)
                finally:
                    self._db.execute("COMMIT")
                return int(self._db.execute("SELECT last_insert_rowid()").fetchone()[0])
        except sqlite3.Error as problem:  # a full disk, or a file that was taken away
            raise LiveError(f"the journal {self._path} cannot be written: {problem}") from None


class JournaledAgent(Agent):
    """An agent whose accepted items are in a journal; replays: whether it submits again what it finds there."""

    def __init__(self, journal: Journal, *given: Any, replays: bool = True, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._journal, self._replays = journal, replays
        self._decided: queue.SimpleQueue[tuple[int, Sequence[ItemResult]] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._keep, name=f"{self.name}-journal", daemon=True)
        self._writer.start()
        self._unfinished: set[Name] = set()

    def start(self, transport: Any) -> None:
        """Join the network, and submit again what was not finished."""
        super().start(transport)
        items = self._journal.unfinished() if self._replays else []
        if items:
            self._unfinished = {name for name, _ in items}
            threading.Thread(target=self._replay, args=(items,), name=f"{self.name}-replay", daemon=True).start()

    def submit(self, names: Sequence[Name], scores: Doubles, trace: bool = False) -> Future[list[ItemResult]]:
        """As `Agent.submit`; when it returns, the items are in the journal."""
        future = super().submit(names, scores, trace)
        future.add_done_callback(partial(self._note, self._journal.accept(names, scores)))
        return future

    def result(self, name: Name, trace: bool = False) -> ItemResult | None:
        """As `Agent.result`; of an item decided in a life before this one, what was decided then."""
        return self._journal.result(name) or super().result(name, trace)

    def is_pending(self, name: Name) -> bool:
        """Also while an item of a life before this one waits to be submitted again."""
        return name in self._unfinished or super().is_pending(name)

    def stop(self) -> None:
        """Leave the network, and write what is decided."""
        super().stop()
        self._decided.put(None)
        self._writer.join(30)

    def _note(self, request: int, future: Future[list[ItemResult]]) -> None:
        if not future.cancelled() and future.exception() is None:
            self._decided.put((request, future.result()))

    def _keep(self) -> None:
        """Write results, many at once; and forget old ones."""
        swept = time.monotonic()
        while (first := self._decided.get()) is not None:
            decided = [first]
            with suppress(queue.Empty):
                while len(decided) < 1000:
                    more = self._decided.get_nowait()
                    if more is None:
                        self._decided.put(None)
                        break
                    decided.append(more)
            try:
                self._journal.decide(decided)
                if time.monotonic() - swept > 10.0:
                    swept = time.monotonic()
                    self._journal.forget(time.time() - KEEP)
            except LiveError as problem:
                _log.error("%s: %s", self.name, problem)

    def _replay(self, items: list[tuple[Name, Doubles]]) -> None:
        end = time.monotonic() + _READY
        while self.why_not_ready() is not None and time.monotonic() < end and not self.is_stopped:
            time.sleep(0.02)
        time.sleep(_SETTLE)
        if self.is_stopped:
            return
        if self.spending is not None:
            self.spending.paid_before([name for name, _ in items])
        _log.info("%s submits %d items again that its journal has", self.name, len(items))
        try:
            for start in range(0, len(items), 500):
                self._submit_again(items[start : start + 500])
            if not self.is_stopped:
                self._journal.replace()
        except LiveError as problem:  # at the next start, then
            _log.warning("%s: items of its journal are not submitted again: %s", self.name, problem)
        self._unfinished = set()

    def _submit_again(self, items: list[tuple[Name, Doubles]]) -> None:
        scores = np.array([score for _, score in items])
        while not self.is_stopped:
            try:
                self.submit([name for name, _ in items], scores[:, 0] if len(self.classes) == 2 else scores)
                return
            except Busy as busy:
                time.sleep(busy.retry_after)
            except CollegiumError as problem:
                if isinstance(problem, LiveError) and not isinstance(problem, Conflict):
                    raise
                _log.warning("%s: items of its journal are given up: %s", self.name, problem)
                return
