"""The handwritten digits that come with scikit-learn: 1797 grey images of 8×8 pixels, nothing to fetch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collegium.data import _splits, patches
from collegium.data._classes import labels_of, some_classes
from collegium.data.dataset import Dataset

SIDE = 8
CLASSES = tuple(str(digit) for digit in range(10))


def digits(
    classes: Sequence[int | str] | None = None,
    test: float = 0.5,
    seed: int | np.random.Generator = 0,
    grid: patches.Grid = (3, 3),
) -> tuple[Dataset, Dataset]:
    """The ten digits, or those named, cut into patches of 3, 3 and 2 pixels, split at random into training and test.

    Pixels are float64 between 0 and 1, one view (n, height, width) per patch. Labels are +1 and -1 for the first and
    the second of two digits, and places among `class_names` if there are more. The share `test` of each class goes to
    the test items; the same seed gives the same split.

    >>> train, test = digits(classes=(3, 8))
    >>> train
    Dataset(178 items: 91 × 3, 87 × 8; 9 agents: row 0, column 0 … row 2, column 2)
    >>> [view.shape[1:] for view in test.views][:3]
    [(3, 3), (3, 3), (3, 2)]
    >>> digits()[0]
    Dataset(899 items of 10 classes: 0 … 9; 9 agents: row 0, column 0 … row 2, column 2)
    """
    chosen = some_classes(classes, CLASSES, "the digits")
    share = _splits.share_of(test)
    grid = patches.check_grid(grid, SIDE, SIDE)
    rng = _splits.generator(seed)
    images, labels = read()
    parts = _splits.at_random(labels, chosen, CLASSES, share, rng)
    names = tuple(CLASSES[digit] for digit in chosen)
    train, testing = (
        Dataset(
            patches.cut(images[rows], grid),
            labels_of(labels[rows], chosen),
            names,
            patches.names(grid),
            f"scikit-learn's digits, {split} items of a random split",
        )
        for split, rows in zip(("training", "test"), parts, strict=True)
    )
    return train, testing


def read() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """All images, scaled to [0, 1], and the digits they show."""
    from sklearn.datasets import load_digits

    bundle = load_digits()
    return bundle.images / 16.0, bundle.target
