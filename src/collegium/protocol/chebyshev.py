"""Chebyshev averaging: a memory of one round makes slow networks quick."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from collegium._util.arguments import real_number
from collegium.errors import RuleError
from collegium.protocol.polynomial import Step, TwoTerms


@dataclass(frozen=True)
class Chebyshev(TwoTerms):
    r"""DeGroot averaging with a step beyond the average, away from where the agent was before.

    $$ x_t = \omega_t\, x_{t-1} A + (1 - \omega_t)\, x_{t-2}, \qquad \omega_1 = 1, \quad
       \omega_t = 1 + \frac{T_{t-2}(1/\sigma)}{T_t(1/\sigma)} $$

    so that $x_t = x_0\, T_t(A/\sigma) / T_t(1/\sigma)$ with Chebyshev's polynomials $T_t$: of all polynomials of degree
    t that keep the limit, the one that leaves least of eigenvalues anywhere within ±σ. The disagreement shrinks like
    $\bigl(\sigma / (1 + \sqrt{1 - \sigma^2})\bigr)^t$, where DeGroot has $\sigma^t$: about $\sqrt{1 - \sigma}$ times
    the rounds. Limit, messages and neighbours are DeGroot's.

    sigma: the second-largest eigenvalue modulus of A, below 1; that of the network it runs on, if left out. A larger
        value is safe and slower; a smaller one may be much slower.
    growth, rounding: how many times the largest score a message can become on the network, and how many times the error
        of a rounded message it can be off; found out where messages are rounded.

    For networks whose weights are reversible: undirected graphs with uniform, Metropolis, Laplacian or Hastings
    weights. On directed ones it may grow without bound, and is refused: use `PushSum`. Statistics may pass beyond the
    largest score for a while (1.3 times on a ring of 12, 5 times on a grid of 20 by 20), and rounding errors add up, so
    a quantiser needs a larger bound and more bits than DeGroot: scores that could outgrow it are refused, with the
    largest that may be sent. [muthukrishnan1998]

    >>> import collegium
    >>> from collegium import policy, topology
    >>> ring, x = policy.uniform(topology.ring(12)), [[1.0] + [0.0] * 11]
    >>> for rule in (collegium.protocol.DeGroot(), Chebyshev()):
    ...     last = collegium.collaborate(x, ring, rounds=20, rule=rule).statistics[-1]
    ...     print(f"{abs(last - 1 / 12).max():.0e}")
    3e-02
    1e-04
    """

    sigma: float | None = None
    growth: float | None = None
    rounding: float | None = None

    def __post_init__(self) -> None:
        if self.sigma is not None:
            sigma = real_number(self.sigma, "sigma of Chebyshev", RuleError, at_least=0)
            if not sigma < 1:
                raise RuleError(f"sigma of Chebyshev must be below 1, got {sigma:g}")
            object.__setattr__(self, "sigma", sigma)

    def prepared(self, schedule: Any, rounds: int, rounded: bool = False) -> TwoTerms:
        from collegium.policy import Policy  # not above: a live agent that has no use for it should not load SciPy

        if type(schedule) is not Policy:
            raise RuleError(f"Chebyshev needs a network that is the same in all rounds, not {schedule!r:.80}")
        if not schedule.is_reversible:
            raise RuleError(
                "Chebyshev averaging needs reversible weights, as on undirected graphs with uniform, Metropolis or "
                "Laplacian weights; on this network it may grow without bound. Use PushSum() on directed networks"
            )
        if self.sigma is None:
            return replace(self, sigma=min(schedule.slem, math.nextafter(1, 0))).prepared(schedule, rounds, rounded)
        return super().prepared(schedule, rounds, rounded)

    def step(self, t: int) -> Step:
        if self.sigma is None:
            raise RuleError("Chebyshev must know the network's sigma: write Chebyshev(policy.slem)")
        if t == 1 or self.sigma == 0:
            return 1.0, 0.0, 0.0
        # T_{t-2}(1/σ) / T_t(1/σ), with T_t(1/σ) = cosh(tθ)
        theta = math.acosh(1 / self.sigma)
        ratio = (math.exp(-2 * theta) + math.exp(-2 * (t - 1) * theta)) / (1 + math.exp(-2 * t * theta))
        return 1 + ratio, 0.0, -ratio
