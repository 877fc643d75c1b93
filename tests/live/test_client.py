"""The Python client against real ports: the simulator's own numbers, and a sentence for whatever goes wrong."""

import contextlib
import hashlib
import http.server
import socketserver
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import numpy as np
import pytest

from collegium import collaborate, policy, topology
from collegium._serving.limits import Limits, ServiceSettings
from collegium.errors import LiveError
from collegium.live.client import Client
from collegium.live.engine import Limits as AgentLimits
from live_networks import in_memory, served
from live_processes import keep_port, wait_for

pytestmark = pytest.mark.live

ALONE = policy.Policy(np.ones((1, 1)))
PAIR = policy.metropolis(topology.path(2))
RING = policy.metropolis(topology.ring(4))
ENDS_SOON = ServiceSettings(grace_seconds=1.0)
"""For tests that leave items undecided."""


@contextlib.contextmanager
def clients(over, settings=None, options=None, **agent_settings):
    """All agents of a network and a client of each."""
    with contextlib.ExitStack() as stack:
        agents = stack.enter_context(in_memory(over, **{"rounds": 3, **agent_settings}))
        servers = [stack.enter_context(served(agent, settings)) for agent in agents]
        yield agents, [stack.enter_context(Client(server.url, **(options or {}))) for server in servers]


def ask_all(clients, names, trace=False, **columns):
    """The outcomes of all agents, asked at the same time."""
    ((kind, values),) = columns.items()
    with ThreadPoolExecutor(len(clients)) as threads:
        asked = [
            threads.submit(client.decide, names, trace=trace, **{kind: values[k]}) for k, client in enumerate(clients)
        ]
        return [future.result(120) for future in asked]


def mean(views):
    return views.reshape(len(views), -1).mean(axis=1, dtype=np.float64)


@pytest.mark.parametrize("batch", [7, 1000])
def test_over_http_the_network_is_the_simulator_bit_for_bit(batch):
    scores = np.random.default_rng(0).normal(size=(50, 4)) * 10.0 ** np.arange(-2, 2)
    with clients(RING, options={"batch": batch}, rounds=8) as (_, asking):
        outcomes = ask_all(asking, range(50), trace=True, scores=scores.T)
    traces = np.array([[outcome.trace for outcome in column] for column in outcomes]).transpose(2, 1, 0)
    np.testing.assert_array_equal(traces, collaborate(scores, RING, rounds=8).statistics)
    assert [outcome.id for outcome in outcomes[2]] == list(range(50))
    assert outcomes[1][5].heard == ["agent-0", "agent-2"]


@pytest.mark.parametrize("dtype", ["float32", "uint8", ">f8", "bool"])
@pytest.mark.parametrize(
    "names",
    [range(5, 9), [9, 3, 2**64 - 1, 0], ["a/b", "ü", "x y&z=1", "%2C"], ["a,b", "c", "12", 3], np.arange(4)],
    ids=["consecutive", "numbers", "words", "commas", "numpy"],
)
def test_views_arrive_as_they_are(names, dtype):
    seen = []

    def score(views):
        seen.append(views)
        return mean(views)

    views = (np.random.default_rng(0).random((4, 2, 3)) * 3).astype(dtype)
    with clients(ALONE, score=score) as (_, (client,)):
        outcomes = client.decide(names, views=views)
        assert [str(outcome.id) for outcome in outcomes] == [str(name) for name in names]
        assert [outcome.score for outcome in outcomes] == mean(views).tolist()
        assert [client.result(name).score for name in names] == mean(views).tolist()
    np.testing.assert_array_equal(np.concatenate(seen), views)
    if "a,b" not in list(names):
        assert seen[0].dtype == np.dtype(dtype).newbyteorder("=")


def test_many_views_and_long_names_go_in_several_requests():
    with clients(ALONE, ServiceSettings(limits=Limits(bytes=5 << 20)), score=mean) as (_, (client,)):
        views = np.arange(400.0)[:, None] * np.ones(5000)  # 16 MB
        assert [outcome.score for outcome in client.decide(range(400), views=views)] == list(range(400))
        names = [f"{k:03}" * 66 for k in range(400)]  # 80 kB
        assert [outcome.id for outcome in client.decide(names, views=views[:, :2])] == names
        names = [f"{k},{k}" for k in range(400)]  # only JSON can say these
        assert [outcome.id for outcome in client.decide(names, views=views[:, :500] + 1 / 3)] == names


