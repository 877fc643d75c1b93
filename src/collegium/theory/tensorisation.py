"""The dependence factor τ of a small law, found numerically."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from collegium._util.arguments import whole_number
from collegium.errors import AssumptionError
from collegium.theory.bound import numbers

Doubles = NDArray[np.float64]
_PATIENCE = {"maxiter": 300, "ftol": 1e-13}


def tensorisation(law: ArrayLike, starts: int = 12, seed: int = 0) -> float:
    r"""The smallest τ with $Ent(G) \le \tau \sum_k E[Ent_k(G)]$ for all nonnegative G [hu2026, Assumption 5].

    law: the joint probabilities of K views, an array with an axis per view. The ratio is climbed from many functions G,
    near-constant ones among them (where it is a ratio of variances); what comes out is attained by some G, so τ is not
    smaller, and for laws of a few cells it is the maximum to five digits. Infinite where some G varies although no view
    does so given the others, as with a duplicated view.

    >>> tensorisation(np.outer([0.3, 0.7], [0.6, 0.4]))  # independent
    1.0
    >>> tensorisation([[0.5, 0.0], [0.0, 0.5]])  # one view twice
    inf
    """
    P = numbers(law, "the law")
    if P.ndim < 1 or (P < 0).any() or abs(P.sum() - 1) > 1e-9:
        raise AssumptionError("a law is an array of probabilities, an axis per view, that sum to 1")
    if P.size > 64:
        raise AssumptionError(f"τ is searched for in laws of at most 64 cells; this one has {P.size}")
    if not _connected(P):
        return float("inf")
    rng = np.random.default_rng(seed)
    best = 1.0
    for start in range(whole_number(starts, "starts", AssumptionError, at_least=1)):
        scale = 10.0 ** rng.uniform(-3, 1) if start else 1e-3
        climbed = minimize(
            _falling, scale * rng.normal(size=P.size), args=(P,), jac=True, method="L-BFGS-B", options=_PATIENCE
        )
        best = max(best, -float(climbed.fun))
    return round(best, 12) if best > 1 + 1e-7 else 1.0


def _falling(log_G: Doubles, P: Doubles) -> tuple[float, Doubles]:
    ratio, slope = _ratio(P, log_G)
    return -ratio, -slope


def _ratio(P: Doubles, log_G: Doubles) -> tuple[float, Doubles]:
    """Ent(G) / Σ E[Ent_k(G)] and its slope in log G; 1, and flat, where G is constant to the last digits."""
    G = np.exp(np.clip(log_G - log_G.max(), -60, 0)).reshape(P.shape)
    above, rise = _entropy(P, G, tuple(range(P.ndim)))
    below, fall = 0.0, np.zeros_like(P)
    for axis in range(P.ndim):
        one, slope = _entropy(P, G, (axis,))
        below, fall = below + one, fall + slope
    if not (above > 1e-14 and below > 1e-12 * above):
        return 1.0, np.zeros(P.size)
    return above / below, (G * (rise - above / below * fall) / below).ravel()


def _entropy(P: Doubles, G: Doubles, over: tuple[int, ...]) -> tuple[float, Doubles]:
    """The entropy of G over some views given the others, averaged over these, and its slope in G."""
    weight = P.sum(axis=over, keepdims=True)
    mean = np.divide((P * G).sum(axis=over, keepdims=True), weight, where=weight > 0, out=np.ones_like(weight))
    slope = P * np.log(G / mean)
    return float((G * slope).sum()), slope


def _connected(P: Doubles) -> bool:
    """Whether every possible outcome can be reached from every other, changing one view at a time."""
    cells = [cell for cell in product(*map(range, P.shape)) if P[cell] > 0]
    seen, waiting = {cells[0]}, [cells[0]]
    while waiting:
        cell = waiting.pop()
        for axis, size in enumerate(P.shape):
            for value in range(size):
                other = (*cell[:axis], value, *cell[axis + 1 :])
                if P[other] > 0 and other not in seen:
                    seen.add(other)
                    waiting.append(other)
    return len(seen) == len(cells)
