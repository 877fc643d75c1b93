"""Topology, rule for A, and precision: Fig. 10 and its grouped views."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import Any, ClassVar

import numpy as np

from collegium import policy
from collegium._util import randomness
from collegium.lab import study_networks
from collegium.lab.claims import Claim, above, all_of, below, exactly, most_of, within
from collegium.lab.figures import COLOURS, curve, finish, whole_numbers
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.full_size import FullSize, agents_of
from collegium.lab.studies.main import CLOSE
from collegium.lab.study import Options
from collegium.lab.table import Factors, StudyRow, Table, values
from collegium.network import sweep
from collegium.plots import network_figure, panels
from collegium.policy import Policy
from collegium.protocol import DeGroot, Quantised, Rule

ROUNDS = 20
REALISATIONS = 30
EARLY = (1, 2, 3)
"""Rounds that are called early."""
GRAPHS = {"ring": "ring", "grid": "grid", "Erdős–Rényi": "random"}
"""What the files with their pictures are called."""
WEIGHINGS = {"uniform": policy.uniform, "Metropolis": policy.metropolis}
FULL = 64
"""Bits of a message in full precision."""
PRECISIONS: dict[int, Rule] = {FULL: DeGroot(), **{bits: Quantised(DeGroot(), bits, bound=2.0) for bits in (8, 6, 4)}}
"""Rules by the bits of a message."""


@cache
def policies(K: int) -> dict[tuple[str, str], Policy]:
    """Every graph with every rule, made once."""
    graphs = study_networks.graphs(K)
    return {(g, w): build(graph) for (g, graph), (w, build) in product(graphs.items(), WEIGHINGS.items())}


class Topology(FullSize):
    """Three graphs, two rules, four precisions; 30 realisations of the quantiser per repetition."""

    name = "topology"
    title = "Topology, rule for the weights and precision of messages"
    figures = "Fig. 10, H.6–H.9"
    kind = "topology"
    factors: ClassVar[Factors] = {"topology": str, "weights": str, "precision": int}

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """The mean error of the agents after every round, on bounded scores."""
        s = record.scores
        c = s.statistics("test", bounded=True)
        seed = randomness.child(options.seed, job.repetition)
        yield self.row(job, "agents", s.size)
        for (graph, weighing), over in policies(s.size).items():
            exact = sweep(c, over, [PRECISIONS[FULL]], s.y_test, ROUNDS)
            coarse = sweep(c, over, list(PRECISIONS.values())[1:], s.y_test, ROUNDS, seed, realisations=REALISATIONS)
            errors = np.concatenate([exact.errors.mean(axis=(1, 3)), coarse.errors.mean(axis=(1, 3))])
            for precision, by_round in zip(PRECISIONS, errors, strict=True):
                levels: dict[str, Any] = {"topology": graph, "weights": weighing, "precision": precision}
                for t, value in enumerate(by_round):
                    yield self.row(job, "error", value, method="Ours", round=t, **levels)

    def draw(self, table: Table) -> dict[str, Any]:
        """One panel with all, then grouped by topology, by rule and by precision; and the graphs."""
        over, table = policies(agents_of(table)), table[table["quantity"] == "error"]
        whole, (axes,) = panels(1, width=7.5, height=5)
        _overview(axes, table)
        found = {self.name: whole}
        for name, column in (("by-topology", "topology"), ("by-rule", "weights"), ("by-precision", "precision")):
            levels = list(dict.fromkeys(table[column]))
            figure, all_axes = panels(len(levels), rows=2 if len(levels) == 4 else 1)
            rest = [one for one in self.factors if one != column]
            for axes, level in zip(all_axes, levels, strict=True):
                axes.sharey(all_axes[0])
                _curves(axes, table[table[column] == level], rest)
                finish(axes, "communication round", "error (%)", _name(level))
            limits = [axes.dataLim.intervaly for axes in all_axes]
            room = 0.04 * (np.max(limits) - np.min(limits))
            all_axes[0].set_ylim(np.min(limits) - room, np.max(limits) + room)
            found[f"{self.name}-{name}"] = figure
        for graph, name in GRAPHS.items():
            one = over[graph, "Metropolis"]
            title = f"{graph}, {one.links} directed links, self-loops not drawn"
            found[f"{self.name}-{name}"] = network_figure(one, title)
        return found

    def claims(self, table: Table) -> list[Claim]:
        """Spectra, precision, and limits; what turns with the random graph is judged in `graphs`."""
        over = policies(agents_of(table))
        sigma = {pair: one.slem for pair, one in over.items()}
        apart = float(np.abs(over["ring", "uniform"].A - over["ring", "Metropolis"].A).max())
        order = all(sigma["ring", w] > sigma["grid", w] > sigma["Erdős–Rényi", w] for w in WEIGHINGS)
        listed = ", ".join(f"{g} {w} {value:.3f}" for (g, w), value in sigma.items())

        def error(graph: str, weighing: str, bits: int = FULL, t: int = ROUNDS) -> Any:
            return values(table, topology=graph, weights=weighing, precision=bits, round=t)

        lost = {
            f"{g}, {w}": {bits: error(g, w, bits) - error(g, w) for bits in PRECISIONS if bits != FULL} for g, w in over
        }
        limits = error("ring", "Metropolis") - error("grid", "Metropolis")
        early = [
            (f"{g}, {w}, {_name(bits)}, round {t}", above(error(g, w, bits, t=0) - error(g, w, bits, t=t)))
            for g, w in over
            for bits in PRECISIONS
            for t in EARLY
        ]
        behind = {pair: error(*pair, t=EARLY[-1]) - error(*pair) for pair in over}
        slower = [(f"{g}, {w}", above(behind["ring", w] - behind[g, w])) for g, w in over if g != "ring"]
        gap = {bits: error("grid", "Metropolis", bits) - error("grid", "uniform", bits) for bits in PRECISIONS}
        spread = {
            g: np.ptp([error(g, w, bits).to_numpy() for w in WEIGHINGS for bits in PRECISIONS], axis=0) for g in GRAPHS
        }
        said = [
            (
                "on the ring both rules give one matrix",
                exactly(apart < 1e-12, f"they differ by {apart:.1g}"),
            ),
            (
                "on the ring both rules give one error at every precision and round (within a tenth of a point)",
                all_of(
                    [
                        (f"{_name(bits)}, round {t}", within(error("ring", "uniform", bits, t) - again, 0.001))
                        for bits in PRECISIONS
                        for t in range(1, ROUNDS + 1)
                        for again in [error("ring", "Metropolis", bits, t)]
                    ]
                ),
            ),
            ("σ_A: ring above grid above random, for both rules", exactly(order, listed)),
            ("all settings gain in each of the first three rounds, at every precision", all_of(early)),
            (
                "8 bits are like full precision (within half a point at every round)",
                all_of(
                    [
                        (f"{g}, {w}, round {t}", within(error(g, w, 8, t) - error(g, w, FULL, t), 0.005))
                        for g, w in over
                        for t in range(1, ROUNDS + 1)
                    ]
                ),
            ),
            (
                "6 bits lie between: they lose more than 8 bits and less than 4",
                all_of(
                    [
                        (f"{p}, {_name(coarse)} against {_name(fine)}", above(by_bits[coarse] - by_bits[fine]))
                        for p, by_bits in lost.items()
                        for coarse, fine in ((6, 8), (4, 6))
                    ]
                ),
            ),
            ("4 bits lose against full precision", all_of([(p, above(by_bits[4])) for p, by_bits in lost.items()])),
            ("Metropolis ring and grid reach one limit (within a point at round 20)", within(limits, 0.01)),
            (
                "the grid ends below the ring, which has fewer links, with most rules and precisions",
                most_of(
                    [
                        (f"{w}, {_name(bits)}", above(error("ring", w, bits) - error("grid", w, bits)))
                        for w in WEIGHINGS
                        for bits in PRECISIONS
                    ]
                ),
            ),
            (
                f"the ring is competitive: at most {100 * CLOSE:g} points above the grid at every precision",
                all_of(
                    [
                        (f"{w}, {_name(bits)}", below(error("ring", w, bits) - error("grid", w, bits), CLOSE))
                        for w in WEIGHINGS
                        for bits in PRECISIONS
                    ]
                ),
            ),
            (
                "on the grid uniform averaging beats Metropolis at every precision",
                all_of([(_name(bits), above(one)) for bits, one in gap.items()]),
            ),
            ("there the gap is smaller at 4 bits than at full precision", above(gap[FULL] - gap[4])),
            ("the ring nears its limit more slowly (error at round 3 less that at round 20)", all_of(slower)),
            (
                "the random graph is more sensitive to weights and precision than the others",
                all_of([(f"than the {g}", above(spread["Erdős–Rényi"] - spread[g])) for g in ("ring", "grid")]),
            ),
        ]
        return self.judged(said)


def _name(level: str | int) -> str:
    """A level of a factor, for people: a precision in bits, the others by their names."""
    if isinstance(level, str):
        return level
    return "full" if level == FULL else f"{level} bits"


DASHES = {FULL: "-", 8: "--", 6: "-.", 4: ":"}


def _overview(axes: Any, table: Table) -> None:
    """Every setting in one panel: colours are networks, dashes precisions; intervals are in the grouped views."""
    whole_numbers(axes)
    networks = {("ring", "uniform"): "ring, both rules"} | {
        (g, w): f"{g}, {w}" for g in list(GRAPHS)[1:] for w in WEIGHINGS
    }
    for (graph, weights), name in networks.items():
        colour = COLOURS[_place(graph, weights)]
        part = table[(table["topology"] == graph) & (table["weights"] == weights)]
        for precision, of in part.groupby("precision"):
            by_round = 100 * of.groupby("round")["value"].mean()
            width = 2.2 if precision == FULL else 1.1
            axes.plot(by_round.index, by_round, color=colour, linestyle=DASHES[precision], linewidth=width)
        axes.plot([], [], color=colour, linewidth=2.2, label=name)
    for precision, dashes in DASHES.items():
        axes.plot([], [], color="#7F7F7F", linestyle=dashes, label=_name(precision))
    finish(axes, "communication round", "error (%)")


def _place(graph: str, weighing: str) -> int:
    """A network's place among the colours, the same in all figures that show networks."""
    return 2 * list(GRAPHS).index(graph) + list(WEIGHINGS).index(weighing)


def _curves(axes: Any, table: Table, columns: list[str]) -> None:
    whole_numbers(axes)
    graphs, weighings, precisions = list(GRAPHS), list(WEIGHINGS), list(PRECISIONS)
    for levels, part in table.groupby(columns, sort=False):
        known = dict(zip(columns, levels, strict=True))
        if "weights" in columns and part["topology"].iloc[0] == "ring":  # both rules give one matrix
            if known["weights"] != weighings[0]:
                continue
            levels = tuple("both rules" if level == weighings[0] else level for level in levels)
        graph, weighing = known.get("topology", graphs[0]), known.get("weights", weighings[0])
        place = _place(graph, weighing)
        precision = known.get("precision", precisions[0])
        curve(
            axes, part, "round", ", ".join(map(_name, levels)), place, 100, linestyle=DASHES[precision], markersize=2,
            color=COLOURS[place if len(columns) > 1 else 0],
        )  # fmt: skip
