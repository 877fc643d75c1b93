"""A certificate: what held-out scores say of the margin, and the guarantee beside the measurement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.labels import to_signs
from collegium._util.measures import Interval, mean_interval
from collegium._util.scores import check_scores
from collegium.errors import AssumptionError
from collegium.policy import Policy
from collegium.theory.bound import Doubles, dependence, numbers, positive, primitive, probability, resting_on
from collegium.theory.finite_precision import check_bits, finite_precision
from collegium.theory.finite_round import finite_round
from collegium.theory.mixing import powers, transient
from collegium.theory.sufficient import sufficient


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is estimated, what follows from it, and what was measured.

    where T is the number of rounds and K of agents.
    """

    items: tuple[int, int]
    """How many held-out items there were of class +1 and of class -1."""
    confidence: float
    beta: float
    """Half the range of the scores."""
    beta_is_given: bool
    """Whether β was known beforehand; otherwise it is the largest seen, which a new item may exceed."""
    plus: Interval
    """The aggregate's mean on class +1 items, with its interval."""
    minus: Interval
    delta: float
    """The margin that holds with this confidence, for both classes at once; not positive: nothing can be certified."""
    tau: float
    correlations: Doubles = field(repr=False)
    """Of the agents' scores given the class, shape (K, K)."""
    inflation: float
    """The aggregate's variance given the class, against what it would be for uncorrelated agents."""
    bound: Doubles = field(repr=False)
    """The guarantee for every agent after every round, shape (T+1, K); NaN where there is none."""
    errors: Doubles = field(repr=False)
    """The measured error rates, shape (T+1, K)."""
    limit: float
    """The guarantee after enough rounds; NaN with few bits, whose rounding errors pile up without end."""
    measured_limit: float
    """The measured error of the Perron-weighted mean."""
    bits: int | None
    exact: bool
    """Whether the margin rests on Hoeffding's inequality; otherwise on Student's, which is right for many items."""
    assumptions: tuple[str, ...] = field(repr=False)

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee says nothing: of these rounds, nor of more."""
        return not (self.limit < 1 or bool((self.bound < 1).any()))

    def rows(self) -> list[dict[str, float]]:
        """One row per round: measured error and guarantee, mean over agents and worst agent."""
        return [
            {
                "round": t,
                "error": float(self.errors[t].mean()),
                "worst_error": float(self.errors[t].max()),
                "bound": float(self.bound[t].mean()),
                "worst_bound": float(self.bound[t].max()),
            }
            for t in range(len(self.errors))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON can hold it; None where there is no guarantee."""
        off = self.correlations[~np.eye(len(self.correlations), dtype=bool)]
        return {
            "items": list(self.items),
            "confidence": self.confidence,
            "beta": self.beta,
            "beta_is_given": self.beta_is_given,
            "mean_plus": list(self.plus),
            "mean_minus": list(self.minus),
            "delta": self.delta,
            "tau": self.tau,
            "bits": self.bits,
            "largest_correlation": float(off.max()) if off.size else 0.0,
            "inflation": self.inflation,
            "exact": self.exact,
            "limit": {"bound": None if np.isnan(self.limit) else self.limit, "error": self.measured_limit},
            "bound": _listed(self.bound),
            "errors": self.errors.tolist(),
            "vacuous": self.vacuous,
            "assumptions": list(self.assumptions),
        }

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), allow_nan=False)


