"""Noisy, faulty and adversarial agents: the paired excess error after 20 rounds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from collegium import corruption
from collegium._util import randomness
from collegium.errors import LabelError
from collegium.lab import study_networks
from collegium.lab.claims import Claim, above, all_of, below
from collegium.lab.figures import curve, finish, whole_numbers
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies.full_size import FullSize
from collegium.lab.study import Options
from collegium.lab.table import Factors, StudyRow, Table, values
from collegium.plots import panels
from collegium.tuning import tune

ROUNDS = 20
NOISE = (0.5, 1.0, 2.0, 4.0)
BIAS = (0.5, 1.0, 2.0, 4.0)
FLIPS = (0.0, 0.5, 1.0, 2.0)
PANELS = {"noise": ("noise",), "faulty": ("stuck", "bias"), "adversarial": ("sign flip",)}
"""Which corruptions are drawn side by side."""
MENDED = 1.0
"""The strength of faults and sign flips with which agents are tuned as well."""


class Robustness(FullSize):
    """m = 1 … K agents are corrupted, in an order drawn anew in each repetition; the clean run is the reference.

    Beyond the paper: what is left of the harm if the agents, corrupted as they are, tune themselves on the validation
    items.
    """

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

        clean, K = error(c), c.shape[1]
        seed = randomness.child(options.seed, job.repetition)
        order = np.random.default_rng(seed).permutation(K)
        val, unit = s.statistics("val"), corruption.scale(c)
        for m in range(1, K + 1):
            bad = np.sort(order[:m])
            for kind, eta in _kinds():
                levels: dict[str, Any] = {"corruption": kind, "corrupted": m} | (
                    {} if kind == "stuck" else {"strength": eta}
                )
                reported = _corrupted(kind, c, bad, eta, seed, unit)
                yield self.row(job, "excess error", error(reported) - clean, method="Ours", round=ROUNDS, **levels)
                if m in (1, K // 4, K // 2, 3 * K // 4, K) and (kind == "stuck" or (kind != "noise" and eta == MENDED)):
                    tuned = _tuned(_corrupted(kind, val, bad, eta, seed, unit), s.y_val, over, reported)
                    yield self.row(job, "excess error", error(tuned) - clean, method="Tuned", round=ROUNDS, **levels)

    def draw(self, table: Table) -> dict[str, Any]:
        """A panel per family."""
        figure, all_axes = panels(3)
        most = table["corrupted"].max()
        silent = table["corruption"].eq("stuck") | (table["corruption"].eq("sign flip") & table["strength"].eq(0))
        table = table[~(silent & table["corrupted"].eq(most))]
        for axes, (family, corruptions) in zip(all_axes, PANELS.items(), strict=True):
            part = table[table["corruption"].isin(corruptions)]
            kinds = part.groupby(["corruption", "strength"], sort=False, dropna=False)
            for i, ((kind, eta), found) in enumerate(kinds):
                ours, tuned = (found[found["method"] == method] for method in ("Ours", "Tuned"))
                curve(axes, ours, "corrupted", _name(kind, eta), i, 100)
                curve(axes, tuned, "corrupted", f"{_name(kind, eta)}, tuned", i, 100, linestyle="--")
            axes.axhline(0, color="black", linewidth=0.6)
            whole_numbers(axes)
            note = "" if family == "noise" else f" ({most} agents at 0 only tie: not drawn)"
            finish(axes, "corrupted agents", "excess error (points)", family + note)
        return {self.name: figure}

    def claims(self, table: Table) -> list[Claim]:
        """Growth with m and with severity, what does most harm, and what tuning mends."""
        everything, table = table, table[table["method"] == "Ours"]
        most = int(table["corrupted"].max())
        half = most // 2
        rises, grows, severe = [], [], []
        for kind, etas in (("noise", NOISE), ("bias", BIAS), ("sign flip", FLIPS)):
            at = partial(values, table, corruption=kind)
            grows += [
                (
                    f"{kind} η = {eta:g}, {m + 1} corrupted",
                    above(at(strength=eta, corrupted=m + 1) - at(strength=eta, corrupted=m)),
                )
                for eta in etas
                for m in range(1, most if eta > 0 else most - 1)  # all agents at 0 only tie
            ]
            of = table[table["corruption"] == kind].pivot_table(
                index=["strength", "repetition"], columns="corrupted", values="value"
            )
            rises += [
                (f"{kind} η = {eta:g}", above(np.polyfit(part.columns, part.T, 1)[0]))
                for eta, part in of.groupby("strength")
                if eta > 0
            ]
            severe += [
                (
                    f"{kind} η = {eta:g}, {m} corrupted",
                    above(at(strength=eta, corrupted=m) - at(strength=mild, corrupted=m)),
                )
                for m in range(1, most + 1)
                for mild, eta in pairwise(etas)
                if mild > 0 or m < most  # all agents at 0 only tie
            ]
        flips_at = partial(values, table, corruption="sign flip", strength=1.0)
        flips = flips_at()
        others = [
            ("noise, η = 1", above(flips - values(table, corruption="noise", strength=1.0))),
            ("faulty, bias η = 1", above(flips - values(table, corruption="bias", strength=1.0))),
            ("faulty, stuck at 0", above(flips - values(table, corruption="stuck"))),
        ]
        gradual = [
            (f"{name}, {m} corrupted", above(flips_at(corrupted=m) - values(table, corrupted=m, **levels)))
            for name, levels in (
                ("noise, η = 1", {"corruption": "noise", "strength": 1.0}),
                ("bias, η = 1", {"corruption": "bias", "strength": 1.0}),
                ("stuck at 0", {"corruption": "stuck"}),
            )
            for m in range(1, half + 1)
        ]
        said = [
            (f"noise and faults degrade more gradually than sign flips (η = 1, m up to {half})", all_of(gradual)),
            ("the excess error grows with the number of corrupted agents (slope)", all_of(rises)),
            ("the excess error grows with every further corrupted agent", all_of(grows)),
            (
                f"it grows from every severity to the next (m = {half})",
                all_of([(name, found) for name, found in severe if name.endswith(f", {half} corrupted")]),
            ),
            ("it grows from every severity to the next, whatever m", all_of(severe)),
            ("sign flips of size 1 do more harm than noise, bias and silence of size 1", all_of(others)),
        ]
        tuned, half_of = everything[everything["method"] == "Tuned"], {"corrupted": half}
        if len(tuned):  # tables of earlier versions have none
            mended = [
                (name, below(values(tuned, corruption=kind, **half_of) - values(part, corruption=kind, **half_of)))
                for name, kind in (("stuck", "stuck"), ("bias, η = 1", "bias"), ("sign flips, η = 1", "sign flip"))
                for part in [table if kind == "stuck" else table[table["strength"] == 1.0]]
            ]
            said.append(
                (f"tuned agents are below ours with the same corruption (m = {half}) (our question)", all_of(mended))
            )
        return self.judged(said)


def _kinds() -> list[tuple[str, float]]:
    """Corruptions, each with its strength η; being stuck has none."""
    families = {"noise": NOISE, "stuck": (np.nan,), "bias": BIAS, "sign flip": FLIPS}
    return [(kind, eta) for kind, etas in families.items() for eta in etas]


def _corrupted(kind: str, scores: Any, bad: Any, eta: float, seed: int, unit: float) -> Any:
    """What the agents report."""
    match kind:
        case "noise":
            return corruption.noise(scores, bad, eta, seed, unit)
        case "bias":
            return corruption.bias(scores, bad, eta, unit)
        case "stuck":
            return corruption.stuck(scores, bad)
        case _:
            return corruption.sign_flip(scores, bad, eta)


def _tuned(seen: Any, y: Any, over: Any, reported: Any) -> Any:
    """What enters the network of what is reported, once the agents have tuned themselves on items they have seen."""
    try:
        return tune(seen, y, over)(reported)
    except LabelError:  # too few items to learn from: gains stay equal
        return reported


def _name(corruption: str, eta: float) -> str:
    """What a curve is called in its family's panel."""
    if corruption == "stuck":
        return "stuck at 0"
    return f"bias η = {eta:g}" if corruption == "bias" else f"η = {eta:g}"
