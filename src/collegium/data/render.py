"""Meshes to views: plan the work, feed Blender processes, and go on where an earlier run was interrupted.

SOURCE/CLASS/train/OBJECT.off  →  TO/CLASS/train/OBJECT/00.png … 11.png        view k at azimuth 30·k degrees

A view is written elsewhere and then put into its place, so that whatever is there is whole. A mesh that cannot be read,
or that Blender dies of, is named at the end; the others are rendered all the same.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from collegium.arguments import real_number, whole_number
from collegium.data.environment import environment, locked
from collegium.data.png import read_grey
from collegium.data.workers import Blender, Crew, Task
from collegium.errors import DataError, InputFileError
from collegium.progress import progress

RECORD = "rendering.json"
"""The settings of the views in a folder, so that no other ones are added to them."""
SPLITS = ("train", "test")
_SCRATCH = ".rendering"


@dataclass(frozen=True)
class Settings:
    """How an object is looked at. The defaults are those of the views the benchmarks use.

    Eight samples a pixel leave some noise where the shadow of one lamp falls among the light of others. It is part of
    those views, and the time grows with the samples. Nothing is denoised.
    """

    views: int = 12
    elevation: float = 30.0
    """Of the camera above the horizon, in degrees."""
    size: int = 224
    """Width and height in pixels."""
    samples: int = 8
    """Light paths per pixel."""

    def __post_init__(self) -> None:
        whole_number(self.views, "the number of views", DataError, at_least=1, at_most=100)
        real_number(self.elevation, "the elevation in degrees", DataError, at_least=-90, at_most=90)
        whole_number(self.size, "the size of the views", DataError, at_least=8, at_most=8192)
        whole_number(self.samples, "the number of samples per pixel", DataError, at_least=1, at_most=65536)


@dataclass(frozen=True)
class Outcome:
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
    settings: Settings | None = None,
    *,
    workers: int = 2,
    overwrite: bool = False,
    tell: Callable[[str], None] = lambda sentence: None,
) -> Outcome:
    """Render every `.off` file in the folder `source`, or that file, into the folder `to`; only what is missing there.

    `overwrite` renders all of it again. If Blender is not here it is fetched, after `tell` has been called to say so.
    """
    settings = settings or Settings()
    workers = whole_number(workers, "the number of workers", DataError, at_least=1, at_most=256)
    target = Path(to).expanduser()
    places = plan(Path(source).expanduser(), target)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with locked(target, DataError(f"another process is rendering into {target}: wait for it to end")):
            _keep_record(target, settings)
            scratch = target / _SCRATCH
            shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
            tasks = _tasks(places, settings, overwrite)
            if not tasks:
                return Outcome(len(places), 0, ())
            python = environment(tell)
            scratch.mkdir()
            try:
                crew = _work(tasks, settings, python, scratch, workers)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    except OSError as problem:
        raise InputFileError(f"cannot write into {target}: {problem.strerror or problem}") from problem
    return Outcome(len(places) - len(crew.problems), crew.rendered, tuple(sorted(crew.problems)))


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
    """Every .off file below, through links too, but not what macOS puts beside them into archives."""

    def refuse(problem: OSError) -> None:
        raise InputFileError(f"{problem.filename}: {problem.strerror}") from None

    seen = set()
    for place, inside, files in os.walk(source, onerror=refuse, followlinks=True):
        real = os.path.realpath(place)
        inside[:] = [name for name in inside if name != "__MACOSX" and name[0] != "." and real not in seen]
        if real not in seen:
            yield from (Path(place, name) for name in files if name.lower().endswith(".off") and name[0] != ".")
        seen.add(real)


def _tasks(places: dict[Path, Path], settings: Settings, overwrite: bool) -> list[Task]:
    """What is missing: views that are not there, or are not whole images of the right size."""
    tasks = []
    with progress("looking at what is there", len(places)) as bar:
        for folder, mesh in places.items():
            files = {k: folder / f"{k:02}.png" for k in range(settings.views)}
            if overwrite:
                for path in files.values():
                    path.unlink(missing_ok=True)
            missing = {k: path for k, path in files.items() if not _is_whole(path, settings.size)}
            if missing:
                tasks.append(Task(mesh, missing))
            bar.advance()
    return tasks


def _is_whole(path: Path, size: int) -> bool:
    try:
        read_grey(path, size, background=0)
    except InputFileError:
        return False
    return True


def _keep_record(target: Path, settings: Settings) -> None:
    """Note the settings beside the views, or refuse those that differ from the ones noted."""
    path = target / RECORD
    wanted = asdict(settings)
    try:
        noted = json.loads(path.read_bytes())
        differing = [f"{name} {noted[name]}" for name in wanted if noted[name] != wanted[name]]
    except FileNotFoundError:
        part = target / f"{RECORD}.part"
        part.write_text(json.dumps(wanted) + "\n")
        os.replace(part, path)
        return
    except (ValueError, KeyError, TypeError):
        raise InputFileError(
            f"{path} is damaged: remove it if the views beside it are those you want more of"
        ) from None
    if differing:
        raise DataError(
            f"{target} was rendered with {', '.join(differing)}: choose another folder or the same settings"
        )


def _work(tasks: list[Task], settings: Settings, python: Path, scratch: Path, workers: int) -> Crew:
    workers = min(workers, len(tasks))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    facts = {**asdict(settings), "threads": max(1, cores // workers), "scratch": str(scratch.absolute())}
    things = "one object" if len(tasks) == 1 else f"{len(tasks)} objects"
    with progress(f"rendering {things}", sum(len(task.files) for task in tasks)) as bar:
        crew = Crew(tasks, lambda: Blender(python, facts), bar.advance)
        crew.work(workers)
    return crew
