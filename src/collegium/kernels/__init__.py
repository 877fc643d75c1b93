"""Fast paths for rules of exact types, chosen by the loop, never by a rule; `collegium.check_rule` proves them equal.

A kernel is registered for a type and serves no subclass of it: what a subclass changed, no kernel knows of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from collegium.kernels.job import Job, Recorded
from collegium.links import Lossy, Perfect
from collegium.policy import Policy
from collegium.protocol import DeGroot, DeltaTrigger, HoldLast, LabelStability, Quantised, Renormalise, Rule
from collegium.protocol.averaging import Averaging
from collegium.protocol.ceca import Ceca
from collegium.protocol.chebyshev import Chebyshev
from collegium.protocol.codec import Float64, Quantise
from collegium.protocol.combine import WeightedMean
from collegium.protocol.polynomial import Polynomial, TwoTerms
from collegium.protocol.push_sum import PushSum
from collegium.protocol.running_sums import RunningSums
from collegium.protocol.social_learning import SocialLearning
from collegium.protocol.trigger import Always, Delta, LabelStable
from collegium.schedule.eigenvalue_steps import EigenvalueSteps
from collegium.schedule.exact import Exact

ALWAYS, DELTA, LABEL = 0, 1, 2


class Numbers(NamedTuple):
    """A rule as the compiled code wants it."""

    accumulate: bool = False
    trigger: int = ALWAYS
    limit: float = 0.0
    """The trigger's threshold or confidence."""
    patience: int = 0
    levels: int = 0
    """Of the quantiser; 0 at full precision."""
    bound: float = 0.0


def _averaging(rule: Averaging) -> Numbers | None:
    trigger = rule.trigger
    if type(rule.combine) is not WeightedMean:
        return None
    if type(trigger) is Always:
        return Numbers()
    if type(trigger) is Delta:
        return Numbers(trigger=DELTA, limit=trigger.threshold)
    if type(trigger) is LabelStable:
        return Numbers(trigger=LABEL, limit=trigger.confidence, patience=trigger.patience)
    return None


def _quantised(rule: Quantised) -> Numbers | None:
    inner = _TYPES.get(type(rule.rule))
    return None if inner is None else inner(rule.rule)


_TYPES: dict[type[Rule], Callable[[Any], Numbers | None]] = {
    Averaging: _averaging,
    DeGroot: _averaging,
    DeltaTrigger: _averaging,
    LabelStability: _averaging,
    SocialLearning: lambda rule: Numbers(accumulate=True),
    Quantised: _quantised,
}


def numbers(rule: Rule) -> Numbers | None:
    """What the compiled code needs to run a rule; None if it cannot."""
    of_type = _TYPES.get(type(rule))
    found = None if of_type is None else of_type(rule)
    codec = rule.codec
    if found is None or type(codec) not in (Float64, Quantise):
        return None
    return found._replace(levels=codec.levels, bound=codec.bound) if isinstance(codec, Quantise) else found


def find(job: Job, rule: Rule) -> Callable[[Job], Recorded] | None:
    """The fast path for this rule over this job, if there is one."""
    rule = rule.prepared(job.schedule, job.rounds)
    if job.liars is None:
        with_memory = _with_memory(job, rule) or _sums(job, rule)
        if with_memory is not None:
            return with_memory
    found = numbers(rule) if job.liars is None else None
    if found is None or not (_serves(job) or _serves_losses(job)) or not _remembers(job, found):
        return None
    try:
        from collegium.kernels import averaging
    except ImportError:  # numba is not there: the rule itself is as right
        return None
    return lambda job: averaging.run(averaging.arrays(job), found)


def _with_memory(job: Job, rule: Rule) -> Callable[[Job], Recorded] | None:
    """The fast path for rules that remember more than a statistic."""
    schedule = job.schedule
    if type(job.mailbox) is not HoldLast or not (type(job.links) is Perfect or _serves_averages_with_losses(job)):
        return None
    exact = type(schedule) is Exact and type(rule) is Ceca
    steps = (  # where the schedule ends before its rule, agents go on alone
        type(schedule) is EigenvalueSteps and type(rule) is Polynomial and len(rule.steps) <= max(schedule.rounds, 1)
    )
    if not (exact or steps or (type(schedule) is Policy and type(rule) in (Chebyshev, Polynomial))):
        return None
    try:
        from collegium.kernels import two_terms
    except ImportError:
        return None
    if isinstance(schedule, Exact):
        return lambda job: two_terms.run_exact(job, schedule)
    if isinstance(schedule, EigenvalueSteps):
        return lambda job: two_terms.run(job, cast(TwoTerms, rule), schedule.policy, schedule.rounds)
    return lambda job: two_terms.run(job, cast(TwoTerms, rule), cast(Policy, schedule), job.rounds)


def _serves_averages_with_losses(job: Job) -> bool:
    """Where the lost are left out and everybody counts itself, nothing of earlier messages is needed."""
    policy = job.schedule.policy if isinstance(job.schedule, EigenvalueSteps) else job.schedule
    if type(policy) is not Policy or job.mailbox != HoldLast():
        return False
    return _serves_losses(job._replace(schedule=policy)) and policy.links + policy.size == len(policy.weights)


def _sums(job: Job, rule: Rule) -> Callable[[Job], Recorded] | None:
    """The fast path for rules that give away what they have."""
    if type(rule) not in (PushSum, RunningSums) or type(job.schedule) is not Policy:
        return None
    if not (_serves(job) or _serves_losses(job)):
        return None
    try:
        from collegium.kernels import sums
    except ImportError:
        return None
    return lambda job: sums.run(job, type(rule) is RunningSums)


def find_sweep(job: Job, rules: Sequence[Rule]) -> Callable[[Job, list[int], Any], Any] | None:
    """The fast path for many rules at once, if there is one for all of them."""
    found = [numbers(rule) for rule in rules]
    known = [one for one in found if one is not None]
    if len(known) < len(rules) or not _serves(job) or not all(_remembers(job, one) for one in known):
        return None
    try:
        from collegium.kernels import averaging
    except ImportError:
        return None
    return lambda job, seeds, labels: averaging.sweep(averaging.arrays(job), known, seeds, labels)


def _serves(job: Job) -> bool:
    return type(job.links) is Perfect and type(job.mailbox) in (HoldLast, Renormalise)


def _remembers(job: Job, rule: Numbers) -> bool:
    """Compiled code knows what an agent sent last, not to whom: all have it if they hear it in every round."""
    return rule.trigger == ALWAYS or type(job.schedule) is Policy


def _serves_losses(job: Job) -> bool:
    """Links that lose a part of the messages, on a network that does not change."""
    lossy = type(job.links) is Lossy and job.links.loss * 2.0**32 <= 2**32 - 1
    return lossy and type(job.schedule) is Policy and _serves(job._replace(links=Perfect()))
