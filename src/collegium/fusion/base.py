"""What every method of the comparison is asked for: fit, decide, and say who had to meet whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from collegium._util.measures import wrong
from collegium._util.scores import check_scores, check_scores_of_classes
from collegium._util.views import gather
from collegium.agents.classes import known_classes, places_of
from collegium.agents.independent import checked_scores
from collegium.agents.pipeline import ScorePipeline
from collegium.agents.scores import Scores
from collegium.data import Dataset
from collegium.errors import DataError, ModelError, PolicyError, ScoreError
from collegium.schedule.base import Schedule

Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]
NUMBER_BITS = 64
"""The size of a number that is sent as it is."""
LARGEST = 1e100
"""Statistics beyond this are no scores, and overflow where they are squared."""


@dataclass(frozen=True)
class Coordination:
    """What a method asks of the agents, in the words of the paper's table of regimes [hu2026, Tab. I]."""

    training: str = "None"
    """Who must work together while models are trained."""
    fitting: str = "None"
    """What is fitted beyond the agents' own models."""
    inference: str = "None"
    """Who must work together to decide about an item."""


@dataclass(frozen=True, eq=False)
class Decision:
    """What came of deciding about n items."""

    statistics: Doubles
    """Positive for +1. Shape (n, 1) where one place decides for all, (n, K) where every agent decides for itself. Of C
    classes one axis more: (n, 1, C) or (n, K, C), the largest entry decides, and entries sum to zero."""
    transmissions: Counts
    """Messages it took, per item, shape (n,)."""
    bits: Counts
    """Bits in them, per item, shape (n,)."""

    @property
    def labels(self) -> NDArray[Any]:
        """+1 or -1, or the place 0 … C-1, for each decider, shape (n, 1) or (n, K).

        A statistic of 0 counts as +1 and the first of equal entries decides, as in `Run.decisions`.
        """
        if self.statistics.ndim == 3:
            return np.asarray(self.statistics.argmax(axis=2))
        return np.where(self.statistics < 0, np.int8(-1), np.int8(1))

    def error(self, y: ArrayLike) -> float:
        """The error rate, averaged over those who decide; a statistic of 0 and a tie are always wrong."""
        if not len(self.statistics):
            raise ScoreError("there are no items to be wrong about")
        return float(wrong(self.statistics, y).mean())


class Method(BaseEstimator):  # type: ignore[misc]
    """One way to decide. Settings go in at the front, as in scikit-learn; `fit` learns whatever is to be learned.

    `fit(scores, train)` is given the score record of the agents and, where the method `needs_views`, the data set they
    were trained on. `decide(X)` is given raw scores of the agents, (n, K) or (n, K, C) of C > 2 classes, or the K views
    of the items where the method `needs_views`.
    """

    name: str
    coordination: Coordination
    training_transmissions_: int
    """Messages that `fit` cost, counted while it ran."""

    @property
    def needs_views(self) -> bool:
        """Whether the method wants to see the items themselves, not only what agents say of them."""
        return False

    def fit(self, scores: Scores, train: Dataset | None = None) -> Self:
        """Learn from training and validation items; the test scores are not looked at."""
        raise NotImplementedError

    def decide(self, X: Any) -> Decision:
        """Decide about n items."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels +1 / -1 or places 0 … C-1, shape (n,) where one place decides, (n, K) where every agent does."""
        labels = self.decide(X).labels
        return labels[:, 0] if labels.shape[1] == 1 else labels

    def _forget(self) -> None:
        """What fails to be fitted again is not fitted."""
        self.__dict__.pop("training_transmissions_", None)

    def _fitted(self) -> None:
        if not hasattr(self, "training_transmissions_"):
            raise ModelError(f"{type(self).__name__} is not fitted yet: call fit first")


class ScoreMethod(Method):
    """A method that works on the agents' statistics: scores divided by the temperature if `calibrate`, squeezed by
    tanh(f/2) if `bounded`, less the mean of the training scores that went the same way if `center`."""

    sends_labels: ClassVar[bool] = False
    """Whether agents send a label to the centre, not their statistic."""
    pipeline_: ScorePipeline
    """From raw scores to statistics, as `fit` found it."""
    classes_: int
    """C, the number of classes."""

    def __init__(self, center: bool = True, calibrate: bool = False, bounded: bool = False) -> None:
        self.center = center
        self.calibrate = calibrate
        self.bounded = bounded

    def fit(self, scores: Scores, train: Dataset | None = None) -> Self:
        """Learn centers and temperatures, each agent for itself, then whatever the method adds."""
        self._forget()
        check_record(scores)
        self.classes_ = scores.classes
        self.pipeline_ = scores.pipeline(self.center, self.calibrate, self.bounded)
        self.training_transmissions_ = self._learn(scores)
        return self

    def _learn(self, scores: Scores) -> int:
        """Fit what the method adds; gives the messages it took."""
        return 0

    def statistics_for_fitting(self, scores: Scores) -> tuple[Doubles, NDArray[Any]]:
        """Validation statistics of all agents side by side, and the labels, for a rule learned at a centre."""
        check_every_class(scores.y_val, self.classes_, self.name)
        c = self.pipeline_(scores.val)
        if np.abs(c).max() > LARGEST:
            raise ScoreError(f"{self.name} cannot be fitted on scores beyond ±{LARGEST:g}: divide them by their size")
        return c, scores.y_val

    def statistics(self, X: ArrayLike) -> Doubles:
        """The agents' statistics of raw scores, shape (n, K) or (n, K, C)."""
        self._fitted()
        return self.pipeline_(checked(X, len(self.pipeline_.center), self.classes_))

    def decide(self, X: ArrayLike) -> Decision:
        """Every agent sends one message about each item to a centre, and the centre decides."""
        c = self.statistics(X)
        size = label_bits(self.classes_) if self.sends_labels else statistic_bits(self.classes_)
        return at_a_centre(self._fuse(c), c.shape[1], size * c.shape[1])

    def _fuse(self, c: Doubles) -> Doubles:
        """One statistic per item, shape (n,) from those of the agents (n, K), or (n, C) from (n, K, C)."""
        raise NotImplementedError


