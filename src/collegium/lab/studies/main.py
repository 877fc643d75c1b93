"""The main comparisons: margins and errors against N_0 for all methods, errors against rounds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from collegium import fusion
from collegium._util.measures import wrong
from collegium.lab import study_networks
from collegium.lab.claims import Claim, Finding, above, all_of, below, within
from collegium.lab.figures import curve, finish, log_sizes, row, whole_numbers
from collegium.lab.job import LOGISTIC, Job, load
from collegium.lab.records import Record
from collegium.lab.study import Options, Study, repetitions, sizes
from collegium.lab.table import Factors, StudyRow, Table
from collegium.network import collaborate
from collegium.plots import panels

ENOUGH = 200
"""Rounds after which the comparison's networks have reached their limit to many digits."""
SHOWN = 20
"""Rounds of the error-against-rounds panel."""
OWN_REPS = 10
"""Repetitions with a user's data."""
MARGIN, FALLS, EVERYWHERE, COMPETITIVE = "margin", "falls", "everywhere", "competitive"
JOINT, RAW, FEW, STABLE, POLICY = "joint", "raw", "few rounds", "stable", "policy"
MARGIN_STEPS, FALL_STEPS = "margin at every step", "falls at every step"
"""What the paper may say of a figure."""
FIRST = (1, 2, 3)
"""Rounds in which an error that falls before it is stable must fall, one by one."""
CLOSE = 0.02
"""How much more error is still competitive."""
VISIBLE = 0.005
"""A difference that one sees in a figure."""
FUSIONS = ("Avg-stat", "Vote", "Learned fusion", "Learned simplex fusion")
"""The paper's fusions of the agents' scores."""
METHODS = ("Ours", *FUSIONS, "AdaBoost", "Non-cooperative", "Ours (no centering)", "VFL-JT", "Central oracle")
"""The paper's methods; each has its colour in all figures."""
JOINTLY = ("VFL-JT", "Tuned models")
"""Methods that train the agents' models jointly."""
BEYOND = ("Social learning", "Log-odds sum", "Stacking", "Tuned", "Tuned models", "Ours (no temperatures)")
SMALLEST = 20
"""The least N_0 that is tried on a user's data unless asked for."""


