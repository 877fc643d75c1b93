"""A convex combination of the statistics, learned from validation items, at a centre."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from collegium._util.arguments import real_number, whole_number
from collegium._util.margins import rival_margins
from collegium.agents.scores import Scores
from collegium.errors import ModelError
from collegium.fusion.base import Doubles, ScoreMethod
from collegium.fusion.learned import LearnedFusion


class SimplexFusion(ScoreMethod):
    r"""The sign of w·c with w ≥ 0 and Σ w_k = 1, fitted on the validation items [hu2026, App. H.1].

    $$ \min_{w \in \Delta} f(w) = \frac1N \sum_n \log\bigl(1 + e^{-\gamma_n w^\top c_n}\bigr) $$

    The problem is convex. Accelerated projected gradients [beck2009], each agent in units of its own statistics, go on
    until the duality gap max_k ∇f(w)·(w - e_k), which is never less than f(w) - min f, is at most `tolerance` times the
    largest mean |c_k|; if that does not happen within `max_iterations`, it is said. With no free scale, small
    statistics make the loss all but linear, and the best single agent gets all the weight.

    Of several classes the loss is log(1 + Σ_j e^{-m_j}), with m_j the lead w·(c_y - c_j) of the true class y over rival
    j: the cross-entropy of the softmax of Σ w_k c_k, for two classes the loss above.
    """

    name = "Learned simplex fusion"
    coordination = LearnedFusion.coordination
    weights_: Doubles
    gap_: float
    iterations_: int

    def __init__(
        self,
        tolerance: float = 1e-8,
        max_iterations: int = 50_000,
        center: bool = True,
        calibrate: bool = False,
        bounded: bool = False,
    ) -> None:
        super().__init__(center, calibrate, bounded)
        self.tolerance = tolerance
        self.max_iterations = max_iterations

    def _learn(self, scores: Scores) -> int:
        real_number(self.tolerance, "tolerance", ModelError, above=0)
        whole_number(self.max_iterations, "max_iterations", ModelError, at_least=1)
        c, y = self.statistics_for_fitting(scores)
        if self.classes_ == 2:
            margins = c * y[:, None]
            problem = _Problem(margins, margins, 1, 4)
        else:
            leads = rival_margins(c, y.astype(np.intp))
            problem = _Problem(_rows(leads), _rows(c), leads.shape[2], 2)
        self.weights_, self.gap_, self.iterations_ = _minimise(problem, self.tolerance, self.max_iterations)
        return len(c) * scores.size

    def _fuse(self, c: Doubles) -> Doubles:
        fused: Doubles = c @ self.weights_ if c.ndim == 2 else np.tensordot(c, self.weights_, axes=(1, 0))
        return fused


class _Problem(NamedTuple):
    """The loss of weights w: the mean over n items of log(1 + Σ_j exp(-m_j)), with m_j = leads @ w for each rival."""

    leads: Doubles
    """Over each rival, item by item, shape (n (C-1), K)."""
    entries: Doubles
    """What the loss is a function of, item by item, shape (n, K) or (n C, K)."""
    rivals: int
    flatness: int
    """How many times flatter the loss is in an entry than a square: 4 for one number, whose curvature is p(1 - p), and
    2 for the C entries of a statistic, because diag(p) - pp' is never more than half the identity."""

    def slope(self, w: Doubles) -> Doubles:
        behind = -(self.leads @ w)
        chances = expit(behind) if self.rivals == 1 else _overtaken(behind.reshape(-1, self.rivals)).ravel()
        return np.asarray(-(self.leads.T @ chances) / (len(self.leads) // self.rivals))

    def curvature(self) -> Doubles:
        """A diagonal matrix that the curvature never exceeds, whatever units the agents speak in."""
        size = np.linalg.norm(self.entries, axis=0)
        size[size == 0] = 1.0
        items = len(self.leads) // self.rivals
        return np.asarray(size**2 * np.linalg.norm(self.entries / size, 2) ** 2 / (self.flatness * items))


def _rows(x: Doubles) -> Doubles:
    """(n, K, C) as (n C, K)."""
    return np.ascontiguousarray(x.transpose(0, 2, 1)).reshape(-1, x.shape[1])


def _overtaken(behind: Doubles) -> Doubles:
    """The softmax of rivals' entries (n, C-1) beside a 0, that of the true class."""
    top = np.maximum(behind.max(axis=1, keepdims=True), 0.0)
    p = np.exp(behind - top)
    return np.asarray(p / (np.exp(-top) + p.sum(axis=1, keepdims=True)))


def _minimise(problem: _Problem, tolerance: float, limit: int) -> tuple[Doubles, float, int]:
    K = problem.leads.shape[1]
    curvature = problem.curvature()
    enough = tolerance * float(np.abs(problem.leads).mean(axis=0).max())
    w = ahead = np.full(K, 1 / K)
    speed = 1.0
    for step in range(limit):
        slope = problem.slope(w)
        gap = max(float(slope @ w - slope.min()), 0.0)
        if gap <= enough:
            return w, gap, step
        after = to_simplex(ahead - problem.slope(ahead) / curvature, curvature)
        if (ahead - after) @ (curvature * (after - w)) > 0:  # the momentum points uphill: begin again without it
            speed, after = 1.0, to_simplex(w - slope / curvature, curvature)
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        ahead = after + (speed - 1) / faster * (after - w)
        w, speed = after, faster
    raise ModelError(
        f"Learned simplex fusion did not converge in {limit} iterations: the loss may still be {gap:.2g} above the "
        "smallest. Smaller scores (calibrated ones) make it easier; or allow more iterations or a larger tolerance."
    )


def to_simplex(v: Doubles, weight: Doubles) -> Doubles:
    """The nearest point with no negative entry and sum 1, where coordinate k counts `weight[k]` times.

    >>> to_simplex(np.array([0.9, 0.5, -1.0]), np.ones(3))
    array([0.7, 0.3, 0. ])
    """
    # w_k = max(0, v_k - θ/weight_k): entries fall to 0 in the order of v_k · weight_k as θ grows.
    order = np.argsort(-v * weight)
    share = np.cumsum(1 / weight[order])
    theta = (np.cumsum(v[order]) - 1) / share
    kept = np.flatnonzero((v * weight)[order] > theta)[-1]
    w = np.maximum(v - theta[kept] / weight, 0.0)
    return np.asarray(w / w.sum())
