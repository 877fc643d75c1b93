r"""What every agent computes alike from what the network said: in which directions to go, and where to stay.

All agents know the labels and the averages they heard, nobody another's scores. If agent k has scores $z_k$, directions
are numbers $p$ about the labelled items that all know, and agent k goes by $w_k = z_k \cdot p$ along each. What the
network says of a direction is $\sum_k \pi_k z_k (z_k \cdot p)$, the change of its own average. So any loss of
$f = a s + b + \sum_j c_j B_j$, with s the average as it stands and B_j the changes, is a small problem of its own, and
the squared length of the change of gains, $\sum_{ij} c_i c_j\, p_i \cdot B_j$, is known as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium.tuning.losses import LOSSES, Doubles, Loss, minimise

PULLS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
"""Strengths of the pull towards the gains as they are, from strong to weak."""
THRESHOLDS = (1e6, 10.0, 0.1)
"""Strengths of the pull of the common threshold towards zero."""
FOLDS = 5
MANY = 500
"""From so many items on one fold is held out; below, all in turn."""
SOME = 50
"""Below so many items what held-out ones say is trusted less."""
OVERLAP = 1 + 5 / 4
"""By how much the variance of a mean over parts that are held out in turn is larger than it looks, since most of their
training items are the same [nadeau2003]."""
SHORTEST = 1e-5
"""Of the longest direction's squared length: shorter ones have this one. What they say of averages that are not exact
is mostly their error."""
BEYOND_CHANCE = 1.5
"""Standard errors by which mistakes must differ before other gains, that were not learned, take the place of those that
are there."""


TUNED = 1 << 16
"""The code of tuned gains; those of agents are below."""


class Candidate(NamedTuple):
    """One way to count: how many directions, pulls of gains and of the threshold."""

    steps: int
    pull: float
    threshold: float


class Choice(NamedTuple):
    """What is to be used, and what the held-out items said. Errors are shares of the held-out items."""

    kept: str
    """"tuned", "as it was", "equal" or "best agent"."""
    agent: int
    """The best agent."""
    items: int
    """Held-out items behind the errors."""
    error_before: float
    error_equal: float
    error_best: float
    error_tuned: float

    @property
    def code(self) -> int:
        """A whole number that says which."""
        return {"as it was": 0, "equal": 1, "tuned": TUNED}.get(self.kept, 2 + self.agent)


@dataclass(frozen=True)
class Learner:
    """The labels, and how to learn from what is heard; the same at every agent.

    y: labels +1 / -1, or places 0 … C-1. classes: C. agents: K. conversations: T, directions to go.
    """

    y: NDArray[Any]
    classes: int
    agents: int
    conversations: int
    loss: str = "logistic"
    fresh: bool = True
    """Whether all gains are 1 as they stand."""

    @cached_property
    def target(self) -> Doubles:
        if self.classes == 2:
            return np.asarray((self.y > 0).astype(np.float64)[:, None])
        return np.asarray((self.y[:, None] == np.arange(self.classes)).astype(np.float64))

    @cached_property
    def folds(self) -> NDArray[np.intp]:
        """Which of the folds an item is in: each has its share of every class."""
        fold = np.empty(len(self.y), np.intp)
        fold[np.argsort(self.y, kind="stable")] = np.arange(len(self.y)) % FOLDS
        return fold

    @cached_property
    def trained(self) -> list[NDArray[np.bool_]]:
        """The items each model learns from: all, then all but one fold; or all but the first fold alone."""
        if len(self.y) >= MANY:
            return [self.folds != 0]
        return [np.ones(len(self.y), np.bool_), *(self.folds != f for f in range(FOLDS))]

    @cached_property
    def held_out(self) -> NDArray[np.bool_]:
        """Which items judge."""
        return self.folds == 0 if len(self.trained) == 1 else np.ones(len(self.y), np.bool_)

    @cached_property
    def blocks(self) -> NDArray[np.intp]:
        """Parts of the items that judge, of which each is decided about by what the others say of the candidates."""
        if len(self.trained) > 1:
            return self.folds
        halves = np.empty(len(self.y), np.intp)
        halves[np.argsort(self.y, kind="stable")] = np.arange(len(self.y)) // FOLDS % 2
        return halves

    @cached_property
    def candidates(self) -> list[Candidate]:
        steps = sorted({1, self.conversations} - {0})
        return [
            *(Candidate(0, np.inf, threshold) for threshold in THRESHOLDS[1:]),
            *(Candidate(t, pull, threshold) for t in steps for pull in PULLS for threshold in THRESHOLDS),
        ]

    def _loss(self) -> Loss:
        loss: Loss = LOSSES[self.loss](self.target)
        return loss

    def directions(self, s: Doubles, P: Sequence[Doubles], B: Sequence[Doubles]) -> Doubles:
        """The next direction of every model, shape (models, n, d), of length 1, from those before and their changes.

        s: the average as it stands, (n, d). P, B: earlier directions and what the network said, (models, n, d) each.
        """
        found = []
        for j, mask in enumerate(self.trained):
            model = _Model(self, s, [p[j] for p in P], [b[j] for b in B], mask)
            slope = self._loss().slopes(model.sums(model.fit(Candidate(len(P), 1.0, 0.1)))) * mask[:, None]
            p = -slope / max(float(np.sqrt((slope**2).sum())), 1e-300)
            found.append(rounded(p))
        return np.array(found)

    def choose(
        self, s: Doubles, equal: Doubles, P: Sequence[Doubles], B: Sequence[Doubles], alone: Doubles
    ) -> tuple[Choice, Doubles]:
        """What to use, and the coefficients (a, b, c) of tuned gains: a mean of all candidates.

        s: the average as it stands; equal: with all gains 1. alone: shares (K, folds) that agents get wrong by
        themselves, 1 where nobody knows.
        """
        models = [_Model(self, s, [p[j] for p in P], [b[j] for b in B], mask) for j, mask in enumerate(self.trained)]
        fits = [np.array([*model.fit_all(self.candidates), model.as_it_was()]) for model in models]
        loss, judges, n = self._loss(), self.held_out, len(self.y)
        trust = 1.0 if n >= SOME else 1 / OVERLAP
        sums = np.zeros((len(fits[0]), *s.shape))
        for model, fit in zip(models, fits, strict=True):
            out = ~model.mask & judges
            for i, c in enumerate(fit):
                sums[i, out] = model.sums(c)[out]
        losses = np.array([loss.judge(f) for f in sums])
        mixed = np.zeros_like(s)
        for block in range(self.blocks.max() + 1):  # each is judged with weights that the others gave
            inside, others = judges & (self.blocks == block), judges & (self.blocks != block)
            said = losses[:, others].mean(axis=1) * judges.sum() * trust
            mixed[inside] = np.tensordot(weights(said), sums[:, inside], axes=1)
        better = (losses[-1] - loss.judge(mixed))[judges]
        least = 0.0 if n >= SOME else better.std(ddof=1) / np.sqrt(len(better))
        before, equally, tuned = (int(self._wrong(f)[judges].sum()) for f in (sums[-1], equal, mixed))
        folds, agent = np.unique(self.folds[judges]).tolist(), int(rounded(self._mistakes(alone).sum(axis=1)).argmin())
        best = self._best_alone(alone, folds)
        # What was not fitted may be judged by all items.
        stays = self._better_of(
            int(self._wrong(s).sum()), int(self._wrong(equal).sum()), self._best_alone(alone, range(FOLDS))
        )
        accepted = better.mean() > least and not _fewer(min(before, equally, best), tuned, 1.0)
        # Where one agent is clearly the best, only a clear improvement on it counts.
        if stays == "best agent":
            accepted = accepted and _fewer(tuned, best, 0.5)
        kept = "tuned" if accepted else stays
        m = int(judges.sum())
        coefficients = rounded(weights(losses[:, judges].sum(axis=1) * trust) @ fits[0])
        return Choice(kept, agent, m, before / m, equally / m, best / m, tuned / m), coefficients

    def _wrong(self, f: Doubles) -> NDArray[np.bool_]:
        if self.classes == 2:
            return np.asarray(f[:, 0] * self.y <= 0)
        own = f[np.arange(len(f)), self.y.astype(np.intp)]
        return np.asarray((f >= own[:, None]).sum(axis=1) > 1)

    def _mistakes(self, alone: Doubles) -> Doubles:
        """How many items agents get wrong by themselves, shape (K, folds)."""
        return np.asarray(alone * np.bincount(self.folds, minlength=FOLDS))

    def _best_alone(self, alone: Doubles, folds: Iterable[int]) -> float:
        """Mistakes of the best agent in these folds, for each chosen by the others."""
        counts = self._mistakes(alone)
        return float(sum(counts[int(rounded(counts.sum(axis=1) - counts[:, f]).argmin()), f] for f in folds))

    def _better_of(self, before: float, equally: float, best: float) -> str:
        """The gains as they are, unless others make fewer mistakes beyond chance."""
        kept, least = "as it was", before
        for name, count in (("equal", equally), ("best agent", best)):
            if _fewer(count, least):
                kept, least = name, count
        return kept

    def known(self, f: Doubles) -> float:
        """The size of a sum: its root mean square over the items."""
        return float(np.sqrt((f**2).mean())) or 1.0


class _Model:
    """Sums a s + b + Σ c_j B_j, fitted to the items of a mask."""

    def __init__(
        self, learner: Learner, s: Doubles, P: list[Doubles], B: list[Doubles], mask: NDArray[np.bool_]
    ) -> None:
        self.learner, self.mask, self.weight = learner, mask, mask.astype(np.float64)
        n, d = s.shape
        self.size = learner.known(s)
        offsets = np.ones((1, n, 1)) if d == 1 else np.broadcast_to((np.eye(d) - 1 / d)[:, None], (d, n, d))
        self.offsets = len(offsets)
        self.columns = np.concatenate([(s / self.size)[None], offsets, *(b[None] for b in B)])
        self.lengths = np.array([[float((p * b).sum()) for b in B] for p in P]).reshape(len(P), len(P))
        self.lengths = (self.lengths + self.lengths.T) / 2 / learner.agents

    def fit(self, candidate: Candidate, start: Doubles | None = None) -> Doubles:
        """The coefficients of s / size, the threshold and the directions so far, as many as there are columns."""
        m = 1 + self.offsets + candidate.steps
        penalty = np.zeros((m, m))
        penalty[0, 0] = 0.01
        penalty[range(1, m - candidate.steps), range(1, m - candidate.steps)] = candidate.threshold
        if candidate.steps:
            k = candidate.steps
            penalty[-k:, -k:] = candidate.pull * _positive(self.lengths[:k, :k])
        begin = np.zeros(m) if start is None else start
        c = minimise(self.learner._loss(), self.columns[:m], penalty, self.weight, begin)
        if not candidate.steps:
            c[0] = max(c[0], 0.3)  # the gains as they are, never against them
        return rounded(np.concatenate([c, np.zeros(len(self.columns) - m)]))

    def fit_all(self, candidates: Sequence[Candidate]) -> list[Doubles]:
        """All candidates, each begun where its neighbour ended."""
        found: dict[Candidate, Doubles] = {}
        for candidate in candidates:
            near = [
                other for other in found if other.steps == candidate.steps and other.threshold == candidate.threshold
            ]
            m = 1 + self.offsets + candidate.steps
            found[candidate] = self.fit(candidate, found[near[-1]][:m] if near else None)
        return [found[candidate] for candidate in candidates]

    def as_it_was(self) -> Doubles:
        """The gains as they are, with the scale that suits them."""
        only_scale = np.r_[1.0, np.zeros(len(self.columns) - 1)]
        return np.asarray(self.fit(Candidate(0, np.inf, THRESHOLDS[0])) * only_scale)

    def sums(self, c: Doubles) -> Doubles:
        """Shape (n, d)."""
        flat = self.columns.reshape(len(self.columns), -1)[: len(c)]
        return np.asarray((c @ flat).reshape(self.columns.shape[1:]))


def weights(losses: Doubles) -> Doubles:
    r"""How much each candidate counts: $w_i \propto p_i e^{-L_i}$ of its loss L on held-out items, Brier's score.

    Half of the prior weight p is that of the last, what is there already. No candidate is picked, so a chance
    difference between two of them changes little. The mean of the candidates' sums has the mean of their coefficients.
    [vovk2009]
    """
    prior = np.full(len(losses), 0.5 / (len(losses) - 1))
    prior[-1] = 0.5
    w = prior * np.exp(losses.min() - losses)
    return np.asarray(w / w.sum())


def _positive(lengths: Doubles) -> Doubles:
    """Squared lengths as they must be: positive in all directions, whatever inexact averages made of them."""
    values, vectors = np.linalg.eigh(lengths)
    return np.asarray((vectors * np.maximum(values, SHORTEST * max(float(values[-1]), 1e-300))) @ vectors.T)


def _fewer(one: float, other: float, errors: float = BEYOND_CHANCE) -> bool:
    """Whether a number of mistakes is smaller than another by more than chance explains."""
    return bool(other - one > errors * np.sqrt(other + one))


def rounded(values: Doubles) -> Doubles:
    """Values to 24 bits of the largest: what differs between agents by rounding errors alone becomes the same."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest:
        return np.zeros_like(values)
    grid = 2.0 ** (np.ceil(np.log2(largest)) - 24)
    return np.asarray(np.rint(values / grid) * grid)
