"""`collegium live demo`: nine processes decide together on handwritten digits."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium.cli.live.shared import need

if TYPE_CHECKING:
    from collegium.data import Dataset
    from collegium.live.answers import ItemResult
    from collegium.live.launcher import Member


def demo(
    items: Annotated[int, typer.Option(min=1, max=300, help="Handwritten digits to decide.")] = 200,
    classes: Annotated[
        str, typer.Option(metavar="A,B,…", help="Which digits to tell apart: two or more of 0 to 9.")
    ] = "3,8",
    rounds: Annotated[int, typer.Option(min=1)] = 20,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the network's folder here.")] = None,
) -> None:
    """Nine processes, one patch of a handwritten digit each, decide together; compared with the simulator."""
    need()
    if keep is not None:
        from collegium._team_files.folder import check_new

        check_new(keep)
    with TemporaryDirectory(prefix="collegium-live-") as scratch:
        _demo(items, [name.strip() for name in classes.split(",")], rounds, keep or Path(scratch) / "net")


def _demo(items: int, classes: list[str], rounds: int, folder: Path) -> None:
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from collegium import policy, topology
    from collegium.data import digits
    from collegium.live import launcher
    from collegium.live.folder import NetworkSettings, create
    from collegium.live.peers import Deadlines
    from collegium.network import collaborate
    from collegium.team import Team

    console = Console(highlight=False, markup=False)
    available = sum(map(len, digits(classes)))
    train, test = digits(classes, test=min((items + 0.5) / available, 0.9))
    truth = _names(train), _names(test)
    names = [f"agent-{k}" for k in range(9)]
    grid = policy.uniform(topology.grid(3, 3))
    team = Team([(name, LogisticRegression()) for name in names], grid, rounds, workers=1)
    team.fit(train.views, truth[0])
    kinds = " and ".join([", ".join(f"{name}s" for name in classes[:-1]), f"{classes[-1]}s"])
    console.print(f"nine agents trained apart on {len(train)} handwritten {kinds}; starting nine processes …")
    patient = Deadlines(longest=30.0, least=5.0, view=30.0, item=90.0)  # nobody is away, however busy the machine is
    create(folder, grid, team, NetworkSettings(rounds=rounds, deadlines=patient, port=0, http_port=0))
    n = min(items, len(test))

    def decide(k: int) -> "list[ItemResult]":
        with network[k].client() as client:
            return client.decide(range(n), views=test.views[k][:n], trace=True)

    begun = time.perf_counter()
    network = launcher.up(folder, wait=120.0)
    started = time.perf_counter() - begun
    try:
        before = [_bytes(member) for member in network]
        with ThreadPoolExecutor(9) as pool:
            begun = time.perf_counter()
            answers = list(pool.map(decide, range(9)))
            seconds = time.perf_counter() - begun
        sent = sum(_bytes(member) for member in network) - sum(before)
    finally:
        launcher.down(folder)
    statistics = np.array([[one.trace for one in column] for column in answers], float).swapaxes(0, 2)
    simulated = collaborate(statistics[0], team.policy, rounds)
    scores = np.abs(statistics[0] - team.statistics([view[:n] for view in test.views])).max()
    latency = np.array([one.latency_ms for column in answers for one in column])
    wrong = [
        (team.classes_[(page > 0).astype(int) if page.ndim == 2 else page.argmax(axis=2)] != truth[1][:n, None]).mean()
        for page in (statistics[0], statistics[-1])
    ]
    table = Table("", "measured", box=box.SIMPLE_HEAD, show_header=False)
    table.add_row("first decisions of the middle agent", " ".join(one.label for one in answers[4][:12]))
    table.add_row("error alone (mean of nine)", f"{100 * wrong[0]:.1f} %")
    table.add_row(f"error after {rounds} rounds", f"{100 * wrong[1]:.1f} %")
    table.add_row("items decided by all nine", f"{n} in {seconds:.2f} s, after a start of {started:.1f} s")
    table.add_row(
        "latency of an item", f"median {np.median(latency):.0f} ms, 99 % within {np.quantile(latency, 0.99):.0f} ms"
    )
    table.add_row(
        "bytes sent per item, all agents", f"{sent / n:.0f}, of which {simulated.bits[0] / 8:.0f} are messages"
    )
    table.add_row("difference to the simulator", f"{np.abs(statistics - simulated.statistics).max():g}")
    table.add_row("scores here and in the team", f"within {scores:.1e}")
    console.print(table)
    console.print("next: collegium live init --help, to run your own team on your own hosts")


def _names(items: "Dataset") -> Any:
    """The class of every item by its name."""
    import numpy as np

    places = items.y if len(items.class_names) > 2 else np.where(items.y > 0, 0, 1)
    return np.array(items.class_names)[places]


def _bytes(member: "Member") -> int:
    with member.client() as client:
        return client.status().bytes.sent
