"""The guarantee where communication suffices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collegium.protocol import Rule
from collegium.schedule import Schedule
from collegium.theory.bound import Bound, dependence, margin, positive, resting_on, several, together, upper
from collegium.theory.mixing import limit_weights


def sufficient(
    policy: Schedule,
    delta: ArrayLike,
    beta: ArrayLike,
    tau: ArrayLike = 1.0,
    *,
    raw: bool = False,
    classes: int = 2,
    rule: Rule | None = None,
) -> Bound:
    r"""An upper bound on the error of the joint decision after enough rounds [hu2026, Thm 1].

    $$ P(\mathcal M) \le (C - 1) \exp\Bigl\{-\frac{\delta^2}{2 \tau \beta^2 \sum_k \pi_k^2}\Bigr\} $$

    where δ is the margin that the aggregate's class means attain, β bounds every score, τ is the dependence of views
    given the class (1: independent) and π the Perron vector. All may be arrays. For raw scores (`raw=True`) the bound
    has the same form, with δ the margin of the raw aggregate.

    policy: or a schedule, and a `rule` as for `finite_round`; then π are the weights that agents tend to.

    C is the number of `classes`; the paper has two. Of several, δ and β are of the difference between two entries of a
    statistic: that of the true class leads each rival's by more than δ on average, and no two entries of a raw score
    are further apart than β (see `margins`). An error is to be overtaken by one of C - 1 rivals, each with the
    probability that two classes have.

    >>> from collegium import policy, topology
    >>> float(sufficient(policy.uniform(topology.ring(9)), delta=0.8, beta=1.0).value.round(4))
    0.0561
    """
    d, b, dep = together(delta=margin(delta), beta=positive(beta, "β"), tau=dependence(tau))
    pi, network = limit_weights(policy, rule)
    spread = float(np.sum(pi**2))
    C = several(classes)
    value = (C - 1) * np.exp(-((d / b) ** 2) / (2 * dep * spread))
    return upper(value, resting_on(raw, C, network=network), spread=spread, delta=d)
