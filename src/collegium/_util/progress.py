"""Progress with the time left, on standard error, for whatever takes longer than a moment: a bar, or lines in a log."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from threading import Event, RLock, Thread, Timer
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

T = TypeVar("T")

DELAY = 2.0
"""Seconds of work before a bar is worth showing."""

EVERY = 60.0
"""Seconds between lines where standard error is no terminal."""
in_log = False
"""Whether such lines are written: the command line wants them, a library's user or a worker process does not."""

_lock = RLock()
_shown: list[Bar] = []
_logged: list[Bar] = []
_display: Progress | None = None


class Bar:
    """How far a piece of work has come. `advance` and `move_to` may be called from any thread."""

    def __init__(self, label: str, total: float | None, start: float = 0, *, in_bytes: bool = False) -> None:
        self.label = label
        self.total = total
        self.completed = start
        self._start = start
        self._in_bytes = in_bytes
        self._began = self._moved = monotonic()
        self._task: TaskID | None = None
        self._ended = False

    def advance(self, amount: float = 1) -> None:
        """So much more is done."""
        with _lock:
            self.move_to(self.completed + amount)

    __call__ = advance

    def move_to(self, completed: float) -> None:
        """So much is done in all."""
        with _lock:
            self.completed = completed
            self._moved = monotonic()
            if _display is not None and self._task is not None:
                _display.update(self._task, completed=completed, total=self.total)

    @property
    def amount(self) -> str:
        """How much is done, for people to read."""
        if self._in_bytes:
            whole = "" if self.total is None else f" of {self.total / 1e6:.1f}"
            return f"{self.completed / 1e6:.1f}{whole} MB"
        return f"{100 * self.completed / self.total:.0f} %" if self.total else ""

    @property
    def left(self) -> str:
        """The time left at the pace so far; empty before there is a pace."""
        done = self.completed - self._start
        if self.total is None or done <= 0:
            return ""
        pace = (self._moved - self._began) / done
        seconds = pace * (self.total - self.completed) - (monotonic() - self._moved)
        minutes, seconds = divmod(max(0, round(seconds)), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02} left"

    @property
    def line(self) -> str:
        """How far it is, for a log."""
        amount = self.amount
        if self.total and not self._in_bytes:
            amount = f"{self.completed:.4g} of {self.total:.4g} ({amount})"
        return f"{self.label}: {', '.join(filter(None, (amount, self.left))) or 'at work'}"

    def _show(self) -> None:
        with _lock:
            if not self._ended:
                self._task = _open().add_task(self.label, total=self.total, completed=self.completed, bar=self)  # type: ignore[arg-type]
                _shown.append(self)

    def _end(self) -> None:
        with _lock:
            self._ended = True
            if self in _shown and _display is not None and self._task is not None:
                _shown.remove(self)
                _display.remove_task(self._task)
                self._task = None
                if not _shown:
                    _close()


@contextmanager
def progress(label: str, total: float | None, start: float = 0, *, in_bytes: bool = False) -> Iterator[Bar]:
    """A bar for a block of work, gone when the block ends. `total=None` means that the amount is not known.

    It shows after two seconds where standard error is a terminal; bars inside one another stand below one another.
    Elsewhere the command line writes a line every minute. Work that goes on where an earlier run left off begins at
    `start`.

    >>> with progress("training", total=3) as bar:
    ...     bar.advance()
    ...     bar.move_to(2.5)
    >>> bar.completed
    2.5
    """
    bar = Bar(label, total, start, in_bytes=in_bytes)
    if not _is_terminal():
        with _lines(bar):
            yield bar
        return
    timer = Timer(DELAY, bar._show)  # work that is slow to report anything is shown in time too
    timer.daemon = True
    timer.start()
    try:
        yield bar
    finally:
        timer.cancel()
        bar._end()


@contextmanager
def _lines(bar: Bar) -> Iterator[None]:
    """A line every minute about all work under way, by a thread of the outermost."""
    if not in_log:
        yield
        return
    ended = Event()
    with _lock:
        _logged.append(bar)
        if len(_logged) == 1:
            Thread(target=_write_lines, args=(ended,), name="progress", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        with _lock:
            _logged.remove(bar)


def _write_lines(ended: Event) -> None:
    while not ended.wait(EVERY):
        with _lock:
            line = "; ".join(bar.line for bar in _logged)
        with suppress(OSError, ValueError):  # closed
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()


def track(items: Iterable[T], label: str) -> Iterator[T]:
    """The same items one by one, with a bar that counts them.

    >>> list(track("abc", "reading"))
    ['a', 'b', 'c']
    """
    known = len(items) if isinstance(items, Sized) else None
    with progress(label, known) as bar:
        for item in items:
            yield item
            bar.advance()


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _open() -> Progress:
    global _display
    if _display is None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[bar].amount}", markup=False),
            TextColumn("{task.fields[bar].left}", markup=False),
        )
        # What others print on standard output stays there: it may be a file.
        display = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
        display.start()
        _display = display
    return _display


def _close() -> None:
    global _display
    if _display is not None:
        _display.stop()
        _display = None
