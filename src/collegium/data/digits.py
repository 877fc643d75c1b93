"""The handwritten digits that come with scikit-learn: 1797 grey images of 8×8 pixels, nothing to fetch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number, whole_number
from collegium.data import patches
from collegium.data._classes import two_classes
from collegium.data.dataset import Dataset
from collegium.errors import DataError

SIDE = 8
CLASSES = tuple(str(digit) for digit in range(10))


def digits(
    classes: tuple[int | str, int | str] = (3, 8),
    test: float = 0.5,
    seed: int | np.random.Generator = 0,
    grid: patches.Grid = (3, 3),
) -> tuple[Dataset, Dataset]:
    """Two of the ten digits, cut into patches of 3, 3 and 2 pixels, split at random into training and test items.

    Pixels are float64 between 0 and 1, one view (n, height, width) per patch. The share `test` of each class goes to
    the test items; the same seed gives the same split.

    >>> train, test = digits(classes=(3, 8))
    >>> train
    Dataset(178 items: 91 × 3, 87 × 8; 9 agents: row 0, column 0 … row 2, column 2)
    >>> [view.shape[1:] for view in test.views][:3]
    [(3, 3), (3, 3), (3, 2)]
    """
    first, second = two_classes(classes, CLASSES, "the digits")
    share = real_number(test, "the share of test items", DataError, above=0, at_most=1)
    grid = patches.check_grid(grid, SIDE, SIDE)
    rng = (
        seed
        if isinstance(seed, np.random.Generator)
        else np.random.default_rng(whole_number(seed, "the seed", DataError))
    )
    images, labels = read()
    training, testing = [], []
    for digit in sorted((first, second)):  # whichever is named first, the split is the same
        order = rng.permutation(np.flatnonzero(labels == digit))
        apart = round(share * len(order))
        if not 0 < apart < len(order):
            raise DataError(f"test={test!r} leaves no {digit} to {'learn from' if apart else 'test on'}")
        training.append(order[apart:])
        testing.append(order[:apart])
    datasets = []
    for split, chosen in (("training", training), ("test", testing)):
        rows = np.sort(np.concatenate(chosen))
        y = np.where(labels[rows] == first, 1, -1).astype(np.int8)
        names = (CLASSES[first], CLASSES[second])
        source = f"scikit-learn's digits, {split} items of a random split"
        datasets.append(Dataset(patches.cut(images[rows], grid), y, names, patches.names(grid), source))
    return datasets[0], datasets[1]


def read() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """All images, scaled to [0, 1], and the digits they show."""
    from sklearn.datasets import load_digits

    bundle = load_digits()
    return bundle.images / 16.0, bundle.target
