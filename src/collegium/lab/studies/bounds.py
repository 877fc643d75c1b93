"""What the paper remarks of its bounds, in numbers: no data, no training."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from collegium import theory
from collegium.lab import study_networks
from collegium.lab.claims import Claim, exactly
from collegium.lab.figures import COLOURS, finish
from collegium.lab.studies.topology import WEIGHINGS
from collegium.lab.study import DataStudy, Options
from collegium.lab.table import Factors, StudyRow, Table
from collegium.plots import panels

K, BETA, DELTA, ROUNDS = 12, 1.0, 0.9, 200
"""Twelve agents with a margin at which the bounds say something; so many rounds that the ring has mixed."""
BITS = (2, 3, 4, 6, 8, 10, 12, 16)
DRAWN = (2, 3, 4, 6, 8)
TAUS = (1.0, 2.0, 4.0, 8.0, 11.9, 12.1, 16.0)
"""Dependence factors tried against τΣπ² < 1."""
SUFFICIENT, FINITE, COARSE, SOCIAL = "Thm 1", "Thm 2", "Thm 3", "Prop. F.1"
NEAR = 0.01
"""A relative difference of exponents that is as good as none."""


class Bounds(DataStudy):
    """The bounds of the worst agent on the ring of twelve, for every round and precision."""

    name = "bounds"
    title = "The remarks on the bounds, in numbers"
    figures = "Thms 1 to 3, App. F"
    factors: ClassVar[Factors] = {"topology": str, "weights": str, "bits": int, "tau": float}

    def examine(self, options: Options) -> Iterable[StudyRow]:
        """Bounds by round, the accumulated rounding V, the bits sent; Thm 1 against one agent alone for several τ."""
        graphs = study_networks.graphs(K)
        ring = WEIGHINGS["uniform"](graphs["ring"])
        finite = theory.finite_round(ring, DELTA, BETA, ROUNDS).value.max(axis=1)
        social = theory.social_learning(ring, DELTA, BETA, 100 * ROUNDS).value[-1].max()
        coarse = theory.finite_precision(ring, DELTA, BETA, ROUNDS, list(BITS))
        yield self.row(None, "bound", float(theory.sufficient(ring, DELTA, BETA).value), method=SUFFICIENT)
        yield self.row(None, "bound", social, method=SOCIAL, round=100 * ROUNDS)
        for t, value in enumerate(finite):
            yield self.row(None, "bound", value, method=FINITE, round=t)
        for i, bits in enumerate(BITS):
            yield self.row(None, "rounding", coarse.parts["V"][i, -1].max(), method=COARSE, round=ROUNDS, bits=bits)
            yield self.row(None, "bits sent", coarse.parts["B_total"][i, -1], method=COARSE, round=ROUNDS, bits=bits)
            for t, value in enumerate(coarse.value[i].max(axis=1)):
                yield self.row(None, "bound", value, method=COARSE, round=t, bits=bits)
        for name, graph in graphs.items():
            for weights, rule in WEIGHINGS.items():
                for tau in TAUS:
                    levels: dict[str, Any] = {"topology": name, "weights": weights, "tau": tau}
                    over = rule(graph)
                    alone = np.exp(-(DELTA**2) / (2 * BETA**2))  # Thm 1 for one agent, whose views depend on nothing
                    gain = alone - theory.sufficient(over, DELTA, BETA, tau).value
                    yield self.row(None, "gain of the bound", gain, method=SUFFICIENT, **levels)
                    penalty = float(theory.dependence_penalty(over, tau))
                    yield self.row(None, "penalty", penalty, method=SUFFICIENT, **levels)

    def draw(self, table: Table) -> dict[str, Any]:
        """Bounds against rounds, and the accumulated rounding against bits."""
        figure, (left, right) = panels(2)
        bound = table[table["quantity"] == "bound"]
        coarse = bound[bound["method"] == COARSE]
        for i, bits in enumerate(DRAWN):
            part = coarse[coarse["bits"] == bits]
            left.plot(part["round"], part["value"], color=COLOURS[i], label=f"Thm 3, {bits} bits")
        finite = bound[bound["method"] == FINITE]
        left.plot(finite["round"], finite["value"], color="black", label="Thm 2")
        limit = bound.loc[bound["method"] == SUFFICIENT, "value"].item()
        left.axhline(limit, color="black", linestyle=":", label="Thm 1")
        left.set_xscale("log")
        left.set_yscale("log")
        left.set_xlim(10, ROUNDS)  # before, none of them says anything
        finish(left, "communication round", "bound of the worst agent", f"(a) a ring of {K}, δ = {DELTA:g} β")
        rounding = table[table["quantity"] == "rounding"]
        right.plot(rounding["bits"], rounding["value"], "o-", color=COLOURS[0], label="V of Thm 3")
        first = rounding.iloc[0]
        slope = first["value"] * 4.0 ** (first["bits"] - rounding["bits"].to_numpy(float))
        right.plot(rounding["bits"], slope, "--", color=COLOURS[1], label="as $2^{-2b}$")
        right.set_yscale("log")
        finish(right, "bits of a message, b", "accumulated rounding", f"(b) after {ROUNDS} rounds")
        return {self.name: figure}

    def claims(self, table: Table) -> list[Claim]:
        """Limits, what is not monotone, how rounding and bits grow, and when deciding together has the better bound."""
        bound = table[table["quantity"] == "bound"]
        coarse = bound[bound["method"] == COARSE].pivot_table(index="round", columns="bits", values="value")
        finite = bound[bound["method"] == FINITE].set_index("round")["value"]
        enough, social = (bound.loc[bound["method"] == name, "value"].item() for name in (SUFFICIENT, SOCIAL))
        best = {bits: int(coarse[bits].idxmin()) for bits in BITS if coarse[bits].notna().any()}
        later = {bits: t for bits, t in best.items() if coarse[bits].iloc[-1] > 1.001 * coarse[bits][t]}
        shown = "; ".join(
            f"{bits} bits: {coarse[bits][t]:.3g} at round {t}, {coarse[bits].iloc[-1]:.3g} at {ROUNDS}"
            for bits, t in later.items()
        )
        V = table[table["quantity"] == "rounding"].set_index("bits")["value"]
        ratios = {(a, b): (V[a] / V[b]) ** (1 / (b - a)) for a, b in pairwise(BITS) if a >= 6}
        sent = table[table["quantity"] == "bits sent"].set_index("bits")["value"]
        each = sent / sent.index.to_numpy(float)
        apart = {bits: _apart(coarse[bits].iloc[-1], finite.iloc[-1]) for bits in BITS[-4:]}
        wide = table.pivot_table(index=["topology", "weights", "tau"], columns="quantity", values="value")
        agree = (wide["penalty"] < 1) == (wide["gain of the bound"] > 0)
        ends = f"{finite.iloc[-1]:.6g} against {enough:.6g}"
        said = [
            (
                "the bound of Thm 3 need not fall with the rounds",
                exactly(len(later) > 0, shown or "it falls at all bits"),
            ),
            (
                "V of Thm 3 falls like 2^(-2b)",
                exactly(
                    all(abs(ratio - 4) < 0.1 for ratio in ratios.values()),
                    "a bit more divides it by " + ", ".join(f"{x:.3f} ({a} to {b})" for (a, b), x in ratios.items()),
                ),
            ),
            (
                "Thm 3 tends to Thm 2 as b grows",
                exactly(
                    bool(np.all(np.diff(list(apart.values())) < 0)) and apart[BITS[-1]] < NEAR,
                    "exponents apart by " + ", ".join(f"{x:.2g} at {bits} bits" for bits, x in apart.items()),
                ),
            ),
            ("Thm 2 tends to Thm 1 as t grows", exactly(_apart(finite.iloc[-1], enough) < NEAR, f"{ends} at {ROUNDS}")),
            (
                "the bound of social learning tends to that of Thm 1",
                exactly(
                    _apart(social, enough) < NEAR, f"{social:.6g} against {enough:.6g} after {100 * ROUNDS:,} rounds"
                ),
            ),
            (
                "bits sent grow linearly with b",
                exactly(bool(np.ptp(each) == 0), f"{each.iloc[0]:,.0f} for each bit in {ROUNDS} rounds"),
            ),
            (
                "the bound of the aggregate is below one agent's exactly where τ Σπ² < 1",
                exactly(
                    bool(agree.all()),
                    f"{agree.sum()} of {len(agree)} networks and τ, {(wide['penalty'] < 1).sum()} below",
                ),
            ),
        ]
        return self.judged(said)


def _apart(bound: float, other: float) -> float:
    """How far two bounds' exponents are apart, relative to the second's."""
    return float(abs(np.log(bound) / np.log(other) - 1))
