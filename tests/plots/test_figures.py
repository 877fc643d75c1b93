"""What pictures say: names of agents and classes, and lines that are in order."""

from dataclasses import replace

import numpy as np
import pytest

from collegium import Team, collaborate, planner, plots, policy, topology
from collegium._util.measures import Interval
from collegium.fusion import ComparisonRow
from collegium.protocol import DeGroot
from collegium.theory import certify

RING = policy.uniform(topology.ring(3))
NAMES = ("ear", "eye", "nose")


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def run_of(agents):
    return replace(collaborate(np.random.default_rng(0).normal(size=(8, 3)), RING, 4), agents=agents)


@pytest.mark.parametrize("agents", [NAMES, None])
def test_lines_have_the_names_of_agents(agents):
    run = run_of(agents)
    expected = list(agents or ["each agent"])
    (axes,) = plots.error_figure(run.errors(np.array([1, -1] * 4)), {}, "", run.agents).axes
    assert legend(axes) == [*expected, "mean of agents"]
    if agents:
        assert len({line.get_color() for line in axes.lines}) == 4
    (axes,) = plots.statistic_figure(run, 2, ("sick", "well"), "").axes
    assert legend(axes) == expected
    assert axes.get_ylabel() == "statistic (positive: sick, negative: well)"
    assert axes.get_xlim()[1] < 5
    for k, line in enumerate(axes.lines[:3]):
        assert line.get_ydata().tolist() == run.statistics[:, 2, k].tolist()


def test_gains_have_the_names_of_classes():
    (axes,) = plots.gains_figure(np.ones((3, 4)), NAMES, "", ("a", "b", "c", "d")).axes
    assert legend(axes) == ["a", "b", "c", "d"]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(NAMES)


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def plan_of(chosen_bits, chosen_error, bits, error):
    return planner.Plan(
        "ring:3", "uniform", DeGroot(), 1, RING, chosen_error=chosen_error, chosen_bits=chosen_bits,
        error=Interval(error, 0.05), bits=Interval(bits, 1.0),
    )  # fmt: skip


def test_the_front_of_a_plan_does_not_turn_back():
    """It is sorted by the bits of the half that reports; on the half that chose, they may be in another order."""
    front = (plan_of(8, 0.3, 8, 0.31), plan_of(33, 0.05, 32, 0.06), plan_of(32, 0.1, 34, 0.12))
    answer = planner.Answer(front, front[1], True, (), Interval(0.4, 0.1), None, 3, 0.1)
    figure = plots.plan_figure(answer, "")
    (axes,) = figure.axes
    line = next(line for line in axes.lines if line.get_label().startswith("on the half"))
    assert line.get_xdata().tolist() == [8, 32, 33]
    figure.draw_without_rendering()
    below = figure.legends[0].get_window_extent().ymax
    assert below < axes.get_window_extent().ymin  # so that it hides no interval
    assert "recommended" in legend_of(figure)
    missed = planner.Answer(front, front[1], False, (), Interval(0.4, 0.1), None, 3, 0.1)
    assert "not met; nearest" in legend_of(plots.plan_figure(missed, ""))


def test_a_team_s_run_is_drawn_with_its_names():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    y = np.array(["no", "yes"])[np.arange(40) % 2]
    views = [rng.normal(size=(40, 2)) + 2 * (y == "yes")[:, None] for _ in NAMES]
    run = Team([(name, LogisticRegression()) for name in NAMES], RING, rounds=3).fit(views, y).run(views)
    (axes,) = plots.statistic_figure(run, 0, ("yes", "no"), "").axes
    assert legend(axes) == list(NAMES)


@pytest.mark.parametrize(("signal", "drawn"), [(9.0, True), (1.0, False)])
def test_a_bound_of_everything_is_not_drawn(signal, drawn):
    """Of three classes it is a sum over two rivals, which may be more than 1."""
    y = np.arange(600) % 3
    x = signal * np.eye(3)[y][:, None] + np.random.default_rng(0).normal(size=(600, 12, 3))
    found = certify(x - x.mean(axis=2, keepdims=True), y, policy.uniform(topology.complete(12)), 3)
    (axes,) = plots.certificate_figure(found, "").axes
    assert ("guaranteed by range, worst agent" in legend(axes)) is drawn
    assert any("the bound is 100 % or more" in text.get_text() for text in axes.texts) is not drawn


def test_only_links_that_would_run_through_an_agent_are_bent():
    def bent(graph):
        axes = plots.network_figure(policy.uniform(graph), "").axes[0]
        return sum(patch.get_connectionstyle().rad > 0 for patch in axes.patches)

    assert bent(topology.star(40)) == bent(topology.grid(3, 3)) == 0
    assert bent(topology.torus(3, 4)) == 7  # those that close the rows and the columns


def test_errors_stand_beside_the_axes_and_not_at_the_end_of_their_intervals():
    rows = [ComparisonRow("Ours", 0.02, 0.07, 10, 640, 0.1), ComparisonRow("Vote", 0.05, 0.01, 9, 9, 0.1)]
    figure = plots.comparison_figure(rows, (), "")
    (axes,) = figure.axes
    figure.draw_without_rendering()
    assert [text.get_text() for text in axes.texts] == ["2.0 ± 7.0", "5.0 ± 1.0"]
    for text in axes.texts:
        assert text.get_window_extent().xmin > axes.get_window_extent().xmax
