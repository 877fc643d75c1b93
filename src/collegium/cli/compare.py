"""`collegium compare`: every method of the paper's comparison on the same items, with what it costs."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium import fusion, policy, topology
from collegium._util import plugins
from collegium._util.progress import progress
from collegium.cli import compiled
from collegium.cli.cases import MODELS, SOURCES, Case, Recorded, Trained
from collegium.cli.complete import among
from collegium.cli.labelled import read_record
from collegium.cli.network_argument import NETWORK_HELP, PolicyName, complete_network, read_schedule
from collegium.cli.tables import READABLE, check_output, check_writable, ending, write_table
from collegium.errors import CollegiumError, DataError, InputFileError, ModelError, PolicyError
from collegium.schedule import Schedule, own_rounds

if TYPE_CHECKING:
    from collegium.fusion import ComparisonRow, Method, Result

_ANY = policy.uniform(topology.ring(2))  # stands for the network where only the list of methods matters


def compare(
    data: Annotated[
        list[str],
        typer.Option(
            metavar="NAME|FILE",
            help=f"{', '.join(SOURCES)}; your own data, FILE.py:NAME with a function that returns (train, test), or an "
            "entry point of collegium.data; or score records (.npz, or tables as of simulate with columns label and "
            "part: train, val or test), each of them one repetition.",
            autocompletion=among(*SOURCES),
        ),
    ],
    reps: Annotated[
        int | None, typer.Option(min=1, help="Repetitions: new sample, new split, new training; 5 by default.")
    ] = None,
    n0: Annotated[
        int | None, typer.Option(min=2, help="Items agents learn from; by default all, of cifar10 1000.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            metavar="NETWORK",
            help=f"{NETWORK_HELP} By default a directed Erdős–Rényi network.",
            autocompletion=complete_network,
        ),
    ] = None,
    weighing: PolicyName = None,
    rounds: Annotated[int | None, typer.Option(min=0, help="Communication rounds; those of a schedule, or 20.")] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Only these, such as ours,avg-stat,vfl-jt; all by default.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "--models",
            metavar="NAME|FILE.py:NAME",
            help=f"The agents' family: {', '.join(MODELS)}; or your own models, a function of the training items that "
            "returns one for all agents or one for each, or an entry point of collegium.models.",
            autocompletion=among(*MODELS),
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Train networks for at most so many epochs.")] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Divide scores by each agent's temperature.")] = False,
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Classes of the data set, two or more, or all; of digits 3,8 by default."),
    ] = None,
    root: Annotated[Path | None, typer.Option(metavar="DIR", help="Where the data set is.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes or threads; all cores by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="For everything that is drawn.")] = 0,
    coordination: Annotated[
        bool, typer.Option("--coordination", help="Only print what each method needs of the agents.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep each repetition's score record (.npz) here.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every repetition (CSV or Parquet).")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw errors with their intervals.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare ways to decide: alone, at a centre, jointly trained, all-seeing, and over a network."""
    check_output(out, (".csv", ".parquet"))
    if plot is not None:
        from collegium import plots

        plots.check_name(plot)
    console = Console(highlight=False, markup=False)
    if rounds is None:
        rounds = 20 if network is None else own_rounds(read_schedule(network, weighing))
    cases: Recorded | Trained
    if len(data) == 1 and _is_data_set(data[0]):
        cases = Trained(data[0], reps or 5, model, n0, epochs, _named(classes), root, workers, seed)
    else:
        of_training = {"reps": reps, "n0": n0, "model": model, "epochs": epochs, "classes": classes, "root": root}
        cases = Recorded(_records(data, [name for name, value in of_training.items() if value is not None]))
    if coordination:
        asked = fusion.coordination_table(_chosen(cases.methods(0, _ANY, rounds, False), methods))
        _print_coordination(console, asked, as_json)
        return
    for path in (out, plot, None if save is None else save / "scores.npz"):
        check_writable(path)
    compiled.announce()
    results, problem = _run(cases, network, weighing, rounds, calibrate, methods, save)
    rows = fusion.summarise(results)
    title = _title(cases, results, network, rounds)
    if as_json:
        typer.echo(json.dumps([row._asdict() for row in rows]))
    else:
        console.print(_table(rows, results, title))
        if cases.left_out and methods is None:
            console.print(cases.left_out)
    if out is not None:
        write_table(out, _columns(results))
    if plot is not None:
        together = {one.name for one in cases.methods(0, _ANY, rounds, False) if one.coordination.training != "None"}
        plots.save(plots.comparison_figure(rows, together, title), plot)
    if not as_json:
        for path in (plot, out, save):
            if path is not None:
                console.print(f"written: {path}")
    if problem is not None:
        typer.echo(f"collegium: only {len(results)} of {cases.repetitions} repetitions are finished", err=True)
        raise problem


