import dataclasses
import signal
import socket
import threading
import time
from types import SimpleNamespace

import pytest

import collegium.live.transport.zenoh as module
from collegium.errors import LiveError
from collegium.live.transport import Tls, sockets
from collegium.live.transport.zenoh import MOST_PATIENCE, PATIENCE, ZenohTransport, _Link, configuration
from zenoh_agents import free_ports, other_certificate, places, processes

pytestmark = pytest.mark.live

PAIR = [[1], [0]]


@pytest.fixture
def start():
    with processes() as begin:
        yield begin


def meet(*agents, since=0):
    for one in agents:
        for other in agents:
            if one is not other:
                one.wait("presence", other.number, True, since=since)


@pytest.mark.parametrize("tls", [True, False])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_frames_go_both_ways_whoever_starts_first(start, tmp_path, order, tls):
    made = places(tmp_path, PAIR, tls=tls)
    agents = {}
    for number in order:
        agents[number] = start(made[number])
        agents[number].wait("open")
    meet(*agents.values())
    agents[0].tell("broadcast", "round 1")
    agents[0].tell("send", 1, "where are you?")
    agents[1].tell("broadcast", "hello")
    agents[1].wait("frame", 0, "round 1")
    agents[1].wait("frame", 0, "where are you?")
    agents[0].wait("frame", 1, "hello")
    assert sorted(agents[1].of_kind("frame")) == [[0, "round 1"], [0, "where are you?"]]
    for number, said, heard in ((0, 21, 5), (1, 5, 21)):
        agents[number].tell("bytes")
        agents[number].wait("bytes", said, heard)


def test_frames_go_only_where_the_network_leads(start, tmp_path):
    made = places(tmp_path, [[2], [0], [1]])  # a directed ring: 0 is heard by 1, 1 by 2, 2 by 0
    agents = [start(place) for place in made]
    meet(*agents)
    for one in agents:
        one.tell("broadcast", f"said by {one.number}")
        for other in agents:
            if one is not other:
                one.tell("send", other.number, f"{one.number} to {other.number}")
    for one, heard, other in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        agents[one].wait("frame", heard, f"said by {heard}")
        agents[one].wait("frame", heard, f"{heard} to {one}")
        agents[one].wait("frame", other, f"{other} to {one}")
        agents[other].tell("broadcast", "the last")
    for one, heard in ((0, 2), (1, 0), (2, 1)):
        agents[one].wait("frame", heard, "the last")
        assert len(agents[one].of_kind("frame")) == 4


@pytest.mark.parametrize("intruder", [0, 1])
def test_another_authority_gets_nothing_in(start, tmp_path, intruder):
    made = places(tmp_path, [[1, 2], [0, 2], [0, 1]])
    made[intruder] = other_certificate(made[intruder], tmp_path / "other")
    nothing_of_the_intruder(start, made, intruder)


def test_without_a_certificate_nothing_gets_in(start, tmp_path):
    made = places(tmp_path, [[1, 2], [0, 2], [0, 1]])
    made[0] = dataclasses.replace(made[0], listen=f"tls/127.0.0.1:{free_ports(1)[0]}")  # it calls and is not called
    nothing_of_the_intruder(start, made, 0, shows_none=True)


@pytest.mark.parametrize("intruder", [0, 1])
def test_under_another_agents_name_nothing_gets_in(start, tmp_path, intruder):
    made = places(tmp_path, [[1, 2], [0, 2], [0, 1]])
    made[intruder] = dataclasses.replace(made[intruder], tls=made[2].tls)
    nothing_of_the_intruder(start, made, intruder)


def nothing_of_the_intruder(start, made, intruder, **options):
    """Agent 2 is honest and meets the other honest one; the intruder is as close and is not met."""
    honest = 1 - intruder
    first, last = start(made[honest]), start(made[2])
    bad = start(made[intruder], intruder=True, **options)
    bad.wait("open")
    meet(first, last)
    for _ in range(8):  # four attempts to connect
        bad.tell("broadcast", "let me in")
        time.sleep(0.25)
    last.tell("broadcast", "the last")
    first.wait("frame", 2, "the last")
    for one in (first, last):
        assert [intruder, True] not in one.of_kind("presence")
        assert intruder not in {number for number, _ in one.of_kind("frame")}


