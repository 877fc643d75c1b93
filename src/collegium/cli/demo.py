"""`collegium demo`: nine classifiers, each seeing a ninth of a handwritten digit, decide together."""

import json
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from collegium import policy, protocol, schedule, topology
from collegium._util.measures import mean_interval, wrong
from collegium._util.progress import track
from collegium.cli import compiled
from collegium.cli.tables import check_output, check_writable, write_table
from collegium.data import Dataset, digits
from collegium.network import Run, collaborate
from collegium.policy import Policy
from collegium.tuning import tune

CLASSES = (3, 8)
ROUNDS = 20
SHOWN = (1, 2, 5, 20)
EXACT = schedule.exact(9)
ROUNDED = {
    "any two linked: exact average, 4 rounds": 64,
    "  the same, messages of 8 bits": 8,
    "  the same, messages of 4 bits": 4,
}
LABELLED = 40
TUNED = f"  the same, tuned by {LABELLED} labelled items"
NEXT = {
    "collegium dashboard": "agents at work in a browser, item by item (needs collegium[dashboard])",
    "collegium compare --data digits --reps 2 --save scores": "every way to decide, side by side; keeps the scores",
    "collegium plan --scores scores/scores-0.npz --target-error 0.05": "the cheapest network for an error of about 5 %",
    "collegium certify scores/scores-0.npz ring:9": "what is guaranteed, beside what is measured",
    "collegium live demo": "the same with nine processes and a real network (needs collegium[live])",
    "collegium simulate --help": "your own scores: a row per item, a column per agent",
}


class Repetition(NamedTuple):
    """One split of the data: error rates."""

    rounds: NDArray[np.float64]  # (ROUNDS + 1, 9)
    vote: float
    average: float
    exact: dict[str, float]  # by who decides, of those who need no centre and no more than four rounds


class DemoRow(NamedTuple):
    """A line of the table: who decides, how often wrongly, and at what cost."""

    who: str
    error: float  # percent, like half
    half: float  # of the 95 % interval; NaN for one split
    bits: int


