"""The live network beside a raw Zenoh exchange of the same bytes: nine processes, a 3×3 grid, certificates on."""

import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from collegium import policy, protocol, schedule, topology
from collegium.live import config, launcher
from collegium.live.folder import NetworkSettings, create
from collegium.live.launcher import Member
from collegium.live.transport.zenoh import ZenohTransport

OVER = policy.uniform(topology.grid(3, 3))
ROUNDS = 1000  # of one item alone: what it waits for nine requests by HTTP, tens of milliseconds, counts for little
ITEMS, BATCH = 20_000, 1000
NEIGHBOURS = Path(__file__).parent / "neighbours"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "9"]


def raw(path: str, rounds: int, size: int, warm: int, gate: Any, out: Any) -> None:
    """One process that does nothing but exchange `size` bytes with its neighbours, round after round."""
    sys.setswitchinterval(0.0005)
    place = config.read(Path(path)).place(Path(path).parent)
    transport = ZenohTransport(place)
    here, lock, done = set(), threading.Lock(), threading.Event()
    need, received, payload = len(place.hears), {}, bytes(size)
    state = {"round": 0}

    def step() -> None:
        while received.get(state["round"], 0) == need:
            received.pop(state["round"])
            if state["round"] == warm + rounds:
                done.set()
                return
            if state["round"] == warm:
                state["begun"] = time.perf_counter()
            state["round"] += 1
            transport.broadcast(state["round"].to_bytes(4, "little") + payload)

    def receive(sender: int, frame: bytes) -> None:
        with lock:
            t = int.from_bytes(frame[:4], "little")
            received[t] = received.get(t, 0) + 1
            step()

    transport.open(receive, lambda number, there: here.add(number))
    while len(here) < need:
        time.sleep(0.01)
    gate.wait()
    time.sleep(0.2)
    with lock:
        received[0] = need
        step()
    done.wait(120)
    out.put((time.perf_counter() - state["begun"]) / rounds)
    gate.wait()
    transport.close()


def raw_round(folder: Path, size: int, rounds: int = 2000) -> float:
    """Seconds a round of nine processes."""
    context = multiprocessing.get_context("spawn")
    gate, out = context.Barrier(9), context.Queue()
    paths = [str(folder / f"agent-{k}.toml") for k in range(9)]
    processes = [context.Process(target=raw, args=(path, rounds, size, 200, gate, out)) for path in paths]
    for process in processes:
        process.start()
    figures = [out.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(30)
    return float(np.min(figures))


def ask(network: list[Member], names: range, scores: np.ndarray) -> tuple[float, list[Any]]:
    """Seconds until all nine have answered, and their results."""
    clients = [member.client() for member in network]
    with ThreadPoolExecutor(9) as pool:
        begun = time.perf_counter()
        answers = list(pool.map(lambda k: clients[k].decide(names, scores=scores[:, k]), range(9)))
        seconds = time.perf_counter() - begun
    for client in clients:
        client.close()
    return seconds, answers


def one_item(folder: Path) -> float:
    """Seconds a round for one item alone."""
    create(folder, OVER, None, NetworkSettings(rounds=ROUNDS, port=0, http_port=0))
    network = launcher.up(folder)
    try:
        scores = np.random.default_rng(0).normal(size=(1, 9))
        rounds = []
        for i in range(12):
            _, answers = ask(network, range(i, i + 1), scores)
            rounds.append(min(column[0].latency_ms for column in answers) / 1e3 / ROUNDS)
    finally:
        launcher.down(folder)
    return float(np.min(rounds[2:]))


def flow(
    folder: Path, rule: protocol.Rule, over: Any = OVER, rounds: int = 20, classes: int = 2
) -> tuple[float, float, float]:
    """Items a second with 1 000 in flight, bytes sent per item, and B_total of two classes in bytes."""
    labels = (-1, 1) if classes == 2 else tuple(range(classes))
    create(folder, over, None, NetworkSettings(rounds=rounds, rule=rule, port=0, http_port=0, classes=labels))
    network = launcher.up(folder)
    try:
        shape = (BATCH, 9) if classes == 2 else (BATCH, 9, classes)
        scores = np.random.default_rng(0).uniform(-1, 1, size=shape)
        ask(network, range(BATCH), scores)
        before = sent(network)
        clients = [member.client() for member in network]

        def pour(k: int) -> None:
            for start in range(BATCH, BATCH + ITEMS, BATCH):
                clients[k].decide(range(start, start + BATCH), scores=scores[:, k])

        begun = time.perf_counter()
        with ThreadPoolExecutor(9) as pool:
            list(pool.map(pour, range(9)))
        seconds = time.perf_counter() - begun
        return ITEMS / seconds, (sent(network) - before) / ITEMS, 20 * OVER.links * rule.message_bits() / 8
    finally:
        launcher.down(folder)


def latency(folder: Path, rule: protocol.Rule, over: Any, rounds: int) -> float:
    """Milliseconds from an item's beginning to its decision, the median over 50 items, one at a time."""
    create(folder, over, None, NetworkSettings(rounds=rounds, rule=rule, port=0, http_port=0))
    network = launcher.up(folder)
    try:
        scores = np.random.default_rng(0).normal(size=(1, 9))
        answers = [ask(network, range(i, i + 1), scores)[1] for i in range(60)]
    finally:
        launcher.down(folder)
    return float(np.median([column[0].latency_ms for one in answers[10:] for column in one]))


def sent(network: list[Member]) -> int:
    """Bytes over all links so far."""
    total = 0
    for member in network:
        with member.client() as client:
            total += client.status().bytes.sent
    return total


def start_time(folder: Path) -> float:
    """Seconds until one agent answers."""
    create(folder, OVER, None, NetworkSettings(port=0, http_port=0))
    member = launcher.members(folder)[0]
    begun = time.perf_counter()
    member.start()
    try:
        with member.client() as client:
            while True:
                try:
                    client.status()
                    return time.perf_counter() - begun
                except Exception:
                    time.sleep(0.01)
    finally:
        launcher.down(folder)


def neighbour(python: str, needs: str, script: str, before: list[str]) -> float | None:
    """Milliseconds a round of another project's, by an interpreter that has it; None if it has not."""
    if before and shutil.which(before[0]) is None:
        return None
    if subprocess.run([python, "-c", f"import {needs}"], capture_output=True).returncode:
        return None
    command = [*before, python, str(NEIGHBOURS / script)]
    return 1e3 * float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout)


