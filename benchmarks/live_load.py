"""The live network under load: single-item requests, three times too much, complete:25, fifty agents on one machine."""

import json
import multiprocessing
import socket
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from collegium import policy, topology
from collegium.live import launcher
from collegium.live.folder import NetworkSettings, create
from collegium.live.launcher import Member
from collegium.policy import Policy

NINE = policy.uniform(topology.grid(3, 3))
PARALLEL = 20  # items in flight, each at nine agents
SECONDS = 8.0


class Connection:
    """A connection that costs its user little: the agents share the machine with it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, body: bytes) -> tuple[int, bytes]:
        head = "POST /v1/items HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "
        head += f"{len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._received()
        head_bytes, _, answer = data.partition(b"\r\n\r\n")
        length = int(head_bytes.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(answer) < length:
            answer += self._received()
        return int(head_bytes[9:12]), answer

    def _received(self) -> bytes:
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the agent closed the connection")
        return data


def worker(ports: list[int], offset: int, seconds: float, gate: Any, out: Any) -> None:
    """Single items to some of the agents, one after the other in each of several threads; latencies in seconds."""
    taken: list[float] = []

    def ask(port: int, lane: int) -> None:
        connection, item = Connection(port), 10_000_000 * offset + lane
        while time.perf_counter() < end:
            begun = time.perf_counter()
            status, answer = connection.post(b'{"id":%d,"score":1.0}' % item)
            assert status == 200, answer
            taken.append(time.perf_counter() - begun)
            item += PARALLEL

    gate.wait()
    end = time.perf_counter() + seconds
    threads = [threading.Thread(target=ask, args=(port, lane)) for port in ports for lane in range(PARALLEL)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.put(taken)


def singles(folder: Path) -> tuple[float, float]:
    """Requests a second, one item each, and the 99th percentile of their latency in ms."""
    with_network = _network(folder, NINE)
    try:
        ports = [member.file.http.port for member in with_network]
        context = multiprocessing.get_context("spawn")
        figures = []
        for turn, seconds in enumerate((2.0, SECONDS)):
            gate, out = context.Barrier(3), context.Queue()
            processes = [context.Process(target=worker, args=(ports[i::3], turn, seconds, gate, out)) for i in range(3)]
            for process in processes:
                process.start()
            taken = [one for _ in processes for one in out.get(timeout=120)]
            for process in processes:
                process.join(30)
            figures = [len(taken) / seconds, 1e3 * float(np.quantile(taken, 0.99))]
        return figures[0], figures[1]
    finally:
        launcher.down(folder)


def overload(folder: Path, flows: int, seconds: float = SECONDS) -> tuple[float, float]:
    """Items a second decided with every view, when `flows` clients at each agent send batches without a pause, and
    the share of results that lack a view."""
    network = _network(folder, NINE)
    good, bad = [0] * 9, [0] * 9

    def pour(k: int, lane: int) -> None:
        connection, batch, scores = Connection(network[k].file.http.port), lane, [0.5] * 250
        while time.perf_counter() < end:
            ids = list(range(batch * 250, batch * 250 + 250))
            status, answer = connection.post(json.dumps({"ids": ids, "scores": scores}).encode())
            if status == 429:
                time.sleep(json.loads(answer)["retry_after"])
                continue
            whole = answer.count(b'"views":9')
            good[k] += whole
            bad[k] += 250 - whole
            batch += flows

    try:
        end = time.perf_counter() + seconds
        with ThreadPoolExecutor(9 * flows) as pool:
            list(pool.map(lambda one: pour(*one), [(k, lane) for lane in range(flows) for k in range(9)]))
    finally:
        launcher.down(folder)
    return sum(good) / 9 / seconds, sum(bad) / max(sum(good) + sum(bad), 1)


def complete(folder: Path) -> tuple[float, float]:
    """Seconds for 1 000 items among 25 agents that all hear each other, and bytes sent over what is needed."""
    over = policy.uniform(topology.complete(25))
    network = _network(folder, over)
    try:
        scores = np.random.default_rng(0).normal(size=(1000, 25))
        clients = [member.client(120) for member in network]
        with ThreadPoolExecutor(25) as pool:
            begun = time.perf_counter()
            list(pool.map(lambda k: clients[k].decide(range(1000), scores=scores[:, k]), range(25)))
            seconds = time.perf_counter() - begun
        sent = sum(client.status().bytes.sent for client in clients)
    finally:
        launcher.down(folder)
    return seconds, sent / (20 * over.links * 8 * 1000)


def fifty(folder: Path) -> tuple[float, float]:
    """Seconds until fifty agents are connected, and the largest resident memory in MB."""
    create(folder, policy.uniform(topology.ring(50)), None, NetworkSettings(port=0, http_port=0))
    begun = time.perf_counter()
    network = launcher.up(folder, wait=120)
    seconds = time.perf_counter() - begun
    try:
        sizes = [int(Path(f"/proc/{member.pid}/statm").read_text().split()[1]) * 4096 / 1e6 for member in network]
    finally:
        launcher.down(folder)
    return seconds, max(sizes)


def _network(folder: Path, over: Policy) -> list[Member]:
    create(folder, over, None, NetworkSettings(port=0, http_port=0))
    return launcher.up(folder, wait=120)


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        rate, p99 = singles(home / "singles")
        best = max(overload(home / f"best-{flows}", flows)[0] for flows in (2, 4))
        goodput, lacking = overload(home / "overload", 12)
        seconds, bytes_ratio = complete(home / "complete")
        start, memory = fifty(home / "fifty")
    return [
        {"figure": "single-item requests a second, nine agents together", "value": rate, "target": "≥ 1000"},
        {"figure": "  99th percentile of their latency: ms", "value": p99, "target": "≤ 200"},
        {"figure": "batches of 250: items a second at the best load", "value": best, "target": ""},
        {"figure": "  at three times that load, as a share of it", "value": goodput / best, "target": "≥ 0.8"},
        {"figure": "  share of results that lack a view", "value": lacking, "target": "0"},
        {"figure": "complete:25, 1 000 items: seconds", "value": seconds, "target": "≤ 10"},
        {"figure": "  bytes sent as a multiple of what is needed", "value": bytes_ratio, "target": ""},
        {"figure": "fifty agents are connected after: seconds", "value": start, "target": "≤ 10"},
        {"figure": "  largest of them: MB", "value": memory, "target": "≤ 80"},
    ]
