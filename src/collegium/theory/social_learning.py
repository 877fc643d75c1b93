"""The guarantee for social learning with static observations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collegium.policy import Policy
from collegium.theory.bound import Bound, primitive, resting_on, several, upper
from collegium.theory.finite_round import exponential, shaped
from collegium.theory.mixing import powers, squares


def social_learning(
    policy: Policy,
    delta: ArrayLike,
    beta: ArrayLike,
    rounds: int,
    tau: ArrayLike = 1.0,
    *,
    raw: bool = False,
    classes: int = 2,
) -> Bound:
    r"""An upper bound on every agent's error after 0, …, `rounds` rounds of social learning [hu2026, Prop. F.1].

    $$ P(\mathcal M^{SL}_{k,t}) \le
       (C - 1) \exp\Bigl\{-\frac{(t\delta - \kappa)^2}{2 \tau \beta^2 \sum_\ell (\sum_{i=1}^t [A^i]_{\ell k})^2}\Bigr\},
       \qquad \kappa = 2 \beta B_{mix} $$

    for t > κ/δ, and NaN before; shape (rounds+1, K), the axes of arrays of δ, β and τ first. κ is half as large for raw
    scores. The same observation is used in every round, so nothing is gained over `sufficient`, to which it tends and
    which says what δ and β are of several `classes`, C.

    parts: `kappa`, `b_mix`; `crude`, with t² in place of the sum of squares, which it never exceeds: no powers of A.
    """
    p = primitive(policy)
    d, b, dep = (x[..., None, None] for x in shaped(delta, beta, tau))
    weights = powers(p, rounds)
    weights[0] = 0.0  # before the first round there is no evidence
    evidence = np.cumsum(weights, axis=0)
    kappa = (1 if raw else 2) * b * p.b_mix
    t = np.arange(len(weights))[:, None]
    # Before the first round the spread is 0; there t·δ - κ is not positive either.
    spread = np.maximum(dep * squares(evidence), np.finfo(float).tiny)
    C = several(classes)
    value = (C - 1) * exponential((t * d - kappa) / b, spread)
    most = np.maximum(dep * t**2.0, np.finfo(float).tiny)
    crude = (C - 1) * exponential((t * d - kappa) / b, most)[..., 0]
    rests = resting_on(raw, C)
    return upper(value, rests, kappa=kappa[..., 0, 0], b_mix=p.b_mix, crude=crude, delta=d[..., 0, 0])
