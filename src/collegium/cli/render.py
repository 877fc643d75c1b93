"""`collegium data render`: views of meshes, by Blender."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from collegium.data.render import Settings
from collegium.data.render import render as render_all
from collegium.errors import InputFileError

_SHOWN = 5
_DEFAULT = Settings()


def render(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A folder of .off meshes, CLASS/{train,test}/*.off.")
    ],
    to: Annotated[Path, typer.Option(metavar="DIR", help="Where the views go: DIR/CLASS/{train,test}/OBJECT/*.png.")],
    views: Annotated[int, typer.Option(help="Views per object, at equal azimuths.")] = _DEFAULT.views,
    elevation: Annotated[float, typer.Option(help="Degrees above the horizon.")] = _DEFAULT.elevation,
    size: Annotated[int, typer.Option(help="Width and height in pixels.")] = _DEFAULT.size,
    samples: Annotated[int, typer.Option(help="Light paths per pixel: more are smoother.")] = _DEFAULT.samples,
    workers: Annotated[int, typer.Option(help="Blender processes side by side.")] = 2,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Render again what is there already.")] = False,
) -> None:
    """Render meshes with Blender. Run it again to go on with what was interrupted: only what is missing is rendered."""
    settings = Settings(views, elevation, size, samples)
    try:
        outcome = render_all(source, to, settings, workers=workers, overwrite=overwrite, tell=_tell)
    except KeyboardInterrupt:
        typer.echo("stopped; run the same command again to go on from here", err=True)
        raise
    console = Console(highlight=False, markup=False, soft_wrap=True)
    there = "one object has" if outcome.objects == 1 else f"{outcome.objects} objects have"
    console.print(f"{to}: {there} all {views} views, {outcome.rendered} of them new")
    if outcome.problems:
        more = len(outcome.problems) - _SHOWN
        raise InputFileError("; ".join(outcome.problems[:_SHOWN]) + (f"; and {more} more" if more > 0 else ""))


def _tell(sentence: str) -> None:
    typer.echo(sentence, err=True)
