"""A convex combination of the statistics, learned from validation items, at a centre."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from collegium.agents.scores import Scores
from collegium.arguments import real_number, whole_number
from collegium.errors import ModelError
from collegium.fusion.base import Doubles, ScoreMethod
from collegium.fusion.learned import LearnedFusion


class SimplexFusion(ScoreMethod):
    r"""The sign of w·c with w ≥ 0 and Σ w_k = 1, fitted on the validation items [hu2026, App. H.1].

    $$ \min_{w \in \Delta} f(w) = \frac1N \sum_n \log\bigl(1 + e^{-\gamma_n w^\top c_n}\bigr) $$

    The problem is convex. Accelerated projected gradients [beck2009] go on until the duality gap
    max_k ∇f(w)·(w - e_k), which is never less than f(w) - min f, is at most `tolerance`; if that does not happen
    within `max_iterations`, it is said. With no free scale, small statistics make the loss all but linear, and the best
    single agent gets all the weight.
    """

    name = "Learned simplex fusion"
    coordination = LearnedFusion.coordination
    weights_: Doubles
    gap_: float
    iterations_: int

    def __init__(
        self,
        tolerance: float = 1e-9,
        max_iterations: int = 100_000,
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
    curvature = float(np.linalg.norm(margins, 2)) ** 2 / (4 * n) or 1.0
    w = ahead = np.full(K, 1 / K)
    speed = 1.0
    for step in range(limit):
        slope = _slope(margins, w)
        gap = float(slope @ w - slope.min())
        if gap <= tolerance:
            return w, gap, step
        after = to_simplex(ahead - _slope(margins, ahead) / curvature)
        if (ahead - after) @ (after - w) > 0:  # the momentum points uphill: begin again without it
            speed, after = 1.0, to_simplex(w - slope / curvature)
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        ahead = after + (speed - 1) / faster * (after - w)
        w, speed = after, faster
    raise ModelError(
        f"simplex fusion did not converge in {limit} iterations: the loss may still be {gap:.2g} above the smallest. "
        "Allow more iterations, or a larger tolerance."
    )


def _slope(margins: Doubles, w: Doubles) -> Doubles:
    slope: Doubles = -(margins.T @ expit(-(margins @ w))) / len(margins)
    return slope


def to_simplex(v: Doubles) -> Doubles:
    """The nearest point with no negative entry and sum 1.

    >>> to_simplex(np.array([0.9, 0.5, -1.0]))
    array([0.7, 0.3, 0. ])
    """
    falling = np.sort(v)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(v) + 1)
    return np.asarray(np.maximum(v - excess[np.flatnonzero(falling > excess)[-1]], 0.0))
