"""One agent's side of tuning: what it tells the network of its own scores, and what it makes of the averages.

The same generator runs in a simulation, K of them side by side, and in a live agent, alone: it yields the rows it
wants averaged and is sent what the network said of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np

from collegium.tuning.learner import FOLDS, TUNED, Choice, Learner, rounded
from collegium.tuning.losses import Doubles

WIDEST = 4.0
"""An agent's scores in its own units are never larger than this, so that all know how large a message can be."""
_BITS = TUNED.bit_length()
_HALVINGS = 16
Memory = dict[Any, Any]
Program = Generator[Doubles, Doubles, "Outcome"]


class Outcome(NamedTuple):
    """What an agent is left with."""

    agreed: bool
    """Whether all agents made the same choice; if not, nothing changes."""
    gain: Doubles
    """Its gain, () or (C,)."""
    shift: Doubles
    """What its scores lose before the gain, () or (C,)."""
    choice: Choice
    heard: tuple[int, ...]
    """Whose scores are in the averages, as far as this agent can tell."""


class Private(NamedTuple):
    """What only this agent knows: its scores of the labelled items, in its own units."""

    x: Doubles
    """As they enter the network with gain 1, shape (n, d)."""
    mean: Doubles
    unit: float
    features: Doubles
    """What gains multiply, less the mean, shape (G, n, d): one feature, or one per class."""
    gain: Doubles
    """Its gain as it stands, shape (G,)."""

    @classmethod
    def of(cls, x: Doubles, gain: Doubles, per_class: bool) -> Private:
        x = x[:, None] if x.ndim == 1 else x
        mean = x.mean(axis=0)
        z = x - mean
        unit = max(float(np.sqrt((z**2).mean())), float(np.abs(z).max(initial=0.0)) / WIDEST)
        unit = unit if unit > 0 else 1.0
        return cls(x, mean, unit, _features(z / unit, per_class), np.broadcast_to(gain, (_gains(x, per_class),)))

    def counted(self, gain: Doubles) -> Doubles:
        """Its scores with some gain, (n, d)."""
        return np.asarray((gain[:, None, None] * _features(self.x, len(gain) > 1)).sum(axis=0))


def _gains(x: Doubles, per_class: bool) -> int:
    return x.shape[1] if per_class else 1


def _features(z: Doubles, per_class: bool) -> Doubles:
    if not per_class:
        return z[None]
    d = z.shape[1]
    return np.asarray((np.eye(d) - 1 / d)[:, None, :] * z.T[:, :, None])


