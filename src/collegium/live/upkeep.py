"""What a running agent looks after beside its items: its certificate, who is revoked, the network's configuration."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from collegium.errors import LiveError
from collegium.live import configuration, keys, revocation
from collegium.live.epochs import CONFIGURATION, PHASES, Epochs
from collegium.live.revocation import Revocations, Revoked

EVERY = 0.5  # seconds
TURN = 0.05  # seconds, while neighbours renew their certificates first, and during a change of the network
LIST = b"R"
"""The kind of notices that have a list of revoked agents."""
_WARN_AGAIN = 86400.0  # seconds between warnings of the end of a certificate
_COMPLAIN_AGAIN = 10.0  # and of one that cannot be used
_log = logging.getLogger("collegium.live")


class Upkeep:
    """A thread that looks at an agent's files every half second, and at once after `look_now`.

    on_revoked: called when this agent itself is revoked;
    on_reload: called by `look_now`, for whatever else is to be read again;
    clock: seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        epochs: Epochs,
        *,
        on_revoked: Callable[[], object],
        on_reload: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._epochs, self._transport = epochs, epochs.carrier
        place = self._transport.place
        assert place.tls is not None
        self._name, self._tls = place.name, place.tls
        self._on_revoked, self._on_reload, self._clock = on_revoked, on_reload, clock
        self._folder = folder
        self._seen: dict[str, tuple[int, ...]] = {}
        self._revocations = Revocations(folder, place.tls.ca, place.network, self._revoked)
        self._stamp = _stamp(place.tls.certificate, place.tls.key)
        self.certificate_end = self._end_of_files()
        """When the certificate in use ends, in seconds since 1970."""
        self._warned = self._refused = 0.0  # when it last warned of its end; that a new one is not used
        self._wake, self._reload, self._closed = threading.Event(), False, False
        self._is_in_use = False
        self._thread = threading.Thread(target=self._run, name=f"{place.name}-upkeep", daemon=True)
        self._transport.on_notice = self._told
        epochs.on_news = self._wake.set
        self._look_at_lists()
        serial = keys.serial(self._tls.certificate)
        if serial in self._revocations.known.serials or place.name in self._revocations.known.names:
            raise LiveError(f"{place.name} was revoked by the network's authority: collegium live revoke --restore")
        self._is_in_use = True

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

    def look(self) -> float:
        """Look at everything once; seconds until it is to be done again."""
        wait = EVERY
        try:
            if self._reload:
                self._reload = False
                self._on_reload()
            self._look_at_lists()
            if self._epochs.look():
                wait = TURN
            if not self._look_at_certificate():
                wait = TURN
        except LiveError as problem:
            _log.error("%s: %s", self._name, problem)
        except Exception:  # without it nobody would be refused any more
            _log.exception("%s: its files could not be looked at", self._name)
        return wait

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(self.look())
            self._wake.clear()

    def _told(self, notice: bytes) -> None:
        """A neighbour passes something on."""
        kinds = {LIST: self._revocations.offer, CONFIGURATION: self._epochs.offer, PHASES: self._epochs.heard}
        use = kinds.get(notice[:1])
        if use is None:
            raise LiveError("its kind is unknown: does that agent run another version of Collegium?")
        use(notice[1:])

    def _look_at_lists(self) -> None:
        """Read what the authority has signed, where it has changed."""
        for name, offer in ((revocation.FILE, self._revocations.offer), (configuration.FILE, self._epochs.offer)):
            path = self._folder / name
            stamp = _stamp(path)
            if stamp != self._seen.get(name, ()):
                self._seen[name] = stamp
                try:
                    if stamp:
                        offer(path.read_bytes(), keep=False)
                except (OSError, LiveError) as problem:
                    _log.warning("%s is not used: %s", path, problem)

    def _end_of_files(self) -> float:
        """When the certificate in the files ends; LiveError if they cannot be used."""
        return keys.check(self._tls, self._name, datetime.fromtimestamp(self._clock(), UTC)).timestamp()

    def _look_at_certificate(self) -> bool:
        """Use a new one, and warn of its end; False if neighbours renew theirs first."""
        stamp, now = _stamp(self._tls.certificate, self._tls.key), self._clock()
        if stamp != self._stamp:
            try:
                end = self._end_of_files()
            except LiveError as problem:  # perhaps only one of the two files is there yet
                if now > self._refused + _COMPLAIN_AGAIN:
                    self._refused = now
                    _log.warning("%s: the new certificate is not used: %s", self._name, problem)
                return True
            if not self._transport.renew():
                return False
            self._stamp, self.certificate_end = stamp, end
            _log.info("%s: a new certificate is in use, valid until %s", self._name, _day(end))
        if self.certificate_end - now < keys.warn_before(self._tls) and now > self._warned + _WARN_AGAIN:
            self._warned = now
            _log.warning("%s: its certificate ends on %s: collegium live renew", self._name, _day(self.certificate_end))
        return True

    def _revoked(self, new: Revoked) -> None:
        if self._name in new.names and self._is_in_use:
            _log.error("%s was revoked by the network's authority: it stops", self._name)
            self._on_revoked()
        self._transport.deny(new.names)
        self._transport.tell(LIST + self._revocations.content)
        self._epochs.deny(new.names, f"was revoked by the network's authority (list {new.number})")


def _stamp(*paths: Path) -> tuple[int, ...]:
    try:
        return tuple(one for found in map(Path.stat, paths) for one in (found.st_mtime_ns, found.st_size, found.st_ino))
    except OSError:
        return ()


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
