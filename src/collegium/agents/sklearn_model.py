"""`SklearnModel`: any scikit-learn classifier or pipeline as an agent's model."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from collegium._util.arguments import real_number
from collegium.agents._outputs import CLIP, probabilities_to_scores, to_scores
from collegium.agents.base import Doubles, Model, View, check_weights
from collegium.agents.classes import targets
from collegium.errors import ModelError, brief

_MISFITS = (TypeError, ValueError, AttributeError, LookupError)
"""What estimators raise of a view that is not what they expect: a vectoriser given numbers, and the like."""


class SklearnModel(Model):
    r"""A scikit-learn classifier: its `decision_function`, or the log-odds of its `predict_proba`.

    $$ f(x) = \log \frac{p}{1-p}, \qquad p = P(+1 \mid x) \text{ clipped to } [\text{clip}, 1 - \text{clip}] $$

    Only where there is no `decision_function`: a forest says 0 and 1, whose log-odds are infinite, so they are cut
    to ±log((1-clip)/clip), 13.8 unless told. `score_kind_` says which of the two it is.

    Of C > 2 classes they are log-probabilities less their mean, shape (n, C): of `predict_log_proba`, else of
    `predict_proba`, none below log(clip). Only an estimator without both, such as SVC, gives its `decision_function`:
    margins of each class against the rest are taken for logits, and margins of pairs, d_ij of class i over class j, for
    differences of logits, whose least-squares solution is the mean of d_ij over j. Neither is a log-probability; a
    temperature, which a team fits unless told otherwise, gives them the right scale.

    `fit` fits a clone, `estimator_`, on labels +1 / -1 (0 and 1 if it refuses these), or on more classes as they are.
    An estimator that was fitted before can be used for its scores without `fit`: the second of two `classes_` is +1,
    whatever they are called. (`clone` forgets what it learned, as always in scikit-learn, unless it is wrapped in
    `FrozenEstimator`.)

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
        """Whether the estimator's `fit` takes `sample_weight`, for itself or for the last step of a pipeline."""
        return _weight_name(self.estimator) is not None

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
        labels, _ = targets(y, features.shape[0])
        weights: dict[str, Any] = {}
        if sample_weight is not None:
            weights[_weight_name(self.estimator) or "sample_weight"] = check_weights(sample_weight, len(labels))
        try:
            self.estimator_ = self._fitted(features, labels, weights)
        except _MISFITS as problem:
            raise ModelError(f"{self._name} cannot be fitted on {_form(view)}: {_reason(problem, view)}") from problem
        self._check_classes()
        return self

    def _fitted(self, features: Any, labels: Any, weights: dict[str, Any]) -> Any:
        try:
            return clone(self.estimator).fit(features, labels, **weights)
        except ValueError:
            if set(labels.tolist()) != {-1, 1}:
                raise
            try:  # XGBoost, and what is like it, wants classes 0 and 1
                return clone(self.estimator).fit(features, (labels > 0).astype(np.int64), **weights)
            except ValueError:
                pass
            raise

    def scores(self, view: View) -> Doubles:
        """Decision values or clipped log-odds, positive for +1; of more classes, log-probabilities less their mean."""
        score_method(self._used)
        C = self._check_classes()
        method = score_method(self._used, C)
        features = self._named(to_features(view, getattr(self, "unit_", 1.0)))
        n = features.shape[0]
        if n == 0:  # which scikit-learn refuses
            return np.empty(0 if C == 2 else (0, C))
        try:
            with np.errstate(divide="ignore" if method == "predict_log_proba" else None):  # a forest is often certain
                outputs = getattr(self._used, method)(features)
        except NotFittedError:
            raise _not_fitted(self._name) from None
        except _MISFITS as problem:
            raise ModelError(f"{self._name} cannot score {_form(view)}: {_reason(problem, view)}") from problem
        if method == "decision_function":
            return to_scores(_per_class(self._used, outputs, C), n, self._name)
        if method == "predict_log_proba":
            real_number(self.clip, "clip", ModelError, above=0, at_most=0.49)
            return to_scores(np.maximum(outputs, np.log(self.clip)), n, self._name)
        return probabilities_to_scores(outputs, n, self._name, self.clip)

    def _named(self, features: Any) -> Any:
        """Plain rows under the names that the estimator was fitted with, for pipelines that pick columns by name."""
        names = getattr(self._used, "feature_names_in_", None)
        if names is None or type(features) is not np.ndarray or features.shape[1:] != (len(names),):
            return features
        try:
            import pandas
        except ImportError:
            return features
        return pandas.DataFrame(features, columns=names)

    @property
    def score_kind_(self) -> str:
        """What the scores are, in words."""
        C = self._check_classes()
        method = score_method(self._used, C)
        if method == "decision_function":
            return "decision_function" if C == 2 else "decision_function, taken for logits"
        if C > 2:
            return f"logarithms of {method}, none below log({self.clip:g})"
        return f"log-odds of predict_proba, clipped to [{self.clip:g}, 1 - {self.clip:g}]"

    @property
    def _used(self) -> Any:
        return getattr(self, "estimator_", self.estimator)

    @property
    def _name(self) -> str:
        return f"SklearnModel of {type(self._used).__name__}"

    def _check_classes(self) -> int:
        """The number of classes, or the sentence why it cannot be used."""
        classes = getattr(self._used, "classes_", None)
        if classes is None:
            if self.__sklearn_is_fitted__():
                raise ModelError(f"{self._name} is no classifier: it was fitted but has no classes_")
            raise _not_fitted(self._name)
        if len(classes) < 2 or any(np.ndim(one) for one in classes):
            raise ModelError(
                f"{self._name} must know two classes or more of one kind, it knows {len(classes)}: {brief(classes)}"
            )
        return len(classes)

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self._used)
        except (NotFittedError, TypeError):
            return False
        return True


