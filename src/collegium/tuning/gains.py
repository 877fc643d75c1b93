"""`tune`: K agents learn how much each should count, in a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import whole_number
from collegium._util.labels import to_places, to_signs
from collegium._util.scores import check_scores_of_classes
from collegium.agents.pipeline import ScorePipeline
from collegium.errors import LabelError, PolicyError, ScoreError
from collegium.links import Links, Perfect
from collegium.policy import Policy
from collegium.protocol import HoldLast, Mailbox, Rule
from collegium.schedule._validation import validate as validate_schedule
from collegium.schedule.base import Schedule, own_rounds
from collegium.tuning.agent import Memory, Outcome, Program, program
from collegium.tuning.conversation import Conversation, averaging
from collegium.tuning.conversation import passes as passes_of
from collegium.tuning.learner import Choice, Learner
from collegium.tuning.losses import LOSSES, Doubles

FEWEST = 10
"""Labelled items, below which nothing can be held out."""
_ENOUGH = 20
"""Items per agent from which more than one direction is worth its messages."""


@dataclass(frozen=True, eq=False)
class Tuning:
    """Gains that agents learned by conversation, what held-out items said of them, and what it cost.

    Errors are shares of `held_out_items`, none of which the figure beside it was fitted to.
    """

    gains: Doubles
    """How much each agent counts, shape (K,), or (K, C) with `per_class`."""
    shifts: Doubles
    """What each agent's scores lose before that, shape (K,) or (K, C): the common threshold, shared out."""
    kept: str
    """What is used: "tuned"; or "as it was", "equal" or "best agent", if the tuned gains were not better."""
    best_agent: int
    labelled_items: int
    held_out_items: int
    error_before: float
    error_equal: float
    error_best: float
    """Of the best agent alone, chosen by other items than it is judged by."""
    error_tuned: float
    conversations: int
    rows: int
    """Items of all conversations together: what was averaged."""
    transmissions: int
    bits: int
    largest_deviation: float
    """How inexact the averages were, see `Conversation`."""
    classes: int = 2
    constant: tuple[int, ...] = ()
    """Agents whose scores of the labelled items are all the same: they say nothing."""
    agreed: bool = True
    """Whether all agents chose alike. Where averages are too inexact they may not; then all keep the gains they had."""

    @property
    def error_after(self) -> float:
        """Of what is used, on the held-out items."""
        by = {"tuned": self.error_tuned, "as it was": self.error_before, "equal": self.error_equal}
        return by.get(self.kept, self.error_best)

    def __call__(self, scores: ArrayLike) -> Doubles:
        """What enters the network, shaped like the scores (n, K) or (n, K, C): gain · (score - shift)."""
        start = ScorePipeline(np.ones(len(self.gains)), classes=self.classes)
        return self.apply(start)(scores)

    def apply(self, pipeline: ScorePipeline) -> ScorePipeline:
        """A pipeline with these gains in place of its own."""
        return replace(pipeline, center=pipeline.center + self.shifts, gain=self.gains)


def tune(
    scores: ArrayLike,
    y: ArrayLike,
    schedule: Schedule,
    rounds: int | None = None,
    rule: Rule | None = None,
    *,
    loss: str = "logistic",
    per_class: bool = False,
    conversations: int | None = None,
    start: ArrayLike | None = None,
    passes: int | None = None,
    away: Sequence[int] = (),
    links: Links = Perfect(),
    mailbox: Mailbox = HoldLast(),
    seed: int = 0,
) -> Tuning:
    """Let agents learn how much each should count, by the averages of labelled items and nothing else.

    scores: of labelled items, (n, K), or (n, K, C) of C > 2 classes, as they enter the network with gain 1; NaN where
        an agent has no view.
    y: +1 / -1, or places 0 … C-1.
    schedule, rounds, rule, links, mailbox, seed: the averaging, as in `collaborate`; `schedule.exact(K)` is cheapest.
        A policy without rounds and rule is averaged by its eigenvalues, exactly and in few rounds.
    passes: how often agents average again what they heard; unless told, until it is within 1 % of the limit.
    away: agents that take no part. Their neighbours leave their messages out, as live ones do, and they keep their
        gains; the others tune without them.
    loss: "logistic" or "ridge".
    per_class: a gain per agent and class.
    conversations: directions to go, 1 with few items and 4 from 20 items per agent on unless told.
    start: gains as they stand, (K,) or (K, C), to go on from; 1 unless told.

    >>> from collegium import schedule
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(rng.random(300) < 0.5, 1, -1)
    >>> x = np.array([1.0, 0.9, 0.1, -1.0]) * y[:, None] + rng.normal(size=(300, 4))  # the last has it the wrong way
    >>> tuning = tune(x[:100], y[:100], schedule.exact(4))
    >>> tuning.kept, bool(tuning.gains[3] < 0), tuning.error_tuned < tuning.error_before
    ('tuned', True, True)
    """
    validate_schedule(schedule, 0)
    x = check_scores_of_classes(np.nan_to_num(np.asarray(scores, np.float64), nan=0.0), schedule.size)
    n, K, d = x.shape
    gains = np.ones(K) if start is None else np.asarray(start, np.float64)
    if gains.shape not in ((K,), (K, d)) or not np.isfinite(gains).all():
        raise ScoreError(f"start must be {K} finite gains, one per agent; got {start!r:.80}")
    if gains.ndim == 2 and not per_class:
        raise ScoreError("these gains are per agent and class: tune them with per_class=True")
    learner = learner_of(y, n, 2 if d == 1 else d, K, conversations, loss, fresh=bool((gains == 1).all()))
    present = [k for k in range(K) if k not in set(away)]
    over = averaging(schedule if not away else without(schedule, away), rounds, rule, links)
    if passes is None:
        passes = passes_of(over, own_rounds(over) if rounds is None else rounds, rule)
    passes = whole_number(passes, "passes", ScoreError, at_least=1)
    talk = Conversation(over, rounds, rule, links, mailbox, seed, passes)
    memory: Memory = {}
    outcomes = run_together(
        [
            program(
                k,
                x[:, k],
                learner,
                gain=gains[k],
                per_class=per_class and d > 1,
                bound=talk.bound,
                verify=not talk.is_exact,
                memory=memory,
            )
            for k in present
        ],
        talk,
    )
    constant = tuple(k for k in np.flatnonzero(np.ptp(x, axis=0).max(axis=-1) == 0).tolist() if k in present)
    return summary(outcomes, talk, learner, gains, constant, present)


