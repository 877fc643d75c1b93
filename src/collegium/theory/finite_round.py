"""The guarantee after t rounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collegium.errors import AssumptionError
from collegium.policy import Policy
from collegium.protocol import Rule
from collegium.schedule import Schedule
from collegium.theory.bound import (
    Bound,
    Doubles,
    dependence,
    margin,
    positive,
    primitive,
    resting_on,
    several,
    together,
    upper,
)
from collegium.theory.mixing import Mixing, mixing, powers, squares, transient


def finite_round(
    policy: Schedule,
    delta: ArrayLike,
    beta: ArrayLike,
    rounds: int,
    tau: ArrayLike = 1.0,
    sigma: float | None = None,
    *,
    raw: bool = False,
    classes: int = 2,
    rule: Rule | None = None,
) -> Bound:
    r"""An upper bound on every agent's error after 0, …, `rounds` rounds, shape (rounds+1, K) [hu2026, Thm 2].

    $$ P(\mathcal M_{k,t}) \le (C - 1) \exp\Bigl\{-\frac{r_t^2}{2 \tau \beta^2 \sum_\ell [A^t]_{\ell k}^2}\Bigr\},
       \qquad r_t = \delta - 2 \beta K C(A, \sigma) \sigma^t $$

    where r_t is what incomplete mixing leaves of the margin. Where it is not positive the theorem says nothing: NaN.
    Without σ, $\sum_\ell |[A^t]_{\ell k} - \pi_\ell|$ itself takes the place of $K C(A, \sigma) \sigma^t$, agent by
    agent: the paper's proof passes through it, and for $A = \pi 1^T$ it is 0 after one round. Raw scores lose only half
    as much margin. For arrays of δ, β and τ, their axes come first. It need not fall with t. C is the number of
    `classes`; of several, δ and β are of differences between two entries, see `sufficient`.

    policy: or any schedule; then the product $A_1 \cdots A_t$ of its rounds takes the place of $A^t$, and the weights
        that agents tend to that of π. So for `schedule.exact` it is `sufficient` after ⌈log2 K⌉ rounds.
    rule: DeGroot or that of the schedule; `Chebyshev` and `PushSum` too: the weights with which its statistics combine
        the scores, negative or not, are found by running it on unit vectors.

    It tends to `sufficient` as t grows. parts: `r`, the residual margin, of the shape of the value.
    """
    d, b, dep = (x[..., None, None] for x in shaped(delta, beta, tau))
    mix = mixing(policy, rounds, rule)
    r = residual(mix, d, b, sigma, raw)
    C = several(classes)
    value = (C - 1) * exponential(r / b, dep * squares(mix.weights))
    return upper(value, resting_on(raw, C, network=mix.assumption), r=r, delta=d[..., 0, 0])


def rounds_needed(policy: Policy, delta: float, beta: float, sigma: float | None = None, *, raw: bool = False) -> int:
    r"""The smallest t from which on the residual margin is positive for every agent.

    With σ: the first t above $\log(\delta / 2 \beta K C(A, \sigma)) / \log \sigma$.
    """
    p = primitive(policy)
    d, b = margin(delta, above_zero=True), positive(beta, "β")
    if d.ndim or b.ndim:
        raise AssumptionError("rounds_needed takes one δ and one β")
    lost = (1 if raw else 2) * float(b / d)
    if sigma is not None:
        decay = lost * float(transient(p, powers(p, 0), sigma).max())
        return 0 if decay < 1 else int(np.floor(np.log(decay) / -np.log(sigma))) + 1

    def far(weights: Doubles) -> bool:
        return bool(lost * np.abs(weights - p.perron[:, None]).sum(axis=0).max() >= 1)

    # The largest distance over all agents never grows with t, so t is found bit by bit, from powers of two.
    weights, t = np.eye(p.size), 0
    if not far(weights):
        return 0
    doubled = [powers(p, 1)[1]]
    while far(doubled[-1]):
        if len(doubled) > 60:
            raise AssumptionError(f"δ = {float(d):g} is too small, or mixing too slow, for any number of rounds")
        doubled.append(doubled[-1] @ doubled[-1])
    for i in range(len(doubled) - 1, -1, -1):
        ahead = weights @ doubled[i]
        if far(ahead):
            weights, t = ahead, t + 2**i
    return t + 1


def shaped(delta: ArrayLike, beta: ArrayLike, tau: ArrayLike) -> list[Doubles]:
    """δ > 0, β and τ, checked and broadcast."""
    return together(delta=margin(delta, above_zero=True), beta=positive(beta, "β"), tau=dependence(tau))


def residual(mix: Mixing, d: Doubles, b: Doubles, sigma: float | None, raw: bool) -> Doubles:
    """r_t(δ), shape (…, rounds+1, K)."""
    left: Doubles = d - (1 if raw else 2) * b * mix.transient(sigma)
    return left


def exponential(r: Doubles, spread: Doubles) -> Doubles:
    """exp(-r² / 2·spread) where r is positive, NaN elsewhere; r and spread in units of β."""
    return np.where(r > 0, np.exp(-(np.maximum(r, 0.0) ** 2) / (2 * spread)), np.nan)
