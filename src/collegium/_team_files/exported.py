"""A torch module of the user's own as an ONNX file: what it computes, without its code."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from collegium.agents.inference import scoring
from collegium.agents.onnx_model import OnnxModel
from collegium.agents.torch_model import TorchModel, load_torch
from collegium.errors import CollegiumError, ModelError, brief


def export(model: TorchModel, path: Path) -> OnnxModel:
    """Write the module and read it back, if the file's scores are those of the module."""
    torch = load_torch()
    shape = getattr(model, "input_shape_", getattr(model, "scored_shape_", None))
    if model.transform is not None:
        raise ModelError("a module with a transform cannot be exported to ONNX: that is code too. Export both as one")
    if shape is None:
        raise ModelError("the shape of its views is not known yet: let the team score some items, then save it")
    probe = np.random.default_rng(0).normal(size=(5, *shape)).astype(np.float32)
    try:
        with warnings.catch_warnings(action="ignore"), scoring():  # of the exporter about itself
            torch.onnx.export(
                model._fitted(), (torch.from_numpy(probe),), path, dynamo=False,
                input_names=["view"], output_names=["logits"],
                dynamic_axes={"view": {0: "items"}, "logits": {0: "items"}},
            )  # fmt: skip
    except Exception as problem:  # whatever a user's module does that ONNX has no word for
        raise ModelError(f"its module cannot be exported to ONNX: {brief(problem)}") from problem
    made = OnnxModel(path, kind="logits" if model.kind == "score" else model.kind, classes=model.classes)
    try:
        with warnings.catch_warnings(action="ignore"):  # of scores that look like probabilities
            expected = model.scores(probe)
        same = all(
            np.allclose(made.scores(probe[:n]), expected[:n], rtol=1e-4, atol=1e-4 * np.abs(expected).max())
            for n in (5, 1)
        )
    except CollegiumError as problem:
        raise ModelError(f"its module, exported to ONNX, does not score: {problem}") from None
    if not same:
        raise ModelError("its module, exported to ONNX, gives other scores: does it treat items of a batch together?")
    return made