def without(schedule: Schedule, away: Sequence[int]) -> Policy:
    """The network that is left when agents are away: whoever heard them gives more weight to the others."""
    K = schedule.size
    if not isinstance(schedule, Policy):
        raise PolicyError("agents may be away from a network whose links are always the same, a Policy, only")
    for k in away:
        whole_number(k, "an agent that is away", PolicyError, at_least=0, at_most=K - 1)
    present = [k for k in range(K) if k not in set(away)]
    A = np.asarray(schedule.A)[np.ix_(present, present)]
    if not present or not (A.sum(axis=0) > 0).all():
        raise PolicyError(f"without {len(set(away))} of {K} agents one or more hear nobody: nothing can be tuned")
    return Policy(A / A.sum(axis=0))


def learner_of(
    y: ArrayLike,
    n: int,
    classes: int,
    agents: int,
    conversations: int | None = None,
    loss: str = "logistic",
    fresh: bool = True,
) -> Learner:
    """What all agents must agree on before they begin; labels that nothing can be learned from are refused."""
    labels: NDArray[Any] = to_signs(y, n, classes=(1, -1)) if classes == 2 else to_places(y, n, classes)
    if n < FEWEST:
        raise LabelError(f"tuning needs at least {FEWEST} labelled items, some of which are held out; got {n}")
    present, counts = np.unique(labels, return_counts=True)
    if len(present) < 2:
        raise LabelError(f"tuning needs labelled items of at least two classes; all {n} are of one")
    if len(present) == 2 and counts.min() < 2:
        raise LabelError(f"tuning needs at least 2 items of each class; one of the two has {counts.min()} of {n}")
    if loss not in LOSSES:
        raise ScoreError(f"loss must be one of {', '.join(LOSSES)}; got {loss!r}")
    if conversations is None:
        conversations = 4 if n >= _ENOUGH * agents else 1
    conversations = whole_number(conversations, "conversations", ScoreError, at_least=1, at_most=100)
    return Learner(np.asarray(labels), classes, agents, conversations, loss, fresh)


def run_together(programs: list[Program], talk: Conversation) -> list[Outcome]:
    """Agents side by side until all are done: what each yields is averaged by the network."""
    outcomes: list[Outcome] = []
    said = [next(one) for one in programs]
    while not outcomes:
        heard = talk.average(np.stack(said, axis=1))
        said = []
        for k, one in enumerate(programs):
            try:
                said.append(one.send(heard[:, k]))
            except StopIteration as done:
                outcomes.append(done.value)
    return outcomes


def summary(
    outcomes: list[Outcome],
    talk: Conversation,
    learner: Learner,
    before: Doubles,
    constant: tuple[int, ...],
    present: list[int],
) -> Tuning:
    """What K agents were left with; gains as they were for all if those present did not all choose alike."""
    choice: Choice = outcomes[0].choice
    agreed = all(one.agreed and one.choice.code == choice.code for one in outcomes)
    found, moved = np.array([one.gain for one in outcomes]), np.array([one.shift for one in outcomes])
    gains, shifts = np.empty((len(before), *found.shape[1:])), np.zeros((len(before), *moved.shape[1:]))
    gains[:] = before if before.ndim == gains.ndim else before[:, None]
    if agreed:
        gains[present], shifts[present] = found, moved
    else:
        gains, choice = before, choice._replace(kept="as it was")
    return Tuning(
        gains, shifts, choice.kept, choice.agent, len(learner.y), choice.items,
        choice.error_before, choice.error_equal, choice.error_best, choice.error_tuned,
        talk.conversations, talk.rows, talk.transmissions, talk.bits, talk.largest_deviation, learner.classes, constant,
        agreed,
    )  # fmt: skip
