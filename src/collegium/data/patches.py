"""Cutting images into a grid of patches, one per agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium.errors import DataError

Grid = tuple[int, int]
Cell = tuple[slice, slice]


def cells(height: int, width: int, grid: Grid) -> list[Cell]:
    """The rows and columns of every patch, row by row; where the cut is uneven the first patches are larger.

    >>> [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in cells(32, 32, (3, 3))][:3]
    [(11, 11), (11, 11), (11, 10)]
    """
    down, across = check_grid(grid, height, width)
    return list(product(_slices(height, down), _slices(width, across)))


def cut(images: NDArray[Any], grid: Grid) -> list[NDArray[Any]]:
    """The patches of images (n, height, width[, channels]), each one contiguous array; a grid (1, 1) cuts nothing.

    >>> cut(np.arange(16).reshape(1, 4, 4), (2, 2))[1]
    array([[[2, 3],
            [6, 7]]])
    """
    height, width = images.shape[1:3]
    return [np.ascontiguousarray(images[:, rows, columns]) for rows, columns in cells(height, width, grid)]


def join(patches: Sequence[NDArray[Any]], grid: Grid) -> NDArray[Any]:
    """The whole images again, from the patches of a grid, row by row.

    >>> join(cut(np.arange(16).reshape(1, 4, 4), (2, 2)), (2, 2)).ravel().tolist() == list(range(16))
    True
    """
    down, across = grid
    if len(patches) != down * across:
        raise DataError(f"a grid of {down}×{across} has {down * across} patches, got {len(patches)}")
    try:
        rows = [np.concatenate(patches[row * across : (row + 1) * across], axis=2) for row in range(down)]
        return np.concatenate(rows, axis=1)
    except ValueError:
        shapes = ", ".join(str(patch.shape[1:]) for patch in patches)
        raise DataError(f"patches of these sizes do not make one image on a {down}×{across} grid: {shapes}") from None


def names(grid: Grid) -> tuple[str, ...]:
    """What the agents of a grid are called.

    >>> names((1, 2)), names((1, 1))
    (('row 0, column 0', 'row 0, column 1'), ('whole image',))
    """
    down, across = grid
    if down == across == 1:
        return ("whole image",)
    return tuple(f"row {row}, column {column}" for row, column in product(range(down), range(across)))


def check_grid(grid: Any, height: int, width: int) -> Grid:
    """The grid as two whole numbers, no more of them than there are pixels."""
    if isinstance(grid, str) or not isinstance(grid, Iterable) or len(pair := list(grid)) != 2:
        raise DataError(f"grid must be two numbers, patches down and patches across, such as (3, 3); got {grid!r}")
    down = whole_number(pair[0], "the number of patches down", DataError, at_least=1, at_most=height)
    across = whole_number(pair[1], "the number of patches across", DataError, at_least=1, at_most=width)
    return down, across


def _slices(length: int, parts: int) -> list[slice]:
    small, larger = divmod(length, parts)
    edges = [part * small + min(part, larger) for part in range(parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
