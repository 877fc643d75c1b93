"""Drawing: what is in the picture."""

import numpy as np
import pytest

from collegium.lab.figures import curve, finish
from collegium.lab.table import Row, to_table
from collegium.plots import panels


def curve_of(means, half):
    """Two repetitions on either side of each mean."""
    return to_table(
        Row("study", 0, r, "error", "", -1, t, mean + sign * half)
        for t, mean in enumerate(means)
        for r, sign in enumerate((-1, 1))
    )


@pytest.mark.parametrize("line", [[0.9, 0.1], [0.3, 0.4]])
def test_every_curve_is_within_the_limits_whatever_its_intervals(line):
    _, (axes,) = panels(1)
    axes.plot([0, 1], line)
    curve(axes, curve_of([0.5, 0.2], half=3.0), "round", "mean")
    finish(axes, "round", "error")
    low, high = axes.get_ylim()
    heights = [0.5, 0.2, *line]
    assert low < min(heights)
    assert high > max(heights)
    assert np.ptp([low, high]) == pytest.approx(1.24 * np.ptp(heights))
