"""The controlled correlation stress test: a common factor in the agents' statistics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from collegium import corruption
from collegium._util import randomness
from collegium.diagnostics import mean_correlation
from collegium.lab import study_networks
from collegium.lab.claims import Claim, above, all_of, below, within
from collegium.lab.figures import curve, finish
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.topology import FullModelNet
from collegium.lab.study import Options
from collegium.lab.table import StudyRow, Table
from collegium.plots import panels

ROUNDS = 20
STRENGTHS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""r, how strong the common part is against each agent's own."""
AMPLITUDES = (0.5, 1.0, 2.0)
"""σ_pert, in units of the median spread of the clean statistics: our choice, the paper names none."""


class Correlation(FullModelNet):
    """x' = x + σ (ω_c u + ω_i e): the same variance for each agent, more and more of it in common."""

    name = "modelnet-correlation"
    title = "Correlation stress test"
    figures = "Fig. 9, 17"

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """Correlations, errors alone and together, for every amplitude and strength; `x` is r."""
        s, over = record.scores, study_networks.of("modelnet")
        c, y = s.statistics("test"), s.y_test
        weights = over.power(ROUNDS)
        seed = randomness.child(options.seed, job.repetition)
        unit = corruption.scale(c)

        def rows(method: str, x: Any, r: float) -> Iterable[StudyRow]:
            alone = float((~(x * y[:, None] > 0)).mean())
            together = float((~((x @ weights) * y[:, None] > 0)).mean())
            numbers = {
                "error alone": (0, alone),
                "error together": (ROUNDS, together),
                "gain": (ROUNDS, alone - together),
                "correlation": (0, mean_correlation(x)),
                "correlation given the class": (
                    0,
                    float(np.mean([mean_correlation(x[y == sign]) for sign in (1, -1)])),
                ),
            }
            for quantity, (t, value) in numbers.items():
                yield StudyRow(self.name, job.n0, job.repetition, quantity, method, -1, t, value, r)

        yield from rows("clean", c, float("nan"))
        for amplitude in AMPLITUDES:
            for r in STRENGTHS:
                yield from rows(f"σ = {amplitude:g}", corruption.common_mode(c, r, amplitude * unit, seed), r)

    def draw(self, table: Table) -> dict[str, Any]:
        """Correlations and gain side by side; errors in a figure of their own."""
        figure, (left, right) = panels(2)
        overlay, (axes,) = panels(1, width=6.5, height=4.5)
        for i, amplitude in enumerate(AMPLITUDES):
            part = table[table["method"] == f"σ = {amplitude:g}"]
            by = dict(list(part.groupby("quantity")))
            label = f"σ = {amplitude:g}"
            curve(left, by["correlation"], "x", f"{label}, all items", i)
            curve(left, by["correlation given the class"], "x", f"{label}, given the class", i, linestyle="--")
            curve(right, by["gain"], "x", label, i, 100)
            curve(axes, by["error alone"], "x", f"{label}, alone", i, 100, linestyle="--")
            curve(axes, by["error together"], "x", f"{label}, after {ROUNDS} rounds", i, 100)
        clean = table[table["method"] == "clean"].groupby("quantity")["value"].mean()
        for quantity, dashes in (("error alone", "--"), ("error together", "-")):
            axes.axhline(
                100 * clean[quantity], color="black", linestyle=dashes, linewidth=0.8, label=f"clean, {quantity[6:]}"
            )
        finish(left, "strength of the common part, r", "mean pairwise correlation", "(a) correlation")
        finish(right, "strength of the common part, r", "gain (points)", f"(b) gain after {ROUNDS} rounds")
        finish(axes, "strength of the common part, r", "error (%)")
        return {self.name: figure, f"{self.name}-errors": overlay}

    def claims(self, table: Table) -> list[Claim]:
        """Correlation rises, gain falls, the error alone stays, and some gain is left."""
        wide = table[table["method"] != "clean"].pivot_table(
            index="repetition", columns=["quantity", "method", "x"], values="value"
        )
        names = [f"σ = {amplitude:g}" for amplitude in AMPLITUDES]
        first, last = STRENGTHS[0], STRENGTHS[-1]

        def change(quantity: str, name: str) -> Any:
            return wide[quantity][name][last] - wide[quantity][name][first]

        rises = [
            (f"{name}, {quantity}", above(change(quantity, name)))
            for name in names
            for quantity in ("correlation", "correlation given the class")
        ]
        said = [
            ("both correlations rise with the common part", all_of(rises)),
            ("the gain falls with it at every amplitude", all_of([(n, below(change("gain", n))) for n in names])),
            (
                "the error alone stays (within two points)",
                all_of([(n, within(change("error alone", n), 0.02)) for n in names]),
            ),
            ("some gain is left at r = 1", all_of([(n, above(wide["gain"][n][1.0])) for n in names])),
        ]
        return self._claims(said)
