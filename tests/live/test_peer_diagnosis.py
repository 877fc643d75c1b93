import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from collegium.live import keys
from collegium.live.peer_diagnosis import PeerDiagnosis, probe
from collegium.live.transport import Tls
from live_processes import wait_for
from zenoh_agents import free_ports, other_certificate, places, processes, without_tls

pytestmark = pytest.mark.live

PAIR = [[1], [0]]


@pytest.fixture
def start():
    with processes() as begin:
        yield begin


def wait_for_report(agent, number, *parts, since=0):
    """Until a report about the neighbour, not one of the first so many, has all the parts; there may be others."""

    def has_come():
        reports = agent.of_kind("report")[since:]
        return any(who == number and all(part in reason for part in parts) for who, reason in reports)

    agent.wait_until(has_come)


@pytest.mark.parametrize("wrong", [0, 1])
def test_another_authority_is_named_on_both_sides(start, tmp_path, wrong):
    made = places(tmp_path, PAIR)
    made[wrong] = other_certificate(made[wrong], tmp_path / "other")
    agents = [start(place, diagnosis=True) for place in made]
    for one, other in ((0, 1), (1, 0)):
        wait_for_report(agents[one], other, f"agent-{other}", "signed by another authority")


def test_another_agents_name_is_named(start, tmp_path):
    made = places(tmp_path, [[1, 2], [0, 2], [0, 1]])
    made[1] = dataclasses.replace(made[1], tls=made[2].tls)
    agents = [start(made[0], diagnosis=True), start(made[1], intruder=True)]
    agents[1].wait("open")
    wait_for_report(agents[0], 1, "presents the certificate of agent-2, not that of agent-1")
    wait_for(lambda: [1, probe(made[0], made[0].neighbours[0])] in agents[0].of_kind("report"))


def test_a_link_is_compared_with_who_should_be_there(tmp_path):
    place = places(tmp_path, [[1, 2], [0, 2], [0, 1]])[0]
    reports = []
    diagnosis = PeerDiagnosis(place, lambda *what: reports.append(what))
    for peer in place.neighbours:
        diagnosis.joined(peer.name, peer.endpoint)
    assert reports == []
    diagnosis.joined("agent-2", place.neighbours[0].endpoint)
    diagnosis.joined("agent-0", "tls/10.0.0.1:50001")
    diagnosis.joined("agent-7", "tls/10.0.0.1:50002")
    assert [number for number, _ in reports] == [1, None, None]
    for (_, reason), part in zip(reports, ("agent-2, not that of", "running twice", "no neighbour of"), strict=True):
        assert part in reason


def test_a_peer_that_is_no_neighbour_is_named(start, tmp_path):
    made = places(tmp_path, [[1], [0, 2], [1]])  # a path: agent-2 is no neighbour of agent-0
    calls = made[1].hears[:1]
    other_peer = dataclasses.replace(made[2], number=-1, hears=calls, audience=calls)  # the smaller number connects
    agent = start(made[0], diagnosis=True)
    agent.wait("open")
    start(other_peer, intruder=True)
    wait_for_report(agent, None, "presented the certificate of agent-2, which is no neighbour of agent-0")


