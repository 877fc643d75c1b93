"""Repeated averaging of three parts: how values are combined, when they are sent, how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import Floats, Inbox, Outbox, Rule, completed, message_width
from collegium.protocol.codec import Codec, Float64, Quantise
from collegium.protocol.combine import Combine, WeightedMean
from collegium.protocol.trigger import Always, Delta, LabelStable, Trigger


class Averaged(NamedTuple):
    x: Floats
    """The numbers of the statistic that travel, shape (n, w)."""
    memory: Any
    """The trigger's."""


@dataclass(frozen=True)
class Averaging(Rule[Averaged]):
    r"""Keep replacing your statistic by a combination of your neighbours'.

    $$ x_{k,t} = \mathrm{combine}_{\ell}\, x^{sent}_\ell(t), \qquad x_{k,0} = c_k(h_k) $$

    where $x^{sent}_\ell(t)$ is what agent $\ell$ sent last: its statistic of the round before, as the codec writes
    it, if its trigger fired, else something older. An agent's own term is its own last *sent* value too.
    `DeGroot`, `DeltaTrigger` and `LabelStability` are this with parts of their own.

    >>> import collegium
    >>> from collegium import policy, protocol, topology
    >>> rule = Averaging(trigger=protocol.trigger.Delta(0.5), codec=protocol.codec.Quantise(bits=8, bound=2.0))
    >>> ring = policy.uniform(topology.ring(3))
    >>> int(collegium.collaborate([[1.0, 0.9, 1.1]], ring, rounds=20, rule=rule).bits[0])  # 6 messages of 8 bits
    48
    """

    combine: Combine = WeightedMean()
    trigger: Trigger = Always()
    codec: Codec = Float64()

    def __post_init__(self) -> None:
        for part, kind in (("combine", Combine), ("trigger", Trigger), ("codec", Codec)):
            if not isinstance(getattr(self, part), kind):
                raise RuleError(
                    f"the {part} of a rule must be a {kind.__name__} of collegium.protocol.{part}, "
                    f"got {getattr(self, part)!r}"
                )
        if self.codec.adds_noise and type(self.trigger) not in (Always, Delta):
            raise RuleError(
                f"{self.codec} hides scores only if silence does not depend on them: take Always() or Delta(), not "
                f"{self.trigger}"
            )

    def check_seats(self, seats: Sequence[Seat]) -> None:
        self.combine.check_seats(seats)

    def width(self, d: int) -> int:
        return message_width(d)

    def init(self, seat: Seat, scores: Floats) -> Averaged:
        x = scores[:, : self.width(scores.shape[1])]
        return Averaged(x, self.trigger.start(x))

    def emit(self, seat: Seat, state: Averaged, draws: Draws) -> tuple[Outbox, Averaged]:
        return Outbox(state.x, self.trigger.speaks(state.x, state.memory)), state

    def absorb(self, seat: Seat, state: Averaged, inbox: Inbox) -> Averaged:
        x = self.combine(inbox.values, inbox.weights, inbox.own)
        return Averaged(x, self.trigger.update(state.memory, state.x, x, inbox.own))

    def statistic(self, state: Averaged) -> Floats:
        return completed(state.x)


@dataclass(frozen=True)
class FixedParts(Averaging):
    """Averaging under a name of its own: the parts follow from the name and its settings, and are no settings."""

    combine: Combine = field(default=WeightedMean(), init=False, repr=False)
    trigger: Trigger = field(default=Always(), init=False, repr=False)
    codec: Codec = field(default=Float64(), init=False, repr=False)


def is_degroot(rule: Any) -> bool:
    """Whether a rule is DeGroot averaging at full precision and nothing else: what the paper's guarantees are of.

    A guarantee belongs to exact types: a subclass may do anything.
    """
    from collegium.protocol.degroot import DeGroot

    if type(rule) is DeGroot:
        return True
    parts = (WeightedMean, Always, Float64)
    return type(rule) is Averaging and (type(rule.combine), type(rule.trigger), type(rule.codec)) == parts


def tends_to_mean(rule: Any) -> bool:
    """Whether a rule, but for silence and rounding, averages with the network's weights: then its limit is known."""
    from collegium.protocol.degroot import DeGroot
    from collegium.protocol.delta_trigger import DeltaTrigger
    from collegium.protocol.label_stability import LabelStability
    from collegium.protocol.quantised import Quantised

    if type(rule) is Quantised:
        rule = rule.rule
    if type(rule) not in (Averaging, DeGroot, DeltaTrigger, LabelStability):
        return False
    sends, writes = type(rule.trigger) in (Always, Delta, LabelStable), type(rule.codec) in (Float64, Quantise)
    return type(rule.combine) is WeightedMean and sends and writes
