"""The pictures of the core: a network, and errors against rounds. matplotlib is loaded only here, when drawing."""

import io
import textwrap
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputFileError
from collegium.policy import Policy
from collegium.topology.deterministic import circle

if TYPE_CHECKING:
    from collegium.fusion import ComparisonRow
    from collegium.network import Run
    from collegium.planner import Answer
    from collegium.theory.certificate import Certificate

MANY = 400
"""Above this many agents a drawing of every link is a blot; their Perron weights are drawn instead."""

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#7F7F7F"  # safe for colour-blind readers (Okabe and Ito)
CLASSES = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31", "#6B4C9A", "#8A9A00")
"""One colour per class; more classes begin again with another line."""


_ROUND_NUMBERS = [factor * 10**power for power in range(7) for factor in (1, 2, 5)]


def network_figure(policy: Policy, title: str) -> Any:
    """The network, every agent coloured by its Perron weight; self-loops are left out."""
    if policy.size > MANY:
        return _perron_figure(policy, title)
    from matplotlib.patches import FancyArrowPatch

    figure, axes = _canvas((6.4, 6.0))
    graph, pi = policy.graph, policy.perron
    places = circle(policy.size) if graph.positions is None else graph.positions
    spacing, reach = _spacing(places), _limits(axes, places)
    radius = float(np.clip(0.3 * spacing / reach * 330, 1.5, 12))  # in points: about 330 across the axes
    both = graph.is_undirected
    faint = float(np.clip(6 * policy.size / max(graph.links, 1), 0.1, 1.0))
    for l, k in zip(graph.indices.tolist(), graph.hearers.tolist(), strict=True):
        if l == k or (both and l > k):
            continue
        detour = np.linalg.norm(places - places[l], axis=1) + np.linalg.norm(places - places[k], axis=1)
        is_on_the_way = detour < np.linalg.norm(places[k] - places[l]) + 0.01 * spacing
        bend = 0.18 if is_on_the_way.sum() > 2 else 0.0 if both else 0.08
        axes.add_patch(
            FancyArrowPatch(
                tuple(places[l]),
                tuple(places[k]),
                arrowstyle="-" if both else "-|>",
                mutation_scale=11,
                connectionstyle=f"arc3,rad={bend}",
                shrinkA=radius,
                shrinkB=radius,
                color=GREY,
                alpha=faint,
                linewidth=1.0,
                clip_on=False,
            )
        )
    dots = axes.scatter(
        *places.T, s=(2 * radius) ** 2, c=pi, cmap="cividis", edgecolors="black", linewidths=0.8, zorder=3,
        vmin=0, vmax=pi.max(),
    )  # fmt: skip
    if radius >= 7:
        for k, place in enumerate(places):
            dark = round(pi[k] / pi.max(), 6) < 0.6
            axes.annotate(
                str(k), place, ha="center", va="center", fontsize=8, color="white" if dark else "black", zorder=4
            )
    figure.colorbar(dots, ax=axes, label="Perron weight", shrink=0.75)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(_wrapped(title))
    return figure


def _spacing(places: NDArray[np.float64]) -> float:
    """How far from its nearest neighbour an agent typically is."""
    if len(places) < 2:
        return 1.0
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(np.median(apart.min(axis=1))) or 1.0


def _limits(axes: Any, places: NDArray[np.float64]) -> float:
    """Give every agent room, also where all lie on a line; returns the width shown."""
    centre, half = (places.max(axis=0) + places.min(axis=0)) / 2, np.ptp(places, axis=0) / 2
    margin = 0.2 * max(float(half.max()), 1.0)
    half = np.maximum(half + margin, 0.3 * max(float(half.max()), 1.0))
    axes.set_xlim(centre[0] - half[0], centre[0] + half[0])
    axes.set_ylim(centre[1] - half[1], centre[1] + half[1])
    return 2 * float(half.max())


