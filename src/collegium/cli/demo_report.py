"""The demo's report: what the agents see, how they are linked, and a few items followed round by round."""

from __future__ import annotations

import html
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium import plots
from collegium._util import machine, page

if TYPE_CHECKING:
    from collegium.cli.demo import DemoRow
    from collegium.data import Dataset
    from collegium.network import Run

_FOLLOWED = (0, 1, 2, 3, 5, 10, 20)
_STYLE = """
body { max-width: 60rem; } .lead { font-size: 1.15rem; }
.row { display: flex; flex-wrap: wrap; gap: 1rem; align-items: end; }
figure { margin: 0; } figcaption { font-size: .8rem; }
.item { border-left: 3px solid var(--line); padding-left: 1rem; margin: 2rem 0; }
svg { display: block; } svg text { font: 600 9px system-ui, sans-serif; fill: CanvasText; text-anchor: middle; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
dt { margin-top: .8rem; } dt code { background: var(--soft); padding: .2rem .4rem; overflow-wrap: anywhere; }
dd { margin: 0 0 0 1rem; }
.key { display: inline-block; width: .9em; height: .9em; border-radius: 2px; vertical-align: -1px; }
"""


class Story(NamedTuple):
    """The contents of the report."""

    rows: list[DemoRow]
    run: Run
    """Of the last split, whose items are followed."""
    test: Dataset
    figure: Any
    """Error against rounds."""
    reps: int
    seed: int
    seconds: float


def write(path: Path, story: Story) -> None:
    """Write the report, one file that needs no other."""
    page.write(path, "Collegium: nine agents, one patch each", _parts(story), _STYLE)


def _parts(story: Story) -> list[str]:
    from collegium.cli.demo import SHOWN

    first, second = story.test.class_names
    alone = [row.error for row in story.rows[:9]]
    average, together, (exact, rounded, *_) = story.rows[10], story.rows[10 + len(SHOWN)], story.rows[11 + len(SHOWN) :]
    return [
        f"<h1>{first} or {second}? Nine agents, one patch each</h1>",
        f"<p class='lead'>Each agent sees a ninth of a handwritten digit, and was trained alone on its own ninth. "
        f"Alone they err on {min(alone):.1f} to {max(alone):.1f} % of new digits, {np.mean(alone):.1f} % on average. "
        f"After {story.run.rounds} rounds of messages to their neighbours, one number at a time, they err on "
        f"<strong>{together.error:.1f} %</strong>. Where any two may be linked, four rounds give the exact average "
        f"({exact.error:.1f} %), and {rounded.bits} bits in all are enough for {rounded.error:.1f} %; a centre that "
        f"receives numbers of 64 bits takes {average.bits} for {average.error:.1f} %. "
        "No agent sees a second patch, and there is no coordinator.</p>",
        "<h2>What the agents see</h2>",
        f"<div class='row'>{''.join(_digit_figure(story.test, i) for i in _examples(story.test))}</div>",
        "<p>The digits come with scikit-learn, 8×8 pixels each, cut 3×3. The gaps are only drawn.</p>",
        "<h2>The network, and the error round by round</h2><div class='pair'>",
        _picture(
            plots.network_figure(story.run.policy, f"{story.run.policy.links // 2} links, both ways"), "the network"
        ),
        _picture(story.figure, "error against rounds"),
        "</div>",
        _table(story.rows),
        f"<p>Means of {story.reps} random splits into training and test half, with 95 % intervals over the splits. "
        "A centre receives all scores at once and weighs them equally, as this network does in the end. Where any two "
        "are linked, an agent hears one other agent in each round, each time another. Tuned: the agents learn how much "
        "each counts from averages of labelled items, which are no test items; nothing changes where that is no "
        "better.</p>",
        f"<h2>A few digits, round by round</h2><p>{_KEY}</p>",
        *(_item(story, i, why) for i, why in _followed(story)),
        "<h2>What to try next</h2>",
        _next(),
        "<details><summary>How this was made</summary>",
        page.listed(_facts(story)),
        "</details>",
    ]


def _picture(figure: Any, alt: str) -> str:
    return page.image(plots.to_bytes(figure, "png", dpi=110), alt)


def _examples(test: Dataset) -> list[int]:
    """Three of each class."""
    return [int(i) for label in (1, -1) for i in np.flatnonzero(test.y == label)[:3]]


def _digit_figure(test: Dataset, i: int) -> str:
    name = test.class_names[0 if test.y[i] > 0 else 1]
    return f"<figure>{_digit(test, i, f'a handwritten {name}')}<figcaption>a {name}</figcaption></figure>"


