"""`as_model`: what people have at hand becomes a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from collegium.agents.base import Model
from collegium.agents.callable_model import CallableModel
from collegium.agents.onnx_model import OnnxModel
from collegium.agents.sklearn_model import SklearnModel, score_method
from collegium.errors import ModelError

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


def _is_torch_module(thing: Any) -> bool:
    torch = sys.modules.get("torch")  # whoever has a module has imported torch
    return torch is not None and isinstance(thing, torch.nn.Module)
