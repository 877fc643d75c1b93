"""What depends on the drawing of a random graph: the paper's comparisons of networks, over an ensemble of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar

import numpy as np

from collegium import policy, topology
from collegium._util.measures import wrong
from collegium.lab import study_networks
from collegium.lab.claims import Claim, over_graphs
from collegium.lab.figures import COLOURS, finish
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.full_size import FullSize, agents_of
from collegium.lab.study import Options
from collegium.lab.table import Factors, StudyRow, Table
from collegium.plots import panels

GRAPHS = 200
ROUNDS = 20
MAIN, SPARSE = "random, main", "random, as the ring"
"""Random graphs with the links of the main comparison, and with as many as the ring has."""


@cache
def ensemble(K: int) -> dict[tuple[str, str, int], Any]:
    """A^20 of every network: by topology, weights, and the seed of its graph (-1 where there is only one)."""
    graphs = study_networks.graphs(K)
    found = {("grid", -1): graphs["grid"], ("ring", -1): graphs["ring"]}
    for seed in range(GRAPHS):
        found[MAIN, seed] = topology.erdos_renyi(K, links=study_networks.of(K).links, seed=seed)
        found[SPARSE, seed] = topology.erdos_renyi(K, links=graphs["ring"].links, seed=seed)
    rules = {"uniform": policy.uniform, "Metropolis": policy.metropolis}
    return {(g, w, seed): rule(graph).power(ROUNDS) for (g, seed), graph in found.items() for w, rule in rules.items()}


class Graphs(FullSize):
    """Every comparison of networks on 200 random graphs instead of one."""

    name = "graphs"
    title = "The same comparisons on 200 random graphs"
    figures = "Fig. 7, 10: what of them depends on the graph"
    kind = "graphs"
    factors: ClassVar[Factors] = {"topology": str, "weights": str, "graph": int}

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """The mean error of the agents after 20 rounds; bounded scores for the sparse graphs, as in `topology`."""
        s = record.scores
        yield self.row(job, "agents", s.size)
        plain, bounded = s.statistics("test"), s.statistics("test", bounded=True)
        yield self.row(job, "error alone", wrong(plain, s.y_test).mean())
        yield self.row(job, "error of the average", wrong(plain.mean(axis=1), s.y_test).mean())
        for (graph, weights, seed), power in ensemble(s.size).items():
            error = wrong((plain if graph == MAIN else bounded) @ power, s.y_test).mean()
            yield self.row(
                job, "error", error, method="Ours", round=ROUNDS, topology=graph, weights=weights, graph=seed
            )

    def draw(self, table: Table) -> dict[str, Any]:
        """How the errors are spread over the graphs, and where the others lie."""
        figure, (left, right) = panels(2)
        for axes, graph in ((left, MAIN), (right, SPARSE)):
            for i, weights in enumerate(("uniform", "Metropolis")):
                values = 100 * _by_graph(table, graph, weights)
                kind: Any = {"histtype": "step", "linewidth": 1.6} if i else {"alpha": 0.45}
                axes.hist(values, bins=20, color=COLOURS[i], label=weights, **kind)
                median = float(np.median(values))
                axes.axvline(median, color=COLOURS[i], linestyle="--", linewidth=1.2, label=f"median, {weights}")
        alone, average = (100 * _mean(table, name) for name in ("error alone", "error of the average"))
        left.axvline(alone, color="black", linestyle=":", label="alone")
        left.axvline(average, color="black", linewidth=1.2, label="average, at a centre")
        ours = study_networks.seed_of(agents_of(table))
        shown = 100 * float(_by_graph(table, MAIN, "uniform")[ours])
        left.axvline(shown, color=COLOURS[3], linewidth=1.2, label="the graph of the figures")
        for graph, weights, colour, style in (
            ("grid", "uniform", COLOURS[2], "-"),
            ("grid", "Metropolis", COLOURS[3], "-"),
            ("ring", "uniform", "black", "-."),
        ):
            at = 100 * _of(table, graph, weights)["value"].mean()
            label = graph if graph == "ring" else f"{graph}, {weights}"
            right.axvline(at, color=colour, linestyle=style, linewidth=1.6, label=label)
        finish(left, "error after 20 rounds (%)", "graphs of 200", "(a) links of the main comparison")
        finish(right, "error after 20 rounds (%)", "graphs of 200", "(b) as many links as the ring, bounded scores")
        return {self.name: figure}

    def claims(self, table: Table) -> list[Claim]:
        """The statements whose truth turns with the graph: on which share of graphs they hold."""
        alone, average = _mean(table, "error alone"), _mean(table, "error of the average")
        main = _by_graph(table, MAIN, "uniform")
        sparse = {weights: _by_graph(table, SPARSE, weights) for weights in ("uniform", "Metropolis")}
        grid = {weights: float(_of(table, "grid", weights)["value"].mean()) for weights in sparse}
        ring = float(_of(table, "ring", "uniform")["value"].mean())
        apart = np.abs(sparse["Metropolis"] - sparse["uniform"])
        said = [
            ("ours is below non-cooperative at the largest N_0", alone - main),
            ("ours, with uniform weights, is below the plain average (our question)", average - main),
            ("the grid is below the random graph (uniform)", sparse["uniform"] - grid["uniform"]),
            ("the grid is below the random graph (Metropolis)", sparse["Metropolis"] - grid["Metropolis"]),
            ("the ring ends below the random graph, which has as many links (uniform)", sparse["uniform"] - ring),
            ("the ring ends below the random graph, which has as many links (Metropolis)", sparse["Metropolis"] - ring),
            ("on the random graph uniform averaging beats Metropolis", sparse["Metropolis"] - sparse["uniform"]),
            (
                "the random graph is more sensitive to the rule for the weights than the grid",
                apart - abs(grid["Metropolis"] - grid["uniform"]),
            ),
        ]
        return self.judged((claim, over_graphs(difference)) for claim, difference in said)


def _of(table: Table, graph: str, weights: str) -> Table:
    return table[(table["quantity"] == "error") & (table["topology"] == graph) & (table["weights"] == weights)]


def _by_graph(table: Table, graph: str, weights: str) -> Any:
    """The mean over repetitions on each graph, by seed."""
    return _of(table, graph, weights).groupby("graph")["value"].mean().to_numpy()


def _mean(table: Table, quantity: str) -> float:
    return float(table[table["quantity"] == quantity]["value"].mean())
