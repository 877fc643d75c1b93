"""`collaborate`: let the agents of a network exchange messages about n items for some rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from collegium import kernels
from collegium._util.arguments import whole_number
from collegium._util.randomness import Seed, item_ids, item_names, seed64
from collegium._util.scores import check_scores_of_classes
from collegium.errors import RuleError, ScoreError
from collegium.kernels.job import Floats, Job, Recorded
from collegium.links import Links, Perfect
from collegium.network._loop import reference_run
from collegium.network._run import Items, Run
from collegium.policy import Policy
from collegium.protocol import DeGroot, HoldLast, Mailbox, Rule
from collegium.schedule._validation import validate as validate_schedule
from collegium.schedule.base import Schedule, own_rounds
from collegium.trust.liars import Liars


def collaborate(
    scores: ArrayLike,
    schedule: Schedule,
    rounds: int | None = None,
    rule: Rule | None = None,
    rng: Seed = 0,
    *,
    links: Links = Perfect(),
    mailbox: Mailbox = HoldLast(),
    record: Literal["all", "final"] = "all",
    items: Items | None = None,
    liars: Liars | None = None,
) -> Run:
    """Let the agents of a network exchange messages about n items for some rounds.

    scores: shape (n, K), agent k's local statistic for each item, positive where it favours class +1; of d > 2
        classes, shape (n, K, d), log-probabilities less their mean over the classes.
    schedule: who hears whom in each round and how much it counts; a `Policy` is the same in all.
    rounds: those of the schedule if it has its own, as `schedule.exact` has, or 20.
    rule: what agents send and what they make of it, see `collegium.protocol`; that of the schedule, or DeGroot.
    rng: a seed or generator for rules that draw; the same seed gives the same numbers everywhere.
    links: what gets through, see `collegium.links`.
    mailbox: what a message that did not come stands for.
    record: "all" keeps the statistics of every round and who spoke, "final" only the last, for large networks.
    items: names of the items (whole numbers or strings), so that draws follow an item whatever the batch.

    liars: who lies in the run, and how, see `collegium.trust`; `run.honest` says whose decisions count.

    >>> from collegium import policy, topology
    >>> run = collaborate([[2.0, -1.0, -0.5], [1.0, 1.0, -0.5]], policy.uniform(topology.ring(3)), rounds=1)
    >>> run.decisions()
    array([[1, 1, 1],
           [1, 1, 1]], dtype=int8)
    >>> run
    Run(DeGroot(), 1 round, 2 items × 3 agents, 6 transmissions, 384 bits per item)
    """
    items = None if items is None else item_names(items)
    if rule is None:
        rule = getattr(schedule, "rule", None) or DeGroot()  # it may be no schedule at all
    rounds = own_rounds(schedule) if rounds is None else rounds
    job = validated(scores, schedule, rounds, [rule], rng, links=links, mailbox=mailbox, record=record, items=items)
    if liars is not None:
        if not isinstance(liars, Liars):
            raise RuleError(f"liars must be collegium.trust.Liars(agents, attack), got {liars!r:.60}")
        liars.validate(*job.scores.shape)
        job = job._replace(liars=liars)
    rule = rule.prepared(schedule, job.rounds)
    recorded = run_job(job, rule)
    statistics = recorded.statistics
    if statistics.shape[3] == 1:
        statistics = statistics[..., 0]
    return Run(
        statistics,
        recorded.costs,
        rule,
        schedule,
        items,
        job.seed,
        links=links,
        mailbox=mailbox,
        silences=recorded.spoke,
        liars=liars,
    )


def run_job(job: Job, rule: Rule) -> Recorded:
    """Run a rule by its fast path, if there is one, else by the rule itself."""
    fast = kernels.find(job, rule)
    return reference_run(job, rule) if fast is None else fast(job)


def validated(
    scores: ArrayLike,
    schedule: Schedule,
    rounds: int,
    rules: Sequence[Rule],
    rng: Seed,
    *,
    links: Links = Perfect(),
    mailbox: Mailbox = HoldLast(),
    record: str = "all",
    items: Items | None = None,
) -> Job:
    """The arguments of a run, checked: everything a user can get wrong is noticed here, before any round is run."""
    rounds = whole_number(rounds, "rounds", RuleError, at_most=2**31 - 1)
    validate_schedule(schedule, rounds)
    if record not in ("all", "final"):
        raise RuleError(f'record must be "all" or "final", got {record!r}')
    for rule in rules:
        if not isinstance(rule, Rule):
            raise RuleError(f"rule must be a Rule such as DeGroot(), got {rule!r}")
    if not isinstance(mailbox, Mailbox):
        raise RuleError(f"mailbox must be a Mailbox such as HoldLast(), got {mailbox!r}")
    if not isinstance(links, Links):
        raise RuleError(f"links must be Links such as links.Lossy(0.1), got {links!r}")
    values = check_scores_of_classes(scores, schedule.size)
    for rule in rules:
        _check_range(values, rule.prepared(schedule, rounds), rounds)
        if rounds and type(rule).check_seats is not Rule.check_seats:
            _check_seats(schedule, rounds, rule)
    ids = item_ids(items, len(values))
    ids.flags.writeable = False
    links.validate(schedule.size)
    return Job(values, schedule, rounds, seed64(rng), ids, links, mailbox, record == "final")


def _check_seats(schedule: Schedule, rounds: int, rule: Rule) -> None:
    known: list[Any] = []
    for t in range(1, 2 if type(schedule) is Policy else rounds + 1):
        seats = schedule.at(t)
        if not any(seats is one for one in known):  # the same object again needs no second look
            known = [*known[-64:], seats]
            rule.check_seats(seats)


def _check_range(scores: Floats, rule: Rule, rounds: int) -> None:
    most = rule.max_score(rounds)
    if not scores.size or max(scores.max(), -scores.min()) <= most:
        return
    i, k, j = np.unravel_index(int(np.abs(scores).argmax()), scores.shape)
    count = int(np.count_nonzero(np.abs(scores) > most))
    raise ScoreError(
        f"{rule} takes scores up to {max(most, 0.0):.6g} in {rounds} rounds, but {count} lie outside "
        f"(the largest: agent {k}, item {i} has {scores[i, k, j]:.6g}). "
        "Use a larger bound (or more bits), or bounded scores tanh(f/2)."
    )
