"""Averaging with a memory of one round: the statistics are polynomials of the network's matrix."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number
from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import Floats, Inbox, Outbox, Rule, completed, message_width
from collegium.protocol.combine import WeightedMean

if TYPE_CHECKING:
    from collegium.policy import Policy

Step = tuple[float, float, float]
MOST_ROUNDED = 256


class Remembering(NamedTuple):
    x: Floats
    """The numbers of the statistic that travel, shape (n, w)."""
    before: Floats
    """What this agent sent in the round before, shape (n, w)."""
    done: NDArray[np.int64]
    """How many rounds are done, shape (n,)."""


class TwoTerms(Rule[Remembering]):
    r"""Rules that combine what neighbours sent with what the agent itself sent in this round and in the one before:

    $$ x_{k,t} = \alpha_t \sum_\ell a_{\ell k} x_{\ell,t-1} + \beta_t x_{k,t-1} + \gamma_t x_{k,t-2},
       \qquad \alpha_t + \beta_t + \gamma_t = 1 $$

    Every term is a value as it was sent, rounded if messages are: so a rounding error is treated as the numbers are.
    """

    growth: float | None
    """How many times the largest score a message can become; None: not known."""
    rounding: float | None
    """How many times the error of one rounded message a message can be off; None: not known."""

    @abstractmethod
    def step(self, t: int) -> Step:
        """α, β and γ of round t."""

    def prepared(self, schedule: Any, rounds: int, rounded: bool = False) -> TwoTerms:
        if not rounded or self.rounding is not None:
            return self
        growth, rounding = message_sizes(getattr(schedule, "policy", schedule), self, rounds)
        return replace(self, growth=growth, rounding=rounding)  # type: ignore[type-var]

    def message_growth(self, rounds: int) -> float:
        return 1.0 if self.growth is None else self.growth

    def rounding_growth(self, rounds: int) -> float:
        return math.inf if self.rounding is None else self.rounding

    def width(self, d: int) -> int:
        return message_width(d)

    def init(self, seat: Seat, scores: Floats) -> Remembering:
        x = scores[:, : self.width(scores.shape[1])]
        return Remembering(x, np.zeros_like(x), np.zeros(len(x), np.int64))

    def emit(self, seat: Seat, state: Remembering, draws: Draws) -> tuple[Outbox, Remembering]:
        return Outbox(state.x), state

    def absorb(self, seat: Seat, state: Remembering, inbox: Inbox) -> Remembering:
        if not len(state.done):
            return state
        alpha, beta, gamma = self.step(int(state.done[0]) + 1)  # a batch is of one round
        heard = WeightedMean()(inbox.values, inbox.weights, inbox.own)
        x = alpha * heard + beta * inbox.own + gamma * state.before
        return Remembering(x, inbox.own, state.done + 1)

    def statistic(self, state: Remembering) -> Floats:
        return completed(state.x)


@dataclass(frozen=True)
class Polynomial(TwoTerms):
    """Given steps (α, β, γ), one a round; when they are done, statistics stay as they are.

    steps: of every round, summing to one; γ is 0 in the first.
    growth, rounding: how many times the largest score a message can become on the network it is for, and how many times
        the error of a rounded message it can be off; found out where messages are rounded.

    It is the rule that `schedule.eigenvalue_steps` brings.
    """

    steps: tuple[Step, ...]
    growth: float | None = None
    rounding: float | None = None

    def __post_init__(self) -> None:
        what = "the steps of a polynomial"
        try:
            steps = tuple(tuple(real_number(c, what, RuleError) for c in step) for step in self.steps)
        except TypeError:
            steps = ()
        if not steps or any(len(step) != 3 or abs(sum(step) - 1) > 1e-6 * max(map(abs, step)) for step in steps):
            raise RuleError(f"{what} are three numbers a round that sum to 1, got {self.steps!r:.80}")
        if steps[0][2]:
            raise RuleError(f"{what} remember nothing before the first round: its third number must be 0")
        object.__setattr__(self, "steps", steps)

    def __repr__(self) -> str:
        return f"Polynomial({len(self.steps)} steps)"  # dozens of numbers tell nobody anything

    def step(self, t: int) -> Step:
        return self.steps[t - 1] if t <= len(self.steps) else (0.0, 1.0, 0.0)


@lru_cache(64)
def message_sizes(policy: Policy, rule: TwoTerms, rounds: int) -> tuple[float, float]:
    """How many times the largest score, and the error of one rounded message, messages can become in so many rounds.

    Exactly: the largest sums of |weights|, of the scores in a message and of the errors of all messages before it.
    """
    if policy.size > MOST_ROUNDED:
        raise RuleError(
            f"how far rounded messages of {type(rule).__name__} can be off is found out for at most {MOST_ROUNDED} "
            f"agents, and here are {policy.size}: use DeGroot, or full precision"
        )
    K, columns = policy.size, policy.sparse.T.tocsr()
    one, zero = np.eye(K), np.zeros((K, K))
    growth, rounding = 1.0, 0.0
    signal, errors = (one, zero), list[tuple[Floats, Floats]]()  # weights now and in the round before, transposed
    for t in range(1, rounds):  # what is not sent any more may be larger
        alpha, beta, gamma = rule.step(t)
        errors = [*errors, (one, zero)]
        signal, *errors = [
            (alpha * (columns @ now) + beta * now + gamma * before, now) for now, before in (signal, *errors)
        ]
        growth = max(growth, _widest(signal[0]))
        rounding = max(rounding, sum(_widest(now) for now, _ in errors))
    return growth, rounding


def _widest(weights: Floats) -> float:
    return float(np.abs(weights).sum(axis=1).max())
