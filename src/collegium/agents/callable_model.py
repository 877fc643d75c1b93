"""`CallableModel`: any function from a view to scores, fitted elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from collegium.agents._outputs import KINDS, probabilities_to_scores, to_scores, warn_of_probabilities
from collegium.agents.base import Doubles, Model, View
from collegium.errors import ModelError


class CallableModel(Model):
    """A function that takes a view and answers with one number per item, or one per class.

    Its answer may be a list, a NumPy array or a torch tensor of shape (n,) or (n, 1), the scores, or (n, 2), two
    logits: then the score is the logit of column `positive` (1 unless told) minus the other. More columns are logits of
    as many classes. `classes` says which, where they are not those of the team in the same order: an agent may know
    only some of them. It is never called for zero items.

    `kind="probabilities"` takes the answers for probabilities, of +1 or of all classes, and gives their log-odds or
    logarithms. By itself, `kind="score"`, answers that all lie between 0 and 1 are warned of.

    >>> CallableModel(lambda view: view.sum(axis=1) - 3).scores(np.eye(3) * 4)
    array([1., 1., 1.])
    """

    def __init__(
        self,
        function: Callable[[View], Any],
        positive: int | None = None,
        classes: Sequence[Any] | None = None,
        kind: str = "score",
    ) -> None:
        self.kind = kind
        self.function = function
        self.positive = positive
        self.classes = classes

    def scores(self, view: View) -> Doubles:
        """The function's answer, checked: finite, one number per item, positive for +1, or one per class."""
        name = f"CallableModel of {getattr(self.function, '__name__', type(self.function).__name__)}"
        if not callable(self.function):
            raise ModelError(f"CallableModel wants a function, got {self.function!r}")
        if self.kind not in KINDS:
            raise ModelError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}")
        if not np.ndim(view):
            raise ModelError("a view is an array whose first axis is the items; got a single value")
        n = len(view)
        if n == 0:
            return np.empty(0)
        try:
            outputs = self.function(view)
        except Exception as problem:
            raise ModelError(
                f"{name} failed on a view of shape {np.shape(view)}: {type(problem).__name__}: {problem}"
            ) from problem
        positive = 1 if self.positive is None else self.positive
        if self.kind == "probabilities":
            return probabilities_to_scores(outputs, n, name, positive=positive)
        warn_of_probabilities(
            outputs, name, 'if they are probabilities, say CallableModel(function, kind="probabilities")'
        )
        return to_scores(outputs, n, name, positive)

    def __sklearn_is_fitted__(self) -> bool:
        return True
