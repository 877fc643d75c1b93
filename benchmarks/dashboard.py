"""Frames a second of the dashboard in Chromium: twelve agents, 50 rounds a second.

python benchmarks/dashboard.py            a recorded run, played at 50 rounds a second
python benchmarks/dashboard.py --live     twelve processes that do at least so many, watched while they do
"""

import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from playwright.sync_api import sync_playwright

from collegium import policy, topology
from dashboards import running
from live_processes import running as network_of

SECONDS = 10
FRAMES = """seconds => new Promise(done => {
  const times = [];
  const tick = now => { times.push(now); now - times[0] < 1000 * seconds ? requestAnimationFrame(tick) : done(times); };
  requestAnimationFrame(tick);
})"""


def measure(url: str, is_live: bool) -> None:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto(url)
        page.wait_for_selector("#verdict:not(:empty)")
        page.select_option("#speed", "50")
        if not is_live:
            page.check("#onward")
        times = np.array(page.evaluate(FRAMES, SECONDS))
        rate = page.inner_text("#health-facts") if is_live else "50 rounds a second played"
        chromium.close()
    gaps = np.diff(times)
    print(
        f"{1000 * len(gaps) / (times[-1] - times[0]):.1f} frames a second over {SECONDS} s; "
        f"gap median {np.median(gaps):.1f} ms, 99 % within {np.quantile(gaps, 0.99):.1f} ms; {rate}"
    )


def recorded(folder: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.where(np.arange(500) % 2, -1, 1)
    np.save(folder / "scores.npy", rng.normal(size=(500, 12)) + 0.4 * y[:, None])
    np.save(folder / "y.npy", y)
    with running(
        "--scores", folder / "scores.npy", "--labels", folder / "y.npy", "--network", "grid:3x4", "--rounds", 50
    ) as dashboard:
        measure(dashboard.url, is_live=False)


def live(folder: Path) -> None:
    """Every agent is given an item several times a second, so that it does 50 rounds a second and more."""
    with (
        network_of(folder / "net", policy.uniform(topology.grid(3, 4))) as network,
        running("--live", folder / "net") as dashboard,
    ):
        ending = threading.Event()
        scores = np.random.default_rng(0).normal(size=(10_000, 12))

        def feed(k: int) -> None:
            begun = time.monotonic()
            with network[k].client() as client:
                for i in range(len(scores)):
                    client.give([i], scores=scores[i : i + 1, k])
                    if ending.wait(max(0.0, begun + (i + 1) / 4 - time.monotonic())):
                        return

        feeders = [threading.Thread(target=feed, args=(k,)) for k in range(12)]
        for feeder in feeders:
            feeder.start()
        try:
            measure(dashboard.url, is_live=True)
        finally:
            ending.set()
            for feeder in feeders:
                feeder.join()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        (live if "--live" in sys.argv else recorded)(Path(scratch))
