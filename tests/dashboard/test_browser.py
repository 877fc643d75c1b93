"""The page in real Chromium: every control is used, and what is shown is what `collaborate` gives."""

import contextlib
import re

import numpy as np
import pytest

from collegium import corruption, policy, protocol, topology
from collegium.cli.dashboard import _digits
from collegium.dashboard.sources import opening
from collegium.network import collaborate
from dashboards import running, until
from live_processes import keep_port

pytestmark = pytest.mark.browser
GRID = policy.uniform(topology.grid(3, 3))


@pytest.fixture(scope="module")
def scores():
    return _digits()[0]


@pytest.fixture(scope="module")
def y():
    return _digits()[1].y


@pytest.fixture
def page(opened, digits):
    page = opened(digits.url)
    until(page, "document.querySelector('#cost-facts').textContent !== ''")
    return page


TABLE = "[...document.querySelectorAll('#agents tbody td:nth-child(3)')].map(c => c.textContent).join()"


def written(value):
    return f"{'−' if value < 0 else '+'}{abs(value):.3f}"


def statistics(page):
    return page.locator("#agents tbody td:nth-child(3)").all_inner_texts()


def labels(page):
    return page.locator("#agents tbody td:nth-child(2)").all_inner_texts()


def effects(page):
    until(page, "document.querySelector('#cost-facts').textContent !== ''")  # averages come later while it compiles
    names, values = page.locator("#effects dt").all_inner_texts(), page.locator("#effects dd").all_inner_texts()
    return dict(zip(names, values, strict=True))


PLAY = "document.querySelector('#play')"


def seen(page):
    """Note from now on what is written on the play button, and return how to ask whether a word was: playback may be
    over before the next look."""
    page.evaluate(
        "window.seen = [];"
        f" new MutationObserver(() => seen.push({PLAY}.textContent)).observe({PLAY}, {{ childList: true }})"
    )
    return lambda word: until(page, "seen.some(text => text.includes(argument))", word)


def end(page):
    """To the last round, by keyboard."""
    page.focus("#round")
    page.keyboard.press("End")
    until(page, "document.querySelector('#play').textContent.includes('Replay')")


def expect(page, run, i, t=-1):
    """The table shows a run's item after a round."""
    wanted = [written(value) for value in run.statistics[t, i]]
    until(page, f"{TABLE} === argument", ",".join(wanted))


def answered(page, control):
    """Use a control and wait for the what-if it asks for."""
    with page.expect_response(lambda response: response.url.endswith("/api/what-if")):
        control()


def test_it_opens_and_plays(page, scores, y):
    i = opening(scores)
    run = collaborate(scores, GRID)
    assert page.title() == "Collegium · handwritten digits: 3 or 8?"
    assert page.inner_text("#source") == "Simulated"
    assert page.input_value("#item") == str(i)
    end(page)
    expect(page, run, i)
    assert page.inner_text("#round-name") == "round 20 of 20"
    assert page.inner_text("#verdict") == "9 of 9 decide 8 · all settled · it is 8 ✓"
    errors = run.errors(y, (1, -1)).mean(axis=1)
    shown = effects(page)
    assert shown["Error alone"] == f"{100 * errors[0]:.2f} %"
    assert shown["Final error"] == f"{100 * errors[-1]:.2f} %"
    assert shown["Bits per item"].replace("\u202f", "") == str(run.bits[0]) == "30720"
    assert page.locator("#nodes .agent").count() == 9
    assert page.locator("#nodes image").nth(4).get_attribute("href") == f"/api/views/{i}.png"
    perron = page.locator("#agents tbody td:nth-child(5)").all_inner_texts()
    assert perron == [f"{weight:.3f}" for weight in GRID.perron]
    sizes = page.locator("#nodes .body").evaluate_all(
        "bodies => bodies.map(body => body.getBoundingClientRect().width)"
    )
    assert np.argsort(sizes)[-1] == GRID.perron.argmax() == 4


