"""Fast paths for rules of exact types, chosen by the loop, never by a rule; `collegium.check_rule` proves them equal.

A kernel is registered for a type and serves no subclass of it: what a subclass changed, no kernel knows of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from collegium.kernels.job import Job, Recorded
from collegium.links import Lossy, Perfect
from collegium.policy import Policy
from collegium.protocol import DeGroot, DeltaTrigger, HoldLast, LabelStability, Quantised, Renormalise, Rule
from collegium.protocol.averaging import Averaging
from collegium.protocol.codec import Float64, Quantise
from collegium.protocol.combine import WeightedMean
from collegium.protocol.social_learning import SocialLearning
from collegium.protocol.trigger import Always, Delta, LabelStable

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
    found = numbers(rule)
    if found is None or not (_serves(job) or _serves_losses(job)):
        return None
    try:
        from collegium.kernels import averaging
    except ImportError:  # numba is not there: the rule itself is as right
        return None
    return lambda job: averaging.run(averaging.arrays(job), found)


def find_sweep(job: Job, rules: Sequence[Rule]) -> Callable[[Job, list[int], Any], Any] | None:
    """The fast path for many rules at once, if there is one for all of them."""
    found = [numbers(rule) for rule in rules]
    known = [one for one in found if one is not None]
    if len(known) < len(rules) or not _serves(job):
        return None
    try:
        from collegium.kernels import averaging
    except ImportError:
        return None
    return lambda job, seeds, labels: averaging.sweep(averaging.arrays(job), known, seeds, labels)


def _serves(job: Job) -> bool:
    return type(job.links) is Perfect and type(job.mailbox) in (HoldLast, Renormalise)


def _serves_losses(job: Job) -> bool:
    """Links that lose a part of the messages, on a network that does not change."""
    lossy = type(job.links) is Lossy and job.links.loss * 2.0**32 <= 2**32 - 1
    return lossy and type(job.schedule) is Policy and _serves(job._replace(links=Perfect()))
