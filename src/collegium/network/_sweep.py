"""`sweep`: many rules on the same scores in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium import kernels
from collegium._util.arguments import whole_number
from collegium._util.labels import to_places, to_signs
from collegium._util.measures import leads
from collegium._util.randomness import Seed, child
from collegium.errors import RuleError, ScoreError
from collegium.kernels.job import Job
from collegium.links import Links, Perfect
from collegium.network._collaborate import run_job, validated
from collegium.network._run import Items
from collegium.protocol import HoldLast, Mailbox, Rule
from collegium.schedule.base import Schedule

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sweep:
    """What came of many rules on the same scores: averages over the items.

    where R is the number of rules, M of realisations, T of rounds, K of agents. A run with fewer rounds is the
    beginning of a longer one, so `errors[:, :, t]` and `transmissions[:, :, t]` are those of a budget of t rounds.
    """

    errors: Doubles
    """Error rate of every agent, shape (R, M, T+1, K)."""
    transmissions: Doubles
    """Mean transmissions per item up to each round, shape (R, M, T+1)."""
    rules: tuple[Rule, ...]
    numbers: int = 1
    """d, how many numbers a score has: 1, or the number of classes."""

    @property
    def bits(self) -> Doubles:
        """Mean bits per item up to each round, shape (R, M, T+1)."""
        size = np.array([rule.message_bits(self.numbers) for rule in self.rules], np.float64)
        return self.transmissions * size[:, None, None]

    def __repr__(self) -> str:
        R, M, pages, K = self.errors.shape
        return f"Sweep({R} rules × {M} realisations, {pages - 1} rounds, {K} agents)"


def sweep(
    scores: ArrayLike,
    schedule: Schedule,
    rules: Sequence[Rule],
    y: ArrayLike,
    rounds: int = 20,
    rng: Seed = 0,
    *,
    realisations: int = 1,
    items: Items | None = None,
    links: Links = Perfect(),
    mailbox: Mailbox = HoldLast(),
    classes: Sequence[Any] | None = None,
) -> Sweep:
    """Errors and transmissions of many rules on the same scores in one pass.

    For a grid of thresholds, a grid of (patience, confidence), or many realisations of a quantiser: nothing but
    the averages is kept. Realisation m equals `collaborate` with `rng=collegium.randomness.child(seed, m)`. Scores and
    labels are as for `collaborate` and `Run.errors`, of two classes or several; so are `links`, which slow it down.

    >>> from collegium import policy, protocol, topology
    >>> rules = [protocol.DeltaTrigger(e) for e in (0.1, 1.0)]
    >>> p = policy.uniform(topology.path(3))
    >>> sweep([[2.0, -1.0, 0.5], [-1.0, -1.0, 0.5]], p, rules, [1, -1]).transmissions[:, 0, -1]
    array([11. ,  5.5])
    """
    if isinstance(rules, Rule) or not hasattr(rules, "__iter__"):
        raise RuleError(f"rules must be a list of rules, got {rules!r}")
    rules = list(rules)
    if not rules:
        raise RuleError("sweep needs at least one rule")
    realisations = whole_number(realisations, "realisations", RuleError, at_least=1)
    job = validated(scores, schedule, rounds, rules, rng, links=links, items=items, mailbox=mailbox)
    n, _, d = job.scores.shape
    labels = (to_signs(y, n, classes) if d == 1 else to_places(y, n, d, classes)).astype(np.float64)
    if not n:
        raise ScoreError("sweep averages over items, but there are none")
    seeds = [child(job.seed, m) for m in range(realisations)]
    compiled = kernels.find_sweep(job, rules)
    if compiled is None:
        return _rule_by_rule(job, rules, seeds, labels)
    tally = compiled(job, seeds, labels)
    shape = len(rules), realisations, job.rounds + 1
    errors = tally.errors.reshape(*shape, schedule.size) / n
    return Sweep(errors, tally.transmissions.reshape(shape) / n, tuple(rules), d)


def _rule_by_rule(job: Job, rules: Sequence[Rule], seeds: list[int], labels: Doubles) -> Sweep:
    """For rules without a kernel for sweeps."""
    errors = np.empty((len(rules), len(seeds), job.rounds + 1, job.schedule.size))
    transmissions = np.zeros(errors.shape[:3])
    d = job.scores.shape[2]
    for r, rule in enumerate(rules):
        for m, seed in enumerate(seeds):
            recorded = run_job(job._replace(seed=seed), rule)
            statistics = recorded.statistics
            right = statistics[..., 0] * labels[:, None] > 0 if d == 1 else leads(statistics, labels.astype(np.intp))
            errors[r, m] = (~right).mean(axis=1)
            transmissions[r, m, 1:] = np.cumsum(recorded.costs.mean(axis=1))
    return Sweep(errors, transmissions, tuple(rules), d)
