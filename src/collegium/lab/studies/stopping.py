"""Adaptive stopping: error against transmissions for two families of rules and four budgets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from collegium.lab import study_networks
from collegium.lab.claims import Claim, above, all_of, most_of
from collegium.lab.figures import COLOURS, finish
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.full_size import FullSize, agents_of
from collegium.lab.study import Options
from collegium.lab.table import Factors, StudyRow, Table
from collegium.network import sweep
from collegium.plots import panels
from collegium.protocol import DeltaTrigger, LabelStability

BUDGETS = (2, 5, 10, 20)
THRESHOLDS = np.r_[0.0, np.geomspace(1e-3, 10, 99)]
"""Of the Δ-trigger, in units of the median spread of the agents' statistics."""
PATIENCES = (1, 2, 3, 4, 5)
CONFIDENCES = np.r_[0.0, np.geomspace(1e-2, 10, 39)]
"""Of label stability, in the same units."""
TRIGGER, STABILITY = "Δ-trigger", "label stability"
_TICKS = [factor * 10**power for power in range(7) for factor in (1, 2, 3, 4, 6, 8)]
LOW = 2
"""Little is sent if it is no more than so many full rounds would send, whatever the budget."""
ALONG = (1.25, 1.5, 2, 3, 4, 6, 8, 12, 16)
"""Full rounds' worth of transmissions at which the two fronts are compared, as far as a budget goes."""


class Stopping(FullSize):
    """Dense grids over both families; means over repetitions make the points, of which the Pareto ones are drawn."""

    name = "stopping"
    title = "Adaptive stopping: error against transmissions"
    figures = "Fig. 11"
    kind = "stopping"
    factors: ClassVar[Factors] = {"family": str, "threshold": float, "patience": int, "confidence": float}

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """Error and transmissions of every rule at every budget."""
        s, over = record.scores, study_networks.of(record.scores.size)
        c = s.statistics("test")
        unit = float(np.median(c.std(axis=0)))
        yield self.row(job, "agents", s.size)
        triggers = [({"family": TRIGGER, "threshold": one}, DeltaTrigger(unit * one)) for one in THRESHOLDS]
        stable = [
            ({"family": STABILITY, "patience": L, "confidence": one}, LabelStability(L, unit * one))
            for L in PATIENCES
            for one in CONFIDENCES
        ]
        for rules in (triggers, stable):
            found = sweep(c, over, [rule for _, rule in rules], s.y_test, max(BUDGETS))
            for t in BUDGETS:
                for i, (levels, _) in enumerate(rules):
                    yield self.row(job, "error", found.errors[i, 0, t].mean(), method="Ours", round=t, **levels)
                    sent = found.transmissions[i, 0, t]
                    yield self.row(job, "transmissions", sent, method="Ours", round=t, **levels)

    def draw(self, table: Table) -> dict[str, Any]:
        """A panel per budget: Pareto points of both families, the best of each starred."""
        figure, all_axes = panels(len(BUDGETS), rows=2)
        links = study_networks.of(agents_of(table)).links
        points = _points(table)
        for axes, t in zip(all_axes, BUDGETS, strict=True):
            for i, (family, part) in enumerate(points[points["round"] == t].groupby("family")):
                front = pareto(part["transmissions"].to_numpy(), part["error"].to_numpy())
                chosen = part.iloc[front]
                axes.plot(
                    chosen["transmissions"], 100 * chosen["error"], "o-", color=COLOURS[i], markersize=3, linewidth=1,
                    label=str(family),
                )  # fmt: skip
                best = chosen.iloc[-1]
                axes.plot(best["transmissions"], 100 * best["error"], "*", color=COLOURS[i], markersize=13)
            full = t * links
            axes.set_xscale("log")
            axes.set_xticks([at for at in _TICKS if links <= at <= 1.1 * full])
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.minorticks_off()
            axes.axvline(full, color="#7F7F7F", linestyle=":", linewidth=0.8)
            finish(axes, "transmissions per item", "error (%)", f"at most {t} rounds (full: {full:,})")
        return {self.name: figure}

    def claims(self, table: Table) -> list[Claim]:
        """Which family is better where little is sent, and whether communication can end early."""
        links = study_networks.of(agents_of(table)).links
        low, along, early, trades = [], [], [], []
        for t in BUDGETS:
            of = table[table["round"] == t]
            name = f"at most {t} rounds"
            families = {family: of[of["family"] == family] for family in (TRIGGER, STABILITY)}
            ahead = {
                times: chosen(families[TRIGGER], times * links)[0] - chosen(families[STABILITY], times * links)[0]
                for times in ALONG
                if times <= t
            }
            low.append((name, above(ahead[LOW])))
            along += [(f"{name}, {times:g} rounds' worth", above(difference)) for times, difference in ahead.items()]
            early.append((name, above(1 - chosen(of)[1] / (t * links), 0.1)))
            for family, part in families.items():
                trades.append((f"{family}, {name}", above(chosen(part, links)[0] - chosen(part)[0])))
        said = [
            (
                "both families trade error for transmissions (the first broadcast alone against all, at every budget)",
                all_of(trades),
            ),
            ("label stability beats the Δ-trigger where little is sent", all_of(low)),
            ("label stability beats it at most points along the front", most_of(along)),
            ("the best point sends well below the full budget (a tenth less) at most budgets", most_of(early)),
        ]
        return self.judged(said)


def chosen(table: Table, limit: float = np.inf) -> tuple[Any, Any]:
    """Error and transmissions, in each repetition, of the rule that is best in the others for at most `limit`.

    Chosen in the repetition itself, a family with more rules would look better for that alone.
    """
    numbered = _number_rules(table)
    error, cost = (
        numbered[numbered["quantity"] == name].pivot_table(index="repetition", columns="rule", values="value")
        for name in ("error", "transmissions")
    )
    if len(error) < 2:
        return np.array([]), np.array([])
    error, cost = error.to_numpy(), cost.to_numpy()
    others = [(one.sum(axis=0) - one) / (len(one) - 1) for one in (error, cost)]
    best = np.where(others[1] <= limit, others[0], np.inf).argmin(axis=1)
    each = np.arange(len(error))
    return error[each, best], cost[each, best]


def pareto(cost: Any, error: Any) -> list[int]:
    """Places of points that no other beats in both, from cheap to good."""
    order = np.lexsort((error, cost))
    best = np.minimum.accumulate(np.asarray(error)[order])
    return [int(place) for place in order[np.r_[True, best[1:] < best[:-1]]]]


def _points(table: Table) -> Table:
    """Means over repetitions, error and transmissions side by side."""
    rules = table[table["family"].notna()]
    wide = _number_rules(rules).pivot_table(index=["family", "round", "rule"], columns="quantity", values="value")
    return wide.reset_index()


def _number_rules(table: Table) -> Table:
    """A column `rule` that is the same for the same settings: a pivot leaves out those that have none of a kind."""
    return table.assign(rule=table.groupby(list(Stopping.factors), dropna=False).ngroup())