class MainStudy(Study):
    """What the main figures of both data sets share; with `calibrate` they are those of temperature scaling."""

    kind = "main"
    dataset: str
    layout: str = LOGISTIC
    models: str | None = None
    """A user's, if they are not those of the layout."""
    usual_sizes: tuple[int, ...] = ()
    """Parts of what is there, if none is named."""
    quick_sizes: tuple[int, ...] = ()
    reps: int = OWN_REPS
    """At every size but the largest."""
    reps_at_largest: int | None = None
    """At the largest size, where other studies read the same records."""
    trained: int | None = None
    """Repetitions in which the methods that train on views take part; the first `reps` if None."""
    calibrate: ClassVar[bool] = False
    in_paper: ClassVar[frozenset[str]] = frozenset()
    """What the paper says of this figure; the other claims are our questions."""
    factors: ClassVar[Factors] = {"label": int}

    def jobs(self, options: Options) -> list[Job]:
        """Every size and repetition."""
        wanted = []
        for n0 in self.sizes(options):
            is_largest = n0 == max(self.usual_sizes, default=None)
            for r in range(repetitions(options, (is_largest and self.reps_at_largest) or self.reps)):
                methods = r < (options.trained if options.trained is not None else self._trained(options))
                epochs = 3 if options.quick else None
                wanted.append(Job(self.dataset, n0, r, self.layout, options.seed, methods, epochs, self.models))
        return wanted

    def _trained(self, options: Options) -> int:
        most = repetitions(options, self.reps)
        return most if self.trained is None or options.reps is not None else min(most, self.trained)

    def sizes(self, options: Options) -> tuple[int, ...]:
        """The N_0 to go through; an eighth, a quarter, half and all of what is there, if the study names none."""
        named = sizes(options, self.usual_sizes, self.quick_sizes)
        if named:
            return named
        most = load(self.dataset, options.root)[0].largest_n0
        parts = (8, 4) if options.quick else (8, 4, 2, 1)
        return tuple(most // part // 2 * 2 for part in parts if most // part >= SMALLEST) or (most,)

    def on(self, data: str | None, models: str | None) -> Self:
        """The same with a user's data (and logistic regressions, unless told) or a user's models."""
        own = self.renamed(data or self.dataset, models)
        own.models = models
        if data is not None:
            own.dataset, own.layout = data, LOGISTIC
            own.usual_sizes, own.quick_sizes = (), ()
            own.reps, own.reps_at_largest, own.trained = OWN_REPS, None, None
        return own

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """Class means, errors of all methods after enough rounds, errors of every agent after every round."""
        s, over = record.scores, study_networks.of(record.scores.size)
        c = s.statistics("test", calibrate=self.calibrate)
        aggregate = c @ over.perron
        for label in (1, -1):
            yield self.row(job, "mean statistic", aggregate[s.y_test == label].mean(), method="Ours", label=label)
        for method in fusion.all_methods(over, ENOUGH, calibrate=self.calibrate):
            if method.name == "AdaBoost":
                continue  # fitted anew where the methods that train on views take part, below
            yield self.row(job, "error", method.fit(s).decide(s.test).error(s.y_test), method=method.name)
        for name, result in record.methods.items():
            if name not in JOINTLY or not self.calibrate:  # its scores and its head are one: nothing to calibrate
                yield self.row(job, "error", wrong(result.statistic, s.y_test).mean(), method=name)
        errors = collaborate(c, over, SHOWN).errors(s.y_test)
        for t, by_agent in enumerate(errors):
            for k, value in enumerate(by_agent):
                yield self.row(job, "error by round", value, method="Ours", agent=k, round=t)
        for k, T in enumerate(s.temperature):
            yield self.row(job, "temperature", T, agent=k)

    def draw(self, table: Table) -> dict[str, Any]:
        """The three panels of the paper's figure, and one of the methods that it does not have."""
        figure, (left, middle, right, more) = panels(4, rows=2)
        means = table[table["quantity"] == "mean statistic"]
        for i, label in enumerate((1, -1)):
            curve(left, means[means["label"] == label], "n0", f"class {label:+}", i)
        left.axhline(0, color="black", linewidth=0.6)
        log_sizes(left, table["n0"].unique())
        finish(left, "$N_0$", "mean of the aggregate", "(a) decision margin")
        self._draw_errors(table[table["quantity"] == "error"], middle, more)
        largest = table["n0"].max()
        rounds = table[(table["quantity"] == "error by round") & (table["n0"] == largest)]
        for agent, part in rounds.groupby("agent"):
            by_round = 100 * part.groupby("round")["value"].mean()
            together, alone = ("one agent", "one agent alone") if agent == 0 else (None, None)
            right.plot(by_round.index, by_round, color="#7F7F7F", linewidth=0.7, label=together)
            right.axhline(by_round.iloc[0], color="#7F7F7F", linewidth=0.6, linestyle=":", label=alone)
        curve(right, rounds, "round", "mean of agents", 0, 100)
        whole_numbers(right)
        finish(right, "communication round", "error (%)", f"(c) error against rounds, $N_0$ = {largest:,}")
        return {self.name: figure}

    def _draw_errors(self, errors: Table, middle: Any, more: Any) -> None:
        """The paper's methods and the others against N_0, or in a list if there is one N_0; ours in both."""
        one_size = errors["n0"].nunique() == 1
        for name, part in errors.groupby("method", sort=False):
            own = {"linewidth": 2.8, "zorder": 3} if name == "Ours" else {}
            places = [(middle, METHODS.index(str(name)))] if name in METHODS else []
            if name not in METHODS or name == "Ours":
                beyond = 0 if name == "Ours" else 1 + BEYOND.index(name) if name in BEYOND else len(BEYOND) + 1
                places.append((more, beyond))
            for axes, place in places:
                if one_size:
                    row(axes, part, str(name), place, 100, **own)
                else:
                    curve(axes, part, "n0", str(name), place, 100, **own)
        titles = ("(b) probability of error", "(d) probability of error, methods beyond the paper")
        for axes, title in zip((middle, more), titles, strict=True):
            if one_size:
                limits = axes.get_ylim()
                finish(axes, "error (%)", "", title, legend=False)
                axes.set_ylim(limits)
            else:
                log_sizes(axes, errors["n0"].unique())
                finish(axes, "$N_0$", "error (%)", title)
        of, at = ("x", "get_xlim") if one_size else ("y", "get_ylim")
        limits = np.array([getattr(axes, at)() for axes in (middle, more)])
        for axes in (middle, more):
            axes.set(**{f"{of}lim": (limits[:, 0].min(), limits[:, 1].max())})

    def claims(self, table: Table) -> list[Claim]:
        """What the paper says of these panels."""
        errors = table[table["quantity"] == "error"].pivot_table(
            index=["n0", "repetition"], columns="method", values="value"
        )
        means = table[table["quantity"] == "mean statistic"].pivot_table(
            index=["n0", "repetition"], columns="label", values="value"
        )
        found = sorted(table["n0"].unique())
        said: list[tuple[str, Finding]] = []
        if len(found) > 1:
            rises = self.asked("the mean statistic of class +1 rises with N_0", MARGIN)
            said.append((rises, above(slopes(means[1]))))
            sinks = self.asked("the mean statistic of class -1 falls with N_0", MARGIN)
            said.append((sinks, below(slopes(means[-1]))))
            trends = {str(name): slopes(errors[name]) for name in errors}
            falls = [(name, below(of)) for name, of in trends.items() if len(of)]  # some are tried at one N_0 only
            said.append((self.asked("the error of every method falls with N_0", FALLS), all_of(falls)))
            moved = [*steps(means[1], 1, "class +1"), *steps(means[-1], -1, "class -1")]
            moves = self.asked("from every N_0 to the next the class means move apart", MARGIN_STEPS)
            said.append((moves, all_of(moved)))
            each = [step for name in errors for step in steps(errors[name], -1, str(name))]
            sinks = self.asked("from every N_0 to the next the error of every method falls", FALL_STEPS)
            said.append((sinks, all_of(each)))
        better = [
            (f"N_0 = {n0}", below((part["Ours"] - part["Non-cooperative"]).dropna()))
            for n0, part in errors.groupby("n0")
        ]
        said.append((self.asked("ours is below non-cooperative at every N_0", EVERYWHERE), all_of(better)))
        behind = errors["Ours"] - stronger(errors[list(FUSIONS)])
        close = [(f"N_0 = {n0}", below(part.dropna(), CLOSE)) for n0, part in behind.groupby("n0")]
        level = f"ours is competitive: at most {100 * CLOSE:g} points above the stronger fusions (mean of the two best)"
        said.append((self.asked(level, COMPETITIVE), all_of(close)))
        if "VFL-JT" in errors:
            joint = (errors["VFL-JT"] - errors["Ours"]).dropna()
            parts = [(f"N_0 = {n0}", below(part)) for n0, part in joint.groupby("n0")]
            said.append((self.asked("VFL-JT is below ours at every N_0 it is tried at", JOINT), all_of(parts)))
        apart = errors["Ours"] - errors["Ours (no centering)"]
        close = [(f"N_0 = {n0}", within(part, 0.01)) for n0, part in apart.groupby("n0")]
        same = self.asked("centred and raw scores give similar errors at every N_0 (within one point)", RAW)
        said.append((same, all_of(close)))
        said += self._of_rounds(table, found)
        return self.judged(said)

    def asked(self, claim: str, which: str) -> str:
        """A claim, marked as ours where the paper does not make it of this figure."""
        return claim if which in self.in_paper else f"{claim} (our question)"

    def _of_rounds(self, table: Table, found: list[int]) -> list[tuple[str, Finding]]:
        """What is said of errors against rounds."""
        rounds = table[(table["quantity"] == "error by round") & (table["n0"] == found[-1])]
        process = rounds.groupby(["repetition", "round"])["value"].mean().unstack()
        if process.shape[1] <= 10:
            return []
        last = process[process.columns[-1]]
        gain = process[0] - last
        early = (process[0] - process[5]) - 0.8 * gain
        falls = [(f"round {t}", above(process[t - 1] - process[t])) for t in FIRST]
        stays = [(f"round {t}", within(process[t] - last, 0.01)) for t in process.columns[10:-1]]
        return [
            (
                self.asked("most of the gain (80 %) is there after five rounds", FEW),
                all_of([("gain", above(gain)), ("beyond 80 % of it after five rounds", above(early))]),
            ),
            (
                self.asked(
                    "the error falls in each of the first three rounds and then is stable (within a point from 10 on)",
                    STABLE,
                ),
                all_of([("gain", above(gain)), *falls, *stays]),
            ),
        ]


def slopes(values: Any) -> Any:
    """How each repetition's values, indexed by n0 and repetition, change with log N_0."""
    return np.array(
        [
            np.polyfit(np.log(part.index.get_level_values("n0").astype(float)), part, 1)[0]
            for _, part in values.dropna().groupby("repetition")
            if len(part) > 1
        ]
    )


def steps(values: Any, sign: int, name: str) -> list[tuple[str, Finding]]:
    """Whether values, indexed by n0 and repetition, rise (or fall) from every N_0 to the next."""
    wide = values.unstack("n0")
    return [
        (f"{name}, {before:,} to {after:,}", above((sign * (wide[after] - wide[before])).dropna()))
        for before, after in pairwise(wide.columns)
        if len((wide[after] - wide[before]).dropna())
    ]


def stronger(errors: Any) -> Any:
    """The mean error of the two best of these methods at each N_0; which they are, the mean over repetitions says.

    Chosen in each repetition for itself, the best of several would look better than any of them is.
    """
    best = errors.groupby("n0").mean().rank(axis=1, method="first") <= 2
    return errors.where(best.reindex(errors.index.get_level_values("n0")).to_numpy()).mean(axis=1)


class CifarMain(MainStudy):
    """Fig. 2: nine PatchCNN agents on CIFAR-10 patches."""

    name = "cifar-main"
    title = "CIFAR-10 patches: margins, errors of all methods, errors against rounds"
    figures = "Fig. 2, Tab. I"
    dataset, layout = "cifar10", "A"
    in_paper = frozenset({MARGIN, MARGIN_STEPS, FALLS, FALL_STEPS, EVERYWHERE, COMPETITIVE, JOINT, RAW, STABLE})
    usual_sizes, quick_sizes = (500, 1000, 2000, 5000, 10_000), (100, 200)
    reps, trained = 30, 20

    def tabulate(self, table: Table) -> list[dict[str, str]]:
        """What each method asks of the agents."""
        branch = fusion.CentralOracle(None)
        return fusion.coordination_table(fusion.all_methods(study_networks.of(9), branch=object(), oracle=branch))


class CifarHeteroMain(MainStudy):
    """Fig. 5: the same with three model families in the base layout."""

    name = "cifar-hetero-main"
    title = "CIFAR-10 patches with three model families: margins, errors, errors against rounds"
    figures = "Fig. 5"
    dataset, layout = "cifar10", "ABCBCACAB"
    in_paper = frozenset({MARGIN, MARGIN_STEPS, EVERYWHERE, FEW})
    usual_sizes, quick_sizes = (500, 1000, 2000, 5000, 10_000), (100, 200)
    reps = 15


class ModelNetMain(MainStudy):
    """Fig. 7: twelve MicroCNN agents on rendered views."""

    name = "modelnet-main"
    title = "ModelNet views: margins, errors of all methods, errors against rounds"
    figures = "Fig. 7"
    dataset, layout = "modelnet", "M"
    in_paper = frozenset({MARGIN, FALLS, FEW, POLICY})
    usual_sizes, quick_sizes = (50, 100, 200, 300, 390), (20, 40)
    reps, reps_at_largest, trained = 60, 200, 20

    def claims(self, table: Table) -> list[Claim]:
        """And that with little data the gain is limited, and some agents are better alone."""
        if self.calibrate:
            return super().claims(table)
        several = table["n0"].nunique() > 1
        small = bool((2 * table["n0"] <= table["n0"].max()).any())
        said = [("at small N_0 some agents are better alone", _better_alone(table))] if small else []
        means = table[table["quantity"] == "mean statistic"].pivot_table(
            index=["n0", "repetition"], columns="label", values="value"
        )
        apart = [(f"N_0 = {n0}", above(part[1] - part[-1])) for n0, part in means.groupby("n0")]
        said.append(("the class means stay apart at every N_0", all_of(apart)))
        errors = table[table["quantity"] == "error"].pivot_table(
            index=["n0", "repetition"], columns="method", values="value"
        )
        gap = (errors["Avg-stat"] - errors["Ours"]).loc[table["n0"].max()].dropna()
        visible = above(gap if gap.mean() > 0 else -gap, VISIBLE)
        said.append(
            (f"Avg-stat and ours are more than {100 * VISIBLE:g} points apart at the largest N_0: A matters", visible)
        )
        if several:
            grows = above(slopes(errors["Non-cooperative"] - errors["Ours"]))
            said.append(("the gain is more limited at smaller N_0", grows))
        return [*super().claims(table), *self.judged(said)]


def _better_alone(table: Table) -> Finding:
    """Whether any agent errs more together than alone at any N_0 of at most half the largest.

    One of many looks so by chance.
    """
    small = table[(table["quantity"] == "error by round") & (2 * table["n0"] <= table["n0"].max())]
    wide = small.pivot_table(index=["n0", "agent", "repetition"], columns="round", values="value")
    lost = wide[wide.columns[-1]] - wide[wide.columns[0]]
    groups = lost.groupby(["n0", "agent"])
    parts = {f"agent {agent} at N_0 = {n0}": below(part) for (n0, agent), part in groups}  # against it: better alone
    name, best = min(parts.items(), key=lambda part: part[1].against)
    alone = sum(found.verdict == "does not hold" for found in parts.values())
    gains = ", ".join(f"{-100 * part.mean():.1f} at {n0}" for n0, part in lost.groupby("n0"))
    numbers = f"{alone} of {len(parts)} one by one; most {name}, by {best.evidence}; mean gain in points: {gains}"
    sure = all_of(list(parts.items())).verdict == "does not hold"
    return Finding("holds" if sure else "undecided", numbers, 1.0)
