"""`collegium dashboard`: see agents decide together, recorded or live, and try what if."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from collegium.cli.complete import among
from collegium.cli.labelled import internal
from collegium.cli.network_argument import (
    UNCHANGING_HELP,
    PolicyName,
    complete_network,
    read_network_or_policy,
    unchanging,
)
from collegium.cli.rules import Bits, Bound, RuleName, read_rule
from collegium.cli.score_tables import CLASSES_HELP, LABELS_HELP, SCORES_HELP, read_scores
from collegium.cli.swapped import alone, hint_swapped
from collegium.cli.tables import READABLE, ending
from collegium.dashboard import PORT
from collegium.errors import BackendError, DataError, InputFileError, PolicyError
from collegium.policy import Policy
from collegium.protocol import Rule

if TYPE_CHECKING:
    from collegium.dashboard.sources import Feed
    from collegium.dashboard.views import Views
    from collegium.data import Dataset

DATA = ("digits", "cifar10", "modelnet")


def dashboard(
    record: Annotated[
        Path | None, typer.Argument(metavar="RECORD", help="A score record (.npz); without any source, the digits.")
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=SCORES_HELP),
    ] = None,
    live: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A live network: what collegium live init wrote.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(metavar="NETWORK", help=f"{UNCHANGING_HELP} By default a grid.", autocompletion=complete_network),
    ] = None,
    policy: PolicyName = None,
    rounds: Annotated[int | None, typer.Option(help="Communication rounds; those of a network file, or 20.")] = None,
    rule: RuleName = None,
    bits: Bits = None,
    bound: Bound = None,
    labels: Annotated[str | None, typer.Option(metavar="FILE|COLUMN", help=LABELS_HELP)] = None,
    classes: Annotated[str | None, typer.Option(metavar="A,B,…", help=CLASSES_HELP)] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Show views: items are the test items of {', '.join(DATA)}.",
            autocompletion=among(*DATA),
        ),
    ] = None,
    root: Annotated[Path | None, typer.Option(metavar="DIR", help="Where that data set is.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="For rules that draw.")] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = PORT,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open it in a browser.")] = True,
) -> None:
    """Watch agents decide together in a browser, and try other networks, rules, bits and faults."""
    _need()
    from collegium.dashboard import server

    if sum(source is not None for source in (record, scores, live)) > 1:
        raise InputFileError("choose one source: a score record, --scores or --live")
    options = (network, policy, rounds, rule, bits, bound)
    feed: Feed
    with server.listen(host, port) as taken:
        if live is not None:
            if any(one is not None for one in (*options, labels, classes)):
                raise InputFileError(
                    "a live network has its own topology, rule, rounds and classes: --live goes with --data alone"
                )
            try:
                from collegium.dashboard.live import Live
            except ImportError as problem:
                raise BackendError(f"--live needs {problem.name}: pip install 'collegium[live]'") from None
            feed = Live(live, None if data is None else partial(_views, _test_items(data, root)))
        else:
            feed = _recorded(record, scores, labels, classes, data, root, partial(_protocol, *options), seed)
        address = server.url(taken)
        server.serve(feed, taken, partial(_announce, address, host, open_browser))


def _recorded(
    record: Path | None,
    scores: Path | None,
    labels: str | None,
    classes: str | None,
    data: str | None,
    root: Path | None,
    protocol: Any,
    seed: int,
) -> "Feed":
    from collegium.dashboard.sources import Recorded
    from collegium.dashboard.what_if import World

    names: Any = None
    agents: tuple[str, ...] = ()
    shown: tuple[str, ...] = ("+1", "-1")
    y: Any
    dataset = None if data is None else _test_items(data, root)
    if scores is not None:
        table = read_scores(scores, labels, classes)
        values, names, agents, y, title = table.values, table.items, table.agents, None, scores.name
        if table.labels is not None and len(table.labels):
            y = internal(table, table.labels)
            hint_swapped(alone(table.values, y), len(y), 1 if table.values.ndim == 2 else table.values.shape[2])
        if table.values.ndim == 3 or y is not None:
            shown = table.class_names
    elif labels is not None or classes is not None:
        raise InputFileError("--labels and --classes go with --scores: other sources have their own")
    elif record is not None:
        from collegium.agents import Scores

        if ending(record) in READABLE:
            raise InputFileError(f"{record} is no score record (.npz); for a table: --scores {record}")
        kept = Scores.load(record)
        values, y, agents = kept.statistics("test"), kept.y_test, kept.agent_names
        shown = kept.class_names
        title = kept.description or record.name
    else:
        if data not in (None, "digits"):
            raise DataError(f"--data {data} shows views beside scores: give a score record, --scores or --live too")
        values, dataset = _digits()
        y, title = dataset.y, "handwritten digits: 3 or 8?"
    if dataset is not None:
        if y is not None and not np.array_equal(y, dataset.y):
            raise DataError(f"the labels are not those of the test items of {data}: leave out --data")
        y, agents, shown = dataset.y, dataset.agent_names, dataset.class_names
    K = values.shape[1]
    over, chosen_rule, rounds = protocol(K, float(np.abs(values).max(initial=0.0)))
    world = World(over, values, rounds, chosen_rule, seed, names, y)
    return Recorded(world, title, agents, shown, None if dataset is None else _views(dataset, K))


def _protocol(
    network: str | None,
    policy: str | None,
    rounds: int | None,
    rule: str | None,
    bits: int | None,
    bound: float | None,
    K: int,
    largest: float,
) -> tuple[Policy, Rule, int]:
    over, file = read_network_or_policy(network or _grid(K), policy)
    over = unchanging(over, network or "")
    if over.size != K:
        raise PolicyError(f"the network has {over.size} agents, but there are {K}: give --network one of that size")
    rounds = (20 if file is None else file.rounds) if rounds is None else rounds
    if file is not None and rule is None and bits is None and bound is None:
        return over, file.rule, rounds
    return over, read_rule(rule, bits, bound, rounds, largest, over=over), rounds


def _grid(K: int) -> str:
    """The squarest grid; a ring if there is none."""
    from collegium.topology.deterministic import squarest

    rows, columns = squarest(K)
    return f"grid:{rows}x{columns}" if rows > 1 else f"ring:{K}"


def _digits() -> tuple[Any, "Dataset"]:
    """Nine logistic regressions on the bundled digits: local statistics of the test items, and the items."""
    from sklearn.linear_model import LogisticRegression

    from collegium import topology
    from collegium.data import digits
    from collegium.policy import uniform
    from collegium.team import Team

    train, test = digits(classes=(3, 8))
    grid, models = uniform(topology.grid(3, 3)), [(name, LogisticRegression()) for name in train.agent_names]
    team = Team(models, grid, center="mean", calibrate=False, workers=1)  # as in the paper
    return team.fit(train.views, train.y).statistics(test.views), test


def _test_items(data: str, root: Path | None) -> "Dataset":
    if data not in DATA:
        raise DataError(f"there is no data set {data!r}: choose one of {', '.join(DATA)}")
    from collegium import data as sets

    if data == "digits":
        if root is not None:
            raise DataError("the digits come with scikit-learn: leave out --root")
        return sets.digits(classes=(3, 8))[1]
    try:
        test: Dataset = getattr(sets, data)(root=root)[1]
    except DataError as problem:  # elsewhere --data is the folder
        raise DataError(str(problem).replace("with --data", "with --root")) from None
    return test


def _views(dataset: "Dataset", K: int) -> "Views":
    from collegium.dashboard.views import Views

    return Views(dataset, K)


def _announce(address: str, host: str, open_browser: bool) -> None:
    from collegium._serving.server import is_loopback

    open_to_all = "" if is_loopback(host) else " · anyone who reaches this machine can view it"
    typer.echo(f"dashboard: {address} · Ctrl-C ends it{open_to_all}")
    if open_browser:
        import webbrowser

        webbrowser.open(address)


def _need() -> None:
    """The dashboard's extra, or an error on how to install it."""
    try:
        import httptools
        import msgspec
        import starlette
        import uvicorn  # noqa: F401
    except ImportError as problem:
        raise BackendError(f"the dashboard needs {problem.name}: pip install 'collegium[dashboard]'") from None
    del httptools, msgspec, starlette