def demo(
    plot: Annotated[Path, typer.Option(metavar="FILE", help="Where to draw error against rounds.")] = Path(
        "collegium-demo.png"
    ),
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the report; by default beside the plot.")
    ] = None,
    reps: Annotated[int, typer.Option(min=1, help="Random splits into training and test half.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="For the splits.")] = 0,
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the scores and labels of the last split's test items, to try other commands on."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Handwritten 3 or 8? Nine classifiers see one patch each and exchange scores with their neighbours for 20 rounds.

    Prints a table, draws error against rounds, and writes a report (HTML).
    """
    from collegium import plots
    from collegium.cli import demo_report

    plots.check_name(plot)
    report = plot.with_suffix(".html") if report is None else report
    check_output(report, (".html", ".htm"))
    check_output(scores, (".csv", ".parquet"))
    for path in (plot, report, scores):
        check_writable(path)
    begun = time.perf_counter()
    console = Console(highlight=False, markup=False, quiet=as_json)
    network = policy.metropolis(topology.grid(3, 3))
    items = sum(map(len, digits(CLASSES)))
    console.print(
        f"{items} handwritten {CLASSES[0]}s and {CLASSES[1]}s, cut 3×3: nine agents, one patch and one "
        f"logistic regression each.\n"
        f"Each hears the agents of the patches beside its own, or in each round another agent; "
        f"{'one random split' if reps == 1 else f'mean of {reps} random splits'}."
    )
    compiled.announce()
    seeds = np.random.SeedSequence(seed).spawn(reps)
    runs = []
    for one in track(seeds, "training and running"):
        repetition, run, test = _repeat(network, np.random.default_rng(one))
        runs.append(repetition)
    rows = _rows(runs, run)
    console.print(_table(rows))
    title = f"{CLASSES[0]} or {CLASSES[1]}: nine agents, one patch each"
    centralised = {"vote of all": _mean(r.vote for r in runs), "average of all": _mean(r.average for r in runs)}
    figure = plots.error_figure(np.mean([r.rounds for r in runs], axis=0), centralised, title)
    plots.save(figure, plot)
    demo_report.write(report, demo_report.Story(rows, run, test, figure, reps, seed, time.perf_counter() - begun))
    if scores is not None:
        columns = dict(zip(test.agent_names, -run.statistics[0].T, strict=True))  # positive for the larger label
        write_table(scores, {"item": np.arange(len(test))} | columns | {"label": np.where(test.y > 0, *CLASSES)})
    if as_json:
        files = {"plot": str(plot), "report": str(report), "scores": None if scores is None else str(scores)}
        typer.echo(json.dumps({"splits": reps, "rows": [_fact(row) for row in rows], **files}, allow_nan=False))
        return
    console.print(f"error against rounds: {plot}\nreport, for a browser: {report}")
    if scores is not None:
        console.print(f"scores and labels of {len(test)} test items: {scores}")
    console.print("\nwhat to try next:")
    for command, why in NEXT.items():
        console.print(f"  {command}\n      {why}", soft_wrap=True)


def _repeat(network: Policy, rng: np.random.Generator) -> tuple[Repetition, Run, Dataset]:
    from sklearn.linear_model import LogisticRegression

    from collegium.team import Team

    train, test = digits(CLASSES, seed=rng)
    team = Team([(name, LogisticRegression()) for name in train.agent_names], network, ROUNDS, workers=1)
    team.fit(train.views, train.y)
    order = rng.permutation(len(test))
    labelled, test = test.take(order[:LABELLED]), test.take(np.sort(order[LABELLED:]))
    run = team.run(test.views)
    scores = run.statistics[0]
    vote = wrong(np.sign(scores).sum(axis=1), test.y).mean()
    average = wrong(scores.mean(axis=1), test.y).mean()
    exact = _exact(scores, test.y, float(team.largest_scores_.max()))
    tuned = tune(team.run(labelled.views).statistics[0], labelled.y, EXACT)
    exact[TUNED] = float(collaborate(tuned(scores), EXACT).errors(test.y)[-1].mean())
    return Repetition(run.errors(test.y), float(vote), float(average), exact), run, test


def _exact(scores: NDArray[np.float64], y: NDArray[Any], bound: float) -> dict[str, float]:
    """Errors of the exact average in four rounds, at full precision and rounded; larger scores than any in training
    are cut to the bound."""
    found = {}
    for who, bits in ROUNDED.items():
        rule = EXACT.rule if bits == 64 else protocol.Quantised(EXACT.rule, bits, bound)
        run = collaborate(np.clip(scores, -bound, bound), EXACT, rule=rule)
        found[who] = float(run.errors(y)[-1].mean())
    return found


def _rows(runs: list[Repetition], run: Run) -> list[DemoRow]:
    alone = np.array([r.rounds[0] for r in runs])
    rows = [_row(f"agent {k} alone (row {k // 3}, column {k % 3})", alone[:, k], 0) for k in range(alone.shape[1])]
    rows.append(_row("vote of all nine, at a centre", [r.vote for r in runs], 9))
    rows.append(_row("average of all nine, at a centre", [r.average for r in runs], 9 * 64))
    for t in SHOWN:
        bits = t * run.policy.links * run.rule.message_bits()
        rounds = "1 round" if t == 1 else f"{t} rounds"
        rows.append(_row(f"neighbours, after {rounds} (mean agent)", [r.rounds[t].mean() for r in runs], bits))
    sent = EXACT.rounds * EXACT.size
    rows += [_row(who, [r.exact[who] for r in runs], sent * ROUNDED.get(who, 64)) for who in runs[0].exact]
    return rows


def _row(who: str, errors: Any, bits: int) -> DemoRow:
    return DemoRow(who, *mean_interval(100 * np.asarray(errors)), bits)


def _fact(row: DemoRow) -> dict[str, Any]:
    return row._asdict() | {"who": row.who.strip(), "half": None if np.isnan(row.half) else row.half}


def _table(rows: list[DemoRow]) -> Table:
    table = Table("who decides", "error %", "± 95 %", "bits per item", title_justify="left")
    for i, row in enumerate(rows):
        half = "–" if np.isnan(row.half) else f"{row.half:.2f}"
        table.add_row(row.who, f"{row.error:.2f}", half, str(row.bits), end_section=i in (8, 10, 10 + len(SHOWN)))
    return table


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))
