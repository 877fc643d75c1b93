"""What centering does to the margin."""

from __future__ import annotations

from typing import NamedTuple

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


def _of_agents(value: ArrayLike, policy: Policy, name: str) -> Doubles:
    x = numbers(value, name)
    if x.shape != (policy.size,):
        raise AssumptionError(f"{name} must hold one number for each of the {policy.size} agents; got shape {x.shape}")
    return x
