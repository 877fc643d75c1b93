"""What a sum of scores costs where the label is known: derivatives, curvature, and the measure of held-out items."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


class Loss(Protocol):
    """A loss of n items whose sums f have shape (n, d): d = 1 for two classes, else one entry per class."""

    def values(self, f: Doubles) -> Doubles:
        """The loss of each item, shape (n,)."""

    def slopes(self, f: Doubles) -> Doubles:
        """Its derivatives by f, shape (n, d)."""

    def curvature(self, f: Doubles, B: Doubles, weight: Doubles) -> Doubles:
        """The second derivative along columns B (m, n, d) of the weighted sum over items, shape (m, m)."""

    def judge(self, f: Doubles) -> Doubles:
        """What held-out items are compared by, shape (n,): Brier's score, summed over classes. It is bounded, so
        that no single item decides."""


class Logistic(NamedTuple):
    """The cross-entropy: log(1 + exp(-y f)), or that of the softmax of f; held-out items are judged by Brier's score.

    target: of two classes 1 and 0, shape (n, 1); of more, one-hot (n, C).
    """

    target: Doubles

    def values(self, f: Doubles) -> Doubles:
        if f.shape[1] == 1:
            return np.logaddexp(0.0, np.where(self.target > 0, -f, f))[:, 0]
        top = f.max(axis=1, keepdims=True)
        return np.asarray(np.log(np.exp(f - top).sum(axis=1)) + top[:, 0] - (f * self.target).sum(axis=1))

    def slopes(self, f: Doubles) -> Doubles:
        return np.asarray(_probabilities(f) - self.target)

    def curvature(self, f: Doubles, B: Doubles, weight: Doubles) -> Doubles:
        p, m = _probabilities(f), len(B)
        if f.shape[1] == 1:
            columns = B[..., 0]
            return np.asarray((columns * (weight * (p * (1 - p))[:, 0])) @ columns.T)
        weighted = B * p
        mean = weighted.sum(axis=2)
        return np.asarray((weighted * weight[:, None]).reshape(m, -1) @ B.reshape(m, -1).T - (mean * weight) @ mean.T)

    def judge(self, f: Doubles) -> Doubles:
        return np.asarray((2 if f.shape[1] == 1 else 1) * ((_probabilities(f) - self.target) ** 2).sum(axis=1))


class Ridge(NamedTuple):
    """Half the squared distance to the label: +1 and -1, or one-hot less its mean."""

    target: Doubles

    def values(self, f: Doubles) -> Doubles:
        return np.asarray(0.5 * ((f - self._goal()) ** 2).sum(axis=1))

    def slopes(self, f: Doubles) -> Doubles:
        return np.asarray(f - self._goal())

    def curvature(self, f: Doubles, B: Doubles, weight: Doubles) -> Doubles:
        flat = B.reshape(len(B), -1)
        return np.asarray((B * weight[:, None]).reshape(len(B), -1) @ flat.T)

    def judge(self, f: Doubles) -> Doubles:
        return np.minimum((1 if f.shape[1] == 1 else 2) * self.values(f), 2.0)

    def _goal(self) -> Doubles:
        return 2 * self.target - 1 if self.target.shape[1] == 1 else self.target - 1 / self.target.shape[1]


LOSSES: dict[str, Any] = {"logistic": Logistic, "ridge": Ridge}


def _probabilities(f: Doubles) -> Doubles:
    if f.shape[1] == 1:
        return np.asarray(1 / (1 + np.exp(-np.clip(f, -500, 500))))
    p = np.exp(f - f.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def minimise(loss: Loss, B: Doubles, penalty: Doubles, weight: Doubles, start: Doubles) -> Doubles:
    """The coefficients c, shape (m,), of least Σ weight · loss(c·B) + ½ c'penalty c, by damped Newton steps.

    B: columns (m, n, d). weight: of the items, shape (n,). penalty: (m, m), positive semi-definite.
    """
    m, flat = len(B), B.reshape(len(B), -1)

    def cost(c: Doubles) -> float:
        return float((weight * loss.values((c @ flat).reshape(B.shape[1:]))).sum() + 0.5 * c @ penalty @ c)

    c, value = start, cost(start)
    for _ in range(20):
        f = (c @ flat).reshape(B.shape[1:])
        slope = flat @ (loss.slopes(f) * weight[:, None]).ravel() + penalty @ c
        H = loss.curvature(f, B, weight) + penalty
        step = np.linalg.solve(H + (1e-9 * np.trace(H) / m + 1e-300) * np.eye(m), slope)
        length, gain = 1.0, float(slope @ step)
        while length > 1e-4:
            after = cost(c - length * step)
            if after <= value - 1e-4 * length * gain:
                break
            length /= 2
        else:
            break
        c, before, value = c - length * step, value, after
        if before - value <= 1e-7 * (abs(value) + 1e-3):
            break
    return np.asarray(c)
