"""The network families as PyTorch modules: a batch of views in, logits out; of two, the second belongs to +1.

`observe` looks at the agent's own training images once; `prepare` turns a whole view into the tensor that `forward`
takes rows of: in units of what was observed (bytes become 0…1), standardised per channel, in the memory layout that is
quickest. What a view means does not depend on the type it comes in later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from collegium._util.arguments import real_number, whole_number
from collegium.errors import ModelError


def channels_last(view: NDArray[Any]) -> NDArray[Any]:
    """Images as (n, height, width, channels); channels first are recognised by a last axis of more than four."""
    shape = view.shape
    if len(shape) == 3:
        return view[..., None]
    if len(shape) != 4:
        raise ModelError(
            "a convolutional model needs images of shape (n, height, width) or (n, height, width, channels), "
            f"got {shape}"
        )
    return view.transpose(0, 2, 3, 1) if shape[-1] > 4 and shape[1] <= 4 else view


def images(view: NDArray[Any]) -> Tensor:
    """Images as a float tensor (n, height, width, channels)."""
    return torch.tensor(np.ascontiguousarray(channels_last(view)), dtype=torch.float32)


class ImageNetwork(nn.Module):
    """What the families share: standardised images with the channels last, and one layer on top of the features."""

    shift: Tensor
    scale: Tensor
    head: nn.Linear

    def __init__(self, channels: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(real_number(dropout, "dropout", ModelError, at_least=0, at_most=1))
        self.register_buffer("shift", torch.zeros(channels))
        self.register_buffer("scale", torch.ones(channels))

    def observe(self, view: NDArray[Any], standardise: bool) -> None:
        """Remember the unit of the training images and, if asked for, their mean and spread per channel."""
        unit = 255 if view.dtype == "uint8" else 1
        self.shift.zero_()
        self.scale.fill_(1 / unit)
        if standardise:
            pixels = images(view).flatten(0, 2).double()
            spread = pixels.std(0, correction=0)
            self.shift.copy_(pixels.mean(0))
            self.scale.copy_(torch.where(spread > 1e-6 * unit, 1 / spread, 1 / unit))

    def prepare(self, view: NDArray[Any]) -> Tensor:
        """Images (n, height, width, channels) as `forward` takes them."""
        return images(view).sub_(self.shift).mul_(self.scale)

    def features(self, x: Tensor) -> Tensor:
        """What the last layer sees of prepared images, shape (n, features)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.dropout(self.features(x)))
        return logits


