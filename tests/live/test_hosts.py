"""Agents on several hosts, each in a network namespace of its own: links cut and healed, the network in two halves."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from collegium import policy, topology
from collegium.live.folder import NetworkSettings, create
from collegium.live.launcher import Member, members
from collegium.live.peers import Deadlines
from collegium.network import collaborate
from live_processes import ask_all, neighbour, statistics, status, wait_for
from namespaces import Hosts

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
SIX = policy.uniform(topology.ring(6))


@contextlib.contextmanager
def on_hosts(folder: Path, hosts: Hosts) -> Iterator[list[Member]]:
    """A ring of six agents on as many hosts; users come in by a door of their own, with the token."""
    addresses = [hosts.address(k) for k in range(6)]
    deadlines = Deadlines(longest=5.0, least=0.5, view=15.0, item=60.0)
    create(folder, SIX, None, NetworkSettings(addresses, 20, deadlines=deadlines))
    processes = []
    try:
        for k in range(6):
            path = folder / f"agent-{k}.toml"
            text = path.read_text().replace(f'host = "{hosts.address(k)}"', f'host = "{hosts.door(k)}"')
            path.write_text(text.replace("https = true", "https = false"))
            command = ["ip", "netns", "exec", hosts.name(k), sys.executable, "-m", "collegium.live", str(path)]
            with (folder / f"{k}.log").open("wb") as log:
                processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        network = members(folder)
        for member in network:
            with member.client() as client:
                assert client.ready(wait=120), client.status()
        yield network
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)


def test_links_cut_and_healed_and_a_network_in_two_halves(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(100, 6))
    simulated = collaborate(scores, SIX, 20).statistics
    with Hosts(6) as hosts, on_hosts(tmp_path / "net", hosts) as network:
        np.testing.assert_array_equal(statistics(ask_all(network, scores, names=range(100))), simulated)

        # One host loses its link: the others go on and name it; alone, it goes on too.
        hosts.link(2, False)
        answers = ask_all(network, scores, names=range(100, 200))
        assert all(one.missed == ["agent-2"] for one in answers[1] + answers[3])
        assert all(sorted(one.missed) == ["agent-1", "agent-3"] for one in answers[2])
        assert all(one.missed == [] for one in answers[0])
        hosts.link(2, True)
        wait_for(lambda: all(status(member).ready for member in network))
        np.testing.assert_array_equal(statistics(ask_all(network, scores, names=range(200, 300))), simulated)

        # Two halves, 0 1 2 and 3 4 5: each is now a path, and decides for itself.
        hosts.halves(False)
        answers = ask_all(network, scores, names=range(300, 400))
        assert {name for one in answers[2] for name in one.missed} == {"agent-3"}
        assert {name for one in answers[3] for name in one.missed} == {"agent-2"}
        assert all(one.missed == [] for one in answers[1] + answers[4])
        for k, other in ((0, 5), (5, 0), (2, 3), (3, 2)):
            wait_for(lambda k=k, other=other: neighbour(network[k], f"agent-{other}").state == "down")
        # By now everybody knows: from the first round on, a half is a path with weights scaled up at its ends.
        answers = ask_all(network, scores, names=range(400, 500))
        path = policy.uniform(topology.path(3))
        for half in (slice(0, 3), slice(3, 6)):
            expected = collaborate(scores[:, half], path, 20).statistics[-1]
            got = np.array([[one.statistic for one in column] for column in answers[half]]).T
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
        hosts.halves(True)
        wait_for(lambda: all(status(member).ready for member in network))
        np.testing.assert_array_equal(statistics(ask_all(network, scores, names=range(500, 600))), simulated)
