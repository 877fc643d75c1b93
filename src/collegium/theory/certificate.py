"""A certificate: what held-out scores say of the margin, and the guarantee beside the measurement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.errors import AssumptionError
from collegium.labels import to_signs
from collegium.measures import Interval, mean_interval
from collegium.policy import Policy
from collegium.scores import check_scores
from collegium.theory.bound import Doubles, dependence, positive, primitive, probability, resting_on
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
    """The guarantee after enough rounds."""
    measured_limit: float
    """The measured error of the Perron-weighted mean."""
    bits: int | None
    assumptions: tuple[str, ...] = field(repr=False)

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee says nothing, however many rounds there are."""
        return not self.limit < 1

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
            "limit": {"bound": self.limit, "error": self.measured_limit},
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
    classes: Sequence[Any] | None = None,
    errors: ArrayLike | None = None,
) -> Certificate:
    """The guarantee that held-out scores support, beside the error they show.

    scores: local statistics (n, K) of items that no agent was trained on: centred scores, or raw ones with `raw=True`.
    y: their labels. beta: half the range of every agent's scores, if it is known, as it is for bounded ones.
    tau: the dependence of views given the class; 1 if they are independent, which the correlations should confirm.
    bits: of stochastically rounded messages, if they are. errors: measured ones (rounds+1, K), if the scores did not
    simply go through the policy.

    The class means of the aggregate have Student's intervals; δ is the smaller distance from 0 of their inner ends, so
    that both classes have this margin with the confidence asked for. Then `finite_round` (or `finite_precision`) and
    `sufficient` follow.

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
    level = float(probability(confidence, "the confidence"))
    counts = int((signs > 0).sum()), int((signs < 0).sum())
    if min(counts) < 2:
        raise AssumptionError(
            f"class means need at least two items of each class; there are {counts[0]} and {counts[1]}"
        )
    b = _half_range(c, raw) if beta is None else float(positive(beta, "β"))
    if beta is not None and (np.abs(c).max() if raw else np.ptp(c, axis=0).max() / 2) > b * (1 + 1e-9):
        raise AssumptionError(
            f"scores leave the range: β = {b:g}, but some agent's scores span ±{_half_range(c, raw):g}"
        )
    aggregate = c @ p.perron
    plus, minus = (mean_interval(aggregate[signs == sign], level) for sign in (1, -1))
    delta = min(plus.mean - plus.half, -minus.mean - minus.half)
    weights = powers(p, rounds)
    measured = np.asarray(errors, np.float64) if errors is not None else _errors(c, signs, weights)
    if measured.shape != weights.shape[:2]:
        raise AssumptionError(f"errors must have shape {weights.shape[:2]}, rounds by agents; got {measured.shape}")
    bound, limit, rests = np.full(measured.shape, np.nan), 1.0, resting_on(raw)
    dependence(tau)
    transient(p, weights[:1], sigma)  # σ and bits are checked whether there is a margin or not
    if bits is not None:
        check_bits(bits)
    if delta > 0:
        limit = float(sufficient(p, delta, b, tau, raw=raw).value)
        found = (
            finite_round(p, delta, b, rounds, tau, sigma, raw=raw)
            if bits is None
            else finite_precision(p, delta, b, rounds, bits, tau, sigma, raw=raw)
        )
        bound, rests = found.value, found.assumptions
    within = c - np.where(signs > 0, 1, 0)[:, None] * c[signs > 0].mean(axis=0)
    within -= np.where(signs < 0, 1, 0)[:, None] * c[signs < 0].mean(axis=0)
    return Certificate(
        items=counts, confidence=level, beta=b, beta_is_given=beta is not None, plus=plus, minus=minus, delta=delta,
        tau=float(tau), correlations=_correlations(within), inflation=_inflation(within, p.perron), bound=bound,
        errors=measured, limit=limit, measured_limit=float((aggregate * signs <= 0).mean()), bits=bits,
        assumptions=rests,
    )  # fmt: skip


def _half_range(c: Doubles, raw: bool) -> float:
    """β as the scores show it: the largest |f| of raw ones, half the largest range of centred ones."""
    return float(np.abs(c).max() if raw else np.ptp(c, axis=0).max() / 2) or 1.0


def _errors(c: Doubles, signs: NDArray[np.int8], weights: Doubles) -> Doubles:
    return np.array([(~((c @ power) * signs[:, None] > 0)).mean(axis=0) for power in weights])


def _correlations(within: Doubles) -> Doubles:
    spread = within.std(axis=0)
    scaled = within / np.where(spread > 0, spread, 1.0)
    return np.asarray(scaled.T @ scaled / len(within))


def _inflation(within: Doubles, pi: Doubles) -> float:
    apart = float((pi**2) @ within.var(axis=0))
    return float((within @ pi).var() / apart) if apart > 0 else 1.0


def _listed(bound: Doubles) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in bound]
