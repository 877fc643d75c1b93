"""Beyond the paper: all methods on real sensors and feature sets, of two, four and ten classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from collegium import fusion, policy, topology
from collegium.fusion.base import at_a_centre
from collegium.lab.claims import Claim, Finding, above, all_of, below, within
from collegium.lab.figures import COLOURS, curve, finish, whole_numbers
from collegium.lab.job import STANDARDISED, TREES, Job
from collegium.lab.records import Record
from collegium.lab.study import PAIRED, Options, Study, repetitions, sizes
from collegium.lab.table import Factors, StudyRow, Table, means, values
from collegium.network import collaborate
from collegium.plots import panels
from collegium.policy import Policy

REPS = 20
ENOUGH = 500
"""Rounds after which the largest ring, of 24 agents, is within a hundred-thousandth of its limit."""
SHOWN = 60
"""Rounds of the error-against-rounds figure."""
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
"""Percents on the axis of errors."""
BEST = "Best agent"
"""The agent that does best on the validation items, alone."""


class _Part(NamedTuple):
    """One data set of the study."""

    title: str
    layout: str
    n0: int
    quick: int


PARTS = {
    "wall_robot": _Part("robot, random split", TREES, 532, 120),
    "wall_robot_blocks": _Part("robot, blocks of time", TREES, 532, 120),
    "multiple_features": _Part("numerals", STANDARDISED, 1400, 200),
    "occupancy": _Part("office", TREES, 3458, 200),
}
"""N_0 is balanced and the same for both splits of the robot's readings: the rarest class leaves no more in some of
those by blocks. Of the others it is all there is."""


@cache
def ring(K: int) -> Policy:
    """The agents in a ring, as the robot's sensors stand; with Metropolis weights the limit is the average."""
    return policy.metropolis(topology.ring(K))


class SensorsMain(Study):
    """Errors of all methods, each less that of ours in the same repetition, and errors against rounds."""

    name = "sensors-main"
    title = "A robot's sonars, an office's sensors, six views of numerals: errors of all methods"
    factors: ClassVar[Factors] = {"data": str}

    def jobs(self, options: Options) -> list[Job]:
        """Every data set and repetition; the split of items that have no official one is drawn anew in each."""
        return [
            Job(name, n0, r, part.layout, options.seed, methods=True)
            for name, part in PARTS.items()
            for n0 in sizes(options, (part.n0,), (part.quick,))
            for r in range(repetitions(options, REPS))
        ]

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """Errors of all methods, and those of our agents after every round."""
        errors = dict(_errors(record))
        for method, error in errors.items():
            yield self.row(job, "error", error, method=method, data=job.dataset)
            yield self.row(job, PAIRED, error - errors["Ours"], method=method, data=job.dataset)
        s = record.scores
        by_round = collaborate(s.statistics("test"), ring(s.size), SHOWN).errors(s.y_test)
        for t, by_agent in enumerate(by_round):
            for quantity, value in (("error by round", by_agent.mean()), ("worst agent by round", by_agent.max())):
                yield self.row(job, quantity, value, method="Ours", round=t, data=job.dataset)

    def draw(self, table: Table) -> dict[str, Any]:
        """Errors of the methods on each data set, and errors against rounds."""
        there = [name for name in PARTS if (table["data"] == name).any()]
        figure, axes = panels(len(there), width=3.6, height=4.2)
        for i, (one, name) in enumerate(zip(axes, there, strict=True)):
            _compare(one, table[(table["data"] == name) & (table["quantity"] == "error")], i == 0)
            one.set_title(PARTS[name].title, fontsize=10)
        rounds, axes = panels(len(there), width=3.6, height=3.2)
        for one, name in zip(axes, there, strict=True):
            part = table[table["data"] == name]
            curve(one, part[part["quantity"] == "error by round"], "round", "mean of agents", 0, 100, marker="")
            curve(one, part[part["quantity"] == "worst agent by round"], "round", "worst agent", 1, 100, marker="")
            best = 100 * values(part, quantity="error", method=BEST).mean()
            one.axhline(best, color="black", linewidth=0.8, linestyle=":", label="best agent alone")
            whole_numbers(one)
            finish(one, "communication round", "error (%)", PARTS[name].title)
            one.set_ylim(bottom=0)
        return {self.name: figure, f"{self.name}-rounds": rounds}

    def claims(self, table: Table) -> list[Claim]:
        """What one would expect, and whether it is so; differences are of the same repetition."""
        there = [name for name in PARTS if (table["data"] == name).any()]

        def error(data: str, method: str) -> Any:
            return values(table, quantity="error", data=data, method=method)

        def against(method: str, other: str) -> Finding:
            return all_of([(PARTS[one].title, below(error(one, method) - error(one, other))) for one in there])

        apart = {one: error(one, "Ours") - error(one, "Ours (no centering)") for one in there}
        close = [(PARTS[one].title, within(difference, 0.01)) for one, difference in apart.items()]
        said = [
            ("ours is below non-cooperative on every set", against("Ours", "Non-cooperative")),
            ("ours is below the best agent on every set", against("Ours", BEST)),
            ("learned fusion, at a centre, is below ours on every set", against("Learned fusion", "Ours")),
            ("centred and raw scores give similar errors on every set (within one point)", all_of(close)),
        ]
        if {"wall_robot", "wall_robot_blocks"} <= set(there):
            gap = error("wall_robot_blocks", "Ours") - error("wall_robot", "Ours")
            said.append(("the robot's errors are larger by blocks of time than on a random split", above(gap)))
        if "multiple_features" in there:
            for method in ("Ours", "Ours (no centering)"):
                found = below(error("multiple_features", method), 0.02)
                said.append((f"{method} is right on at least 98 % of the numerals", found))
        return self.judged(said)


