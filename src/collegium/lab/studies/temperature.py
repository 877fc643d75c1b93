"""Temperature scaling: the main panels with calibrated scores, and the temperatures themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from collegium import fusion
from collegium.agents.scores import Scores
from collegium.lab import study_networks
from collegium.lab.claims import Claim, above, all_of, below, most_of, within
from collegium.lab.figures import curve, finish, legend_below, log_sizes
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.main import ENOUGH, CifarMain, MainStudy, ModelNetMain, slopes, steps
from collegium.lab.study import Options
from collegium.lab.table import StudyRow, Table
from collegium.plots import panels

UNCALIBRATED = "Ours (no temperatures)"
HOT, NEARER, COOLING, MOSTLY = "hot", "nearer", "cooling", "mostly"
RELATIVE = "margin over spread"
BY_WAY = "error by way of fitting"
EXACT, USUAL = "exact", "LBFGS from 1.5"
CAPS = (3.0, 10.0)
"""Temperatures at most, tried beside none."""


def usual_temperature(scores: Any, y: Any, rate: float = 0.01, steps: int = 50) -> float:
    """A temperature as it is commonly fitted: L-BFGS without a line search, from 1.5, 50 steps of rate 0.01 [guo2017].

    It is over log T as in the paper. Of one number, L-BFGS is the secant method; so short it ends where it likes
    between 1.5 and the minimum, and an agent no better than chance keeps a temperature near 1.5.
    scores: of one agent, shape (n,). y: labels ±1.
    """
    margins = np.asarray(scores) * np.asarray(y)

    def slope(x: float) -> float:
        z = margins * np.exp(-x)
        return float(np.mean(z * expit(-z)))

    at, g = np.log(1.5), slope(np.log(1.5))
    inverse, step = 1.0, min(1.0, 1 / abs(g)) * rate if g else 0.0
    for _ in range(steps):
        moved = -step * inverse * g
        if abs(g) <= 1e-7 or abs(moved) <= 1e-9:
            break
        after = slope(at + moved)
        if (after - g) * moved > 1e-10:
            inverse = moved / (after - g)
        at, g, step = at + moved, after, rate
    return float(np.exp(at))


def ways(s: Scores) -> dict[str, Any]:
    """Temperatures of all agents, shape (K,), by the way they are found."""
    usual = np.array([usual_temperature(s.val[:, k], s.y_val) for k in range(s.size)])
    capped = {f"at most {cap:g}": np.minimum(s.temperature, cap) for cap in CAPS}
    return {EXACT: s.temperature, USUAL: usual, **capped}


def relative_margin(x: Any, y: Any) -> float:
    """The distance between the class means in units of the spread within classes: scale has no part in it."""
    plus, minus = x[y == 1], x[y == -1]
    return float((plus.mean() - minus.mean()) / max(np.sqrt((plus.var() + minus.var()) / 2), 1e-300))


def _logarithms(table: Table, way: str = EXACT) -> Any:
    """log T of the agents of every repetition, grouped."""
    T = table[(table["quantity"] == "temperature") & ((table["method"] == USUAL) == (way == USUAL))]
    return T.assign(value=np.log(T["value"])).groupby(["n0", "repetition"])["value"]


class _Calibrated(MainStudy):
    calibrate = True
    kind = "temperature"
    beyond_means = ("-diagnostics",)  # logarithms, and their spread over agents in each repetition

    def draw(self, table: Table) -> dict[str, Any]:
        """The main panels, and a figure of mean, spread and median of the temperatures' logarithms."""
        figure, (axes,) = panels(1, width=5.5)
        T = _logarithms(table)
        curve(axes, T.mean().reset_index(), "n0", "mean over agents", 1)
        curve(axes, T.std().reset_index(), "n0", "spread over agents", 0)
        # An agent no better than chance has no best temperature, gets 100 times its mean score, and moves the others.
        curve(axes, T.median().reset_index(), "n0", "median over agents", 2)
        curve(axes, _logarithms(table, USUAL).mean().reset_index(), "n0", f"mean, {USUAL}", 3, linestyle="--")
        axes.axhline(0, color="black", linewidth=0.6, linestyle=":")
        log_sizes(axes, table["n0"].unique())
        rule = "agents no better than chance: $T$ = 100 × mean |score|"
        finish(axes, "$N_0$", "log temperature (0: as it is)", f"fitted temperatures\n{rule}")
        axes.relim()
        axes.autoscale(axis="y")  # whole intervals: they are what this figure is about
        legend_below(axes, 2)
        return super().draw(table) | {f"{self.name}-diagnostics": figure}

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """The main numbers with temperatures, and the margin and the error of ours without, to compare with."""
        yield from super().evaluate(job, record, options)
        s, over = record.scores, study_networks.of(record.scores.size)
        limit = s.statistics("test") @ over.perron
        margin = limit[s.y_test == 1].mean() - limit[s.y_test == -1].mean()
        scaled = s.statistics("test", calibrate=True) @ over.perron
        for name, x in (("Ours", scaled), (UNCALIBRATED, limit)):
            yield self.row(job, RELATIVE, relative_margin(x, s.y_test), method=name)
        for way, T in ways(s).items():
            fitted = fusion.Ours(over, ENOUGH, calibrate=True).fit(replace(s, temperature=T))
            yield self.row(job, BY_WAY, fitted.decide(s.test).error(s.y_test), method=way)
            if way == USUAL:
                for k, one in enumerate(T):
                    yield self.row(job, "temperature", one, method=way, agent=k)
        alone = fusion.Ours(over, ENOUGH).fit(s).decide(s.test).error(s.y_test)
        for quantity, value in (("margin", margin), ("error", alone)):
            yield self.row(job, quantity, value, method=UNCALIBRATED)

    def claims(self, table: Table) -> list[Claim]:
        """Temperatures, and what they change, beside what is claimed of the panels."""
        keys = ["n0", "repetition"]
        T = _logarithms(table)
        relative = table[table["quantity"] == RELATIVE].pivot_table(index=keys, columns="method", values="value")
        mean = table[table["quantity"] == "mean statistic"].pivot_table(index=keys, columns="label", values="value")
        before = table[table["quantity"] == "margin"].set_index(keys)["value"]
        errors = table[table["quantity"] == "error"].pivot_table(index=keys, columns="method", values="value")
        effect = errors[UNCALIBRATED] - errors["Ours"]
        usual = _logarithms(table, USUAL).mean()
        way = table[table["quantity"] == BY_WAY].pivot_table(index=keys, columns="method", values="value")
        by_way = [(str(name), within(_over_sizes(way[name] - way[EXACT]), 0.005)) for name in way if name != EXACT]
        above_one = [(f"N_0 = {n0}", above(part)) for n0, part in T.mean().groupby("n0")]
        said = [
            (self.asked("temperatures are above one at every N_0 (mean of log T)", HOT), all_of(above_one)),
            ("temperatures shrink with N_0 (mean of log T)", below(slopes(T.mean()))),
            (
                self.asked("they move closer to one with N_0 (size of the mean of log T)", NEARER),
                below(slopes(T.mean().abs())),
            ),
            ("the median temperature shrinks with N_0 (log T; our question)", below(slopes(T.median()))),
            ("their spread over agents shrinks with N_0 (log T)", below(slopes(T.std()))),
            (
                self.asked("from every N_0 to the next temperatures shrink (mean of log T)", COOLING),
                all_of(steps(T.mean(), -1, "log T")),
            ),
            (
                self.asked("from every N_0 to the next their spread shrinks (log T)", COOLING),
                all_of(steps(T.std(), -1, "spread")),
            ),
            ("they widen the margin on average over N_0", above(_over_sizes(mean[1] - mean[-1] - before))),
            (
                "they widen the margin relative to its spread (our question)",
                above(_over_sizes(relative["Ours"] - relative[UNCALIBRATED])),
            ),
            ("they lower the error of ours on average over N_0", above(_over_sizes(effect))),
            (
                self.asked("they lower the error of ours at most N_0", MOSTLY),
                most_of([(f"N_0 = {n0}", above(part.dropna())) for n0, part in effect.groupby("n0")]),
            ),
            ("their effect on the error is largest at small N_0", below(slopes(effect))),
            (
                f"fitted by {USUAL} they are above one and shrink with N_0 (mean of log T; our question)",
                all_of([("log T", above(_over_sizes(usual))), ("less its change with log N_0", above(-slopes(usual)))]),
            ),
            ("optimiser and cap change the error of ours by less than half a point (our question)", all_of(by_way)),
        ]
        return self.judged(said) + super().claims(table)


def _over_sizes(values: Any) -> Any:
    """The mean over N_0 of each repetition that has all of them."""
    return values.unstack("n0").dropna().mean(axis=1)


class CifarTemperature(_Calibrated, CifarMain):
    """Fig. H.4 and the temperatures of Fig. H.3."""

    name = "cifar-temperature"
    title = "CIFAR-10 patches with temperature scaling"
    in_paper = frozenset({NEARER})
    figures = "Fig. H.3, H.4"


class ModelNetTemperature(_Calibrated, ModelNetMain):
    """Fig. 8 and the temperatures of Fig. H.2."""

    name = "modelnet-temperature"
    title = "ModelNet views with temperature scaling"
    in_paper = frozenset({HOT, COOLING, MOSTLY})
    figures = "Fig. 8, H.2"