def check_size(schedule: Schedule, scores: Scores) -> None:
    """Refuse a network of another size than the record."""
    if schedule.size != scores.size:
        raise PolicyError(f"the network has {schedule.size} agents, the score record {scores.size}")


def checked(X: ArrayLike, K: int, C: int) -> Doubles:
    """Raw scores of K agents about C classes: (n, K) of two, (n, K, C) of more."""
    if C == 2:
        return check_scores(X, K)
    f = check_scores_of_classes(X, K)
    if f.shape[2] != C:
        found = "two" if f.shape[2] == 1 else f.shape[2]
        raise ScoreError(f"this method was fitted on scores of {C} classes; these are of {found}")
    return f


def check_every_class(y: NDArray[Any], C: int, name: str) -> None:
    """Refuse labels to learn from in which a class does not occur."""
    if C == 2:
        positive = int((y > 0).sum())
        if not 0 < positive < len(y):
            raise ScoreError(
                f"{name} learns from validation items of both classes; there are {positive} of +1 and "
                f"{len(y) - positive} of -1"
            )
    elif not (np.bincount(y, minlength=C) > 0).all():
        without = int(np.flatnonzero(np.bincount(y, minlength=C) == 0)[0])
        raise ScoreError(f"{name} learns from validation items of every class; there are none of class {without}")


def statistic_bits(C: int) -> int:
    """The size of a statistic that is sent as it is: one number of two classes, C - 1 of more."""
    return NUMBER_BITS * (C - 1)


def label_bits(C: int) -> int:
    """The size of a label: one bit for two classes."""
    return (C - 1).bit_length()


def answers(model: Any, view: Any, C: int) -> Doubles:
    """A model's scores of n items about C classes: (n,) of two, (n, C) of more."""
    return checked_scores(model, view, places_of(known_classes(model), range(C)) if C > 2 else None, C)


def at_a_centre(statistic: Doubles, messages: int, bits: int) -> Decision:
    """One place decided about n items, and each took so many messages and bits."""
    n = len(statistic)
    return Decision(statistic[:, None], np.full(n, messages, np.int64), np.full(n, bits, np.int64))


def complete_views(X: Any, K: int, name: str) -> list[Any]:
    """K views in which nothing is missing."""
    views, missing = gather(X, K)
    if missing.any():
        k = int(np.flatnonzero(missing.any(axis=0))[0])
        raise DataError(
            f"{name} needs every view of every item, but that of agent {k} is missing for {int(missing[:, k].sum())}"
        )
    return views


class Aligned(NamedTuple):
    """All views of the items that the agents learned from, `inside`, and of those they held out, `outside`."""

    data: Dataset
    inside: NDArray[np.int64]
    outside: NDArray[np.int64]


def aligned(scores: Scores, train: Dataset | None, name: str) -> Aligned:
    """The items behind a score record, for a method that wants to see them."""
    check_record(scores)
    if not isinstance(train, Dataset):
        raise DataError(f"{name} learns from the views themselves: give the Dataset the agents were trained on")
    rows = scores.rows_train, scores.rows_val
    if rows[0] is None or rows[1] is None:
        raise DataError(f"{name} needs a score record with the items of its rows, as agents.train leaves it")
    if train.size != scores.size:
        raise DataError(f"the score record has {scores.size} agents, the data set {train.size}: they do not match")
    if not len(rows[0]) or not len(rows[1]):
        raise DataError(f"{name} needs training items and validation items")
    known = max(rows[0].max(), rows[1].max()) < len(train)
    if not known or (train.y[rows[0]] != scores.y_train).any() or (train.y[rows[1]] != scores.y_val).any():
        raise DataError(f"the score record and the data set ({train!r}) do not belong together: other items or labels")
    return Aligned(train, rows[0], rows[1])


def check_record(scores: Any) -> None:
    """Refuse what is not a score record to learn from."""
    if not isinstance(scores, Scores):
        raise ScoreError(
            f"fit wants a score record, as agents.train gives or Scores(...) makes; got {type(scores).__name__}"
        )
    if not len(scores.train):
        raise ScoreError("this score record has no training items")
