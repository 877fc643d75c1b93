"""Downloading one file: resumed when it was cut off, and where its checksum is known used only when it is right."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from collegium._util.progress import Bar, progress
from collegium.data.folders import sha256
from collegium.errors import DataError, InputFileError

FRUITLESS = 4
"""Connections in a row that may bring nothing before we give up."""
_CONNECTIONS = 1000
_LIMIT = 4 << 30  # bytes, where the file's length is not known
_BLOCK = 1 << 18
_PLAIN = re.compile(r"[!-~]+").fullmatch  # what may stand in an address
_PASSING = {408, 425, 429, 500, 502, 503, 504}  # the server may well answer a moment later


@dataclass(frozen=True)
class Remote:
    """A file on a server and what is known of it beforehand."""

    url: str
    sha256: str | None
    """None where whoever opens the file knows what must be in it."""
    size: int | None = None

    def __post_init__(self) -> None:
        if not _is_address(self.url):
            raise DataError(f"{self.url!r} is not the address of a file: write https://host/path")
        if self.sha256 is not None:
            if not re.fullmatch(r"[0-9a-fA-F]{64}", self.sha256):
                raise DataError(f"a SHA-256 has 64 hexadecimal digits; got {self.sha256!r}")
            object.__setattr__(self, "sha256", self.sha256.lower())

    @property
    def name(self) -> str:
        """The last part of the address."""
        return urlsplit(self.url).path.rpartition("/")[2] or "download"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and bool(_PLAIN(url))
    except ValueError:
        return False


class _Cut(Exception):
    """The connection broke. What came is kept, and the rest can be asked for."""


def download(remote: Remote, path: Path, *, pause: float = 1.0, timeout: float = 30.0) -> None:
    """Bring the file to `path`. A `.part` beside it keeps what came so far, in earlier runs too.

    Broken connections are taken up again, after `pause` seconds and then twice as long each time, until four in a
    row have brought nothing. A file with another checksum is deleted and refused.
    """
    part = path.with_name(path.name + ".part")
    try:
        if _read_note(part).get("sha256", remote.sha256) != remote.sha256:
            _discard(part)  # of another file
        resumed = _size(part) > 0
        whole = _bring(remote, part, pause, timeout)
        if resumed and not _is_right(remote, part):
            _discard(part)  # what was there before may have been of another file
            whole = _bring(remote, part, pause, timeout)
        if not _is_right(remote, part):
            _refuse(remote, part, whole)
        os.replace(part, path)
        _note(part).unlink(missing_ok=True)
    except OSError as problem:
        raise DataError(f"cannot write {path}: {problem.strerror or problem}") from None


def _is_right(remote: Remote, part: Path) -> bool:
    return remote.sha256 is None or sha256(part) == remote.sha256


def _refuse(remote: Remote, part: Path, whole: bool) -> NoReturn:
    size, found = _size(part), sha256(part)
    if not whole:
        raise DataError(
            f"what {remote.url} sent is cut off, or not the file expected: {size} bytes with SHA-256 {found}, "
            f"not {remote.sha256}, and the server gave no length. They are kept: run the command "
            "again to go on from there, or try another address."
        )
    _discard(part)
    raise InputFileError(
        f"what {remote.url} sent is not the file expected: {size} bytes with SHA-256 {found}, not "
        f"{remote.sha256}. It was deleted without being unpacked. Try another address."
    )


def _bring(remote: Remote, part: Path, pause: float, timeout: float) -> bool:
    """Ask for the file, again and again from where it broke off, until all of it is in `part`.

    False if the server did not send its length, so that it may not be all of it.
    """
    fruitless = 0
    with progress(f"downloading {remote.name}", remote.size, _size(part), in_bytes=True) as bar:
        for _ in range(_CONNECTIONS):
            before = _size(part)
            try:
                return _ask(remote, part, timeout, bar)
            except _Cut as cut:
                reason = str(cut)
            fruitless = 0 if _size(part) > before else fruitless + 1
            if fruitless >= FRUITLESS:
                break
            time.sleep(min(pause * 2**fruitless, 30.0))
    kept = f" {_size(part)} bytes are kept: run the command again to go on from there." if _size(part) else ""
    raise DataError(f"cannot download {remote.url}: {reason}.{kept}")


def _ask(remote: Remote, part: Path, timeout: float, bar: Bar) -> bool:
    """One request for what is still missing, and whether all of it is known to have come."""
    have = _size(part)
    if have == remote.size:
        return True
    headers = {"Accept-Encoding": "identity", "User-Agent": "collegium"}
    note = _read_note(part)
    validator = note.get("validator") if note.get("url") == remote.url else None
    if have:
        headers["Range"] = f"bytes={have}-"
        if validator:
            headers["If-Range"] = validator  # if the file has changed, all of it comes
    try:
        answer = urllib.request.urlopen(urllib.request.Request(remote.url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as refusal:
        answer = refusal
    except (OSError, http.client.HTTPException) as problem:
        why = getattr(problem, "reason", problem)
        if isinstance(why, ssl.SSLCertVerificationError):
            raise DataError(f"cannot download {remote.url}: {why.verify_message} (its certificate)") from None
        raise _Cut(_plain(why)) from None
    with answer:
        start, total = _content_range(answer)
        if answer.status == 200:
            _discard(part)  # the whole file is coming: the server knows no pieces, or has another file now
            return _receive(remote, part, 0, answer, bar)
        if answer.status == 206 and have:
            if start != have or (validator and _validator(answer) not in (validator, None)):
                _discard(part)
                raise _Cut("the server sent another piece than the one asked for")
            return _receive(remote, part, have, answer, bar)
        if answer.status == 416 and have:
            if total == have and remote.size in (None, total):
                return True
            _discard(part)
            raise _Cut("the server has a shorter file than what came before")
        said = f"the server answers {answer.status} {_first_line(answer.reason)}"
        if answer.status in _PASSING:
            raise _Cut(said)
        raise DataError(f"cannot download {remote.url}: {said}")


def _receive(remote: Remote, part: Path, have: int, answer: Any, bar: Bar) -> bool:
    length = answer.headers.get("Content-Length", "")
    total = have + int(length) if length.isdecimal() else remote.size
    if remote.size not in (None, total) or (total or 0) > _LIMIT:
        raise InputFileError(f"{remote.url} has {total} bytes, not the {remote.size or f'at most {_LIMIT}'} expected")
    _note(part).write_text(
        json.dumps({"url": remote.url, "sha256": remote.sha256, "validator": _validator(answer)}), encoding="utf-8"
    )
    bar.total = total
    bar.move_to(have)
    with part.open("ab") as file:
        while True:
            try:
                block = answer.read1(_BLOCK)
            except (OSError, http.client.HTTPException) as problem:
                raise _Cut(f"the connection broke after {have} bytes ({_plain(problem)})") from None
            if not block:
                break
            have += len(block)
            if have > (_LIMIT if total is None else total):
                _discard(part)
                raise InputFileError(f"{remote.url} sends more than the {total or _LIMIT} bytes expected")
            file.write(block)
            bar.move_to(have)
    if total is not None and have < total:
        raise _Cut(f"the connection broke after {have} of {total} bytes")
    return total is not None


def _validator(answer: Any) -> str | None:
    """What tells one version of the file from another; a weak tag does not tell bytes apart."""
    tag: str | None = answer.headers.get("ETag")
    if tag and not tag.startswith("W/"):
        return tag
    changed: str | None = answer.headers.get("Last-Modified")
    return changed


def _content_range(answer: Any) -> tuple[int | None, int | None]:
    """Where the piece that is coming starts, and how long the whole file is, as far as the server says."""
    said = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", answer.headers.get("Content-Range", ""))
    start, total = said.groups() if said else (None, None)
    return int(start) if start else None, int(total) if total and total != "*" else None


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _note(part: Path) -> Path:
    """Beside the part: which file it is a part of."""
    return part.with_name(part.name + ".json")


def _read_note(part: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        note = json.loads(_note(part).read_text(encoding="utf-8"))
        if isinstance(note, dict):
            return note
    return {}


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


def _first_line(reason: object) -> str:
    """Of a redirection that leads in a circle there are three."""
    return str(reason).strip().partition("\n")[0].rstrip(".")


def _plain(problem: object) -> str:
    return str(getattr(problem, "strerror", None) or problem or type(problem).__name__)
