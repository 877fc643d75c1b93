"""An HTTP server on this machine that also misbehaves as real ones do."""

import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    """How one request is answered; by default as it should be."""

    cut: int | None = None  # bytes after which the connection breaks
    ranges: bool = True  # whether pieces are known
    status: int | None = None  # instead of an answer
    location: bool = False  # with that status, leads to where one is already
    length: bool = True  # whether it says how much comes
    shift: int = 0  # sends another piece than the one asked for
    keeps_range: bool = False  # sends a piece although the file has changed
    swap: tuple | None = None  # the file and its tag have become these meanwhile
    hold: threading.Event | None = None  # waits for this before the connection breaks


@dataclass
class Site:
    """One file, what the next requests get, and what was asked."""

    body: bytes
    etag: str | None = '"first"'
    plan: list[Answer] = field(default_factory=list)
    asked: list[dict] = field(default_factory=list)
    url: str = ""
    sent: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        site: Site = self.server.site
        site.asked.append(dict(self.headers))
        answer = site.plan.pop(0) if site.plan else Answer()
        self.close_connection = True
        if answer.swap is not None:
            site.body, site.etag = answer.swap
        if answer.status is not None:
            self.send_response(answer.status)
            if answer.location:
                self.send_header("Location", site.url)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start, total = self._start(site, answer), len(site.body)
        if start is not None and start >= total:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{total}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200 if start is None else 206)
        start = (start or 0) + answer.shift
        body = site.body[start:]
        if self.headers.get("Range") and start:
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        if site.etag:
            self.send_header("ETag", site.etag)
        if answer.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if answer.cut is None else body[: answer.cut])
        self.wfile.flush()
        site.sent.set()
        if answer.hold is not None:
            answer.hold.wait(60)

    def _start(self, site, answer):
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        same = condition is None or condition == site.etag or answer.keeps_range
        return int(wanted.group(1)) if wanted and answer.ranges and same else None

    def log_message(self, *_):
        pass


@contextmanager
def serve(body: bytes, **settings):
    """A site on the loopback interface for as long as the block lasts."""
    site = Site(body, **settings)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.site = site
    site.url = f"http://127.0.0.1:{server.server_port}/files/archive.tar.gz"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
