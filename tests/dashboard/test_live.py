"""A real network of processes, watched: what agents report is shown, and watching does no harm."""

import os
import signal
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from collegium import policy, topology
from collegium.dashboard.live import Live
from collegium.dashboard.views import Views
from collegium.dashboard.what_if import Changes
from collegium.errors import InputFileError
from collegium.live.answers import RecentItem
from collegium.live.client import Client
from collegium.live.folder import NetworkSettings, create
from collegium.live.launcher import Member
from collegium.network import collaborate
from collegium.protocol import SocialLearning
from dashboards import running, until
from helpers import of_classes, tiny_images
from live_processes import ask_all, process_of, statistics, status, wait_for
from live_processes import running as network_of
from statuses import neighbour, report

RING = policy.uniform(topology.ring(4))


def test_the_state_of_agents_is_what_their_neighbours_report(tmp_path):
    """The worst of it, with the reason; rates are means over the last moments."""
    create(tmp_path / "net", RING, None, NetworkSettings(port=0, http_port=0))
    feed = Live(tmp_path / "net")
    try:
        assert {one.state for one in feed.snapshot().health} == {"not polled yet"}
        feed._record(0, report(0, neighbour(1, "late"), neighbour(3, "refused", "another network", 5)), [], 10.0)
        feed._record(2, report(2, neighbour(1, "up"), neighbour(3, "down", "has left")), [], 10.0)
        feed._record(
            0,
            report(0, neighbour(1, "late"), neighbour(3, "refused", "another network", 5), rounds=100),
            [],
            12.0,
        )
        health = feed.snapshot().health
        assert [one.state for one in health] == ["up", "late", "up", "refused"]
        assert health[3].why == "agent-0: another network"
        assert (health[0].rejected, health[0].rounds_per_second, health[0].bytes_per_second) == (5, 50.0, 500.0)
        assert feed.snapshot().notes == ["a peer was refused"]
        feed._record(0, report(0, rounds=3), [], 13.0)  # started again: no rate yet
        assert feed.snapshot().health[0].rounds_per_second is None
    finally:
        feed.close()


def test_items_of_unknown_class_do_not_hide_the_errors_of_others(tmp_path):
    """One with a name of its own, which is a hash here, among two of the test set."""
    create(tmp_path / "net", RING, None, NetworkSettings(port=0, http_port=0))
    feed = Live(tmp_path / "net", lambda K: Views(tiny_images(6, K), K))
    try:
        ids = [f"{1:016x}", f"{4:016x}", "0f60" + "7" * 12]
        for k in range(4):
            recent = [RecentItem(id, 0, False, "given", 0.5, 0.5, [0.5], [], None, None, [], 1.0) for id in ids]
            feed._record(k, report(k), recent, 10.0)
        world, i = feed.world(ids[2])
        truth = feed.views.dataset.y
        assert dict(zip(world.names, world.y, strict=True)) == {1: truth[1], 4: truth[4], int(ids[2], 16): 0}
        assert world.y[i] == 0
        assert {item.name for item in feed.snapshot().items} == {"1", "4", "item 0f6077…"}
    finally:
        feed.close()


def _images(K, names, y):
    return Views(replace(tiny_images(len(y), K), y=np.array(y), class_names=names), K)


FOUR = ("ahead", "left", "right", "turn")


@pytest.mark.parametrize(
    ("names", "shown", "truth"),
    [
        (FOUR, FOUR, [2, 1, 3]),
        (("turn", "left", "ahead", "right"), FOUR, [0, 1, 2]),  # the same classes in another order
        (("0", "1", "2", "3"), ("0", "1", "2", "3"), [2, 1, 3]),  # other names: places
    ],
)
def test_items_of_several_classes(tmp_path, names, shown, truth):
    """Entries in the network's order, and the true class as a place among them."""
    create(tmp_path / "net", RING, None, NetworkSettings(port=0, http_port=0, classes=FOUR))
    feed = Live(tmp_path / "net", lambda K: _images(K, names, [2, 1, 3]))
    try:
        assert feed.about.classes == shown
        scores = of_classes(3, 4, 4, seed=3)
        scores[0, 0] = [0.3, -0.1, -0.1, -0.1]
        ids = [f"{0:016x}", f"{2:016x}", "0f60" + "7" * 12]
        for k in range(4):
            own = [(id, scores[i, k].tolist()) for i, id in enumerate(ids)]
            recent = [RecentItem(id, 0, False, "given", s, s, [s], [], None, None, [], 1.0) for id, s in own]
            feed._record(k, report(k), recent, 10.0)
        world, i = feed.world(ids[2])
        np.testing.assert_array_equal(world.scores, scores)
        assert (i, world.y.tolist()) == (2, [truth[0], truth[2], -1])
        items = {item.id: item for item in feed.snapshot().items}
        assert [items[id].truth for id in ids] == [truth[0], truth[2], None]
        np.testing.assert_array_equal(items[ids[0]].statistics, scores[:1])
        np.testing.assert_allclose(items[ids[0]].limit, RING.perron @ scores[0], atol=1e-15)
        answer = feed.answer(ids[1], Changes(rule="social-learning"))
        np.testing.assert_array_equal(
            answer.item.statistics, collaborate(scores[1:2], RING, 20, SocialLearning(), items=[2]).statistics[:, 0]
        )
    finally:
        feed.close()


