"""`collegium study`: reproduce the paper's figures and see which of its claims hold."""

import json
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from collegium.cli.complete import among
from collegium.errors import BackendError, CollegiumError, DataError, InputFileError

if TYPE_CHECKING:
    from collegium.lab.backends import Backend
    from collegium.lab.laboratory import Laboratory
    from collegium.lab.study import Study

app = typer.Typer(
    help="Every figure and table of the paper from real data, and studies beyond it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
BACKENDS = ("serial", "process", "ray")
OUT = Path("collegium-lab")
NAMES = (
    "bounds", "cifar-setup", "cifar-main", "cifar-graphs", "cifar-cmi", "cifar-hetero-gain", "cifar-hetero-main",
    "cifar-temperature", "modelnet-setup", "modelnet-main", "modelnet-temperature", "modelnet-correlation", "topology",
    "graphs", "stopping", "robustness", "communication-cost", "sensors-main", "liars", "privacy", "averages",
)  # fmt: skip
"""Of collegium.lab.studies, which takes seconds to load: too long for the shell's completion."""

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME…",
        help="Studies, all of the paper's by default; your own as FILE.py:NAME, or the name of an entry point of "
        "collegium.studies.",
        autocompletion=among(*NAMES),
    ),
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Where records, tables and figures are.")]
BackendName = Annotated[str, typer.Option("--backend", help=f"{', '.join(BACKENDS)}.", autocompletion=among(*BACKENDS))]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes, or cores of a local Ray cluster.")]
Address = Annotated[
    str | None, typer.Option(help="Of an existing Ray cluster; RAY_ADDRESS by default, else a new one here.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command("list")
def list_studies(as_json: AsJson = False) -> None:
    """The studies and what they reproduce, the paper's first, then those beyond it.

    Yours too, if a package names them as entry points of collegium.studies.
    """
    from collegium._util import plugins
    from collegium.lab.studies import BEYOND, PAPER, load

    rows = [
        {"study": study.name, "figures": study.figures, "title": study.title, "group": group}
        for group, studies in (("paper", PAPER), ("beyond the paper", BEYOND))
        for study in studies.values()
    ]
    for name in plugins.names(plugins.STUDIES):
        try:
            own = load(name)
            rows.append({"study": name, "figures": own.figures, "title": own.title, "group": "yours"})
        except CollegiumError as problem:  # one package that is broken does not hide the others
            rows.append({"study": name, "figures": "", "title": str(problem), "group": "yours"})
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table("study", "paper", "what", box=box.SIMPLE_HEAD)
    for row, after in zip_longest(rows, rows[1:]):
        last = after is None or after["group"] != row["group"]
        shown = row["figures"] or ("" if row["group"] == "paper" else row["group"])
        table.add_row(row["study"], shown, row["title"], end_section=last)
    Console(highlight=False, markup=False).print(table)


@app.command()
def run(
    names: Names = None,
    reps: Annotated[int | None, typer.Option(min=1, help="Repetitions of everything.")] = None,
    trained: Annotated[
        int | None, typer.Option(min=0, help="Those in which AdaBoost, VFL-JT and the oracle are trained; all of them.")
    ] = None,
    n0: Annotated[str | None, typer.Option(metavar="N,N,…", help="Sizes of the agents' data sets.")] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|FILE.py:NAME",
            help="Where the data sets are; or your own data: a function that returns (train, test), or an entry point "
            "of collegium.data.",
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:NAME",
            help="Your own models: a function of the training items that returns one for all agents or one for each, "
            "or an entry point of collegium.models.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For everything that is drawn.")] = 0,
    dimensions: Annotated[int, typer.Option(min=1, help="cifar-cmi: principal components kept.")] = 20,
    neighbours: Annotated[int, typer.Option(min=1, help="cifar-cmi: k of the estimator.")] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="Two repetitions, small, few epochs: minutes.")] = False,
    available: Annotated[
        bool, typer.Option("--available", help="Train nothing: evaluate the repetitions whose records are there.")
    ] = False,
    backend: BackendName = "process",
    workers: Workers = None,
    address: Address = None,
    out: Out = OUT,
    as_json: AsJson = False,
) -> None:
    """Train what is missing, evaluate, draw and check. Can be stopped at any time and resumed."""
    from collegium.lab.laboratory import Laboratory
    from collegium.lab.study import Options

    lab = Laboratory(out)
    own = data if data is not None and _is_own_data(data) else None
    where = None if data is None or own else str(Path(data).resolve())
    options = Options(reps, _sizes(n0), where, seed, dimensions, neighbours, quick, own, models, trained, available)
    _conclude(lab, lab.run(names or [], options, _backend(backend, workers, address)), as_json)


@app.command()
def resume(
    backend: BackendName = "process",
    workers: Workers = None,
    address: Address = None,
    out: Out = OUT,
    as_json: AsJson = False,
) -> None:
    """Go on with the last run in a folder."""
    from collegium.lab.laboratory import Laboratory

    lab = Laboratory(out)
    _conclude(lab, lab.resume(_backend(backend, workers, address)), as_json)