def test_no_items_need_no_request():
    with Client("http://127.0.0.1:1") as client:
        assert client.decide([], scores=[]) == []


def test_what_is_given_can_be_asked_for_later():
    with clients(PAIR, classes=("cat", "dog")) as (_, (first, second)):
        assert first.result("x") is None
        first.give(["x"], scores=[3.0])
        assert first.result("x", wait=0.1) is None
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(first.result, "x", wait=60, trace=True)
            second.give(["x"], scores=[-1.0])
            assert waiting.result(120).trace == [3.0, 1.0, 1.0, 1.0]
        assert second.result("x", wait=60).label == "dog"


def test_one_client_serves_many_threads():
    with clients(ALONE) as (_, (client,)):

        def work(k):
            return [client.decide([f"{k}-{i}"], scores=[k + i])[0].score for i in range(25)]

        with ThreadPoolExecutor(6) as threads:
            assert list(threads.map(work, range(6))) == [[float(k + i) for i in range(25)] for k in range(6)]
        client.close()
        assert client.status().items.done == 150


def test_threads_that_end_leave_no_connection_open():
    with clients(ALONE) as (_, [client]):
        for _ in range(20):
            thread = threading.Thread(target=client.status)
            thread.start()
            thread.join()
        (connection,) = client._connections.values()
        assert connection.sock is not None


def test_a_connection_is_kept_and_made_anew_when_the_agent_was_restarted():
    with in_memory(ALONE, rounds=3) as agents:
        with served(agents[0]) as server:
            client = Client(server.url)
            client.status()
            kept = client._connection()[0].sock
            client.status()
            assert client._connection()[0].sock is kept is not None
        with served(agents[0], port=urlsplit(server.url).port):
            assert client.decide([1], scores=[1.0])[0].statistic == 1.0
        with pytest.raises(LiveError, match="cannot reach"):
            client.status()
        client.close()


def test_a_busy_agent_is_asked_again():
    with clients(PAIR, ENDS_SOON, limits=AgentLimits(pending=1)) as (agents, (client, _)):
        client.give(range(1, 6), scores=np.ones(5))  # one is begun, four wait
        with ThreadPoolExecutor() as threads:
            second = threads.submit(client.give, [6], scores=[1.0])
            wait_for(lambda: agents[0].status().items.refused)
            assert not second.done()
            agents[1].submit([1], np.zeros(1))
            second.result(120)
        assert agents[0].is_pending(6)


def test_but_not_for_ever():
    with clients(PAIR, ENDS_SOON, {"timeout": 9.0}, limits=AgentLimits(pending=1)) as (agents, (client, _)):
        agents[0]._engine.account.decided(np.array([60.0]))  # items take long here: it asks for ten seconds
        client.give(range(1, 6), scores=np.ones(5))
        with pytest.raises(LiveError, match=r"answered 429: the agent has as many items .* \(waited 9 s for it\)"):
            client.give([6], scores=[1.0])


def test_an_answer_that_does_not_come():
    with (
        clients(PAIR, ENDS_SOON, {"timeout": 0.3}) as (_, (client, _)),
        pytest.raises(LiveError, match=r"within 0\.3 s"),
    ):
        client.decide([1], scores=[1.0])


def test_a_body_that_is_refused_half_way_is_told():
    with clients(ALONE, ServiceSettings(limits=Limits(bytes=10_000)), score=mean) as (_, (client,)):
        with pytest.raises(LiveError, match="answered 413: the body is larger than 10000 bytes"):
            client.decide([1], views=np.zeros((1, 500_000)))
        assert client.decide([1], views=np.zeros((1, 50)))[0].score == 0


