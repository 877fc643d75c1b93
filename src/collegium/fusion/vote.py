"""Majority vote."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from collegium._util.arguments import whole_number
from collegium._util.margins import centred, named
from collegium.agents.scores import Scores
from collegium.errors import ModelError
from collegium.fusion.base import Coordination, Doubles, ScoreMethod


class Vote(ScoreMethod):
    """The sign of Σ sign(c_k); an agent whose statistic is 0 abstains [hu2026, App. H.1].

    Of several classes each agent names that of its largest entry, and abstains if two entries are largest; the class
    named most often is chosen.

    The paper names no rule for a tie, which an even number of voters meets. Here the agent number `chair` has the
    casting vote. If it abstains too, nobody has decided: an error for both classes, as a statistic of 0 always is. Of
    several classes the chair may have named none of those that tie, or abstain: then the agent after it has the casting
    vote, and so on, counted round.
    """

    name = "Vote"
    coordination = Coordination(inference="One-shot centralized voting")
    sends_labels: ClassVar[bool] = True

    def __init__(self, chair: int = 0, center: bool = True, calibrate: bool = False, bounded: bool = False) -> None:
        super().__init__(center, calibrate, bounded)
        self.chair = chair

    def _learn(self, scores: Scores) -> int:
        whole_number(
            self.chair, "chair, the number of the agent with the casting vote,", ModelError, at_most=scores.size - 1
        )
        return 0

    def _fuse(self, c: Doubles) -> Doubles:
        if c.ndim == 3:
            return _most_named(named(c), self.chair)
        votes = np.sign(c)
        fused: Doubles = votes.sum(axis=1) + votes[:, self.chair] / 2
        return fused


def _most_named(votes: Doubles, chair: int) -> Doubles:
    """Votes (n, K, C) of 0 and 1 counted, with half a vote more for a class that is to win a tie: shape (n, C)."""
    counts = votes.sum(axis=1)
    tied = counts == counts.max(axis=1, keepdims=True)
    casting = np.roll(votes, -chair, axis=1) * tied[:, None]
    first = casting.any(axis=2).argmax(axis=1)
    return centred(counts + casting[np.arange(len(votes)), first] / 2)
