"""The packages that Collegium and its extras need, with the versions they must have."""

import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement

import collegium

EXTRAS = {
    "tables": "Parquet files",
    "torch": "agents that are PyTorch networks",
    "onnx": "agents from ONNX files",
    "lab": "the paper's studies",
    "ray": "studies on a Ray cluster",
    "live": "agents as processes",
    "dashboard": "agents at work in a browser",
}
"""What each is for; dev and docs are for people who work on Collegium itself."""


def requirements() -> dict[str, list[Requirement]]:
    """What is needed, under "", and what each extra adds: from the sources, else from pip's metadata."""
    source = Path(collegium.__file__).parents[2] / "pyproject.toml"
    try:
        project = tomllib.loads(source.read_text(encoding="utf-8"))["project"]
        if project["name"] != "collegium":
            raise KeyError("name")
        groups = {"": project["dependencies"], **project["optional-dependencies"]}
        return {extra: _flat(groups, extra) for extra in ("", *EXTRAS)}
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        pass
    try:
        needs = [Requirement(line) for line in requires("collegium") or ()]
    except PackageNotFoundError:
        return {}
    always = [need for need in needs if need.marker is None]
    added = [need for need in needs if need.marker is not None]  # pip's record has each extra with those it takes in
    return {"": always} | {
        extra: [need for need in added if need.marker is not None and need.marker.evaluate({"extra": extra})]
        for extra in EXTRAS
    }


def _flat(groups: dict[str, list[str]], extra: str) -> list[Requirement]:
    """An extra's packages, those of the extras it takes in among them."""
    found: list[Requirement] = []
    for line in groups[extra]:
        need = Requirement(line)
        if need.name == "collegium":
            found += [one for inner in sorted(need.extras) for one in _flat(groups, inner)]
        else:
            found.append(need)
    return found
