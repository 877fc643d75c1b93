"""The dashboard as a user starts it: a process of its own."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

from children import interruptible


class Dashboard:
    """A running dashboard."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url
        self.killed = False
        self.port = int(url.rstrip("/").rpartition(":")[2])

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, Any]:
        """Status, headers and content of an answer; JSON is read."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            sent = body if isinstance(body, (bytes, type(None))) else json.dumps(body)
            given = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, sent, given | (headers or {}))
            answer = connection.getresponse()
            content: Any = answer.read()
            if answer.headers.get_content_type() == "application/json":
                content = json.loads(content)
            return answer.status, answer.headers, content

    def die(self) -> None:
        """End at once, without a chance to close its connections."""
        self.killed = True
        self.process.kill()
        self.process.wait()

    def what_if(self, item: str = "0", **changes: Any) -> Any:
        status, _, content = self.ask("POST", "/api/what-if", {"item": item, "changes": changes})
        assert status == 200, content
        return content


def until(page: Any, condition: str, argument: Any = None) -> None:
    """Wait until an expression is true in the page; Playwright's own way needs eval, which the page forbids."""
    end = time.monotonic() + 60
    while not _is_true(page, condition, argument):
        assert time.monotonic() < end, f"never came true: {condition} {argument}"
        page.wait_for_timeout(30)


def _is_true(page: Any, condition: str, argument: Any) -> bool:
    from playwright.sync_api import Error

    try:
        return bool(page.evaluate(f"argument => {condition}", argument))
    except Error as problem:
        if "navigation" not in str(problem):
            raise
        return False  # the page is being loaded anew


@contextlib.contextmanager
def running(*arguments: object) -> Iterator[Dashboard]:
    """`collegium dashboard` on a free port, ended by Ctrl-C, with no further output."""
    command = [sys.executable, "-m", "collegium", "dashboard", "--no-open", "--port", "0", *map(str, arguments)]
    with interruptible(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        try:
            line = process.stdout.readline()  # type: ignore[union-attr]
            found = re.search(r"http://\S+", line)
            assert found, process.communicate()[1]
            watchdog.cancel()
            dashboard = Dashboard(process, found[0])
            yield dashboard
        finally:
            watchdog.cancel()
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            rest, problems = process.communicate(timeout=60)
    assert (rest, problems) == ("", "")
    assert dashboard.killed or process.returncode == 0
