"""Worlds in which everything is known: bounded scores, their class means, their dependence given the class."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from collegium.policy import Policy


@dataclass(frozen=True)
class World:
    """K agents whose scores are ±beta, independent given the class, right with probability (1 + m_k)/2."""

    skill: np.ndarray
    beta: float = 1.0
    center: float = 0.0
    """What every agent subtracts."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        y = np.where(rng.random(n) < 0.5, 1, -1)
        right = rng.random((n, len(self.skill))) < (1 + self.skill) / 2
        return self.beta * y[:, None] * np.where(right, 1, -1) - self.center, y

    def margin(self, policy: Policy) -> float:
        """The largest δ with μ⁺ > δ and μ⁻ < -δ, less a hair."""
        mean = self.beta * float(policy.perron @ self.skill)
        return (mean - abs(self.center)) * (1 - 1e-9)


@dataclass(frozen=True)
class Coupled:
    """Three agents with scores ±beta from one small law given the class, the mirror image of it given the other."""

    law: np.ndarray  # (2, 2, 2): probability of each agent being right (0) or wrong (1)
    beta: float = 1.0

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        y = np.where(rng.random(n) < 0.5, 1, -1)
        cells = rng.choice(self.law.size, n, p=self.law.ravel())
        wrong = np.stack(np.unravel_index(cells, self.law.shape), axis=1)
        return self.beta * y[:, None] * np.where(wrong, -1, 1), y

    def margin(self, policy: Policy) -> float:
        wrong = [self.law.sum(axis=tuple(a for a in range(3) if a != k))[1] for k in range(3)]
        return self.beta * float(policy.perron @ (1 - 2 * np.array(wrong))) * (1 - 1e-9)


def coupled(strength: float, skill: float = 0.5) -> Coupled:
    """Agents that tend to be right or wrong together: an Ising law on a triangle, with a field."""
    sign = np.array([1, -1])
    a, b, c = np.meshgrid(sign, sign, sign, indexing="ij")
    energy = np.arctanh(skill) * (a + b + c) + strength * (a * b + b * c + c * a)
    law = np.exp(energy)
    return Coupled(law / law.sum())


@dataclass(frozen=True)
class Ballots:
    """K agents that each name one of C classes: the true one with probability q_k, else any rival, independently.

    The score is beta times the named class's unit vector, less its mean and a center: differences are -beta, 0 or beta.
    """

    right: np.ndarray
    classes: int
    beta: float = 1.0
    center: np.ndarray | float = 0.0
    """What every agent subtracts, shape (C,), summing to zero."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(self.classes, size=n)
        wrong = rng.random((n, len(self.right))) >= self.right
        named = (y[:, None] + wrong * rng.integers(1, self.classes, size=wrong.shape)) % self.classes
        return self.beta * (np.eye(self.classes)[named] - 1 / self.classes) - self.center, y

    def leads(self, policy: Policy) -> np.ndarray:
        """The aggregate's mean lead of class y over class j given y, shape (C, C); infinite for y = j."""
        q = float(policy.perron @ self.right)
        center = np.broadcast_to(self.center, (self.classes,))
        means = self.beta * (q - (1 - q) / (self.classes - 1)) - (center[:, None] - center)
        return np.where(np.eye(self.classes, dtype=bool), np.inf, means)

    def margin(self, policy: Policy) -> float:
        """The largest δ that all leads exceed, less a hair."""
        return float(self.leads(policy).min()) * (1 - 1e-9)


def interval(errors: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """99.9 % Clopper–Pearson intervals of error rates counted over n items."""
    wrong = np.rint(np.asarray(errors) * n)
    low = stats.beta.ppf(0.0005, wrong, n - wrong + 1)
    high = stats.beta.ppf(0.9995, wrong + 1, n - wrong)
    return np.nan_to_num(low), np.where(wrong == n, 1.0, high)


def assert_holds(errors: np.ndarray, bound: np.ndarray, n: int) -> None:
    """No interval lies above the bound; and where the bound can be resolved, the whole interval lies below it."""
    low, high = interval(errors, n)
    known = ~np.isnan(bound)
    assert known.any()
    assert (low[known] <= bound[known]).all()
    clear = known & (bound > 50 / n)
    assert (high[clear] <= np.minimum(bound[clear] + 1e-12, 1)).all()
