"""A scikit-learn estimator as skops keeps it: only types that are known to be harmless, or trusted, come back."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from collegium.agents.sklearn_model import SklearnModel, score_method
from collegium.errors import InputFileError, ModelError, brief


def to_bytes(model: SklearnModel) -> bytes:
    """The estimator as it was given and as it was fitted, read back once to be sure."""
    import skops.io

    parts = {name: getattr(model, name) for name in ("estimator", "estimator_", "unit_") if hasattr(model, name)}
    try:
        data: bytes = skops.io.dumps(parts)
        skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))  # a lambda is noticed only here
    except Exception as problem:  # an estimator may hold anything
        raise ModelError(
            f"{type(model._used).__name__} cannot be written by skops ({brief(problem)}): "
            "export it as an .onnx file with skl2onnx, for OnnxModel"
        ) from None
    return data


def from_bytes(settings: dict[str, Any], path: Path, data: bytes, trusted: Collection[str] | None) -> SklearnModel:
    """The model again, if all its types are trusted; with None they are."""
    import skops.io

    try:
        found = skops.io.get_untrusted_types(data=data)
        trusted = found if trusted is None else trusted
        unknown = sorted(set(found) - set(trusted))
    except Exception as problem:
        raise InputFileError(f"{path} is not a skops file: {brief(problem)}") from None
    if unknown:
        raise InputFileError(
            f"{path} holds types that may do harm in a file of unknown origin: {', '.join(unknown)}. "
            f"If you trust whoever wrote it: Team.load(folder, trusted={sorted({*unknown, *trusted})})"
        )
    try:
        parts = skops.io.loads(data, trusted=list(trusted))
        model = SklearnModel(parts.pop("estimator"), **settings)
        if "estimator_" in parts:
            model.estimator_ = parts["estimator_"]
        if "unit_" in parts:
            model.unit_ = float(parts["unit_"])
        score_method(model._used)
        model._check_classes()
    except Warning:
        raise  # of another version of scikit-learn, where warnings are errors
    except Exception as problem:
        raise InputFileError(f"{path} does not hold a classifier that can be used: {brief(problem)}") from None
    return model
