"""`as_model`: what people have at hand becomes a model."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from collegium.agents.base import Model
from collegium.agents.callable_model import CallableModel
from collegium.agents.onnx_model import OnnxModel
from collegium.agents.sklearn_model import SklearnModel, score_method
from collegium.errors import CollegiumError, ModelError, PolicyError

ACCEPTED = (
    "a Model, a scikit-learn classifier or pipeline, a torch.nn.Module, the name of an .onnx file, "
    "a function from a view to scores, or an object with fit(view, y) and scores(view)"
)


def as_model(thing: Any) -> Model:
    """Anything that can speak for an agent, as a `Model`.

    A `Model`, or an object with `fit` and `scores` of its own, is returned as it is. A scikit-learn classifier or
    pipeline, or what is like one, becomes a `SklearnModel`, a `torch.nn.Module` a `TorchModel`, the name of an
    .onnx file an `OnnxModel`, any other function a `CallableModel`; so does the `scores` of an object without `fit`.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> as_model(DecisionTreeClassifier())
    SklearnModel(estimator=DecisionTreeClassifier())
    """
    if isinstance(thing, type):
        raise ModelError(f"a model is an object, got the class {thing.__name__}: write {thing.__name__}(…)")
    if isinstance(thing, Model):
        return thing
    if isinstance(thing, (str, Path)):
        if Path(thing).suffix.lower() != ".onnx":
            raise ModelError(f"{str(thing)!r} does not end in .onnx, and no other file is read as a model")
        return OnnxModel(thing)
    if callable(getattr(thing, "scores", None)):
        own: Model = thing
        return own if callable(getattr(thing, "fit", None)) else CallableModel(thing.scores)
    if _is_torch_module(thing):
        from collegium.agents.torch_model import TorchModel

        return TorchModel(thing)
    if any(hasattr(thing, method) for method in ("decision_function", "predict_proba", "predict")):
        score_method(thing)
        return SklearnModel(thing)
    if callable(thing):
        return CallableModel(thing)
    lacks = f"{type(thing).__name__} has fit but no scores(view)" if hasattr(thing, "fit") else f"got {thing!r:.200}"
    raise ModelError(f"a model must be {ACCEPTED}; {lacks}")


def named_models(agents: Any, size: int, taken: Collection[str] = ()) -> list[Model]:
    """The models of a list of (name, model), one per agent of a network of this size.

    taken: names that no agent may have, since they are settings of the team.
    """
    try:
        names = [name for name, _ in agents]
    except (TypeError, ValueError):
        raise ModelError("agents must be a list of (name, model) pairs") from None
    if len(names) != size:
        raise PolicyError(f"there are {len(names)} agents, but the network has {size}")
    if any(not isinstance(name, str) or "__" in name for name in names) or len(set(names)) < len(names):
        raise ModelError(f"agents need different names without '__'; got {names}")
    for name in sorted(set(names) & set(taken)):
        raise ModelError(f"{name!r} is a setting of Team: call this agent otherwise")
    models = []
    for name, thing in agents:
        try:
            models.append(as_model(thing))
        except CollegiumError as mistake:
            raise type(mistake)(f"agent {name!r}: {mistake}") from None
    return models


def _is_torch_module(thing: Any) -> bool:
    torch = sys.modules.get("torch")  # whoever has a module has imported torch
    return torch is not None and isinstance(thing, torch.nn.Module)
