"""`collegium`: registers the commands and turns users' mistakes into one sentence and an exit code."""

import os
import sys
from enum import IntEnum
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from collegium import __version__
from collegium._util import progress
from collegium.errors import CollegiumError

COMMANDS = {
    "Start here": {
        "demo": "Nine classifiers, a ninth of a digit each, decide together.",
        "doctor": "What is installed and found here, and what to do.",
    },
    "With your own scores": {
        "network": "Build or read a network: size, links, mixing, Perron weights.",
        "simulate": "Run agents over a network: decisions, errors, bits.",
        "compare": "Every way to decide, on the same items, with what it costs.",
        "tune": "Agents learn how much each should count.",
        "plan": "Which network, rounds and bits for an error or a budget.",
        "certify": "What is guaranteed, beside what is measured.",
    },
    "Run it": {
        "live": "Agents as processes of their own, over a real network.",
        "dashboard": "See agents decide in a browser, and try what if.",
        "data": "Data sets: list, check, fetch or render them.",
        "study": "Every figure and table of the paper, from real data.",
    },
}
"""The commands in panels. Each is a module beside this one, with a function of its name or an `app` of several."""
_PANELS = {name: panel for panel, commands in COMMANDS.items() for name in commands}


class Exit(IntEnum):
    """What the process ends with."""

    DONE = 0
    MISTAKE = 2  # the message on standard error names what to change


class _Commands(TyperGroup):
    """Loads only the command that is run, so that --help and the shell's completion need not wait for all."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_PANELS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _PANELS:
            return None
        panel = _PANELS[cmd_name]
        return TyperCommand(cmd_name, help=COMMANDS[panel][cmd_name], rich_help_panel=panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        self.commands = {name: self.get_command(ctx, name) for name in _PANELS}  # whom a slip may have meant
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else _load(name), rest


def _load(name: str) -> Any:
    module = import_module(f"collegium.cli.{name}")
    holder = typer.Typer()
    holder.callback()(lambda: None)  # or a single command would take the place of the group
    if hasattr(module, "app"):
        holder.add_typer(module.app, name=name)
    else:
        holder.command(name)(getattr(module, name))
    return typer.main.get_group(holder).commands[name]


app = typer.Typer(
    name="collegium",
    cls=_Commands,
    help="Independently trained classifiers decide together at test time.",
    epilog="Each command has its own --help. New here? collegium demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    progress.in_log = True
    try:
        app(prog_name="collegium")
    except CollegiumError as mistake:
        typer.echo(f"collegium: {mistake}", err=True)
        sys.exit(Exit.MISTAKE)
    except PermissionError as refusal:  # of a folder on the way, which shows as soon as a file is looked for in it
        if refusal.filename is None:
            raise
        typer.echo(
            f"collegium: {refusal.filename}: {refusal.strerror}; choose one that you may read and write", err=True
        )
        sys.exit(Exit.MISTAKE)
    except MemoryError:
        typer.echo("collegium: this does not fit into memory: take fewer agents, items or rounds", err=True)
        sys.exit(Exit.MISTAKE)
    except BrokenPipeError:  # the reader, such as head, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
