"""The guarantee where messages have b bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collegium.errors import AssumptionError
from collegium.policy import Policy
from collegium.theory.bound import ROUNDING, Bound, Doubles, numbers, primitive, resting_on, together, upper
from collegium.theory.finite_round import exponential, residual, shaped
from collegium.theory.mixing import powers, squares


def finite_precision(
    policy: Policy,
    delta: ArrayLike,
    beta: ArrayLike,
    rounds: int,
    bits: ArrayLike,
    tau: ArrayLike = 1.0,
    sigma: float | None = None,
    *,
    raw: bool = False,
) -> Bound:
    r"""An upper bound on every agent's error after 0, …, `rounds` rounds of b-bit messages [hu2026, Thm 3].

    $$ P(\mathcal M^{(b)}_{k,t}) \le
       \exp\Bigl\{-\frac{r_t^2}{2 [\tau \beta^2 \sum_\ell [A^t]_{\ell k}^2 + V^q_{k,t}]}\Bigr\}, \qquad
       V^q_{k,t} = \frac{4 \beta^2}{(2^b - 1)^2} \sum_{r=1}^{t} \sum_j [A^r]_{jk}^2 $$

    where messages are rounded stochastically to 2^b levels over [-2β, 2β], the range of centred scores. Raw scores lie
    in [-β, β]: the step is half, V^q a quarter. More rounds mix better and round more often, so that the bound need
    not fall with t. It tends to `finite_round` as b grows. For arrays of δ, β, τ and bits their axes come first.

    parts: `r`; `V`, the accumulated rounding; `B_round` and `B_total`, bits sent in a round and after t rounds.
    """
    p = primitive(policy)
    d, b, dep, width = together(**dict(zip("δβτ", shaped(delta, beta, tau), strict=True)), bits=check_bits(bits))
    d, b, dep, width = (x[..., None, None] for x in (d, b, dep, width))
    weights = powers(p, rounds)
    r = residual(p, weights, d, b, sigma, raw)
    V = rounding(weights, b, width, raw)
    value = exponential(r / b, dep * squares(weights) + V / b**2)
    per_round = width[..., 0, 0] * p.links
    total = np.arange(len(weights)) * per_round[..., None]
    return upper(value, resting_on(raw, ROUNDING), r=r, V=V, B_round=per_round, B_total=total)


def rounding(weights: Doubles, beta: Doubles, bits: Doubles, raw: bool) -> Doubles:
    """V^q for powers 0, …, t of A: shape (…, t+1, K)."""
    step = (2 if raw else 4) * beta / (2.0**bits - 1)
    heard = squares(weights)
    heard[0] = 0.0  # nothing is sent before the first round
    V: Doubles = step**2 / 4 * np.cumsum(heard, axis=0)
    return V


def check_bits(bits: ArrayLike) -> Doubles:
    """Message sizes: whole numbers from 1 on."""
    x = numbers(bits, "bits")
    if not ((x >= 1) & (x <= 64) & (x == np.floor(x))).all():
        raise AssumptionError(f"bits must be whole numbers between 1 and 64; got {bits!r:.60}")
    return x
