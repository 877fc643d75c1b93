"""Noisy, faulty and adversarial agents: the paired excess error after 20 rounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from collegium import corruption
from collegium._util import randomness
from collegium.lab import study_networks
from collegium.lab.claims import Claim, above, all_of
from collegium.lab.figures import curve, finish, whole_numbers
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.topology import FullModelNet
from collegium.lab.study import Options
from collegium.lab.table import StudyRow, Table
from collegium.plots import panels

ROUNDS = 20
NOISE = (0.5, 1.0, 2.0, 4.0)
BIAS = (0.5, 1.0, 2.0, 4.0)
ADVERSARIAL = (0.0, 0.5, 1.0, 2.0)
PANELS = ("noise", "faulty", "adversarial")


class Robustness(FullModelNet):
    """m = 1 … K agents are corrupted, in an order drawn anew in each repetition; the clean run is the reference."""

    name = "robustness"
    title = "Robustness to noisy, faulty and adversarial agents"
    figures = "Fig. 12"

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """Excess error for every kind, severity and number of corrupted agents; `x` is that number."""
        s, over = record.scores, study_networks.of("modelnet")
        c, y = s.statistics("test"), s.y_test
        weights = over.power(ROUNDS)

        def error(statistics: Any) -> float:
            return float((~((statistics @ weights) * y[:, None] > 0)).mean())

        clean = error(c)
        seed = randomness.child(options.seed, job.repetition)
        order = np.random.default_rng(seed).permutation(c.shape[1])
        for m in range(1, c.shape[1] + 1):
            bad = np.sort(order[:m])
            kinds = {f"noise, η = {eta:g}": corruption.noise(c, bad, eta, seed) for eta in NOISE}
            kinds["faulty, stuck at 0"] = corruption.stuck(c, bad)
            kinds |= {f"faulty, bias η = {eta:g}": corruption.bias(c, bad, eta) for eta in BIAS}
            kinds |= {f"adversarial, η = {eta:g}": corruption.sign_flip(c, bad, eta) for eta in ADVERSARIAL}
            for name, said in kinds.items():
                yield StudyRow(
                    self.name, job.n0, job.repetition, "excess error", name, -1, ROUNDS, error(said) - clean, m
                )

    def draw(self, table: Table) -> dict[str, Any]:
        """A panel per family."""
        figure, all_axes = panels(3)
        for axes, family in zip(all_axes, PANELS, strict=True):
            part = table[table["method"].str.startswith(family)]
            for i, name in enumerate(dict.fromkeys(part["method"])):
                curve(axes, part[part["method"] == name], "x", name.partition(", ")[2], i, 100)
            axes.axhline(0, color="black", linewidth=0.6)
            whole_numbers(axes)
            silent = "" if family == "noise" else " (if all fall silent, all are wrong)"
            finish(axes, "corrupted agents", "excess error (points)", family + silent)
        return {self.name: figure}

    def claims(self, table: Table) -> list[Claim]:
        """Growth with m and with severity, and what does most harm."""
        wide = table.pivot_table(index="repetition", columns=["method", "x"], values="value")
        worst = {
            "noise": [f"noise, η = {eta:g}" for eta in NOISE],
            "bias": [f"faulty, bias η = {eta:g}" for eta in BIAS],
            "adversarial": [f"adversarial, η = {eta:g}" for eta in ADVERSARIAL],
        }
        most = int(table["x"].max())
        half = most // 2
        grows = [
            (family, above((wide[names[-1]][most] + wide[names[-1]][most - 1]) / 2 - wide[names[-1]][1]))
            for family, names in worst.items()
        ]
        severe = [(family, above(wide[names[-1]][half] - wide[names[0]][half])) for family, names in worst.items()]
        flips = wide["adversarial, η = 1"].mean(axis=1)
        others = [
            (name, above(flips - wide[name].mean(axis=1)))
            for name in (worst["noise"][1], worst["bias"][1], "faulty, stuck at 0")
        ]
        said = [
            ("the excess error grows with the number of corrupted agents", all_of(grows)),
            (f"it grows with the severity (m = {half})", all_of(severe)),
            ("sign flips of size 1 do more harm than noise, bias and silence of size 1", all_of(others)),
        ]
        return self._claims(said)