def score_method(estimator: Any, classes: int = 2) -> str:
    """The method that gives scores: of two classes decision_function if there is one, of more one of probabilities."""
    if isinstance(estimator, type):
        raise ModelError(f"SklearnModel wants an estimator, got the class {estimator.__name__}: make an object of it")
    methods = ("decision_function", "predict_proba")
    for method in methods if classes == 2 else ("predict_log_proba", *methods[::-1]):
        if hasattr(estimator, method):
            return method
    raise ModelError(
        f"{type(estimator).__name__} has neither decision_function nor predict_proba, so it gives no scores: "
        "use a classifier that has one of them, such as LogisticRegression()"
    )


def _weight_name(estimator: Any) -> str | None:
    """What `fit` calls the weights of items: a pipeline's go to its last step, a search's to what it fits."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, (GridSearchCV, RandomizedSearchCV)):
        return _weight_name(estimator.estimator)
    if not isinstance(estimator, Pipeline):
        return None
    step, last = estimator.steps[-1]
    name = _weight_name(last)
    if name is None or get_config()["enable_metadata_routing"]:  # then the steps say themselves what they ask for
        return name
    return f"{step}__{name}"


def _per_class(estimator: Any, outputs: Any, C: int) -> Any:
    """Decision values (n, C) of more than two classes, also where they come as margins of pairs (i, j), i < j."""
    if C == 2:
        return outputs
    values = np.asarray(outputs)
    if values.shape[1:] == (C * (C - 1) // 2,) and _tells_pairs_apart(estimator):
        pairs = np.triu_indices(C, 1)  # in scikit-learn's order; positive for the first of the pair
        d = np.zeros((len(values), C, C))
        d[:, pairs[0], pairs[1]] = values
        return (d - d.transpose(0, 2, 1)).mean(axis=2)
    if values.shape[1:] != (C,):
        raise ModelError(f"{type(estimator).__name__} gives decision values of shape {values.shape} for {C} classes")
    return values


def _tells_pairs_apart(estimator: Any) -> bool:
    """Whether it is an SVC of pairs, by itself or where its decision values pass through unchanged."""
    if isinstance(estimator, FrozenEstimator):
        return _tells_pairs_apart(estimator.estimator)
    for wrapped in ("_final_estimator", "best_estimator_"):
        if hasattr(estimator, wrapped):
            return _tells_pairs_apart(getattr(estimator, wrapped))
    return getattr(estimator, "decision_function_shape", None) == "ovo"


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


def _reason(problem: Exception, view: Any) -> str:
    """Why an estimator takes no such view, with what to do where that is known."""
    if isinstance(problem, AttributeError) and "lower" in str(problem):
        return (
            "it wants one text per item, and the view holds something else. Are the views in the order of the agents?"
        )
    if "NaN" in str(problem):
        numbers = view.isna().to_numpy() if hasattr(view, "iloc") else np.asarray(view)
        gaps = numbers if numbers.dtype.kind == "b" else np.isnan(numbers) if numbers.dtype.kind == "f" else None
        if gaps is not None and gaps.any():
            rows = np.flatnonzero(gaps.reshape(len(gaps), -1).any(axis=1))
            return (
                f"NaN in {len(rows)} of {len(gaps)} items (first: item {rows[0]}), which it does not accept. Fill them "
                "by make_pipeline(SimpleImputer(), …), or take a model that accepts them, such as "
                "HistGradientBoostingClassifier"
            )
    return brief(problem)


def _form(view: Any) -> str:
    return f"a view of shape {np.shape(view)}"


def _not_fitted(name: str) -> ModelError:
    return ModelError(f"{name} is not fitted: call fit first, or give it an estimator that was fitted elsewhere")
