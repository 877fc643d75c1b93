"""An agent's port, asked over real sockets: every answer, every refusal, and clients that do not behave."""

import asyncio
import contextlib
import hashlib
import http.client
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families

from children import interruptible
from collegium import policy, topology
from collegium._serving.limits import JSON, NPY, PNG, Limits, ServiceSettings
from collegium._serving.protocol import CarefulProtocol, _Joined
from collegium.errors import LiveError, ScoreError
from collegium.live import keys
from collegium.live.answers import Busy, Conflict, Evidence, ItemResult, Status
from collegium.live.client import Client
from collegium.live.engine import Limits as AgentLimits
from collegium.live.http.app import App, agent_server
from collegium.live.http.openapi import collegium_version
from collegium.live.peers import Deadlines
from live_networks import PATIENT, in_memory, served
from statuses import items, neighbour, report

pytestmark = pytest.mark.live

ALONE = policy.Policy(np.ones((1, 1)))
PAIR = policy.metropolis(topology.path(2))
TOKEN = "sesame"
SECURED = ServiceSettings(token_sha256=hashlib.sha256(TOKEN.encode()).hexdigest())


@contextlib.contextmanager
def one(settings=None, over=ALONE, **agent_settings):
    """The agents of a network, the first one's port open, and a way to ask it."""
    with in_memory(over, rounds=3, **agent_settings) as agents, served(agents[0], settings) as server:
        yield agents, Asking(server.url)


class Asking:
    """Plain HTTP, to see what is really answered."""

    def __init__(self, url):
        self.url, parts = url, urlsplit(url)
        self.place = parts.hostname, parts.port

    def __call__(self, method, path, body=None, kind=None, **headers):
        connection = http.client.HTTPConnection(*self.place, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {**({"Content-Type": kind} if kind else {}), **named})
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def json(self, *request, **headers):
        status, body, answered = self(*request, **headers)
        assert answered["Content-Type"] == "application/json"
        return status, json.loads(body)

    def post(self, content, path="/v1/items", **headers):
        return self.json("POST", path, json.dumps(content).encode(), JSON, **headers)

    def raw(self, *pieces):
        """Everything that comes back for these bytes until the agent closes the connection."""
        with socket.create_connection(self.place, timeout=60) as line:
            answer = b""
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                for piece in pieces:
                    line.sendall(piece)
            with contextlib.suppress(ConnectionResetError):
                while more := line.recv(1 << 16):
                    answer += more
            return answer


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def mean(views):
    return views.reshape(len(views), -1).mean(axis=1) - 1


# ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_item_gets_one_outcome_and_many_get_a_list():
    with one(classes=("cat", "dog")) as (_, ask):
        status, outcome = ask.post({"id": "x", "score": 0.5, "trace": True})
        assert status == 200
        assert outcome.pop("latency_ms") >= 0
        assert outcome == {
            "id": "x", "label": "dog", "statistic": 0.5, "score": 0.5, "settled": True, "rounds": 3, "view": "given",
            "evidence": outcome["evidence"], "heard": [], "missed": [], "trace": [0.5, 0.5, 0.5, 0.5],
        }  # fmt: skip
        status, answer = ask.post({"ids": [1, "two"], "scores": [-1, 2]})
        assert [(item["id"], item["label"], item["trace"]) for item in answer["items"]] == [
            (1, "cat", None), ("two", "dog", None),
        ]  # fmt: skip


def test_who_looks_on_sees_the_last_items():
    with one() as (agents, ask):
        for k in range(3):
            ask.post({"id": k, "score": 1})
        status, seen = ask.json("GET", "/v1/recent?items=2")
        assert status == 200
        assert [int(item["identity"], 16) for item in seen["items"]] == [2, 1]
        assert seen["rounds"] == agents[0].rounds
        assert len(ask.json("GET", "/v1/recent")[1]["items"]) == 3


def test_views_go_through_the_model_in_every_form():
    picture = io.BytesIO()
    Image.new("L", (3, 2), 7).save(picture, "PNG")
    with one(score=mean) as (_, ask):
        assert ask.post({"id": 1, "view": [1, 3]})[1]["score"] == 1.0
        assert ask.json("POST", "/v1/items?id=2", npy(np.full((2, 2), 4, np.uint8)), NPY)[1]["score"] == 3.0
        assert ask.json("POST", "/v1/items?id=3&trace=1", picture.getvalue(), PNG)[1]["trace"] == [6.0] * 4
        status, answer = ask.json("POST", "/v1/items?first=10", npy(np.zeros((3, 40_000))), NPY)  # read by the worker
        assert [(item["id"], item["score"]) for item in answer["items"]] == [(10, -1.0), (11, -1.0), (12, -1.0)]
        assert status == 200


