"""A certificate: what held-out scores say of the margin, and the guarantee beside the measurement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from collegium._util.measures import Interval
from collegium.errors import AssumptionError
from collegium.protocol import DeGroot, Rule, registry
from collegium.schedule import Schedule, own_rule
from collegium.theory.bound import (
    ROUNDING,
    Doubles,
    dependence,
    numbers,
    positive,
    probability,
    resting_on,
)
from collegium.theory.evidence import Evidence, evidence
from collegium.theory.finite_precision import check_bits, quantiser_beta, rounding, rounding_errors
from collegium.theory.finite_round import exponential, finite_round, residual
from collegium.theory.held_out import INDEPENDENT_ITEMS
from collegium.theory.margins import Margins, Places, aggregate, labelled, leads_of, of_aggregate, score_range
from collegium.theory.mixing import is_linear, mixing, squares
from collegium.theory.sufficient import sufficient


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is estimated, what follows from it, and what was measured.

    where T is the number of rounds, K of agents and C of classes.
    """

    items: tuple[int, ...]
    """How many held-out items there were of each class; of two, of +1 and of -1."""
    confidence: float
    beta: float
    """Half the range of the scores; of several classes, of differences between two entries."""
    beta_is_given: bool
    """Whether β was known beforehand; otherwise it is the largest seen, which a new item may exceed."""
    margins: Margins
    """How far the aggregate of the true class leads each rival on average, with intervals."""
    delta: float
    """The margin that holds with this confidence, for all classes and rivals at once; not positive: nothing can be
    certified."""
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
    evidence: Evidence | None = field(repr=False, default=None)
    """What the same items say without any of these assumptions; None where only error rates were given."""
    no_theorem: str = ""
    """The rule, if no theorem covers it: then there is what `evidence` says, and `bound` and `limit` are NaN."""

    @property
    def plus(self) -> Interval:
        """The aggregate's mean on class +1 items, with its interval; of two classes only."""
        return self._mean(0)

    @property
    def minus(self) -> Interval:
        """The aggregate's mean on class -1 items, with its interval; of two classes only."""
        return self._mean(1)

    def _mean(self, place: int) -> Interval:
        if len(self.items) > 2:
            raise AssumptionError(f"+1 and -1 are two classes, and here are {len(self.items)}: see `margins`")
        mean, half = (float(x[place, 1 - place]) for x in (self.margins.means, self.margins.halves))
        return Interval(-mean if place else mean, half)

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

    def to_dict(self, alpha: float | None = None, error: float | None = None) -> dict[str, Any]:
        """Everything, as JSON can hold it; None where there is no guarantee. See `Evidence.to_dict` for α and error."""
        off = self.correlations[~np.eye(len(self.correlations), dtype=bool)]
        return {
            "items": list(self.items),
            "confidence": self.confidence,
            "beta": self.beta,
            "beta_is_given": self.beta_is_given,
            **self._means(),
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
            "no_theorem": self.no_theorem,
            "assumptions": list(self.assumptions),
            "held_out": None if self.evidence is None else self.evidence.to_dict(alpha, error),
        }

    def _means(self) -> dict[str, Any]:
        if len(self.items) == 2:
            return {"mean_plus": list(self.plus), "mean_minus": list(self.minus)}
        return {"margins": _listed(self.margins.means), "margin_halves": _listed(self.margins.halves)}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), allow_nan=False)


