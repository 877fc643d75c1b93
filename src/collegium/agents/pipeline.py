"""`ScorePipeline`: the one way from a model's output to what enters the network.

Live agents import it, which load neither SciPy nor scikit-learn: only NumPy is needed until something is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from collegium._util.arguments import whole_number
from collegium._util.scores import Doubles
from collegium.errors import ScoreError


def bounded(scores: ArrayLike, classes: int = 2) -> Doubles:
    r"""Bounded scores: what the posterior probabilities differ by, instead of their logarithms.

    $$ b(f) = \tanh(f/2) = p_{+} - p_{-}, \qquad b_c(f) = p_c - 1/C, \quad p = \operatorname{softmax}(f) $$

    Of two classes the first form, within (-1, 1). Of C > 2, scores (…, C), the second: the margin between two classes
    is the difference of their probabilities, within (-1, 1) and tanh(f/2) if C were 2; an entry lies within
    (-1/C, 1 - 1/C), and they sum to zero.

    >>> float(bounded(np.log(3.0)))  # three in four against one in four
    0.5
    >>> bounded(np.log([6.0, 1.0, 1.0]), 3).round(3)
    array([ 0.417, -0.208, -0.208])
    """
    f = np.asarray(scores, np.float64)
    return np.tanh(f / 2) if classes == 2 else probabilities(f) - 1 / classes


def probabilities(scores: Doubles) -> Doubles:
    """The softmax over the last axis: posterior probabilities of log-probabilities, whatever their common offset."""
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ScorePipeline:
    r"""From the raw scores f of K agents to their local statistics, each agent by numbers of its own.

    $$ \text{gain}_k \bigl( b(f_k / T_k) - \text{center}_k \bigr), \qquad b \text{ as in `bounded`, or } b(f) = f $$

    where `temperature` T, `center` and `gain` have shape (K,), or () for the pipeline of one agent. A score of NaN
    stands for a view that is missing: its statistic is 0, for no class, whatever the center.

    Of C > 2 classes the scores are log-probabilities less their mean, shape (n, K, C), and `center` has shape (K, C).
    T may have it too (vector scaling): then the scores lose their mean again after the division.

    >>> pipeline = ScorePipeline(temperature=[2.0, 1.0], center=[0.5, 0.0])
    >>> pipeline([[3.0, -1.0], [np.nan, 4.0]])
    array([[ 1., -1.],
           [ 0.,  4.]])
    >>> float(pipeline[0](3.0))  # one agent
    1.0
    >>> ScorePipeline(2.0, center=[1.0, 0.0, -1.0], classes=3)([4.0, -2.0, -2.0])
    array([ 1., -1.,  0.])
    """

    temperature: Doubles
    """Positive."""
    center: Doubles = 0.0  # type: ignore[assignment]
    """What scores lose after temperature and bound: their mean in training, as in the paper, or another threshold."""
    gain: Doubles = 1.0  # type: ignore[assignment]
    """How much an agent counts: 1 unless tuned. Of C > 2 classes it may have shape (K, C), one per class: then what
    enters the network loses its mean over the classes again."""
    bounded: bool = False
    classes: int = 2
    """C, the number of classes."""

    def __post_init__(self) -> None:
        C = whole_number(self.classes, "classes, the number of classes,", ScoreError, at_least=2)
        values = {name: _numbers(name, getattr(self, name)) for name in ("temperature", "center", "gain")}
        agents = values["temperature"].shape
        if C > 2 and values["center"].ndim:
            agents = values["center"].shape[:-1]
        shapes = {"temperature": agents, "center": agents if C == 2 else (*agents, C), "gain": agents}
        for name in ("temperature", "gain"):
            if C > 2 and values[name].shape == shapes["center"]:
                shapes[name] = shapes["center"]
        for name, shape in shapes.items():
            try:
                value = np.array(np.broadcast_to(values[name], shape))
            except ValueError:
                raise _no_numbers(name, getattr(self, name)) from None
            _check_finite(name, value)
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "bounded", bool(self.bounded))

    @classmethod
    def fit(
        cls, train: ArrayLike, val: ArrayLike, y_val: ArrayLike, *, center: bool, calibrate: bool, bounded: bool
    ) -> Self:
        """The pipeline of K agents as in the paper, each fitted to its own scores alone.

        train: training scores (N, K) or (N, K, C), whose means become the centers if `center`.
        val, y_val: validation scores of the same form and labels (M,), to which temperatures are fitted if `calibrate`:
            +1 and -1, or places 0 … C-1.
        """
        from collegium.agents.calibration import temperatures

        shape = np.shape(train)
        T = temperatures(np.asarray(val, np.float64), y_val) if calibrate else np.ones(shape[1])
        start = cls(T, bounded=bounded, classes=shape[2] if len(shape) == 3 else 2)
        return start.centred(train) if center else start

    def centred(self, train: ArrayLike) -> Self:
        """The same pipeline, with centers at the means of what it makes of training scores (N, K) or (N, K, C)."""
        if not len(np.asarray(train)):
            raise ScoreError("a center is the mean of training scores, and there are none: give some, or do not center")
        return replace(self, center=self.uncentred(train).mean(axis=0))

    def __call__(self, scores: ArrayLike) -> Doubles:
        """Local statistics of raw scores, both of shape (n, K) or (n, K, C), or (n,) or (n, C) for one agent."""
        f = self._checked(scores)
        ready = self._uncentred(f)
        ready -= self.center
        if self.gain.shape == self.center.shape:
            ready *= self.gain
            if self.classes > 2:
                ready -= ready.mean(axis=-1, keepdims=True)
        else:
            ready *= self.gain[..., None]
        missing = np.isnan(f)
        ready[missing if self.classes == 2 else missing.any(axis=-1)] = 0.0
        return ready

    def uncentred(self, scores: ArrayLike) -> Doubles:
        """The same without center and gain; NaN stays."""
        return self._uncentred(self._checked(scores))

    def __getitem__(self, k: int | slice) -> Self:
        """The pipeline of agent k, or of several."""
        return replace(self, temperature=self.temperature[k], center=self.center[k], gain=self.gain[k])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists of them if there are several, and a truth value, by the names of the fields.

        `classes` is there only if there are more than two.
        """
        values = {name: getattr(self, name).tolist() for name in ("temperature", "center", "gain")}
        values["bounded"] = self.bounded
        return values if self.classes == 2 else {**values, "classes": self.classes}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The pipeline of such values, bit for bit; gains are 1 in what was written before there were any."""
        known = [field.name for field in fields(cls)]
        if "temperature" not in values or not set(values) <= set(known):
            raise ScoreError(f"a pipeline is made of {', '.join(known)}; got {', '.join(map(str, values))}")
        return cls(**values)

    def _checked(self, scores: ArrayLike) -> Doubles:
        f = np.asarray(scores, np.float64)
        wanted = self.center.shape
        single = self.classes > 2 and len(wanted) == 1 and f.shape == wanted  # one agent's scores of one item
        if f.shape[1:] != wanted and not single:
            shape = ", ".join(["items", *map(str, wanted)])
            each = "one column per agent" if self.classes == 2 else f"{self.classes} numbers, one per class, per agent"
            raise ScoreError(f"scores must have shape ({shape}), {each}; got {f.shape}")
        return f

    def _uncentred(self, f: Doubles) -> Doubles:
        if self.classes == 2:
            scaled = f / self.temperature
        elif self.temperature.shape != self.center.shape:
            scaled = f / self.temperature[..., None]
        else:
            scaled = f / self.temperature
            scaled -= scaled.mean(axis=-1, keepdims=True)
        return np.asarray(bounded(scaled, self.classes) if self.bounded else scaled)


def _numbers(name: str, given: Any) -> Doubles:
    try:
        return np.array(given, np.float64)
    except (TypeError, ValueError):
        raise _no_numbers(name, given) from None


def _no_numbers(name: str, given: Any) -> ScoreError:
    came = " ".join(f"{given!r:.80}".split())
    return ScoreError(f"{name} must be numbers, one per agent; got {came}")


def _check_finite(name: str, values: Doubles) -> None:
    bad = ~np.isfinite(values) | ((values <= 0) & (name == "temperature"))
    if bad.any():
        whose = f" of agent {np.argwhere(bad)[0][0]}" if values.ndim else ""
        kind = "positive and finite" if name == "temperature" else "finite"
        raise ScoreError(f"{name}{whose} must be {kind}; got {values[bad][0]:g}")
