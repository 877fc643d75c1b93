"""`collegium demo`: nine classifiers, each seeing a ninth of a handwritten digit, decide together."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from collegium import policy, topology
from collegium.data import digits
from collegium.measures import mean_interval, wrong
from collegium.network import Run
from collegium.policy import Policy
from collegium.progress import track

CLASSES = (3, 8)
ROUNDS = 20
SHOWN = (1, 2, 5, 20)


class Repetition(NamedTuple):
    """One split of the data: error rates."""

    rounds: NDArray[np.float64]  # (ROUNDS + 1, 9)
    vote: float
    average: float


def demo(
    plot: Annotated[Path, typer.Option(metavar="FILE", help="Where to draw error against rounds.")] = Path(
        "collegium-demo.png"
    ),
    reps: Annotated[int, typer.Option(min=1, help="Random splits into training and test half.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="For the splits.")] = 0,
) -> None:
    """Handwritten 3 or 8? Nine classifiers see one patch each and talk to their neighbours for 20 rounds."""
    from collegium import plots

    plots.check_name(plot)
    console = Console(highlight=False, markup=False)
    network = policy.uniform(topology.erdos_renyi(9, links=24, seed=7))
    items = sum(map(len, digits(CLASSES)))
    console.print(
        f"{items} handwritten {CLASSES[0]}s and {CLASSES[1]}s, cut 3×3: nine agents, one patch and one "
        f"logistic regression each.\n"
        f"A directed network with {network.links} links, {ROUNDS} rounds, mean of {reps} random splits."
    )
    seeds = np.random.SeedSequence(seed).spawn(reps)
    runs = []
    for one in track(seeds, "training and talking"):
        repetition, run = _repeat(network, np.random.default_rng(one))
        runs.append(repetition)
    errors = np.mean([r.rounds for r in runs], axis=0)
    console.print(_table(runs, run))
    title = f"{CLASSES[0]} or {CLASSES[1]}: nine agents, one patch each"
    centralised = {"vote of all": _mean(r.vote for r in runs), "average of all": _mean(r.average for r in runs)}
    plots.save(plots.error_figure(errors, centralised, title), plot)
    console.print(f"error against rounds: {plot}")
    console.print(
        "next: collegium network erdos-renyi:9,links=24,seed=7 --plot network.png · collegium simulate --help"
    )


def _repeat(network: Policy, rng: np.random.Generator) -> tuple[Repetition, Run]:
    from sklearn.linear_model import LogisticRegression

    from collegium.team import Team

    train, test = digits(CLASSES, seed=rng)
    team = Team([(name, LogisticRegression()) for name in train.agent_names], network, ROUNDS, workers=1)
    run = team.fit(train.views, train.y).run(test.views)
    scores = run.statistics[0]
    vote = wrong(np.sign(scores).sum(axis=1), test.y).mean()
    average = wrong(scores.mean(axis=1), test.y).mean()
    return Repetition(run.errors(test.y), float(vote), float(average)), run


def _table(runs: list[Repetition], run: Run) -> Table:
    table = Table("who decides", "error %", "± 95 %", "bits per item", title_justify="left")
    alone = np.array([r.rounds[0] for r in runs])
    for k in range(alone.shape[1]):
        _row(table, f"agent {k} alone (row {k // 3}, column {k % 3})", alone[:, k], "0")
    table.add_section()
    _row(table, "vote of all nine, at a centre", [r.vote for r in runs], "9")
    _row(table, "average of all nine, at a centre", [r.average for r in runs], str(9 * 64))
    table.add_section()
    for t in SHOWN:
        bits = t * run.policy.links * run.rule.message_bits
        rounds = "1 round" if t == 1 else f"{t} rounds"
        _row(table, f"collegium after {rounds} (mean of agents)", [r.rounds[t].mean() for r in runs], str(bits))
    return table


def _row(table: Table, name: str, errors: Any, bits: str) -> None:
    mean, half = mean_interval(100 * np.asarray(list(errors)))
    table.add_row(name, f"{mean:.2f}", "–" if np.isnan(half) else f"{half:.2f}", bits)


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))