def certify(
    scores: ArrayLike,
    y: ArrayLike,
    policy: Schedule,
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
    statistics: ArrayLike | None = None,
    coarseness: float = 0.0,
    rule: Rule | None = None,
) -> Certificate:
    """The guarantee that held-out scores support, beside the error they show.

    scores: local statistics of items that no agent was trained on: (n, K) of two classes, (n, K, C) of several; centred
    ones, or raw ones with `raw=True`. y: their labels. classes: what these are called, in the order of the entries;
    (positive, negative) of two. beta: half the range of every agent's scores (of several classes: of the difference
    between two entries), if it is known, as it is for bounded ones.
    policy: or a schedule, and `rule` a linear rule on it, as for `finite_round`; the margin is then that of the
    aggregate with the weights that agents tend to. With any other rule no theorem helps, and `evidence` is all there
    is; then `statistics` must be given, and the margin is that of DeGroot's limit.
    tau: the dependence of views given the class; 1 if they are independent, which the correlations should confirm.
    bits: of stochastically rounded messages, if they are; then `statistics` or `errors` must be given. statistics:
    those of the run, if the scores did not simply go through the policy; errors: only its error rates, (rounds+1, K),
    which leaves out what `evidence` says of single items. coarseness: the quantiser's bound, half of it for
    centred scores: its range may be wider than the scores', and then β is that of its range (`quantiser_beta`).

    The leads of the aggregate have Student's intervals, or with `exact` Hoeffding's, which are wider and hold for any
    number of items and any law within β. What they are at least are margins that hold for all classes and rivals at
    once with the confidence asked for, and δ is the smallest. Then `finite_round` (or `finite_precision`) and
    `sufficient` follow, each rival with its own margin: the bound is for the class whose rivals add up to most, and
    holds whatever the shares of the classes.

    >>> from collegium import policy, topology
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(rng.random(2000) < 0.5, 1, -1)
    >>> scores = np.tanh(0.8 * y[:, None] + rng.normal(size=(2000, 16)))
    >>> found = certify(scores, y, policy.metropolis(topology.complete(16)), beta=1.0, rounds=1)
    >>> found.measured_limit < found.limit < 0.5
    True
    """
    if rule is None and isinstance(policy, Schedule):
        rule = own_rule(policy)
    covered = rule is None or is_linear(rule)
    if not covered and statistics is None:
        raise AssumptionError(
            f"no theorem covers {rule}: give statistics=, those of a run, for what held-out items say"
        )
    mix = mixing(policy, rounds, rule if covered else DeGroot())
    c, places = labelled(scores, y, mix.network.size, classes)
    C = max(c.shape[2], 2)
    level = _one(probability(confidence, "the confidence"), "the confidence")
    seen = score_range(c, raw) if len(c) else 1.0
    if not 1e-100 < seen < 1e100:
        raise AssumptionError(f"scores of size {seen:.2g} are too small or too large to compute with: rescale them")
    known = seen if beta is None else _one(positive(beta, "β"), "β")
    if seen > known * (1 + 1e-9):
        raise AssumptionError(f"scores leave the range: β = {known:g}, but the scores need β = {seen:g}")
    # Entries of C > 2 classes fill less of a quantiser's range than the one number of two classes.
    coarse = float(quantiser_beta(coarseness, raw=True, classes=C)) if coarseness else 0.0
    if coarse and bits is not None:  # what of the quantiser's range is the scores'
        coarse /= float(mix.widening(check_bits(bits)))
    b, dep = max(known, coarse), _one(dependence(tau), "τ")
    together = aggregate(c, mix.limit)
    leads = of_aggregate(together, places, level, b if exact else None)
    mix.transient(sigma)  # σ and bits are checked whether there is a margin or not
    if bits is not None:
        _one(check_bits(bits), "bits")
    only_rates = statistics is None and errors is not None
    pages = None if only_rates else _pages(c, mix.weights, bits, statistics)
    measured = _rates(errors, mix.weights) if pages is None else np.array([_wrong(page, places) for page in pages])
    bound, limit, rests = (
        np.full(measured.shape, np.nan),
        1.0 if bits is None and covered else float("nan"),
        resting_on(raw, C, network=mix.assumption) if covered else (INDEPENDENT_ITEMS,),
    )
    if not covered:
        pass
    elif leads.delta > 0 and bits is None:
        found = finite_round(policy, leads.rivals, b, rounds, dep, sigma, raw=raw, rule=rule)
        bound = _overtaken(found.value)
        limit = float(_overtaken(sufficient(policy, leads.rivals, b, dep, raw=raw, rule=rule).value))
    elif leads.delta > 0:
        d, beta_, width = (np.asarray(x, np.float64)[..., None, None] for x in (leads.rivals, b, bits))
        V = rounding(mix, beta_, width, raw, C, rounding_errors(C)[..., None, None])
        r = residual(mix, d, beta_, sigma, raw)
        bound = _overtaken(exponential(r / beta_, dep * squares(mix.weights) + V / beta_**2))
        rests = resting_on(raw, C, ROUNDING, network=mix.assumption)
    within = c.copy()
    for place in range(C):
        within[places == place] -= c[places == place].mean(axis=0)
    flat = within.transpose(0, 2, 1).reshape(-1, mix.network.size)
    return Certificate(
        items=leads.items, confidence=level, beta=b, beta_is_given=beta is not None, exact=exact, margins=leads,
        delta=leads.delta, tau=dep, correlations=_correlations(flat), inflation=_inflation(flat, mix.limit),
        bound=bound, errors=measured, limit=limit, measured_limit=_wrong(together[:, None], places).item(), bits=bits,
        assumptions=rests, evidence=None if pages is None else _evidence(pages, places, level),
        no_theorem="" if rule is None or covered else registry.describe(rule),
    )  # fmt: skip


def _overtaken(pairs: Doubles) -> Doubles:
    """The union over the rivals of each class, for the worst class: from values (C, C-1, …) of single rivals."""
    return np.asarray(pairs.sum(axis=1).max(axis=0))


def _wrong(x: Doubles, places: Places) -> Doubles:
    """The error rate of statistics (n, K, d), shape (K,); a tie is wrong."""
    return np.asarray((~(leads_of(x, places) > 0).all(axis=-1)).mean(axis=0))


def _pages(c: Doubles, weights: Doubles, bits: Any, statistics: Any) -> Doubles:
    """Statistics (rounds+1, n, K, d): those given, or those of the scores going through the policy."""
    if statistics is None:
        if bits is not None:
            raise AssumptionError(
                "with bits the errors depend on rounding: measure them in a run, and give errors= or statistics="
            )
        entries = np.ascontiguousarray(c.transpose(2, 0, 1))
        return np.stack([(entries @ power).transpose(1, 2, 0) for power in weights])
    x = numbers(statistics, "statistics")
    x = x[..., None] if c.shape[2] == 1 and x.ndim == 3 else x
    if x.shape != (len(weights), *c.shape):
        raise AssumptionError(
            f"statistics must be those of a run: {len(weights)} rounds with the first, of scores of shape {c.shape}; "
            f"got {x.shape}"
        )
    return x


def _rates(errors: Any, weights: Doubles) -> Doubles:
    """Error rates (rounds+1, K) that were measured elsewhere."""
    measured = numbers(errors, "errors")
    if measured.shape != weights.shape[:2]:
        raise AssumptionError(f"errors must have shape {weights.shape[:2]}, rounds by agents; got {measured.shape}")
    return measured


def _evidence(pages: Doubles, places: Places, level: float) -> Evidence:
    if pages.shape[3] == 1:
        return evidence(pages[..., 0], np.where(places == 0, 1, -1), level, classes=(1, -1))
    return evidence(pages, places, level)


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
