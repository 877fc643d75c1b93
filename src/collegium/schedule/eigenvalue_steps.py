"""The exact limit of a fixed network: one round for each eigenvalue of A besides 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collegium._util.seat import Seat
from collegium.errors import PolicyError
from collegium.policy import Policy
from collegium.protocol.polynomial import Polynomial, Step
from collegium.schedule.exact import one_peer
from collegium.topology.base import DENSE_LIMIT

Complex = NDArray[np.complex128]
_SAME = 1e-8  # two eigenvalues closer than this are one
_EXACT = 1e-10  # of the largest score: as good as rounding allows
_SPOILT = 1e-6  # of the largest score: an error of rounding that makes it pointless


@dataclass(frozen=True)
class EigenvalueSteps:
    """A policy's links for as many rounds as reach its limit exactly; made by `schedule.eigenvalue_steps`."""

    policy: Policy
    rule: Polynomial = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise PolicyError(f"eigenvalue steps are those of a Policy, got {type(self.policy).__name__}")
        if self.policy.size > DENSE_LIMIT:
            raise PolicyError(
                f"eigenvalue steps are found for at most {DENSE_LIMIT} agents, and here are {self.policy.size}: use "
                "protocol.Chebyshev()"
            )
        object.__setattr__(self, "rule", _rule(self.policy))

    @property
    def size(self) -> int:
        """K, the number of agents."""
        return self.policy.size

    @property
    def rounds(self) -> int:
        """How many rounds reach the limit, after which nothing is sent any more."""
        return len(self.rule.steps) if self.size > 1 else 0

    def at(self, t: int) -> Sequence[Seat]:
        """The seats of round t: those of the policy, and nobody's when the limit is reached."""
        return self.policy.at(t) if t <= self.rounds else one_peer(self.size, 0, 1.0)


def eigenvalue_steps(policy: Policy) -> EigenvalueSteps:
    r"""The exact limit of a fixed network in as many rounds as A has different eigenvalues besides 1.

    policy: who hears whom, with which weights. It brings its rule, `protocol.Polynomial`. Every round removes one
        eigenvalue v: $x' = (x A - v x)/(1 - v)$; of a pair of complex ones, two rounds remove both. The limit is
        DeGroot's, the Perron-weighted mean, and messages go over the same links.

    A ring of 12 takes 6 rounds, a grid of 3 by 4 eleven, a star two. The order (Leja's) keeps numbers small on the way;
    where rounding errors of double precision would spoil the result nevertheless, the network is refused with how many
    times numbers would grow. Weights are not convex: rounded messages, `Quantised(schedule.rule, bits, bound)`, need a
    bound of `growth` times the largest score and `rounding` steps beside it, and scores that could outgrow it are
    refused. Every agent must know all eigenvalues, and a lost message is not repaired. [sundaram2007, safavi2015]

    >>> import collegium
    >>> from collegium import policy, topology
    >>> steps = eigenvalue_steps(policy.uniform(topology.ring(12)))
    >>> run = collegium.collaborate([[float(k) for k in range(12)]], steps)
    >>> run.statistics[-1].round(12).tolist() == [[5.5] * 12], run.rounds, int(run.transmissions[0])
    (True, 6, 144)
    """
    return EigenvalueSteps(policy)


def _rule(policy: Policy) -> Polynomial:
    A = np.asarray(policy.A)
    values: Complex = np.linalg.eigvals(A).astype(np.complex128)
    values = np.delete(values, np.abs(values - 1).argmin())
    distinct: list[complex] = []
    for value in values.tolist():
        if all(abs(value - other) > _SAME for other in distinct):
            distinct.append(value)
    limit, best, least = policy.perron[:, None], Polynomial(((1.0, 0.0, 0.0),)), np.inf
    for chosen in (np.array(distinct, np.complex128), values):  # all of them where A has fewer eigenvectors
        steps = _steps(_leja_order(chosen))
        rule = Polynomial(steps) if steps else best
        now, before, growth = np.eye(policy.size), np.zeros_like(A), 1.0
        for alpha, beta, gamma in rule.steps if steps else ():
            now, before = alpha * (now @ A) + beta * now + gamma * before, now
            growth = max(growth, float(np.abs(now).sum(axis=0).max()))
        off = float(np.abs(now - limit).sum(axis=0).max()) if policy.size > 1 else 0.0
        if off < least / 1000:  # it is worth more rounds
            best, least = Polynomial(rule.steps, growth), off
        if least <= _EXACT:
            break
    if least <= _SPOILT:
        return best
    raise PolicyError(
        f"eigenvalue steps cannot be taken on this network: in {len(values)} rounds numbers would grow up to "
        f"{growth:.3g} times and rounding would leave errors of {least:.2g} times the largest score. Use "
        "protocol.Chebyshev(), or more rounds of DeGroot"
    )


def _leja_order(values: Complex) -> list[complex]:
    """Each next one as far as possible from 1 and from those before, so that no product of steps grows; complex
    conjugates one after the other."""
    far = np.log(np.abs(values - 1))
    left, ordered = np.ones(len(values), np.bool_), list[complex]()
    while left.any():
        here = int(np.where(left, far, -np.inf).argmax())
        both = [here]
        if abs(values[here].imag) > _SAME:
            others = np.where(left, np.abs(values - values[here].conj()), np.inf)
            both.append(int(others.argmin()))
        for place in both:
            left[place] = False
            ordered.append(complex(values[place]))
            far = far + np.log(np.maximum(np.abs(values - values[place]), 1e-12))
    return ordered


def _steps(values: list[complex]) -> tuple[Step, ...]:
    steps, place = list[Step](), 0
    while place < len(values):
        v = values[place]
        if abs(v.imag) <= _SAME:
            steps.append((1 / (1 - v.real), -v.real / (1 - v.real), 0.0))
            place += 1
            continue
        scale = abs(1 - v) ** 2
        steps += [(1.0, 0.0, 0.0), (1 / scale, -2 * v.real / scale, abs(v) ** 2 / scale)]
        place += 2
    return tuple(steps)