def _run(
    cases: Recorded | Trained,
    network: str | None,
    weighing: str | None,
    rounds: int,
    calibrate: bool,
    wanted: str | None,
    save: Path | None,
) -> "tuple[list[list[Result]], BaseException | None]":
    """Every method in every repetition; if it is stopped, what was finished until then, and why."""
    count = len(_chosen(cases.methods(0, _ANY, rounds, calibrate), wanted))
    results: list[list[Result]] = []
    with progress("comparing", cases.repetitions * (count + 1)) as bar:
        for r in range(cases.repetitions):
            try:
                case = cases.case(r)
                if save is not None:
                    case.scores.save(save / f"scores-{r}.npz")
                bar.advance()
                over = _network(network, weighing, case.scores.size)
                if r == 0:  # loads the kernels, off the clock
                    fusion.Ours(over, 1).fit(case.scores).decide(case.scores.test[:1])
                one = []
                for method in _chosen(cases.methods(r, over, rounds, calibrate), wanted):
                    one.append(_evaluate(method, case))
                    bar.advance()
                results.append(one)
            except (KeyboardInterrupt, CollegiumError) as problem:
                if not results:
                    raise
                return results, typer.Exit(130) if isinstance(problem, KeyboardInterrupt) else problem
    return results, None


def _evaluate(method: "Method", case: Case) -> "Result":
    try:
        return fusion.evaluate(method, *case)
    except CollegiumError as mistake:
        if method.name in str(mistake):
            raise
        raise type(mistake)(f"{method.name}: {mistake}") from None


def _network(written: str | None, weighing: str | None, K: int) -> Schedule:
    """The network asked for; by default a directed Erdős–Rényi one with 8/3 senders per agent on average."""
    links = max(min(8 * K // 3, K * (K - 1)), 0)
    over = read_schedule(written or f"erdos-renyi:{K},links={links},seed=7", weighing)
    if over.size != K:
        raise PolicyError(f"the network has {over.size} agents, but there are {K}: give --network one of that size")
    return over


def _is_data_set(name: str) -> bool:
    return name in SOURCES or plugins.is_file(name) or name in plugins.names(plugins.DATA)


def _records(given: list[str], of_training: list[str]) -> list[Path]:
    paths = [Path(one) for one in given]
    for one, path in zip(given, paths, strict=True):
        if _is_data_set(one):
            raise DataError("compare one data set at a time, or several score records of it")
        if ending(path) not in (".npz", *READABLE) and not path.is_dir():
            data_sets = ", ".join([*SOURCES, *plugins.names(plugins.DATA), plugins.FORM])
            raise InputFileError(
                f"--data {one}: neither a data set ({data_sets}) nor a score record, an .npz file as --save or "
                "Scores.save writes"
            )
    if len(paths) > 1 and len({(record.size, record.classes) for record in map(read_record, paths)}) > 1:
        raise DataError(
            "these score records have different numbers of agents or classes: compare those of the same network"
        )
    if of_training:
        raise DataError(f"--{of_training[0]} is about training; a score record comes from one: leave it out")
    return paths


def _named(written: str | None) -> tuple[str, ...] | None:
    if written is None:
        return None
    names = tuple(name.strip() for name in written.split(","))
    if len(names) < 2 and names != ("all",):
        raise DataError(f"--classes {written}: name two classes or more, such as cat,dog, or all")
    return names


def _chosen(methods: "list[Method]", wanted: str | None) -> "list[Method]":
    if wanted is None:
        return methods
    known = {_short(method.name): method for method in methods}
    names = [_short(name) for name in wanted.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise ModelError(f"there is no method {name!r} here: choose among {', '.join(known)}")
    if not names:
        raise ModelError(f"--methods is empty: choose among {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def _short(name: str) -> str:
    """A method's name as it is typed: `Ours (no centering)` is ours-no-centering."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _title(cases: Recorded | Trained, results: "list[list[Result]]", network: str | None, rounds: int) -> str:
    R = len(results)
    repeated = "one repetition" if R == 1 else f"{R} repetitions"
    over = network or "a directed Erdős–Rényi network"
    return f"{cases.title}: {repeated}, {rounds} rounds over {over}"


def _table(rows: "list[ComparisonRow]", results: "list[list[Result]]", title: str) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1))
    table.add_column("method", no_wrap=True)
    table.add_column("error %\n± 95 %", no_wrap=True, justify="right")
    for name in ("sent\nper item", "bits\nper item", "sent in\ntraining", "seconds"):
        table.add_column(name, justify="right")
    sent = np.mean([[result.training_transmissions for result in one] for one in results], axis=0)
    for row, training in zip(rows, sent, strict=True):
        error = f"{100 * row.error:.2f} ± {100 * row.ci95:5.2f}"
        table.add_row(
            row.method, error, f"{row.transmissions:.6g}", f"{row.bits:,.0f}", f"{training:,.0f}", f"{row.seconds:.3f}"
        )
    over = "repetitions" if len(results) > 1 else "test items"
    table.caption = (
        f"± 95 %: over the {over}. sent: transmissions, to decide about an item and while the method was fitted.\n"
        "seconds: to fit the method and decide about all test items, once the agents are trained."
    )
    return table


def _columns(results: "list[list[Result]]") -> dict[str, Any]:
    flat = [(r, *result) for r, one in enumerate(results) for result in one]
    return {name: np.array([row[i] for row in flat]) for i, name in enumerate(("repetition", *fusion.Result._fields))}


def _print_coordination(console: Console, rows: list[dict[str, str]], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table(*rows[0], title="what each method needs of the agents", title_justify="left")
    for row in rows:
        table.add_row(*row.values())
    console.print(table)
