"""Drawing: what is in the picture."""

import numpy as np
import pytest

from collegium.lab.figures import curve, finish, whole_numbers
from collegium.lab.studies.main import CifarMain
from collegium.lab.studies.robustness import Robustness
from collegium.lab.studies.temperature import CifarTemperature
from collegium.lab.studies.topology import GRAPHS, PRECISIONS, WEIGHINGS, Topology
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
    _, middle, _, more = study.draw(table)[study.name].axes
    assert [container.get_label() for container in more.containers] == ["Ours"]  # none of these is beyond the paper
    drawn = {container.get_label(): container.lines[0] for container in middle.containers}
    return {name: (line.get_color(), line.get_marker(), line.get_linestyle()) for name, line in drawn.items()}


def test_a_method_is_drawn_alike_with_and_without_vfl_jt():
    names = ["Non-cooperative", "Ours", "AdaBoost", "VFL-JT", "Central oracle"]
    main, calibrated = styles(CifarMain(), names), styles(CifarTemperature(), names[:3] + names[4:])
    assert len(set(main.values())) == len(names)
    assert calibrated.items() < main.items()


def test_intervals_of_enough_repetitions_are_not_cut_off():
    _, (axes,) = panels(1)
    curve(axes, curve_of([0.5, 0.2], half=0.01), "round", "mean")
    finish(axes, "round", "error")
    low, high = axes.get_ylim()
    ends = [y for cap in axes.containers[0].lines[1] for y in cap.get_ydata()]
    assert low < min(ends) < 0.2 < 0.5 < max(ends) < high


def test_the_last_of_twenty_rounds_has_a_tick():
    _, (axes,) = panels(1)
    axes.plot(range(21), range(21))
    whole_numbers(axes)
    assert {0, 20} <= set(axes.get_xticks())


def test_methods_at_one_size_are_a_list():
    study = CifarMain()
    names = ["Ours", "Vote", "Stacking"]
    rows = [("error", name) for name in names] + [("mean statistic", "Ours"), ("error by round", "Ours")]
    table = to_table(
        (StudyRow(study.name, 500, r, q, name, 0, 0, 0.2 + 0.1 * r) for q, name in rows for r in (0, 1)), study.factors
    )
    _, middle, _, more = study.draw(table)[study.name].axes
    assert [tick.get_text() for tick in middle.get_yticklabels()] == ["Ours", "Vote"]
    assert [tick.get_text() for tick in more.get_yticklabels()] == ["Ours", "Stacking"]


def test_agents_that_only_tie_are_in_no_curve():
    study = Robustness()
    table = to_table(
        (
            StudyRow(
                study.name,
                390,
                r,
                "excess error",
                "Ours",
                -1,
                20,
                0.1 * m,
                {"corruption": kind, "corrupted": m} | ({} if np.isnan(eta) else {"strength": eta}),
            )
            for kind, eta in (("noise", 1.0), ("stuck", np.nan), ("bias", 1.0), ("sign flip", 0.0), ("sign flip", 1.0))
            for m in (1, 2, 3)
            for r in (0, 1)
        ),
        study.factors,
    )
    last = {
        container.get_label(): container.lines[0].get_xdata().max()
        for axes in study.draw(table)[study.name].axes[1:]
        for container in axes.containers
    }
    assert last == {"stuck at 0": 2, "bias η = 1": 3, "η = 0": 2, "η = 1": 3}


def test_the_ring_is_drawn_once():
    study = Topology()
    table = to_table(
        [
            StudyRow(study.name, 390, 0, "agents", "", -1, -1, 12.0),
            *(
                StudyRow(
                    study.name,
                    390,
                    r,
                    "error",
                    "Ours",
                    -1,
                    t,
                    0.3 - 0.01 * t,
                    {"topology": graph, "weights": weights, "precision": bits},
                )
                for graph in GRAPHS
                for weights in WEIGHINGS
                for bits in PRECISIONS
                for t in (0, 1)
                for r in (0, 1)
            ),
        ],
        study.factors,
    )
    names = study.draw(table)["topology-by-precision"].axes[0].get_legend_handles_labels()[1]
    assert [name for name in names if name.startswith("ring")] == ["ring, both rules"]