def test_a_missing_certificate_is_named_on_both_sides(start, tmp_path):
    made = places(tmp_path, PAIR)
    honest = start(made[1], diagnosis=True, read_log=True)
    honest.wait("open")
    bare = start(without_tls(made[0]), diagnosis=True)
    wait_for_report(bare, 1, "requires certificates, and this agent has none")
    wait_for_report(honest, 0, "runs without certificates")
    wait_for_report(honest, None, "was refused: it does not speak TLS")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"shows_none": True}, "it presented no certificate"),
        ({"foreign": True}, "its certificate was signed by another authority"),
        ({"trusts": True}, "it does not accept this agent's certificate"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_refused_peers_are_found_in_zenohs_log(start, tmp_path, options, reason):
    made = places(tmp_path, PAIR)
    other_peer = dataclasses.replace(made[0], listen=f"tls/127.0.0.1:{free_ports(1)[0]}")  # not where agent-0 should be
    other = other_certificate(made[0], tmp_path / "other").tls
    if options.pop("foreign", False):
        other_peer = dataclasses.replace(other_peer, tls=Tls(made[0].tls.ca, other.certificate, other.key))
    if options.pop("trusts", False):
        other_peer = dataclasses.replace(other_peer, tls=Tls(other.ca, made[0].tls.certificate, made[0].tls.key))
    honest = start(made[1], diagnosis=True, read_log=True)
    honest.wait("open")
    start(other_peer, intruder=True, **options).wait("open")
    wait_for_report(honest, None, "was refused", reason)
    wait_for_report(honest, 0, "no process listens for agent-0")
    time.sleep(1.5)  # three further attempts
    assert len([who for who, _ in honest.of_kind("report") if who is None]) == 1


def test_nothing_is_reported_of_healthy_neighbours(start, tmp_path):
    made = places(tmp_path, [[1, 2], [0, 2], [0, 1]])
    agents = [start(place, diagnosis=True, read_log=True) for place in made]
    for one in agents:
        for other in agents:
            if one is not other:
                one.wait("presence", other.number, True)
    wait_for(lambda: [probe(made[0], peer) for peer in made[0].neighbours] == [None, None])
    for _ in range(3):  # a neighbour that pauses is not healthy
        before = [
            len(one.of_kind("report")) for one in agents
        ]  # that no process listened yet, if one was slow to start
        time.sleep(2.0)
        after = [len(one.of_kind("report")) for one in agents]
        if after == before:
            break
    assert after == before
    assert [reason for one in agents for number, reason in one.of_kind("report") if number is None] == []


def test_one_who_comes_and_goes(start, tmp_path):
    made = places(tmp_path, PAIR)
    stays = start(made[0], diagnosis=True)
    wait_for_report(stays, 1, "no process listens for agent-1")
    comes = start(made[1], diagnosis=True)
    stays.wait("presence", 1, True)
    reported = len(stays.of_kind("report"))
    comes.kill()
    stays.wait("presence", 1, False)
    wait_for_report(stays, 1, "no process listens for agent-1", since=reported)


def test_a_stopped_neighbour_is_named(start, tmp_path):
    made = places(tmp_path, PAIR)
    agents = [start(place, diagnosis=True) for place in made]
    agents[0].wait("presence", 1, True)
    agents[1].signal(signal.SIGSTOP)
    wait_for_report(agents[0], 1, "accepts connections but does not answer")


def test_a_second_process_of_the_same_name_is_named(start, tmp_path):
    made = places(tmp_path, PAIR)
    agents = [start(made[1], diagnosis=True), start(made[0], diagnosis=True)]
    agents[0].wait("presence", 0, True)
    twin = dataclasses.replace(made[0], listen=f"tls/127.0.0.1:{free_ports(1)[0]}")
    start(twin, diagnosis=True).wait("open")
    wait_for_report(agents[0], None, "two processes present the certificate of agent-0")


def test_a_neighbour_is_probed(tmp_path):
    first, second = places(tmp_path, PAIR)
    peer = first.neighbours[0]
    assert "no process listens for agent-1" in probe(first, peer)
    with socket.create_server(("127.0.0.1", int(peer.endpoint.rpartition(":")[2]))):
        begun = time.monotonic()
        assert "accepts connections but does not answer" in probe(first, peer)
        assert time.monotonic() - begun < 30
    nowhere = dataclasses.replace(peer, endpoint="tls/no-such-host.invalid:7000")
    assert "cannot be reached" in probe(first, nowhere)
    assert second.name == "agent-1"


def test_a_certificate_of_another_host_is_named(start, tmp_path):
    made = places(tmp_path, PAIR)
    authority = keys.Authority(tmp_path / "ca.pem", tmp_path / "ca.key")
    moved = keys.issue(authority, tmp_path, "agent-1", ["10.9.8.7"], replace=True)
    assert moved == made[1].tls
    start(made[1]).wait("open")
    wait_for(lambda: "is for the hosts 10.9.8.7, not for 127.0.0.1" in str(probe(made[0], made[0].neighbours[0])))


def test_a_neighbour_that_answers_but_does_not_join(start, tmp_path):
    made = places(tmp_path, PAIR)
    start(made[1]).wait("open")
    sentence = "certificate is in order, but it has not joined: is agent-0 one of its neighbours there?"
    times = []
    diagnosis = PeerDiagnosis(made[0], lambda number, why: sentence in why and times.append((number, time.monotonic())))
    begun = time.monotonic()
    diagnosis.start()
    ((number, told),) = wait_for(lambda: times)
    diagnosis.close()
    assert number == 1
    assert told - begun > 2.0  # before, it may be about to join


def test_the_same_reason_is_reported_once(tmp_path):
    reports = []
    diagnosis = PeerDiagnosis(places(tmp_path, PAIR)[0], lambda *what: reports.append(what))
    diagnosis.start()
    wait_for(lambda: reports)
    time.sleep(4.0)  # two further attempts
    assert len(reports) == 1
    diagnosis.present(1)
    diagnosis.missing(1)
    wait_for(lambda: len(reports) >= 2)
    diagnosis.close()


def test_whoever_hangs_up_was_not_refused(tmp_path):
    """As neighbours do that gave up while this process was stopped: it would be told of them when it goes on."""
    reports = []
    diagnosis = PeerDiagnosis(places(tmp_path, PAIR)[0], lambda *what: reports.append(what))
    line = "WARN zenoh_link_tls::unicast: {}. Hint: increase the system open file limit"
    assert diagnosis._read_log(line.format("tls handshake eof"))
    assert reports == []
    assert diagnosis._read_log(line.format("peer sent no certificates"))
    assert len(reports) == 1


def test_an_expired_certificate_is_reported_once_however_often_it_is_shown(tmp_path):
    reports = []
    diagnosis = PeerDiagnosis(places(tmp_path, PAIR)[0], lambda *what: reports.append(what))
    line = "WARN zenoh_link_tls::unicast: invalid peer certificate: certificate {}: verification time {} (UNIX), but {}"
    for second in range(20):
        for why in ("expired", "not valid yet"):
            text = line.format(why, second, f"certificate is not valid after 0 ({second} seconds ago)")
            assert diagnosis._read_log(f"{text}. Hint: increase the system open file limit")
    (_, first), (_, second) = reports
    assert "refused: its certificate has expired (invalid peer certificate: certificate expired)" in first
    assert "refused: its certificate is not valid yet" in second


def test_a_closed_diagnosis_reports_nothing(tmp_path):
    place = places(tmp_path, PAIR)[0]
    reports = []
    diagnosis = PeerDiagnosis(place, lambda *what: reports.append(what))
    diagnosis.start()
    diagnosis.close()
    diagnosis.missing(1)
    diagnosis.joined("agent-9", "tls/10.0.0.1:7000")
    time.sleep(1.5)
    assert reports == []


def test_what_is_not_of_zenoh_goes_where_it_went():
    program = """if True:
        import os, subprocess, sys
        from collegium.live.peer_diagnosis import capture_zenoh_log
        lines = []
        def handle(line):
            lines.append(line)
            return "refused" in line
        stop = capture_zenoh_log(handle)
        print("by Python")
        os.write(1, b"past Python\\n" * 3)
        os.write(1, b"zenoh: \\x1b[33mrefused\\x1b[0m\\n")
        os.write(1, b"zenoh: other matters\\n")
        print("x" * 200_000)
        stop()
        print("afterwards", [line.strip() for line in lines])
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200, env=os.environ)
    lines = ["by Python", *["past Python"] * 3, "zenoh: other matters", "x" * 200_000]
    handled = ["zenoh: refused", "zenoh: other matters"]
    assert (done.stderr, done.stdout.splitlines()) == ("", [*lines, f"afterwards {handled}"])