def program(
    k: int, x: Doubles, learner: Learner, *, gain: Any = 1.0, per_class: bool = False, bound: float = np.inf,
    limit: float = np.inf, widest: float = np.inf, verify: bool = False, memory: Memory | None = None,
) -> Program:  # fmt: skip
    """Agent k tunes its gain.

    x: its scores of the labelled items, (n,) or (n, C), as they enter the network with gain 1; 0 where it has no view.
    gain: its gain as it stands. bound: the largest number that the rule can send.
    limit, widest: the smallest and the largest bound of any agent's scores, the same at every agent, so that what is
        heard can be sent again. They change no gain at full precision: numbers are made smaller by powers of two.
    verify: whether the new gains are tried before they are used, where averages are inexact: of the labelled items the
        network must get no more wrong than before.
    memory: where agents of one simulation find what another has computed from the same averages.
    """
    own = Private.of(np.asarray(x, np.float64), np.asarray(gain, np.float64), per_class)
    n, d, K = len(own.x), own.x.shape[1], learner.agents
    shared = _Shared(memory)
    most = min(bound, limit)
    amplitude = 1.0 if np.isinf(most) else _power_of_two(most / WIDEST)
    # What a single number, such as a vote, is multiplied by. Where messages are rounded, the bound itself is not.
    one = min(1.0, _power_of_two(most)) if np.isinf(bound) else most
    shrink = 1.0 if np.isinf(limit) else min(1.0, _power_of_two(limit / widest))

    # First what everybody thinks as it stands, with all gains 1, and how often each agent alone is wrong.
    told = _alone(k, own.x, learner) * one
    first = [own.x] if learner.fresh else [own.x, own.counted(own.gain)]
    heard = rounded_rows((yield np.concatenate([*(x * shrink for x in first), _rows(told, d)])), [n] * len(first))
    equal, s = heard[0] / shrink, heard[-2] / shrink
    alone, known = _shares(heard[-1][:, 0], K)
    history: list[Doubles] = [s, equal, alone]
    P: list[Doubles] = []
    B: list[Doubles] = []
    along: list[Doubles] = []  # own steps along the directions of the model that is used, (G,) each
    scale = amplitude / np.sqrt(n * d) / len(own.features)
    for _ in range(learner.conversations):
        p = shared(learner.directions, history, s, list(P), list(B))
        steps = np.array([[(feature * one).sum() for feature in own.features] for one in p])
        rows = np.concatenate([(step[:, None, None] * own.features).sum(axis=0) for step in steps]) * scale
        b = rounded_rows((yield rows))[0].reshape(p.shape) / scale
        P.append(p)
        B.append(b)
        along.append(steps[0])
        history.append(b)
    choice, c = shared(learner.choose, history, s, equal, list(P), list(B), alone)

    # Agents whose averages are not exact may choose differently: the majority decides.
    vote = one * _bits(choice.code)
    said = (yield _rows(vote, d))[:, 0]
    choice = _adopt(choice, _number(said))
    gain_, offset = _result(k, own, learner, choice, c, along, s, [b[0] for b in B])
    rho = gain_**2 / (1 + gain_**2)
    offset = offset * shrink
    offset = offset * min(1.0, most / max(float(np.abs(offset).max()), 1e-300))
    heard_ = yield np.concatenate([offset[None], _rows(one * rho, d)])
    # The common threshold is shared out: who counts much takes most of it.
    total, q = heard_[0] / shrink, heard_[1:, 0] / one
    shift = -total * (gain_ / (1 + gain_**2) / np.maximum(q, 1e-12))
    if not offset.any() and not total.any():
        shift = np.zeros_like(total)

    agreed, factor = True, 1.0
    if not np.isinf(bound) or (verify and not np.isinf(most)):  # smaller alike, until items twice as large would fit
        need = np.log2(max(2 * float(np.abs(_entering(own, gain_, shift)).max(initial=0.0)) / most, 1e-300))
        heard_ = yield _rows(one * np.where(need <= np.arange(_HALVINGS), 1.0, -1.0), d)
        halvings = int(np.append(heard_[:, 0] > one * (1 - 1 / K), True).argmax())
        agreed, factor = need <= halvings, 0.5**halvings
        gain_ = gain_ if np.isinf(bound) else gain_ * factor
    if verify:
        entering = _entering(own, gain_, shift)
        after = yield entering * shrink * (factor if np.isinf(bound) else 1.0)
        no_worse = learner._wrong(after).sum() <= learner._wrong(s).sum()
        if not (yield _rows(np.array([one if no_worse else -one]), d))[0, 0] > 0.5 * one:
            choice, gain_, shift = choice._replace(kept="as it was"), own.gain, np.zeros_like(shift)

    # All the new gains, or all the old: everybody says what it has.
    says = _bits(choice.code)
    agreed = agreed and bool(((yield _rows(one * says, d))[:, 0] * says > 0.5 * one).all())
    return Outcome(agreed, gain_ if per_class else gain_[0], shift if d > 1 else shift[0], choice, known)


class _Shared:
    """Remembers what was computed from the same averages."""

    def __init__(self, memory: Memory | None) -> None:
        self.memory = memory

    def __call__(self, function: Callable[..., Any], history: list[Doubles], *arguments: Any) -> Any:
        if self.memory is None:
            return function(*arguments)
        key = (function.__name__, *(array.tobytes() for array in history))
        if key not in self.memory:
            self.memory[key] = function(*arguments)
        return self.memory[key]