def _wrapped(title: str) -> str:
    return textwrap.fill(title, 64)


def _perron_figure(policy: Policy, title: str) -> Any:
    figure, axes = _canvas((6.4, 4.2))
    shares = policy.perron * policy.size
    axes.hist(shares, bins=60, range=(0, 1.05 * float(shares.max())), color=BLUE)
    axes.set_xlabel("Perron weight × number of agents (1 = equal weights)")
    axes.set_ylabel("agents")
    axes.set_title(_wrapped(title))
    return figure


def error_figure(
    errors: NDArray[np.float64], reference: dict[str, float], title: str, agents: Sequence[str] | None = None
) -> Any:
    """Every agent's error against rounds, their mean, and horizontal lines for other methods; errors is (T+1, K).

    agents: their names; up to nine have a colour each.
    """
    from matplotlib.ticker import MaxNLocator

    figure, axes = _canvas((6.8, 4.4))
    rounds = np.arange(len(errors))
    for colour, label, k in _agent_lines(errors.shape[1], agents):
        axes.plot(rounds, 100 * errors[:, k], color=colour, linewidth=0.9, alpha=0.8, label=label)
    axes.plot(
        rounds, 100 * errors.mean(axis=1), color=BLUE, linewidth=2.4, marker="o", markersize=4, label="mean of agents"
    )
    for style, (name, value) in zip(("--", ":", "-."), reference.items(), strict=False):
        axes.axhline(100 * value, color=ORANGE, linestyle=style, linewidth=1.5, label=name)
    axes.set_xlabel("communication round (0 = each agent alone)")
    axes.set_ylabel("test error (%)")
    axes.set_xlim(-0.03 * max(rounds[-1], 1), 1.03 * max(rounds[-1], 1))
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small" if agents else None)
    axes.set_title(_wrapped(title))
    return figure


def _agent_lines(K: int, agents: Sequence[str] | None) -> list[tuple[str, str | None, int]]:
    """Colour, label and number of every agent: few that have names in a colour each, others in grey."""
    if agents and len(CLASSES) > K:
        return [(CLASSES[k + 1], agents[k], k) for k in range(K)]
    return [(GREY, None if k else "each agent", k) for k in range(K)]