def test_numpy_labels_are_plain_in_json():
    with one(classes=(np.int64(3), np.str_("eight"))) as (_, ask):
        assert [item["label"] for item in ask.post({"ids": [1, 2], "scores": [-1, 1]})[1]["items"]] == [3, "eight"]


def test_an_item_waits_for_the_other_agents_view():
    with one(over=PAIR) as (agents, ask):
        assert ask.json("GET", "/v1/items/7")[0] == 404
        assert ask.post({"id": 7, "score": 1.0, "wait": False}) == (202, {"accepted": 1})
        assert ask.json("GET", "/v1/items/7") == (202, {"id": 7, "state": "pending"})
        agents[1].submit([7], np.array([3.0])).result(120)
        until(lambda: ask.json("GET", "/v1/items/7")[0] == 200)
        outcome = ask.json("GET", "/v1/items/7?trace=1")[1]
        assert outcome["statistic"] == 2.0
        assert outcome["trace"] == [1.0, 2.0, 2.0, 2.0]
        assert outcome["heard"] == ["agent-1"]


@pytest.mark.parametrize("name", ["a/b", "../../etc/passwd", "ü %41?", ".", "12"])
def test_any_name_can_be_asked_for(name):
    from urllib.parse import quote

    with one() as (_, ask):
        ask.post({"id": name, "score": 1})
        status, outcome = ask.json("GET", f"/v1/items/{quote(name, safe='')}")
        assert status == 200
        assert str(outcome["id"]) == name


def submitted(agent, monkeypatch):
    """Scores as they reach the agent, which answers the first class."""
    seen = []

    def submit(names, scores, trace=False):
        seen.append(scores)
        made = Future()
        none = Evidence(1, 1, [])
        rows = scores.tolist()
        made.set_result(
            [ItemResult(n, "a", s, s, True, none, 3, "given", [], [], 0.5) for n, s in zip(names, rows, strict=True)]
        )
        return made

    monkeypatch.setattr(agent, "submit", submit)
    return seen


def test_scores_and_models_of_several_classes(monkeypatch):
    def three(views):
        return np.stack([views.sum(axis=1), views[:, 0], -views[:, 0]], axis=1)

    with one(classes=("a", "b", "c"), score=three) as (agents, ask):
        seen = submitted(agents[0], monkeypatch)
        assert ask.post({"id": 1, "score": [1, 2, 3]})[1]["statistic"] == [1.0, 2.0, 3.0]
        assert ask.post({"ids": [2, 3], "views": [[1, 2], [3, 4]]})[0] == 200
        assert [scores.tolist() for scores in seen] == [[[1, 2, 3]], [[3, 1, -1], [7, 3, -3]]]
        status, content = ask.post({"id": 4, "score": 1})
        assert "a list of 3 numbers" in content["error"]
        assert status == 422
        with Client(ask.url) as client:
            assert client.decide([5, 6], scores=[[1, 2, 3], [4, 5, 6]])[1].score == [4.0, 5.0, 6.0]
        document = ask.json("GET", "/openapi.json")[1]
        assert document["components"]["schemas"]["Scored"]["properties"]["score"]["maxItems"] == 3


