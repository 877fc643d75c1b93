"""What the agents see of an item, as one picture: a strip of squares, one per agent."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from collegium.data import Dataset
from collegium.errors import DataError

SIDE = 96
"""Of one agent's square, in pixels."""


class Views:
    """The views of a data set's items, by their place in it."""

    def __init__(self, dataset: Dataset, K: int) -> None:
        if len(dataset.views) != K:
            raise DataError(
                f"{dataset.source or 'the data'} has {len(dataset.views)} views an item, but there are {K} agents"
            )
        self.dataset = dataset
        self.strip = lru_cache(maxsize=256)(self._strip)

    def __len__(self) -> int:
        return len(self.dataset)

    def _strip(self, i: int) -> bytes:
        """PNG of all views of item i from left to right."""
        strip = Image.new("RGBA", (SIDE * len(self.dataset.views), SIDE))
        for k, view in enumerate(self.dataset.views):
            tile = _tile(np.asarray(view[i]))
            strip.paste(tile, (k * SIDE + (SIDE - tile.width) // 2, (SIDE - tile.height) // 2))
        file = io.BytesIO()
        strip.save(file, "PNG")
        return file.getvalue()


def _tile(view: NDArray[Any]) -> Image.Image:
    """One view, as large as its square allows; numbers that are no picture become a row of greys."""
    if view.ndim == 3 and view.shape[2] == 1:
        view = view[:, :, 0]
    if view.ndim not in (2, 3) or (view.ndim == 3 and view.shape[2] != 3):
        view = view.reshape(1, -1)
    if view.dtype != np.uint8:
        view = np.nan_to_num(view.astype(np.float64))
        low, high = min(0.0, float(view.min())), max(1.0, float(view.max()))
        view = np.round(255 * (view - low) / (high - low)).astype(np.uint8)
    picture = Image.fromarray(np.ascontiguousarray(view)).convert("RGBA")
    share = SIDE / max(picture.size)
    size = max(1, round(picture.width * share)), max(1, round(picture.height * share))
    # Few pixels are shown as they are, many are averaged.
    return picture.resize(size, Image.Resampling.NEAREST if share > 1 else Image.Resampling.LANCZOS)