def test_views_of_other_classes_are_refused(tmp_path):
    create(tmp_path / "net", RING, None, NetworkSettings(port=0, http_port=0, classes=FOUR))
    with pytest.raises(InputFileError, match="the network has 4 classes, but the views are of 2: leave out --data"):
        Live(tmp_path / "net", lambda K: Views(tiny_images(6, K), K))


def test_two_classes_are_known_by_their_names(tmp_path):
    """The second of a file's classes is +1, whichever is +1 in the data set."""
    create(tmp_path / "net", RING, None, NetworkSettings(port=0, http_port=0, classes=("up", "down")))
    feed = Live(tmp_path / "net", lambda K: Views(tiny_images(6, K), K))
    try:
        assert feed.about.classes == ("down", "up")
        id = f"{1:016x}"  # the second picture shows down
        for k in range(4):
            feed._record(
                k, report(k), [RecentItem(id, 0, False, "given", 1.0, 1.0, [1.0], [], None, None, [], 1.0)], 1.0
            )
        assert feed.snapshot().items[0].truth == 1
        assert feed.world(id)[0].y.tolist() == [1]
    finally:
        feed.close()


@pytest.mark.live
@pytest.mark.timeout(240)
def test_a_live_network_of_four_classes(tmp_path):
    scores = of_classes(5, 4, 4)
    with network_of(tmp_path / "net", RING, rounds=8, classes=FOUR) as network:
        feed = Live(tmp_path / "net")
        try:
            feed.watch(True)
            live = statistics(ask_all(network, scores))
            np.testing.assert_array_equal(live, collaborate(scores, RING, 8).statistics)
            wanted = [live[:, i].tolist() for i in range(5)]
            wait_for(lambda: sorted(item.statistics for item in feed.snapshot().items) == sorted(wanted))
            for item in feed.snapshot().items:
                np.testing.assert_allclose(item.limit, RING.perron @ scores[int(item.name)], atol=1e-15)
        finally:
            feed.close()


