"""The main comparisons: margins and errors against N_0 for all methods, errors against rounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np

from collegium import fusion
from collegium._util.measures import wrong
from collegium.lab import study_networks
from collegium.lab.claims import Claim, Finding, above, all_of, below, within
from collegium.lab.figures import curve, finish, log_sizes, whole_numbers
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
    """At the largest size, where other studies read the same records; the methods that train on views take part in
    the first `reps` of them."""
    calibrate: ClassVar[bool] = False
    factors: ClassVar[Factors] = {"label": int}

    def jobs(self, options: Options) -> list[Job]:
        """Every size and repetition."""
        wanted = []
        for n0 in self.sizes(options):
            is_largest = n0 == max(self.usual_sizes, default=None)
            for r in range(repetitions(options, (is_largest and self.reps_at_largest) or self.reps)):
                methods = r < repetitions(options, self.reps)
                epochs = 3 if options.quick else None
                wanted.append(Job(self.dataset, n0, r, self.layout, options.seed, methods, epochs, self.models))
        return wanted

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
            own.usual_sizes, own.quick_sizes, own.reps, own.reps_at_largest = (), (), OWN_REPS, None
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
            if name != "VFL-JT" or not self.calibrate:  # its scores and its head are one: nothing to calibrate
                yield self.row(job, "error", wrong(result.statistic, s.y_test).mean(), method=name)
        errors = collaborate(c, over, SHOWN).errors(s.y_test)
        for t, by_agent in enumerate(errors):
            for k, value in enumerate(by_agent):
                yield self.row(job, "error by round", value, method="Ours", agent=k, round=t)
        for k, T in enumerate(s.temperature):
            yield self.row(job, "temperature", T, agent=k)

    def draw(self, table: Table) -> dict[str, Any]:
        """The three panels of the paper's figure."""
        figure, (left, middle, right) = panels(3)
        means = table[table["quantity"] == "mean statistic"]
        for i, label in enumerate((1, -1)):
            curve(left, means[means["label"] == label], "n0", f"class {label:+}", i)
        left.axhline(0, color="black", linewidth=0.6)
        errors = table[table["quantity"] == "error"]
        # VFL-JT last: where it takes no part, the others keep their colours.
        for i, name in enumerate(sorted(dict.fromkeys(errors["method"]), key="VFL-JT".__eq__)):
            more = {"linewidth": 2.6, "zorder": 3} if name == "Ours" else {"linestyle": "--" if i > 9 else "-"}
            curve(middle, errors[errors["method"] == name], "n0", name, i, 100, **more)
        for axes in (left, middle):
            log_sizes(axes, table["n0"].unique())
        finish(left, "$N_0$", "mean of the aggregate", "(a) decision margin")
        finish(middle, "$N_0$", "error (%)", "(b) probability of error")
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
            said.append(("the mean statistic of class +1 rises with N_0", above(slopes(means[1]))))
            said.append(("the mean statistic of class -1 falls with N_0", below(slopes(means[-1]))))
            said.append(("the error of ours falls with N_0", below(slopes(errors["Ours"]))))
        better = [
            (f"N_0 = {n0}", below((part["Ours"] - part["Non-cooperative"]).dropna()))
            for n0, part in errors.groupby("n0")
        ]
        said.append(("ours is below non-cooperative at every N_0", all_of(better)))
        if "VFL-JT" in errors:
            joint = errors["VFL-JT"] - errors["Ours"]
            parts = [(f"N_0 = {n0}", below(part.dropna())) for n0, part in joint.groupby("n0")]
            said.append(("VFL-JT is below ours at every N_0", all_of(parts)))
        apart = errors["Ours"] - errors["Ours (no centering)"]
        close = [(f"N_0 = {n0}", within(part, 0.01)) for n0, part in apart.groupby("n0")]
        said.append(("centred and raw scores give similar errors at every N_0 (within one point)", all_of(close)))
        rounds = table[(table["quantity"] == "error by round") & (table["n0"] == found[-1])]
        process = rounds.groupby(["repetition", "round"])["value"].mean().unstack()
        if process.shape[1] > 5:
            gain = process[0] - process[process.columns[-1]]
            early = (process[0] - process[5]) - 0.8 * gain
            parts = [("gain", above(gain)), ("beyond 80 % of it after five rounds", above(early))]
            said.append(("most of the gain (80 %) is there after five rounds", all_of(parts)))
        return self.judged(said)


def slopes(values: Any) -> Any:
    """How each repetition's values, indexed by n0 and repetition, change with log N_0."""
    return np.array(
        [
            np.polyfit(np.log(part.index.get_level_values("n0").astype(float)), part, 1)[0]
            for _, part in values.dropna().groupby("repetition")
            if len(part) > 1
        ]
    )


class CifarMain(MainStudy):
    """Fig. 2: nine PatchCNN agents on CIFAR-10 patches."""

    name = "cifar-main"
    title = "CIFAR-10 patches: margins, errors of all methods, errors against rounds"
    figures = "Fig. 2"
    dataset, layout = "cifar10", "A"
    usual_sizes, quick_sizes = (500, 1000, 2000, 5000, 10_000), (100, 200)
    reps = 10


class CifarHeteroMain(MainStudy):
    """Fig. 5: the same with three model families in the base layout."""

    name = "cifar-hetero-main"
    title = "CIFAR-10 patches with three model families: margins, errors, errors against rounds"
    figures = "Fig. 5"
    dataset, layout = "cifar10", "ABCBCACAB"
    usual_sizes, quick_sizes = (500, 1000, 2000, 5000, 10_000), (100, 200)
    reps = 5


class ModelNetMain(MainStudy):
    """Fig. 7: twelve MicroCNN agents on rendered views."""

    name = "modelnet-main"
    title = "ModelNet views: margins, errors of all methods, errors against rounds"
    figures = "Fig. 7"
    dataset, layout = "modelnet", "M"
    usual_sizes, quick_sizes = (50, 100, 200, 300, 390), (20, 40)
    reps, reps_at_largest = 20, 60