def test_an_agent_cannot_publish_as_another(start, tmp_path):
    made = places(tmp_path, [[1, 2], [0, 2], [0, 1]])
    honest, forger, third = start(made[0]), start(made[1], intruder=True), start(made[2])
    meet(honest, forger, third)
    for channel in ("say", "to/agent-0", "alive"):
        forger.tell("put", f"collegium/net/agent-2/{channel}", "forged")
    forger.tell("put", "collegium/net/agent-0/say", "forged")
    forger.tell("put", "collegium/net/**", "forged")
    forger.tell("broadcast", "honestly mine")
    honest.wait("frame", 1, "honestly mine")
    third.tell("broadcast", "really mine")
    honest.wait("frame", 2, "really mine")
    assert sorted(honest.of_kind("frame")) == [[1, "honestly mine"], [2, "really mine"]]


def test_an_agent_cannot_receive_what_is_for_another(start, tmp_path):
    made = places(tmp_path, [[1, 2], [0, 2], [0, 1]])
    sender, curious, third = start(made[0]), start(made[1], intruder=True), start(made[2])
    for key in ("agent-0/to/agent-2", "agent-0/to/*", "agent-0/*", "**"):
        curious.tell("listen", f"collegium/net/{key}")
        curious.wait("listening", f"collegium/net/{key}")
    meet(sender, curious, third)
    curious.tell("broadcast", "I listen")  # else what it should overhear may be sent before the sender knows of it
    sender.wait("frame", 1, "I listen")
    sender.tell("send", 2, "for the third only")
    third.wait("frame", 0, "for the third only")
    sender.tell("send", 1, "for the curious one")
    sender.tell("broadcast", "for all")
    curious.wait("overheard", "collegium/net/agent-0/to/agent-1", "for the curious one")
    curious.wait("frame", 0, "for all")
    assert "for the third only" not in {text for _, text in curious.of_kind("overheard")}


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_agent_is_missed_and_comes_back(start, tmp_path, victim):
    made = places(tmp_path, PAIR)
    agents = [start(place) for place in made]
    meet(*agents)
    other = agents[1 - victim]
    for _ in range(2):
        seen = len(other.events)
        agents[victim].kill()
        other.wait("presence", victim, False, since=seen)
        agents[victim] = start(made[victim])
        other.wait("presence", victim, True, since=seen)
        agents[victim].wait("presence", other.number, True)
        agents[victim].tell("broadcast", "again")
        other.wait("frame", victim, "again", since=seen)


@pytest.mark.parametrize("size", [64, 20_000])  # with 20 000 the buffers to the stopped one fill in no time
def test_a_stopped_agent_stalls_nobody(start, tmp_path, size):
    """Up to three times: on a busy machine the others may pause too."""
    found = []
    for attempt in range(3):
        made = places(tmp_path / str(attempt), [[1, 2], [0], [0]])
        found.append(beside_a_stopped_one(*(start(place, count_only=place.number > 0) for place in made), size))
        if found[-1] == "nobody":
            return
    pytest.fail(str(found))


def beside_a_stopped_one(sender, lively, stopped, size):
    """Who or what is stalled."""
    for one in (lively, stopped):
        sender.wait("presence", one.number, True)
    seen = len(sender.events)
    stopped.signal(signal.SIGSTOP)
    sender.tell("flood", 1500, size, 0.001)
    sender.wait("presence", 2, False, since=seen)
    sender.wait("flooded")
    [[longest]] = sender.of_kind("flooded")
    end = time.monotonic() + 30
    while [1500, True] not in lively.of_kind("counted") and time.monotonic() < end:  # the last may be on their way
        lively.tell("counted")
        time.sleep(0.2)
    seen = len(sender.events)
    stopped.signal(signal.SIGCONT)
    sender.wait("presence", 2, True, since=seen)
    assert all(in_order for _, in_order in lively.of_kind("counted"))
    if longest >= 1.8:  # the lease alone would take two seconds
        return f"a call for {longest:.1f} s"
    if [1500, True] not in lively.of_kind("counted"):
        return f"the lively one, which has {lively.of_kind('counted')[-1]}"
    return "the lively one's presence" if [1, False] in sender.of_kind("presence") else "nobody"


@pytest.mark.parametrize("tls", [True, False])
def test_links_over_which_nothing_is_declared_are_cut_and_made_anew(start, tmp_path, tls):
    """As happens when a stopped process goes on: Zenoh adds the new link there to those that have ended."""
    made = places(tmp_path, PAIR, tls)
    one, other = start(made[0]), start(made[1], declares_nothing=True)
    one.wait("open")
    other.wait("link", "SampleKind.DELETE")
    cut = [event for _, event in other.events].index(["link", "SampleKind.DELETE"])
    other.wait("link", "SampleKind.PUT", since=cut)
    seen = len(one.events)
    other.tell("declare")
    one.wait("presence", 1, True, since=seen)


