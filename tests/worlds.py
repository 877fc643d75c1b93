"""Worlds in which everything is known: bounded scores, their class means, their dependence given the class."""

from dataclasses import dataclass

import numpy as np

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
