"""A live network in operation: agents restarted under load, what the journal costs, an hour of steady work.

python -m benchmarks.live_operations rolling 10      # ten times round nine agents at 500 items a second
python -m benchmarks.live_operations change          # a tenth agent joins and one leaves at 500 items a second
python -m benchmarks.live_operations journal
python -m benchmarks.live_operations soak --seconds 3600 --rate 800
"""

import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from collegium import policy, topology
from collegium.errors import LiveError
from collegium.live import launcher
from collegium.live.answers import ItemResult
from collegium.live.apply import Wanted, apply
from collegium.live.folder import NetworkSettings, create
from collegium.live.launcher import Member

NINE = policy.uniform(topology.grid(3, 3))
EVERY = 0.1  # seconds between batches
Asked = tuple[float, list[Future[list[ItemResult]]]]


class Load:
    """Items at a steady rate, at all agents at once, as sensors bring them; `asked` has when, and what will come."""

    def __init__(self, network: list[Member], rate: float, keep: bool = True) -> None:
        self.asked: list[Asked] = []
        self.items, self.failed, self.named = 0, 0, 0
        self._clients = [member.client(60.0) for member in network]
        self._pool = ThreadPoolExecutor(60 * len(network))
        self._over, self._keep, self._count = threading.Event(), keep, round(rate * EVERY)
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._over.wait(max(0.0, due - time.monotonic())):
            names, due = list(range(self.items, self.items + self._count)), due + EVERY
            futures = [
                self._pool.submit(one.decide, names, scores=np.full(self._count, 0.5 + k))
                for k, one in enumerate(self._clients)
            ]
            self.items += self._count
            if self._keep:
                self.asked.append((time.monotonic(), futures))
            else:
                for future in futures:
                    future.add_done_callback(self._look)

    def _look(self, future: Future[list[ItemResult]]) -> None:
        if future.exception() is not None:
            self.failed += 1
        else:
            self.named += sum(bool(one.missed or one.evidence.missing) for one in future.result())

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._pool.shutdown()
        for client in self._clients:
            client.close()


def rolling(folder: Path, times: int = 1, rate: float = 500.0) -> dict[str, float]:
    """One agent restarted at a time, so many times round: requests, failed ones, answers, those that name an agent that
    was down when the item came, and those that name another."""
    create(folder, NINE, None, NetworkSettings(port=0, http_port=0))
    network, away = launcher.up(folder, wait=120), []
    try:
        with Load(network, rate) as load:
            for member in network * times:
                begun = time.monotonic()
                os.kill(member.pid or 0, signal.SIGTERM)
                _wait(lambda m=member: m.pid is None)  # type: ignore[misc]
                member.start()
                _wait(lambda: all(map(_is_ready, network)))
                away.append((begun, time.monotonic(), member.file.agent.name))
                time.sleep(0.3)
    finally:
        launcher.down(folder)
    counts = dict.fromkeys(("requests", "failed", "answers", "name one that was down", "name another"), 0.0)
    for at, futures in load.asked:
        down = {name for begun, ended, name in away if begun - 1.0 <= at <= ended}
        for future in futures:
            counts["requests"] += 1
            if future.exception() is not None:
                counts["failed"] += 1
                continue
            for one in future.result():
                missing = {*one.missed, *one.evidence.missing}
                counts["answers"] += 1
                counts["name one that was down"] += bool(missing and missing <= down)
                counts["name another"] += not missing <= down
    return counts | {"longest away, s": max(ended - begun for begun, ended, _ in away)}


def change(folder: Path, rate: float = 500.0) -> dict[str, float]:
    """A tenth agent joins and one leaves: seconds until all are in the new epoch, requests to those that stay, failed
    ones, answers, and those that name another than those two, which are given no views here."""
    create(folder, policy.uniform(topology.ring(9)), None, NetworkSettings(port=0, http_port=0))
    network = launcher.up(folder, wait=120)
    wanted = Wanted(policy.uniform(topology.ring(9)), add=["agent-9"], remove=["agent-4"], ports=(0, 0))
    try:
        with Load([one for one in network if one.file.agent.name != "agent-4"], rate) as load:
            time.sleep(2.0)
            applied = apply(folder, wanted)
            time.sleep(2.0)
    finally:
        launcher.down(folder)
    answers = [future for _, futures in load.asked for future in futures]
    found = [one for future in answers if future.exception() is None for one in future.result()]
    others = sum(not {*one.missed, *one.evidence.missing} <= {"agent-9", "agent-4"} for one in found)
    return {
        "seconds": applied.seconds or float("nan"), "requests": len(answers),
        "failed": sum(future.exception() is not None for future in answers),
        "answers": len(found), "name another": others,
    }  # fmt: skip