class NoTokens:
    """A session in which no neighbour declares anything."""

    def liveliness(self):
        return self

    def get(self, key, timeout):
        return []


def test_links_are_cut_once_and_then_ever_more_rarely(tmp_path, monkeypatch):
    """So that a neighbour that is merely slow to declare its token is not cut off each time before it does."""
    (place, _) = places(tmp_path, PAIR, tls=False)
    (peer,) = place.neighbours
    cut = []
    monkeypatch.setattr(sockets, "cut", lambda src, dst: cut.append(src))
    now = 1000.0  # a clock that stands, however long the machine pauses
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    transport, session = ZenohTransport(place), NoTokens()
    transport._session = session

    def linked_for(seconds):
        link = _Link("tcp/127.0.0.1:1", peer.endpoint, "", "a", now - seconds)
        transport._links = {(link.src, link.dst): link}
        cut.clear()
        assert transport._is_missing(session, peer)
        return bool(cut)

    assert not linked_for(0.0)
    assert linked_for(PATIENCE + 1)
    assert not linked_for(PATIENCE + 1)
    assert linked_for(2 * PATIENCE + 1)
    while transport._patience[peer.number] < MOST_PATIENCE:
        assert linked_for(MOST_PATIENCE)
    assert linked_for(MOST_PATIENCE + 1)
    assert not linked_for(MOST_PATIENCE / 2)
    transport._report(peer.number, True)
    transport._report(peer.number, False)
    assert linked_for(PATIENCE + 1)  # it was here meanwhile
    transport._undeclared[peer.number] = now - PATIENCE - 1  # its token went, and its link did not
    transport._report(peer.number, True)
    assert linked_for(0.0)
    transport.deny([peer.name])
    assert not transport._is_missing(session, peer)


@pytest.mark.parametrize("tls", [True, False])
def test_hosts_with_names_and_one_port_are_not_taken_for_each_other(tmp_path, tls):
    """A neighbour that is away must not cost another one its links, although both listen on the same port."""
    (place, *_) = places(tmp_path, [[1, 2], [0], [0]], tls=tls)
    there, away = (dataclasses.replace(peer, endpoint=f"tls/{peer.name}.example:7403") for peer in place.neighbours)
    transport = ZenohTransport(dataclasses.replace(place, hears=(there, away), audience=(there, away)))
    link = _Link("tls/10.0.0.1:40000", "tls/10.0.0.2:7403", there.name if tls else "", "a", 0.0)
    transport._links = {(link.src, link.dst): link}
    assert transport._links_of(away) == []
    assert transport._links_of(there) == ([link] if tls else [])


def test_nothing_is_left_of_a_session_that_was_closed(tmp_path):
    (place, _) = places(tmp_path, PAIR, tls=False)
    transport, name = ZenohTransport(place), f"{place.name}-links"
    for _ in range(3):
        transport.open(lambda number, frame: None, lambda number, is_there: None)
        (looking,) = [one for one in threading.enumerate() if one.name == name]
        transport.close()
        looking.join(60)
        assert not looking.is_alive()


def test_where_an_agent_listens_may_be_given_by_a_name():
    assert sockets.is_at("tls/10.0.0.3:7403", "tls/10.0.0.3:7403")
    assert not sockets.is_at("tls/10.0.0.3:7403", "tls/10.0.0.4:7403")
    assert not sockets.is_at("tls/10.0.0.3:7403", "tls/10.0.0.3:7404")
    assert sockets.is_at("tls/10.0.0.3:7403", "tls/camera-3.example:7403")
    assert not sockets.is_at("tls/10.0.0.3:7403", "tls/camera-3.example:7404")
    assert sockets.is_at("tls/[::1]:7403", "tls/[0:0::1]:7403")
    assert sockets.is_at("tls/10.0.0.3:7403", "tls/0.0.0.0:7403")
    if not hasattr(socket, "TCP_DEFER_ACCEPT"):
        return
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sockets.ignore_silent(f"tls/localhost:{listening.getsockname()[1]}")
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT) > 0


def test_closing_is_quick_although_a_neighbour_is_stopped(start, tmp_path):
    made = places(tmp_path, PAIR)
    stopped = start(made[1])
    stopped.wait("open")
    stopped.signal(signal.SIGSTOP)
    dialling = start(made[0])
    dialling.wait("open")
    time.sleep(0.3)
    dialling.tell("close")
    took = dialling.wait("closed") and dialling.of_kind("closed")[0][0]
    assert took < 5


