"""Noisy, faulty and adversarial agents: the paired excess error after 20 rounds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from collegium import corruption
from collegium._util import randomness
from collegium.lab import study_networks
from collegium.lab.claims import Claim, above, all_of
from collegium.lab.figures import curve, finish, whole_numbers
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.full_size import FullSize
from collegium.lab.study import Options
from collegium.lab.table import Factors, StudyRow, Table, values
from collegium.plots import panels

ROUNDS = 20
NOISE = (0.5, 1.0, 2.0, 4.0)
BIAS = (0.5, 1.0, 2.0, 4.0)
FLIPS = (0.0, 0.5, 1.0, 2.0)
PANELS = {"noise": ("noise",), "faulty": ("stuck", "bias"), "adversarial": ("sign flip",)}
"""Which corruptions are drawn side by side."""


class Robustness(FullSize):
    """m = 1 … K agents are corrupted, in an order drawn anew in each repetition; the clean run is the reference."""

    name = "robustness"
    title = "Robustness to noisy, faulty and adversarial agents"
    figures = "Fig. 12"
    kind = "robustness"
    factors: ClassVar[Factors] = {"corruption": str, "strength": float, "corrupted": int}

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """Excess error for every corruption, its strength η and the number of corrupted agents."""
        s, over = record.scores, study_networks.of(record.scores.size)
        c, y = s.statistics("test"), s.y_test
        weights = over.power(ROUNDS)

        def error(statistics: Any) -> float:
            return float((~((statistics @ weights) * y[:, None] > 0)).mean())

        clean = error(c)
        seed = randomness.child(options.seed, job.repetition)
        order = np.random.default_rng(seed).permutation(c.shape[1])
        for m in range(1, c.shape[1] + 1):
            bad = np.sort(order[:m])
            reports: list[tuple[dict[str, Any], Any]] = [
                *(({"corruption": "noise", "strength": eta}, corruption.noise(c, bad, eta, seed)) for eta in NOISE),
                ({"corruption": "stuck"}, corruption.stuck(c, bad)),
                *(({"corruption": "bias", "strength": eta}, corruption.bias(c, bad, eta)) for eta in BIAS),
                *(({"corruption": "sign flip", "strength": eta}, corruption.sign_flip(c, bad, eta)) for eta in FLIPS),
            ]
            for levels, reported in reports:
                excess = error(reported) - clean
                yield self.row(job, "excess error", excess, method="Ours", round=ROUNDS, corrupted=m, **levels)

    def draw(self, table: Table) -> dict[str, Any]:
        """A panel per family."""
        figure, all_axes = panels(3)
        for axes, (family, corruptions) in zip(all_axes, PANELS.items(), strict=True):
            part = table[table["corruption"].isin(corruptions)]
            kinds = part.groupby(["corruption", "strength"], sort=False, dropna=False)
            for i, ((kind, eta), found) in enumerate(kinds):
                curve(axes, found, "corrupted", _name(kind, eta), i, 100)
            axes.axhline(0, color="black", linewidth=0.6)
            whole_numbers(axes)
            silent = "" if family == "noise" else " (if all fall silent, all are wrong)"
            finish(axes, "corrupted agents", "excess error (points)", family + silent)
        return {self.name: figure}

    def claims(self, table: Table) -> list[Claim]:
        """Growth with m and with severity, and what does most harm."""
        most = int(table["corrupted"].max())
        half = most // 2
        grows, severe = [], []
        for name, kind, etas in (
            ("noise", "noise", NOISE),
            ("bias", "bias", BIAS),
            ("adversarial", "sign flip", FLIPS),
        ):
            mild, worst = (partial(values, table, corruption=kind, strength=eta) for eta in (etas[0], etas[-1]))
            grows.append((name, above((worst(corrupted=most) + worst(corrupted=most - 1)) / 2 - worst(corrupted=1))))
            severe.append((name, above(worst(corrupted=half) - mild(corrupted=half))))
        flips = values(table, corruption="sign flip", strength=1.0)
        others = [
            ("noise, η = 1", above(flips - values(table, corruption="noise", strength=1.0))),
            ("faulty, bias η = 1", above(flips - values(table, corruption="bias", strength=1.0))),
            ("faulty, stuck at 0", above(flips - values(table, corruption="stuck"))),
        ]
        said = [
            ("the excess error grows with the number of corrupted agents", all_of(grows)),
            (f"it grows with the severity (m = {half})", all_of(severe)),
            ("sign flips of size 1 do more harm than noise, bias and silence of size 1", all_of(others)),
        ]
        return self.judged(said)


def _name(corruption: str, eta: float) -> str:
    """What a curve is called in its family's panel."""
    if corruption == "stuck":
        return "stuck at 0"
    return f"bias η = {eta:g}" if corruption == "bias" else f"η = {eta:g}"
