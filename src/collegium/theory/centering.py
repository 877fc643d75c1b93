"""What centering does to the margin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from collegium.errors import AssumptionError
from collegium.policy import Policy
from collegium.theory.bound import Doubles, numbers, primitive


class CenteringEffect(NamedTuple):
    """The aggregate's class means before and after centering."""

    half_difference: float
    """D: half the distance between the class means of the raw aggregate. No center changes it."""
    midpoint: float
    """μ_mid: the point between them, and the best center there is."""
    center: float
    """The network's own center, Σ π_k χ_k."""
    raw_margin: float
    """D - |μ_mid|."""
    centred_margin: float
    """D - |center - μ_mid|."""

    @property
    def improves(self) -> bool:
        """Whether centering enlarges the margin: |center - μ_mid| < |μ_mid|."""
        return abs(self.center - self.midpoint) < abs(self.midpoint)


def centering_effect(policy: Policy, plus: ArrayLike, minus: ArrayLike, center: ArrayLike) -> CenteringEffect:
    """The effect of additive centers on the expected margin at threshold 0 [hu2026, Prop. 1].

    plus, minus: every agent's mean raw score given class +1 and class -1, shape (K,). center: what each agent
    subtracts, shape (K,); the paper's choice is the mean of its training scores.

    >>> from collegium import policy, topology
    >>> effect = centering_effect(policy.uniform(topology.ring(3)), [2.0, 1.0, 3.0], [1.0, -1.0, 0.0], [1.2, 0.0, 1.5])
    >>> effect.half_difference, effect.midpoint, round(effect.centred_margin, 6), effect.improves
    (1.0, 1.0, 0.9, True)
    """
    p = primitive(policy)
    up, down, own = (
        float(p.perron @ _of_agents(value, p, name))
        for value, name in ((plus, "plus"), (minus, "minus"), (center, "center"))
    )
    D, middle = (up - down) / 2, (up + down) / 2
    return CenteringEffect(D, middle, own, D - abs(middle), D - abs(own - middle))


class PairwiseCentering(NamedTuple):
    """The aggregate's pairwise margins before and after centering; symmetric arrays (C, C) over pairs of classes."""

    half_difference: Doubles
    """D: half the distance between the means of f_a - f_b given class a and given class b. No center changes it."""
    midpoint: Doubles
    """μ_mid of each pair: the point between them, and the best center of f_a - f_b there is; [b, a] is minus [a, b]."""
    center: Doubles
    """The network's own center of f_a - f_b."""

    @property
    def raw_margin(self) -> float:
        """The smallest D - |μ_mid| over the pairs."""
        return _smallest(self.half_difference - np.abs(self.midpoint))

    @property
    def centred_margin(self) -> float:
        """The smallest D - |center - μ_mid| over the pairs."""
        return _smallest(self.half_difference - np.abs(self.center - self.midpoint))

    @property
    def improves(self) -> bool:
        """Whether centering enlarges the smallest margin."""
        return self.centred_margin > self.raw_margin


def pairwise_centering(policy: Policy, means: ArrayLike, center: ArrayLike) -> PairwiseCentering:
    """`centering_effect` for C classes: the same for the difference between the entries of every pair of classes.

    means: every agent's mean raw score given each class, shape (C, K, C), the given class first, the entry last.
    center: what each agent subtracts, shape (K, C). The mean of training scores of all classes need not lie near the
    midpoint of a pair: of more than two classes the others have their say in it.

    >>> from collegium import policy, topology
    >>> means = np.eye(3)[:, None] + np.array([0.4, 0.0, 0.0]) + np.zeros((3, 2, 1))  # two agents fond of class 0
    >>> effect = pairwise_centering(policy.uniform(topology.complete(2)), means, means.mean(axis=0))
    >>> round(effect.raw_margin, 6), round(effect.centred_margin, 6)
    (0.6, 1.0)
    """
    p = primitive(policy)
    mu, own = numbers(means, "means"), numbers(center, "center")
    C = mu.shape[0] if mu.ndim else 0
    if C < 2 or mu.shape != (C, p.size, C) or own.shape != (p.size, C):
        raise AssumptionError(
            f"means must have shape (C, {p.size}, C) and center ({p.size}, C), for {p.size} agents and C classes; got "
            f"{mu.shape} and {own.shape}"
        )
    f = np.einsum("ykc,k->yc", mu, p.perron)
    m = p.perron @ own
    difference = f[:, :, None] - f[:, None, :]  # [y, a, b]: the mean of f_a - f_b given y
    at_a, at_b = np.einsum("aab->ab", difference), np.einsum("bab->ab", difference)
    return PairwiseCentering((at_a - at_b) / 2, (at_a + at_b) / 2, m[:, None] - m)


def _smallest(pairs: Doubles) -> float:
    return float(pairs[~np.eye(len(pairs), dtype=bool)].min())


def _of_agents(value: ArrayLike, policy: Policy, name: str) -> Doubles:
    x = numbers(value, name)
    if x.shape != (policy.size,):
        raise AssumptionError(f"{name} must hold one number for each of the {policy.size} agents; got shape {x.shape}")
    return x