class PatchNetwork(ImageNetwork):
    """Two 3×3 convolutions, the first with stride 2, the second halved by a maximum; two fully connected layers."""

    def __init__(
        self,
        size: tuple[int, int, int],
        channels: tuple[int, int] = (32, 64),
        hidden: int = 128,
        dropout: float = 0.0,
        outputs: int = 2,
    ) -> None:
        height, width, depth = size
        channels = _widths(channels, 2)
        hidden = whole_number(hidden, "hidden", ModelError, at_least=1)
        super().__init__(depth, dropout)
        self.first = nn.Conv2d(depth, channels[0], 3, stride=2, padding=1)
        self.second = nn.Conv2d(channels[0], channels[1], 3, padding=1)
        places = math.prod(max((side + 1) // 2 // 2, 1) for side in (height, width))
        self.hidden = nn.Linear(channels[1] * places, hidden)
        self.head = nn.Linear(hidden, outputs)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def features(self, x: Tensor) -> Tensor:
        """The hidden layer."""
        x = self.second(F.relu(self.first(x.permute(0, 3, 1, 2))))
        # The maximum and the ramp commute; in this order the ramp has a quarter of the work.
        x = F.relu(F.max_pool2d(x, (min(2, x.shape[2]), min(2, x.shape[3]))))
        return F.relu(self.hidden(x.flatten(1)))


class PixelNetwork(ImageNetwork):
    """Logistic regression on the flattened pixels."""

    def __init__(self, size: tuple[int, int, int], outputs: int = 2) -> None:
        super().__init__(size[2])
        self.head = nn.Linear(math.prod(size), outputs)

    def features(self, x: Tensor) -> Tensor:
        """The pixels."""
        return x.flatten(1)


class ResidualNetwork(ImageNetwork):
    """A convolution, residual blocks that halve the image from the second on, an average over all places, one layer."""

    def __init__(self, size: tuple[int, int, int], channels: tuple[int, ...] = (16, 32), outputs: int = 2) -> None:
        super().__init__(size[2])
        channels = _widths(channels)
        self.stem = _convolution(size[2], channels[0])
        widths = (channels[0], *channels)
        self.blocks = nn.Sequential(
            *(
                _Residual(a, b, stride=1 if i == 0 else 2)
                for i, (a, b) in enumerate(zip(widths, channels, strict=False))
            )
        )
        self.head = nn.Linear(channels[-1], outputs)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def features(self, x: Tensor) -> Tensor:
        """The last maps, averaged over all places."""
        x = self.blocks(F.relu(self.stem(x.permute(0, 3, 1, 2))))
        return F.adaptive_avg_pool2d(x, 1).flatten(1)


class _Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = _convolution(before, after, stride)
        self.second = _convolution(after, after)
        self.stride = stride
        same = before == after and stride == 1
        self.shortcut = nn.Identity() if same else _convolution(before, after, kernel=1)

    def forward(self, x: Tensor) -> Tensor:
        # Every second pixel is taken by hand: PyTorch 2.13's own 1×1 convolution with stride 2 writes outside its
        # memory when it goes backward through few channels in this layout.
        skipped = self.shortcut(x[..., :: self.stride, :: self.stride])
        return F.relu(self.second(F.relu(self.first(x))) + skipped)


def _widths(channels: Any, count: int | None = None) -> Any:
    """The channels of some layers, as many as there should be."""
    if (
        not isinstance(channels, Sequence)
        or isinstance(channels, str)
        or len(channels) != (count or len(channels) or 1)
    ):
        wanted = "two whole numbers" if count else "a whole number for each block, at least one"
        raise ModelError(f"channels must be {wanted}; got {channels!r}")
    return tuple(whole_number(one, "each of channels", ModelError, at_least=1) for one in channels)


def _convolution(before: int, after: int, stride: int = 1, kernel: int = 3) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, kernel, stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(after)
    )


class MicroNetwork(ImageNetwork):
    """One 7×7 convolution with stride 4, ReLU, the average over all places, dropout, one layer.

    The windows under the kernel never change, so `prepare` cuts them out once, in the type of the view: bytes stay
    bytes, since with two such networks training side by side it is the memory that is slow. The windows of an even
    background, more than half of a rendered object's, stand once and are counted. A one is added to every window, for
    the bias; the standardisation goes into the weights.
    """

    KERNEL, STRIDE = 7, 4

    def __init__(self, size: tuple[int, int, int], channels: int = 32, dropout: float = 0.0, outputs: int = 2) -> None:
        height, width, depth = size
        if min(height, width) < self.KERNEL:
            raise ModelError(f"MicroCNN needs images of at least 7×7 pixels, got {height}×{width}")
        channels = whole_number(channels, "channels", ModelError, at_least=1)
        super().__init__(depth, dropout)
        self.places = math.prod((side - self.KERNEL) // self.STRIDE + 1 for side in (height, width))
        self.convolution = nn.Conv2d(depth, channels, self.KERNEL, self.STRIDE)
        self.head = nn.Linear(channels, outputs)

    def prepare(self, view: NDArray[Any]) -> Tensor:
        """Windows of shape (n, most of an image, pixels in one + 1).

        Those that equal the first one, in the corner, are left out; where an image has fewer than most, zeros follow.
        """
        kind = torch.uint8 if view.dtype == "uint8" else torch.float32
        pictures = torch.tensor(np.ascontiguousarray(channels_last(view)), dtype=kind).permute(0, 3, 1, 2)
        windows = pictures.unfold(2, self.KERNEL, self.STRIDE).unfold(3, self.KERNEL, self.STRIDE)
        windows = windows.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        other = (windows != windows[:, :1]).any(2)
        other[:, 0] = True
        counts = other.sum(1).tolist()
        prepared = windows.new_zeros(len(windows), max(counts, default=1), windows.shape[2] + 1)
        for i, count in enumerate(counts):
            prepared[i, :count, :-1] = windows[i, other[i]]
            prepared[i, :count, -1] = 1
        return prepared

    def features(self, windows: Tensor) -> Tensor:
        """The averaged feature maps, shape (n, channels), of prepared windows.

        Where S is the sum of the windows that make a channel positive, the average of max(W·window, 0) over the places
        is W·S / places, and as a function of W it is linear as long as no place changes sides. So its gradient is
        S / places: nothing of the size of the image is kept for the backward pass.
        """
        weight = self.convolution.weight * self.scale[:, None, None]
        bias: Tensor = self.convolution.bias  # type: ignore[assignment]
        bias = bias - (weight * self.shift[:, None, None]).sum((1, 2, 3))
        W = torch.cat([weight.flatten(1), bias[:, None]], dim=1)
        return torch.einsum("cp,ncp->nc", W, _active_sums(W.detach(), windows, self.places)) / self.places


@torch.no_grad()
def _active_sums(W: Tensor, windows: Tensor, places: int) -> Tensor:
    """Sums of the windows on which a channel is positive, for every image and channel: shape (n, channels, pixels).

    The first window of an image stands for all that are not there. One image at a time: its windows, as floats, and
    both products stay in the cache.
    """
    n, most, pixels = windows.shape
    sums = W.new_empty(n, len(W), pixels)
    positive = W.new_empty(most, len(W))
    numbers = W.new_empty(most, pixels)
    for i, count in enumerate(windows[:, :, -1].count_nonzero(1).tolist()):
        window, active = numbers[:count].copy_(windows[i, :count]), positive[:count]
        torch.gt(torch.mm(window, W.T, out=active), 0, out=active)
        active[0] *= places - count + 1
        torch.mm(active.T, window, out=sums[i])
    return sums
