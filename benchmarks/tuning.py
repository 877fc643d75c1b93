"""Tuning on score records of real data: errors against labelled items, speed, and what is revealed.

    python benchmarks/tuning.py table    # errors with paired intervals, a row per set and number of items
    python benchmarks/tuning.py inexact  # ModelNet over a ring with rounded or lost messages
    python benchmarks/tuning.py reveals  # what a neighbour can reconstruct of another's scores
    python benchmarks/tuning.py speed    # 24 agents, 4 000 items
    python benchmarks/tuning.py --plot docs/images/tuning.png  # errors against labelled items and conversations

`COLLEGIUM_DATA` has a folder `records`. Validation items teach, test items are decided and teach nothing; a repetition
is a training, and other labelled items or, with all of them, other folds. Where there are fewer trainings than
repetitions, intervals are too narrow.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium import collaborate, policy, schedule, topology, tuning
from collegium._util.measures import mean_interval
from collegium.errors import LabelError
from collegium.lab.figures import COLOURS
from collegium.links import Lossy, Perfect
from collegium.plots import panels, save
from collegium.protocol import DeGroot, Quantised
from collegium.protocol.base import OWN, RECEIVED, Inbox

Doubles = NDArray[np.float64]
RECORDS = Path(os.environ.get("COLLEGIUM_DATA", "."), "records")
SETS = {
    "modelnet": ("ModelNet, 12 views", 10, (20, 40, None)),
    "cifar10": ("CIFAR-10, 9 patches", 3, (20, 200, None)),
    "wall-robot": ("robot, 24 sonars", 3, (20, 200, None)),
    "occupancy": ("office, 5 sensors", 3, (20, 200, None)),
    "multiple-features": ("numerals, 6 views", 3, (20, 200, None)),
}
"""Titles, trainings, and how many items are labelled; None: all validation items."""
REPS = 21
SIZES = (5, 10, 20, 50, 200)
"""Labelled items of the figure, beside all."""
CONVERSATIONS = (1, 2, 4, 8)


def load(name: str, training: int) -> tuple[Doubles, Any, Doubles, Any]:
    """Scores and labels of validation and test items."""
    with np.load(RECORDS / f"{name}-{training}.npz") as file:
        val, y, test, truth = (file[part] for part in ("val", "y_val", "test", "y_test"))
    val, test = val.astype(float), test.astype(float)
    if val.ndim == 3 and val.shape[2] == 2:
        val, test = val[..., 1] - val[..., 0], test[..., 1] - test[..., 0]
        y, truth = np.where(y, 1, -1), np.where(truth, 1, -1)
    return val, y, test, truth


def error(statistics: Doubles, y: Any) -> float:
    """Of the plain average over agents, in %."""
    pooled = statistics.mean(axis=1)
    return 100 * float((pooled * y <= 0).mean() if pooled.ndim == 1 else (pooled.argmax(axis=1) != y).mean())


def labelled(y: Any, n: int | None, rng: np.random.Generator) -> Any:
    """Rows of n items in any order, of each of two classes at least two."""
    while True:
        rows = rng.permutation(len(y))[:n]
        _, counts = np.unique(y[rows], return_counts=True)
        if len(counts) > 2 or (len(counts) == 2 and counts.min() > 1):
            return rows


def repetitions(name: str, n: int | None, reps: int = REPS, **settings: Any) -> Doubles:
    """Errors (reps, 3) on test items: equal gains, the agent that is best on the labelled items, tuned."""
    errors = []
    for r in range(reps):
        val, y, test, truth = load(name, r % SETS[name][1])
        rows, K = labelled(y, n, np.random.default_rng([r, n or 0])), val.shape[1]
        best = min(range(K), key=lambda k: error(val[rows, k : k + 1], y[rows]))
        try:
            mended = tuning.tune(val[rows], y[rows], schedule.exact(K), **settings)(test)
        except LabelError:  # too few items to learn from: gains stay equal
            mended = test
        errors.append((error(test, truth), error(test[:, best : best + 1], truth), error(mended, truth)))
    return np.array(errors)


def interval(values: Doubles, digits: int = 1) -> str:
    """Mean and half of Student's 95 % interval."""
    found = mean_interval(values)
    return f"{found.mean:.{digits}f} ± {found.half:.{digits}f}"