def _alone(k: int, x: Doubles, learner: Learner) -> Doubles:
    """A 1 and the share that agent k has wrong in each fold, where its own rows are; zeros elsewhere."""
    wrong = learner._wrong(x)
    shares = np.array([wrong[learner.folds == f].mean() if (learner.folds == f).any() else 0.0 for f in range(FOLDS)])
    rows = np.zeros((learner.agents, 1 + FOLDS))
    rows[k] = 1.0, *shares
    return rows.ravel()


def _power_of_two(value: float) -> float:
    """The largest that is not above a value."""
    return float(2.0 ** np.floor(np.log2(value))) if np.isfinite(value) else value


def _shares(heard: Doubles, K: int) -> tuple[Doubles, tuple[int, ...]]:
    """Shares (K, folds) that agents alone have wrong, 1 where nobody knows; and of whom they are known."""
    rows = heard.reshape(K, 1 + FOLDS)
    known = rows[:, :1] > 0.1 / K * max(float(rows[:, 0].max()), 1e-12)
    shares = np.divide(rows[:, 1:], rows[:, :1], out=np.ones((K, FOLDS)), where=np.broadcast_to(known, (K, FOLDS)))
    return rounded(np.clip(shares, 0.0, 1.0)), tuple(np.flatnonzero(known).tolist())


def _rows(values: Doubles, d: int) -> Doubles:
    """Single numbers as rows of d entries that sum to zero."""
    rows = np.zeros((len(values), d))
    rows[:, 0] = values
    if d > 1:
        rows[:, 1] = -values
    return rows


def rounded_rows(heard: Doubles, sizes: list[int] | None = None) -> list[Doubles]:
    """What was heard in blocks of so many rows and the rest, each rounded."""
    return [rounded(block) for block in np.split(heard, np.cumsum(sizes or []))] if sizes else [rounded(heard)]


def _bits(code: int) -> Doubles:
    return np.array([1.0 if code >> i & 1 else -1.0 for i in range(_BITS)])


def _number(heard: Doubles) -> int:
    return sum(1 << i for i in range(_BITS) if heard[i] > 0)


def _adopt(choice: Choice, code: int) -> Choice:
    """The choice that a code stands for, with this agent's own figures."""
    if code >= TUNED:
        return choice._replace(kept="tuned")
    if code >= 2:
        return choice._replace(kept="best agent", agent=code - 2)
    return choice._replace(kept=("as it was", "equal")[code])


def _result(
    k: int, own: Private, learner: Learner, choice: Choice, c: Doubles, along: list[Doubles], s: Doubles,
    B: list[Doubles],
) -> tuple[Doubles, Doubles]:  # fmt: skip
    """This agent's gain, (G,), and what it adds to its score, (d,); the network's average stays as large as it was."""
    G, d = len(own.gain), own.x.shape[1]
    if choice.kept != "tuned":
        value = {"equal": 1.0, "best agent": float(learner.agents) if choice.agent == k else 0.0}.get(choice.kept)
        return (own.gain if value is None else np.full(G, value)), np.zeros(d)
    size, steps = learner.known(s), len(along)
    a, b, c = c[0] / size, c[1 : len(c) - steps], c[len(c) - steps :]
    offset = b if d == 1 else b - b.mean()
    f = a * s + offset + sum((one * change for one, change in zip(c, B, strict=True)), np.zeros_like(s))
    w = sum((one * step for one, step in zip(c, along, strict=True)), np.zeros(G)) / own.unit
    offset = offset - (w[:, None] * _features(own.mean[None], G > 1)[:, 0]).sum(axis=0)
    factor = size / learner.known(f)
    return np.asarray((a * own.gain + w) * factor), np.asarray(offset * factor)


def _entering(own: Private, gain: Doubles, shift: Doubles) -> Doubles:
    moved = own.x - shift
    return np.asarray((gain[:, None, None] * _features(moved, len(gain) > 1)).sum(axis=0))