def certify(
    scores: ArrayLike,
    y: ArrayLike,
    policy: Policy,
    rounds: int = 20,
    *,
    confidence: float = 0.95,
    beta: float | None = None,
    tau: float = 1.0,
    sigma: float | None = None,
    bits: int | None = None,
    raw: bool = False,
    exact: bool = False,
    classes: Sequence[Any] | None = None,
    errors: ArrayLike | None = None,
    coarseness: float = 0.0,
) -> Certificate:
    """The guarantee that held-out scores support, beside the error they show.

    scores: local statistics (n, K) of items that no agent was trained on: centred scores, or raw ones with `raw=True`.
    y: their labels. beta: half the range of every agent's scores, if it is known, as it is for bounded ones.
    tau: the dependence of views given the class; 1 if they are independent, which the correlations should confirm.
    bits: of stochastically rounded messages, if they are; then `errors` must be given. errors: measured ones, shape
    (rounds+1, K), if the scores did not simply go through the policy. coarseness: the least β to be used, for a
    quantiser whose range is wider than the scores'.

    The class means of the aggregate have Student's intervals, or with `exact` Hoeffding's, which are wider and hold for
    any number of items and any law within β. δ is the smaller distance from 0 of their inner ends, so that both classes
    have this margin with the confidence asked for. Then `finite_round` (or `finite_precision`) and `sufficient` follow.

    >>> from collegium import policy, topology
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(rng.random(2000) < 0.5, 1, -1)
    >>> scores = np.tanh(0.8 * y[:, None] + rng.normal(size=(2000, 16)))
    >>> found = certify(scores, y, policy.metropolis(topology.complete(16)), beta=1.0, rounds=1)
    >>> found.measured_limit < found.limit < 0.5
    True
    """
    p = primitive(policy)
    c = check_scores(scores, p.size)
    signs = to_signs(y, len(c), classes)
    level = _one(probability(confidence, "the confidence"), "the confidence")
    counts = int((signs > 0).sum()), int((signs < 0).sum())
    if min(counts) < 2:
        raise AssumptionError(
            f"class means need at least two items of each class; there are {counts[0]} and {counts[1]}"
        )
    seen = _range(c, raw)
    if not 1e-100 < seen < 1e100:
        raise AssumptionError(f"scores of size {seen:.2g} are too small or too large to compute with: rescale them")
    known = seen if beta is None else _one(positive(beta, "β"), "β")
    if seen > known * (1 + 1e-9):
        raise AssumptionError(f"scores leave the range: β = {known:g}, but the scores need β = {seen:g}")
    b, dep = max(known, coarseness), _one(dependence(tau), "τ")
    aggregate = c @ p.perron
    plus, minus = (_interval(aggregate[signs == sign], level, b if exact else None) for sign in (1, -1))
    delta = min(plus.mean - plus.half, -minus.mean - minus.half)
    weights = powers(p, rounds)
    transient(p, weights[:1], sigma)  # σ and bits are checked whether there is a margin or not
    if bits is not None:
        _one(check_bits(bits), "bits")
    measured = _measured(c, signs, weights, bits, errors)
    bound, limit, rests = np.full(measured.shape, np.nan), 1.0 if bits is None else float("nan"), resting_on(raw)
    if delta > 0 and bits is None:
        found = finite_round(p, delta, b, rounds, dep, sigma, raw=raw)
        bound, rests, limit = found.value, found.assumptions, float(sufficient(p, delta, b, dep, raw=raw).value)
    elif delta > 0:
        found = finite_precision(p, delta, b, rounds, bits, dep, sigma, raw=raw)  # type: ignore[arg-type]
        bound, rests = found.value, found.assumptions
    within = c - np.where(signs > 0, 1, 0)[:, None] * c[signs > 0].mean(axis=0)
    within -= np.where(signs < 0, 1, 0)[:, None] * c[signs < 0].mean(axis=0)
    return Certificate(
        items=counts, confidence=level, beta=b, beta_is_given=beta is not None, exact=exact, plus=plus, minus=minus,
        delta=delta, tau=dep, correlations=_correlations(within), inflation=_inflation(within, p.perron), bound=bound,
        errors=measured, limit=limit, measured_limit=float((aggregate * signs <= 0).mean()), bits=bits,
        assumptions=rests,
    )  # fmt: skip


def _range(c: Doubles, raw: bool) -> float:
    """The smallest β that the scores allow: |f| ≤ β for raw ones; for centred ones a range of 2β, and |c| ≤ 2β."""
    largest = float(np.abs(c).max())
    return (largest if raw else max(float(np.ptp(c, axis=0).max()) / 2, largest / 2)) or 1.0


def _interval(x: Doubles, level: float, beta: float | None) -> Interval:
    """Student's interval of the mean; Hoeffding's for a mean of values within a range of 2β, if β is given."""
    if beta is None:
        return mean_interval(x, level)
    return Interval(float(x.mean()), 2 * beta * float(np.sqrt(np.log(2 / (1 - level)) / (2 * len(x)))))


def _measured(c: Doubles, signs: NDArray[np.int8], weights: Doubles, bits: Any, errors: Any) -> Doubles:
    """Error rates (rounds+1, K): those given, or those of the scores going through the policy."""
    if errors is None:
        if bits is not None:
            raise AssumptionError("with bits the errors depend on rounding: measure them in a run, and give errors=")
        return np.array([(~((c @ power) * signs[:, None] > 0)).mean(axis=0) for power in weights])
    measured = numbers(errors, "errors")
    if measured.shape != weights.shape[:2]:
        raise AssumptionError(f"errors must have shape {weights.shape[:2]}, rounds by agents; got {measured.shape}")
    return measured


def _one(x: Doubles, name: str) -> float:
    if x.ndim:
        raise AssumptionError(f"a certificate has one {name}; got an array of shape {x.shape}")
    return float(x)


def _correlations(within: Doubles) -> Doubles:
    spread = within.std(axis=0)
    scaled = within / np.where(spread > 0, spread, 1.0)
    return np.asarray(scaled.T @ scaled / len(within))


def _inflation(within: Doubles, pi: Doubles) -> float:
    apart = float((pi**2) @ within.var(axis=0))
    return float((within @ pi).var() / apart) if apart > 0 else 1.0


def _listed(bound: Doubles) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in bound]
