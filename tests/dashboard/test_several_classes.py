"""The dashboard of several classes: what it is told is what `collaborate` gives, and what it shows is that."""

from dataclasses import replace

import numpy as np
import pytest

from collegium import corruption, policy, protocol, topology
from collegium.agents import Scores
from collegium.dashboard import what_if
from collegium.dashboard.sources import opening, usual
from collegium.dashboard.what_if import Changes, World
from collegium.network import collaborate
from dashboards import running, until
from helpers import RULES, of_classes

K, N, C = 6, 40, 3
Y = np.arange(N) % C
X = of_classes(N, K, C) + 0.1 * (np.eye(C) - 1 / C)[Y][:, None]
RING = policy.uniform(topology.ring(K))
GIVEN = World(RING, X, 12, seed=5, y=Y)
BEFORE = what_if.decisions(GIVEN)


@pytest.mark.parametrize("rule", RULES[::3], ids=str)
def test_an_item_is_the_run_of_that_item(rule):
    world = replace(GIVEN, rule=rule)
    run = collaborate(X, RING, 12, rule, 5)
    item = what_if.item(world, 13)
    np.testing.assert_array_equal(item.statistics, run.statistics[:, 13])
    assert (item.truth, item.bits) == (1, run.bits[13])
    if rule == protocol.DeGroot():
        np.testing.assert_allclose(item.limit, run.limit()[13], atol=1e-15)
        assert item.settled == [run.settled(t, np.abs(X).max())[13].tolist() for t in range(13)]


@pytest.mark.parametrize(
    ("changes", "rule", "scores"),
    [
        (Changes(), protocol.DeGroot(), X),
        (Changes(rule="delta-trigger", threshold=0.05), protocol.DeltaTrigger(0.05), X),
        (Changes(rule="label-stability", confidence=0.02), protocol.LabelStability(2, 0.02), X),
        (Changes(bits=3), protocol.Quantised(protocol.DeGroot(), 3, float(np.abs(X).max())), X),
        (Changes(fault="stuck", faulty=[1, 4]), protocol.DeGroot(), corruption.stuck(X, [1, 4])),
        (Changes(fault="sign-flip", strength=3, faulty=[2]), protocol.DeGroot(), corruption.sign_flip(X, [2], 3)),
        (Changes(fault="noise", strength=2, faulty=[0]), protocol.DeGroot(), corruption.noise(X, [0], 2, 5)),
    ],
    ids=["none", "delta", "stability", "bits", "stuck", "flip", "noise"],
)
def test_a_what_if_is_what_is_run(changes, rule, scores):
    world = what_if.changed(GIVEN, changes)
    run = collaborate(scores, RING, 12, rule, 5)
    found = what_if.averages(world, BEFORE)
    np.testing.assert_allclose(found.errors, run.errors(Y).mean(axis=1), rtol=0, atol=1e-15)
    assert found.bits[-1] == (12, run.bits.mean())
    np.testing.assert_array_equal(what_if.item(world, 7).statistics, run.statistics[:, 7])


def test_who_cannot_decide_is_wrong_and_who_is_not_known_does_not_count():
    y = np.where(np.arange(N) % 4, Y, -1)
    found = what_if.averages(replace(GIVEN, y=y), BEFORE)
    known = collaborate(X[y >= 0], RING, 12, rng=5).errors(y[y >= 0])
    np.testing.assert_allclose(found.errors, known.mean(axis=1), rtol=0, atol=1e-15)
    assert found.known == (y >= 0).sum()
    assert what_if.item(replace(GIVEN, y=y), 0).truth is None
    tie = np.array([[[1.0, 1.0, -2.0], [2.0, -1.0, -1.0]]])
    assert what_if.labels_of(tie).tolist() == [[-1, 0]]
    assert what_if.clearness(tie).tolist() == [[0.0, 3.0]]


def test_it_opens_where_agents_alone_agree_least():
    votes = np.array([[0, 0, 0, 1], [0, 1, 2, 1], [2, 2, 2, 2]])
    x = (np.eye(3) - 1 / 3)[votes]
    assert opening(x) == 1
    assert usual(x) == pytest.approx(1.0)


# --- the page ---


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    path = tmp_path_factory.mktemp("record") / "scores.npz"
    kept = Scores(X, X, X, Y, Y, Y, agent_names=tuple("abcdef"), class_names=("cat", "dog", "great owl"))
    kept.save(path)
    return path, kept.statistics("test")


@pytest.fixture(scope="module")
def shown(record):
    with running(record[0], "--network", "ring:6", "--rounds", 12) as dashboard:
        yield dashboard


def test_the_feed_has_an_entry_for_every_class(shown, record):
    about = shown.ask("GET", "/api/about")[2]
    assert about["classes"] == ["cat", "dog", "great owl"]
    answer = shown.what_if("7", bits=3)["item"]
    rule = protocol.Quantised(protocol.DeGroot(), 3, float(np.abs(record[1]).max()))
    np.testing.assert_array_equal(answer["statistics"], collaborate(record[1], RING, 12, rule).statistics[:, 7])


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("dark", 390)])
def test_the_page_shows_labels_leads_and_shares(opened, shown, record, scheme, width):
    page = opened(shown.url, width=width, color_scheme=scheme, reduced_motion="reduce")
    page.fill("#item", "7")
    page.press("#item", "Enter")
    run = collaborate(record[1], RING, 12)
    cells = "[...document.querySelectorAll('#agents tbody td:nth-child(4)')].map(c => c.textContent).join()"

    def shows(statistics):
        until(page, f"{cells} === argument", ",".join(f"{lead:.3f}" for lead in what_if.clearness(statistics[None])[0]))

    shows(run.statistics[0, 7])
    page.focus("#round")
    page.keyboard.press("End")
    last = run.statistics[-1, 7]
    shows(last)
    marks, names = "ABC", ("cat", "dog", "great owl")
    labels = [text.removesuffix(" ✗") for text in page.locator("#agents tbody td:nth-child(2)").all_inner_texts()]
    assert labels == [f"{marks[c]} {names[c]}" for c in last.argmax(axis=1)]
    widths = page.evaluate("[...document.querySelector('.shares').children].map(bar => parseFloat(bar.style.width))")
    np.testing.assert_allclose(widths, 100 * np.exp(last[0]) / np.exp(last[0]).sum(), atol=0.01)
    assert page.locator(".agent .sign").all_text_contents() == [marks[c] for c in last.argmax(axis=1)]
    assert page.locator(".legend .shape[class*=class-]").all_inner_texts() == list(marks)
    colours = page.evaluate(
        "[...document.querySelectorAll('.legend .shape[class*=class-]')].map(e => getComputedStyle(e).backgroundColor)"
    )
    assert len(set(colours)) == C
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("(box => box.scrollWidth <= box.clientWidth)(document.querySelector('#agents .scroll'))")
    page.select_option("[name=rule]", "delta-trigger")
    shows(collaborate(record[1], RING, 12, protocol.DeltaTrigger(0.1)).statistics[-1, 7])
