"""Topology, rule for A, and precision: Fig. 10 and its grouped views."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from collegium import policy
from collegium._util import randomness
from collegium.lab import study_networks
from collegium.lab.claims import Claim, above, all_of, exactly, within
from collegium.lab.figures import COLOURS, curve, finish, whole_numbers
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.main import ModelNetMain
from collegium.lab.study import Options, Study, sizes
from collegium.lab.table import StudyRow, Table
from collegium.network import sweep
from collegium.plots import network_figure, panels
from collegium.policy import Policy
from collegium.protocol import DeGroot, Quantised, Rule

ROUNDS = 20
REALISATIONS = 30
WEIGHINGS = {"uniform": policy.uniform, "Metropolis": policy.metropolis}
PRECISIONS: dict[str, Rule] = {
    "full": DeGroot(),
    **{f"{bits} bits": Quantised(DeGroot(), bits, bound=2.0) for bits in (8, 6, 4)},
}


@cache
def policies() -> dict[tuple[str, str], Policy]:
    """Every graph with every rule, made once."""
    return {
        (g, w): build(graph) for (g, graph), (w, build) in product(study_networks.graphs().items(), WEIGHINGS.items())
    }


class FullModelNet(Study):
    """What the studies of communication share: the ModelNet records at the full size."""

    def jobs(self, options: Options) -> list[Job]:
        """The records of `modelnet-main` at its largest size."""
        largest = max(sizes(options, ModelNetMain.usual_sizes, ModelNetMain.quick_sizes))
        return [job for job in ModelNetMain().jobs(options) if job.n0 == largest]


class Topology(FullModelNet):
    """Three graphs, two rules, four precisions; 30 realisations of the quantiser per repetition."""

    name = "topology"
    title = "Topology, rule for the weights and precision of messages"
    figures = "Fig. 10, 18–21"

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """The mean error of the agents after every round, on bounded scores."""
        s = record.scores
        c = s.statistics("test", bounded=True)
        seed = randomness.child(options.seed, job.repetition)
        for (graph, weighing), over in policies().items():
            exact = sweep(c, over, [PRECISIONS["full"]], s.y_test, ROUNDS)
            coarse = sweep(c, over, list(PRECISIONS.values())[1:], s.y_test, ROUNDS, seed, realisations=REALISATIONS)
            errors = np.concatenate([exact.errors.mean(axis=(1, 3)), coarse.errors.mean(axis=(1, 3))])
            for precision, by_round in zip(PRECISIONS, errors, strict=True):
                for t, value in enumerate(by_round):
                    method = f"{graph}, {weighing}, {precision}"
                    yield StudyRow(self.name, job.n0, job.repetition, "error", method, -1, t, float(value))

    def draw(self, table: Table) -> dict[str, Any]:
        """One panel with all, then grouped by topology, by rule and by precision; and the graphs."""
        split = table["method"].str.split(", ", expand=True)
        table = table.assign(graph=split[0], weighing=split[1], precision=split[2])
        whole, (axes,) = panels(1, width=7.5, height=5)
        _curves(axes, table, ("graph", "weighing", "precision"))
        finish(axes, "communication round", "error (%)")
        found = {"topology": whole}
        for name, column in (("by-topology", "graph"), ("by-rule", "weighing"), ("by-precision", "precision")):
            values = list(dict.fromkeys(table[column]))
            figure, all_axes = panels(len(values), rows=2 if len(values) == 4 else 1)
            rest = tuple(one for one in ("graph", "weighing", "precision") if one != column)
            for axes, value in zip(all_axes, values, strict=True):
                _curves(axes, table[table[column] == value], rest)
                finish(axes, "communication round", "error (%)", str(value))
            found[f"topology-{name}"] = figure
        for name, graph in zip(("ring", "grid", "random"), study_networks.graphs(), strict=True):
            title = f"{graph}, {study_networks.graphs()[graph].links} directed links, self-loops not drawn"
            found[f"topology-{name}"] = network_figure(policies()[graph, "Metropolis"], title)
        return found

    def claims(self, table: Table) -> list[Claim]:
        """Spectra, precision, and limits."""
        sigma = {pair: over.slem for pair, over in policies().items()}
        apart = float(np.abs(policies()["ring", "uniform"].A - policies()["ring", "Metropolis"].A).max())
        order = all(sigma["ring", w] > sigma["grid", w] > sigma["Erdős–Rényi", w] for w in WEIGHINGS)
        listed = ", ".join(f"{g} {w} {value:.3f}" for (g, w), value in sigma.items())
        last = table[table["round"] == ROUNDS].pivot_table(index="repetition", columns="method", values="value")
        pairs = [f"{g}, {w}" for g, w in policies()]
        lost = {
            p: {bits: last[f"{p}, {bits}"] - last[f"{p}, full"] for bits in PRECISIONS if bits != "full"} for p in pairs
        }
        limits = last["ring, Metropolis, full"] - last["grid, Metropolis, full"]
        gain = table[table["method"].str.endswith("full")].pivot_table(
            index="repetition", columns=["method", "round"], values="value"
        )
        early = [(p, above(gain[f"{p}, full", 0] - gain[f"{p}, full", 3])) for p in pairs]
        said = [
            (
                "on the ring both rules give one matrix",
                exactly(apart < 1e-12, f"they differ by {apart:.1g}"),
            ),
            ("σ_A: ring above grid above random, for both rules", exactly(order, listed)),
            ("all settings gain in the first three rounds", all_of(early)),
            (
                "8 bits are like full precision (within half a point)",
                all_of([(p, within(lost[p]["8 bits"], 0.005)) for p in pairs]),
            ),
            (
                "6 bits lie between: they lose more than 8 bits and less than 4",
                all_of(
                    [
                        (f"{p}, {coarse} against {fine}", above(lost[p][coarse] - lost[p][fine]))
                        for p in pairs
                        for coarse, fine in (("6 bits", "8 bits"), ("4 bits", "6 bits"))
                    ]
                ),
            ),
            ("4 bits lose against full precision", all_of([(p, above(lost[p]["4 bits"])) for p in pairs])),
            ("Metropolis ring and grid reach one limit (within a point at round 20)", within(limits, 0.01)),
            (
                "the grid has the lowest error (uniform, full precision)",
                all_of(
                    [
                        (f"against {g}", above(last[f"{g}, uniform, full"] - last["grid, uniform, full"]))
                        for g in ("ring", "Erdős–Rényi")
                    ]
                ),
            ),
            (
                "the ring ends below the random graph, which has as many links (full precision)",
                all_of([(w, above(last[f"Erdős–Rényi, {w}, full"] - last[f"ring, {w}, full"])) for w in WEIGHINGS]),
            ),
            (
                "on the grid uniform averaging beats Metropolis",
                above(last["grid, Metropolis, full"] - last["grid, uniform, full"]),
            ),
            (
                "on the random graph uniform averaging beats Metropolis at every precision",
                all_of(
                    [
                        (one, above(last[f"Erdős–Rényi, Metropolis, {one}"] - last[f"Erdős–Rényi, uniform, {one}"]))
                        for one in PRECISIONS
                    ]
                ),
            ),
        ]
        return self._claims(said)


def _curves(axes: Any, table: Table, columns: tuple[str, ...]) -> None:
    whole_numbers(axes)
    graphs, weighings, precisions = list(study_networks.graphs()), list(WEIGHINGS), list(PRECISIONS)
    dashes = {"full": "-", "8 bits": "--", "6 bits": "-.", "4 bits": ":"}
    for values, part in table.groupby(list(columns), sort=False):
        known = dict(zip(columns, values, strict=True))
        graph, weighing = known.get("graph", graphs[0]), known.get("weighing", weighings[0])
        place = 2 * graphs.index(graph) + weighings.index(weighing)
        precision = known.get("precision", precisions[0])
        curve(
            axes, part, "round", ", ".join(map(str, values)), place, 100, linestyle=dashes[precision], markersize=2,
            color=COLOURS[place if len(columns) > 1 else 0],
        )  # fmt: skip
