"""An agent's model on its host: a linear one is a few numbers, any other a saved team of one."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputFileError, ModelError
from collegium.live.config import Model

if TYPE_CHECKING:
    from collegium.team import Team

Doubles = NDArray[np.float64]
Scorer = Callable[[NDArray[Any]], Doubles]
_PARTS = ("shift", "scale", "weight", "bias", "unit")


def write(team: Team, k: int, folder: Path, stem: str) -> str:
    """Write the model of agent k beside its file; the name it has there."""
    linear = _linear_parts(team.models_[k])
    if linear is not None:
        buffer = BytesIO()
        np.savez(buffer, **linear)
        (folder / f"{stem}.npz").write_bytes(buffer.getvalue())
        return f"{stem}.npz"
    from collegium.policy import Policy
    from collegium.team import Team

    alone = Team([team.agents[k]], Policy(np.ones((1, 1))), center=team.center, calibrate=team.calibrate)
    alone.set_params(bounded=team.bounded)
    alone.models_, alone.classes_ = [team.models_[k]], team.classes_
    alone.pipeline_, alone.prepared_ = team.pipeline_[k : k + 1], team.prepared_
    alone.save(folder / f"{stem}-model")
    return f"{stem}-model"


def load(settings: Model, folder: Path) -> Scorer | None:
    """From views (n, …) to local statistics (n,); None for an agent without a model."""
    if not settings.path:
        return None
    path = folder / settings.path
    if path.resolve().parent != folder.resolve():
        raise InputFileError(f"the model {settings.path} must stand beside the agent's file")
    if not path.exists():
        raise InputFileError(f"the model {path} is not there: copy it beside the agent's file")
    raw = _linear(path) if path.suffix == ".npz" else _team_of_one(path, settings.trusted)

    pipeline = settings.pipeline()
    return lambda views: pipeline(raw(views))


def _linear(path: Path) -> Scorer:
    try:
        with np.load(path, allow_pickle=False) as file:
            shift, scale, weight, bias, unit = (np.asarray(file[part], np.float64) for part in _PARTS)
    except (OSError, ValueError, KeyError) as problem:
        raise InputFileError(f"{path} does not hold a linear model: {problem}") from None

    def score(views: NDArray[Any]) -> Doubles:
        rows = np.asarray(views, np.float64)
        rows = rows.reshape(len(rows), -1) / (unit if rows.ndim > 2 else 1.0)
        if rows.shape[1] != len(weight):
            raise ModelError(f"a view has {len(weight)} numbers here; got shape {np.shape(views)[1:]}")
        if not np.isfinite(rows).all():
            raise ModelError("a view holds numbers that are not finite")
        # Row by row, so that a view has one score whatever else is in the batch.
        return np.asarray(np.einsum("ij,j->i", (rows - shift) / scale, weight) + float(bias), np.float64)

    return score


def _team_of_one(path: Path, trusted: list[str]) -> Scorer:
    from collegium.team import Team

    team = Team.load(path, trusted=trusted)

    def score(views: NDArray[Any]) -> Doubles:
        return team.scores([views])[:, 0]

    return score


def _linear_parts(model: Any) -> dict[str, Any] | None:
    """What a linear scikit-learn model knows, if that is all there is to it."""
    estimator: Any = getattr(model, "estimator_", getattr(model, "estimator", None))
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    last = steps[-1]
    if not hasattr(last, "decision_function") or np.size(getattr(last, "intercept_", ())) != 1:
        return None
    weight = np.asarray(last.coef_, np.float64).ravel()
    shift, scale = np.zeros(len(weight)), np.ones(len(weight))
    if len(steps) == 2 and type(steps[0]).__name__ == "StandardScaler":
        shift = shift if steps[0].mean_ is None else np.asarray(steps[0].mean_, np.float64)
        scale = scale if steps[0].scale_ is None else np.asarray(steps[0].scale_, np.float64)
    elif len(steps) > 1:
        return None
    bias = float(np.ravel(last.intercept_)[0])
    probe = shift + scale * np.random.default_rng(0).normal(size=(16, len(weight)))
    expected = np.asarray(estimator.decision_function(probe))
    if expected.shape != (16,) or not np.allclose(((probe - shift) / scale) @ weight + bias, expected, 1e-9, 1e-9):
        return None
    unit = getattr(model, "unit_", 1.0)
    return {"shift": shift, "scale": scale, "weight": weight, "bias": bias, "unit": unit}
