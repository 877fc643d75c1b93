"""The plain mean of all statistics, at a centre."""

from __future__ import annotations

import numpy as np

from collegium.fusion.base import Coordination, Doubles, ScoreMethod


class AvgStat(ScoreMethod):
    """The sign of (1/K) Σ c_k: what collaboration tends to if A is doubly stochastic [hu2026, App. H.1].

    Of several classes, the largest entry of the same mean.
    """

    name = "Avg-stat"
    coordination = Coordination(inference="One-shot centralized averaging")

    def _fuse(self, c: Doubles) -> Doubles:
        return np.asarray(c.mean(axis=1))
