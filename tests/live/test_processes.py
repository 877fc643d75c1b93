"""One process per agent over Zenoh with certificates, against the simulator and against faults."""

import itertools
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from collegium import policy, protocol, topology
from collegium.errors import LiveError
from collegium.live.answers import ItemResult
from collegium.live.launcher import Member
from collegium.live.peers import Deadlines
from collegium.live.transport.faulty import Faults
from collegium.live.transport.zenoh import LEASE
from collegium.network import collaborate
from live_processes import ask_all, neighbour, process_of, running, statistics, status, wait_for

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

NINE = policy.uniform(topology.grid(3, 3))
TWELVE = policy.metropolis(topology.ring(12))


@pytest.mark.parametrize("over", [NINE, TWELVE], ids=["nine", "twelve"])
@pytest.mark.parametrize(
    "rule",
    [
        protocol.DeGroot(),
        protocol.Quantised(protocol.DeGroot(), bits=4, bound=4.0),
        protocol.DeltaTrigger(0.3),
        protocol.LabelStability(2, 0.4),
    ],
    ids=str,
)
def test_live_equals_simulated(rule: protocol.Rule, over: policy.Policy, tmp_path: Path) -> None:
    scores = np.random.default_rng(1).uniform(-3.5, 3.5, size=(300, over.size))
    with running(tmp_path / "net", over, rule=rule, seed=5) as network:
        live = statistics(ask_all(network, scores, batch=70))
    np.testing.assert_array_equal(live, collaborate(scores, over, 20, rule, rng=5).statistics)


def test_one_agent_killed_in_the_middle_and_restarted(tmp_path: Path) -> None:
    """2 000 items; every survivor answers each, and says what it did without; the dead one comes back."""
    n, dead, before = 2000, 4, 500  # the middle of the grid: a neighbour of four
    scores = np.random.default_rng(2).normal(size=(n, 9))
    with running(tmp_path / "net", NINE) as network:
        survivors = [k for k in range(9) if k != dead]
        killed = threading.Event()
        drowning = threading.Thread(target=_drown, args=(network[dead], scores[:, dead], killed))
        drowning.start()
        answers = ask_all(network, scores[:before], batch=50, who=survivors)
        with ThreadPoolExecutor(1) as pool:  # items come while it dies, and after it is dead
            rest = pool.submit(ask_all, network, scores[before:], range(before, n), batch=50, who=survivors)
            os.kill(process_of(network[dead]), signal.SIGKILL)
            killed.set()
            answers = [first + later for first, later in zip(answers, rest.result(), strict=True)]
        drowning.join()
        assert all(len(column) == n for column in answers)
        name = network[dead].file.agent.name
        simulated = collaborate(scores, NINE, 20).statistics[-1]
        whole = np.array([[not one.missed for one in column] for column in answers]).all(axis=0)
        final = np.array([[one.statistic for one in column] for column in answers])
        assert whole[:before].all()
        np.testing.assert_array_equal(final[:, whole], simulated[whole][:, survivors].T)
        neighbours = [i for i, k in enumerate(survivors) if k in (1, 3, 5, 7)]
        last = ask_all(network, scores[:50], range(n, n + 50), who=survivors)  # when everybody knows that it is dead
        for i in neighbours:
            assert last[i][-1].missed == [name]
        assert {one.missed == [] for one in last[0]} == {True}  # a corner hears its own neighbours all along
        assert neighbour(network[1], name).state == "down"
        network[dead].start()
        wait_for(lambda: all(status(member).ready for member in network))
        again = ask_all(network, scores[:300], names=range(2 * n, 2 * n + 300), batch=100)
        np.testing.assert_array_equal(statistics(again)[-1], simulated[:300])


def _drown(member: Member, column: np.ndarray, killed: threading.Event) -> None:
    """Ask the agent that dies, batch after batch, until it is dead."""
    with member.client(10.0) as client:
        for start in range(0, len(column), 50):
            while not killed.is_set():
                with suppress(LiveError):  # asked again: that changes nothing
                    client.decide(range(start, start + 50), scores=column[start : start + 50])
                    break


def test_one_agent_stopped_for_longer_than_the_deadline_and_continued(tmp_path: Path) -> None:
    scores = np.random.default_rng(3).normal(size=(200, 9))
    others = [k for k in range(9) if k != 4]
    with running(tmp_path / "net", NINE, deadlines=Deadlines(longest=6.0, least=4.0, view=6.0, item=60.0)) as network:

        def took(first: int) -> float:
            begun = time.monotonic()
            answers.append(ask_all(network, scores, names=range(first, first + 200), who=others))
            return time.monotonic() - begun

        answers: list[list[list[ItemResult]]] = []
        ask_all(network, scores, names=range(1000, 1200))  # everybody's pace is known
        stopped = process_of(network[4])
        os.kill(stopped, signal.SIGSTOP)
        try:
            waited, later = took(0), min(took(200), took(400), took(600))
            assert neighbour(network[1], "agent-4").state == "down"
        finally:
            os.kill(stopped, signal.SIGCONT)
        assert all(one.missed == ["agent-4"] for one in answers[0][1])
        assert waited < 40.0  # it is given up once, within a few deadlines
        assert later < waited  # and then no longer waited for
        names = itertools.count(10_000, 20)

        def are_all_up() -> bool:
            if {one.state for member in network for one in status(member).neighbours} <= {"up", "late"}:
                return True
            ask_all(network, scores[:20], names=range(first := next(names), first + 20))  # who seemed mute is heard
            return False

        wait_for(are_all_up)
        wait_for(lambda: status(network[4]).items.pending == 0)
        again = ask_all(network, scores, names=range(2000, 2200))
        np.testing.assert_array_equal(statistics(again), collaborate(scores, NINE, 20).statistics)


