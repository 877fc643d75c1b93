"""Relative gain of every model family at every place, families rotated over three layouts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from collegium import fusion
from collegium.lab import study_networks
from collegium.lab.claims import Claim, above, all_of, varies
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.study import Options, Study, repetitions, sizes
from collegium.lab.table import Factors, StudyRow, Table
from collegium.network import collaborate
from collegium.plots import panels

ROUND = 15
SAFE = 1e-6
LAYOUTS = ("ABCBCACAB", "BCACABABC", "CABABCBCA")
"""The base layout, row by row, and its two cyclic shifts."""
NAMES = {"A": "PatchCNN", "B": "logistic regression", "C": "small ResNet"}


class HeteroGain(Study):
    """Each family stands at each place in one of the three layouts."""

    name = "cifar-hetero-gain"
    title = "Collaboration gain of three model families at nine places"
    figures = "Fig. 4"
    factors: ClassVar[Factors] = {"family": str, "layout": str}

    def jobs(self, options: Options) -> list[Job]:
        """Every layout and repetition, at one size."""
        n0 = max(sizes(options, (2000,), (200,)))
        return [
            Job("cifar10", n0, r, layout, options.seed, epochs=3 if options.quick else None)
            for layout in LAYOUTS
            for r in range(repetitions(options, 15))
        ]

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """100 (P_0 - P_15) / P_0 for every agent, and the same where agents have tuned themselves before."""
        s, over = record.scores, study_networks.of(record.scores.size)
        errors = collaborate(s.statistics("test"), over, ROUND).errors(s.y_test)
        entering = fusion.Tuned(over).fit(s).statistics(s.test)
        tuned = collaborate(entering, over, ROUND, record="final").errors(s.y_test)[-1]
        for method, after in (("Ours", errors[ROUND]), ("Tuned", tuned)):
            for k, letter in enumerate(job.layout):
                gain = 100 * (errors[0, k] - after[k]) / max(errors[0, k], SAFE)
                levels = {"family": NAMES[letter], "layout": job.layout}
                yield self.row(job, "relative gain", gain, method=method, agent=k, round=ROUND, **levels)

    def draw(self, table: Table) -> dict[str, Any]:
        """A 3×3 map per family, untuned."""
        table = table[table["method"] == "Ours"]
        figure, all_axes = panels(3, width=3.6, height=3.4)
        means = table.groupby(["family", "agent"])["value"].mean()
        low, high = min(0.0, float(means.min())), float(means.max())
        for axes, family in zip(all_axes, NAMES.values(), strict=True):
            grid = means[family].to_numpy().reshape(3, 3)
            shown = axes.imshow(grid, cmap="viridis", vmin=low, vmax=high)
            for (i, j), value in _cells(grid):
                dark = value < (low + high) / 2
                axes.text(j, i, f"{value:.1f} %", ha="center", va="center", color="white" if dark else "black")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_title(family, fontsize=10)
        figure.colorbar(shown, ax=all_axes, label=f"relative gain at round {ROUND} (%)", shrink=0.8)
        return {self.name: figure}

    def claims(self, table: Table) -> list[Claim]:
        """Collaboration helps everybody everywhere, and whether it helps more where agents have tuned themselves."""
        tuned, table = (table[table["method"] == method] for method in ("Tuned", "Ours"))
        by_family = [
            (family, above(part.groupby("repetition")["value"].mean())) for family, part in table.groupby("family")
        ]
        cells = [
            (f"{family} at {place}", above(part["value"]))
            for (family, place), part in table.groupby(["family", "agent"])
        ]
        sure = sum(found.verdict == "holds" for _, found in cells)
        means = table.groupby(["family", "agent"])["value"].mean()
        numbers = f"{sure} of {len(cells)} surely; mean gains from {means.min():.2f} to {means.max():.2f} %"
        said = [
            ("collaboration helps all three families", all_of(by_family)),
            ("it helps each family at all nine places", all_of(cells)._replace(numbers=numbers, basis="")),
            ("the gain varies with the family", varies(_by(table, "family"))),
            ("it varies with the place", varies(_by(table, "agent"))),
        ]
        if len(tuned):  # tables of earlier versions have none
            more = [
                (family, above(_means(tuned, family) - _means(table, family))) for family in tuned["family"].unique()
            ]
            said.append(("each family gains more where agents have tuned themselves (our question)", all_of(more)))
        return self.judged(said)


def _means(table: Table, family: str) -> Any:
    return table[table["family"] == family].groupby("repetition")["value"].mean()


def _by(table: Table, column: str) -> Any:
    """Mean gains, a row per repetition and a column per level."""
    return table.pivot_table(index="repetition", columns=column, values="value").dropna().to_numpy()


def _cells(grid: Any) -> Iterable[tuple[tuple[int, int], float]]:
    return (((i, j), float(grid[i, j])) for i in range(3) for j in range(3))
