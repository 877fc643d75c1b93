"""Gains that follow drift: each agent moves its own after every item whose label becomes known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.labels import to_places, to_signs
from collegium._util.measures import wrong as mistakes
from collegium._util.scores import check_scores_of_classes
from collegium.errors import ScoreError
from collegium.network import collaborate
from collegium.protocol import Rule
from collegium.schedule._validation import validate as validate_schedule
from collegium.schedule.base import Schedule
from collegium.tuning.losses import Doubles, Logistic

_FIRST = 50


class Online(NamedTuple):
    r"""An agent's gain and what it knows of the size of its scores, before the next labelled item.

    After the network has decided about an item, an agent knows the average s. When the label becomes known,

    $$ g_k \leftarrow g_k - \text{rate} \cdot \frac{\partial \ell(s)}{\partial s} \cdot \frac{x_k}{v_k}, $$

    where $\ell$ is the logistic loss of s in units of its own size and $v_k$ the mean square of the agent's own scores:
    no message beyond the decision itself. All agents must be told the same labels.
    """

    gain: Any = 1.0
    """One number, or one per class, (C,)."""
    power: float = 0.0
    """Running mean square of the agent's own scores."""
    size: float = 0.0
    """Mean square of the network's average of the first items."""
    seen: int = 0

    def told(self, x: ArrayLike, s: ArrayLike, label: Any, *, rate: float = 0.05) -> Online:
        """What the agent goes on with.

        x: its own score of the item with gain 1, one number or (C,). s: the network's average, of the same form.
        label: +1 or -1, or the place 0 … C-1.
        """
        own, average = np.atleast_1d(np.asarray(x, np.float64)), np.atleast_1d(np.asarray(s, np.float64))
        if own.shape != average.shape or not (np.isfinite(own).all() and np.isfinite(average).all()):
            raise ScoreError(f"a score and an average of the same item have one form; got {own.shape}, {average.shape}")
        seen = self.seen + 1
        share = max(1 / seen, 1 / _FIRST)  # the mean of all items at first, then of the last fifty or so
        power = (1 - share) * self.power + share * float((own**2).mean())
        share = 1 / seen if seen <= _FIRST else 0.0  # then fixed, or gains would grow for ever
        size = (1 - share) * self.size + share * float((average**2).mean())
        if not power > 0 or not size > 0:
            return self._replace(power=power, size=size, seen=seen)
        slope = Logistic(_target(label, len(own))).slopes(average[None] / np.sqrt(size))[0]
        step = slope * own if np.ndim(self.gain) else float((slope * own).sum())
        return Online(self.gain - rate * step / np.sqrt(power), power, size, seen)


class Followed(NamedTuple):
    """What became of gains that were moved after every item."""

    gains: Doubles
    """Before every item, and after the last: shape (n + 1, K)."""
    wrong: NDArray[np.bool_]
    """Which agents were wrong about which item, before its label was known: shape (n, K)."""


def follow(
    scores: ArrayLike,
    y: ArrayLike,
    schedule: Schedule,
    rounds: int | None = None,
    rule: Rule | None = None,
    *,
    rate: float = 0.05,
    start: ArrayLike | None = None,
) -> Followed:
    """Decide items one after the other, and move every agent's gain when the label becomes known; as live agents do.

    scores: (n, K), or (n, K, C) of C > 2 classes, with gain 1. y: +1 / -1, or places 0 … C-1.
    schedule, rounds, rule: as in `collaborate`. rate: how far gains go. start: gains as they stand, (K,).
    """
    validate_schedule(schedule, 0)
    x = check_scores_of_classes(np.asarray(scores, np.float64), schedule.size)
    n, K, d = x.shape
    labels: NDArray[Any] = to_signs(y, n, classes=(1, -1)) if d == 1 else to_places(y, n, d)
    gains = np.ones(K) if start is None else np.array(start, np.float64)
    if gains.shape != (K,) or not np.isfinite(gains).all():
        raise ScoreError(f"start must be {K} finite gains, one per agent; got {start!r:.80}")
    agents = [Online(float(gain)) for gain in gains]
    history, wrong = [gains], np.zeros((n, K), np.bool_)
    for i in range(n):
        entering = x[i] * history[-1][:, None]
        run = collaborate(entering[None, :, 0] if d == 1 else entering[None], schedule, rounds, rule, record="final",
                          items=[i])  # fmt: skip
        heard = run.statistics[-1].reshape(K, d)
        wrong[i] = mistakes(heard[:, 0] if d == 1 else heard[:, None], np.repeat(labels[i], K))
        agents = [one.told(x[i, k], heard[k], labels[i].item(), rate=rate) for k, one in enumerate(agents)]
        history.append(np.array([one.gain for one in agents]))
    return Followed(np.array(history), wrong)


def _target(label: Any, d: int) -> Doubles:
    if d == 1:
        if label not in (1, -1):
            raise ScoreError(f"the label of two classes is +1 or -1; got {label!r}")
        return np.array([[float(label > 0)]])
    if not 0 <= label < d:
        raise ScoreError(f"the label of {d} classes is a place from 0 to {d - 1}; got {label!r}")
    return np.eye(d)[[label]]