def test_a_model_of_two_classes_does_not_do_for_three():
    with one(classes=("a", "b", "c"), score=mean) as (_, ask):
        status, content = ask.post({"id": 1, "view": [1]})
        assert "does not give 3 finite numbers for each" in content["error"]
        assert status == 422


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "status", "words"),
    [
        ("POST", "/v1/items", b"{", JSON, 400, "not JSON"),
        ("POST", "/v1/items", b"id=1", "application/x-www-form-urlencoded", 415, "Content-Type must be"),
        ("POST", "/v1/items", b'{"id": 1, "score": 2}', None, 415, "none was given"),
        ("POST", "/v1/items", b'{"id": 1, "score": 1e301}', JSON, 422, "item 1 has score"),
        ("POST", "/v1/items", b'{"id": 1, "view": [1]}', JSON, 422, "has no model: send it scores"),
        ("GET", "/v1/items", None, None, 405, "GET is not possible here; possible: POST"),
        ("DELETE", "/v1/status", None, None, 405, "possible: GET"),
        ("GET", "/v1/items/", None, None, 422, "1 to 200 characters"),
        ("GET", "/v1/items/%00", None, None, 422, "no control characters"),
        ("GET", "/v1/items/x?trace=2", None, None, 422, "must be 1 or 0"),
        ("GET", "/v1/recent?items=65", None, None, 422, "from 1 to 64"),
        ("GET", "/v1/recent?items=-1", None, None, 422, "from 1 to 64"),
        ("GET", "/nowhere", None, None, 404, "/openapi.json lists what there is"),
        ("GET", "/etc/passwd", None, None, 404, "lists what there is"),
        ("GET", "/healthz/", None, None, 404, "lists what there is"),
    ],
)
def test_every_refusal_is_one_sentence(method, path, body, kind, status, words):
    with one() as (_, ask):
        answered, content = ask.json(method, path, body, kind)
        assert words in content["error"]
        assert answered == status
        assert ask.json("GET", "/healthz") == (200, {"alive": True})


@pytest.mark.parametrize(
    ("problem", "status", "after"),
    [
        (Conflict("item 7 was submitted before with score 1, now with 2"), 409, None),
        (Busy(20.0), 429, 20.0),
        (ScoreError("no such score"), 422, None),
        (LiveError("it is stopping"), 503, None),
    ],
)
def test_what_the_agent_refuses_has_a_status_of_its_own(problem, status, after, monkeypatch):
    def submit(names, scores, trace=False):
        raise problem

    with one() as (agents, ask):
        monkeypatch.setattr(agents[0], "submit", submit)
        answered, body, headers = ask("POST", "/v1/items", b'{"id": 7, "score": 2}', JSON)
        content = json.loads(body)
        assert content["error"] == str(problem)
        assert (answered, content.get("retry_after")) == (status, after)
        assert headers["Retry-After"] == (None if after is None else "20")
        with Client(ask.url, timeout=15) as client, pytest.raises(LiveError, match=f"answered {status}: {problem}"):
            client.decide([7], scores=[2.0])


def test_a_compressed_body_is_refused():
    with one() as (_, ask):
        assert ask.post({"id": 1, "score": 1}, Content_Encoding="gzip")[0] == 415


@pytest.mark.parametrize(
    ("problem", "status", "words"),
    [
        (ValueError("X has 3 features\nsecret second line"), 422, "refuses views of this shape: X has 3 features"),
        (RuntimeError("secret"), 500, "its log has the details"),
        (lambda views: np.zeros(7), 422, "one finite number for each"),
        (lambda views: np.full(len(views), np.nan), 422, "one finite number for each"),
    ],
)
def test_a_model_that_fails_is_a_sentence_and_never_a_traceback(problem, status, words, caplog):
    def score(views):
        if isinstance(problem, Exception):
            raise problem
        return problem(views)

    with one(score=score) as (_, ask):
        answered, content = ask.post({"id": 1, "view": [1]})
        assert words in content["error"]
        assert "secret" not in content["error"]
        assert answered == status
        assert ("RuntimeError: secret" in caplog.text) == (status == 500)


def test_a_body_too_large_is_refused_before_it_is_sent():
    limits = ServiceSettings(limits=Limits(bytes=1000))
    with one(limits) as (_, ask):
        head = b"POST /v1/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        answer = ask.raw(head + b"Content-Length: 1001\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"larger than 1000 bytes" in answer