def test_one_agent_that_pauses_for_less_than_the_deadline_is_missed_by_nobody(tmp_path: Path) -> None:
    """As a busy machine lets processes pause: for longer than neighbours usually need to notice that one is gone."""
    scores, over = np.random.default_rng(6).normal(size=(50, 3)), policy.uniform(topology.complete(3))
    patient = Deadlines(longest=30.0, least=15.0, view=30.0, item=90.0)
    with running(tmp_path / "net", over, deadlines=patient) as network, ThreadPoolExecutor(1) as pool:
        paused = process_of(network[2])
        os.kill(paused, signal.SIGSTOP)
        try:
            asked = pool.submit(ask_all, network, scores)
            time.sleep(2 * LEASE)
        finally:
            os.kill(paused, signal.SIGCONT)
        answers = asked.result()
        assert not [member for member in network if "has left" in member.log.read_text()]
    np.testing.assert_array_equal(statistics(answers), collaborate(scores, over, 20).statistics)


@pytest.mark.parametrize(
    ("faults", "exact"),
    [
        (Faults(loss=0.05, duplicate=0.1), True),
        (Faults(loss=0.2), False),
        (Faults(delay=0.05, jitter=0.02), True),
    ],
    ids=["5 % lost, 10 % doubled", "20 % lost", "50 ms ± 20 ms"],
)
def test_lost_doubled_reordered_and_late_frames(faults: Faults, exact: bool, tmp_path: Path) -> None:
    scores = np.random.default_rng(4).normal(size=(200, 9))
    # Without losses nobody asks, whatever pauses a busy machine makes.
    deadlines = Deadlines(longest=30.0, least=0.5 if faults.loss else 30.0, view=30.0, item=90.0)
    with running(tmp_path / "net", NINE, faults=faults, rounds=8, deadlines=deadlines) as network:
        answers = ask_all(network, scores)
        asked = sum(status(member).re_requested for member in network)
    simulated = collaborate(scores, NINE, 8).statistics
    assert all(len(column) == 200 for column in answers)
    assert (asked > 0) == (faults.loss > 0)  # and a network that only is slow waits for no timer
    if exact:
        np.testing.assert_array_equal(statistics(answers), simulated)
    else:
        final = np.array([[one.statistic for one in column] for column in answers]).T
        assert (np.sign(final) == np.sign(simulated[-1])).mean() > 0.97


def test_under_a_flood_items_wait_and_no_decision_lacks_a_view(tmp_path: Path) -> None:
    """Ten times what it can hold, in batches that come to every agent in another order: nothing is lost or spoilt."""
    from collegium.live.client import Client

    with running(tmp_path / "net", policy.uniform(topology.complete(3)), rounds=20) as network:
        most = status(network[0]).items.most
        n = 10 * most
        scores = np.random.default_rng(5).normal(size=(n, 3))
        before = [_rss(member) for member in network]

        def flood(k: int, start: int) -> int:
            """How many of these items are decided with all views in them, and nobody's message missing."""
            url = f"http://127.0.0.1:{network[k].file.http.port}"
            with Client(url, timeout=120) as client:
                part = slice(start, start + 500)
                found = client.decide(range(start, start + 500), scores=scores[part, k])
                return sum(one.evidence.views == 3 and not one.missed for one in found)

        with ThreadPoolExecutor(60) as pool:
            jobs = [pool.submit(flood, k, start) for start in range(0, n - 499, 500) for k in range(3)]
            assert [job.result() for job in jobs] == [500] * len(jobs)
        overloaded = [status(member).overloaded_s for member in network]
        after = [_rss(member) for member in network]
    assert max(overloaded) > 0
    assert max(b - a for a, b in zip(before, after, strict=True)) < 80e6


def test_an_agent_is_light_and_quick_and_asleep_when_idle(tmp_path: Path) -> None:
    with running(tmp_path / "net", NINE) as network:
        scores = np.random.default_rng(5).normal(size=(1000, 9))
        ask_all(network, scores)
        time.sleep(0.5)
        busy = min(_busiest(network, 3.0) for _ in range(3))
        sizes = [_rss(member) for member in network]
    assert busy < 0.03
    assert max(sizes) < 150e6


def test_neighbours_that_come_and_go_leave_no_open_files_behind(tmp_path: Path) -> None:
    with running(tmp_path / "net", policy.uniform(topology.complete(3))) as network:
        before = len(list(Path(f"/proc/{network[0].pid}/fd").iterdir()))
        for _ in range(3):
            os.kill(process_of(network[2]), signal.SIGKILL)
            wait_for(lambda: not status(network[0]).ready)
            network[2].start()
            wait_for(lambda: status(network[0]).ready)
        wait_for(lambda: len(list(Path(f"/proc/{network[0].pid}/fd").iterdir())) <= before + 8)


def _rss(member: Member) -> int:
    text = Path(f"/proc/{member.pid}/status").read_text()
    return 1024 * int(text.partition("VmRSS:")[2].split()[0])


def _busiest(network: list[Member], seconds: float) -> float:
    """The largest share of a core that an agent takes."""
    begun, before = time.monotonic(), [_cpu(member) for member in network]
    time.sleep(seconds)
    taken = max(_cpu(member) - earlier for member, earlier in zip(network, before, strict=True))
    return taken / (time.monotonic() - begun)


def _cpu(member: Member) -> float:
    fields = Path(f"/proc/{member.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