def measure(flower: str = sys.executable, disropt: str = sys.executable) -> list[dict[str, Any]]:
    central = neighbour(flower, "flwr", "flower_round.py", [])
    consensus = neighbour(disropt, "disropt, mpi4py", "disropt_consensus.py", MPIRUN)
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        started = start_time(home / "start")
        create(home / "raw", OVER, None, NetworkSettings(port=0, http_port=0))
        # In turns, and the least disturbed of each: the same code may take twice as long a minute later.
        raws, ours = [], []
        for turn in range(3):
            raws.append(1e3 * raw_round(home / "raw", 44))
            ours.append(1e3 * one_item(home / f"one-{turn}"))
        base, alone_ms = min(raws), min(ours)
        rate, size, floor = flow(home / "flow", protocol.DeGroot())
        quick, small, least = flow(home / "small", protocol.Quantised(protocol.DeGroot(), 4, 2.0))
        ten = flow(home / "ten", protocol.DeGroot(), classes=10)[0]
        exact = schedule.exact(9)
        few = flow(home / "exact", exact.rule, exact, exact.rounds)[0]
        usual = latency(home / "usual", protocol.DeGroot(), OVER, 20)
        short = latency(home / "short", exact.rule, exact, exact.rounds)
    return [
        {"figure": "an agent answers after: seconds", "value": started, "target": "≤ 2"},
        {"figure": "raw exchange of 44 bytes, a round: ms", "value": base, "target": ""},
        {"figure": "one item alone, a round: ms", "value": alone_ms, "target": ""},
        {"figure": "one item alone: times the raw exchange", "value": alone_ms / base, "target": "≤ 1.5"},
        {"figure": "  Flower, a central round, gRPC streams without TLS: ms", "value": central, "target": ""},
        {"figure": "  DISROPT, a round by MPI without TLS: ms", "value": consensus, "target": ""},
        {"figure": "1 000 items in flight: items a second", "value": rate, "target": "≥ 8000"},
        {"figure": "  bytes sent per item, floats", "value": size, "target": ""},
        {"figure": "  the same as a multiple of B_total", "value": size / floor, "target": ""},
        {"figure": "the same with 4 bits: items a second", "value": quick, "target": "≥ 8000"},
        {"figure": "  bytes sent per item, 4 bits", "value": small, "target": ""},
        {"figure": "  the same as a multiple of B_total", "value": small / least, "target": ""},
        {"figure": "the same with ten classes: items a second", "value": ten, "target": "≥ half"},
        {"figure": "schedule.exact(9), 1 000 in flight: items a second", "value": few, "target": "≥ 10000"},
        {"figure": "  one item alone, 20 rounds on the grid: ms", "value": usual, "target": ""},
        {"figure": "  one item alone, exact in 4 rounds: ms", "value": short, "target": "≤ a third"},
    ]