def journal(folder: Path, pairs: int = 5, items: int = 4000) -> dict[str, float]:
    """Items a second with a journal over those without, four batches in flight; pairs of runs in turn."""
    networks = {}
    for name, kept in (("with", True), ("without", False)):
        create(folder / name, NINE, None, NetworkSettings(port=0, http_port=0, journal=kept))
        networks[name] = launcher.up(folder / name, wait=120)
    ratios, rates = [], []
    try:
        clients = {name: [member.client(120.0) for member in network] for name, network in networks.items()}
        for i in range(pairs + 1):
            found = {}
            for name in ("with", "without") if i % 2 else ("without", "with"):
                begun = time.perf_counter()
                with ThreadPoolExecutor(36) as pool:
                    for batch in range(4):
                        names = range(i * items + batch * items // 4, i * items + (batch + 1) * items // 4)
                        for one in clients[name]:
                            pool.submit(one.decide, names, scores=np.ones(len(names)))
                found[name] = items / (time.perf_counter() - begun)
            if i:  # the first warms up
                ratios.append(found["with"] / found["without"])
                rates.append(found["without"])
    finally:
        for name in networks:
            launcher.down(folder / name)
    return {"items/s without": statistics.median(rates), "with, as a share of it": statistics.median(ratios)}


def soak(folder: Path, seconds: float = 3600.0, rate: float = 800.0) -> dict[str, Any]:
    """Steady work: memory (MB), files and threads of an agent, the most of all nine, ten times after a tenth of the
    time; and what there is at the end over what there was in the middle, of the agent that grew most."""
    create(folder, NINE, None, NetworkSettings(port=0, http_port=0))
    network, used = launcher.up(folder, wait=120), []
    try:
        with Load(network, rate, keep=False) as load:
            time.sleep(seconds / 10)
            for _ in range(10):
                used.append(_used(network))
                time.sleep(seconds * 0.09)
            used.append(_used(network))
            asked = load.items
    finally:
        launcher.down(folder)
    found: dict[str, Any] = {"items": asked, "failed requests": load.failed, "answers that name one": load.named}
    for name in used[0]:
        found[name] = [max(one[name]) for one in used]
        ratios = [end / middle for middle, end in zip(used[5][name], used[-1][name], strict=True)]
        found[f"{name}, end over middle"] = round(max(ratios), 4)
    return found


def _used(network: list[Member]) -> dict[str, list[float]]:
    homes = [Path(f"/proc/{member.pid}") for member in network]
    page = os.sysconf("SC_PAGE_SIZE") / 1e6
    return {
        "memory": [round(int((home / "statm").read_text().split()[1]) * page, 1) for home in homes],
        "files": [len(list((home / "fd").iterdir())) for home in homes],
        "threads": [len(list((home / "task").iterdir())) for home in homes],
    }


def _is_ready(member: Member) -> bool:
    try:
        with member.client(5.0) as client:
            return client.status().ready
    except LiveError:
        return False


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("an agent did not come back")
        time.sleep(0.02)


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        restarted, price = rolling(Path(scratch) / "rolling"), journal(Path(scratch) / "journal")
    return [
        {"figure": "nine agents restarted one by one: failed requests", "value": restarted["failed"], "target": "0"},
        {"figure": "  answers that name an agent", "value": restarted["name one that was down"], "target": ""},
        {"figure": "  answers that name one that was not down", "value": restarted["name another"], "target": "0"},
        {"figure": "items/s with a journal over without", "value": price["with, as a share of it"], "target": "≥ 0.8"},
    ]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        function, *words = sys.argv[1:]
        named = {word[2:]: float(words[i + 1]) for i, word in enumerate(words) if word.startswith("--")}
        numbers = [] if named else map(int, words)
        print(globals()[function](Path(scratch) / "network", *numbers, **named))