def _digit(test: Dataset, i: int, alt: str) -> str:
    """The nine patches of a digit, a little apart."""
    side, gap = 12, 5
    cells, y = [], 0
    for row in range(3):
        x = 0
        for column in range(3):
            patch = test.views[3 * row + column][i]
            for (r, c), ink in np.ndenumerate(patch):
                grey = round(255 * (1 - ink))
                place = f"x='{x + side * c}' y='{y + side * r}' width='{side}' height='{side}'"
                cells.append(f"<rect {place} fill='rgb({grey},{grey},{grey})'/>")
            frame = f"x='{x}' y='{y}' width='{side * patch.shape[1]}' height='{side * patch.shape[0]}'"
            cells.append(f"<rect {frame} fill='none' stroke='#8888'/>")
            x += side * patch.shape[1] + gap
        y += side * patch.shape[0] + gap
    return _svg(8 * side + 2 * gap, 8 * side + 2 * gap, "".join(cells), alt)


def _svg(width: int, height: int, content: str, alt: str) -> str:
    return (
        f"<svg role='img' aria-label='{html.escape(alt)}' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}'>{content}</svg>"
    )


def _followed(story: Story) -> list[tuple[int, str]]:
    """Items worth showing: put right against the odds, put right easily, and one that stays wrong."""
    mistakes = (story.run.statistics * story.test.y[:, None] <= 0).sum(axis=2)  # (rounds + 1, n)
    before, after = mistakes[0], mistakes[-1]
    right = [int(i) for i in np.argsort(-before, kind="stable") if after[i] == 0 and before[i] > 0]
    chosen = [(i, f"{_count(before[i])} wrong alone, and were put right by the others.") for i in right[:2]]
    easy = [i for i in right[2:] if before[i] <= 2]
    chosen += [(i, f"Only {_count(before[i])} wrong alone, and outweighed.") for i in easy[:1]]
    lost = [int(i) for i in np.flatnonzero(after == after.max()) if after.max() > 0]
    chosen += [
        (
            i,
            f"Messages do not always help: {_count(before[i])} wrong alone, {_count(after[i])} wrong in the end.",
        )
        for i in lost[:1]
    ]
    return chosen


def _count(number: int) -> str:
    return f"{number} of 9 {'was' if number == 1 else 'were'}"


_RIGHT, _WRONG = plots.BLUE, plots.ORANGE
_KEY = (
    f"Each square is an agent, at the place of its patch: <span class='key' style='background:{_RIGHT}'></span> right, "
    f"<span class='key' style='background:{_WRONG}'></span> ✗ wrong; the fainter, the less sure."
)


def _item(story: Story, i: int, why: str) -> str:
    test, statistics = story.test, story.run.statistics[:, i]
    name = test.class_names[0 if test.y[i] > 0 else 1]
    shown = [t for t in _FOLLOWED if t <= story.run.rounds]
    largest = float(np.abs(statistics).max())
    grids = "".join(
        f"<figure>{_opinions(statistics[t] * test.y[i], largest, f'round {t}')}"
        f"<figcaption>{'alone' if t == 0 else f'round {t}'}</figcaption></figure>"
        for t in shown
    )
    digit = f"<figure>{_digit(test, i, f'a handwritten {name}')}<figcaption>a {name}</figcaption></figure>"
    return f"<div class='item'><p>{html.escape(why)}</p><div class='row'>{digit}{grids}</div></div>"


def _opinions(margins: NDArray[np.float64], largest: float, alt: str) -> str:
    """Nine squares: blue where the agent is right, orange with a cross where it is wrong, faint where it is unsure."""
    side, gap, cells = 24, 2, []
    for k, margin in enumerate(margins):
        x, y = (k % 3) * (side + gap), (k // 3) * (side + gap)
        sure = 0.35 + 0.65 * min(1.0, abs(float(margin)) / largest) if largest else 0.35
        colour = _RIGHT if margin > 0 else _WRONG
        cells.append(
            f"<rect x='{x}' y='{y}' width='{side}' height='{side}' rx='3' fill='{colour}' fill-opacity='{sure:.2f}'/>"
        )
        if margin <= 0:
            cells.append(f"<text x='{x + side / 2:g}' y='{y + side / 2 + 3:g}'>✗</text>")
    size = 3 * side + 2 * gap
    return _svg(size, size, "".join(cells), f"{alt}: {int((margins > 0).sum())} of 9 right")


def _table(rows: list[DemoRow]) -> str:
    heads = ("who decides", "error %", "± 95 %", "bits per item")
    cells = (
        [
            page.cell(row.who),
            page.cell(f"{row.error:.2f}", "number"),
            page.cell("–" if np.isnan(row.half) else f"{row.half:.2f}", "number"),
            page.cell(f"{row.bits:,}", "number"),
        ]
        for row in rows
    )
    return page.table(heads, cells)


def _next() -> str:
    from collegium.cli.demo import NEXT

    lines = (
        f"<dt><code>{html.escape(command)}</code></dt><dd>{html.escape(why)}</dd>" for command, why in NEXT.items()
    )
    return f"<dl>{''.join(lines)}</dl>"


def _facts(story: Story) -> dict[str, str]:
    return {
        "command": f"collegium demo --reps {story.reps} --seed {story.seed}",
        "time": f"{story.seconds:.1f} s",
        "network": repr(story.run.policy),
        "machine": machine.description(),
        "python": platform.python_version(),
    } | machine.versions(("collegium", "numpy", "scikit-learn", "numba"))
