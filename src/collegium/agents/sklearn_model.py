"""`SklearnModel`: any scikit-learn classifier or pipeline as an agent's model."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from collegium._util.labels import to_signs
from collegium.agents._outputs import CLIP, probabilities_to_scores, to_scores
from collegium.agents.base import Doubles, Model, View, check_weights
from collegium.errors import ModelError, brief


class SklearnModel(Model):
    r"""A scikit-learn classifier: its `decision_function`, or the log-odds of its `predict_proba`.

    $$ f(x) = \log \frac{p}{1-p}, \qquad p = P(+1 \mid x) \text{ clipped to } [\text{clip}, 1 - \text{clip}] $$

    Only where there is no `decision_function`: a forest says 0 and 1, whose log-odds are infinite, so they are cut
    to ±log((1-clip)/clip), 13.8 unless told. `score_kind_` says which of the two it is.

    `fit` fits a clone, `estimator_`, on labels +1 / -1. An estimator that was fitted before can be used for its scores
    without `fit`: the second of its `classes_` is +1, whatever its two classes are called. (`clone` forgets what it
    learned, as always in scikit-learn, unless it is wrapped in `FrozenEstimator`.)

    A view with more than two axes becomes one row per item; if `fit` saw it in bytes it is an image, and is scaled by
    1/255 then and ever after. Numbers of shape (n,) are one feature. Anything else goes to the estimator as it is.

    >>> from sklearn.linear_model import LogisticRegression
    >>> model = SklearnModel(LogisticRegression()).fit(np.array([0.0, 1.0, 2.0, 3.0]), [0, 0, 1, 1])
    >>> model.scores(np.array([0.0, 1.5, 3.0])).round(3)
    array([-1.437,  0.   ,  1.437])
    >>> model.score_kind_
    'decision_function'
    """

    def __init__(self, estimator: Any, clip: float = CLIP) -> None:
        self.estimator = estimator
        self.clip = clip

    @property
    def weighs_items(self) -> bool:
        """Whether the estimator's `fit` takes `sample_weight`."""
        return bool(has_fit_parameter(self.estimator, "sample_weight"))

    def fit(
        self,
        view: View,
        y: ArrayLike,
        validation: tuple[View, ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit a clone of the estimator; `validation` is not looked at."""
        score_method(self.estimator)
        self.unit_ = 255.0 if getattr(view, "dtype", None) == np.uint8 and np.ndim(view) > 2 else 1.0
        features = to_features(view, self.unit_)
        signs = to_signs(y, features.shape[0]).astype(np.int64)
        weights = {} if sample_weight is None else {"sample_weight": check_weights(sample_weight, len(signs))}
        try:
            self.estimator_ = clone(self.estimator).fit(features, signs, **weights)
        except (TypeError, ValueError) as problem:
            raise ModelError(f"{self._name} cannot be fitted on {_form(view)}: {brief(problem)}") from problem
        self._check_classes()
        return self

    def scores(self, view: View) -> Doubles:
        """Decision values or clipped log-odds, positive for +1."""
        method = score_method(self._used)
        self._check_classes()
        features = to_features(view, getattr(self, "unit_", 1.0))
        n = features.shape[0]
        if n == 0:  # which scikit-learn refuses
            return np.empty(0)
        try:
            outputs = getattr(self._used, method)(features)
        except NotFittedError:
            raise _not_fitted(self._name) from None
        except (TypeError, ValueError) as problem:
            raise ModelError(f"{self._name} cannot score {_form(view)}: {brief(problem)}") from problem
        if method == "decision_function":
            return to_scores(outputs, n, self._name)
        return probabilities_to_scores(outputs, n, self._name, self.clip)

    @property
    def score_kind_(self) -> str:
        """What the scores are, in words."""
        if score_method(self._used) == "decision_function":
            return "decision_function"
        return f"log-odds of predict_proba, clipped to [{self.clip:g}, 1 - {self.clip:g}]"

    @property
    def _used(self) -> Any:
        return getattr(self, "estimator_", self.estimator)

    @property
    def _name(self) -> str:
        return f"SklearnModel of {type(self._used).__name__}"

    def _check_classes(self) -> None:
        """Two classes, or the sentence why it cannot be used."""
        classes = getattr(self._used, "classes_", None)
        if classes is None:
            if self.__sklearn_is_fitted__():
                raise ModelError(f"{self._name} is no classifier: it was fitted but has no classes_")
            raise _not_fitted(self._name)
        if len(classes) != 2 or any(np.ndim(one) for one in classes):
            raise ModelError(f"{self._name} must know two classes, it knows {len(classes)}: {brief(classes)}")

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self._used)
        except (NotFittedError, TypeError):
            return False
        return True


def score_method(estimator: Any) -> str:
    """The method that gives scores: decision_function if there is one, else predict_proba."""
    if isinstance(estimator, type):
        raise ModelError(f"SklearnModel wants an estimator, got the class {estimator.__name__}: make an object of it")
    for method in ("decision_function", "predict_proba"):
        if hasattr(estimator, method):
            return method
    raise ModelError(
        f"{type(estimator).__name__} has neither decision_function nor predict_proba, so it gives no scores: "
        "use a classifier that has one of them, such as LogisticRegression()"
    )


def to_features(view: Any, unit: float = 1.0) -> Any:
    """A view as scikit-learn wants it: one row per item, in units. Tables and sparse matrices stay what they are."""
    if hasattr(view, "iloc") or hasattr(view, "tocsr"):
        return view
    array = np.asarray(view)
    if array.ndim == 0:
        raise ModelError("a view is an array whose first axis is the items; got a single value")
    if array.ndim == 1:
        return array[:, None] if array.dtype.kind in "fiub" else array  # text for a vectoriser
    if array.ndim == 2:
        return array
    flat = array.reshape(len(array), int(np.prod(array.shape[1:])))
    return flat if unit == 1 else flat / unit


def _form(view: Any) -> str:
    return f"a view of shape {np.shape(view)}"


def _not_fitted(name: str) -> ModelError:
    return ModelError(f"{name} is not fitted: call fit first, or give it an estimator that was fitted elsewhere")
