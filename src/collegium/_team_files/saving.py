"""Writing a team: everything that cannot be saved is noticed before the first file is made."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from collegium._team_files import models, own, policy_file, sets_file
from collegium._team_files.folder import (
    FORMAT,
    HELD_OUT,
    LEARNED,
    MANIFEST,
    SEEN,
    manifest_text,
    new_folder,
    write_file,
)
from collegium._team_files.values import encode
from collegium.agents.base import Model
from collegium.agents.torch_model import TorchModel
from collegium.errors import CollegiumError, ModelError

if TYPE_CHECKING:
    from collegium.team import Team

_LIBRARIES = {".skops": ("scikit-learn", "skops"), ".safetensors": ("torch", "safetensors"), ".onnx": ("onnxruntime",)}


def save(team: Team, folder: Path, onnx: bool = False) -> None:
    """Write the fitted team to a folder that is new or empty; with `onnx`, torch modules of the user's own as ONNX."""
    with TemporaryDirectory() as made:
        _save(team, folder, _exported(team, Path(made)) if onnx else team.models_)


def _exported(team: Team, folder: Path) -> list[Any]:
    found = []
    for k, (name, model) in enumerate(zip(team._names(), team.models_, strict=True)):
        if type(model) is not TorchModel:
            found.append(model)
            continue
        from collegium._team_files.exported import export

        try:
            found.append(export(model, folder / f"{k}.onnx"))
        except CollegiumError as mistake:
            raise type(mistake)(f"agent {name!r}: {mistake}") from None
    return found


def _save(team: Team, folder: Path, fitted: list[Any]) -> None:
    agents = _described(team, fitted)
    settings = {name: value for name, value in team.get_params(deep=False).items() if name not in ("agents", "policy")}
    content: dict[str, Any] = {
        "format": FORMAT,
        "agents": agents,
        "settings": {name: encode(value, name) for name, value in settings.items()},
        "learned": {
            name: encode(getattr(team, name), name) for name in (*LEARNED, *HELD_OUT, *SEEN) if hasattr(team, name)
        },
    }
    with new_folder(folder) as new:
        files = {policy_file.NAME: write_file(new / policy_file.NAME, policy_file.to_bytes(team.policy))}
        for k, (agent, model) in enumerate(zip(agents, fitted, strict=True)):
            stem = f"{k:02d}-{re.sub('[^A-Za-z0-9_-]+', '-', agent['name'])[:60]}"
            try:
                agent["file"], checksum = models.write(model, new, stem)
            except CollegiumError as mistake:
                raise type(mistake)(f"agent {agent['name']!r}: {mistake}") from None
            files[agent["file"]] = checksum
        if known := getattr(team, "conformal_", {}):
            files[sets_file.NAME] = write_file(new / sets_file.NAME, sets_file.to_bytes(known))
        content |= {"files": files, "versions": _versions(files)}
        text = manifest_text(content)
        write_file(new / MANIFEST, text)
        own.sign(new, text)


def _described(team: Team, fitted: list[Any]) -> list[dict[str, Any]]:
    K = len(team._models())  # names and policy are checked here
    if len(team.models_) != K:
        raise ModelError(f"this team was fitted with {len(team.models_)} agents and has {K} now: fit it again")
    team._unchanged()
    agents = []
    for (name, given), model in zip(team.agents, fitted, strict=True):
        try:
            recipe = models.recipe(model)
        except CollegiumError as mistake:
            raise type(mistake)(f"agent {name!r}: {mistake}") from None
        agents.append({"name": str(name), "bare": not isinstance(given, Model), **recipe})
    return agents


def _versions(files: Iterable[str]) -> dict[str, str]:
    """What the team was written with: for people, and for whoever has to find out why a file no longer loads."""
    used = {library for name in files for library in _LIBRARIES.get(Path(name).suffix, ())}
    found = {"python": platform.python_version()}
    for library in ("collegium", "numpy", *sorted(used)):
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "unknown"
    return found
