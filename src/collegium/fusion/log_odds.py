"""The agents' log-odds added up, as if they were independent given the class."""

from __future__ import annotations

import numpy as np

from collegium._util.margins import centred
from collegium.agents.scores import Scores
from collegium.fusion.base import Coordination, Doubles, ScoreMethod


class LogOddsSum(ScoreMethod):
    r"""Naive Bayes over the agents: Σ f_k - (K-1) log(P(+1)/P(-1)).

    If views are independent given the class and every f_k is the true log-odds of its agent, this sum is the true
    log-odds given all views. Hence temperatures are on unless told, and nothing is centred: the prior, from the
    training labels, is subtracted instead, because every agent's log-odds contain it once. Of several classes the same
    is done with log-probabilities, entry by entry.
    """

    name = "Log-odds sum"
    coordination = Coordination(inference="One-shot centralized summation")
    prior_: float | Doubles
    """The log-odds of +1 in training; of several classes log-probabilities less their mean, shape (C,)."""

    def __init__(self, calibrate: bool = True) -> None:
        super().__init__(center=False, calibrate=calibrate)

    def _learn(self, scores: Scores) -> int:
        if self.classes_ > 2:
            self.prior_ = centred(np.log(np.bincount(scores.y_train, minlength=self.classes_) + 1.0))
            return 0
        positive = np.count_nonzero(scores.y_train > 0)
        self.prior_ = float(np.log((positive + 1) / (len(scores.y_train) - positive + 1)))
        return 0

    def _fuse(self, c: Doubles) -> Doubles:
        fused: Doubles = c.sum(axis=1) - (c.shape[1] - 1) * self.prior_
        return fused
