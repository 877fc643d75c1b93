import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.data import patches
from collegium.errors import DataError


@given(st.integers(1, 20), st.integers(1, 20), st.data())
def test_every_pixel_is_in_one_patch(height, width, data):
    grid = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    images = np.arange(2 * height * width * 3).reshape(2, height, width, 3)
    cut = patches.cut(images, grid)
    rows = [np.concatenate(cut[r * grid[1] : (r + 1) * grid[1]], axis=2) for r in range(grid[0])]
    np.testing.assert_array_equal(np.concatenate(rows, axis=1), images)
    heights = {one.shape[1] for one in cut}
    assert max(heights) - min(heights) <= 1
    assert all(one.flags.c_contiguous for one in cut)
    assert len(cut) == len(patches.names(grid)) == len(set(patches.names(grid)))


@pytest.mark.parametrize(("side", "sizes"), [(32, [11, 11, 10]), (8, [3, 3, 2])])
def test_sizes_of_the_published_cut(side, sizes):
    cells = patches.cells(side, side, (3, 3))
    found = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in cells]
    assert found == [(h, w) for h in sizes for w in sizes]


@pytest.mark.parametrize("grid", [(3,), 3, "33", (0, 3), (3, 9), (3.0, 3), (True, 3), None])
def test_impossible_grids(grid):
    with pytest.raises(DataError, match=r"grid|patches"):
        patches.check_grid(grid, 8, 8)