def test_readiness_is_waited_for():
    with in_memory(PAIR) as agents, served(agents[0]) as server, Client(server.url) as client:
        assert client.ready(60)
        agents[1].stop()
        wait_for(lambda: agents[0].why_not_ready())  # it has heard of that
        assert not client.ready(0.3)
    assert not client.ready(0.1)
    with contextlib.ExitStack() as stack:
        port = keep_port(stack)
        (agent,) = stack.enter_context(in_memory(ALONE))
        client = stack.enter_context(Client(f"http://127.0.0.1:{port}"))
        waiting = stack.enter_context(ThreadPoolExecutor()).submit(client.ready, 60)
        time.sleep(0.2)
        with served(agent, port=port):
            assert waiting.result(120)


def test_the_token():
    settings = ServiceSettings(token_sha256=hashlib.sha256(b"sesame").hexdigest())
    with in_memory(ALONE) as agents, served(agents[0], settings) as server:
        with Client(server.url, "sesame") as client:
            assert client.decide([1], scores=[1.0])[0].id == 1
        for token, words in (("sesam", "this is not the token"), (None, "this port needs a token")):
            with Client(server.url, token) as client:
                for question in (client.status, client.ready, lambda client=client: client.result(1)):
                    with pytest.raises(LiveError, match=f"answered 401: {words}"):
                        question()
    with pytest.raises(LiveError, match="one line of printable characters"):
        Client(server.url, "ab\ncd")


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://host",
        "http://",
        "http://host:x",
        "http://host/path",
        "http://host:99999",
        "http://[[::1]]:80",
    ],
)
def test_addresses_that_are_none(url):
    with pytest.raises(LiveError, match="an agent's address is like"):
        Client(url)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": [1]}, "either scores or views"),
        ({"names": [1], "scores": [1], "views": [[1]]}, "either scores or views"),
        ({"names": [1, 2], "scores": [1]}, "2 items, shape"),
        ({"names": [1], "scores": [[1]]}, "answered 422: .* in a network of two classes a score is one number"),
        ({"names": [1], "scores": [[[1]]]}, "shape"),
        ({"names": [1], "scores": ["x"]}, "must be numbers"),
        ({"names": [1], "views": [1.0]}, "views must be numbers of shape"),
        ({"names": [-1], "scores": [1.0]}, "an item's name is a whole number"),
        ({"names": [True], "scores": [1.0]}, "an item's name is a whole number"),
        ({"names": ["x" * 201], "scores": [1.0]}, "an item's name is"),
        ({"names": [None], "scores": [1.0]}, "an item's name is"),
        ({"names": [1], "scores": [np.nan]}, "answered 422: the body, at scores"),
        ({"names": [1, 1], "scores": [1, 2]}, "answered 422: the ids of one request must all be different"),
        ({"names": ["\ud800"], "views": [[1.0]]}, "characters that cannot be written"),
        ({"names": ["\ud800"], "scores": [1.0]}, "characters that cannot be written"),
    ],
)
def test_mistakes_are_sentences(arguments, words):
    with clients(ALONE) as (_, (client,)), pytest.raises(LiveError, match=words):
        client.decide(**arguments)


def test_certificates_without_https(tmp_path):
    with pytest.raises(LiveError, match="certificates are for https"):
        Client("http://127.0.0.1:1", ca=tmp_path / "ca.pem")
    with pytest.raises(LiveError, match="certificates cannot be used"):
        Client("https://127.0.0.1:1", ca=tmp_path / "ca.pem")


class _Stranger(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(self.path.endswith("status")) * 300 + 200)
        self.end_headers()
        self.wfile.write(b"<html>hello\x1b")

    def log_message(self, *_):
        pass


def test_somebody_else_answers():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Stranger) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with Client(f"http://127.0.0.1:{server.server_address[1]}") as client:
            with pytest.raises(LiveError, match="is not an agent of this version"):
                client.result(1)
            with pytest.raises(LiveError, match=r"answered 500: <html>hello\\x1b"):
                client.status()
        server.shutdown()


def test_an_agent_of_few_rows_gets_smaller_batches():
    with clients(ALONE, limits=AgentLimits(pending=5)) as (_, (client,)):
        assert [one.id for one in client.decide(range(23), scores=np.ones(23))] == list(range(23))
