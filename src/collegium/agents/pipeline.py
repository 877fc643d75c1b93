"""`ScorePipeline`: the one way from a model's output to what enters the network.

Live agents import it, which load neither SciPy nor scikit-learn: only NumPy is needed until something is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from collegium._util.scores import Doubles
from collegium.errors import ScoreError


def bounded(scores: Doubles) -> Doubles:
    """Scores in (-1, 1): tanh(f / 2), twice the posterior probability of +1 minus one."""
    return np.tanh(scores / 2)


@dataclass(frozen=True, eq=False)
class ScorePipeline:
    r"""From the raw scores f of K agents to their local statistics, each agent by numbers of its own.

    $$ \text{gain}_k \bigl( b(f_k / T_k) - \text{center}_k \bigr), \qquad b(f) = \tanh(f/2) \text{ or } f $$

    where `temperature` T, `center` and `gain` have shape (K,), or () for the pipeline of one agent. A score of NaN
    stands for a view that is missing: its statistic is 0, for neither class, whatever the center.

    Temperature, center and gain act elementwise and would do for scores of C classes, shape (n, K, C): the center
    becomes one number per agent and class, the others stay one per agent. Only b is a formula for two classes.

    >>> pipeline = ScorePipeline(temperature=[2.0, 1.0], center=[0.5, 0.0])
    >>> pipeline([[3.0, -1.0], [np.nan, 4.0]])
    array([[ 1., -1.],
           [ 0.,  4.]])
    >>> float(pipeline[0](3.0))  # one agent
    1.0
    """

    temperature: Doubles
    """Positive."""
    center: Doubles = 0.0  # type: ignore[assignment]
    """What an agent's training scores are on average after temperature and bound."""
    gain: Doubles = 1.0  # type: ignore[assignment]
    """How much an agent counts: 1 unless tuned."""
    bounded: bool = False

    def __post_init__(self) -> None:
        shape: tuple[int, ...] | None = None
        for name in ("temperature", "center", "gain"):
            given = getattr(self, name)
            try:
                values = np.array(given, np.float64)
                values = values if shape is None else np.array(np.broadcast_to(values, shape))
            except (TypeError, ValueError):
                came = " ".join(f"{given!r:.80}".split())
                raise ScoreError(f"{name} must be numbers, one per agent; got {came}") from None
            shape = values.shape
            bad = ~np.isfinite(values) | ((values <= 0) & (name == "temperature"))
            if bad.any():
                whose = f" of agent {np.flatnonzero(bad)[0]}" if shape else ""
                kind = "positive and finite" if name == "temperature" else "finite"
                raise ScoreError(f"{name}{whose} must be {kind}; got {values[bad][0]:g}")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        object.__setattr__(self, "bounded", bool(self.bounded))

    @classmethod
    def fit(
        cls, train: ArrayLike, val: ArrayLike, y_val: ArrayLike, *, center: bool, calibrate: bool, bounded: bool
    ) -> Self:
        """The pipeline of K agents, each fitted to its own scores alone.

        train: training scores (N, K), whose means become the centers if `center`.
        val, y_val: validation scores (M, K) and labels (M,), to which temperatures are fitted if `calibrate`.
        """
        from collegium.agents.calibration import temperatures

        T = temperatures(np.asarray(val, np.float64), y_val) if calibrate else np.ones(np.shape(train)[1])
        start = cls(T, bounded=bounded)
        return start.centred(train) if center else start

    def centred(self, train: ArrayLike) -> Self:
        """The same pipeline, with centers at the means of what it makes of training scores (N, K)."""
        if not len(np.asarray(train)):
            raise ScoreError("a center is the mean of training scores, and there are none: give some, or do not center")
        return replace(self, center=self._uncentred(self._checked(train)).mean(axis=0))

    def __call__(self, scores: ArrayLike) -> Doubles:
        """Local statistics of raw scores, both of shape (n, K), or (n,) for one agent."""
        f = self._checked(scores)
        ready = np.asarray(self._uncentred(f))
        ready -= self.center
        ready *= self.gain
        ready[np.isnan(f)] = 0.0
        return ready

    def __getitem__(self, k: int | slice) -> Self:
        """The pipeline of agent k, or of several."""
        return replace(self, temperature=self.temperature[k], center=self.center[k], gain=self.gain[k])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists of them if there are K agents, and a truth value, by the names of the fields."""
        return {
            "temperature": self.temperature.tolist(),
            "center": self.center.tolist(),
            "gain": self.gain.tolist(),
            "bounded": self.bounded,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The pipeline of such values, bit for bit; gains are 1 in what was written before there were any."""
        known = [field.name for field in fields(cls)]
        if "temperature" not in values or not set(values) <= set(known):
            raise ScoreError(f"a pipeline is made of {', '.join(known)}; got {', '.join(map(str, values))}")
        return cls(**values)

    def _checked(self, scores: ArrayLike) -> Doubles:
        f = np.asarray(scores, np.float64)
        if f.shape[1:] != self.temperature.shape:
            shape = ", ".join(["items", *map(str, self.temperature.shape)])
            raise ScoreError(f"scores must have shape ({shape}), one column per agent; got {f.shape}")
        return f

    def _uncentred(self, f: Doubles) -> Doubles:
        scaled = f / self.temperature
        return bounded(scaled) if self.bounded else scaled