def _errors(record: Record) -> Iterator[tuple[str, float]]:
    s, over = record.scores, ring(record.scores.size)
    for method in fusion.all_methods(over, ENOUGH):
        if method.name == "AdaBoost":
            continue  # fitted anew with the other methods that train on views, below
        yield method.name, method.fit(s).decide(s.test).error(s.y_test)
        if method.name == "Non-cooperative":
            alone = [collaborate(s.statistics(part), over, 1).errors(y)[0] for part, y in _seen(record)]
            yield BEST, float(alone[1][np.argmin(alone[0])])
    for name, result in record.methods.items():
        yield name, at_a_centre(result.statistic, 0, 0).error(s.y_test)


def _seen(record: Record) -> Iterator[tuple[Any, Any]]:
    """Items to choose the best agent by, and items to see how good it is."""
    yield "val", record.scores.y_val
    yield "test", record.scores.y_test


def _compare(axes: Any, errors: Table, named: bool) -> None:
    """One row per method: mean and interval, ours marked; on a logarithmic axis, for the best are close together."""
    _, rows = means(errors, {})
    methods = [row[2] for row in rows]
    for y, (row, method) in enumerate(zip(rows, methods, strict=True)):
        mean, half = 100 * row[-3], 100 * np.nan_to_num(row[-2])
        colour = COLOURS[1] if method.startswith("Ours") else COLOURS[0]
        axes.errorbar(mean, y, xerr=half, fmt="o", color=colour, markersize=4, capsize=2, elinewidth=0.8)
    axes.set_yticks(range(len(methods)), methods if named else [""] * len(methods), fontsize=8)
    axes.invert_yaxis()
    shown = [100 * row[-3] for row in rows]
    if min(shown) > 0:
        axes.set_xscale("log")
        ticks = [tick for tick in TICKS if min(shown) / 2 < tick < 2 * max(shown)]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    axes.set_xlabel("error (%)")
    axes.grid(alpha=0.3)
