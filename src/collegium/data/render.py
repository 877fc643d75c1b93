"""Meshes to views: plan the work, feed Blender processes, and go on where an earlier run was interrupted.

SOURCE/CLASS/train/OBJECT.off  →  TO/CLASS/train/OBJECT/00.png … 11.png        view k at azimuth 30·k degrees

A view is written elsewhere and then put into its place, so that whatever is there is whole. A mesh that cannot be read,
or that Blender dies of, is named at the end; the others are rendered all the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from collegium._util.arguments import whole_number
from collegium._util.machine import cores
from collegium._util.progress import progress
from collegium.data import record
from collegium.data._png import OtherSize, read_grey
from collegium.data._workers import Blender, Crew, Task
from collegium.data.environment import environment
from collegium.data.folders import is_clutter, locked
from collegium.data.modelnet import SPLITS
from collegium.data.record import RenderSettings
from collegium.errors import DataError, InputFileError

_SCRATCH = ".rendering"


@dataclass(frozen=True)
class RenderResult:
    """What a call of `render` did."""

    objects: int
    """How many objects have all their views now."""
    rendered: int
    """How many views were rendered; the others had been there."""
    problems: tuple[str, ...]
    """A sentence for each object that could not be rendered."""


def render(
    source: str | os.PathLike[str],
    to: str | os.PathLike[str],
    settings: RenderSettings | None = None,
    *,
    workers: int = 2,
    overwrite: bool = False,
    tell: Callable[[str], None] = lambda sentence: None,
) -> RenderResult:
    """Render every `.off` file in the folder `source`, or that file, into the folder `to`; only what is missing there.

    `overwrite` renders all of it again; views stay until the new ones take their place. Where that concerns everything
    in the folder, other settings may be chosen, and an interrupted run is gone on with. If Blender is not here it is
    fetched, after `tell` has been called to say so.
    """
    settings = settings or RenderSettings()
    workers = whole_number(workers, "the number of workers", DataError, at_least=1, at_most=256)
    target = Path(to).expanduser()
    places = plan(Path(source).expanduser(), target)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with locked(target, DataError(f"another process is rendering into {target}: wait for it to end")):
            noted = record.agree(target, settings, overwrite, set(places))
            since = noted.since if noted else 0
            scratch = target / _SCRATCH
            shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
            tasks = _tasks(places, settings, since, again=overwrite and not since)
            crew = None
            if tasks:
                python = environment(tell)
                scratch.mkdir()
                try:
                    if noted is not None:
                        record.write(target, noted)
                    crew = _work(tasks, settings, python, scratch, workers)
                finally:
                    shutil.rmtree(scratch, ignore_errors=True)
            if crew is None or not crew.problems:
                record.finish(target, noted, set(places))
    except OSError as problem:
        raise InputFileError(f"cannot write into {target}: {problem.strerror or problem}") from problem
    problems = () if crew is None else tuple(sorted(crew.problems))
    return RenderResult(len(places) - len(problems), 0 if crew is None else crew.rendered, problems)


def plan(source: Path, to: Path) -> dict[Path, Path]:
    """Which folder gets the views of which mesh: CLASS/train/OBJECT if they lie so, else as they lie in `source`."""
    if source.is_dir():
        meshes = sorted(_meshes(source))
        if not meshes:
            raise DataError(f"{source} has no .off files in it")
    elif not source.exists():
        raise DataError(f"there is no folder {source}: name the one with the .off files")
    elif source.suffix.lower() != ".off":
        raise DataError(f"{source} is neither a folder nor an .off file")
    else:
        meshes = [source]
    places: dict[Path, Path] = {}
    for mesh in meshes:
        parent = mesh.absolute().parent
        if parent.name in SPLITS:
            folder = to / parent.parent.name / parent.name / mesh.stem
        else:
            folder = to / (mesh.relative_to(source) if source.is_dir() else Path(mesh.name)).with_suffix("")
        if folder in places:
            raise DataError(f"{places[folder]} and {mesh} would both be rendered into {folder}: rename one of them")
        places[folder] = mesh
    return places


def _meshes(source: Path) -> Iterator[Path]:
    """Every .off file below, through links too."""

    def refuse(problem: OSError) -> None:
        raise InputFileError(f"{problem.filename}: {problem.strerror}") from None

    seen = set()
    for place, inside, files in os.walk(source, onerror=refuse, followlinks=True):
        real = os.path.realpath(place)
        inside[:] = [name for name in inside if not is_clutter(name) and real not in seen]
        if real not in seen:
            yield from (Path(place, name) for name in files if name.lower().endswith(".off") and not is_clutter(name))
        seen.add(real)


def _tasks(places: dict[Path, Path], settings: RenderSettings, since: int, again: bool) -> list[Task]:
    """What is missing: views that are not there, are not whole or are older than they should be; or all of them."""
    tasks = []
    with progress("looking at what is there", len(places)) as bar:
        for folder, mesh in places.items():
            files = {k: folder / f"{k:02}.png" for k in range(settings.views)}
            missing = {k: path for k, path in files.items() if again or not _is_there(path, settings.size, since)}
            if missing:
                tasks.append(Task(mesh, missing))
            bar.advance()
    return tasks


def _is_there(path: Path, size: int, since: int) -> bool:
    try:
        if path.stat().st_mtime_ns < since:
            return False
        read_grey(path, size, background=0)
    except OtherSize as problem:
        raise InputFileError(f"{problem}: it was not rendered here; move it away or choose another folder") from None
    except (FileNotFoundError, InputFileError):
        return False
    return True


def _work(tasks: list[Task], settings: RenderSettings, python: Path, scratch: Path, workers: int) -> Crew:
    workers = min(workers, len(tasks))
    facts = {**asdict(settings), "threads": max(1, cores() // workers), "scratch": str(scratch.absolute())}
    things = "one object" if len(tasks) == 1 else f"{len(tasks)} objects"
    with progress(f"rendering {things}", sum(len(task.files) for task in tasks)) as bar:
        crew = Crew(tasks, lambda: Blender(python, facts), bar.advance)
        crew.work(workers)
    return crew
