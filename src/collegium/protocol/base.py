"""`Rule`: what one agent does with its score, what it hears and what it says. It knows nothing of the wire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from collegium._util.randomness import Draws
from collegium.rule_settings import Settings

if TYPE_CHECKING:
    from collegium.kernels import Outcome
    from collegium.network import Job


NUMBER_BITS = 64
"""The size of a number that is sent as it is."""


class Rule(ABC):
    """One agent's side of a protocol, as pure functions of a state.

    A round is: every agent calls `emit`; what it returns goes to everyone who hears the agent, itself included
    (None means silence, and the mailbox says what a missing message stands for); then every agent calls
    `absorb` with one value per agent it hears, in ascending order. The same object serves a simulation and a
    live network. Rules are frozen and compare by value: make yours a frozen dataclass, then run
    `collegium.check_rule` on it.
    """

    @abstractmethod
    def init(self, score: float) -> Any:
        """The state before the first round, from the agent's own local statistic."""

    @abstractmethod
    def emit(self, state: Any, rng: Draws) -> tuple[float | None, Any]:
        """What the agent says this round and its state after saying it; None is silence, not allowed in round 1."""

    @abstractmethod
    def absorb(self, state: Any, inbox: Sequence[float], weights: Sequence[float]) -> Any:
        """The state after hearing `inbox`, one value per agent heard, with the agent's weight for each."""

    @abstractmethod
    def statistic(self, state: Any) -> float:
        """The number whose sign is the agent's label."""

    def sent(self, state: Any, value: float) -> Any:
        """The state knowing what really went out, where a wrapper changed the message after `emit`."""
        return state

    @property
    def message_bits(self) -> int:
        """The size of a message: 64 for a float, fewer for a quantised one."""
        return NUMBER_BITS

    def message_growth(self, rounds: int) -> float:
        """How many times the largest score a message can become within `rounds` rounds; averages never grow."""
        return 1.0

    def reach(self, rounds: int) -> float:
        """The largest score, in absolute value, the rule can take for that many rounds without any overflow."""
        return 1e300 / self.message_growth(rounds)

    @property
    def settings(self) -> Settings | None:
        """The numbers by which `collegium.kernels` runs this rule on arrays; None if it cannot."""
        return None

    def arrays(self, job: Job) -> Outcome | None:
        """The array path: the whole job at once, equal to the agents' view number for number; None if there is none."""
        settings = self.own_settings
        if settings is None:
            return None
        from collegium import kernels

        return kernels.run(job.arrays(), settings)

    @property
    def own_settings(self) -> Settings | None:
        """`settings`, unless they are inherited by a class that changed what they stand for."""
        changed = {"init", "emit", "absorb", "statistic", "sent"}
        for kind in type(self).__mro__:
            if "settings" in vars(kind):
                return self.settings
            if not changed.isdisjoint(vars(kind)):
                return None
        return None


class Averaged(NamedTuple):
    """The state of an averaging rule."""

    statistic: float


def weighted_sum(inbox: Sequence[float], weights: Sequence[float]) -> float:
    """The sum in the one order every path uses: as heard, ascending, in double precision."""
    total = 0.0
    for weight, value in zip(weights, inbox, strict=True):
        total += weight * value
    return total


def sign(x: float) -> int:
    """+1, -1, or 0."""
    return (x > 0) - (x < 0)
