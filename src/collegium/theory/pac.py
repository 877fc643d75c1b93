"""The PAC-style guarantee: from margins on the training items to errors on all items."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collegium._util.labels import to_places, to_signs
from collegium._util.margins import rival_margins
from collegium.errors import AssumptionError
from collegium.theory.bound import (
    BOUNDED,
    Bound,
    Doubles,
    numbers,
    of_classes,
    positive,
    probability,
    several,
    together,
    upper,
)

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
    classes: int = 2,
) -> Bound:
    r"""An upper bound on the error, with probability ≥ 1-ε over the training items [hu2026, Thm 4; raw: Cor. G.2].

    $$ P_e \le \hat P^\eta + \frac{4}{\eta} (C - 1) \rho
       + \frac{4\beta}{\eta\sqrt N}\Bigl((C - 1) \sqrt{C/2} + \sqrt{2 \log(1/\epsilon)}\Bigr) $$

    where $\hat P^\eta$ is the empirical η-margin loss (see `margin_loss`) and ρ a Rademacher complexity: those of one
    agent and ρ_k for its own error, those of the aggregate and Σ π_k ρ_k for the joint one. Nothing is assumed of the
    dependence of views. `refined=True` is the remark at the end of its proof:

    $$ \hat P^\eta + \frac{2}{\eta} (C - 1) \rho + \frac{2\beta}{\eta\sqrt N} (C - 1) \sqrt{C/2}
       + \sqrt{\frac{\log(1/\epsilon)}{2N}} $$

    and `raw=True`, for scores that are not centred, is the one-sided bound without its third term.

    C is the number of `classes`; the paper has two. Of several, the margin is the lead of the true class over the best
    rival, β bounds the difference between two entries of a raw score, and ρ is the complexity of the functions
    (h, y) ↦ f_y(h) - f_j(h), where j is the i-th class after y, counted round, for the worst i: of columns of
    `margins.rivals`. A maximum over C - 1 classes of functions is at most as complex as they are together [mohri2018].
    Centers, entries m_y no two of which are further apart than β, have the complexity
    E (β/2) Σ_y |Σ_n r_n (1[y_n = y] - 1[y_n + i = y])| / N, which is at most β √(C/2N) by Cauchy and Schwarz.

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
    N, C = aligned(samples), several(classes)
    confidence = np.sqrt(np.log(1 / eps) / (2 * N))
    rivals, centers = C - 1, (C - 1) * np.sqrt(C / 2)
    if raw:
        value = loss + 2 * rivals * complexity / e + confidence
    elif refined:
        value = loss + 2 * rivals * complexity / e + 2 * b / (e * np.sqrt(N)) * centers + confidence
    else:
        offsets = 4 * b / (e * np.sqrt(N)) * (centers + np.sqrt(2 * np.log(1 / eps)))
        value = loss + 4 * rivals * complexity / e + offsets
    return upper(value, (BOUNDED, ALIGNED, *of_classes(C)))


def margin_loss(statistics: ArrayLike, y: ArrayLike, eta: float, classes: int | None = None) -> Doubles:
    r"""The mean of $\min(1, \max(0, 1 - m / \eta))$ over items, where m is γf, or the lead over the best rival.

    Of two classes: per column of statistics (n,) or (n, K), with labels +1 / -1. With a number of `classes` C the
    statistics have C entries on their last axis, (n, C) or (n, K, C), and labels are 0 … C-1. It is never below the
    error rate.

    >>> margin_loss([2.0, 0.25, -1.0, -3.0], [1, 1, 1, -1], eta=0.5)
    array(0.375)
    >>> margin_loss([[2.0, 1.0, -3.0], [0.5, 0.25, -0.75]], [0, 0], eta=0.5, classes=3)
    array(0.25)
    """
    f = numbers(statistics, "statistics")
    shape = f.shape if classes is None else f.shape[:-1]
    if len(shape) not in (1, 2) or not f.size or (classes is not None and f.shape[-1] != several(classes)):
        wanted = "(n,) or (n, K)" if classes is None else f"(n, {classes}) or (n, K, {classes})"
        raise AssumptionError(f"a margin loss is of statistics {wanted}, at least one item; got shape {f.shape}")
    if classes is None:
        margins = to_signs(y, len(f), classes=(1, -1)).reshape(-1, *[1] * (f.ndim - 1)) * f
    else:
        margins = rival_margins(f, to_places(y, len(f), classes)).min(axis=-1)
    return np.asarray(np.clip(1 - margins / float(positive(eta, "η")), 0, 1).mean(axis=0))


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
