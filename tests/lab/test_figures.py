"""Drawing: what is in the picture."""

import numpy as np
import pytest

from collegium.lab.figures import curve, finish
from collegium.lab.studies.main import CifarMain
from collegium.lab.studies.temperature import CifarTemperature
from collegium.lab.table import StudyRow, to_table
from collegium.plots import panels


def curve_of(means, half):
    """Two repetitions on either side of each mean."""
    return to_table(
        StudyRow("study", 0, r, "error", "", -1, t, mean + sign * half)
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


def styles(study, methods):
    """How each method's error is drawn."""
    rows = [("error", name) for name in methods] + [("mean statistic", "Ours"), ("error by round", "Ours")]
    table = to_table(
        (StudyRow(study.name, 500, r, quantity, name, 0, 0, 0.25 + 0.1 * r) for quantity, name in rows for r in (0, 1)),
        study.factors,
    )
    _, middle, _ = study.draw(table)[study.name].axes
    drawn = {container.get_label(): container.lines[0] for container in middle.containers}
    return {name: (line.get_color(), line.get_marker(), line.get_linestyle()) for name, line in drawn.items()}


def test_a_method_is_drawn_alike_with_and_without_vfl_jt():
    names = ["Non-cooperative", "Ours", "AdaBoost", "VFL-JT", "Central oracle"]
    main, calibrated = styles(CifarMain(), names), styles(CifarTemperature(), names[:3] + names[4:])
    assert len(set(main.values())) == len(names)
    assert calibrated.items() < main.items()
