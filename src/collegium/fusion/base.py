"""What every method of the comparison is asked for: fit, decide, and say who had to meet whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from collegium._util.measures import wrong
from collegium._util.scores import check_scores
from collegium._util.views import gather
from collegium.agents.pipeline import ScorePipeline
from collegium.agents.scores import Scores
from collegium.data import Dataset
from collegium.errors import DataError, ModelError, ScoreError

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
    """Positive for +1. Shape (n, 1) where one place decides for all, (n, K) where every agent decides for itself."""
    transmissions: Counts
    """Messages it took, per item, shape (n,)."""
    bits: Counts
    """Bits in them, per item, shape (n,)."""

    @property
    def labels(self) -> NDArray[np.int8]:
        """+1 or -1, of the shape of `statistics`; 0 counts as +1, as in `Run.decisions`."""
        return np.where(self.statistics < 0, np.int8(-1), np.int8(1))

    def error(self, y: ArrayLike) -> float:
        """The error rate, averaged over those who decide; a statistic of 0 is always wrong."""
        if not len(self.statistics):
            raise ScoreError("there are no items to be wrong about")
        return float(wrong(self.statistics, y).mean())


class Method(BaseEstimator):  # type: ignore[misc]
    """One way to decide. Settings go in at the front, as in scikit-learn; `fit` learns whatever is to be learned.

    `fit(scores, train)` is given the score record of the agents and, where the method `needs_views`, the data set they
    were trained on. `decide(X)` is given raw scores (n, K) of the agents, or the K views of the items where the method
    `needs_views`.
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

    def predict(self, X: Any) -> NDArray[np.int8]:
        """Labels +1 / -1, shape (n,) where one place decides, (n, K) where every agent does."""
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

    message_bits: ClassVar[int] = NUMBER_BITS
    pipeline_: ScorePipeline
    """From raw scores to statistics, as `fit` found it."""

    def __init__(self, center: bool = True, calibrate: bool = False, bounded: bool = False) -> None:
        self.center = center
        self.calibrate = calibrate
        self.bounded = bounded

    def fit(self, scores: Scores, train: Dataset | None = None) -> Self:
        """Learn centers and temperatures, each agent for itself, then whatever the method adds."""
        self._forget()
        check_record(scores)
        self.pipeline_ = scores.pipeline(self.center, self.calibrate, self.bounded)
        self.training_transmissions_ = self._learn(scores)
        return self

    def _learn(self, scores: Scores) -> int:
        """Fit what the method adds; gives the messages it took."""
        return 0

    def statistics_for_fitting(self, scores: Scores) -> tuple[Doubles, NDArray[np.int8]]:
        """Validation statistics of all agents side by side, and the labels, for a rule learned at a centre."""
        positive = int((scores.y_val > 0).sum())
        if not 0 < positive < len(scores.val):
            raise ScoreError(
                f"{self.name} learns from validation items of both classes; there are {positive} of +1 and "
                f"{len(scores.val) - positive} of -1"
            )
        c = self.pipeline_(scores.val)
        if np.abs(c).max() > LARGEST:
            raise ScoreError(f"{self.name} cannot be fitted on scores beyond ±{LARGEST:g}: divide them by their size")
        return c, scores.y_val

    def statistics(self, X: ArrayLike) -> Doubles:
        """The agents' statistics of raw scores, shape (n, K)."""
        self._fitted()
        return self.pipeline_(check_scores(X, len(self.pipeline_.center)))

    def decide(self, X: ArrayLike) -> Decision:
        """Every agent sends one message about each item to a centre, and the centre decides."""
        c = self.statistics(X)
        return at_a_centre(self._fuse(c), c.shape[1], self.message_bits * c.shape[1])

    def _fuse(self, c: Doubles) -> Doubles:
        """One statistic per item, shape (n,), from those of the agents."""
        raise NotImplementedError


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
        raise DataError(f"{name} needs a score record that says which items its rows are, as agents.train leaves it")
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
