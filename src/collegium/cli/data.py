"""`collegium data`: what data there is, whether it is sound, and how to get more."""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from collegium.cli.complete import among
from collegium.cli.render import render
from collegium.cli.split import split as split_columns
from collegium.data.cifar10 import ARCHIVE, ARCHIVE_SHA256
from collegium.data.folders import CACHE_VARIABLE, DATA_VARIABLE, cache_folder, not_found, places
from collegium.data.inventory import NAMES, UCI, Inventory, take_stock
from collegium.errors import DataError, InputFileError

app = typer.Typer(help="Data sets: list, check, fetch, render or split them.", no_args_is_help=True)

FETCHED = ("cifar10", *UCI)
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help=f"The folder that holds the data; by default {DATA_VARIABLE}."),
]


@app.command("list")
def list_sets(
    data: DataFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Which data sets are on this machine, where, with how many items, and how to get the others."""
    stocks = [take_stock(name, data) for name in NAMES]
    if as_json:
        typer.echo(json.dumps([_facts(stock) for stock in stocks]))
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    table = Table("data set", Column("where", overflow="fold"), "items", Column("remark", overflow="fold"))
    for stock in stocks:
        folder = str(stock.folder) if stock.folder else "–"
        table.add_row(stock.name, folder, _counted(stock), _state(stock))
    console.print(table, soft_wrap=False)
    for stock in stocks:
        if not stock.found:
            console.print(not_found(stock.name, data, stock.obtain))
    kept = sum(file.stat().st_size for file in cache_folder().glob("*.npy"))
    console.print(f"cache: {cache_folder()} ({kept / 1e6:.0f} MB, may be emptied at any time)")


@app.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]…", help=f"{', '.join(NAMES)}; all of them by default.", autocompletion=among(*NAMES)
        ),
    ] = None,
    data: DataFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Read every file of the data sets from beginning to end, and name those that are not as they should be."""
    stocks = [take_stock(name, data, thorough=True) for name in names or NAMES]
    missing = [stock for stock in stocks if not stock.found]
    if names and missing:
        raise DataError(not_found(missing[0].name, data, missing[0].obtain))
    if as_json:
        typer.echo(json.dumps([_facts(stock) for stock in stocks]))
    else:
        for stock in stocks:
            _describe(stock, data)
    problems = [problem for stock in stocks for problem in stock.problems]
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        count = "one thing is" if len(problems) == 1 else f"{len(problems)} things are"
        bad = " and ".join(stock.name for stock in stocks if stock.problems)
        raise InputFileError(f"{count} wrong with {bad}: move what is damaged away and get it again")


@app.command()
def fetch(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"{', '.join(FETCHED)}; or blender, which `render` works with.",
            autocompletion=among(*FETCHED, "blender"),
        ),
    ],
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help=f"Where to put it; by default {DATA_VARIABLE}.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Another address of the archive.")] = None,
    sha256: Annotated[
        str | None, typer.Option(metavar="HEX", help="The checksum of another archive; only cifar10 needs it.")
    ] = None,
) -> None:
    """Download a data set, verify it and unpack it. Run it again to go on with a download that was interrupted."""
    from collegium.data.environment import environment
    from collegium.data.fetch import already_there, fetch_cifar10, fetch_uci

    console = Console(highlight=False, markup=False, soft_wrap=True)
    if name == "blender":
        if (to, url, sha256) != (None, None, None):
            raise DataError(
                f"blender goes into the cache folder (set {CACHE_VARIABLE}) and comes through pip: "
                f"--to, --url and --sha256 are for {', '.join(FETCHED)}"
            )
        python = environment(tell=lambda sentence: typer.echo(sentence, err=True))
        console.print(f"Blender is ready: {python}")
        return
    if name not in FETCHED:
        raise DataError(f"{name} cannot be fetched. {take_stock(name).obtain}.")
    other = name == "cifar10" and (sha256 or ARCHIVE_SHA256).lower() != ARCHIVE_SHA256
    there = None if other else already_there(to, name)
    if there is not None:
        console.print(f"{there.folder} is there already, nothing to do: {there.remark}")
        return
    try:
        if name == "cifar10":
            folder = fetch_cifar10(to, url or ARCHIVE, sha256 or ARCHIVE_SHA256)
        else:
            folder = fetch_uci(name, to, url, sha256)
    except KeyboardInterrupt:
        typer.echo("stopped; run the same command again to go on from here", err=True)
        raise
    stock = take_stock(name, folder, thorough=True)
    console.print(f"{folder}: {stock.remark}")
    if folder.parent not in places():
        console.print(f"to have it found: export {DATA_VARIABLE}={shlex.quote(str(folder.parent.absolute()))}")


app.command()(render)
app.command("split")(split_columns)


def _describe(stock: Inventory, data: Path | None) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not stock.found:
        console.print(not_found(stock.name, data, stock.obtain))
        return
    where = f" in {stock.folder}" if stock.folder else ""
    console.print(f"{stock.name}{where}: {stock.remark}{'; not sound, see below' if stock.problems else ''}")
    for split, counts in stock.counts.items():
        console.print(f"  {split}: {', '.join(f'{n} × {one}' for one, n in counts.items()) or 'nothing'}")
    if stock.largest_n0 is not None:
        n0, first, second = stock.largest_n0
        console.print(f"  largest balanced training set: N_0 = {n0} ({first} and {second})")
    for note in stock.notes:
        console.print(f"  {note}")


def _counted(stock: Inventory) -> str:
    """Items per split, and per class where those are few."""
    lines = []
    for split, counts in stock.counts.items():
        total = sum(counts.values())
        if len(counts) > 4:
            least, most = min(counts.values()), max(counts.values())
            each = f"{least}" if least == most else f"{least} to {most}"
            lines.append(f"{split}: {total}, {each} of each of {len(counts)} classes")
        else:
            lines.append(f"{split}: {', '.join(f'{n} × {one}' for one, n in counts.items()) or 'nothing'}")
    return "\n".join(lines) or "–"


def _state(stock: Inventory) -> str:
    if not stock.found:
        return "not found"
    if not stock.problems:
        return stock.remark
    more = f" (and {len(stock.problems) - 1} more)" if len(stock.problems) > 1 else ""
    return f"{stock.remark}; not sound: {stock.problems[0]}{more}"


def _facts(stock: Inventory) -> dict[str, Any]:
    return {
        "name": stock.name,
        "found": stock.found,
        "folder": None if stock.folder is None else str(stock.folder),
        "counts": stock.counts,
        "largest_n0": None if stock.largest_n0 is None else stock.largest_n0[0],
        "remark": stock.remark,
        "problems": stock.problems,
        "notes": stock.notes,
        "obtain": stock.obtain,
    }