@app.command()
def export(
    to: Annotated[Path, typer.Argument(metavar="DIR", help="Where to keep the records; those there are left alone.")],
    only: Annotated[str, typer.Option(metavar="TEXT", help="Those whose names begin so, such as modelnet-n390.")] = "",
    out: Out = OUT,
) -> None:
    """Copy what has been trained to a folder, to go on from it elsewhere with `study import`."""
    _copy(out / "records", to, only)


@app.command("import")
def import_records(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="Where `study export` put records.")],
    only: Annotated[str, typer.Option(metavar="TEXT", help="Those whose names begin so, such as modelnet-n390.")] = "",
    out: Out = OUT,
) -> None:
    """Take over what was trained elsewhere: `study run` trains only what is missing."""
    _copy(source, out / "records", only)


@app.command()
def figures(names: Names = None, out: Out = OUT) -> None:
    """Draw the figures of finished studies (PNG and PDF); reads only their tables."""
    from collegium.lab.laboratory import Laboratory

    for path in Laboratory(out).draw(names or []):
        typer.echo(str(path))


@app.command()
def check(names: Names = None, out: Out = OUT, as_json: AsJson = False) -> None:
    """The paper's claims, and which of them these numbers bear out."""
    from collegium.lab.laboratory import Laboratory

    _print_claims(Laboratory(out), names or [], as_json)


@app.command()
def report(
    names: Names = None,
    out: Out = OUT,
    to: Annotated[Path | None, typer.Option(metavar="FILE", help="The page; report.html in --out by default.")] = None,
) -> None:
    """Write one self-contained HTML page about finished studies."""
    from collegium.lab import report as page
    from collegium.lab.laboratory import Laboratory

    lab = Laboratory(out)
    path = to or lab.folder / "report.html"
    page.write(lab, names or [], path)
    typer.echo(str(path))


@app.command()
def summary(
    to: Annotated[Path, typer.Argument(metavar="DIR", help="Where to put CSVs, PNGs and the claims.")],
    names: Names = None,
    out: Out = OUT,
) -> None:
    """Write a summary of finished studies that is small enough to keep: CSVs, PNGs, a page with the claims."""
    from collegium.lab import summary as small
    from collegium.lab.laboratory import Laboratory

    for path in small.write(Laboratory(out), names or [], to):
        typer.echo(str(path))


@app.command()
def redraw(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where `study summary` put CSVs and PNGs.")],
    names: Names = None,
) -> None:
    """Draw the pictures of a kept summary again, from its CSVs alone."""
    from collegium.lab import summary as small

    for path in small.redraw(folder, names or []):
        typer.echo(str(path))


def _copy(source: Path, to: Path, only: str) -> None:
    from collegium.lab.records import Store

    if not source.is_dir():
        raise InputFileError(f"there is no folder {source}, so no records to copy")
    taken = Store(to).add(Store(source), only)
    typer.echo(f"{len(taken)} new record{'s' * (len(taken) != 1)} in {to}")


def _conclude(lab: "Laboratory", done: "list[Study]", as_json: bool) -> None:
    names = [study.name for study in done]
    drawn = lab.draw(names)
    if as_json:
        facts = {"studies": names, "folder": str(lab.folder), "figures": list(map(str, drawn))}
        typer.echo(json.dumps(facts | {"claims": [claim._asdict() for claim in lab.claims(names)]}))
        return
    _print_claims(lab, names, as_json=False)
    typer.echo(f"figures: {lab.folder / 'figures'} · tables: {lab.folder / 'tables'}")


def _print_claims(lab: "Laboratory", names: list[str], as_json: bool) -> None:
    claims = lab.claims(names)
    if as_json:
        typer.echo(json.dumps([claim._asdict() for claim in claims]))
        return
    table = Table("study", "claim", "verdict", "evidence", box=box.SIMPLE_HEAD)
    for claim in claims:
        table.add_row(claim.study, claim.claim, claim.verdict, claim.evidence)
    Console(highlight=False, markup=False).print(table)


def _backend(name: str, workers: int | None, address: str | None) -> "Backend":
    from collegium.lab import backends

    if name not in BACKENDS:
        raise BackendError(f"there is no backend {name!r}: choose one of {', '.join(BACKENDS)}")
    if address is not None and name != "ray":
        raise BackendError("--address is of a Ray cluster: give --backend ray too")
    if name == "ray":
        return backends.Ray(address, workers)
    return backends.Serial(workers) if name == "serial" else backends.Process(workers)


def _is_own_data(written: str) -> bool:
    from collegium._util import plugins

    return plugins.is_file(written) or written in plugins.names(plugins.DATA)


def _sizes(written: str | None) -> tuple[int, ...] | None:
    if written is None:
        return None
    try:
        return tuple(sorted({int(part) for part in written.split(",")}))
    except ValueError:
        raise DataError(f"--n0 {written}: write whole numbers with commas between them, such as 500,1000") from None
