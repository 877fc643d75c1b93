"""The dashboard's port: what it answers, what it refuses."""

import socket

import numpy as np
import pytest

from collegium.cli.dashboard import _digits
from collegium.dashboard.snapshot import network_of
from collegium.network import collaborate
from collegium.policy import uniform
from collegium.topology import grid


def test_it_tells_what_collaborate_gives(digits):
    scores, test = _digits()
    run = collaborate(scores, uniform(grid(3, 3)))
    answer = digits.what_if("7")
    np.testing.assert_array_equal(answer["item"]["statistics"], run.statistics[:, 7])
    assert answer["item"]["truth"] == test.y[7]
    about = digits.ask("GET", "/api/about")[2]
    assert (about["kind"], about["items"], about["classes"]) == ("recorded", len(test), ["3", "8"])


def test_pictures_are_strips_of_views(digits):
    status, headers, content = digits.ask("GET", "/api/views/7.png")
    assert (status, headers["Content-Type"], content[:4]) == (200, "image/png", b"\x89PNG")
    from io import BytesIO

    from PIL import Image

    picture = Image.open(BytesIO(content))
    assert picture.size == (9 * 96, 96)
    _, test = _digits()
    centre = np.asarray(picture)[16:96:32, 4 * 96 + 16 : 5 * 96 : 32, 0]  # of each pixel of the middle patch
    np.testing.assert_array_equal(centre, np.round(255 * test.views[4][7]))
    for number in ("100000", "9" * 5000, "-1", "٣".encode().hex(), "%D9%A3", "7.5"):
        assert digits.ask("GET", f"/api/views/{number}.png")[0] == 404


def test_the_feed_comes_as_events(digits):
    with socket.create_connection(("127.0.0.1", digits.port), timeout=60) as connection:
        connection.sendall(b"GET /api/feed HTTP/1.1\r\nHost: localhost\r\n\r\n")
        seen = b""
        while b'data: {"sequence":1' not in seen:
            seen += connection.recv(65536)
    assert b"text/event-stream" in seen


def test_headers_keep_everything_at_home(digits):
    for path in ("/", "/static/main.js", "/api/about", "/nowhere"):
        headers = digits.ask("GET", path)[1]
        assert headers["Content-Security-Policy"].startswith("default-src 'self';")
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]:1"])
def test_another_name_of_this_machine_is_refused(digits, host):
    status, _, content = digits.ask("GET", "/api/about", headers={"Host": host})
    assert (status, "for this machine alone" in content["error"]) == (403, True)


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1", "[::1]:80"])
def test_its_own_names_are_not(digits, host):
    assert digits.ask("GET", "/api/about", headers={"Host": host})[0] == 200


@pytest.mark.parametrize(
    "path",
    ["/static/..%2fapp.py", "/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/static/", "/app.py"],
)
def test_no_path_leads_out_of_the_page(digits, path):
    assert digits.ask("GET", path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_it_only_reads(digits, method):
    for path in ("/", "/api/about", "/api/feed", "/static/main.js"):
        assert digits.ask(method, path)[0] == 405


@pytest.mark.parametrize(
    ("body", "headers", "status", "sentence"),
    [
        (b"{", {}, 422, "no what-if"),
        ({"item": "0"}, {}, 422, "changes"),
        ({"item": "0", "changes": {"colour": 1}}, {}, 422, "colour"),
        ({"item": "0", "changes": {"rounds": 100000}}, {}, 422, "Rounds: a whole number from 1 to 200."),
        ({"item": "0", "changes": {"rounds": 2.5}}, {}, 422, "Rounds: a whole number"),
        ({"item": "0", "changes": {"fault": "noise", "strength": -1, "faulty": [0]}}, {}, 422, "Strength: a number"),
        ({"item": "0", "changes": {"rule": "label-stability", "patience": 0}}, {}, 422, "Patience: a whole number"),
        ({"item": "179", "changes": {}}, {}, 422, "they are 0 to 178"),
        ({"item": "-1", "changes": {}}, {}, 422, "no item"),
        ({"item": "٣", "changes": {}}, {}, 422, "no item"),
        ({"item": "0", "changes": {"topology": "spiral"}}, {}, 422, "no topology"),
        ({"item": "0", "changes": {}}, {"Content-Type": "text/plain"}, 415, "JSON"),
        (b" " * 20_000, {}, 413, "at most"),
    ],
)
def test_a_what_if_that_is_none_is_answered_by_a_sentence(digits, body, headers, status, sentence):
    got, _, content = digits.ask("POST", "/api/what-if", body, headers)
    assert (got, sentence in content["error"]) == (status, True), content


def test_a_network_as_the_page_draws_it():
    over = uniform(grid(2, 2))
    shown = network_of(over)
    assert len(shown.links) == over.links
    assert all(weight == over.A[l, k] for l, k, weight in shown.links)
