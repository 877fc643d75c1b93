import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from collegium.live import keys
from collegium.live.doors import Doorman, try_door
from collegium.live.transport import Tls
from live_processes import wait_for
from zenoh_agents import free_ports, other_certificate, places, processes, without_tls

pytestmark = pytest.mark.live

PAIR = [[1], [0]]
SOON = 15.0


@pytest.fixture
def start():
    with processes() as begin:
        yield begin


def wait_for_report(agent, number, *words, timeout=SOON + 5):
    """When a report about the neighbour had all the words."""

    def said():
        reports = agent.of_kind("report")
        return any(who == number and all(word in reason for word in words) for who, reason in reports)

    agent.wait_until(said, timeout)
    return next(
        when
        for when, (kind, *rest) in agent.events
        if kind == "report" and rest[0] == number and all(word in rest[1] for word in words)
    )


@pytest.mark.parametrize("wrong", [0, 1])
def test_another_authority_is_named_on_both_sides(start, tmp_path, wrong):
    made = places(tmp_path, PAIR)
    made[wrong] = other_certificate(made[wrong], tmp_path / "other")
    agents = [start(place, doorman=True) for place in made]
    begun = max(agent.wait("open") for agent in agents)
    for one, other in ((0, 1), (1, 0)):
        words = (f"agent-{other}", "signed by another authority")
        assert wait_for_report(agents[one], other, *words) - begun < SOON


def test_another_agents_name_is_named(start, tmp_path):
    made = places(tmp_path, [[1, 2], [0, 2], [0, 1]])
    made[1] = dataclasses.replace(made[1], tls=made[2].tls)
    agents = [start(made[0], doorman=True), start(made[1], intruder=True)]
    begun = max(agent.wait("open") for agent in agents)
    told = wait_for_report(agents[0], 1, "shows the certificate of agent-2, not that of agent-1")
    assert told - begun < SOON
    assert try_door(made[0], made[0].neighbours[0]) == agents[0].of_kind("report")[0][1]


def test_a_link_is_compared_with_who_should_be_there(tmp_path):
    place = places(tmp_path, [[1, 2], [0, 2], [0, 1]])[0]
    said = []
    doorman = Doorman(place, lambda *what: said.append(what))
    for peer in place.neighbours:
        doorman.joined(peer.name, peer.endpoint)
    assert said == []
    doorman.joined("agent-2", place.neighbours[0].endpoint)
    doorman.joined("agent-0", "tls/10.0.0.1:50001")
    doorman.joined("agent-7", "tls/10.0.0.1:50002")
    assert [number for number, _ in said] == [1, None, None]
    for (_, reason), words in zip(said, ("agent-2, not that of", "running twice", "no neighbour of"), strict=True):
        assert words in reason


def test_who_is_no_neighbour_is_named(start, tmp_path):
    made = places(tmp_path, [[1], [0, 2], [1]])  # a path: agent-2 is no neighbour of agent-0
    calls = made[1].hears[:1]
    stranger = dataclasses.replace(made[2], number=-1, hears=calls, audience=calls)  # the smaller number connects
    agent = start(made[0], doorman=True)
    agent.wait("open")
    begun = start(stranger, intruder=True).wait("open")
    told = wait_for_report(agent, None, "came with the certificate of agent-2, which is no neighbour of agent-0")
    assert told - begun < SOON


