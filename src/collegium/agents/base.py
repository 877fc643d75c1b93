"""What an agent needs of its model: learn from its own view, then give one number per item, or one per class."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from collegium.errors import ModelError

Doubles = NDArray[np.float64]
Signs = NDArray[np.int8]
View = NDArray[Any]
"""One agent's view of n items: an array whose first axis is the items."""


class Model(BaseEstimator):  # type: ignore[misc]
    """One agent's classifier. Subclass it, or hand `as_model` anything it knows.

    A model is a scikit-learn estimator as far as its settings go (`get_params`, `set_params`, `clone`), is fitted
    on labels +1 / -1, and its score is positive where it believes in +1: the logit difference of the paper. Of more
    classes it is fitted on places 0 … C-1 and answers with log-probabilities less their mean, one column per class. A
    model with `classes_` says which classes its columns are of; it may know only some of those of its team.
    """

    uses_validation: ClassVar[bool] = False
    """Whether `fit` looks at a validation set (early stopping); if so and none is given, it takes one from its data."""

    needs_process: ClassVar[bool] = False
    """Whether models that train side by side must do so in processes: `fit` touches what a process has only one of."""
    reports_progress: ClassVar[bool] = False
    """Whether `fit` takes `progress`, a function that is told which part of the training is done."""

    @property
    def weighs_items(self) -> bool:
        """Whether `fit` takes `sample_weight`, how much each item counts."""
        return False

    def fit(self, view: View, y: ArrayLike, validation: tuple[View, ArrayLike] | None = None) -> Self:
        """Learn from one view and its labels; of two classes, the larger label is +1."""
        raise ModelError(f"{type(self).__name__} was fitted elsewhere: use it in Team.from_fitted, or for its scores")

    def scores(self, view: View) -> Doubles:
        """One finite number per item, shape (n,), positive for +1; of C > 2 classes (n, C), rows summing to zero."""
        raise NotImplementedError


def check_weights(weights: ArrayLike, n: int) -> Doubles:
    """Weights of n items: none negative, scaled so that their mean is 1."""
    w = np.asarray(weights, np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise ModelError(f"sample_weight must be {n} numbers, one per item, none negative and not all zero")
    scaled: Doubles = w / w.mean()
    return scaled