def test_playback(page):
    button = page.locator("#play")
    page.select_option("#speed", "2")  # so that a busy machine is not at the end before the button is pressed
    page.locator("#round").fill("0")  # which pauses, as the next picture shows
    until(page, "document.querySelector('#play').textContent === '▶ Play'")
    button.click()
    until(page, "document.querySelector('#round').value > 2")
    button.click()
    until(page, "document.querySelector('#play').textContent === '▶ Play'")
    at = int(page.input_value("#round"))
    page.click("#forth")
    until(page, f"document.querySelector('#round').value == {at + 1}")
    page.click("#back")
    page.click("#back")
    until(page, f"document.querySelector('#round').value == {at - 1}")
    page.select_option("#speed", "50")
    button.click()
    until(page, "document.querySelector('#play').textContent.includes('Replay')")
    assert page.inner_text("#round-name") == "round 20 of 20"
    page.check("#onward")
    before = int(page.input_value("#item"))
    button.click()
    until(page, f"document.querySelector('#item').value > {before}")
    page.uncheck("#onward")


def test_the_round_of_the_scrubber_is_the_one_shown(page, scores):
    run, i = collaborate(scores, GRID), opening(scores)
    for t in (0, 1, 7, 20):
        page.locator("#round").fill(str(t))
        expect(page, run, i, t)
        wanted = ["3" if label > 0 else "8" for label in run.decisions(t)[i]]
        assert [re.match(r"[+−] (\d)", text)[1] for text in labels(page)] == wanted
        settled = run.settled(t, np.abs(scores).max())[i]
        cells = page.locator("#agents tbody td:nth-child(4)").all_inner_texts()
        assert cells == ["✓ settled" if one else "not yet" for one in settled]
        signs = page.locator("#nodes .sign").all_text_contents()
        assert signs == ["+" if label > 0 else "−" for label in run.decisions(t)[i]]
    box = page.locator("#plot").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 13, box["y"] + 60)  # the right end of the plot is the last round
    expect(page, run, i, 20)


def test_items(page, scores, y):
    run = collaborate(scores, GRID)
    end(page)
    before = ",".join(statistics(page))
    page.fill("#item", "5")
    page.keyboard.press("Enter")
    until(page, f"{TABLE} !== argument", before)
    end(page)
    expect(page, run, 5)
    page.click("#next")
    until(page, "document.querySelector('#item').value == 6")
    page.click("#previous")
    until(page, "document.querySelector('#item').value == 5")
    wrong = np.flatnonzero((run.statistics[-1] * y[:, None] <= 0).any(axis=1))
    split = np.flatnonzero((run.decisions(0) != run.decisions(0)[:, :1]).any(axis=1))
    for which, places in (("wrong", wrong), ("split", split)):
        page.select_option("#which", which)
        here = int(page.input_value("#item"))
        page.click("#next")
        following = min((i for i in places if i > here), default=places[0])
        until(page, f"document.querySelector('#item').value == {following}")


def test_an_agent_is_chosen(page):
    page.locator("#agents tbody tr").nth(3).click()
    assert page.inner_text("#chosen") == "agent 3: row 1, column 0"
    assert page.locator("#nodes .agent[aria-selected=true] title").text_content() == "row 1, column 0"
    page.locator("#nodes .agent").nth(5).locator(".body").click()
    assert page.inner_text("#chosen") == "agent 5: row 1, column 2"
    page.locator("#nodes .agent").nth(5).locator(".body").click()
    assert page.inner_text("#chosen") == ""


