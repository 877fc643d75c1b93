"""An affine rule learned from validation statistics, at a centre."""

from __future__ import annotations

import warnings

from collegium._util.arguments import real_number
from collegium.agents.scores import Scores
from collegium.errors import ModelError
from collegium.fusion.base import Coordination, Doubles, ScoreMethod


class LearnedFusion(ScoreMethod):
    r"""The sign of w·c + b, both fitted on the validation items by logistic regression [hu2026, App. H.1].

    $$ \min_{w, b} \sum_n \log\bigl(1 + e^{-\gamma_n (w^\top c_n + b)}\bigr)
       + \tfrac{\text{ridge}}{2} \sum_k (s_k w_k)^2 $$

    where s_k is the spread of agent k's validation statistics, so that their scale does not matter. The paper names no
    penalty; without one a validation set that can be separated has no solution. `ridge` 1 is scikit-learn's default.
    """

    name = "Learned fusion"
    coordination = Coordination(
        fitting="Fusion rule fitted on aligned validation outputs", inference="One-shot centralized fusion"
    )
    weights_: Doubles
    bias_: float

    def __init__(self, ridge: float = 1.0, center: bool = True, calibrate: bool = False, bounded: bool = False) -> None:
        super().__init__(center, calibrate, bounded)
        self.ridge = ridge

    def _learn(self, scores: Scores) -> int:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        C = 1 / real_number(self.ridge, "ridge", ModelError, above=0)
        c, y = self.statistics_for_fitting(scores)
        spread = c.std(axis=0)
        spread[spread == 0] = 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            try:
                rule = LogisticRegression(C=C, solver="lbfgs", tol=1e-8, max_iter=10_000).fit(c / spread, y)
            except ConvergenceWarning as problem:
                raise ModelError(f"the fusion rule did not converge ({problem}): try a larger ridge") from None
        self.weights_ = rule.coef_[0] / spread
        self.bias_ = float(rule.intercept_[0])
        return c.size

    def _fuse(self, c: Doubles) -> Doubles:
        fused: Doubles = c @ self.weights_ + self.bias_
        return fused