class _Refuses(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.end_headers()
        self.wfile.write(b'{"error": "this is not the token of this network"}')

    def log_message(self, *_):
        pass


def test_an_agent_that_refuses_the_token_is_refused_and_not_down(tmp_path, monkeypatch):
    create(tmp_path / "net", RING, None, NetworkSettings(port=0, http_port=0))
    with HTTPServer(("127.0.0.1", 0), _Refuses) as port:
        threading.Thread(target=port.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{port.server_port}"
        monkeypatch.setattr(Member, "client", lambda self, timeout: Client(url, "wrong", timeout=timeout))
        feed = Live(tmp_path / "net")
        try:
            feed.watch(True)
            end = time.monotonic() + 60
            while {one.state for one in feed.snapshot().health} != {"refused"}:
                assert time.monotonic() < end, feed.snapshot().health
                time.sleep(0.05)
        finally:
            feed.close()
            port.shutdown()


@pytest.mark.browser
def test_a_network_that_does_not_run_is_shown_so(opened, tmp_path):
    create(tmp_path / "net", RING, None, NetworkSettings(port=0, http_port=0))
    with running("--live", tmp_path / "net") as dashboard:
        page = opened(dashboard.url, shows="#notes li")
        until(page, "document.querySelectorAll('.state.down').length === 4")
        assert page.locator("#nodes .agent.absent").count() == 4
        assert set(page.locator("#health tbody td.number").all_inner_texts()) == {"–"}
        assert page.inner_text("#rule") == "degroot · no item yet"
        page.click("#play")  # nothing to play, and nothing goes wrong
        page.click("#next")
        page.select_option("[name=topology]", "star")
        # A tab that nobody sees lets go of its connection, and takes another when it is looked at again.
        hide = "isHidden => { Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true });"
        hide += " document.dispatchEvent(new Event('visibilitychange')); }"
        with page.expect_event("requestfailed", lambda request: request.url.endswith("/api/feed")):
            page.evaluate(hide, True)
        with page.expect_request("**/api/feed"):
            page.evaluate(hide, False)
        page.close()


def to_the_end(page):
    """Show the last round: the page goes as far as the rounds it has received, which may lack the last ones."""
    end = time.monotonic() + 60
    while page.inner_text("#round-name") != "round 8 of 8":
        assert time.monotonic() < end, page.inner_text("#round-name")
        page.focus("#round")
        page.keyboard.press("End")
        page.wait_for_timeout(30)


@pytest.mark.browser
@pytest.mark.live
def test_a_live_network(opened, tmp_path):
    scores = np.random.default_rng(4).normal(size=(12, 4))
    folder = tmp_path / "net"
    with (
        network_of(folder, RING, rounds=8) as network,
        running("--live", folder) as dashboard,
    ):
        page = opened(dashboard.url, shows="#health-facts:not(:empty)")  # there is no item yet
        assert page.inner_text("#source") == "Live"
        until(page, "document.querySelector('#health-facts').textContent.startsWith('4 of 4 up')")
        live = statistics(ask_all(network, scores))
        np.testing.assert_array_equal(live, collaborate(scores, RING, 8).statistics)
        page.wait_for_selector("#verdict:not(:empty)")
        page.uncheck("#follow")
        for _ in range(2):  # back through the items, to one that is whole
            page.click("#previous")
        until(page, "document.querySelectorAll('.agent.absent').length === 0")
        to_the_end(page)
        i = int(page.inner_text("#item-name"))
        wanted = ",".join(f"{'−' if value < 0 else '+'}{abs(value):.3f}" for value in live[-1, i])
        cells = "[...document.querySelectorAll('#agents tbody td:nth-child(3)')].map(c => c.textContent).join()"
        until(page, f"{cells} === argument", wanted)
        given = wanted
        decided = "[...document.querySelectorAll('#health tbody td:last-child')].map(c => c.textContent).join()"
        until(page, f"{decided} === argument", "12,12,12,12")
        sent = page.locator("#health tbody tr").first.locator("td").nth(5)
        wait_for(lambda: float(sent.inner_text()) == pytest.approx(status(network[0]).bytes.sent / 1e3, rel=0.2))
        # What if: the same local statistics over another network.
        page.select_option("[name=topology]", "star")
        star = collaborate(scores[i : i + 1], policy.uniform(topology.star(4)), 8)
        to_the_end(page)
        wanted = ",".join(f"{'−' if value < 0 else '+'}{abs(value):.3f}" for value in star.statistics[-1, 0])
        until(page, f"{cells} === argument", wanted)
        # Many come meanwhile: the one that is shown stays, and can be asked about again.
        page.evaluate("document.activeElement.blur()")
        for batch in range(18):
            ask_all(network, scores[:8], names=range(200 + 8 * batch, 208 + 8 * batch))
            page.wait_for_timeout(500)
        page.select_option("[name=topology]", "complete")
        page.wait_for_timeout(500)
        page.click("#reset")
        to_the_end(page)
        until(page, f"{cells} === argument", given)
        assert page.inner_text("#item-name") == str(i)
        assert page.is_hidden("#mistake")
        # One dies: it is shown so, with the reason, and the others go on.
        os.kill(process_of(network[2]), signal.SIGKILL)
        states = "[...document.querySelectorAll('#health tbody td:nth-child(2)')].map(c => c.textContent).join()"
        until(page, f"{states} === argument", "● up,● up,○ down,● up")
        until(page, "document.querySelector('#notes').textContent.includes('agent-2 is down')")
        ask_all(network, scores[:1] + 1, names=[99], who=[0, 1, 3])
        page.check("#follow")
        page.click("#play")
        until(page, "document.querySelector('#item-name').textContent === '99'")
        assert page.locator("#nodes .agent.absent").count() == 1
        until(page, "document.querySelector('#agents').textContent.includes('without agent-2')")
        dashboard.die()
        until(page, "document.querySelector('#source').textContent === 'Connection lost'")
        page.close()
        ask_all(network, scores[:1] + 2, names=[100], who=[0, 1, 3])  # the network goes on
        opened.problems.clear()  # the connection that was cut