def test_a_missing_certificate_is_named_on_both_sides(start, tmp_path):
    made = places(tmp_path, PAIR)
    honest = start(made[1], doorman=True, overhear=True)
    honest.wait("open")
    bare = start(without_tls(made[0]), doorman=True)
    begun = bare.wait("open")
    assert wait_for_report(bare, 1, "wants certificates, and this agent has none") - begun < SOON
    assert wait_for_report(honest, 0, "runs without certificates") - begun < SOON
    assert wait_for_report(honest, None, "was turned away: it does not speak TLS") - begun < SOON


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"shows_none": True}, "it showed no certificate"),
        ({"foreign": True}, "its certificate was signed by another authority"),
        ({"trusts": True}, "it does not take this agent's certificate"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_strangers_who_are_turned_away_are_overheard(start, tmp_path, options, reason):
    made = places(tmp_path, PAIR)
    stranger = dataclasses.replace(made[0], listen=f"tls/127.0.0.1:{free_ports(1)[0]}")  # not where agent-0 should be
    other = other_certificate(made[0], tmp_path / "other").tls
    if options.pop("foreign", False):
        stranger = dataclasses.replace(stranger, tls=Tls(made[0].tls.ca, other.certificate, other.key))
    if options.pop("trusts", False):
        stranger = dataclasses.replace(stranger, tls=Tls(other.ca, made[0].tls.certificate, made[0].tls.key))
    honest = start(made[1], doorman=True, overhear=True)
    honest.wait("open")
    begun = start(stranger, intruder=True, **options).wait("open")
    assert wait_for_report(honest, None, "was turned away", reason) - begun < SOON
    honest.wait_until(lambda: len(honest.of_kind("report")) == 2)  # and that nobody listens for agent-0
    time.sleep(1.5)  # three further attempts
    assert len([who for who, _ in honest.of_kind("report") if who is None]) == 1


def test_nothing_is_reported_of_healthy_neighbours(start, tmp_path):
    made = places(tmp_path, [[1, 2], [0, 2], [0, 1]])
    agents = [start(place, doorman=True, overhear=True) for place in made]
    for one in agents:
        for other in agents:
            if one is not other:
                one.wait("presence", other.number, True)
    before = [len(one.of_kind("report")) for one in agents]  # that nobody listened yet, if one was slow to start
    assert [try_door(made[0], peer) for peer in made[0].neighbours] == [None, None]
    time.sleep(2.0)
    assert [len(one.of_kind("report")) for one in agents] == before
    assert [reason for one in agents for number, reason in one.of_kind("report") if number is None] == []


def test_one_who_comes_and_goes(start, tmp_path):
    made = places(tmp_path, PAIR)
    stays = start(made[0], doorman=True)
    wait_for_report(stays, 1, "nobody listens for agent-1")
    comes = start(made[1], doorman=True)
    stays.wait("presence", 1, True)
    comes.kill()
    stays.wait("presence", 1, False)
    stays.wait_until(lambda: len(stays.of_kind("report")) == 2)
    assert "nobody listens" in stays.of_kind("report")[1][1]


def test_a_stopped_neighbour_is_named(start, tmp_path):
    made = places(tmp_path, PAIR)
    agents = [start(place, doorman=True) for place in made]
    agents[0].wait("presence", 1, True)
    agents[1].signal(signal.SIGSTOP)
    wait_for_report(agents[0], 1, "takes connections but does not answer", timeout=15)


def test_a_second_process_of_the_same_name_is_named(start, tmp_path):
    made = places(tmp_path, PAIR)
    agents = [start(made[1], doorman=True), start(made[0], doorman=True)]
    agents[0].wait("presence", 0, True)
    twin = dataclasses.replace(made[0], listen=f"tls/127.0.0.1:{free_ports(1)[0]}")
    start(twin, doorman=True).wait("open")
    wait_for_report(agents[0], None, "two processes show the certificate of agent-0")


def test_a_door_is_tried(tmp_path):
    first, second = places(tmp_path, PAIR)
    peer = first.neighbours[0]
    assert "nobody listens for agent-1" in try_door(first, peer)
    with socket.create_server(("127.0.0.1", int(peer.endpoint.rpartition(":")[2]))):
        begun = time.monotonic()
        assert "takes connections but does not answer" in try_door(first, peer)
        assert time.monotonic() - begun < 10
    nowhere = dataclasses.replace(peer, endpoint="tls/no-such-host.invalid:7000")
    assert "cannot be reached" in try_door(first, nowhere)
    assert second.name == "agent-1"


def test_a_certificate_of_another_host_is_named(start, tmp_path):
    made = places(tmp_path, PAIR)
    authority = keys.Authority(tmp_path / "ca.pem", tmp_path / "ca.key")
    moved = keys.issue(authority, tmp_path, "agent-1", ["10.9.8.7"], replace=True)
    assert moved == made[1].tls
    start(made[1]).wait("open")
    assert "is for the hosts 10.9.8.7, not for 127.0.0.1" in try_door(made[0], made[0].neighbours[0])


def test_a_neighbour_that_answers_but_does_not_join(start, tmp_path):
    made = places(tmp_path, PAIR)
    start(made[1]).wait("open")
    said, told = [], threading.Event()
    doorman = Doorman(made[0], lambda *what: (said.append(what), told.set()))
    doorman.start()
    assert not told.wait(2.0)  # it may be about to join
    assert told.wait(20.0)
    doorman.close()
    [(number, reason)] = said
    assert number == 1
    assert "certificate is in order, but it has not joined: is agent-0 one of its neighbours there?" in reason


def test_the_same_reason_is_reported_once(tmp_path):
    said = []
    doorman = Doorman(places(tmp_path, PAIR)[0], lambda *what: said.append(what))
    doorman.start()
    wait_for(lambda: said)
    time.sleep(4.0)  # two further attempts
    assert len(said) == 1
    doorman.present(1)
    doorman.missing(1)
    wait_for(lambda: len(said) == 2)
    doorman.close()


def test_a_doorman_who_is_closed_says_nothing(tmp_path):
    place = places(tmp_path, PAIR)[0]
    said = []
    doorman = Doorman(place, lambda *what: said.append(what))
    doorman.start()
    doorman.close()
    doorman.missing(1)
    doorman.joined("somebody", "tls/10.0.0.1:7000")
    time.sleep(1.5)
    assert said == []


def test_what_is_not_of_zenoh_goes_where_it_went():
    program = """if True:
        import os, subprocess, sys
        from collegium.live.doors import listen_in
        heard = []
        def hear(line):
            heard.append(line)
            return "turned" in line
        stop = listen_in(hear)
        print("by Python")
        os.write(1, b"past Python\\n" * 3)
        os.write(1, b"zenoh: \\x1b[33mturned away\\x1b[0m\\n")
        os.write(1, b"zenoh: other matters\\n")
        print("x" * 200_000)
        stop()
        print("afterwards", [line.strip() for line in heard])
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, env=os.environ)
    lines = ["by Python", *["past Python"] * 3, "zenoh: other matters", "x" * 200_000]
    heard = ["zenoh: turned away", "zenoh: other matters"]
    assert (done.stderr, done.stdout.splitlines()) == ("", [*lines, f"afterwards {heard}"])
