"""A convex combination of the statistics, learned from validation items, at a centre."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from collegium._util.arguments import real_number, whole_number
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
        margins = c * y[:, None]
        self.weights_, self.gap_, self.iterations_ = _minimise(margins, self.tolerance, self.max_iterations)
        return c.size

    def _fuse(self, c: Doubles) -> Doubles:
        fused: Doubles = c @ self.weights_
        return fused


def _minimise(margins: Doubles, tolerance: float, limit: int) -> tuple[Doubles, float, int]:
    n, K = margins.shape
    size = np.linalg.norm(margins, axis=0)
    size[size == 0] = 1.0
    # The curvature of the loss is at most this diagonal matrix, whatever units the agents speak in.
    curvature = size**2 * np.linalg.norm(margins / size, 2) ** 2 / (4 * n)
    enough = tolerance * float(np.abs(margins).mean(axis=0).max())
    w = ahead = np.full(K, 1 / K)
    speed = 1.0
    for step in range(limit):
        slope = _slope(margins, w)
        gap = max(float(slope @ w - slope.min()), 0.0)
        if gap <= enough:
            return w, gap, step
        after = to_simplex(ahead - _slope(margins, ahead) / curvature, curvature)
        if (ahead - after) @ (curvature * (after - w)) > 0:  # the momentum points uphill: begin again without it
            speed, after = 1.0, to_simplex(w - slope / curvature, curvature)
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        ahead = after + (speed - 1) / faster * (after - w)
        w, speed = after, faster
    raise ModelError(
        f"Learned simplex fusion did not converge in {limit} iterations: the loss may still be {gap:.2g} above the "
        "smallest. Smaller scores (calibrated ones) make it easier; or allow more iterations or a larger tolerance."
    )


def _slope(margins: Doubles, w: Doubles) -> Doubles:
    slope: Doubles = -(margins.T @ expit(-(margins @ w))) / len(margins)
    return slope


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