def test_what_if(page, scores, y):
    """Every control of the form, each on top of the others, against the simulator."""
    i, before = opening(scores), collaborate(scores, GRID)
    end(page)
    assert page.is_disabled("#reset")
    over, rule, given, rounds, seed = GRID, protocol.DeGroot(), scores, 20, 0

    def check():
        run = collaborate(given, over, rounds, rule, seed)
        end(page)
        expect(page, run, i)
        error = run.errors(y, (1, -1))[-1].mean()
        assert (
            effects(page)["Final error"] == f"{100 * before.errors(y, (1, -1))[-1].mean():.2f} % → {100 * error:.2f} %"
        )
        assert effects(page)["Bits per item"].replace("\u202f", "") == f"30720 → {round(run.bits.mean())}"
        changed = (run.decisions() != before.decisions()).mean()
        assert effects(page)["Changed overall"] == f"{100 * changed:.2f} %"
        here = (run.decisions()[i] != before.decisions()[i]).sum()
        assert effects(page)["Changed here"] == f"{here} of 9"
        was = [" (was " in text for text in labels(page)]
        # The table compares the same round of both runs.
        assert was == list(run.decisions()[i] != before.decisions(min(rounds, 20))[i])

    answered(page, lambda: page.select_option("[name=topology]", "star"))
    over = policy.uniform(topology.star(9))
    check()
    answered(page, lambda: page.select_option("[name=weights]", "metropolis"))
    over = policy.metropolis(topology.star(9))
    check()
    answered(page, lambda: page.select_option("[name=rule]", "delta-trigger"))
    answered(page, lambda: page.fill("[name=threshold]", "0.3"))
    rule = protocol.DeltaTrigger(0.3)
    check()
    assert page.locator("[name=patience]").is_hidden()
    answered(page, lambda: page.select_option("[name=rule]", "label-stability"))
    answered(page, lambda: page.fill("[name=patience]", "1"))
    answered(page, lambda: page.fill("[name=confidence]", "0.4"))
    rule = protocol.LabelStability(1, 0.4)
    check()
    answered(page, lambda: page.select_option("[name=fault]", "sign-flip"))
    answered(page, lambda: page.fill("[name=strength]", "2"))
    answered(page, lambda: page.check("[name=faulty][value='4']"))  # and agent 0, with which a fault begins
    given = corruption.sign_flip(scores, [0, 4], 2)
    check()
    assert page.locator("#nodes .agent.faulty").count() == 2
    answered(page, lambda: page.select_option("[name=fault]", "stuck"))
    given = corruption.stuck(scores, [0, 4])
    check()
    answered(page, lambda: page.select_option("[name=fault]", "noise"))
    given = corruption.noise(scores, [0, 4], 2, 0)
    check()
    answered(page, lambda: page.select_option("[name=rule]", "degroot"))
    answered(page, lambda: page.select_option("[name=bits]", "2"))
    answered(page, lambda: page.fill("[name=rounds]", "9"))
    answered(page, lambda: page.fill("[name=seed]", "11"))
    given, rounds, seed = corruption.noise(scores, [0, 4], 2, 11), 9, 11
    rule = protocol.Quantised(protocol.DeGroot(), 2, float(np.abs(given).max()))
    check()
    page.click("#next")  # changes stay with the next item
    i += 1
    until(page, f"document.querySelector('#item').value == {i}")
    check()
    page.click("#reset")
    end(page)
    expect(page, before, i)
    assert "→" not in effects(page)["Final error"]
    assert page.is_disabled("#reset")


def test_an_impossible_change_is_answered_by_a_sentence(page, opened):
    page.select_option("[name=rule]", "social-learning")
    page.select_option("[name=bits]", "1")
    page.wait_for_selector("#mistake:not([hidden])")
    assert "too few" in page.inner_text("#mistake")
    page.select_option("[name=bits]", "")
    page.wait_for_selector("#mistake", state="hidden")
    assert all("422" in problem for problem in opened.problems)  # Chromium notes the refused request
    opened.problems.clear()


@pytest.mark.parametrize("width", [1280, 390])
def test_agents_have_their_names_in_the_network(opened, tmp_path, width):
    """Names with room for them, and nothing beyond the border; the tables show all, in as many lines as it takes."""
    names = ["ECG", "X-ray", "a nurse who is on duty by night", "Lab"]
    rows = np.random.default_rng(0).normal(size=(20, 4))
    (tmp_path / "s.csv").write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows.tolist())]))
    with running("--scores", tmp_path / "s.csv", "--network", "ring:4") as dashboard:
        page = opened(dashboard.url, width=width)
        assert page.locator("#nodes .name").all_text_contents() == ["ECG", "X-ray", "a nurse who is…", "Lab"]
        assert page.locator("#agents tbody td:nth-child(1)").all_inner_texts()[2] == f"2 · {names[2]}"
        beyond = """[...document.querySelectorAll('#nodes .name')].map(e => e.getBoundingClientRect())
            .filter(r => { const b = document.querySelector('#nodes').getBoundingClientRect();
                return r.left < b.left - 1 || r.right > b.right + 1 || r.bottom > b.bottom + 2; }).length"""
        assert page.evaluate(beyond) == 0
        assert page.evaluate(
            "document.querySelector('#agents table').scrollWidth <= document.querySelector('#agents').clientWidth"
        )


