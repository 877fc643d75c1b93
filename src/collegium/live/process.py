"""One agent as a process: reads its file, loads its model, joins the network and serves its port until stopped."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from collegium._serving.limits import ServiceSettings
from collegium.errors import LiveError
from collegium.live import config, model, running
from collegium.live.agent import Agent
from collegium.live.http.app import agent_server
from collegium.live.peer_diagnosis import PeerDiagnosis
from collegium.live.transport.base import Transport
from collegium.live.transport.faulty import FaultyTransport
from collegium.live.transport.zenoh import ZenohTransport

_log = logging.getLogger("collegium.live")


def run(path: Path) -> None:
    """Run the agent of a file until SIGTERM or SIGINT."""
    begun = time.monotonic()
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True
    )
    sys.setswitchinterval(0.0005)  # threads that bring frames are not to wait for the one that answers requests
    file = config.read(path)
    folder = path.resolve().parent
    place = file.place(folder)
    agent = Agent(place, score=model.load(file.model, folder), **file.agent_settings())
    port = file.http
    if (port.https or port.client_certificates) and place.tls is None:
        raise LiveError(f"{path}: https needs the agent's certificate, and there is no table [tls]")
    server = agent_server(
        agent,
        ServiceSettings(token_sha256=port.token_sha256),
        port.host,
        port.port,
        tls=place.tls if port.https or port.client_certificates else None,
        client_certificates=port.client_certificates,
        started=lambda: _log.info("%s answers on %s after %.1f s", place.name, server.url, time.monotonic() - begun),
    )
    diagnosis = PeerDiagnosis(place, agent.explain)
    agent.on_presence = lambda number, there: (diagnosis.present if there else diagnosis.missing)(number)
    transport: Transport = ZenohTransport(place, diagnosis)
    faults = file.transport_faults()
    if faults is not None:
        _log.warning("%s adds faults on purpose: %s", place.name, faults)
        transport = FaultyTransport(transport, faults)
    diagnosis.start(read_log=True)
    try:
        agent.start(transport)
        server.run()
    finally:
        agent.stop()
        diagnosis.close()
        _log.info("%s has left", place.name)


def start(files: list[Path]) -> None:
    """Start one process for each agent, noted beside its file; all of them, or none.

    They are forked from this process, which has loaded what they need and has neither threads nor a session, and go on
    when it ends: they share the memory of what was loaded, and nobody loads it twice.
    """
    if any((path := config.read(file).model.path) and not path.endswith(".npz") for file in files):
        import collegium.team  # noqa: F401 - what loads any other model
    gc.freeze()  # a collection would write to every page that is shared
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