def test_frames_keep_their_order(start, tmp_path):
    """Up to three times: a listener that pauses for long enough loses frames, as it may."""
    for attempt in range(3):
        made = places(tmp_path / str(attempt), [[1, 2], [0], [0]])
        sender, *listeners = (start(place, count_only=place.number > 0) for place in made)
        for one in listeners:
            sender.wait("presence", one.number, True)
        sender.tell("flood", 3000, 256, 0)
        sender.wait("flooded")
        for one in listeners:
            end = time.monotonic() + 10
            while [3000, True] not in one.of_kind("counted") and time.monotonic() < end:  # the last may be on their way
                one.tell("counted")
                time.sleep(0.1)
            assert all(in_order for _, in_order in one.of_kind("counted"))
        if all([3000, True] in one.of_kind("counted") for one in listeners):
            return
    pytest.fail("frames were lost each time")


def test_a_receiver_that_fails_gets_the_next_frame(start, tmp_path):
    agents = [start(place) for place in places(tmp_path, PAIR)]
    meet(*agents)
    agents[0].tell("broadcast", "raise")
    agents[0].tell("broadcast", "go on")
    agents[1].wait("frame", 0, "go on")
    assert "a frame of agent 0 could not be handled\nTraceback" in agents[1].complaints()


def test_a_large_frame_arrives_whole(start, tmp_path):
    agents = [start(place) for place in places(tmp_path, PAIR)]
    meet(*agents)
    agents[0].tell("broadcast", "0123456789" * 100_000)
    agents[1].wait("frame", 0, "0123456789" * 100_000)


def test_a_taken_port_is_named(start, tmp_path):
    made = places(tmp_path, PAIR)
    start(made[0]).wait("open")
    with pytest.raises(LiveError, match=f"agent-0 cannot listen on {made[0].listen}: .*in use"):
        ZenohTransport(made[0]).open(print, print)


def test_its_own_files_are_checked_before_anything_starts(tmp_path):
    first, second = places(tmp_path, PAIR)
    assert second.tls is not None
    with pytest.raises(LiveError, match="is that of 'agent-1', not of 'agent-0'"):
        ZenohTransport(dataclasses.replace(first, tls=second.tls)).open(print, print)
    files = Tls(second.tls.ca, tmp_path / "none.pem", second.tls.key)
    with pytest.raises(LiveError, match="is missing"):
        ZenohTransport(dataclasses.replace(second, tls=files)).open(print, print)


def test_both_of_two_neighbours_connect(tmp_path):
    made = places(tmp_path, [[1, 2], [0, 2], [0, 1]])
    dialled = [configuration(place)["connect"]["endpoints"] for place in made]
    assert dialled == [[one.listen for one in made if one is not place] for place in made]


@pytest.mark.parametrize("name", ["", "a/b", "*", "a**", "$x", "a?", "..", "-x", "x" * 65, "@a", "x\n"])
def test_names_that_are_no_keys_are_refused(tmp_path, name):
    place = places(tmp_path, PAIR)[0]
    for wrong in (dataclasses.replace(place, name=name), dataclasses.replace(place, network=name)):
        with pytest.raises(LiveError, match="must be 1 to 64"):
            ZenohTransport(wrong)


def test_a_token_that_was_not_reported_is_looked_for(tmp_path):
    """When many links come up at once, Zenoh may tell nothing of a token although its link is there."""
    met = threading.Event()
    transports = [ZenohTransport(place) for place in places(tmp_path, PAIR)]
    transports[1]._watch = lambda numbers, sample: None
    try:
        transports[0].open(lambda number, frame: None, lambda number, is_there: None)
        transports[1].open(lambda number, frame: None, lambda number, is_there: met.set())
        assert met.wait(100)
    finally:
        for transport in transports:
            transport.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="needs Linux")
def test_a_link_whose_other_end_is_gone_is_not_open() -> None:
    """So a neighbour that opened its session anew is not taken for a second one."""
    with socket.create_server(("127.0.0.1", 0)) as door, socket.create_connection(door.getsockname()) as here:
        there, _ = door.accept()
        ends = [f"tls/{host}:{port}" for host, port in (here.getsockname(), here.getpeername())]
        assert sockets.is_open(*ends)
        there.close()
        assert here.recv(1) == b""
        assert not sockets.is_open(*ends)
