"""What follows from the paper's theorems: without the condition that training attained the margin, and their lemmas."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from collegium.errors import AssumptionError
from collegium.policy import Policy
from collegium.theory.bound import (
    MARGIN_RAW,
    TENSORISED,
    Bound,
    Doubles,
    dependence,
    numbers,
    primitive,
    together,
    upper,
)


def unconditional(deciding: Bound, training: Bound) -> Bound:
    r"""An upper bound on the error before anything is trained [hu2026, App. B to D and G].

    $$ P_e \le P(\mathcal M \mid \mathcal C_\delta) + P(\overline{\mathcal C_\delta}) $$

    deciding: `sufficient`, `finite_round`, `finite_precision` or `social_learning`. training: `margin_training` with
    the same δ; both centred or both raw. NaN where the first says nothing.

    >>> from collegium import policy, theory, topology
    >>> ring = policy.uniform(topology.ring(9))
    >>> trained = theory.margin_training(ring, 0.05, 1.0, samples=500, rho=0.001, risk=0.4)
    >>> known = theory.sufficient(ring, 0.05, 1.0)
    >>> bool(unconditional(known, trained).value > known.value)
    True
    """
    if "failure" not in training.parts:
        raise AssumptionError("the second of the two is what margin_training gives: a bound on attaining the margin")
    if training.parts["raw"] != (MARGIN_RAW in deciding.assumptions):
        raise AssumptionError("one of the two is of raw scores, the other of centred ones: take raw=True for both")
    if "delta" in deciding.parts:
        of = deciding.parts["delta"]
        wanted = _leading(training.parts["delta"], of.ndim)
        if not np.all(wanted == of):
            raise AssumptionError(f"training is to attain the margin that deciding needs: got δ = {wanted} and {of}")
    failure = _leading(training.parts["failure"], deciding.value.ndim)
    given, lost = together(deciding=deciding.value, training=failure)
    rests = tuple(dict.fromkeys((*training.assumptions, *(one for one in deciding.assumptions if "C_δ" not in one))))
    return upper(given + lost, rests, deciding=given, failure=lost)


def _leading(x: ArrayLike, ndim: int) -> Doubles:
    """The axes of δ come first; those that follow are of rounds and agents."""
    values = np.asarray(x, np.float64)
    return values.reshape(values.shape + (1,) * (ndim - values.ndim))


def half_sum(by_class: Bound) -> Bound:
    r"""The mean over classes that are equally frequent, where each has its own τ [hu2026, App. B].

    $$ P(\mathcal M) \le \tfrac12 \sum_\gamma
       \exp\Bigl\{-\frac{\delta^2}{2 \tau_\gamma \beta^2 \sum_k \pi_k^2}\Bigr\} $$

    by_class: any of the bounds with `tau=[τ_+, τ_-]`, whose first axis is the class. Never above that of max τ.

    >>> from collegium import policy, theory, topology
    >>> ring = policy.uniform(topology.ring(9))
    >>> both = theory.sufficient(ring, 0.8, 1.0, tau=[1.0, 2.0])
    >>> bool(half_sum(both).value < theory.sufficient(ring, 0.8, 1.0, tau=2.0).value)
    True
    """
    if by_class.value.ndim < 1:
        raise AssumptionError("give the bound a τ for each class, such as tau=[1.0, 2.0]: its first axis is the class")
    return upper(by_class.value.mean(axis=0), by_class.assumptions, by_class=by_class.value)


def dependence_penalty(policy: Policy, tau: ArrayLike = 1.0) -> Doubles:
    r"""$\tau \sum_k \pi_k^2$: below 1 the bound of the aggregate is below that of one agent with the same margin.

    1/K for equal weights and independent views: the gain of averaging against the loss from dependence [hu2026, Thm 1].
    """
    return np.asarray(dependence(tau) * float(np.sum(primitive(policy).perron ** 2)))


def bounded_differences(differences: ArrayLike, u: ArrayLike, tau: ArrayLike = 1.0) -> Bound:
    r"""How likely a function of K views falls u below its mean [hu2026, Lemma B.1].

    $$ P(F - \mathbb E F \le -u) \le \exp\Bigl\{-\frac{2 u^2}{\tau \sum_k d_k^2}\Bigr\} $$

    differences: d_k, how much F can change with view k alone, shape (K,). u: 0 or more.

    >>> float(bounded_differences([0.5, 0.5], 1.0).value.round(4))  # exp(-4)
    0.0183
    """
    d = numbers(differences, "differences")
    distance, dep = together(u=numbers(u, "u"), tau=dependence(tau))
    if d.ndim != 1 or not len(d) or (d < 0).any() or (distance < 0).any():
        raise AssumptionError("differences are K numbers, and they and u are 0 or more")
    spread = float((d**2).sum())
    if spread == 0:  # F is constant
        return upper(np.where(distance > 0, 0.0, 1.0), (TENSORISED,))
    return upper(np.exp(-2 * distance**2 / (dep * spread)), (TENSORISED,))


def b_mix_bound(policy: Policy, sigma: float) -> float:
    r"""$K C(A, \sigma) \sigma / (1 - \sigma)$, which `policy.b_mix` never exceeds [hu2026, App. F]."""
    p = primitive(policy)
    if not p.slem < sigma < 1:
        raise AssumptionError(f"σ must lie between σ_A = {p.slem:.6g} and 1; got {sigma!r}")
    return float(p.size * p.mixing_constant(sigma) * sigma / (1 - sigma))
