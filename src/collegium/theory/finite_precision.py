"""The guarantee where messages have b bits a number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collegium.errors import AssumptionError
from collegium.policy import Policy
from collegium.protocol import Rule
from collegium.schedule import Schedule
from collegium.theory.bound import (
    ROUNDING,
    Bound,
    Doubles,
    numbers,
    positive,
    resting_on,
    several,
    together,
    upper,
)
from collegium.theory.finite_round import exponential, residual, shaped
from collegium.theory.mixing import Mixing, mixing, squares


def finite_precision(
    policy: Schedule,
    delta: ArrayLike,
    beta: ArrayLike,
    rounds: int,
    bits: ArrayLike,
    tau: ArrayLike = 1.0,
    sigma: float | None = None,
    *,
    raw: bool = False,
    classes: int = 2,
    levels: ArrayLike | None = None,
    rule: Rule | None = None,
) -> Bound:
    r"""An upper bound on every agent's error after 0, …, `rounds` rounds of b-bit messages [hu2026, Thm 3].

    $$ P(\mathcal M^{(b)}_{k,t}) \le
       (C - 1) \exp\Bigl\{-\frac{r_t^2}{2 [\tau \beta^2 \sum_\ell [A^t]_{\ell k}^2 + V^q_{k,t}]}\Bigr\}, \qquad
       V^q_{k,t} = (C + 2) \Bigl(\frac{C - 1}{C}\Bigr)^2 \frac{4 \beta^2}{(2^b - 1)^2}
       \sum_{r=1}^{t} \sum_j [A^r]_{jk}^2 $$

    where messages are rounded stochastically to 2^b levels. Entries of centred scores lie in ±2β(C - 1)/C, which is ±β
    for the entries ±f/2 of two classes, whose one number f lies in ±2β: then C + 2 and the square make 1, the paper's
    V^q. C - 1 entries travel, each with a rounding error of its own, and the last is minus their sum. So the difference
    between two that travel has two errors, but between one and the last 2² + (C - 2) of them: the worst is a true class
    that does not travel, and it is the one counted here. For raw scores the step is half, V^q a quarter.

    policy, rule: or any schedule and linear rule, as for `finite_round`. The sum in V^q is then that of the squared
        weights of all rounding errors so far. Where messages can outgrow the scores (eigenvalue steps, `Chebyshev`) the
        quantiser's range must be that much wider, and its steps are.
    levels: L_b, if fewer than 2^b of them are used; then L_b takes the place of 2^b.

    More rounds mix better and round more often, so that the bound need not fall with t. It tends to `finite_round` as b
    grows. For arrays of δ, β, τ and bits their axes come first. Of several `classes`, see `sufficient` for δ and β.

    parts: `r`; `V`, the accumulated rounding; `B_round` and `B_total`, bits sent in a round and after t rounds; for a
    schedule `B_round` has the rounds on its last axis.

    >>> from collegium import policy, topology
    >>> ring = policy.uniform(topology.ring(12))
    >>> V = finite_precision(ring, 0.4, 1.0, 20, bits=[6, 8]).parts["V"][:, -1, 0]
    >>> float((V[0] / V[1]).round(2))  # two bits more: near 2^4
    16.38
    >>> worst = finite_precision(ring, 0.4, 1.0, 400, bits=4).value.max(axis=1)
    >>> int(np.nanargmin(worst)), bool(worst[-1] > np.nanmin(worst))  # the best number of rounds is not the last
    (53, True)
    """
    mix, C = mixing(policy, rounds, rule), several(classes)
    d, b, dep, width = together(**dict(zip("δβτ", shaped(delta, beta, tau), strict=True)), bits=check_bits(bits))
    d, b, dep, width = (x[..., None, None] for x in (d, b, dep, width))
    r = residual(mix, d, b, sigma, raw)
    V = rounding(mix, b, _code(levels, width), raw, C, np.asarray(C + 2.0))
    value = (C - 1) * exponential(r / b, dep * squares(mix.weights) + V / b**2)
    per_message = (C - 1) * width[..., 0, 0]
    total = per_message[..., None] * np.r_[0, np.cumsum(mix.sent)]
    per_round = (
        per_message * mix.network.links if isinstance(mix.network, Policy) else per_message[..., None] * mix.sent
    )
    rests = resting_on(raw, C, ROUNDING, network=mix.assumption)
    return upper(value, rests, r=r, V=V, B_round=per_round, B_total=total, delta=d[..., 0, 0])


def _code(levels: ArrayLike | None, bits: Doubles) -> Doubles:
    """log2 of the number of levels: the bits, unless fewer levels are used."""
    if levels is None:
        return bits
    L = numbers(levels, "levels")[..., None, None]
    if not ((L >= 2) & (np.floor(L) == L) & (2.0**bits >= L)).all():
        raise AssumptionError(f"levels are whole numbers from 2 to 2^bits; got {levels!r:.60}")
    return np.asarray(np.log2(L))


def rounding(mix: Mixing, beta: Doubles, bits: Doubles, raw: bool, C: int, errors: Doubles) -> Doubles:
    """V^q for rounds 0, …, t, shape (…, t+1, K): the rounding of a difference with so many squared errors."""
    step = (2 if raw else 4) * beta * ((C - 1) / C) / (2.0**bits - 1) * mix.widening(np.floor(bits))
    V: Doubles = errors * step**2 / 4 * mix.rounding_gain()
    return V


def rounding_errors(C: int) -> Doubles:
    """How many rounding errors, squared, the difference between a class and each rival has: shape (C, C-1).

    The rivals of class y are y+1, y+2, …, counted round; the last class does not travel.

    >>> rounding_errors(3)
    array([[2., 5.],
           [5., 2.],
           [5., 5.]])
    """
    y = np.arange(C)[:, None]
    last = (y == C - 1) | ((y + np.arange(1, C)) % C == C - 1)
    return np.where(last, C + 2.0, 2.0)


def quantiser_beta(bound: ArrayLike, *, raw: bool = False, classes: int = 2) -> Doubles:
    """The β whose scores a quantiser of range ±bound is made for.

    Two classes send one number, which lies in ±2β centred and in ±β raw; of several, every entry lies in (C - 1)/C of
    that range.

    >>> float(quantiser_beta(4.0)), float(quantiser_beta(4.0, classes=3, raw=True))
    (2.0, 6.0)
    """
    C = several(classes)
    share = 1.0 if C == 2 else (C - 1) / C
    return np.asarray(positive(bound, "the bound of a quantiser") / ((1 if raw else 2) * share))


def check_bits(bits: ArrayLike) -> Doubles:
    """Message sizes: whole numbers from 1 on."""
    x = numbers(bits, "bits")
    if not ((x >= 1) & (x <= 64) & (x == np.floor(x))).all():
        raise AssumptionError(f"bits must be whole numbers between 1 and 64; got {bits!r:.60}")
    return x
