"""The Rademacher complexity of the networks that come with Collegium, bounded by the norms of their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collegium.agents.torch_model import TorchModel, load_torch
from collegium.errors import ModelError
from collegium.theory.rademacher import Affine, Complexity, Layer, Ramp, Residual, network_class

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn


def complexity(model: TorchModel, view: NDArray[Any]) -> Complexity:
    """An upper bound for the class of networks like this fitted one, with weights no larger, on the items of a view.

    See `theory.rademacher.network_class`: the 1-norms of each layer's units multiply, so that the bound grows quickly
    with depth and is mostly of interest for PixelLogistic and MicroCNN, or for comparing agents.
    """
    load_torch()
    network = getattr(model, "module_", None)
    if network is None:
        raise ModelError(f"{type(model).__name__} is not fitted yet: call fit first")
    from collegium.agents.torch_networks import ImageNetwork

    if not isinstance(network, ImageNetwork):
        raise ModelError(f"the layers of {type(network).__name__} are not known: describe them to network_class")
    x = ImageNetwork.prepare(network, model.matching(view)).flatten(1)
    return network_class(x.double().numpy(), layers(network))


def layers(network: nn.Module) -> list[Layer]:
    """The layers of a network of PatchCNN, PixelLogistic, SmallResNet or MicroCNN, up to the score."""
    from collegium.agents.torch_networks import MicroNetwork, PatchNetwork, PixelNetwork, ResidualNetwork

    head: Any = network.head
    score = _affine((head.weight[1] - head.weight[0])[None], (head.bias[1] - head.bias[0])[None])
    if isinstance(network, PixelNetwork):
        return [score]
    if isinstance(network, MicroNetwork):
        return [_layer(network.convolution), Ramp(), score]
    if isinstance(network, PatchNetwork):
        return [
            _layer(network.first), Ramp(), _layer(network.second), Ramp(pool=4), _layer(network.hidden), Ramp(), score,
        ]  # fmt: skip
    if isinstance(network, ResidualNetwork):
        blocks = [_block(block) for block in network.blocks]
        return [_normalised(network.stem), Ramp(), *blocks, score]
    raise ModelError(f"the layers of {type(network).__name__} are not known: describe them to network_class")


def _layer(part: Any) -> Affine:
    return _affine(part.weight.flatten(1), part.bias)


def _affine(weight: Tensor, bias: Tensor) -> Affine:
    """The largest 1-norm and the largest bias of any unit."""
    return Affine(float(weight.detach().abs().sum(dim=1).max()), float(bias.detach().abs().max()))


def _normalised(part: Any) -> Affine:
    """A convolution without bias and its normalisation, as one layer."""
    convolution, norm = part
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    return _affine(convolution.weight.flatten(1) * scale[:, None], norm.bias - norm.running_mean * scale)


def _block(block: Any) -> Residual:
    inner: list[Layer] = [_normalised(block.first), Ramp(), _normalised(block.second)]
    return Residual(inner, [] if not len(list(block.shortcut.children())) else [_normalised(block.shortcut)])
