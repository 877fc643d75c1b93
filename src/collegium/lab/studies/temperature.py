"""Temperature scaling: the main panels with calibrated scores, and the temperatures themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from collegium import fusion
from collegium.lab import study_networks
from collegium.lab.claims import Claim, above, below
from collegium.lab.figures import curve, finish, log_sizes
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.main import ENOUGH, CifarMain, MainStudy, ModelNetMain, slopes
from collegium.lab.study import Options
from collegium.lab.table import StudyRow, Table
from collegium.plots import panels

UNCALIBRATED = "Ours (no temperatures)"


class _Calibrated(MainStudy):
    calibrate = True
    kind = "temperature"

    def draw(self, table: Table) -> dict[str, Any]:
        """The main panels, and a figure of mean, spread and median of the temperatures."""
        figure, (axes,) = panels(1, width=5.5)
        T = table[table["quantity"] == "temperature"].groupby(["n0", "repetition"])["value"]
        curve(axes, T.mean().reset_index(), "n0", "mean over agents", 1)
        curve(axes, T.std().reset_index(), "n0", "spread over agents", 0)
        # Agents no better than chance have temperatures without a finite best value: they move the others, not this.
        curve(axes, T.median().reset_index(), "n0", "median over agents", 2)
        axes.axhline(1, color="black", linewidth=0.6, linestyle=":")
        log_sizes(axes, table["n0"].unique())
        finish(axes, "$N_0$", "temperature", "fitted temperatures")
        return super().draw(table) | {f"{self.name}-diagnostics": figure}

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """The main numbers with temperatures, and the margin and the error of ours without, to compare with."""
        yield from super().evaluate(job, record, options)
        s, over = record.scores, study_networks.of(record.scores.size)
        limit = s.statistics("test") @ over.perron
        margin = limit[s.y_test == 1].mean() - limit[s.y_test == -1].mean()
        alone = fusion.Ours(over, ENOUGH).fit(s).decide(s.test).error(s.y_test)
        for quantity, value in (("margin", margin), ("error", alone)):
            yield self.row(job, quantity, value, method=UNCALIBRATED)

    def claims(self, table: Table) -> list[Claim]:
        """Temperatures, and what they change, beside what is claimed of the panels."""
        keys = ["n0", "repetition"]
        T = table[table["quantity"] == "temperature"].groupby(keys)["value"]
        mean = table[table["quantity"] == "mean statistic"].pivot_table(index=keys, columns="label", values="value")
        before = table[table["quantity"] == "margin"].set_index(keys)["value"]
        errors = table[table["quantity"] == "error"].pivot_table(index=keys, columns="method", values="value")
        said = [
            ("temperatures are above one on average over N_0", above(_over_sizes(T.mean()), 1.0)),
            ("temperatures shrink with N_0", below(slopes(T.mean()))),
            ("their spread over agents shrinks with N_0", below(slopes(T.std()))),
            (
                "they widen the margin on average over N_0",
                above(_over_sizes(mean[1] - mean[-1] - before)),
            ),
            (
                "they lower the error of ours on average over N_0",
                below(_over_sizes(errors["Ours"] - errors[UNCALIBRATED])),
            ),
        ]
        return self.judged(said) + super().claims(table)


def _over_sizes(values: Any) -> Any:
    """The mean over N_0 of each repetition that has all of them."""
    return values.unstack("n0").dropna().mean(axis=1)


class CifarTemperature(_Calibrated, CifarMain):
    """Fig. 16 and the temperatures of Fig. 15."""

    name = "cifar-temperature"
    title = "CIFAR-10 patches with temperature scaling"
    figures = "Fig. 15, 16"


class ModelNetTemperature(_Calibrated, ModelNetMain):
    """Fig. 8 and the temperatures of Fig. 14."""

    name = "modelnet-temperature"
    title = "ModelNet views with temperature scaling"
    figures = "Fig. 8, 14"
