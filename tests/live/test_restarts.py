"""Agents that are stopped and started again while items come: what was accepted is answered, and no request fails."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from collegium import policy, topology
from collegium.errors import LiveError
from collegium.live import Client
from collegium.live.peers import Deadlines
from live_processes import running, status, wait_for

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
THREE = policy.uniform(topology.complete(3))
USUAL = Deadlines(longest=20.0, least=5.0, view=20.0, item=90.0)


def restart(member):
    number = member.pid
    os.kill(number, signal.SIGTERM)
    wait_for(lambda: member.pid is None)
    member.start()


def test_one_agent_at_a_time_is_restarted_and_no_request_fails(tmp_path):
    """Items come at a steady pace, at all agents at once, as sensors bring them."""
    with running(tmp_path / "net", THREE, deadlines=USUAL) as network, ThreadPoolExecutor(90) as pool:
        clients, asked, is_over = [member.client(150.0) for member in network], [], threading.Event()

        def load():
            first = 0
            while not is_over.wait(0.1):
                names = list(range(first, first + 10))
                asked.append(
                    [pool.submit(one.decide, names, scores=np.full(10, 0.5 + k)) for k, one in enumerate(clients)]
                )
                first += 10

        loading = threading.Thread(target=load)
        loading.start()
        for member in network:
            restart(member)
            wait_for(lambda: all(_is_ready(one) for one in network))
            time.sleep(0.5)
        is_over.set()
        loading.join()
        results = [[future.result(200) for future in tick] for tick in asked]  # raises what a request raised
        missing = [
            {name for one in column for name in (*one.missed, *one.evidence.missing)}
            for tick in results
            for column in tick
        ]
        assert not set().union(*missing)  # whatever came while one was away waited for it
        for client in clients:
            client.close()


def _is_ready(member):
    try:
        return status(member).ready
    except LiveError:
        return False


def test_accepted_items_are_decided_before_an_agent_stops(tmp_path):
    """202, then SIGTERM at once: the others' results have the view of the agent that is stopping."""
    with running(tmp_path / "net", THREE, deadlines=USUAL) as network:
        n = 2000
        clients = [member.client(150.0) for member in network]
        for k, client in enumerate(clients):
            client.give(range(n), scores=np.full(n, 1.0 + k))
        os.kill(network[0].pid, signal.SIGTERM)
        wait_for(lambda: network[0].pid is None)
        for client in clients[1:]:
            found = [client.result(i, wait=120) for i in range(0, n, 97)]
            assert all(one is not None and not one.missed and not one.evidence.missing for one in found)
            assert client.status().items.incomplete == 0
        for client in clients:
            client.close()


def test_a_client_waits_for_an_agent_that_comes_back(tmp_path):
    with running(tmp_path / "net", policy.Policy(np.ones((1, 1)))) as network:
        url = f"http://127.0.0.1:{network[0].file.http.port}"
        os.kill(network[0].pid, signal.SIGKILL)
        wait_for(lambda: network[0].pid is None)
        with Client(url, timeout=0.5) as impatient, pytest.raises(LiveError, match=r"cannot reach|did not"):
            impatient.decide([1], scores=[1.0])
        with Client(url, timeout=150) as client, ThreadPoolExecutor() as pool:
            begun = time.monotonic()
            with pytest.raises(LiveError, match="cannot reach"):
                client.status()  # who asks how it is wants to know that it is not there
            assert time.monotonic() - begun < 60
            waiting = pool.submit(client.decide, [1], scores=[1.0])
            time.sleep(0.5)
            assert not waiting.done()
            network[0].start()
            assert waiting.result(200)[0].id == 1