def test_long_names_that_begin_alike_have_their_numbers(opened, tmp_path):
    names = ["department of clinical radiology", "ECG", "department of clinical neurology"]
    rows = [",".join(names), *(f"{i - 4},{4 - i},1" for i in range(9))]
    (tmp_path / "s.csv").write_text("\n".join(rows))
    with running("--scores", tmp_path / "s.csv", "--network", "ring:3") as dashboard:
        page = opened(dashboard.url)
        assert page.locator("#nodes .name").all_text_contents() == ["0 department of…", "ECG", "2 department of…"]


def test_by_keyboard_alone(page, scores):
    """Tab reaches every control once, in the order of the page, and what has the focus can be seen."""
    order = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name = page.evaluate("(e => e.id || e.name || e.getAttribute('role') || e.tagName)(document.activeElement)")
        if name in ("BODY", "HTML") or name in order:
            break
        order.append(name)
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none" or name == "option"
    wanted = (
        "previous item next which theme option play back round forth speed onward topology weights rule bits rounds"
    )
    assert order[:17] == wanted.split()
    assert order[17:] == ["fault", "seed", "region"]
    page.focus("#nodes [tabindex='0']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#chosen").startswith("agent 1:")
    page.keyboard.press("End")
    assert page.inner_text("#chosen").startswith("agent 8:")
    page.keyboard.press("Escape")
    assert page.inner_text("#chosen") == ""
    page.focus("#round")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page, collaborate(scores, GRID), opening(scores), 2)
    until(page, "document.querySelector('#nodes .agent').getAttribute('aria-label')?.includes('statistic')")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    expect(page, collaborate(scores, GRID), opening(scores), 3)
    was_seen = seen(page)
    page.keyboard.press(" ")
    was_seen("Pause")
    page.keyboard.press("n")
    until(page, f"document.querySelector('#item').value == {opening(scores) + 1}")
    page.keyboard.press("p")
    until(page, f"document.querySelector('#item').value == {opening(scores)}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844), (320, 640), (900, 700)])
def test_it_fits(opened, digits, width, height, scheme, tmp_path):
    page = opened(digits.url, width, height, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(243, 245, 248)", "dark": "rgb(14, 19, 26)"}[scheme]
    outside = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, canvas, svg, h2')]
        .filter(e => e.checkVisibility() && !e.closest('svg svg')).map(e => [e.id || e.name, e.getBoundingClientRect()])
        .filter(([, box]) => box.left < 0 || box.right > innerWidth + 0.5 || box.width < 10).map(([name]) => name)"""
    )
    assert outside == []
    if width < 400:
        lefts = page.evaluate("[...document.querySelectorAll('main > section:not([hidden])')].map(s => s.offsetLeft)")
        assert len(set(lefts)) == 1  # one column
    page.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)


def test_colours_can_be_chosen_and_are_kept(page):
    for name, wanted in (("☀ Light", "light"), ("☾ Dark", "dark")):
        page.click("#theme")
        assert page.inner_text("#theme") == name
        assert page.evaluate("document.documentElement.dataset.theme") == wanted
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.click("#theme")
    assert page.inner_text("#theme") == "◐ Auto"


def test_whoever_wants_no_motion_gets_none(opened, digits):
    page = opened(digits.url, reduced_motion="reduce")
    page.wait_for_timeout(600)
    assert (page.inner_text("#play"), page.input_value("#round")) == ("▶ Play", "0")


def test_the_end_of_the_dashboard_is_told(opened, tmp_path):
    """And scores of one's own are shown, with their labels and items, without views."""
    table = tmp_path / "scores.csv"
    table.write_text("item,a,b,c,label\nx,1,-0.5,0.25,yes\nz,-1,-2,3,no\n")
    with running("--scores", table, "--network", "path:3", "--classes", "yes,no") as dashboard:
        page = opened(dashboard.url)
        end(page)
        assert page.inner_text("#item-name") in ("x", "z")
        page.fill("#item", "0")
        page.keyboard.press("Enter")
        until(page, "document.querySelector('#item-name').textContent === 'x'")
        end(page)
        expect(page, collaborate([[1, -0.5, 0.25]], policy.uniform(topology.path(3))), 0)
        assert page.inner_text("#verdict") == "3 of 3 decide yes · all settled · it is yes ✓"
        assert page.locator("#nodes .frame").first.get_attribute("visibility") == "hidden"
    until(page, "document.querySelector('#source').textContent === 'Connection lost'")
    assert [problem for problem in opened.problems if "ERR_" not in problem] == []
    opened.problems.clear()


def test_the_last_picture_is_that_of_the_last_round(page):
    """No message is left on its way."""
    picture = "document.querySelector('#links').toDataURL()"
    page.select_option("#speed", "10")
    page.locator("#round").fill("20")
    until(page, "document.querySelector('#round-name').textContent.startsWith('round 20 ')")
    rest = page.evaluate(picture)
    was_seen = seen(page)
    page.click("#play")
    was_seen("Pause")
    until(page, "document.querySelector('#play').textContent.includes('Replay')")
    until(page, f"{picture} === argument", rest)


def test_keys_after_a_click(page, scores):
    page.click("#play")
    page.locator("#round").fill("3")
    page.click("#forth")
    page.keyboard.press("ArrowRight")
    expect(page, collaborate(scores, GRID), opening(scores), 5)
    page.keyboard.press("Enter")  # the button's own
    expect(page, collaborate(scores, GRID), opening(scores), 6)
    page.check("#onward")
    page.keyboard.press("ArrowLeft")
    expect(page, collaborate(scores, GRID), opening(scores), 5)
    page.uncheck("#onward")
    page.locator("#agents tbody tr").nth(3).click()
    for _ in range(5):  # faster than answers come
        page.keyboard.press("n")
    until(page, f"document.querySelector('#item').value == {opening(scores) + 5}")
    page.fill("#item", "")
    page.keyboard.press("Enter")
    until(page, f"document.querySelector('#item').value == {opening(scores) + 5}")


def test_zero_is_no_opinion(page):
    page.select_option("[name=rule]", "social-learning")
    until(page, "document.querySelector('#rule').textContent === 'social-learning'")
    alone = effects(page)["Error alone"]
    assert alone.split(" → ")[0] == alone.split(" → ")[1] != "100.00 %"
    page.locator("#round").fill("0")
    until(page, "document.querySelector('#verdict').textContent.startsWith('9 of 9 undecided · it is 8')")
    assert not page.inner_text("#verdict").endswith(("✓", "✗"))
    assert {text[:11] for text in labels(page)} == {"? undecided"}
    assert set(page.locator("#nodes .sign").all_text_contents()) == {"?"}


def test_seven_tabs(browser, digits):
    """A browser has six connections to one server; a tab that has all it needs holds none."""
    context = browser.new_context()
    try:
        for _ in range(7):
            tab = context.new_page()
            tab.goto(digits.url, timeout=60_000)
            tab.wait_for_selector("#verdict:not(:empty)", timeout=60_000)
    finally:
        context.close()


def test_a_lost_request_is_retried(page, opened):
    page.context.set_offline(True)
    page.select_option("[name=topology]", "star")
    page.wait_for_selector("#mistake:not([hidden])")
    assert page.inner_text("#mistake").startswith("The dashboard does not answer.")
    page.context.set_offline(False)
    until(page, "document.querySelector('#network-facts').textContent.includes('16 links')")
    assert page.is_hidden("#mistake")
    assert all("ERR_" in problem for problem in opened.problems)
    opened.problems.clear()


def test_another_dashboard_on_the_same_port_is_noticed(opened, tmp_path):
    """And agents are called as the columns of a table are."""
    for name, columns in (("one", "item,a,b,c"), ("two", "item,left,middle,right")):
        (tmp_path / f"{name}.csv").write_text(f"{columns}\nx,1,-0.5,0.25\nz,-1,-2,3\n")
    with contextlib.ExitStack() as held:
        port = keep_port(held)  # or somebody else might take it in between
        with running("--scores", tmp_path / "one.csv", "--port", port) as dashboard:
            page = opened(dashboard.url)
            end(page)
            assert labels(page)[0] in ("+1", "−1")
        with running("--scores", tmp_path / "two.csv", "--port", port):
            shows_the_second(page)
    assert all("ERR_" in problem for problem in opened.problems)
    opened.problems.clear()


def shows_the_second(page):
    until(page, "document.title === 'Collegium · two.csv'")
    page.wait_for_selector("#verdict:not(:empty)")
    names = page.locator("#agents tbody td:first-child").all_inner_texts()
    assert names == ["0 · left", "1 · middle", "2 · right"]
    page.close()
