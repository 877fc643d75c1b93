"""What depends on the drawing of a random graph: the paper's comparisons, over an ensemble of graphs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from collegium import fusion, topology
from collegium._util import randomness
from collegium._util.measures import wrong
from collegium.lab import study_networks
from collegium.lab.claims import Claim, Finding, over_graphs
from collegium.lab.figures import COLOURS, finish, log_sizes
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.full_size import FullSize, agents_of
from collegium.lab.studies.main import (
    CLOSE,
    COMPETITIVE,
    EVERYWHERE,
    FEW,
    FUSIONS,
    JOINT,
    POLICY,
    RAW,
    STABLE,
    VISIBLE,
    CifarMain,
    MainStudy,
    stronger,
)
from collegium.lab.studies.topology import EARLY, FULL, PRECISIONS, ROUNDS, WEIGHINGS
from collegium.lab.study import Options, Study
from collegium.lab.table import Factors, StudyRow, Table
from collegium.network import sweep
from collegium.plots import panels
from collegium.policy import Policy

GRAPHS = 200
MAIN, SPARSE = "random, main", "random, as the ring"
"""Random graphs with the links of the main comparison, and with as many as the ring has."""
OTHERS = "error of another method"
ALONE = "error alone, bounded scores"
UNCENTRED = "Ours (no centering)"
EXTREMES = (max(PRECISIONS), min(PRECISIONS))
"""Precisions whose early rounds are looked at; the others lie between."""
NAMES = {bits: "Ours" if bits == FULL else f"Ours, {bits} bits" for bits in PRECISIONS}


@cache
def networks(K: int, links: int) -> dict[str, list[Policy]]:
    """Random graphs with so many links and every rule for the weights, in the order of their seeds."""
    drawn = [topology.erdos_renyi(K, links=links, seed=seed) for seed in range(GRAPHS)]
    return {name: [rule(graph) for graph in drawn] for name, rule in WEIGHINGS.items()}


@cache
def powers(K: int, links: int, weights: str, rounds: int) -> Any:
    """A^rounds on every graph, shape (graphs, K, K)."""
    return np.stack([one.power(rounds) for one in networks(K, links)[weights]])


def _errors(x: Any, y: Any, powers: Any) -> Any:
    """The mean error of the agents on every graph; a tie is wrong."""
    return (~((x @ powers) * y[:, None] > 0)).mean(axis=(1, 2))


class MainGraphs(Study):
    """The main comparison on 200 random graphs instead of one, at every N_0."""

    main: MainStudy
    factors: ClassVar[Factors] = {"topology": str, "weights": str, "graph": int}

    def jobs(self, options: Options) -> list[Job]:
        """The records of the main study; methods that train on views are not asked for."""
        return [replace(job, methods=False) for job in self.main.jobs(options)]

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """The mean error of the agents after 20 rounds and some earlier ones, and those of the methods beside ours."""
        s = record.scores
        K, links, y = s.size, study_networks.of(s.size).links, s.y_test
        plain, raw = s.statistics("test"), s.test
        yield self.row(job, "agents", K)
        yield self.row(job, "error alone", wrong(plain, y).mean())
        yield self.row(job, "error of the average", wrong(plain.mean(axis=1), y).mean())
        fusions = (fusion.AvgStat(), fusion.Vote(), fusion.LearnedFusion(), fusion.SimplexFusion())
        for method in fusions:
            yield self.row(job, OTHERS, method.fit(s).decide(s.test).error(y), method=method.name)
        if (joint := record.methods.get("VFL-JT")) is not None:
            yield self.row(job, OTHERS, wrong(joint.statistic, y).mean(), method="VFL-JT")
        wanted = [("Ours", plain, ROUNDS, "uniform"), (UNCENTRED, raw, ROUNDS, "uniform")]
        if self._is_largest(job, options):
            wanted += [("Ours", plain, t, "uniform") for t in (5, 10)] + [("Ours", plain, ROUNDS, "Metropolis")]
        for name, x, t, weights in wanted:
            yield from self._of_graphs(job, _errors(x, y, powers(K, links, weights, t)), name, t, MAIN, weights)

    def _is_largest(self, job: Job, options: Options) -> bool:
        """Whether its N_0 is the largest: networks and rounds are compared there alone."""
        return job.n0 == max(self.main.sizes(options))

    def _of_graphs(self, job: Job, errors: Any, method: str, t: int, graphs: str, weights: str) -> Iterable[StudyRow]:
        for seed, error in enumerate(errors):
            levels: dict[str, Any] = {"topology": graphs, "weights": weights, "graph": seed}
            yield self.row(job, "error", error, method=method, round=t, **levels)

    def draw(self, table: Table) -> dict[str, Any]:
        """How the errors at the largest N_0 are spread over the graphs, and their spread against N_0."""
        figure, axes = panels(self._panels(table))
        self._draw_main(table, axes)
        return {self.name: figure}

    def _panels(self, table: Table) -> int:
        return 2 if table["n0"].nunique() > 1 else 1

    def _draw_main(self, table: Table, all_axes: Any) -> None:
        largest = table[table["n0"] == table["n0"].max()]
        left = all_axes[0]
        _histograms(left, largest, MAIN)
        alone, average = (100 * _mean(largest, name) for name in ("error alone", "error of the average"))
        left.axvline(alone, color="black", linestyle=":", label="alone")
        left.axvline(average, color="black", linewidth=1.2, label="average, at a centre")
        ours = study_networks.seed_of(agents_of(table))
        shown = 100 * float(_by_graph(largest, MAIN, "uniform")[ours])
        left.axvline(shown, color=COLOURS[4], linewidth=1.2, label="the graph of the figures")
        n0 = largest["n0"].iloc[0]
        finish(left, "error after 20 rounds (%)", f"graphs of {GRAPHS}", f"(a) on the main graphs, $N_0$ = {n0:,}")
        if table["n0"].nunique() == 1:
            return
        right = all_axes[1]
        spread = 100 * np.percentile(_of(table, MAIN, "uniform").pivot_table(
            index="n0", columns="graph", values="value"), (5, 50, 95), axis=1)  # fmt: skip
        at = sorted(table["n0"].unique())
        right.fill_between(at, spread[0], spread[2], color=COLOURS[0], alpha=0.25, label="nine of ten graphs")
        right.plot(at, spread[1], "o-", color=COLOURS[0], markersize=4, label="median graph")
        one = _of(table, MAIN, "uniform")
        one = one[one["graph"] == ours]
        right.plot(at, 100 * one.groupby("n0")["value"].mean(), color=COLOURS[4], label="the graph of the figures")
        for name, dashes in (("error alone", ":"), ("error of the average", "-")):
            part = table[table["quantity"] == name].groupby("n0")["value"].mean()
            label = "alone" if dashes == ":" else "average, at a centre"
            right.plot(at, 100 * part, color="black", linestyle=dashes, linewidth=1.2, label=label)
        log_sizes(right, at)
        finish(right, "$N_0$", "error after 20 rounds (%)", "(b) uniform weights")

    def claims(self, table: Table) -> list[Claim]:
        """What the paper says of the main comparison: on which share of graphs it is so."""
        return self.judged((claim, over_graphs(difference)) for claim, difference in self._of_main(table))

    def _of_main(self, table: Table) -> list[tuple[str, Any]]:
        """Statements, each with a number for every graph that is positive where it holds; means over repetitions."""
        asked, keys = self.main.asked, ["n0", "repetition"]
        errors = table[(table["quantity"] == "error") & (table["topology"] == MAIN) & (table["weights"] == "uniform")]

        def at(t: int = ROUNDS, method: str = "Ours") -> Any:
            part = errors[(errors["round"] == t) & (errors["method"] == method)]
            return part.pivot_table(index=keys, columns="graph", values="value")

        def mean(difference: Any) -> Any:
            """Of each graph, at every N_0: shape (sizes, graphs)."""
            return difference.dropna().groupby("n0").mean()

        alone, average = (
            table[table["quantity"] == name].set_index(keys)["value"]
            for name in ("error alone", "error of the average")
        )
        others = table[table["quantity"] == OTHERS].pivot_table(index=keys, columns="method", values="value")
        ours, largest = at(), table["n0"].max()
        gains = mean(-ours.sub(alone, axis=0))
        lost = mean(ours.sub(average, axis=0)).loc[largest]
        gain = gains.loc[largest]
        said = [] if EVERYWHERE in self.main.in_paper else [("ours is below non-cooperative at the largest N_0", gain)]
        said += [
            (asked("ours is below non-cooperative at every N_0", EVERYWHERE), gains.min()),
            (
                asked(f"ours is competitive: at most {100 * CLOSE:g} points above the stronger fusions", COMPETITIVE),
                CLOSE - mean(ours.sub(stronger(others[list(FUSIONS)]), axis=0)).max(),
            ),
            (
                asked("centred and raw scores give similar errors at every N_0 (within one point)", RAW),
                0.01 - mean(ours - at(method=UNCENTRED)).abs().max(),
            ),
            (
                asked(f"Avg-stat and ours are more than {100 * VISIBLE:g} points apart at the largest N_0", POLICY),
                lost.abs() - VISIBLE,
            ),
            ("ours, with uniform weights, is below the plain average (our question)", -lost),
        ]
        after = {t: mean(at(t)).loc[largest] for t in (5, 10, ROUNDS) if t in set(errors["round"])}
        if 5 in after:  # not where the largest N_0 of all is missing
            early = np.minimum(gain, 0.2 * gain - (after[5] - after[ROUNDS]))
            stable = np.minimum(gain, 0.01 - (after[10] - after[ROUNDS]).abs())
            said += [
                (asked("most of the gain (80 %) is there after five rounds", FEW), early),
                (asked("the error falls and then is stable (within a point from round 10 on)", STABLE), stable),
            ]
        if "VFL-JT" in others:
            joint = mean(ours.sub(others["VFL-JT"], axis=0)).min()
            said.append((asked("VFL-JT is below ours at every N_0 it is tried at", JOINT), joint))
        return said


class CifarGraphs(MainGraphs):
    """Nine agents: the comparison of Fig. 2."""

    name = "cifar-graphs"
    title = "CIFAR-10 patches: the main comparison on 200 random graphs"
    figures = "Fig. 2: what of it depends on the graph"
    main = CifarMain()


class Graphs(MainGraphs, FullSize):
    """Every comparison of networks too, at the largest N_0: bounded scores and sparse graphs, as in `topology`."""

    name = "graphs"
    title = "The same comparisons on 200 random graphs"
    figures = "Fig. 7, 10: what of them depends on the graph"
    kind = "graphs"

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """And errors at every precision on the sparse graphs, the grid and the ring."""
        yield from super().evaluate(job, record, options)
        if not self._is_largest(job, options):
            return
        s = record.scores
        c, y, graphs = s.statistics("test", bounded=True), s.y_test, study_networks.graphs(s.size)
        seed = randomness.child(options.seed, job.repetition)
        yield self.row(job, ALONE, wrong(c, y).mean())
        for weights, rule in WEIGHINGS.items():
            random = networks(s.size, graphs["ring"].links)[weights]
            some = [(SPARSE, i, over) for i, over in enumerate(random)]
            some += [(name, -1, rule(graphs[name])) for name in ("grid", "ring")]
            for name, i, over in some:
                levels: dict[str, Any] = {"topology": name, "weights": weights, "graph": i}
                exact = sweep(c, over, [PRECISIONS[FULL]], y, ROUNDS).errors[:, 0]
                coarse = sweep(c, over, list(PRECISIONS.values())[1:], y, ROUNDS, seed).errors[:, 0]
                for bits, error in zip(NAMES, np.concatenate([exact, coarse]).mean(axis=2), strict=True):
                    for t in (*(EARLY if bits in EXTREMES else ()), ROUNDS):
                        yield self.row(job, "error", error[t], method=NAMES[bits], round=t, **levels)

    def draw(self, table: Table) -> dict[str, Any]:
        """And how those on the sparse graphs are spread, and where the others lie."""
        if not len(_of(table, SPARSE, "uniform")):
            return super().draw(table)
        figure, axes = panels(self._panels(table) + 1)
        self._draw_main(table, axes)
        right = axes[-1]
        _histograms(right, table, SPARSE)
        for graph, weights, colour, style in (
            ("grid", "uniform", COLOURS[2], "-"),
            ("grid", "Metropolis", COLOURS[3], "-"),
            ("ring", "uniform", "black", "-."),
        ):
            at = 100 * _of(table, graph, weights)["value"].mean()
            label = graph if graph == "ring" else f"{graph}, {weights}"
            right.axvline(at, color=colour, linestyle=style, linewidth=1.6, label=label)
        title = f"({'abc'[len(axes) - 1]}) as many links as the ring, bounded scores"
        finish(right, "error after 20 rounds (%)", f"graphs of {GRAPHS}", title)
        return {self.name: figure}

    def claims(self, table: Table) -> list[Claim]:
        """And what turns with the graph in the comparison of networks."""
        found = super().claims(table)
        if not len(_of(table, SPARSE, "uniform")):
            return found
        return [*found, *self.judged(self._of_networks(table))]

    def _of_networks(self, table: Table) -> list[tuple[str, Finding]]:
        one = {method: {w: _by_graph(table, SPARSE, w, method) for w in WEIGHINGS} for method in NAMES.values()}
        fixed = {
            (g, w, method): float(_of(table, g, w, method)["value"].mean())
            for g in ("grid", "ring")
            for w in WEIGHINGS
            for method in one
        }
        sparse = one["Ours"]
        grid, ring = {w: fixed["grid", w, "Ours"] for w in WEIGHINGS}, fixed["ring", "uniform", "Ours"]
        behind = {method: of["Metropolis"] - of["uniform"] for method, of in one.items()}
        K = agents_of(table)
        graphs = study_networks.graphs(K)
        slem = {w: np.array([over.slem for over in networks(K, graphs["ring"].links)[w]]) for w in WEIGHINGS}
        least = {w: min(rule(graphs[g]).slem for g in ("grid", "ring")) for w, rule in WEIGHINGS.items()}
        spread = np.ptp([one[method][w] for method in one for w in WEIGHINGS], axis=0)
        steady = max(np.ptp([fixed[g, w, method] for method in one for w in WEIGHINGS]) for g in ("grid", "ring"))
        early = [
            _mean(table, ALONE) - _by_graph(table, SPARSE, w, NAMES[b], t)
            for b in EXTREMES
            for w in WEIGHINGS
            for t in EARLY
        ]
        said = [
            ("the grid is below the random graph (uniform)", sparse["uniform"] - grid["uniform"]),
            ("the grid is below the random graph (Metropolis)", sparse["Metropolis"] - grid["Metropolis"]),
            ("the ring ends below the random graph, which has as many links (uniform)", sparse["uniform"] - ring),
            ("the ring ends below the random graph, which has as many links (Metropolis)", sparse["Metropolis"] - ring),
            ("on the random graph uniform averaging beats Metropolis in full precision", behind["Ours"]),
            (
                "on the random graph uniform averaging beats Metropolis at every precision",
                np.min(list(behind.values()), axis=0),
            ),
            (
                "the random graph is more sensitive to the rule for the weights than the grid",
                np.abs(behind["Ours"]) - abs(grid["Metropolis"] - grid["uniform"]),
            ),
            (
                "the random graph is more sensitive to rule and precision than grid and ring",
                spread - steady,
            ),
            ("the random graph gains in each of the first three rounds, also with 4 bits", np.min(early, axis=0)),
            (
                "σ_A of the random graph is below those of grid and ring",
                np.min([least[w] - slem[w] for w in slem], axis=0),
            ),
        ]
        return [(claim, over_graphs(difference)) for claim, difference in said]


def _histograms(axes: Any, table: Table, graph: str) -> None:
    """Errors on the graphs by the rule for the weights, and their medians."""
    for i, weights in enumerate(WEIGHINGS):
        values = 100 * _by_graph(table, graph, weights)
        if not len(values):
            continue  # Metropolis is tried at the largest N_0 of all
        kind: Any = {"histtype": "step", "linewidth": 1.6} if i else {"alpha": 0.45}
        axes.hist(values, bins=20, color=COLOURS[i], label=weights, **kind)
        median = float(np.median(values))
        axes.axvline(median, color=COLOURS[i], linestyle="--", linewidth=1.2, label=f"median, {weights}")


def _of(table: Table, graph: str, weights: str, method: str = "Ours", t: int = ROUNDS) -> Table:
    return table[
        (table["quantity"] == "error")
        & (table["topology"] == graph)
        & (table["weights"] == weights)
        & (table["method"] == method)
        & (table["round"] == t)
    ]


def _by_graph(table: Table, graph: str, weights: str, method: str = "Ours", t: int = ROUNDS) -> Any:
    """The mean over repetitions on each graph, by seed."""
    return _of(table, graph, weights, method, t).groupby("graph")["value"].mean().to_numpy()


def _mean(table: Table, quantity: str) -> float:
    return float(table[table["quantity"] == quantity]["value"].mean())
