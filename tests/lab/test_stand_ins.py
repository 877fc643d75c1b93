"""Drawings in place of items: boxes have the size they should, and nothing of the data is among them."""

import numpy as np
import pytest

from collegium.lab.studies import STUDIES
from collegium.lab.studies.stand_ins import boxes, faces


def test_a_box_is_as_wide_as_it_is():
    (views,) = boxes(1, views=4, side=97)
    wide = [int(((picture < 255).any(axis=0)).sum()) for picture in views]
    pixel = 2.4 / 96
    # from the side it is 0.8 wide, from the front 1.6: as many pixels, give or take the two at its edges
    assert wide == pytest.approx([0.8 / pixel, 1.6 / pixel, 0.8 / pixel, 1.6 / pixel], abs=2)
    assert [bool((picture == 50).any()) for picture in views] == [False, False, False, True]  # drawers are in front


def test_faces_differ():
    first, second = faces(2)
    assert first.shape == (32, 32, 3)
    assert first.dtype == np.uint8
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, faces(1)[0])


@pytest.mark.parametrize(("name", "pictures"), [("cifar-setup", ["patches", "local"]), ("modelnet-setup", ["local"])])
def test_figures_that_show_items_have_drawings(name, pictures):
    assert list(STUDIES[name].stand_ins()) == [f"{name}-{one}" for one in pictures]