def table() -> None:
    """As docs/tuning.md has it."""
    print(
        "| | labelled items | equal gains | best agent | tuned | tuned less equal | tuned less best |\n|" + "---|" * 7
    )
    for name, (title, _, sizes) in SETS.items():
        for n in sizes:
            for per_class in (False, True) if (name, n) == ("wall-robot", None) else (False,):
                e = repetitions(name, n, per_class=per_class)
                items = f"{n or len(load(name, 0)[1])}{', a gain per class' if per_class else ''}"
                cells = [f"{e[:, 0].mean():.1f}", f"{e[:, 1].mean():.1f}", interval(e[:, 2])]
                cells += [interval(e[:, 2] - e[:, 0], 2), interval(e[:, 2] - e[:, 1], 2)]
                print(f"| {title} | {items} | {' | '.join(cells)} |", flush=True)


def inexact() -> None:
    """ModelNet's agents in a ring, 20 rounds: untuned and tuned errors, both decided over the same inexact averages."""
    ring = policy.metropolis(topology.ring(12))
    records = [load("modelnet", r) for r in range(SETS["modelnet"][1])]
    ways: list[tuple[str, int | None, float]] = [("full precision", None, 0.0)]
    ways += [(f"{bits} bits", bits, 0.0) for bits in (10, 8, 6, 4)]
    ways += [(f"{loss:.0%} of messages lost", None, loss) for loss in (0.1, 0.3)]
    print("| messages | untuned | tuned | averages off by | kept |\n|" + "---|" * 5)
    for title, bits, loss in ways:
        found = []
        for val, y, test, truth in records:
            bound = 2 * max(float(np.abs(part).max()) for part in (val, test))
            rule = Quantised(DeGroot(), bits, bound) if bits else DeGroot()
            over = Lossy(loss, seed=1) if loss else Perfect()
            tuned = tuning.tune(val, y, ring, 20, rule, links=over)
            errors = [
                100 * collaborate(x, ring, 20, rule, links=over, record="final").errors(truth)[-1].mean()
                for x in (test, np.clip(tuned(test), -bound, bound) if bits else tuned(test))
            ]
            found.append((*errors, 100 * tuned.largest_deviation, tuned.kept == "tuned"))
        e = np.array(found)
        cells = [interval(e[:, 0]), interval(e[:, 1]), f"{e[:, 2].mean():.0f} %", f"{e[:, 3].sum():.0f} of {len(e)}"]
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


def plot(path: Path) -> None:
    """Errors on test items against labelled items, a panel per set, and against conversations with all of them.

    Of every training two repetitions.
    """
    figure, axes = panels(len(SETS) + 1, width=4.2, height=3.2, rows=2)
    for ax, (name, (title, trainings, _)) in zip(axes, SETS.items(), strict=False):
        most = len(load(name, 0)[1])
        at = [n for n in SIZES if n < most] + [most]
        found = [repetitions(name, n if n < most else None, 2 * trainings) for n in at]
        for i, label in enumerate(("equal gains", "best agent", "tuned")):
            each = [mean_interval(errors[:, i]) for errors in found]
            colour = COLOURS[(0, 7, 1)[i]]
            ax.errorbar(
                at, [one.mean for one in each], yerr=[one.half for one in each], label=label, color=colour,
                linestyle=("--", ":", "-")[i], marker="os^"[i], markersize=4, capsize=2, elinewidth=0.8,
            )  # fmt: skip
        ax.set_xscale("log")
        ax.set_xticks(at, [f"{n:,}" for n in at], fontsize=8)
        ax.set(xlabel="labelled items", title=title)
    last = axes[-1]
    for i, (name, (title, trainings, _)) in enumerate(SETS.items()):
        found = [repetitions(name, None, 2 * trainings, conversations=c) for c in CONVERSATIONS]
        each = [mean_interval(errors[:, 2]) for errors in found]
        print(f"{title}, {CONVERSATIONS} directions: {', '.join(f'{one.mean:.1f}' for one in each)} % wrong")
        last.errorbar(
            CONVERSATIONS, [one.mean for one in each], yerr=[one.half for one in each], label=title, color=COLOURS[i],
            marker="os^vD"[i], markersize=4, capsize=2, elinewidth=0.8,
        )  # fmt: skip
    last.set_xscale("log")
    last.set_xticks(CONVERSATIONS, CONVERSATIONS)
    last.set(xlabel="directions (conversations)", title="tuned, all labelled items")
    for ax in axes:
        ax.minorticks_off()
        ax.set_ylim(bottom=0)
        ax.set_ylabel("error on test items (%)")
        ax.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    last.legend(fontsize=7, loc="center right", bbox_to_anchor=(1.0, 0.65))
    save(figure, path)


