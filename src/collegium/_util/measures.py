"""What is measured: error rates, and means with their intervals."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.labels import to_places, to_signs
from collegium.errors import ScoreError

Doubles = NDArray[np.float64]


def wrong(statistics: ArrayLike, y: ArrayLike) -> Doubles:
    """The share of deciders that are wrong about each item, shape (n,); who cannot decide is wrong.

    statistics: of two classes, shape (n,) where one place decides, (n, D) where D agents do, and labels y +1 / -1; a
    statistic of 0 is wrong for both. Of several, shape (n, D, C), and y from 0 to C-1; a tie is wrong.

    >>> wrong([[1.0, -1.0], [0.0, -2.0]], [1, -1])
    array([0.5, 0.5])
    """
    values = np.asarray(statistics, np.float64)
    if values.ndim == 3:
        return np.asarray((~leads(values, to_places(y, len(values), values.shape[2]))).mean(axis=1), np.float64)
    values = values[:, None] if values.ndim == 1 else values
    signs = to_signs(y, len(values), classes=(1, -1))
    return np.asarray((~(values * signs[:, None] > 0)).mean(axis=1), np.float64)


def leads(statistics: Doubles, places: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether the entry of the true class is larger than every other, shape (…, n, K) from (…, n, K, C).

    >>> leads(np.array([[[2.0, 1.0, -3.0], [1.0, 1.0, -2.0]]]), np.array([0])).tolist()  # a tie does not lead
    [[True, False]]
    """
    own = (statistics * (places[:, None] == np.arange(statistics.shape[-1]))[:, None]).sum(axis=-1, keepdims=True)
    beaten = (statistics < own).sum(axis=-1)
    return np.asarray(beaten == statistics.shape[-1] - 1)


def behind(entries: Doubles) -> Doubles:
    """How far each class is behind the best of the others, shape (…, C); negative for the one that leads.

    >>> behind(np.array([0.5, 2.0, -2.5])).tolist()
    [1.5, -1.5, 4.5]
    """
    best = np.sort(entries, axis=-1)[..., -2:]
    rival = np.where(entries == best[..., 1:], best[..., :1], best[..., 1:])
    return np.asarray(rival - entries)


def worse_than_guessing(share: float, items: int, C: int) -> bool:
    """Whether a share of wrong items is larger than that of guessing one of C classes, far beyond chance.

    >>> worse_than_guessing(0.7, 200, 2), worse_than_guessing(0.7, 200, 3), worse_than_guessing(1.0, 9, 2)
    (True, False, False)
    """
    guessing = 1 - 1 / C
    return bool(items) and share > guessing + 4 * (guessing * (1 - guessing) / items) ** 0.5


class Interval(NamedTuple):
    """A mean and the half-width of its interval."""

    mean: float
    half: float


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """The mean of independent values and the half-width of Student's interval; NaN for a single one.

    >>> mean_interval([1.0, 2.0, 3.0]).half.__round__(3)  # 4.303 standard errors of 1/√3
    2.484
    """
    from scipy.special import stdtrit

    x = np.asarray(values, np.float64)
    if x.ndim != 1 or not len(x):
        raise ScoreError(f"an interval is of a list of at least one value; got shape {x.shape}")
    if len(x) == 1:
        return Interval(float(x[0]), float("nan"))
    quantile = stdtrit(len(x) - 1, (1 + confidence) / 2)
    return Interval(float(x.mean()), float(quantile * x.std(ddof=1) / np.sqrt(len(x))))
