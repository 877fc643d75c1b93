"""Child processes that tests send Ctrl-C to."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def interruptible(command: list[Any], **settings: Any) -> Iterator[subprocess.Popen[Any]]:
    """A child that hears SIGINT whoever started the tests, and of which nothing is left in the end.

    A shell lets its background jobs ignore SIGINT, nohup and some CI systems do as well, and children inherit it:
    Python then raises no KeyboardInterrupt. The child leads a process group, which is killed with all its workers.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a handler is the default again after exec
    try:
        child = subprocess.Popen(command, start_new_session=True, **settings)
    finally:
        signal.signal(signal.SIGINT, before)
    with child:
        try:
            yield child
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
