"""How a network is scored: always in the same way, however it was trained and whatever the caller has set.

Sums in float32 depend on the number of threads, the size of a batch and the precision in their last digits. Settings of
the training would therefore change the scores of a model that was fitted long before; nothing here looks at them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from collegium.agents.optimisation import floats, threads

if TYPE_CHECKING:
    from torch import Tensor, nn

BATCH = 256
"""Items at a time."""
_NUMBERS = 2**22  # fewer items at a time if they hold more than this together: large images would fill the memory


def outputs(network: nn.Module, x: Tensor) -> Tensor:
    """The network's outputs for prepared inputs; to be called inside `scoring`."""
    import torch

    network.eval()
    size = min(BATCH, max(1, _NUMBERS // max(1, x[:1].numel())))
    return torch.cat([floats(network(piece)) for piece in x.split(size)])


@contextmanager
def scoring() -> Iterator[None]:
    """One thread, float32, no gradients: for everything between a view and its scores."""
    import torch

    with threads(1), torch.no_grad(), torch.autocast("cpu", enabled=False):
        yield
