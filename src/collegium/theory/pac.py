"""The PAC-style guarantee: from margins on the training items to errors on all items."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collegium._util.labels import to_signs
from collegium.errors import AssumptionError
from collegium.theory.bound import BOUNDED, Bound, Doubles, numbers, positive, probability, together, upper

ALIGNED = "all agents learned from the same N items, drawn independently; views of an item may depend on one another"


def pac(
    margin_loss: ArrayLike,
    rho: ArrayLike,
    beta: ArrayLike,
    eta: ArrayLike,
    epsilon: ArrayLike,
    samples: ArrayLike,
    refined: bool = False,
    *,
    raw: bool = False,
) -> Bound:
    r"""An upper bound on the error, with probability at least 1-ε over the training items [hu2026, Thm 4].

    $$ P_e \le \hat P^\eta + \frac{4}{\eta} \rho
       + \frac{4\beta}{\eta\sqrt N}\Bigl(1 + \sqrt{2 \log(1/\epsilon)}\Bigr) $$

    where $\hat P^\eta$ is the empirical η-margin loss (see `margin_loss`) and ρ a Rademacher complexity: those of one
    agent and ρ_k for its own error, those of the aggregate and Σ π_k ρ_k for the joint one. Nothing is assumed of the
    dependence of views. `refined=True` is the remark at the end of its proof:

    $$ \hat P^\eta + \frac{2\rho}{\eta} + \frac{2\beta}{\eta\sqrt N} + \sqrt{\frac{\log(1/\epsilon)}{2N}} $$

    and `raw=True`, for scores that are not centred, is the one-sided bound without its third term.

    samples: N, the same for all agents.
    """
    loss = numbers(margin_loss, "the margin loss")
    if not ((loss >= 0) & (loss <= 1)).all():
        raise AssumptionError(f"a margin loss lies between 0 and 1; got {margin_loss!r:.60}")
    complexity = numbers(rho, "ρ")
    if not (complexity >= 0).all():
        raise AssumptionError(f"a Rademacher complexity ρ is not negative; got {rho!r:.60}")
    loss, complexity, b, e, eps = together(
        margin_loss=loss, rho=complexity, beta=positive(beta, "β"), eta=positive(eta, "η"), epsilon=probability(epsilon)
    )
    N = aligned(samples)
    confidence = np.sqrt(np.log(1 / eps) / (2 * N))
    if raw:
        value = loss + 2 * complexity / e + confidence
    elif refined:
        value = loss + 2 * complexity / e + 2 * b / (e * np.sqrt(N)) + confidence
    else:
        value = loss + 4 * complexity / e + 4 * b / (e * np.sqrt(N)) * (1 + np.sqrt(2 * np.log(1 / eps)))
    return upper(value, (BOUNDED, ALIGNED))


def margin_loss(statistics: ArrayLike, y: ArrayLike, eta: float) -> Doubles:
    r"""The mean of $\min(1, \max(0, 1 - \gamma f / \eta))$ over items, per column of statistics (n,) or (n, K).

    It is never below the error rate.

    >>> margin_loss([2.0, 0.25, -1.0, -3.0], [1, 1, 1, -1], eta=0.5)
    array(0.375)
    """
    f = numbers(statistics, "statistics")
    if f.ndim not in (1, 2) or not len(f):
        raise AssumptionError(f"a margin loss is of statistics (n,) or (n, K), at least one item; got shape {f.shape}")
    signs = to_signs(y, len(f), classes=(1, -1)).reshape(-1, *[1] * (f.ndim - 1))
    return np.asarray(np.clip(1 - signs * f / float(positive(eta, "η")), 0, 1).mean(axis=0))


def aligned(samples: ArrayLike) -> float:
    """The one N that all agents have."""
    N = positive(samples, "the number of samples")
    if not N.size:
        raise AssumptionError("the PAC bound needs the number of samples, N")
    if np.ptp(N) > 0:
        raise AssumptionError(
            f"the PAC bound needs aligned items, the same N for all agents; got between {N.min():g} and {N.max():g}"
        )
    return float(N.flat[0])
