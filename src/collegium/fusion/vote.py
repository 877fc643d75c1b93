"""Majority vote."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from collegium._util.arguments import whole_number
from collegium.agents.scores import Scores
from collegium.errors import ModelError
from collegium.fusion.base import Coordination, Doubles, ScoreMethod


class Vote(ScoreMethod):
    """The sign of Σ sign(c_k); an agent whose statistic is 0 abstains [hu2026, App. H.1].

    The paper names no rule for a tie, which an even number of voters meets. Here the agent number `chair` has the
    casting vote. If it abstains too, nobody has decided: an error for both classes, as a statistic of 0 always is.
    """

    name = "Vote"
    coordination = Coordination(inference="One-shot centralized voting")
    message_bits: ClassVar[int] = 1

    def __init__(self, chair: int = 0, center: bool = True, calibrate: bool = False, bounded: bool = False) -> None:
        super().__init__(center, calibrate, bounded)
        self.chair = chair

    def _learn(self, scores: Scores) -> int:
        whole_number(
            self.chair, "chair, the number of the agent with the casting vote,", ModelError, at_most=scores.size - 1
        )
        return 0

    def _fuse(self, c: Doubles) -> Doubles:
        votes = np.sign(c)
        fused: Doubles = votes.sum(axis=1) + votes[:, self.chair] / 2
        return fused
