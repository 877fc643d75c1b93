"""`collegium data render`: views of meshes, by Blender."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from collegium.data.record import RenderSettings
from collegium.errors import InputFileError

_DEFAULT = RenderSettings()


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
    from collegium.data.render import render as render_all

    settings = RenderSettings(views, elevation, size, samples)
    try:
        outcome = render_all(source, to, settings, workers=workers, overwrite=overwrite, tell=_tell)
    except KeyboardInterrupt:
        how = ": views stay until the new ones take their place" if overwrite else " to go on from here"
        typer.echo(f"stopped; run the same command again{how}", err=True)
        raise
    console = Console(highlight=False, markup=False, soft_wrap=True)
    there = "one object has" if outcome.objects == 1 else f"{outcome.objects} objects have"
    new = "one view is new" if outcome.rendered == 1 else f"{outcome.rendered} views are new"
    console.print(f"{to}: {there} all {views} views; {new}")
    for problem in outcome.problems:
        _tell(problem)
    if outcome.problems:
        count = len(outcome.problems)
        raise InputFileError(f"{'one mesh was' if count == 1 else f'{count} meshes were'} not rendered: see above")


def _tell(sentence: str) -> None:
    typer.echo(sentence, err=True)
