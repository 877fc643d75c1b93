"""`Conversation`: averages over the network, as the agents hear them, with what they cost."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from collegium.errors import PolicyError
from collegium.links import Links, Perfect
from collegium.network import collaborate
from collegium.policy import Policy
from collegium.protocol import Averaging, HoldLast, Mailbox, Quantised, Rule
from collegium.schedule.base import Schedule, own_rounds
from collegium.schedule.eigenvalue_steps import eigenvalue_steps
from collegium.tuning.losses import Doubles

CLOSE = 0.01
"""How far averages may be from the limit: so close, gains are as good as those of exact averages."""


def averaging(schedule: Schedule, rounds: int | None, rule: Rule | None, links: Links) -> Schedule:
    """How agents average unless they are told how: in the fewest rounds that reach a policy's limit exactly."""
    if rounds is None and rule is None and isinstance(schedule, Policy) and isinstance(links, Perfect):
        try:
            return eigenvalue_steps(schedule)
        except PolicyError:  # too large, or too ill-conditioned
            pass
    return schedule


def passes(schedule: Schedule, rounds: int, rule: Rule | None) -> int:
    """How often agents must average again what they heard, until it is close to the limit."""
    if not isinstance(schedule, Policy) or not isinstance(rule, Averaging | Quantised | None) or schedule.size == 1:
        return 1
    left = abs(schedule.slem) ** rounds
    return 1 if left <= CLOSE else min(1000, int(np.ceil(np.log(CLOSE) / np.log(min(left, 0.9999)))))


@dataclass
class Conversation:
    """Runs of `collaborate` about rows of numbers, counted.

    Each conversation is about as many rows as agents want to know the averages of; row i of conversation j is an item
    of its own, so draws and losses are as live. `schedule`, `rounds`, `rule`, `links`, `mailbox` are `collaborate`'s.
    `passes`: how often the agents average again what they heard, where one run leaves them too far from the average.
    """

    schedule: Schedule
    rounds: int | None = None
    rule: Rule | None = None
    links: Links = Perfect()
    mailbox: Mailbox = HoldLast()
    seed: int = 0
    passes: int = 1
    conversations: int = field(default=0, init=False)
    rows: int = field(default=0, init=False)
    transmissions: int = field(default=0, init=False)
    bits: int = field(default=0, init=False)
    largest_deviation: float = field(default=0.0, init=False)
    """The largest distance of what an agent heard from the average that the network tends to, in units of the largest
    number heard in that conversation: 0 where averages are exact."""

    @property
    def is_exact(self) -> bool:
        """Whether all agents hear the same, up to rounding: by a schedule that has a rule of its own."""
        return self.schedule.rule is not None and isinstance(self.links, Perfect) and np.isinf(self.bound)

    @property
    def bound(self) -> float:
        """The largest number that may be sent; infinite for rules at full precision."""
        rule = self.rule or getattr(self.schedule, "rule", None)
        rounds = own_rounds(self.schedule) if self.rounds is None else self.rounds
        most = float("inf") if rule is None else float(rule.max_score(rounds))
        return most if most < 1e100 else float("inf")

    def average(self, values: Doubles) -> Doubles:
        """What each agent hears, shape (rows, K, d), of what the agents say, of the same shape."""
        heard = values
        for again in range(self.passes):
            heard = self._run(np.clip(heard, -self.bound, self.bound) if again else heard, again)
        self.conversations += 1
        self.rows += len(values)
        most = float(np.abs(heard).max(initial=0.0))
        if most:
            K = values.shape[1]
            weights = self.schedule.perron if isinstance(self.schedule, Policy) else self._limit(K)
            exact = np.einsum("rkd,k->rd", values, weights)[:, None]
            apart = float(np.abs(heard - exact).max()) / most
            self.largest_deviation = max(self.largest_deviation, apart if apart > 1e-12 else 0.0)
        return np.asarray(heard)

    def _limit(self, K: int) -> Doubles:
        policy = getattr(self.schedule, "policy", None)
        return policy.perron if isinstance(policy, Policy) else np.full(K, 1 / K)

    def _run(self, values: Doubles, again: int) -> Doubles:
        rows, _, d = values.shape
        run = collaborate(
            values[..., 0] if d == 1 else values,
            self.schedule,
            self.rounds,
            self.rule,
            self.seed,
            links=self.links,
            mailbox=self.mailbox,
            record="final",
            items=[f"tuning {self.conversations} {again} {i}" for i in range(rows)],
        )
        self.transmissions += int(run.transmissions.sum())
        self.bits += int(run.bits.sum())
        return np.asarray(run.statistics[-1].reshape(values.shape))
