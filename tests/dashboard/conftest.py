"""A dashboard to share, and Chromium."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from dashboards import Dashboard, running

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def digits() -> Iterator[Dashboard]:
    with running() as dashboard:
        yield dashboard


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium here: make system installs it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """Open a page from a clean state; in the end nothing must have gone wrong in it, nor left this host."""
    contexts, problems, asked = [], [], []

    def go(url: str, width: int = 1280, height: int = 800, shows: str = "#verdict:not(:empty)", **settings: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: message.type in ("error", "warning") and problems.append(message.text))
        page.on("pageerror", lambda problem: problems.append(str(problem)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        page.wait_for_selector(shows)
        return page

    go.problems = problems  # type: ignore[attr-defined]
    yield go
    for context in contexts:
        context.close()
    assert problems == []
    assert asked
    assert {re.match(r"https?://[^/]+?(?=:\d+/)", url)[0] for url in asked} == {"http://127.0.0.1"}  # type: ignore[index]
