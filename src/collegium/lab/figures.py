"""Drawing for the laboratory: curves with 95 % intervals over repetitions, in colours all readers can tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from collegium import plots
from collegium._util.measures import mean_interval
from collegium.errors import InputFileError
from collegium.lab.table import Table

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F", "#8C564B", "#BCBD22"]
MARKERS = "os^vD<>pXh"
MUCH = 2
"""So many times higher than the curves a panel may be, to show whole intervals."""


def curve(axes: Any, table: Table, x: str, label: str, style: int = 0, scale: float = 1.0, **more: Any) -> None:
    """The mean of `value` over repetitions against a column, with intervals."""
    points = [(at, mean_interval(group["value"].to_numpy())) for at, group in _by_repetition(table, x).groupby(x)]
    if not points:
        return
    at = np.array([point for point, _ in points], np.float64)
    mean = scale * np.array([interval.mean for _, interval in points])
    half = scale * np.nan_to_num(np.array([interval.half for _, interval in points]))
    axes.errorbar(at, mean, yerr=half, label=label, **_style(style) | more)


def row(axes: Any, table: Table, label: str, style: int = 0, scale: float = 1.0, **more: Any) -> None:
    """The mean of `value` over repetitions as the next row of a list of methods, with its interval."""
    mean, half = mean_interval(table.groupby("repetition")["value"].mean().to_numpy())
    place = len(axes.containers)
    axes.errorbar(scale * mean, place, xerr=scale * np.nan_to_num(half), label=label, **_style(style) | more)
    axes.set_yticks(range(place + 1), [one.get_label() for one in axes.containers], fontsize=8)
    axes.set_ylim(place + 0.6, -0.6)  # the first at the top


def _style(place: int) -> dict[str, Any]:
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
    return {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.4, "capsize": 2, "elinewidth": 0.8}


def _by_repetition(table: Table, x: str) -> Table:
    """One value per repetition: agents and classes are averaged first."""
    return table.groupby([x, "repetition"])["value"].mean().reset_index()


def _limit_heights(axes: Any) -> None:
    """Whole intervals, unless few repetitions make them wide: then limits by the curves."""
    caps = [cap for container in axes.containers for cap in container.lines[1]]
    curves = [line for line in axes.lines if line not in caps]
    means, whole = (
        [y for line in lines for y in np.asarray(line.get_ydata(), np.float64) if np.isfinite(y)]
        for lines in (curves, [*curves, *caps])
    )
    if means:
        heights = whole if np.ptp(whole) <= MUCH * np.ptp(means) else means
        low, high = min(heights), max(heights)
        room = (0.05 if heights is whole else 0.12) * (high - low or abs(high) or 1.0)
        axes.set_ylim(low - room, high + room)


def finish(axes: Any, xlabel: str, ylabel: str, title: str = "", legend: bool = True) -> None:
    """Labels, a grid, and a legend if there is something to tell apart."""
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(alpha=0.3)
    if title:
        axes.set_title(title, fontsize=10)
    if axes.containers and not axes.patches:
        _limit_heights(axes)
    names = axes.get_legend_handles_labels()[0]
    if legend and len(names) > 4:
        legend_below(axes)
    elif legend and names:
        axes.legend(fontsize=7)


def legend_below(axes: Any, columns: int = 3) -> None:
    """A legend where it hides nothing, if there is something to tell apart."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=columns)


def whole_numbers(axes: Any) -> None:
    """Ticks of rounds and of agents: there are no halves."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))  # the last of 20 rounds has a tick
    axes.set_xmargin(0.02)  # or the axis would go on to a round that there is not


def save(figure: Any, path: Path, dpi: int) -> None:
    """Write a figure, nothing of it cut off; the same figure gives the same bytes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(plots.to_bytes(figure, path.suffix[1:], dpi))
    except OSError as problem:
        raise InputFileError(f"cannot write {path}: {problem.strerror or problem}") from None


def log_sizes(axes: Any, sizes: Any) -> None:
    """N_0 on a logarithmic axis with a tick at each value."""
    values = sorted({int(size) for size in sizes})
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:,}" for value in values])
    axes.minorticks_off()
