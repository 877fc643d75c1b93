"""Loss functions with what the assumptions need: convex, non-increasing, Lipschitz, differentiable at 0."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number
from collegium.errors import AssumptionError

Doubles = NDArray[np.float64]


class Loss(ABC):
    """A training loss Φ of the signed score γf."""

    differentiable_at_zero: bool = True
    """Whether Φ'(0) exists; it must be negative as well."""

    @abstractmethod
    def __call__(self, x: ArrayLike) -> Doubles:
        """Φ(x)."""

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """L_Φ: no slope is steeper."""

    @property
    @abstractmethod
    def slope_at_zero(self) -> float:
        """Φ'(0)."""

    @abstractmethod
    def reach(self, r: float) -> float:
        """d_r, the smallest x ≥ 0 with Φ(x) ≤ r; infinite if there is none."""

    @property
    def at_zero(self) -> float:
        """Φ(0), the risk of knowing nothing."""
        return float(self(0.0))


@dataclass(frozen=True)
class Logistic(Loss):
    """Φ(x) = log(1 + e⁻ˣ), natural logarithm: Φ(0) = log 2, L_Φ = 1, Φ'(0) = -1/2."""

    def __call__(self, x: ArrayLike) -> Doubles:
        return np.logaddexp(0.0, -np.asarray(x, np.float64))

    @property
    def lipschitz(self) -> float:
        """1, approached where x goes to -∞."""
        return 1.0

    @property
    def slope_at_zero(self) -> float:
        """-1/2."""
        return -0.5

    def reach(self, r: float) -> float:
        """-log(eʳ - 1), where positive; no x brings the loss to 0 or below."""
        return max(0.0, -float(np.log(np.expm1(r)))) if r > 0 else np.inf


@dataclass(frozen=True)
class Exponential(Loss):
    """Φ(x) = e⁻ˣ on [-bound, bound], where it is Lipschitz with L_Φ = e^bound: Φ(0) = 1, Φ'(0) = -1.

    `bound` is the β of the scores. Outside the range Φ goes on along its tangents, so that it stays convex,
    non-increasing and Lipschitz everywhere; to the right it ends at 0.
    """

    bound: float

    def __post_init__(self) -> None:
        real_number(self.bound, "the range of the exponential loss", AssumptionError, above=0, at_most=700)

    def __call__(self, x: ArrayLike) -> Doubles:
        y = np.asarray(x, np.float64)
        inside = np.clip(y, -self.bound, self.bound)
        tangent = np.exp(-inside)
        return np.maximum(tangent * (1 - (y - inside)), 0.0)

    @property
    def lipschitz(self) -> float:
        """e^bound, the slope at the left end of the range."""
        return float(np.exp(self.bound))

    @property
    def slope_at_zero(self) -> float:
        """-1."""
        return -1.0

    def reach(self, r: float) -> float:
        """-log r within the range; beyond it, where the tangent comes down to r."""
        if r < 0:
            return np.inf
        if r >= np.exp(-self.bound):
            return max(0.0, -float(np.log(r)))
        return self.bound + 1 - r * float(np.exp(self.bound))


@dataclass(frozen=True)
class Hinge(Loss):
    """Φ(x) = max(0, 1 - x): Φ(0) = 1, L_Φ = 1. Differentiable at 0 with Φ'(0) = -1; its corner is at 1, not at 0."""

    def __call__(self, x: ArrayLike) -> Doubles:
        return np.asarray(np.maximum(0.0, 1.0 - np.asarray(x, np.float64)))

    @property
    def lipschitz(self) -> float:
        """1."""
        return 1.0

    @property
    def slope_at_zero(self) -> float:
        """-1."""
        return -1.0

    def reach(self, r: float) -> float:
        """1 - r, where positive; the loss is never negative."""
        return max(0.0, 1.0 - r) if r >= 0 else np.inf
