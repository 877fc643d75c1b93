"""A fitted method in the hands of every agent, for networks that pass all scores on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collegium.errors import ModelError
from collegium.fusion.base import Doubles, Method


@dataclass(frozen=True, eq=False)
class Everybody:
    """What a fitted method makes of all agents' raw scores, as `protocol.Flood(decide=…)` wants it.

    method: fitted, and deciding at one place by scores alone, such as `AvgStat`, `LearnedFusion` or `Stacking`.
    """

    method: Method

    def __post_init__(self) -> None:
        if not isinstance(self.method, Method) or self.method.needs_views:
            raise ModelError(f"agents that pass scores on decide by a fusion method of scores, not {self.method!r:.60}")
        self.method._fitted()

    def __call__(self, scores: Doubles) -> Doubles:
        """The statistics of n items, shape (n,) or (n, C), from raw scores (n, K) or (n, K, C)."""
        decided = self.method.decide(scores).statistics
        if decided.shape[1] != 1:
            raise ModelError(
                f"{type(self.method).__name__} decides at every agent by itself: it needs no scores of others"
            )
        return np.asarray(decided[:, 0])
