"""The weights of a PyTorch module as safetensors; the module itself is built anew from its recipe, or by the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from collegium._team_files.values import Malformed, decode_part, encode
from collegium.agents.optimisation import History
from collegium.agents.torch_model import TorchModel, load_torch
from collegium.errors import BackendError, InputFileError, ModelError, brief

_LEARNED: dict[str, type] = {"input_shape_": tuple, "classes_": np.ndarray, "history_": History}


def recipe(model: TorchModel) -> dict[str, Any]:
    """What a fitted model knows beside its settings and weights."""
    model._fitted()
    return {
        "learned": {name: encode(getattr(model, name), name) for name in _LEARNED if hasattr(model, name)},
        "transform": getattr(model, "transform", None) is not None,
    }


def to_bytes(model: TorchModel) -> bytes:
    """The weights and buffers of the module."""
    library = _safetensors()
    state = model._fitted().state_dict()
    try:
        # Copies, since the format has no way to say that two names share one tensor.
        data: bytes = library.save({name: value.detach().cpu().clone().contiguous() for name, value in state.items()})
    except Exception as problem:
        raise ModelError(f"the weights of {type(model).__name__} cannot be saved: {brief(problem)}") from None
    return data


def family_from_bytes(
    kind: type[Any], entry: dict[str, Any], settings: dict[str, Any], path: Path, data: bytes
) -> TorchModel:
    """One of the paper's families, built for the images it was fitted on."""
    torch, tensors, learned = load_torch(), _tensors(path, data), _learned(entry)
    if "input_shape_" not in learned:
        raise Malformed(f"a {kind.__name__} has no input_shape_")
    shape, classes = learned["input_shape_"], len(learned.get("classes_", (-1, 1)))
    try:
        model = kind(**settings)
        with torch.device("meta"):  # takes no memory, whatever sizes a manifest claims
            _compare(model.build(shape, classes), tensors)
        network = _quietly(lambda: model.build(shape, classes))
        network.load_state_dict(tensors)
    except Exception as problem:
        raise InputFileError(f"{path} does not fit the {kind.__name__} of the manifest: {brief(problem)}") from None
    return _fitted(model, network, learned)


def own_from_bytes(entry: dict[str, Any], settings: dict[str, Any], path: Path, data: bytes, given: Any) -> TorchModel:
    """The user's own module with its weights: `given` as it is, its copy filled."""
    learned = _learned(entry)
    bare = not isinstance(given, TorchModel)
    model = TorchModel(given if bare else given.module, None if bare else given.transform, **settings)
    if (model.transform is not None) is not entry.get("transform"):
        raise ModelError(
            "it was saved with a transform: give modules={name: TorchModel(module, transform=…)}"
            if model.transform is None
            else "it was saved without a transform, and must be loaded without one"
        )
    tensors = _tensors(path, data)
    try:
        network = _quietly(lambda: model.new_network(np.empty(0)))
        _compare(network, tensors)
        network.load_state_dict(tensors)
    except Exception as problem:
        raise ModelError(f"the module you gave does not fit the weights in {path}: {brief(problem)}") from None
    if learned:
        return _fitted(model, network, learned)
    model.module = network  # it was used as it was, never fitted
    return model


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError:
        raise BackendError("keeping PyTorch models in files needs the extra: pip install 'collegium[torch]'") from None
    return safetensors.torch


def _tensors(path: Path, data: bytes) -> dict[str, Any]:
    library = _safetensors()
    try:
        tensors: dict[str, Any] = library.load(data)
    except Exception as problem:
        raise InputFileError(f"{path} is not a safetensors file: {brief(problem)}") from None
    return tensors


def _learned(entry: dict[str, Any]) -> dict[str, Any]:
    learned = decode_part(entry, "learned")
    for name, value in learned.items():
        if not isinstance(value, _LEARNED.get(name, ())):
            raise Malformed(f"{name[:60]} cannot be {str(value)[:60]!r}")
    return learned


def _quietly(build: Callable[[], Any]) -> Any:
    """What `build` makes; the caller's random numbers are left alone."""
    with load_torch().random.fork_rng(devices=[]):
        return build()


def _compare(network: Any, tensors: dict[str, Any]) -> None:
    """Refuse weights of other names, shapes or types than the network's; types would be converted in silence."""
    wanted, saved = (
        {name: f"{tuple(value.shape)} of {value.dtype}" for name, value in state.items()}
        for state in (network.state_dict(), tensors)
    )
    for name in sorted({*wanted, *saved}):
        if wanted.get(name) != saved.get(name):
            raise ModelError(
                f"{name} is {saved.get(name, 'nothing')} in the file and {wanted.get(name, 'nothing')} in the network"
            )


def _fitted(model: TorchModel, network: Any, learned: dict[str, Any]) -> TorchModel:
    model.module_ = network.eval()
    for name, value in learned.items():
        setattr(model, name, value)
    return model