def test_a_body_that_does_not_say_its_length_is_cut_off():
    limits = ServiceSettings(limits=Limits(bytes=1000))
    with one(limits) as (_, ask):
        head = b"POST /v1/items HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
        piece = b"190\r\n" + b" " * 400 + b"\r\n"
        answer = ask.raw(head + b"\r\n", piece, piece, piece)
        assert answer.startswith(b"HTTP/1.1 413 ")
        body = b'{"id": 1, "score": 1}'
        answer = ask.raw(head + b"Connection: close\r\n\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        assert answer.startswith(b"HTTP/1.1 200 ")


def test_json_has_a_limit_of_its_own():
    with one(ServiceSettings(limits=Limits(json=1000)), score=mean) as (_, ask):
        assert ask.json("POST", "/v1/items?id=1", npy(np.zeros(200)), NPY)[0] == 200
        status, content = ask.post({"id": 1, "view": [0.0] * 300})
        assert "larger than 1000 bytes: send fewer items at a time, or NPY" in content["error"]
        assert status == 413


def test_more_items_than_the_agent_can_ever_hold_are_too_many():
    with one(limits=AgentLimits(pending=5)) as (_, ask):
        status, content = ask.post({"ids": list(range(6)), "scores": [0.0] * 6})
        assert "send at most 5" in content["error"]
        assert status == 413


# ── too much at once ──────────────────────────────────────────────────────────────────────────────────────────────────


def refused_for_now(answer, deadlines=Deadlines()):
    """The sentence; the pause is less than half of what an agent waits for a view."""
    status, body, headers = answer
    assert status == 429
    assert int(headers["Retry-After"]) >= 1
    content = json.loads(body)
    assert 0 < content["retry_after"] <= deadlines.view / 2
    return content["error"]


def test_a_busy_agent_says_when_to_come_again():
    with one(over=PAIR, limits=AgentLimits(pending=2), deadlines=PATIENT) as (agents, ask):
        for first in range(0, 10, 2):  # two are begun, eight wait
            ask.post({"ids": [first, first + 1], "scores": [1, 1], "wait": False})
        refusal = ask("POST", "/v1/items", b'{"id": 10, "score": 1}', JSON)
        assert "as many items pending" in refused_for_now(refusal, PATIENT)
        assert ask.json("GET", "/v1/items/10")[0] == 404
        agents[1].submit([0, 1], np.zeros(2)).result(120)
        until(lambda: ask.post({"id": 10, "score": 1, "wait": False})[0] == 202)
        agents[1].submit(list(range(2, 11)), np.zeros(9))  # the port waits for what was accepted before it closes


def test_the_model_has_a_short_queue():
    entered, leave = threading.Event(), threading.Event()

    def slow(views):
        entered.set()
        assert leave.wait(60)
        return mean(views)

    with one(ServiceSettings(queue=1), score=slow) as (_, ask), ThreadPoolExecutor() as threads:
        first = threads.submit(ask.post, {"id": 1, "view": [1]})
        assert entered.wait(60)
        assert "wait for the model" in refused_for_now(ask("POST", "/v1/items", b'{"id": 2, "view": [1]}', JSON))
        assert ask.post({"id": 3, "score": 1})[0] == 200  # scores need no model
        leave.set()
        assert first.result(120)[0] == 200
        assert ask.post({"id": 2, "view": [1]})[0] == 200


def test_requests_in_progress_are_counted_but_the_process_still_says_it_lives():
    with one(ServiceSettings(requests=1), over=PAIR) as (agents, ask), ThreadPoolExecutor() as threads:
        first = threads.submit(ask.post, {"id": 1, "score": 1})
        until(lambda: agents[0].is_pending(1))
        assert "in progress already" in refused_for_now(ask("GET", "/v1/status"))
        assert ask("GET", "/healthz")[0] == 200
        agents[1].submit([1], np.zeros(1))
        assert first.result(120)[0] == 200
        assert ask("GET", "/v1/status")[0] == 200


def test_bodies_in_memory_are_counted():
    with one(ServiceSettings(held=1000)) as (_, ask):
        body = json.dumps({"id": 1, "score": 1, "trace": True}).encode()
        assert "as many bodies" in refused_for_now(ask("POST", "/v1/items", body + b" " * 1000, JSON))
        for _ in range(30):  # what is done is given back, also after a refusal
            assert ask("POST", "/v1/items", body, JSON)[0] == 200
            assert ask("POST", "/v1/items", body[:-1], JSON)[0] == 400


def test_a_network_that_does_not_decide_is_not_waited_for_for_ever():
    with one(ServiceSettings(answer_seconds=0.2), over=PAIR) as (agents, ask):
        status, content = ask.post({"id": 1, "score": 1.0})
        assert "not decided within 0.2 s" in content["error"]
        assert status == 503
        agents[1].submit([1], np.array([3.0])).result(120)  # and the engine takes no harm
        until(lambda: ask.json("GET", "/v1/items/1")[0] == 200)


# ── clients that do not behave ────────────────────────────────────────────────────────────────────────────────────────


def test_a_head_that_does_not_end(monkeypatch):
    monkeypatch.setattr(CarefulProtocol, "head_seconds", 0.3)
    with one() as (_, ask):
        head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
        until(lambda: ask.raw(head).startswith(b"HTTP/1.1 408 "))  # a busy machine may begin to send too late
        assert ask.raw() == b""  # says nothing at all
        twice = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        until(lambda: ask.raw(twice, twice[:20]).count(b"HTTP/1.1 408 ") == 1)


def test_a_head_that_is_too_long():
    with one() as (_, ask):
        line = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
        assert ask.raw(line + b"X: " + b"y" * 70_000).startswith(b"HTTP/1.1 431 ")
        assert ask.raw(line + b"X: y\r\n" * 12_000 + b"\r\n").startswith(b"HTTP/1.1 431 ")
        assert ask.raw(b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 431 ")
        assert ask.raw(*[line + b"X: "] + [b"y" * 20_000] * 20).startswith(b"HTTP/1.1 431 ")
        assert ask("GET", "/healthz", X="y" * 60_000)[0] == 200


def test_a_body_that_does_not_end(monkeypatch):
    monkeypatch.setattr(CarefulProtocol, "body_seconds", 0.3)
    with one() as (_, ask):
        head = (
            b"POST /v1/items HTTP/1.1\r\nHost: [::1]\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        assert ask.raw(head).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_goes_away_is_not_an_error(caplog):
    with one() as (_, ask):
        head = (
            b"POST /v1/items HTTP/1.1\r\nHost: [::1]\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        with socket.create_connection(ask.place) as line:
            line.sendall(head)
        assert ask("GET", "/healthz")[0] == 200
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


def test_nobody_waits_for_a_client_that_is_gone():
    with one(ServiceSettings(requests=1), over=PAIR) as (agents, ask):
        body = b'{"id": 1, "score": 1}'
        head = b"POST /v1/items HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        with socket.create_connection(ask.place) as line:
            line.sendall(head % len(body) + body)
            until(lambda: agents[0].is_pending(1))
            assert ask("GET", "/v1/status")[0] == 429
        until(lambda: ask("GET", "/v1/status")[0] == 200)
        agents[1].submit([1], np.zeros(1)).result(120)
        until(lambda: ask("GET", "/v1/items/1")[0] == 200)


def test_many_that_are_decided_together_are_all_answered():
    with one(over=PAIR) as (agents, ask), ThreadPoolExecutor(40) as threads:
        for turn in range(5):
            names = [f"{turn}-{k}" for k in range(40)]
            waiting = [threads.submit(ask.post, {"id": name, "score": 1}) for name in names]
            until(lambda names=names: all(agents[0].is_pending(name) for name in names))
            agents[1].submit(names, np.ones(40))
            assert [one.result(120)[1]["id"] for one in waiting] == names


class Recorder:
    """A transport that only notes what it is told."""

    def __init__(self):
        self.calls = []

    def is_closing(self):
        return ("close", None) in self.calls

    def write(self, data):
        self.calls.append(("write", data))

    def close(self):
        self.calls.append(("close", None))


def test_a_head_and_its_body_are_sent_together():
    async def both(transport):
        joined = _Joined(transport, asyncio.get_running_loop())
        joined.write(b"head ")
        joined.write(b"body")
        assert transport.calls == []
        await asyncio.sleep(0)
        joined.write(b"last")
        joined.close()
        joined.write(b"too late")
        await asyncio.sleep(0)

    transport = Recorder()
    asyncio.run(both(transport))
    assert transport.calls == [("write", b"head body"), ("write", b"last"), ("close", None)]


def test_a_client_that_does_not_read_its_answer_is_left(monkeypatch):
    monkeypatch.setattr(CarefulProtocol, "answer_seconds", 0.3)
    n = 20_000
    with (
        in_memory(ALONE, rounds=3, limits=AgentLimits(memory=256 << 20)) as agents,
        served(agents[0], ServiceSettings(limits=Limits(items=n))) as server,
    ):
        ask = Asking(server.url)
        body = json.dumps({"ids": list(range(n)), "scores": [0.1] * n, "trace": True}).encode()
        head = b"POST /v1/items HTTP/1.1\r\nHost: [::1]\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        with socket.socket() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.settimeout(60)
            line.connect(ask.place)
            line.sendall(head % len(body) + body)
            until(lambda: ask("GET", f"/v1/items/{n - 1}")[0] == 200)
            line.recv(1, socket.MSG_PEEK)  # it begins to answer
            until(lambda: not len(server.crowd))  # the agent has closed it
            got = 0
            with contextlib.suppress(ConnectionResetError):
                while more := line.recv(1 << 20):
                    got += len(more)
        _, whole, _ = ask("POST", "/v1/items", body, JSON)
        assert got < len(whole)


def test_two_requests_in_one_packet_are_answered_in_order():
    with one() as (_, ask):
        first, last = (
            b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
        )
        answer = ask.raw(first + last)
        assert answer.index(b"HTTP/1.1 404 ") < answer.index(b"HTTP/1.1 200 ")


def test_what_is_not_http_is_told_so():
    with one() as (_, ask):
        answer = ask.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"error": "this is not HTTP/1.1"}


def test_small_answers_do_not_wait_for_an_acknowledgement():
    """With Nagle's delay every answer but the first takes 40 ms: 30 of them 1.2 s, whatever the machine does."""
    with one() as (_, ask):
        connection = http.client.HTTPConnection(*ask.place)

        def thirty():
            begun = time.monotonic()
            for _ in range(30):
                connection.request("GET", "/healthz")
                connection.getresponse().read()
            return time.monotonic() - begun

        assert any(thirty() < 1.0 for _ in range(10))
        connection.close()


# ── who may come in ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_the_token_only_the_sign_of_life():
    with one(SECURED) as (_, ask):
        for wrong in (
            {},
            {"Authorization": "Bearer sesam"},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": TOKEN},
        ):
            for path in ("/v1/status", "/readyz", "/metrics", "/openapi.json", "/v1/items/1", "/nowhere"):
                status, body, headers = ask("GET", path, **wrong)
                assert status == 401
                assert headers["WWW-Authenticate"] == "Bearer"
                assert "token" in json.loads(body)["error"]
            assert ask.post({"id": 1, "score": 1}, **wrong)[0] == 401
            assert ask("GET", "/healthz", **wrong)[0] == 200
        assert ask("GET", "/v1/status", Authorization=f"bearer {TOKEN}")[0] == 200
        assert ask.post({"id": 1, "score": 1}, Authorization=f"Bearer {TOKEN}")[0] == 200


def test_a_token_that_is_no_hash_is_refused():
    with pytest.raises(LiveError, match="64 hexadecimal digits"):
        ServiceSettings(token_sha256=TOKEN)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "8.8.8.8"])
def test_a_port_others_can_reach_needs_a_token_or_certificates(host):
    with in_memory(ALONE) as agents, pytest.raises(LiveError, match="needs a token or client certificates"):
        agent_server(agents[0], host=host)


def test_with_a_token_it_may_listen_everywhere(caplog):
    with in_memory(ALONE) as agents, served(agents[0], SECURED, host="0.0.0.0") as server:
        here = Asking(server.url.replace("0.0.0.0", "127.0.0.1"))
        assert here("GET", "/v1/status", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert "the token travels unencrypted" in caplog.text


@pytest.mark.parametrize(
    ("host", "words"), [("", "name the address"), ("no such host", "not an address"), ("192.0.2.7", "")]
)
def test_addresses_that_cannot_be_listened_on(host, words):
    with in_memory(ALONE) as agents, pytest.raises(LiveError, match=words or "cannot listen on 192.0.2.7"):
        agent_server(agents[0], SECURED, host)


def test_a_port_that_is_taken_is_a_sentence():
    with in_memory(ALONE) as agents, served(agents[0]) as server:
        taken = urlsplit(server.url).port
        with pytest.raises(LiveError, match=f"cannot listen on 127.0.0.1, port {taken}: Address already in use"):
            agent_server(agents[0], port=taken)


def test_the_name_of_this_machine_is_local():
    with in_memory(ALONE) as agents, served(agents[0], host="localhost") as server:
        assert Asking(server.url)("GET", "/healthz")[0] == 200


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    (folder / "other").mkdir()
    ours, others = keys.create_authority(folder, "net"), keys.create_authority(folder / "other", "other")
    return {
        "agent": keys.issue(ours, folder, "agent-0", ["127.0.0.1"]),
        "user": keys.issue(ours, folder, "user", ["127.0.0.1"]),
        "stranger": keys.issue(others, folder / "other", "user", ["127.0.0.1"]),
    }


def test_client_certificates(certificates):
    agent, user, stranger = certificates["agent"], certificates["user"], certificates["stranger"]
    port = {"tls": agent, "client_certificates": True}
    with in_memory(ALONE) as agents, served(agents[0], **port) as server:
        assert server.url.startswith("https://")
        with Client(server.url, ca=agent.ca, certificate=(user.certificate, user.key)) as client:
            assert client.decide([1], scores=[1.0])[0].label == 1
        for wrong in (None, (stranger.certificate, stranger.key)):
            with (
                Client(server.url, ca=agent.ca, certificate=wrong) as client,
                pytest.raises(LiveError, match="cannot reach"),
            ):
                client.status()
        with (
            Client(server.url, ca=stranger.ca) as client,
            pytest.raises(LiveError, match="a certificate we do not trust"),
        ):
            client.status()
        assert Asking(server.url).raw(b"GET /healthz HTTP/1.1\r\n\r\n").startswith(b"HTTP/") is False


def test_certificates_that_do_not_go_together(certificates, tmp_path):
    agent, user = certificates["agent"], certificates["user"]
    with in_memory(ALONE) as agents:
        with pytest.raises(LiveError, match="certificate of the port cannot be used"):
            agent_server(agents[0], tls=replace(agent, key=user.key))
        with pytest.raises(LiveError, match="certificate of the port cannot be used"):
            agent_server(agents[0], tls=replace(agent, certificate=tmp_path / "none.pem"))
        with pytest.raises(LiveError, match="client certificates need HTTPS"):
            agent_server(agents[0], client_certificates=True)


# ── the agent's state ────────────────────────────────────────────────────────────────────────────────────────────────


def test_readiness_names_who_is_missing():
    with one(over=PAIR) as (agents, ask):
        assert ask.json("GET", "/readyz") == (200, {"ready": True})
        agents[1].stop()
        until(lambda: ask("GET", "/readyz")[0] == 503)
        assert ask.json("GET", "/readyz")[1]["error"] == "agent-0 is not ready: waiting for agent-1"
        assert ask.json("GET", "/v1/status")[1]["not_ready_reason"] == "waiting for agent-1"


def test_metrics():
    with one(over=PAIR) as (agents, ask), ThreadPoolExecutor() as threads:
        agents[0].receive(1, b"nonsense")
        first = threads.submit(ask.post, {"ids": list(range(20)), "scores": [1.0] * 20})
        agents[1].submit(list(range(20)), np.ones(20))
        assert first.result(120)[0] == 200
        ask.post({"id": "pending", "score": 1, "wait": False})
        ask("GET", "/nowhere")
        status, body, headers = ask("GET", "/metrics")
        agents[1].submit(["pending"], np.ones(1))  # the port waits for what was accepted before it closes
        assert status == 200
        assert headers["Content-Type"].startswith("text/plain; version=")
        families = {family.name: family for family in text_string_to_metric_families(body.decode())}
        values = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in families.values()
            for sample in family.samples
        }
        assert values["collegium_items_decided_total",] == 20
        assert values["collegium_items_pending",] == 1
        assert values["collegium_items_pending_max",] == agents[0].status().items.most
        assert values["collegium_messages_re_requested_total",] == 0
        assert values["collegium_messages_missed_total", "agent-1"] == 0
        assert values["collegium_rounds_total",] >= 60
        assert values["collegium_bytes_total", "sent"] > 100
        assert values["collegium_bytes_total", "received"] > 100
        assert values["collegium_frames_rejected_total", "agent-1"] == 1
        assert values["collegium_neighbour_state", "agent-1", "up"] == 1
        assert values["collegium_neighbour_state", "agent-1", "down"] == 0
        assert values["collegium_ready",] == 1
        assert values["collegium_http_responses_total", "/v1/items", "200"] == 1
        assert values["collegium_http_responses_total", "/v1/items", "202"] == 1
        assert values["collegium_http_responses_total", "404", "other"] == 1
        buckets = [s.value for s in families["collegium_item_seconds"].samples if s.name.endswith("_bucket")]
        assert buckets == sorted(buckets)
        assert buckets[-1] == values["collegium_item_seconds_count",] == 20
        assert values["collegium_item_seconds_sum",] > 0


def test_metrics_of_evidence_and_overload(monkeypatch):
    trouble = report(
        0, neighbour(1, "late", over_budget=70), overloaded_s=2.5,
        items=items(waiting=40, incomplete=12, past_deadline=3, no_room=9),
    )  # fmt: skip
    with one() as (agents, ask):
        monkeypatch.setattr(agents[0], "status", lambda: trouble)
        text = ask("GET", "/metrics")[1].decode().splitlines()
    for line in (
        "collegium_items_incomplete_total 12.0",
        "collegium_items_past_deadline_total 3.0",
        "collegium_items_no_room_total 9.0",
        "collegium_items_waiting 40.0",
        "collegium_overloaded_seconds_total 2.5",
        'collegium_over_budget_total{neighbour="agent-1"} 70.0',
        f'collegium_version_info{{version="{collegium_version()}"}} 1.0',
    ):
        assert line in text


def test_labels_of_metrics_do_not_grow_with_what_is_asked():
    with one() as (_, ask):
        for k in range(20):
            ask("GET", f"/v1/items/{k}")
            ask("GET", f"/x{k}")
        text = ask("GET", "/metrics")[1].decode()
        assert text.count("collegium_http_responses_total{") == 2


def test_the_openapi_document_has_every_path():
    with one(SECURED) as (agents, ask):
        status, document = ask.json("GET", "/openapi.json", Authorization=f"Bearer {TOKEN}")
        assert status == 200
        paths = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
        assert paths == {(path, method) for path, (method, _) in App(agents[0]).routes.items()}
        assert document["openapi"].startswith("3.1")
        assert document["security"] == [{"token": []}]
        schemas = document["components"]["schemas"]
        assert set(schemas["Status"]["properties"]) == set(Status.__struct_fields__)
        told = schemas["ItemResult"]["properties"]
        assert told["settled"]["description"].startswith("Whether every view that can be is in the statistic, no")
        assert told["evidence"] == {"$ref": "#/components/schemas/Evidence"}


SCHEMATHESIS = shutil.which("st", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


@pytest.mark.skipif(SCHEMATHESIS is None, reason="needs schemathesis")
@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(tmp_path):
    """What the document cannot say is refused with 422: two lists of one length, names that differ, shapes of views.

    400 is for NPY and pictures, whose bytes it does not describe.
    """
    config = tmp_path / "schemathesis.toml"
    config.write_text(
        '[checks]\npositive_data_acceptance.expected-statuses = ["2xx", "400", "404", "409", "413", "422"]\n'
    )
    with one(SECURED, score=mean) as (_, ask):
        command = [
            SCHEMATHESIS, "--config-file", config, "run", f"{ask.url}/openapi.json",
            "--header", f"Authorization: Bearer {TOKEN}", "--checks", "all", "--phases", "coverage,fuzzing",
            "--max-examples", "20", "--generation-deterministic", "--no-color",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


# ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_at_the_end_what_was_accepted_is_answered():
    with in_memory(PAIR, rounds=3) as agents, ThreadPoolExecutor() as threads:
        with served(agents[0]) as server:
            ask = Asking(server.url)
            waiting = threads.submit(ask.post, {"id": 1, "score": 1})
            until(lambda: agents[0].is_pending(1))
            server.stop()
            until(lambda: ask("GET", "/readyz")[0] == 503)
            assert "about to stop" in ask.json("GET", "/readyz")[1]["error"]
            refused, answer = ask.post({"id": 2, "score": 1})
            assert refused == 503
            assert "about to stop: retry" in answer["error"]
            assert answer["retry_after"] > 0
            assert not waiting.done()
            agents[1].submit([1], np.zeros(1))
            assert waiting.result(120)[0] == 200
        assert not reachable(ask)


def reachable(ask):
    try:
        socket.create_connection(ask.place, timeout=1).close()
    except OSError:
        return False
    return True


def test_whoever_waits_is_told_when_the_agent_stops_first():
    with one(over=PAIR) as (agents, ask), ThreadPoolExecutor() as threads:
        waiting = threads.submit(ask.post, {"id": 1, "score": 1})
        until(lambda: agents[0].is_pending(1))
        agents[0].stop()
        status, content = waiting.result(120)
        assert "was stopped before the item was decided" in content["error"]
        assert status == 503
        assert ask.post({"id": 2, "score": 1})[0] == 503


PROGRAM = """
import numpy as np
from collegium.live.agent import Agent
from collegium.live.http.app import agent_server
from collegium.live.transport.base import Place
from collegium.live.transport.memory import Hub, MemoryTransport

place = Place("c0ffee", 0, "agent-0", "memory/0", (), (), None)
agent = Agent(place, {0: 1.0}, ["agent-0"])
agent.start(MemoryTransport(place, Hub()))
agent_server(agent, started=lambda: print("open", flush=True)).run()
agent.stop()
print("closed", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_port_and_lets_the_process_tidy_up(number):
    with interruptible([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "open\n"
        process.send_signal(number)
        assert process.stdout.readline() == "closed\n"
        assert process.wait(120) == 0
