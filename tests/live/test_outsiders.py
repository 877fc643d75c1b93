"""Connections of those who have no part in the network: parked ones, silent ones, too many of one name."""

import contextlib
import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import time
from collections import Counter
from urllib.parse import urlsplit

import numpy as np
import pytest

from collegium import policy, topology
from collegium._serving.crowd import Crowd
from collegium._serving.limits import ServiceSettings
from collegium.errors import LiveError
from collegium.live.launcher import members
from live_networks import in_memory, served
from live_processes import ask_all, keep_port, running, status, wait_for

pytestmark = pytest.mark.live
PAIR = policy.metropolis(topology.path(2))
TOKEN = "sesame"
SECURED = hashlib.sha256(TOKEN.encode()).hexdigest()


class Asking:
    def __init__(self, url):
        parts = urlsplit(url)
        self.place = parts.hostname, parts.port

    def __call__(self, method, path, **headers):
        connection = http.client.HTTPConnection(*self.place, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read()

    def json(self, method, path, **headers):
        status, body = self(method, path, **headers)
        return status, json.loads(body)


def park(place, count, request=b""):
    """Connections that are kept open; with a request, once it is answered."""
    lines = []
    for _ in range(count):
        line = socket.create_connection(place, timeout=60)
        lines.append(line)
        if request:
            line.sendall(request)
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
    return lines


@pytest.mark.parametrize("request_", [b"", b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"], ids=["silent", "kept"])
def test_parked_connections_keep_nobody_out(request_):
    settings = ServiceSettings(SECURED, requests=8)  # 32 connections
    with in_memory(PAIR, rounds=3) as agents, served(agents[0], settings) as server, contextlib.ExitStack() as stack:
        ask = Asking(server.url)
        for line in park(ask.place, 100, request_):
            stack.enter_context(line)
        for _ in range(40):
            assert ask("GET", "/healthz")[0] == 200
            assert ask("GET", "/v1/status", Authorization=f"Bearer {TOKEN}")[0] == 200
        assert len(server.crowd) <= 33
        assert server.crowd.closed >= 68


def test_a_request_in_progress_is_not_closed_for_a_new_connection():
    settings = ServiceSettings(requests=2)  # 8 connections
    with in_memory(PAIR, rounds=3) as agents, served(agents[0], settings) as server, contextlib.ExitStack() as stack:
        ask = Asking(server.url)
        line = stack.enter_context(socket.create_connection(ask.place, timeout=60))
        body = b'{"id": 1, "score": 1.0}'
        line.sendall(b"POST /v1/items HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n")
        line.sendall(b"content-length: %d\r\n\r\n%b" % (len(body), body[:5]))
        wait_for(lambda: len(server.crowd) and not server.crowd._idle)  # its head has been read
        for parked in park(ask.place, 50):
            stack.enter_context(parked)
        assert ask("GET", "/healthz")[0] == 200
        line.sendall(body[5:])
        agents[1].submit([1], np.ones(1))
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_whoever_parks_most_has_to_go_first():
    crowd: Crowd[str] = Crowd(4)
    assert [crowd.enter(name, "other") for name in ("a", "b", "c")] == [None] * 3
    assert crowd.enter("d", "mine") is None
    crowd.work("a")
    assert crowd.enter("e", "mine") == "b"  # of those with most connections, the one idle for longest
    crowd.rest("a")
    assert crowd.enter("f", "mine") == "d"  # now `mine` has most
    assert crowd.enter("g", "third") == "c"  # a tie: the address that was there first
    for name in "acefg":
        crowd.leave(name)
    assert len(crowd) == 0
    assert not crowd._idle
    assert not crowd._count


def test_a_crowd_keeps_count_whatever_happens():
    chance = random.Random(0)
    crowd: Crowd[int] = Crowd(20)
    here: dict[int, str] = {}
    working: set[int] = set()
    for step in range(5000):
        what = chance.random()
        if what < 0.5 or not here:
            address = chance.choice("abc")
            here[step] = address
            goes = crowd.enter(step, address)
            if goes is not None:
                assert goes not in working
                del here[goes]
        else:
            one = chance.choice(list(here))
            if what < 0.65:
                crowd.work(one)
                working.add(one)
            elif what < 0.85:
                crowd.rest(one)
                working.discard(one)
            else:
                crowd.leave(one)
                del here[one]
                working.discard(one)
        assert len(crowd) == len(here)
        assert Counter(here.values()) == crowd._count
        assert {one for idle in crowd._idle.values() for one in idle} == set(here) - working


def test_refusals_are_json_also_when_there_are_too_many():
    with in_memory(PAIR, rounds=3) as agents, served(agents[0], ServiceSettings(requests=0)) as server:
        ask = Asking(server.url)
        assert ask("GET", "/healthz")[0] == 200
        status, answer = ask.json("GET", "/v1/status")
        assert status == 429
        assert "retry" in answer["error"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "10.0.0.1", "127.0.0.1.evil.example"])
def test_a_port_of_this_machine_is_not_reached_by_another_name(host):
    """A page in a browser can make a name of its own lead to 127.0.0.1; the header shows it."""
    with in_memory(PAIR, rounds=3) as agents, served(agents[0]) as server:
        ask = Asking(server.url)
        status, answer = ask.json("GET", "/v1/status", Host=host)
        assert status == 421
        assert "127.0.0.1" in answer["error"]
        assert ask("GET", "/v1/status", Host="localhost:1")[0] == 200
        assert ask("GET", "/v1/status", Host="[::1]:1")[0] == 200


def test_knocking_connections_do_not_keep_a_neighbour_out(tmp_path):
    """Silent connections to every agent's port, many a second, and parked ones at the ports of users."""
    with running(tmp_path / "net", policy.uniform(topology.complete(3))) as network:
        assert any(joined_beside_knocking(network) < 5.0 for _ in range(3))  # a busy machine may take longer once


def joined_beside_knocking(network):
    """How long an agent that is started again is away from its neighbours."""
    ports = [int(member.file.agent.listen.rpartition(":")[2]) for member in network]
    with contextlib.ExitStack() as stack:
        for port in ports * 80:
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
        for line in park(("127.0.0.1", network[2].file.http.port), 400):
            stack.enter_context(line)
        end(network[0])
        network[0].start()
        wait_for(lambda: _answers(network[0]))
        begun = time.monotonic()
        wait_for(lambda: all(one.state == "up" for member in network for one in status(member).neighbours))
        return time.monotonic() - begun


def end(member):
    os.kill(member.pid, signal.SIGTERM)
    wait_for(lambda: member.pid is None)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_copy_of_an_agent_is_refused_beside_the_original(tmp_path, host):
    """One certificate, one session: the original stays connected, and whoever is asked says that there are two."""
    folder = tmp_path / "net"
    with contextlib.ExitStack() as held, running(folder, policy.uniform(topology.complete(3)), hosts=[host]) as network:
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        mine = network[0].file
        text = (copy / "agent-0.toml").read_text()
        text = text.replace(mine.agent.listen, f"tls/{host}:{keep_port(held)}")
        text = text.replace(f"port = {mine.http.port}\n", f"port = {keep_port(held)}\n")
        (copy / "agent-0.toml").write_text(text)
        second = members(copy)[0]
        second.start()
        try:
            wait_for(lambda: "two processes present the certificate of agent-0" in str(status(network[1])))
            scores = np.ones((20, 3))
            for column in ask_all(network, scores, trace=False):
                assert all(not one.missed and not one.evidence.missing for one in column)
            wait_for(lambda: all(one.state == "up" for one in status(network[1]).neighbours))
        finally:
            end(second)


def _answers(member):
    with contextlib.suppress(LiveError):
        return status(member)