def reveals() -> None:
    """How well an agent can reconstruct the others' scores of labelled items, in units of their variance.

    Messages of the first conversation are sums of all scores with weights that all may know: solved by least squares.
    Where only the average were heard, the best guess at one of the others is their mean.
    """
    ring = policy.metropolis(topology.ring(12))
    ways: dict[str, tuple[Any, Any, int]] = {f"ring, DeGroot, {t} round(s)": (ring, DeGroot(), t) for t in (1, 3, 20)}
    for title, over in (("ring, by its eigenvalues", schedule.eigenvalue_steps(ring)), ("exact", schedule.exact(12))):
        ways[f"{title}, {over.rounds} rounds"] = over, over.rule, over.rounds
    scores = [load("modelnet", r)[:2] for r in range(SETS["modelnet"][1])]
    for title, (over, rule, rounds) in ways.items():
        found = []
        received = _received(over, rule, rounds)
        for x, _ in scores:
            z = (x - x.mean(axis=0)) / x.std(axis=0)
            for k, C in enumerate(received):
                guess = (np.linalg.pinv(C, rcond=1e-8) @ (C @ z.T)).T
                found.append(np.delete(1 - ((guess - z) ** 2).mean(axis=0), k))
        known = np.array(found)
        rest = known[known <= 0.99]
        print(
            f"{title}: an agent knows {(known > 0.99).sum(axis=1).mean():.1f} of 11 others' scores"
            + (f", and of those of the rest explains {100 * max(rest.mean(), 0):.0f} %" if len(rest) else "")
        )
    pairs = [
        (x[:, k], x.sum(axis=1) - x[:, k], x[:, j]) for x, _ in scores for k in range(12) for j in range(12) if j != k
    ]
    alone, others = (100 * np.mean([np.corrcoef(pair[i], pair[2])[0, 1] ** 2 for pair in pairs]) for i in (0, 1))
    print(
        f"averages alone: the others' mean explains {others:.0f} % of one's scores, an agent's own score {alone:.0f} %"
    )


def _received(over: Any, rule: Any, rounds: int) -> list[Doubles]:
    """What each agent knows of an item, its own score and all messages, as sums of all scores: (messages, K)."""
    K = over.size
    rule = rule.prepared(over, rounds)
    seats = over.at(1)
    states = [rule.init(seat, np.eye(K)[:, [seat.agent]]) for seat in seats]
    known = [[np.eye(K)[k]] for k in range(K)]
    for t in range(1, rounds + 1):
        seats = over.at(t)
        sent = []
        for k, seat in enumerate(seats):
            outbox, states[k] = rule.emit(seat, states[k], None)
            sent.append(outbox.values)
        for k, seat in enumerate(seats):
            values = np.stack([sent[sender] for sender in seat.senders])
            status = np.where(np.asarray(seat.senders) == k, OWN, RECEIVED).astype(np.uint8)
            known[k] += [column for sender in seat.senders if sender != k for column in sent[sender].T]
            weights = np.repeat(np.asarray(seat.weights)[:, None], K, axis=1)
            states[k] = rule.absorb(
                seat, states[k], Inbox(values, weights, np.repeat(status[:, None], K, axis=1), sent[k])
            )
    return [np.array(rows) for rows in known]


def speed() -> None:
    """24 agents tune on 4 000 items; and what the same averages alone take."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(4000) < 0.5, 1, -1)
    x = rng.uniform(-0.2, 1, 24) * y[:, None] + rng.normal(size=(4000, 24))
    for title, over in (("exact average", schedule.exact(24)), ("ring", policy.metropolis(topology.ring(24)))):
        tuning.tune(x[:300], y[:300], over)
        begun, busy = time.perf_counter(), time.process_time()
        found = tuning.tune(x, y, over)
        print(f"{title}: {time.perf_counter() - begun:.2f} s ({time.process_time() - busy:.2f} s of one core), "
              f"{found.conversations} conversations, {found.transmissions} transmissions, {found.kept}")  # fmt: skip


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["table"]:
            table()
        case ["inexact"]:
            inexact()
        case ["reveals"]:
            reveals()
        case ["speed"]:
            speed()
        case ["--plot", path]:
            plot(Path(path))
        case _:
            sys.exit(__doc__)
