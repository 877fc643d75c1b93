"""Which process runs an agent."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from collegium.live import running
from live_processes import wait_for

# Busy threads end some time after the first one.
PROGRAM = """
import hashlib, socket, threading
port = socket.create_server(("127.0.0.1", 0))
data = bytes(10_000_000)
for _ in range(12):
    threading.Thread(target=lambda: [hashlib.sha256(data) for _ in iter(int, 1)], daemon=True).start()
print(port.getsockname()[1], flush=True)
threading.Event().wait()
"""


def test_a_process_that_has_ended_has_freed_its_ports(tmp_path: Path) -> None:
    """Whoever starts the agent again, as soon as its process has ended, listens on them."""
    agent = tmp_path / "agent-0.toml"
    running.log(agent).parent.mkdir()
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            port = int(child.stdout.readline())
            running.note(agent, child.pid)
            assert running.process(agent) == child.pid
            os.kill(child.pid, signal.SIGKILL)
            wait_for(lambda: running.process(agent) is None, pause=0.0)
            socket.create_server(("127.0.0.1", port)).close()