def statistic_figure(run: "Run", item: int, classes: Sequence[str], title: str) -> Any:
    """Every agent's statistic of one item against rounds: of two classes one line an agent, of several one for each
    class, in its colour.

    classes: the names of +1 and -1, or of the entries.
    """
    from matplotlib.ticker import MaxNLocator

    figure, axes = _canvas((6.4, 4.2))
    entries = run.statistics[:, item].reshape(len(run.statistics), run.statistics.shape[2], -1)
    rounds = np.arange(run.rounds + 1 - len(entries), run.rounds + 1)
    several = entries.shape[2] > 1
    for c in range(entries.shape[2]) if several else ():
        colour, style = CLASSES[c % len(CLASSES)], ("-", "--", ":")[c // len(CLASSES) % 3]
        axes.plot(rounds, entries[:, :, c], color=colour, linestyle=style, linewidth=1.0, alpha=0.7)
        axes.plot([], [], color=colour, linestyle=style, linewidth=2, label=classes[c])
    for colour, label, k in () if several else _agent_lines(entries.shape[1], run.agents):
        axes.plot(rounds, entries[:, k, 0], color=colour, linewidth=1.2, alpha=0.8, label=label)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xlabel("communication round (0 = each agent alone)")
    axes.set_ylabel(
        "entry of the statistic" if several else f"statistic (positive: {classes[0]}, negative: {classes[1]})"
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.set_xlim(rounds[0] - 0.03 * max(run.rounds, 1), 1.03 * max(run.rounds, 1))
    axes.legend(ncols=1 + entries.shape[2] // 6, fontsize="small")
    axes.set_title(_wrapped(title))
    return figure


def comparison_figure(rows: "Sequence[ComparisonRow]", together: Collection[str], title: str) -> Any:
    """A bar per method with its error and 95 % interval, the first at the top.

    Colours tell our own method, those trained apart, and those named in `together`, whose agents meet in training.
    """
    from matplotlib.patches import Patch

    figure, axes = _canvas((7.2, 0.36 * len(rows) + 2.0))
    places = np.arange(len(rows))
    errors = 100 * np.array([row.error for row in rows])
    halves = 100 * np.array([row.ci95 for row in rows])
    kinds = {"ours": BLUE, "trained apart": GREY, "trained together": ORANGE}
    colours = [BLUE if row.method.startswith("Ours") else ORANGE if row.method in together else GREY for row in rows]
    axes.barh(places, errors, color=colours, alpha=0.8)
    # An error rate is not negative, whatever its interval says.
    axes.errorbar(
        errors, places, xerr=[np.minimum(halves, errors), halves], fmt="none", ecolor="black", elinewidth=1.2, capsize=3
    )
    for place, error, half in zip(places, errors, halves, strict=True):
        axes.annotate(  # beside the axes: at a whisker's end it would be taken for the value there
            f"{error:.1f} ± {half:.1f}", (1, place), xycoords=("axes fraction", "data"), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=8, annotation_clip=False,
        )  # fmt: skip
    axes.set_yticks(places, [row.method for row in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.1 * max(float((errors + halves).max()), 1.0))
    axes.set_xlabel("test error (%), with 95 % interval")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    present = [Patch(color=colour, alpha=0.8, label=name) for name, colour in kinds.items() if colour in colours]
    figure.legend(handles=present, loc="outside lower center", ncols=3)
    axes.set_title(_wrapped(title))
    return figure


def gains_figure(gains: NDArray[np.float64], names: Sequence[str], title: str, classes: Sequence[str] = ()) -> Any:
    """A bar per agent, (K,), or a bar per agent and class, (K, C); 1 is marked, what each counted before."""
    columns = gains.reshape(len(gains), -1)
    figure, axes = _canvas((max(4.0, 0.45 * len(gains) + 2), 3.6))
    width = 0.8 / columns.shape[1]
    for c in range(columns.shape[1]):
        places = np.arange(len(gains)) + (c - (columns.shape[1] - 1) / 2) * width
        axes.bar(
            places, columns[:, c], width, color=CLASSES[c % len(CLASSES)], label=classes[c] if classes else f"class {c}"
        )
    axes.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_xticks(range(len(gains)), names, rotation=45 if max(map(len, names)) > 3 else 0, ha="right", fontsize=8)
    axes.set_ylabel("gain")
    if columns.shape[1] > 1:
        axes.legend(fontsize=7)
    axes.set_title(_wrapped(title), fontsize=10)
    return figure


def certificate_figure(certificate: "Certificate", title: str) -> Any:
    """The guarantee and the measured error against rounds, worst agent and mean."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = _canvas((6.8, 4.4))
    rounds = np.arange(len(certificate.errors))
    worst = certificate.bound.max(axis=1)  # NaN as long as some agent has no guarantee
    worst = np.where(worst < 1, worst, np.nan)
    for k in range(certificate.errors.shape[1]):
        axes.plot(rounds, 100 * certificate.errors[:, k], color=GREY, linewidth=0.8, alpha=0.6)
    axes.plot([], [], color=GREY, linewidth=0.8, label="measured, each agent")
    axes.plot(rounds, 100 * certificate.errors.mean(axis=1), color=BLUE, linewidth=2.2, label="measured, mean")
    if certificate.evidence is not None:
        most = 100 * certificate.evidence.at_most.max(axis=1)
        axes.plot(rounds, most, "s-", color=GREEN, linewidth=2.2, markersize=4, label="at most (exact), worst agent")
    if np.isfinite(worst).any():
        axes.plot(
            rounds, 100 * worst, "o-", color=ORANGE, linewidth=2.2, markersize=4,
            label="guaranteed by range, worst agent",
        )  # fmt: skip
    if certificate.limit < 1:
        axes.axhline(100 * certificate.limit, color=ORANGE, linestyle=":", label="the same after enough rounds")
    if not np.isfinite(worst).any() and not certificate.no_theorem:
        why = "the margin is not positive" if certificate.delta <= 0 else "the bound is 100 % or more"
        axes.text(0.5, 0.9, f"no guarantee by range: {why}", ha="center", transform=axes.transAxes)
    axes.set_xlabel("communication round (0 = each agent alone)")
    axes.set_ylabel("error (%)")
    axes.set_ylim(0, 102)
    axes.set_xlim(-0.03 * max(rounds[-1], 1), 1.03 * max(rounds[-1], 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend()
    axes.set_title(_wrapped(title))
    return figure


def plan_figure(answer: "Answer", title: str) -> Any:
    """The front of error against bits, where it was chosen and on the other half with intervals."""
    figure, axes = _canvas((6.8, 4.4))
    front = answer.front
    chosen = sorted((one.chosen_bits, 100 * one.chosen_error) for one in front)
    axes.plot(
        *zip(*chosen, strict=True),
        color=GREY, linewidth=1.0, marker=".", label="on the half they were chosen by",
    )  # fmt: skip
    axes.errorbar(
        [one.bits.mean for one in front], [100 * one.error.mean for one in front],
        yerr=[100 * one.error.half for one in front], fmt="o", color=BLUE, markersize=4, capsize=2, elinewidth=0.8,
        label="on the other half, with 95 % interval",
    )  # fmt: skip
    best = answer.recommended
    axes.plot(
        best.bits.mean, 100 * best.error.mean, "*", color=ORANGE, markersize=16, zorder=5,
        label="recommended" if answer.met else "not met; nearest",
    )  # fmt: skip
    axes.axhline(100 * answer.alone.mean, color=GREY, linestyle="--", linewidth=1.0, label="each agent alone")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xticks([tick for tick in _ROUND_NUMBERS if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("bits per item")
    axes.set_ylabel("mean error of the agents (%)")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")  # where it hides no interval
    axes.set_title(_wrapped(title))
    return figure


def check_name(path: Path) -> None:
    """Refuse a picture's file name before the work is done; the kind of file follows the name."""
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lstrip(".").lower() not in kinds:
        raise InputFileError(f"cannot draw into {path}: the name must end in one of {', '.join(kinds)}")


def save(figure: Any, path: Path) -> None:
    """Write a figure."""
    check_name(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except OSError as problem:
        raise InputFileError(f"cannot write {path}: {problem.strerror or problem}") from problem


def to_bytes(figure: Any, ending: str, dpi: int) -> bytes:
    """A figure as the content of a PNG or PDF file."""
    buffer = io.BytesIO()
    metadata = {"CreationDate": None} if ending == "pdf" else {"Software": None}
    figure.savefig(buffer, dpi=dpi, format=ending, bbox_inches="tight", metadata=metadata)
    return buffer.getvalue()


def panels(count: int, *, width: float = 4.6, height: float = 3.6, rows: int = 1) -> tuple[Any, list[Any]]:
    """A figure with axes side by side, outside pyplot, so that nothing depends on a display and nothing stays open."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = -(-count // rows)
    layout = ConstrainedLayoutEngine(w_pad=0.1)  # or a label touches the panel on its left
    figure = Figure(figsize=(width * columns, height * rows), layout=layout)
    FigureCanvasAgg(figure)
    axes = list(np.atleast_1d(figure.subplots(rows, columns)).ravel())
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]


def _canvas(size: tuple[float, float]) -> tuple[Any, Any]:
    figure, (axes,) = panels(1, width=size[0], height=size[1])
    return figure, axes
