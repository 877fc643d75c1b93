"""One agent as a process: reads its file, loads its model, joins the network and serves its port until stopped."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

from collegium.errors import LiveError
from collegium.live import config, model
from collegium.live.agent import Agent
from collegium.live.http.app import agent_server
from collegium.live.http.limits import ServiceSettings
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
    agent = Agent(
        place,
        {heard.number: heard.weight for heard in file.hears},
        score=model.load(file.model, folder),
        **file.agent_settings(),
    )
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
