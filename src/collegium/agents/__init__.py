"""Agents: any model, trained alone, heard by all.

Names are loaded when they are first used, so that PyTorch is loaded by its models only.
"""

from typing import TYPE_CHECKING

from collegium._util.lazy import lazy

if TYPE_CHECKING:
    from collegium.agents.adapt import as_model
    from collegium.agents.base import Model
    from collegium.agents.calibration import temperature
    from collegium.agents.callable_model import CallableModel
    from collegium.agents.independent import train
    from collegium.agents.onnx_model import OnnxModel
    from collegium.agents.optimisation import ADAM, SGD, SGD_SHORT, Training
    from collegium.agents.pipeline import ScorePipeline, bounded
    from collegium.agents.scores import Scores
    from collegium.agents.sklearn_model import SklearnModel
    from collegium.agents.torch_model import MicroCNN, PatchCNN, PixelLogistic, SmallResNet, TorchModel

_HOMES = {
    "ADAM": "optimisation",
    "SGD": "optimisation",
    "SGD_SHORT": "optimisation",
    "CallableModel": "callable_model",
    "MicroCNN": "torch_model",
    "Model": "base",
    "OnnxModel": "onnx_model",
    "PatchCNN": "torch_model",
    "PixelLogistic": "torch_model",
    "ScorePipeline": "pipeline",
    "Scores": "scores",
    "SklearnModel": "sklearn_model",
    "SmallResNet": "torch_model",
    "TorchModel": "torch_model",
    "Training": "optimisation",
    "as_model": "adapt",
    "bounded": "pipeline",
    "temperature": "calibration",
    "train": "independent",
}

__all__ = [
    "ADAM",
    "SGD",
    "SGD_SHORT",
    "CallableModel",
    "MicroCNN",
    "Model",
    "OnnxModel",
    "PatchCNN",
    "PixelLogistic",
    "ScorePipeline",
    "Scores",
    "SklearnModel",
    "SmallResNet",
    "TorchModel",
    "Training",
    "as_model",
    "bounded",
    "temperature",
    "train",
]

__getattr__, __dir__ = lazy(__name__, _HOMES)
