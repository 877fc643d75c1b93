"""What a running agent looks after beside its items: its certificate, who is revoked, the network's configuration."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from collegium.errors import LiveError
from collegium.live import configuration, keys
from collegium.live.epochs import CONFIGURATION, PHASES, Epochs
from collegium.live.revocation import Revocations, Revoked

EVERY = 0.5  # seconds
TURN = 0.05  # seconds, while neighbours renew their certificates first, and during a change of the network
LIST = b"R"
"""The kind of notices that have a list of revoked agents."""
_WARN_AGAIN = 86400.0  # seconds
_log = logging.getLogger("collegium.live")


class Upkeep:
    """A thread that looks at an agent's files every half second, and at once after `look_now`.

    on_revoked: called when this agent itself is revoked;
    on_reload: called by `look_now`, for whatever else is to be read again.
    """

    def __init__(
        self,
        folder: Path,
        epochs: Epochs,
        *,
        on_revoked: Callable[[], object],
        on_reload: Callable[[], object] = lambda: None,
    ) -> None:
        self._epochs, self._transport = epochs, epochs.carrier
        place = self._transport.place
        assert place.tls is not None
        self._name, self._tls = place.name, place.tls
        self._on_revoked, self._on_reload = on_revoked, on_reload
        self._configuration = folder / configuration.FILE
        self._seen: tuple[int, ...] = ()
        self._revocations = Revocations(folder, place.tls.ca, place.network, self._revoked)
        self._stamp = _stamp(place.tls.certificate, place.tls.key)
        self.certificate_end = keys.check(place.tls, place.name).timestamp()
        """When the certificate in use ends, in seconds since 1970."""
        self._warned, self._wait = 0.0, EVERY
        self._wake, self._reload, self._closed = threading.Event(), False, False
        self._thread = threading.Thread(target=self._run, name=f"{place.name}-upkeep", daemon=True)
        self._transport.on_notice = self._told
        epochs.on_news = self._wake.set
        self._revocations.look()
        self._look_at_configuration()
        serial = keys.serial(self._tls.certificate)
        if serial in self._revocations.known.serials or place.name in self._revocations.known.names:
            raise LiveError(f"{place.name} was revoked by the network's authority: collegium live revoke --restore")

    def start(self) -> None:
        """Begin; the transport is open."""
        self._thread.start()

    def look_now(self, *_: object) -> None:
        """Read everything again that may have changed: what SIGHUP asks for."""
        self._reload = True
        self._wake.set()

    def close(self) -> None:
        """End."""
        self._closed = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _run(self) -> None:
        while not self._closed:
            self._wait = EVERY
            try:
                if self._reload:
                    self._reload = False
                    self._on_reload()
                self._revocations.look()
                self._look_at_configuration()
                if self._epochs.look():
                    self._wait = TURN
                self._look_at_certificate()
            except LiveError as problem:
                _log.error("%s: %s", self._name, problem)
            except Exception:  # without this thread nobody would be refused any more
                _log.exception("%s: its files could not be looked at", self._name)
            self._wake.wait(self._wait)
            self._wake.clear()

    def _told(self, notice: bytes) -> None:
        """A neighbour passes something on."""
        kinds = {LIST: self._revocations.offer, CONFIGURATION: self._epochs.offer, PHASES: self._epochs.heard}
        use = kinds.get(notice[:1])
        if use is None:
            raise LiveError("its kind is unknown: does that agent run another version of Collegium?")
        use(notice[1:])

    def _look_at_configuration(self) -> None:
        stamp = _stamp(self._configuration)
        if stamp and stamp != self._seen:
            self._seen = stamp
            try:
                self._epochs.offer(self._configuration.read_bytes(), keep=False)
            except (OSError, LiveError) as problem:
                _log.warning("%s is not used: %s", self._configuration, problem)

    def _look_at_certificate(self) -> None:
        stamp = _stamp(self._tls.certificate, self._tls.key)
        if stamp != self._stamp:
            try:
                end = keys.check(self._tls, self._name).timestamp()
            except LiveError as problem:  # perhaps only one of the two files is there yet
                if self._warned < time.monotonic() - 10:
                    self._warned = time.monotonic()
                    _log.warning("%s: the new certificate is not used: %s", self._name, problem)
                return
            if not self._transport.renew():
                self._wait = TURN
                return
            self._stamp, self.certificate_end = stamp, end
            _log.info("%s: a new certificate is in use, valid until %s", self._name, _day(end))
        left = self.certificate_end - time.time()
        if left < keys.warn_before(self._tls) and time.monotonic() - self._warned > _WARN_AGAIN:
            self._warned = time.monotonic()
            _log.warning("%s: its certificate ends on %s: collegium live renew", self._name, _day(self.certificate_end))

    def _revoked(self, new: Revoked) -> None:
        if self._name in new.names and self._thread.is_alive():
            _log.error("%s was revoked by the network's authority: it stops", self._name)
            self._on_revoked()
        self._transport.deny(new.names)
        self._transport.tell(LIST + self._revocations.content)
        self._epochs.deny(new.names, f"was revoked by the network's authority (list {new.number})")


def _stamp(*paths: Path) -> tuple[int, ...]:
    try:
        return tuple(one for path in paths for one in (path.stat().st_mtime_ns, path.stat().st_ino))
    except OSError:
        return ()


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
