"""`collegium`: registers the commands and turns users' mistakes into one sentence and an exit code."""

import os
import sys
from enum import IntEnum
from typing import Annotated

import typer

from collegium import __version__
from collegium.cli import certify, compare, dashboard, data, demo, live, network, plan, simulate, study
from collegium.errors import CollegiumError


class Exit(IntEnum):
    """What the process ends with."""

    DONE = 0
    MISTAKE = 2  # the sentence on standard error says what to change


app = typer.Typer(
    name="collegium",
    help="Independently trained classifiers decide together at test time.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(certify.certify)
app.command()(compare.compare)
app.command()(dashboard.dashboard)
app.command()(demo.demo)
app.add_typer(data.app, name="data")
app.add_typer(live.app, name="live")
app.command()(network.network)
app.command()(plan.plan)
app.command()(simulate.simulate)
app.add_typer(study.app, name="study")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"collegium {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Independently trained classifiers decide together at test time."""


def main() -> None:
    """Run the command line."""
    try:
        app()
    except CollegiumError as mistake:
        typer.echo(f"collegium: {mistake}", err=True)
        sys.exit(Exit.MISTAKE)
    except MemoryError:
        typer.echo("collegium: this does not fit into memory: take fewer agents, items or rounds", err=True)
        sys.exit(Exit.MISTAKE)
    except BrokenPipeError:  # the reader, such as head, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
