"""One agent as a process: reads its file, loads its model, joins the network and serves its port until stopped."""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from collegium._serving.limits import ServiceSettings
from collegium._serving.server import is_loopback
from collegium.errors import LiveError
from collegium.live import config, model, privacy, running, signing, spans
from collegium.live.agent import Agent
from collegium.live.epochs import Epochs
from collegium.live.gain import Gains, gain_file
from collegium.live.http.app import agent_server
from collegium.live.journal import Journal, JournaledAgent
from collegium.live.peer_diagnosis import PeerDiagnosis
from collegium.live.table import Doubles
from collegium.live.transport.faulty import FaultyTransport
from collegium.live.transport.zenoh import LEASE, ZenohTransport
from collegium.live.upkeep import Upkeep

_log = logging.getLogger("collegium.live")


def run(path: Path) -> None:
    """Run the agent of a file until SIGTERM or SIGINT."""
    begun = time.monotonic()
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True
    )
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a thousand connections are allowed, and links besides
    sys.setswitchinterval(0.0005)  # threads that bring frames are not to wait for the one that answers requests
    file = config.read(path)
    folder, port = path.resolve().parent, file.http
    place = file.place(folder)
    journal = Journal(folder / port.journal) if port.journal else None
    diagnosis = PeerDiagnosis(place, lambda number, reason: epochs.explain(number, reason))
    faults = file.transport_faults()
    if faults is not None:
        _log.warning("%s adds faults on purpose: %s", place.name, faults)
    # One that joins is met by its neighbours: they cannot let it in before they have prepared. Nobody counts as gone
    # in a pause in which none of its messages would count as lost.
    lease = max(LEASE, file.deadlines.least)
    epochs = Epochs(
        path.resolve(), file, ZenohTransport(place, diagnosis, dials=not file.agent.joins, lease=lease),
        _Agents(path.resolve(), journal),
        on_left=lambda: os.kill(os.getpid(), signal.SIGTERM),
        wrap=lambda transport: transport if faults is None else FaultyTransport(transport, faults),
    )  # fmt: skip
    epochs.on_presence = lambda number, there: (diagnosis.present if there else diagnosis.missing)(number)
    agent = cast("Agent", epochs)
    if (port.https or port.client_certificates) and place.tls is None:
        raise LiveError(f"{path}: https needs the agent's certificate, and there is no table [tls]")
    server = agent_server(
        agent,
        ServiceSettings(token_sha256=port.token_sha256, reader_sha256=port.reader_sha256),
        port.host,
        port.port,
        tls=place.tls if port.https or port.client_certificates else None,
        client_certificates=port.client_certificates,
        started=lambda: _log.info("%s answers on %s after %.1f s", place.name, server.url, time.monotonic() - begun),
    )
    upkeep = None
    if place.tls is not None:
        upkeep = Upkeep(
            folder, epochs, on_revoked=lambda: os.kill(os.getpid(), signal.SIGTERM),
            on_reload=lambda: server.application.reload(config.read(path).http),
        )  # fmt: skip
        server.application.certificate_end = lambda: upkeep.certificate_end
        if _is_exposed(place.tls.key):
            _log.warning("others than its owner can read the key %s: chmod 600 it", place.tls.key)
    elif not is_loopback(file.agent.host):
        _log.warning(
            "%s listens on %s without certificates: whoever reaches it can take part", place.name, place.listen
        )
    signal.signal(signal.SIGHUP, signal.SIG_IGN if upkeep is None else upkeep.look_now)
    diagnosis.start(read_log=True)
    try:
        server.application.starting_until = time.monotonic() + file.deadlines.longest + file.deadlines.view
        epochs.start()
        if upkeep is not None:
            upkeep.start()
        server.run()
    finally:
        if upkeep is not None:
            upkeep.close()
        epochs.stop()
        if journal is not None:
            journal.close()
        diagnosis.close()
        _log.info("%s has left", place.name)
    if epochs.has_left:  # an error, so that systemd does not start it again
        raise LiveError(f"{place.name} has no part in the network any more: its file {path} is not needed")


class _Agents:
    """Agents of one file, one for each epoch; what does not change from one to the next is shared."""

    def __init__(self, path: Path, journal: Journal | None) -> None:
        self._path, self._journal, self._is_first = path, journal, True
        self._scores: dict[str, Callable[[NDArray[Any]], Doubles] | None] = {}
        self._gains: dict[int, Gains] = {}
        self._traces = spans.provider_of_environment(path.stem)

    def __call__(self, file: config.AgentFile) -> Agent:
        path, folder = self._path, self._path.parent
        file.check_model(folder)
        known, classes = config.hash_of_model(file.model, folder), len(file.model.classes)
        if known not in self._scores:
            self._scores = {known: model.load(file.model, folder)}
        if classes not in self._gains:
            self._gains[classes] = Gains(gain_file(path), classes)
        settings = {
            "score": self._scores[known],
            "gains": self._gains[classes],
            "traces": self._traces,
            **file.agent_settings(),
        }
        if settings["rule"].codec.adds_noise:
            settings["secret"] = privacy.secret_of(path.with_suffix(".secret"))
            budget = file.privacy.budget if file.privacy else None
            settings["spending"] = privacy.spending_of(settings["rule"], budget, path.with_suffix(".ledger"))
        if signing.needs_keys(file.rule()):
            key, me, talk = path.with_suffix(".private"), file.agent, file.talk
            settings["keys"] = signing.load(key, file.rule(), me.number, talk.public_keys, me.network, talk.bound)
        replays, self._is_first = self._is_first, False
        if self._journal is None:
            return Agent(file.place(folder), **settings)
        return JournaledAgent(self._journal, file.place(folder), replays=replays, **settings)


def _is_exposed(key: Path) -> bool:
    """Whether others than its owner can read it; of a file that was given to this process's group, as Kubernetes does
    with secrets, others than the group."""
    found = key.stat()
    return bool(found.st_mode & (0o077 if found.st_uid == os.geteuid() else 0o007))


def start(files: list[Path]) -> None:
    """Start one process for each agent, noted beside its file; all of them, or none.

    They are forked from this process, which has loaded what they need and has neither threads nor a session, and go on
    when it ends: they share the memory of what was loaded, and nobody loads it twice.
    """
    if any((path := config.read(file).model.path) and not path.endswith(".npz") for file in files):
        import collegium.team  # noqa: F401 - what loads any other model
    gc.freeze()  # a collection would write to every page that is shared
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until they read their files: `apply` may ask them to before that
    begun: list[int] = []
    for file in files:
        try:
            running.log(file).parent.mkdir(exist_ok=True)
            log = os.open(running.log(file), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            number = os.fork()
            if number:
                begun.append(number)
                os.close(log)
                running.note(file, number)
        except OSError as problem:
            for number in begun:
                os.kill(number, signal.SIGKILL)
            reason = problem.strerror or problem
            raise LiveError(f"{file.stem} cannot be started ({reason}): see {running.log(file).parent}") from None
        if not number:
            _leave(file.stem, log)
            run(file)
            return


def _leave(name: str, log: int) -> None:
    """Make a forked process one of its own: session, name, input and output, signals, random numbers."""
    os.setsid()
    with suppress(OSError):  # Linux has it: what `ps` and `top` show
        Path("/proc/self/comm").write_text(name)
    for number, taken in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
        os.dup2(taken, number)
    os.close(log)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    np.random.seed()  # noqa: NPY002 - for models that draw from it; Python seeds its own anew
