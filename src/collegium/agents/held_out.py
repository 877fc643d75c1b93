r"""What held-out items say of scores: each agent's scale and threshold, the classes' frequencies, the pool's sharpness.

What an agent brings to the network is the log-odds (log-probabilities) that it would decide by alone,

$$ z_k(x) = \log \frac{P(+1 \mid x_k)}{P(-1 \mid x_k)} = \text{evidence}_k(x_k) + \text{prior}, $$

so that averaging gives prior + mean evidence: the frequency of the classes enters once, however many agents there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.measures import mean_interval
from collegium.agents.base import Doubles
from collegium.agents.calibration import class_temperature, cross_entropies, temperature, vector_scaling
from collegium.agents.classes import Places
from collegium.agents.pipeline import ScorePipeline, bounded

_NATS = 2.0
"""By how much all held-out items together must be likelier for an agent to give up its own threshold: a shift of the
threshold that means nothing gains so much once in twenty times (a log-likelihood ratio of 1.92)."""


def class_places(y: NDArray[Any], classes: int) -> Places:
    """Labels inside, +1 and -1 or places, as places."""
    return np.asarray(y > 0 if classes == 2 else y).astype(np.intp)


def log_prior(places: Places, classes: int) -> Doubles:
    """Logarithms of the classes' frequencies less their mean, shape (C,); as if one more of each, if one has none."""
    counts = np.bincount(places, minlength=classes).astype(np.float64)
    logs = np.log(counts if counts.all() else counts + 1)
    return np.asarray(logs - logs.mean())


def prior_of(y: NDArray[Any], classes: int) -> Any:
    """The prior as a score: the log-odds of +1, or `log_prior` of more than two classes."""
    logs = log_prior(class_places(y, classes), classes)
    return float(logs[1] - logs[0]) if classes == 2 else logs


def midpoint(f: Doubles, places: Places) -> Doubles:
    r"""The center that gives the largest margin between the classes' mean scores, shape (C,) of scores (n, C).

    Of two classes, in terms of their difference, the midpoint of the two class means [hu2026, Prop. 1]. Of more, the
    margin of class a over class b is largest at the midpoint $m_{ab}$ of the means of $f_a - f_b$ in these two classes;
    the center is the least-squares solution of $\chi_a - \chi_b = m_{ab}$, which is $\chi_a = \sum_b m_{ab} / C$.
    A class without items takes part in no pair.
    """
    C = f.shape[1]
    there = np.flatnonzero(np.bincount(places, minlength=C))
    M = np.array([f[places == c].mean(axis=0) for c in there])[:, there]
    own = np.diag(M)
    m = (own[:, None] - M + M.T - own[None, :]) / 2  # antisymmetric: m[a, b] of class a over class b
    chi = np.zeros(C)
    chi[there] = m.mean(axis=1)
    return chi


def fit_pipeline(
    scores: Doubles, y: NDArray[Any], *, center: str, calibrate: bool | str, bounded: bool = False
) -> ScorePipeline:
    """The pipeline of K agents from held-out scores (n, K) or (n, K, C), each agent by its own alone.

    center: "auto" keeps an agent's own threshold unless the held-out items say that another is better: they are
        likelier with it, fewer of them are wrong beyond chance where each class counts alike, and not more where each
        item does. The other is the midpoint less the prior; "midpoint" takes it.
    calibrate: whether scores are divided by a temperature; "vector" fits one per class and the shift with it.
    """
    C = 2 if scores.ndim == 2 else scores.shape[2]
    places = class_places(y, C)
    agents = [_Agent.of(scores[:, k], places, C, center, calibrate) for k in range(scores.shape[1])]
    T, chi = np.array([one.temperature for one in agents]), np.array([one.center for one in agents])
    if bounded:
        chi = _bounded_centers(chi, C)
    return ScorePipeline(T, chi, bounded=bounded, classes=C)


class _Agent(NamedTuple):
    """The temperature of one agent, () or (C,), and its center, () or (C,)."""

    temperature: Any
    center: Any

    @classmethod
    def of(cls, scores: Doubles, places: Places, C: int, center: str, calibrate: bool | str) -> _Agent:
        f = np.column_stack([-scores / 2, scores / 2]) if C == 2 else scores
        if calibrate == "vector":
            T, shift = vector_scaling(f, places)
            return cls(T, -shift) if C > 2 else cls(2 / (1 / T).sum(), shift[0] - shift[1])
        own = 1.0
        if calibrate:
            own = temperature(scores, np.where(places, 1, -1)) if C == 2 else class_temperature(f, places)
        chi, prior = midpoint(f, places), log_prior(places, C)
        other = class_temperature(f - chi, places, prior) if calibrate else 1.0
        if center == "auto" and not _better((f - chi) / other + prior, f / own, places):
            return cls(own, 0.0 if C == 2 else np.zeros(C))
        moved = chi / other - prior
        return cls(other, moved[1] - moved[0] if C == 2 else moved)


def _better(one: Doubles, other: Doubles, places: Places) -> bool:
    gained = (cross_entropies(other, places) - cross_entropies(one, places)).sum()
    fewer = wrong_items(other, places).astype(float) - wrong_items(one, places)
    weight = 1 / np.bincount(places)[places]  # each class counts alike
    return bool(gained > _NATS and fewer.sum() >= 0 and _above_zero(fewer * weight / weight.mean()))


def _bounded_centers(chi: Doubles, C: int) -> Doubles:
    """The same thresholds for bounded scores: of two classes exactly, of more none (a shift is not one of theirs)."""
    return bounded(chi) if C == 2 else np.zeros_like(chi)


def wrong_items(scores: Doubles, places: Places) -> NDArray[np.bool_]:
    """Which items scores (n, C) or of several deciders (n, K, C) are wrong about; a tie is wrong."""
    own = np.take_along_axis(scores, places.reshape(-1, *[1] * (scores.ndim - 1)), axis=-1)
    return np.asarray(np.count_nonzero(scores >= own, axis=-1) > 1)


class HeldOutErrors(NamedTuple):
    """Shares of held-out items that are decided wrongly."""

    items: int
    team: float
    """By the team."""
    alone: Doubles
    """By each agent alone, shape (K,)."""

    @property
    def best(self) -> int:
        """The agent that is wrong least often."""
        return int(self.alone.argmin())


def compare(team: Doubles, scores: Doubles, y: NDArray[Any]) -> tuple[HeldOutErrors, bool]:
    """Errors of a team and of its members alone, and whether the best of them is better beyond chance.

    team: the team's statistics (n,) or (n, C); scores: the agents' own, (n, K) or (n, K, C).
    Beyond chance: the 95 % interval of the paired difference, Student's, lies above 0.
    """
    C = 2 if scores.ndim == 2 else scores.shape[2]
    places = class_places(y, C)
    if C == 2:
        team, scores = (np.stack([-values, values], axis=-1) for values in (team, scores))
    wrong, alone = wrong_items(team, places), wrong_items(scores, np.asarray(places))
    errors = HeldOutErrors(len(places), float(wrong.mean()), alone.mean(axis=0))
    return errors, _above_zero(wrong.astype(float) - alone[:, errors.best])


def _above_zero(differences: Doubles) -> bool:
    """Whether the 95 % interval of their mean, Student's, lies above 0."""
    mean, half = mean_interval(differences) if len(differences) > 1 else (0.0, 0.0)
    return bool(mean > half)
