"""The controlled correlation stress test: a common factor in the agents' statistics."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from collegium import corruption
from collegium._util import randomness
from collegium.diagnostics import mean_correlation
from collegium.lab import study_networks
from collegium.lab.claims import Claim, Finding, above, all_of, below, within
from collegium.lab.figures import curve, finish
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.full_size import FullSize
from collegium.lab.study import Options
from collegium.lab.table import Factors, StudyRow, Table, values
from collegium.plots import panels

ROUNDS = 20
STRENGTHS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""r, how strong the common part is against each agent's own."""
ALONE, TOGETHER = "error alone", "error together"
AMPLITUDES = (0.5, 1.0, 2.0)
"""σ_pert, in units of the median spread of the clean statistics: our choice, the paper names none."""


class Correlation(FullSize):
    """x' = x + σ (ω_c u + ω_i e): the same variance for each agent, more and more of it in common."""

    name = "modelnet-correlation"
    title = "Correlation stress test"
    figures = "Fig. 9, H.5"
    kind = "correlation"
    factors: ClassVar[Factors] = {"amplitude": float, "strength": float}

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """Correlations, errors alone and together, for every amplitude and strength; clean is amplitude 0."""
        s, over = record.scores, study_networks.of(record.scores.size)
        c, y = s.statistics("test"), s.y_test
        weights = over.power(ROUNDS)
        seed = randomness.child(options.seed, job.repetition)
        unit = corruption.scale(c)

        def rows(x: Any, **levels: Any) -> Iterable[StudyRow]:
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
                yield self.row(job, quantity, value, method="Ours", round=t, **levels)

        yield from rows(c, amplitude=0.0)
        for amplitude in AMPLITUDES:
            for r in STRENGTHS:
                x = corruption.common_mode(c, r, amplitude * unit, seed)
                yield from rows(x, amplitude=amplitude, strength=r)

    def draw(self, table: Table) -> dict[str, Any]:
        """Correlations and gain side by side; errors in a figure of their own."""
        figure, (left, right) = panels(2)
        overlay, (axes,) = panels(1, width=6.5, height=4.5)
        for i, amplitude in enumerate(AMPLITUDES):
            by = dict(list(table[table["amplitude"] == amplitude].groupby("quantity")))
            label = _name(amplitude)
            curve(left, by["correlation"], "strength", f"{label}, all items", i)
            curve(left, by["correlation given the class"], "strength", f"{label}, given the class", i, linestyle="--")
            curve(right, by["gain"], "strength", label, i, 100)
            curve(axes, by["error alone"], "strength", f"{label}, alone", i, 100, linestyle="--")
            curve(axes, by["error together"], "strength", f"{label}, after {ROUNDS} rounds", i, 100)
        clean = table[table["amplitude"] == 0].groupby("quantity")["value"].mean()
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

        def at(quantity: str, amplitude: float, strength: float) -> Any:
            return values(table, quantity=quantity, amplitude=amplitude, strength=strength)

        def change(quantity: str, amplitude: float) -> Any:
            return at(quantity, amplitude, STRENGTHS[-1]) - at(quantity, amplitude, STRENGTHS[0])

        def steps(quantity: str, sign: int) -> Finding:
            """Whether a quantity goes up (or down) from every strength to the next, at every amplitude."""
            return all_of(
                [
                    (f"{_name(a)}, r = {r:g}", above(sign * (at(quantity, a, r) - at(quantity, a, before))))
                    for a in AMPLITUDES
                    for before, r in pairwise(STRENGTHS)
                ]
            )

        by_sigma = [
            (f"{which[6:]}, {_name(b)} against {_name(a)}, r = {r:g}", above(at(which, b, r) - at(which, a, r)))
            for which in (ALONE, TOGETHER)
            for a, b in pairwise(AMPLITUDES)
            for r in STRENGTHS
        ]
        rises = [
            (f"{_name(amplitude)}, {quantity}", above(change(quantity, amplitude)))
            for amplitude in AMPLITUDES
            for quantity in ("correlation", "correlation given the class")
        ]
        said = [
            ("both correlations rise with the common part", all_of(rises)),
            (
                "the gain falls with it at every amplitude",
                all_of([(_name(a), below(change("gain", a))) for a in AMPLITUDES]),
            ),
            (
                "the error alone stays (within two points)",
                all_of([(_name(a), within(change("error alone", a), 0.02)) for a in AMPLITUDES]),
            ),
            ("from every r to the next the correlation given the class rises", steps("correlation given the class", 1)),
            ("from every r to the next the correlation rises", steps("correlation", 1)),
            ("from every r to the next the gain falls", steps("gain", -1)),
            (
                "the error together rises with r at every amplitude",
                all_of([(_name(a), above(change(TOGETHER, a))) for a in AMPLITUDES]),
            ),
            ("the error together rises from every r to the next", steps(TOGETHER, 1)),
            ("the errors, alone and together, rise with σ", all_of(by_sigma)),
            ("some gain is left at r = 1", all_of([(_name(a), above(at("gain", a, 1.0))) for a in AMPLITUDES])),
        ]
        return self.judged(said)


def _name(amplitude: float) -> str:
    return f"σ = {amplitude:g}"
