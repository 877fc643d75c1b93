"""An agent's model on its host: a linear one is a few numbers, any other a saved team of one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import CollegiumError, InputFileError, ModelError
from collegium.live.config import Model

if TYPE_CHECKING:
    from collegium.team import Team

Doubles = NDArray[np.float64]
Scorer = Callable[[NDArray[Any]], Doubles]
_PARTS = ("shift", "scale", "weight", "bias", "unit")
_NAMES = "names"
"""Also there if the model was fitted on named columns."""
_OF_CLASSES = ("places", "floor")
"""Also there if the team has more than two classes: which of them the rows of `weight` are of, and the least
log-probability; -inf for a model whose decision values are used as they are."""


def write(team: Team, k: int, folder: Path, stem: str) -> str:
    """Write the model of agent k beside its file; the name it has there."""
    linear = _linear_parts(team.models_[k], team.classes_)
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
    alone.save(folder / f"{stem}-model", onnx=True)
    return f"{stem}-model"


def load(settings: Model, folder: Path) -> Scorer | None:
    """From views (n, …) to local statistics (n,), or (n, C) of C > 2 classes; None for an agent without a model."""
    if not settings.path:
        return None
    path = folder / settings.path
    if path.resolve().parent != folder.resolve():
        raise InputFileError(f"the model {settings.path} must stand beside the agent's file")
    if not path.exists():
        raise InputFileError(f"the model {path} is not there: copy it beside the agent's file")
    C = len(settings.classes)
    raw = _linear(path, C) if path.suffix == ".npz" else _team_of_one(path, settings.trusted, C)

    pipeline = settings.pipeline()
    return lambda views: pipeline(raw(views))


def _linear(path: Path, C: int) -> Scorer:
    try:
        with np.load(path, allow_pickle=False) as file:
            parts = {part: np.asarray(file[part], np.float64) for part in (*_PARTS, *(_OF_CLASSES if C > 2 else ()))}
            names = file[_NAMES].tolist() if _NAMES in file else []
        _check(parts, C)
    except (OSError, ValueError, KeyError) as problem:
        raise InputFileError(f"{path} does not hold a linear model of {C} classes: {problem}") from None
    score = _linear_scorer(parts, C)
    return lambda views: score(_rows(views, names))


def _rows(views: NDArray[Any], names: list[str]) -> NDArray[Any]:
    """Records of named numbers as rows, in the order of the columns; anything else as it is."""
    if not names or views.dtype != object or not isinstance(views[0], dict):
        return views
    for view in views:
        if set(view) != set(names):
            odd = sorted(set(view) ^ set(names))[0]
            raise ModelError(f"a view has a value for each of {', '.join(names)}; {odd!r} is missing or too many")
    try:
        return np.array([[float(view[name]) for name in names] for view in views])
    except (TypeError, ValueError):
        raise ModelError(f"a view has a number for each of {', '.join(names)}") from None


def _check(parts: dict[str, Doubles], C: int) -> None:
    weight, places = parts["weight"], parts.get("places", np.arange(0.0))
    if weight.ndim != (1 if C == 2 else 2) or parts["bias"].size != weight.size // max(weight.shape[-1], 1):
        raise ValueError(f"its weights have shape {weight.shape}, its biases {parts['bias'].shape}")
    if len(set(places.tolist())) < len(places) or not np.isin(places, np.arange(C)).all():
        raise ValueError(f"its places are {places.tolist()}")
    if C > 2 and places.shape != weight.shape[:1]:
        raise ValueError(f"it has {len(weight)} rows of weights for {places.size} classes")


def _linear_scorer(parts: dict[str, Doubles], C: int) -> Scorer:
    shift, scale, unit = (parts[part] for part in ("shift", "scale", "unit"))
    weight, bias = np.atleast_2d(parts["weight"]), np.ravel(parts["bias"])

    def score(views: NDArray[Any]) -> Doubles:
        if np.asarray(views).dtype.kind not in "fiub":
            raise ModelError(f"a view is a list of {weight.shape[1]} numbers here, in the order of the columns")
        rows = np.asarray(views, np.float64)
        rows = rows.reshape(len(rows), -1) / (unit if rows.ndim > 2 else 1.0)
        if rows.shape[1] != weight.shape[1]:
            raise ModelError(f"a view has {weight.shape[1]} numbers here; got shape {np.shape(views)[1:]}")
        if not np.isfinite(rows).all():
            raise ModelError("a view holds numbers that are not finite")
        rows = (rows - shift) / scale
        # Row by row, so that a view has one score whatever else is in the batch.
        values = np.stack([np.einsum("ij,j->i", rows, one) for one in weight], axis=1) + bias
        return (
            values[:, 0] if C == 2 else _of_classes(values, parts["places"].astype(np.intp), float(parts["floor"]), C)
        )

    return score


def _of_classes(logits: Doubles, places: NDArray[np.intp], floor: float, C: int) -> Doubles:
    """Logits (n, c) of some classes as scores (n, C) of all: less their mean, and 0 for the classes it does not know.

    As `SklearnModel` and `agents.classes.spread` do, which import scikit-learn: this is for hosts without it.
    """
    if floor > -np.inf:
        logits = logits - logits.max(axis=1, keepdims=True)
        logits = np.maximum(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)), floor)
    scores = np.zeros((len(logits), C))
    scores[:, places] = logits - logits.mean(axis=1, keepdims=True)
    return scores


def _team_of_one(path: Path, trusted: list[str], C: int) -> Scorer:
    from collegium.team import Team

    team = Team.load(path, trusted=trusted)
    if len(team.classes_) != C:
        raise InputFileError(f"the model {path} is of {len(team.classes_)} classes, the agent's file names {C}")
    model: Any = team.models_[0]
    columns = getattr(getattr(model, "estimator_", getattr(model, "estimator", None)), "feature_names_in_", ())

    def score(views: NDArray[Any]) -> Doubles:
        table = _table(views)
        if set(getattr(table, "columns", ())) == set(columns) and len(columns):
            table = table[list(columns)]  # the values of a record have no order
        return np.asarray(team.scores([table])[:, 0])

    return score


def _table(views: NDArray[Any]) -> Any:
    """Records as a table with named columns, or, of lists, as a view of named parts; anything else as it is."""
    if views.dtype != object or not isinstance(views[0], dict):
        return views
    if all(isinstance(part, list) for view in views for part in view.values()):
        return {name: [view[name] for view in views] for name in views[0]}
    try:
        import pandas
    except ImportError:
        raise ModelError("views with names need pandas on the agent's host: pip install 'collegium[tables]'") from None
    return pandas.DataFrame(views.tolist())


def _linear_parts(model: Any, classes: NDArray[Any]) -> dict[str, Any] | None:
    """What a linear scikit-learn model knows, if that is all there is to it; None for any other model."""
    from collegium.agents.classes import known_classes, places_of
    from collegium.agents.independent import checked_scores

    estimator: Any = getattr(model, "estimator_", getattr(model, "estimator", None))
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    last = steps[-1]
    # A kernel other than the linear one has an intercept, and no coefficients.
    weight, bias = getattr(last, "coef_", None), getattr(last, "intercept_", None)
    if not isinstance(weight, np.ndarray) or bias is None or not hasattr(last, "decision_function"):
        return None
    weight, bias, C = np.atleast_2d(np.asarray(weight, np.float64)), np.ravel(bias).astype(np.float64), len(classes)
    shift, scale = np.zeros(weight.shape[1]), np.ones(weight.shape[1])
    if len(steps) == 2 and type(steps[0]).__name__ == "StandardScaler":
        shift = shift if steps[0].mean_ is None else np.asarray(steps[0].mean_, np.float64)
        scale = scale if steps[0].scale_ is None else np.asarray(steps[0].scale_, np.float64)
    elif len(steps) > 1:
        return None
    parts: dict[str, Any] = {
        "shift": shift,
        "scale": scale,
        "weight": weight,
        "bias": bias,
        "unit": np.float64(getattr(model, "unit_", 1)),
    }
    places = None if C == 2 else places_of(known_classes(model), classes)
    if places is None:
        parts |= {"weight": weight[0], "bias": bias[0]}
    elif len(places) == 2:  # one number, for the second of its classes
        parts |= {"weight": np.vstack([-weight, weight]) / 2, "bias": np.append(-bias, bias) / 2}
    if places is not None:
        is_decision = len(places) == 2 or not hasattr(estimator, "predict_log_proba")
        parts |= {"places": places, "floor": np.float64(-np.inf if is_decision else np.log(model.clip))}
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        parts[_NAMES] = names.astype(str)
    probe = np.random.default_rng(0).normal(size=(32, weight.shape[1])) * np.geomspace(1, 100, 32)[:, None]
    probe = shift + scale * probe
    try:
        _check(parts, C)
        with warnings.catch_warnings(action="ignore"):  # of an estimator that was fitted on a table with names
            expected = checked_scores(model, probe, places, C)
    except (CollegiumError, ValueError):
        return None
    return parts if np.allclose(_linear_scorer(parts, C)(probe), expected, 1e-9, 1e-9) else None
