"""The training guarantee: how likely independent training attains a margin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from collegium._util.arguments import real_number
from collegium.errors import AssumptionError
from collegium.policy import Policy
from collegium.theory.bound import (
    BOUNDED,
    CONNECTED,
    Bound,
    Doubles,
    lower,
    margin,
    numbers,
    of_classes,
    positive,
    primitive,
    several,
    together,
)
from collegium.theory.losses import Logistic, Loss

CONVEX = "the loss is convex, non-increasing, Lipschitz, and differentiable at 0 with Φ'(0) < 0 (Assumption 1)"
FEASIBLE = "the network can do better than chance: R° + ε_opt < Φ(0) (Assumption 4)"
NEARLY_MINIMAL = "each agent's training loss is within its ε_opt of the smallest in its class"


def margin_training(
    policy: Policy,
    delta: ArrayLike,
    beta: ArrayLike,
    samples: ArrayLike,
    rho: ArrayLike,
    risk: ArrayLike,
    eps_opt: ArrayLike = 0.0,
    loss: Loss = Logistic(),
    *,
    raw: bool = False,
    classes: int = 2,
    offset: float = 0.0,
) -> Bound:
    r"""A lower bound on the probability that training attains the margin δ [hu2026, Prop. 2; raw: Cor. G.1].

    $$ P_{c,\delta} \ge 1 - \binom{C}{2} 2 \exp\Bigl\{-\frac{8 N_{max}}{\alpha^2 \beta^2}
       \bigl(\mathcal E_\Phi(R^o + \varepsilon_{opt}, \delta + \xi) - \rho\bigr)^2\Bigr\} $$

    where N_max is the largest of the agents' sample sizes, α = Σ π_k N_max / N_k, ρ = Σ π_k ρ_k the network's
    Rademacher complexity and R° = Σ π_k R°_k its target risk. `samples`, `rho`, `risk` and `eps_opt` are one number for
    all agents or K; δ and β may be arrays. For raw scores it is 1 - exp{…} with $\mathcal E^{raw}$.

    C is the number of `classes`; the paper has two. Of several, each of the C(C - 1)/2 pairs is a problem of two
    classes: the difference f_y - f_j as score, the items of y and j as samples, and the bound is for all pairs at once.
    `samples`, `rho`, `risk` and `eps_opt` are then those of the worst pair; an agent's ε_opt is how far its training
    loss of that pair, Φ(f_y - f_j) averaged over the pair's items, is above the smallest in its class. The pair's
    margin loses ξ, the `offset`: a center is the mean over the items of all classes, and the aggregate's lies at most
    that far from the mean over the pair's own items. It is seen in the training scores (`margins.centering_offset`); of
    two classes it is 0, and raw scores have none. The bound is on attaining δ or having a larger offset than this.

    Raises `AssumptionError` where R° + ε_opt ≥ Φ(0), δ ≥ δ_max or ρ ≥ E: there the theorem says nothing.

    parts: `E`, `alpha`, `N_max`, `rho`, `risk` (R° + ε_opt), `delta`, `raw`, `delta_max`, `failure` (1 - value).
    """
    p = primitive(policy)
    d, b = together(delta=margin(delta), beta=positive(beta, "β"))
    if not isinstance(loss, Loss):
        raise AssumptionError(f"loss must be a Loss such as Logistic(); got {loss!r:.60}")
    sizes = _per_agent(positive(samples, "the number of samples"), p, "samples")
    N_max = float(sizes.max())
    alpha = float(p.perron @ (N_max / sizes))
    complexity = float(p.perron @ _per_agent(_not_negative(rho, "ρ"), p, "rho"))
    r = float(p.perron @ _per_agent(_not_negative(risk, "the risk R°"), p, "risk"))
    r += float(p.perron @ _per_agent(_not_negative(eps_opt, "ε_opt"), p, "eps_opt"))
    C = several(classes)
    xi = real_number(offset, "the offset ξ", AssumptionError, at_least=0)
    if raw and xi:
        raise AssumptionError(f"raw scores have no centers, and no offset ξ; got {xi:g}")
    if loss.slope_at_zero >= 0 or not loss.differentiable_at_zero:
        raise AssumptionError(f"{loss} is not differentiable at 0 with a negative slope")

    def one(delta: float, bound: float) -> float:
        return edge_raw(r, delta, bound, loss) if raw else edge(r, delta + xi, loss)

    E = np.vectorize(one, otypes=[np.float64])(d, b)
    if not (complexity < E).all():
        raise AssumptionError(
            f"the classes are too rich for so small an edge: ρ = {complexity:.4g} must be below E = {E.min():.4g}. "
            "More samples make ρ smaller."
        )
    failure = C * (C - 1) // 2 * (1 if raw else 2) * np.exp(-8 * N_max / (alpha**2 * b**2) * (E - complexity) ** 2)
    return lower(
        1 - failure,
        (CONVEX, BOUNDED, CONNECTED, FEASIBLE, NEARLY_MINIMAL, *of_classes(C)),
        E=E, alpha=alpha, N_max=N_max, rho=complexity, risk=r, failure=failure,
        delta=d, raw=raw, delta_max=None if raw else delta_max(r, loss),
    )  # fmt: skip


def root(r: float, delta: float, loss: Loss = Logistic()) -> float:
    r"""$d^*_\delta(r)$, the one d ≥ 0 with $d - \delta = (\Phi(d) - r) / 2 L_\Phi$."""
    r, delta = float(r), float(margin(delta))
    _check_feasible(r, loss)
    high = delta + (loss.at_zero - r) / (2 * loss.lipschitz)  # Φ is not above Φ(0) there, so neither is the root
    return float(
        brentq(lambda d: d - delta - (float(loss(d)) - r) / (2 * loss.lipschitz), 0.0, high, xtol=1e-15, rtol=8.9e-16)
    )


def edge(r: float, delta: float, loss: Loss = Logistic()) -> float:
    r"""$\mathcal E_\Phi(r, \delta) = (\Phi(d^*_\delta(r)) - r) / 8 L_\Phi$, positive for δ below `delta_max`."""
    most = delta_max(r, loss)
    if not delta < most:
        raise AssumptionError(f"the margin δ = {delta:g} must be below δ_max = {most:.6g} at risk {r:.6g}")
    return (float(loss(root(r, delta, loss))) - float(r)) / (8 * loss.lipschitz)


def edge_raw(r: float, delta: float, beta: float, loss: Loss = Logistic()) -> float:
    r"""$\mathcal E^{raw}_\Phi(r, \delta) = (\Phi(\delta) + \Phi(\beta) - 2r) / 16 L_\Phi$, for 0 ≤ δ < β."""
    if not 0 <= delta < beta:
        raise AssumptionError(f"the raw margin δ = {delta:g} must be below β = {beta:g}")
    half = float(loss(delta) + loss(beta)) / 2
    if not r < half:
        raise AssumptionError(f"the risk R° + ε_opt = {r:.6g} must be below (Φ(δ) + Φ(β))/2 = {half:.6g}")
    return (half - float(r)) / (8 * loss.lipschitz)


def delta_max(r: float, loss: Loss = Logistic()) -> float:
    r"""The largest margin that can be asked for at risk r: $\sup\{\delta: d^*_\delta(r) < d_r\}$.

    At δ = d_r the root is d_r itself, and it rises with δ, so δ_max is d_r = inf{x ≥ 0: Φ(x) ≤ r}: infinite where no x
    has so small a loss.
    """
    _check_feasible(r, loss)
    return loss.reach(float(r))


def _check_feasible(r: float, loss: Loss) -> None:
    if not r >= 0:
        raise AssumptionError(f"a risk is not negative; got {r:.6g}")
    if not r < loss.at_zero:
        raise AssumptionError(
            f"the task is not feasible: the risk R° + ε_opt = {r:.6g} must be below Φ(0) = {loss.at_zero:.6g}"
        )


class Comparison(NamedTuple):
    """The same samples at one place, and split evenly among K agents."""

    central: Bound
    independent: Bound


def against_central(
    agents: int,
    delta: ArrayLike,
    beta: ArrayLike,
    samples: int,
    rho_central: float,
    rho_independent: float,
    risk: float,
    eps_opt: float = 0.0,
    loss: Loss = Logistic(),
) -> Comparison:
    """The training guarantee of one learner with all samples, and of K agents alike with a Kth each [hu2026, App. A.4].

    For agents that share one population, one class of functions and one accuracy of optimisation. The complexities
    are those of the class with all samples and with a Kth of them; the former is not larger for the classes here.
    """
    one, many = Policy(np.ones((1, 1))), Policy(np.full((agents, agents), 1 / agents))
    return Comparison(
        margin_training(one, delta, beta, samples, rho_central, risk, eps_opt, loss),
        margin_training(many, delta, beta, samples / agents, rho_independent, risk, eps_opt, loss),
    )


def _per_agent(x: Doubles, policy: Policy, name: str) -> Doubles:
    if x.shape not in ((), (1,), (policy.size,)):
        raise AssumptionError(f"{name} must be one number, or one per agent ({policy.size}); got shape {x.shape}")
    return np.broadcast_to(x, (policy.size,))


def _not_negative(value: ArrayLike, name: str) -> Doubles:
    x = numbers(value, name)
    if not (x >= 0).all():
        raise AssumptionError(f"{name} is not negative; got {float(x.min()):g}")
    return x
