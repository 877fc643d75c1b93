"""One agent's model as a recipe, which goes into the manifest, and a file."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from collegium._team_files import safetensors_file, skops_file
from collegium._team_files.folder import write_file
from collegium._team_files.values import Malformed, decode_part, encode
from collegium.agents.base import Model
from collegium.agents.callable_model import CallableModel
from collegium.agents.onnx_model import OnnxModel
from collegium.agents.optimisation import Training
from collegium.agents.sklearn_model import SklearnModel
from collegium.agents.torch_model import MicroCNN, PatchCNN, PixelLogistic, SmallResNet, TorchModel
from collegium.errors import InputFileError, ModelError

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (SklearnModel, OnnxModel, TorchModel, PatchCNN, PixelLogistic, SmallResNet, MicroCNN)
}
# Settings that the recipe leaves out: the file holds them, or the user brings them.
_ELSEWHERE = {SklearnModel: {"estimator"}, OnnxModel: {"path"}, TorchModel: {"module", "transform"}}
_TYPES: dict[str, Any] = {"clip": Real, "training": Training, "providers": (list, tuple), "threads": Integral}


def recipe(model: Any) -> dict[str, Any]:
    """Everything about a model that is not in its file; refused if it has no file."""
    kind = type(model)
    if kind not in _KINDS.values():
        what = "a function" if kind is CallableModel else f"a model of your own ({kind.__name__})"
        raise ModelError(
            f"{what} cannot be saved, since that would be saving code. Export it as an .onnx file for OnnxModel, "
            "or put what it holds into SklearnModel or TorchModel"
        )
    made: dict[str, Any] = {
        "kind": kind.__name__,
        "settings": {
            name: encode(value, name)
            for name, value in model.get_params(deep=False).items()
            if name not in _ELSEWHERE.get(kind, ())
        },
    }
    if kind is SklearnModel:
        model._check_classes()
    elif isinstance(model, TorchModel):
        made |= safetensors_file.recipe(model)
    return made


def write(model: Any, folder: Path, stem: str) -> tuple[str, str]:
    """Write the model's file; its name and SHA-256."""
    if isinstance(model, SklearnModel):
        name, data = f"{stem}.skops", skops_file.to_bytes(model)
    elif isinstance(model, TorchModel):
        name, data = f"{stem}.safetensors", safetensors_file.to_bytes(model)
    else:
        name, data = f"{stem}.onnx", _onnx_bytes(model)
    checksum = write_file(folder / name, data)
    if isinstance(model, OnnxModel):
        _check_alone(model, folder / name)
    return name, checksum


def read(entry: dict[str, Any], path: Path, data: bytes, given: Any, trusted: Collection[str] | None) -> Model:
    """The model of a recipe and a file; `given` is the module where the user has to bring it, None trusts all types."""
    kind, settings = _KINDS.get(str(entry.get("kind"))), decode_part(entry, "settings")
    if kind is None:
        raise Malformed(f"{str(entry.get('kind'))[:60]!r} is no kind of model")
    for name, value in settings.items():
        if name not in kind._get_param_names() or name in _ELSEWHERE.get(kind, ()):
            raise Malformed(f"{kind.__name__} has no setting {name[:60]!r}")
        if not isinstance(value, _TYPES.get(name, object)):
            raise Malformed(f"{name} cannot be {str(value)[:60]!r}")
    if kind is SklearnModel:
        return skops_file.from_bytes(settings, path, data, trusted)
    if kind is OnnxModel:
        model = OnnxModel(path.resolve(), **settings)
        model._open()
        return model
    if kind is TorchModel:
        return safetensors_file.own_from_bytes(entry, settings, path, data, given)
    return safetensors_file.family_from_bytes(kind, entry, settings, path, data)


def needs_module(entry: dict[str, Any]) -> bool:
    """Whether the user has to bring the module."""
    return _KINDS.get(str(entry.get("kind"))) is TorchModel


def bare(model: Any) -> Any:
    """What `as_model` would make this model of."""
    if isinstance(model, SklearnModel):
        return model.estimator
    return getattr(model, "path", getattr(model, "module", model))


def _onnx_bytes(model: OnnxModel) -> bytes:
    try:
        return Path(model.path).read_bytes()
    except OSError as problem:
        raise InputFileError(f"{model.path}: {problem.strerror or problem}") from None


def _check_alone(model: OnnxModel, copy: Path) -> None:
    try:
        OnnxModel(copy)._open()
    except InputFileError:
        raise ModelError(
            f"{model.path} does not run from another folder: export it as one file with its weights inside"
        ) from None
