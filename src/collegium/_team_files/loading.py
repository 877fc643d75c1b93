"""Reading a team: nothing in the folder is believed before it is checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from collegium._team_files import models, own, policy_file, sets_file
from collegium._team_files.folder import HELD_OUT, LEARNED, MANIFEST, SEEN, manifest_text, read_file, read_manifest
from collegium._team_files.values import Malformed, decode_part
from collegium.agents.pipeline import ScorePipeline
from collegium.agents.preparation import Preparation
from collegium.errors import CollegiumError, InputFileError, ModelError, ScoreError
from collegium.protocol import Rule

if TYPE_CHECKING:
    from collegium.team import Team

_TYPES: dict[str, tuple[type, ...]] = {
    "rounds": (Integral, type(None)),
    "rule": (Rule, type(None)),
    "center": (bool, np.bool_, str),
    "calibrate": (bool, np.bool_, str),
    "bounded": (bool, np.bool_),
    "columns": (list, tuple, np.ndarray, type(None)),
    "validation": (Real,),
    "workers": (Integral, type(None)),
    "random_state": (Integral, type(None)),
}


def load(folder: Path, modules: Mapping[str, Any] | None = None, trusted: Collection[str | type] = ()) -> Team:
    """Read a team back, or say which file is not what was written.

    `modules` gives the PyTorch module (or a function that makes it, or an unfitted TorchModel with its transform) of
    every agent whose module is the user's own; `trusted` names types that skops does not know to be harmless, which
    is not needed for what this user saved on this machine.
    """
    names: list[str] | None = _type_names(trusted)
    content = read_manifest(folder)
    if own.is_own(folder, manifest_text(content)):
        names = None
    try:
        return _team(folder, content, {} if modules is None else modules, names)
    except (Malformed, RecursionError) as problem:
        raise InputFileError(f"{folder / MANIFEST} is not a manifest that Team.save writes: {problem}") from None


def _team(folder: Path, content: dict[str, Any], modules: Mapping[str, Any], trusted: list[str] | None) -> Team:
    from collegium.team import Team

    entries = _entries(content)
    settings = _settings(content, len(entries), Team._get_param_names())
    learned = _learned(content, len(entries))
    _check_modules(entries, modules)
    policy = policy_file.from_bytes(*read_file(folder, policy_file.NAME, content))
    if policy.size != len(entries):
        raise Malformed(f"there are {len(entries)} agents, but the network has {policy.size}")
    agents, loaded = [], []
    for entry in entries:
        name = entry["name"]
        path, data = read_file(folder, entry.get("file"), content)
        try:
            model = models.read(entry, path, data, modules.get(name), trusted)
        except CollegiumError as mistake:
            raise type(mistake)(f"agent {name!r}: {mistake}") from None
        agents.append((name, models.bare(model) if entry.get("bare") is True else model))
        loaded.append(model)
    team = Team(agents, policy, **settings)
    team.models_ = loaded
    team.pipeline_ = _pipeline(learned, team.bounded)
    team.prepared_ = team.center, team.calibrate, team.bounded
    for name in ("classes_", *HELD_OUT, *SEEN):
        if name in learned:
            setattr(team, name, learned[name])
    team.held_out_ = None  # its errors are not saved
    team.conformal_ = {}
    if isinstance(content.get("files"), dict) and sets_file.NAME in content["files"]:
        path, data = read_file(folder, sets_file.NAME, content)
        team.conformal_ = sets_file.from_bytes(path, data, team._names(), len(team.classes_))
        team.conformal_of_ = team._conversation()
    return team


def _entries(content: dict[str, Any]) -> list[dict[str, Any]]:
    entries = content.get("agents")
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries
    ):
        raise Malformed("it has no agents with names")
    if len({entry["name"] for entry in entries}) < len(entries):
        raise Malformed("two agents have one name")
    return entries


def _settings(content: dict[str, Any], K: int, known: list[str]) -> dict[str, Any]:
    settings = decode_part(content, "settings")
    for name, value in settings.items():
        if name not in known or name in ("agents", "policy"):
            raise Malformed(f"a team has no setting {name[:60]!r}")
        if not isinstance(value, _TYPES.get(name, object)):
            raise Malformed(f"{name} cannot be {str(value)[:60]!r}")
    try:
        Preparation.of(*(settings.get(name, False) for name in Preparation._fields))
    except ModelError as mistake:
        raise Malformed(str(mistake)) from None
    columns = settings.get("columns")
    if columns is not None and len(columns) != K:
        raise Malformed(f"there are {K} agents, but columns of {len(columns)}")
    return settings


def _learned(content: dict[str, Any], K: int) -> dict[str, Any]:
    learned = decode_part(content, "learned")
    learned.setdefault("gains_", np.ones(K))  # a team that was saved before there were gains
    if not set(LEARNED) <= set(learned) <= {*LEARNED, *HELD_OUT, *SEEN}:
        raise Malformed(f"a fitted team has learned {', '.join(LEARNED)}")
    classes, temperature, center, gains = (learned[name] for name in LEARNED)
    C = len(classes) if np.ndim(classes) == 1 else 0
    each = (K,) if C == 2 else (K, C)
    if (
        C < 2
        or np.shape(temperature) not in ((K,), each)
        or np.shape(center) != each
        or np.shape(gains) not in ((K,), each)
    ):
        raise Malformed(f"it should have learned classes, and of {K} agents temperatures, centers and gains for them")
    if not all(getattr(array, "dtype", None) == np.float64 for array in (temperature, center, gains)):
        raise Malformed("temperatures, centers and gains should be in double precision")
    prior, pool = learned.get("prior_"), learned.get("pool_temperature_", 1.0)
    fits = prior is None or (isinstance(prior, float) if C == 2 else np.shape(prior) == (C,))
    if not isinstance(pool, float) or not pool > 0 or not fits:
        raise Malformed("the prior should be one number per class, and the temperature of the pool a positive one")
    largest = learned.get("largest_scores_", np.ones(K))
    if getattr(largest, "dtype", None) != np.float64 or largest.shape != (K,) or not (largest >= 0).all():
        raise Malformed("the largest scores should be one number per agent, none negative")
    width, names = (learned.get(name) for name in SEEN)
    if not isinstance(width, (int, type(None))) or (names is not None and np.shape(names) != (width,)):
        raise Malformed("the columns of the table have not as many names")
    return learned


def _pipeline(learned: dict[str, Any], bounded: bool) -> ScorePipeline:
    numbers = {"temperature": learned["temperature_"], "center": learned["center_"], "gain": learned["gains_"]}
    try:
        return ScorePipeline.from_dict({**numbers, "bounded": bounded, "classes": len(learned["classes_"])})
    except ScoreError as problem:
        raise Malformed(str(problem)) from None


def _type_names(trusted: Any) -> list[str]:
    refusal = ModelError(f"trusted must be a list of types or of their names; got {trusted!r}")
    if isinstance(trusted, str) or not isinstance(trusted, Collection):
        raise refusal
    names = [f"{one.__module__}.{one.__qualname__}" if isinstance(one, type) else one for one in trusted]
    if not all(isinstance(name, str) for name in names):
        raise refusal
    return names


def _check_modules(entries: list[dict[str, Any]], modules: Any) -> None:
    if not isinstance(modules, Mapping):
        raise ModelError(f"modules must be a dictionary from agents' names to modules; got {type(modules).__name__}")
    needed = [entry["name"] for entry in entries if models.needs_module(entry)]
    for name in modules:
        if name not in needed:
            raise ModelError(f"modules names {name!r}, but those who need one are {', '.join(needed) or 'none'}")
    missing = [name for name in needed if modules.get(name) is None]
    if missing:
        raise ModelError(
            f"the modules of {', '.join(map(repr, missing))} are your own, and a saved team has no code in it: "
            f"Team.load(folder, modules={{{', '.join(f'{name!r}: module' for name in missing)}}})"
        )
