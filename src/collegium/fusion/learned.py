"""An affine rule learned from validation statistics, at a centre."""

from __future__ import annotations

import warnings

import numpy as np

from collegium._util.arguments import real_number
from collegium._util.margins import centred
from collegium.agents.scores import Scores
from collegium.errors import ModelError
from collegium.fusion.base import Coordination, Doubles, ScoreMethod


class LearnedFusion(ScoreMethod):
    r"""The sign of w·c + b, both fitted on the validation items by logistic regression [hu2026, App. H.1].

    $$ \min_{w, b} \sum_n \log\bigl(1 + e^{-\gamma_n (w^\top c_n + b)}\bigr)
       + \tfrac{\text{ridge}}{2} \sum_k (s_k w_k)^2 $$

    where s_k is the spread of agent k's validation statistics, so that their scale does not matter. The paper names no
    penalty; without one a validation set that can be separated has no solution. `ridge` 1 is scikit-learn's default.

    Of C classes it is multinomial logistic regression on all K·C entries: each class has weights for every agent's
    statistic of every class, so that an agent that mistakes one class for another is understood.
    """

    name = "Learned fusion"
    coordination = Coordination(
        fitting="Fusion rule fitted on aligned validation outputs", inference="One-shot centralized fusion"
    )
    weights_: Doubles
    """Shape (K,); of C classes (C, K, C), the class decided about first."""
    bias_: float | Doubles
    """One number; of C classes (C,)."""

    def __init__(self, ridge: float = 1.0, center: bool = True, calibrate: bool = False, bounded: bool = False) -> None:
        super().__init__(center, calibrate, bounded)
        self.ridge = ridge

    def _learn(self, scores: Scores) -> int:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        C = 1 / real_number(self.ridge, "ridge", ModelError, above=0)
        c, y = self.statistics_for_fitting(scores)
        features = c.reshape(len(c), -1)
        spread = features.std(axis=0)
        spread[spread == 0] = 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            try:
                rule = LogisticRegression(C=C, solver="lbfgs", tol=1e-8, max_iter=10_000).fit(features / spread, y)
            except ConvergenceWarning as problem:
                raise ModelError(f"the fusion rule did not converge ({problem}): try a larger ridge") from None
        if self.classes_ == 2:
            self.weights_ = rule.coef_[0] / spread
            self.bias_ = float(rule.intercept_[0])
        else:
            self.weights_ = (rule.coef_ / spread).reshape(-1, *c.shape[1:])
            self.bias_ = rule.intercept_
        return len(c) * scores.size

    def _fuse(self, c: Doubles) -> Doubles:
        if self.classes_ > 2:
            return centred(np.tensordot(c, self.weights_, axes=([1, 2], [1, 2])) + self.bias_)
        fused: Doubles = c @ self.weights_ + self.bias_
        return fused
