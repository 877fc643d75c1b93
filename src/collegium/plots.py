"""The pictures of the core: a network, and errors against rounds. matplotlib is loaded only here, when drawing."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputFileError
from collegium.policy import Policy
from collegium.topology.deterministic import circle

MANY = 400
"""Above this many agents a drawing of every link is a blot; their Perron weights are drawn instead."""

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7F7F7F"  # safe for colour-blind readers (Okabe and Ito)


def network_figure(policy: Policy, title: str) -> Any:
    """The network, every agent coloured by its Perron weight; self-loops are left out."""
    if policy.size > MANY:
        return _perron_figure(policy, title)
    from matplotlib.patches import FancyArrowPatch

    figure, axes = _canvas((6.4, 6.0))
    graph, pi = policy.graph, policy.perron
    places = circle(policy.size) if graph.positions is None else graph.positions
    radius = 12 if policy.size <= 40 else 7
    both = graph.is_undirected
    for l, k in zip(graph.indices.tolist(), graph.hearers.tolist(), strict=True):
        if l == k or (both and l > k):
            continue
        axes.add_patch(
            FancyArrowPatch(
                tuple(places[l]),
                tuple(places[k]),
                arrowstyle="-" if both else "-|>",
                mutation_scale=11,
                connectionstyle="arc3" if both else "arc3,rad=0.08",
                shrinkA=radius,
                shrinkB=radius,
                color=GREY,
                linewidth=1.0,
            )
        )
    dots = axes.scatter(
        *places.T, s=(2 * radius) ** 2, c=pi, cmap="cividis", edgecolors="black", linewidths=0.8, zorder=3,
        vmin=0, vmax=pi.max(),
    )  # fmt: skip
    if policy.size <= 40:
        for k, place in enumerate(places):
            dark = pi[k] < 0.6 * pi.max()
            axes.annotate(
                str(k), place, ha="center", va="center", fontsize=8, color="white" if dark else "black", zorder=4
            )
    figure.colorbar(dots, ax=axes, label="Perron weight (say in the end)", shrink=0.75)
    axes.set_aspect("equal")
    axes.margins(0.12)
    axes.set_axis_off()
    axes.set_title(title)
    return figure


def _perron_figure(policy: Policy, title: str) -> Any:
    figure, axes = _canvas((6.4, 4.2))
    axes.hist(policy.perron * policy.size, bins=60, color=BLUE)
    axes.set_xlabel("Perron weight × number of agents (1 = an equal say)")
    axes.set_ylabel("agents")
    axes.set_title(title)
    return figure


def error_figure(errors: NDArray[np.float64], reference: dict[str, float], title: str) -> Any:
    """Every agent's error against rounds, their mean, and horizontal lines for other methods; errors is (T+1, K)."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = _canvas((6.8, 4.4))
    rounds = np.arange(len(errors))
    for k in range(errors.shape[1]):
        axes.plot(
            rounds, 100 * errors[:, k], color=GREY, linewidth=0.8, alpha=0.7, label="each agent" if k == 0 else None
        )
    axes.plot(
        rounds, 100 * errors.mean(axis=1), color=BLUE, linewidth=2.4, marker="o", markersize=4, label="mean of agents"
    )
    for style, (name, value) in zip(("--", ":", "-."), reference.items(), strict=False):
        axes.axhline(100 * value, color=ORANGE, linestyle=style, linewidth=1.5, label=name)
    axes.set_xlabel("communication round (0 = each agent alone)")
    axes.set_ylabel("test error (%)")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend()
    axes.set_title(title)
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure; the kind of file follows the name."""
    kinds = sorted(figure.canvas.get_supported_filetypes())
    if path.suffix.lstrip(".").lower() not in kinds:
        raise InputFileError(f"cannot draw into {path}: the name must end in one of {', '.join(kinds)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except OSError as problem:
        raise InputFileError(f"cannot write {path}: {problem.strerror or problem}") from problem


def _canvas(size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure outside pyplot, so that nothing depends on a display and nothing stays open."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()
