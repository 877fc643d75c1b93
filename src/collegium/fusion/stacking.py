"""Any scikit-learn classifier on top of the agents' statistics, at a centre."""

from __future__ import annotations

from typing import Any

from collegium.agents.scores import Scores
from collegium.agents.sklearn_model import SklearnModel
from collegium.fusion.base import Coordination, Doubles, ScoreMethod, answers


class Stacking(ScoreMethod):
    """A classifier fitted on the validation statistics decides [wolpert1992].

    `estimator` is any scikit-learn classifier with `decision_function` or `predict_proba`; a support vector machine on
    standardised statistics unless told. Of C classes its features are all K·C entries.
    """

    name = "Stacking"
    coordination = Coordination(
        fitting="Classifier fitted on aligned validation outputs", inference="One-shot centralized classification"
    )

    def __init__(
        self, estimator: Any = None, center: bool = True, calibrate: bool = False, bounded: bool = False
    ) -> None:
        super().__init__(center, calibrate, bounded)
        self.estimator = estimator

    def _learn(self, scores: Scores) -> int:
        c, y = self.statistics_for_fitting(scores)
        self.model_ = SklearnModel(_support_vectors() if self.estimator is None else self.estimator)
        self.model_.fit(c.reshape(len(c), -1), y)
        return len(c) * scores.size

    def _fuse(self, c: Doubles) -> Doubles:
        return answers(self.model_, c.reshape(len(c), -1), self.classes_)


def _support_vectors() -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return make_pipeline(StandardScaler(), SVC())
