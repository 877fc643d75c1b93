"""What is in a folder of views, and the settings they were rendered with, noted beside them so that none are mixed."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from collegium._util.arguments import real_number, whole_number
from collegium._util.files import atomic_write
from collegium.data._png import claimed_width
from collegium.errors import DataError, InputFileError

NAME = "rendering.json"


@dataclass(frozen=True)
class RenderSettings:
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
class Record:
    """What is known of the views in a folder."""

    settings: RenderSettings
    since: int = 0
    """Views older than this, in nanoseconds, are still to be rendered again: overwriting them was interrupted."""


def read(target: Path) -> Record | None:
    """What is noted there, or None."""
    path = target / NAME
    try:
        noted = json.loads(path.read_bytes())
        since = int(noted.pop("since", 0))
        return Record(RenderSettings(**noted), since)
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError, TypeError):
        raise InputFileError(
            f"{path} is damaged: remove it if the views beside it are those you want more of"
        ) from None


def write(target: Path, record: Record) -> None:
    """Note it, all at once."""
    since = {"since": record.since} if record.since else {}
    with atomic_write(target / NAME) as file:
        file.write((json.dumps(asdict(record.settings) | since) + "\n").encode())


def agree(target: Path, settings: RenderSettings, overwrite: bool, planned: set[Path]) -> Record | None:
    """What can be noted once views of these settings are added; None where nobody knows how those there were made.

    Views of other settings are only accepted if all of them are to be overwritten; then all of them are too old.
    """
    there = views_in(target)
    if not there:
        return Record(settings)
    noted = read(target)
    others = there.keys() - planned
    known = _seen(there) if noted is None else asdict(noted.settings)
    differing = [f"{name} {value}" for name, value in known.items() if getattr(settings, name) != value]
    if overwrite and not others:
        newest = max((place / name).stat().st_mtime_ns for place, names in there.items() for name in names)
        return noted if noted and noted.since and not differing else Record(settings, since=newest + 1)
    if differing:
        way = "--overwrite" if not overwrite else f"remove {min(others)}, which is not among these meshes"
        raise DataError(
            f"{target} was rendered with {', '.join(differing)}: choose another folder, the same settings, or {way}"
        )
    return noted


def finish(target: Path, record: Record | None, planned: set[Path]) -> None:
    """Note that nothing is left of what was to be overwritten."""
    if record is not None and record.since and views_in(target).keys() <= planned:
        write(target, replace(record, since=0))


def views_in(target: Path) -> dict[Path, list[str]]:
    """The folders that hold views, and the names of these."""
    found = {}
    for place, _, files in os.walk(target):
        views = sorted(name for name in files if name.endswith(".png") and name[:-4].isdecimal())
        if views:
            found[Path(place)] = views
    return found


def _seen(there: dict[Path, list[str]]) -> dict[str, int]:
    """What the views themselves tell of their settings."""
    views = 1 + max(int(Path(name).stem) for names in there.values() for name in names)
    widths = [claimed_width(place / names[0]) for place, names in sorted(there.items())]
    sizes = [width for width in widths if width is not None]
    return {"views": views} | ({"size": sizes[0]} if sizes else {})
