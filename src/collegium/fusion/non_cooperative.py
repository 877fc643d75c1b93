"""Everybody for itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collegium.fusion.base import Coordination, Decision, ScoreMethod


class NonCooperative(ScoreMethod):
    """Each agent decides from its own statistic; nothing is sent [hu2026, App. H.1]."""

    name = "Non-cooperative"
    coordination = Coordination()

    def decide(self, X: ArrayLike) -> Decision:
        """Every agent decides alone."""
        c = self.statistics(X)
        nothing = np.zeros(len(c), np.int64)
        return Decision(c, nothing, nothing)
