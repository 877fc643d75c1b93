"""The weights of scores and of rounding errors in every statistic, round by round: what the bounds are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium.errors import AssumptionError
from collegium.network import collaborate
from collegium.policy import Policy
from collegium.protocol import Ceca, Chebyshev, Polynomial, PushSum, Quantised, Rule
from collegium.protocol.averaging import is_degroot
from collegium.protocol.polynomial import TwoTerms
from collegium.schedule import Alternating, EigenvalueSteps, Schedule, own_rounds, own_rule
from collegium.theory.bound import CONNECTED, FOLLOWED, primitive
from collegium.theory.disturbed import Disturbed

Doubles = NDArray[np.float64]
_MOST_NUMBERS = 10**7  # that are kept at once
MOST = 1024
"""Agents for which every pair is looked at."""


@dataclass(frozen=True, eq=False)
class Mixing:
    r"""What a linear rule makes of the scores on a schedule: $x_{k,t} = \sum_\ell w^t_{\ell k} c_\ell$.

    For DeGroot w^t is the product of the rounds' matrices, $A_1 \cdots A_t$; the theorems ask nothing else of $A^t$.
    """

    network: Schedule
    rule: Rule
    weights: Doubles
    """Shape (rounds+1, K, K)."""
    limit: Doubles
    """The weights in the aggregate whose margin is δ, shape (K,): those that agents tend to."""
    sent: NDArray[np.int64]
    """Messages in each round, shape (rounds,)."""

    @property
    def powers_of_A(self) -> bool:
        """Whether this is the paper's case, DeGroot on a network that is the same in all rounds."""
        return isinstance(self.network, Policy) and is_degroot(self.rule)

    @property
    def assumption(self) -> str:
        """What is assumed of the network."""
        return CONNECTED if self.powers_of_A else FOLLOWED

    def transient(self, sigma: float | None = None) -> Doubles:
        r"""$\sum_\ell |w^t_{\ell k} - w_\ell|$, shape (rounds+1, K); with σ the paper's bound of it."""
        if sigma is None:
            return np.asarray(np.abs(self.weights - self.limit[:, None]).sum(axis=-2))
        if not self.powers_of_A:
            raise AssumptionError(
                "a rate σ belongs to DeGroot on a network that is the same in all rounds: leave it out"
            )
        return transient(self.network, self.weights, sigma)  # type: ignore[arg-type]

    def rounding_gain(self) -> Doubles:
        """The squared weights of all rounding errors so far in each statistic, added up: shape (rounds+1, K).

        Found by running the rule with one message off by one, for every agent and round.
        """
        if self.powers_of_A:
            heard = squares(self.weights)
            heard[0] = 0.0  # nothing is sent before the first round
            return np.asarray(np.cumsum(heard, axis=0))
        if type(self.rule) is PushSum:
            raise AssumptionError(
                "messages of PushSum grow with the number of agents and cannot be rounded: use DeGroot"
            )
        rounds, K = len(self.weights) - 1, self.network.size
        gain = np.zeros((rounds + 1, K))
        together = max(1, _MOST_NUMBERS // ((rounds + 1) * K**2))
        for first in range(1, rounds + 1, together):
            some = range(first, min(first + together, rounds + 1))
            off = np.concatenate([t * np.eye(K) for t in some])
            gain += squares(collaborate(off, self.network, rounds, Disturbed(self.rule)).statistics)
        return gain

    def widening(self, bits: Doubles) -> Doubles:
        """How many times the range of the scores a quantiser of so many bits must have: 1 where weights are convex."""
        rounds = len(self.weights) - 1
        if not isinstance(self.rule, TwoTerms):
            return np.ones_like(bits)
        shares = [
            Quantised(self.rule, int(min(b, 32)), 1.0).prepared(self.network, rounds).max_score(rounds)
            for b in bits.ravel()
        ]
        if min(shares) <= 0:
            raise AssumptionError(
                f"{bits.min():g} bits are too few for {type(self.rule).__name__} over {rounds} rounds: its messages "
                "outgrow any quantiser"
            )
        return np.reshape(1 / np.array(shares), bits.shape)


def mixing(network: Schedule | Any, rounds: int, rule: Rule | None = None) -> Mixing:
    """The weights of every round, for a policy or a schedule, and a linear rule: that of the schedule, or DeGroot."""
    rounds = whole_number(rounds, "rounds", AssumptionError)
    over, rule = _linear(network, rule)
    if isinstance(over, Policy) and is_degroot(rule):
        return Mixing(over, rule, powers(over, rounds), over.perron, np.full(rounds, over.links))
    _check_size(over.size)
    rule = rule.prepared(over, rounds)
    run = collaborate(np.eye(over.size), over, rounds, rule)
    return Mixing(over, rule, run.statistics, _limit(over, rule, run.statistics), run.transmissions_by_round[:, 0])


def limit_weights(network: Schedule | Any, rule: Rule | None = None) -> tuple[Doubles, str]:
    """The weights that agents tend to, shape (K,), and what is assumed of the network."""
    over, rule = _linear(network, rule)
    if isinstance(over, Policy) and is_degroot(rule):  # of any size
        return over.perron, CONNECTED
    return mixing(over, own_rounds(over), rule).limit, FOLLOWED


def is_linear(rule: Rule) -> bool:
    """Whether a rule combines scores linearly, with the same weights for all items, at full precision."""
    return is_degroot(rule) or type(rule) in (Ceca, Polynomial, Chebyshev, PushSum)


def _linear(network: Schedule | Any, rule: Rule | None) -> tuple[Schedule, Rule]:
    over: Schedule = network if isinstance(network, Schedule) else primitive(network)
    rule = own_rule(over) if rule is None else rule
    if not is_linear(rule):
        raise AssumptionError(
            "there is a guarantee for DeGroot, Ceca, Chebyshev, PushSum and eigenvalue steps, which combine scores "
            f"linearly, but none for {rule}"
        )
    return over, rule


def _limit(over: Schedule, rule: Rule, weights: Doubles) -> Doubles:
    equal = np.full(over.size, 1 / over.size)
    if type(rule) in (Ceca, PushSum):
        return equal
    if type(over) is EigenvalueSteps:
        return over.policy.perron
    if isinstance(over, Policy):
        return over.perron
    if type(over) is Alternating:
        product = collaborate(np.eye(over.size), over, len(over.networks), record="final").statistics[-1]
        for _ in range(60):
            product = product @ product
            product /= product.sum(axis=0)
        if np.abs(product - product[:, :1]).max() > 1e-9:
            raise AssumptionError("the agents of these alternating networks do not come to agree: there is no limit")
        return np.ascontiguousarray(product[:, 0])
    if np.abs(weights.sum(axis=-1) - 1).max() > 1e-9:
        raise AssumptionError(
            f"what agents tend to on {over!r:.60} is not known: its rounds do not keep the plain average. There is a "
            "guarantee where rows and columns of every round's weights sum to 1"
        )
    return equal


def _check_size(K: int) -> None:
    if K > MOST:
        raise AssumptionError(f"the bound looks at every pair of agents: at most {MOST}, and here are {K}")


def powers(policy: Policy, rounds: int) -> Doubles:
    """A to the powers 0, …, rounds: shape (rounds+1, K, K)."""
    rounds = whole_number(rounds, "rounds", AssumptionError)
    _check_size(policy.size)
    A = policy.power(1)
    out = np.empty((rounds + 1, *A.shape))
    out[0] = np.eye(policy.size)
    for t in range(rounds):
        out[t + 1] = out[t] @ A
    return out


def squares(weights: Doubles) -> Doubles:
    r"""$\sum_\ell (w_{\ell k})^2$ for weights (…, K, K): shape (…, K)."""
    return np.asarray((weights**2).sum(axis=-2))


def transient(policy: Policy, weights: Doubles, sigma: float | None) -> Doubles:
    r"""What bounds $\sum_\ell |[A^t]_{\ell k} - \pi_\ell|$, shape (rounds+1, K).

    With a rate σ it is the paper's $K C(A, \sigma) \sigma^t$, the same for all agents. Without one it is the sum
    itself, which no choice of σ can beat: the first line of the paper's own proof.
    """
    if sigma is None:
        return np.asarray(np.abs(weights - policy.perron[:, None]).sum(axis=-2))
    if not isinstance(sigma, (int, float, np.floating)) or not policy.slem < sigma < 1:
        raise AssumptionError(f"σ must lie between σ_A = {policy.slem:.6g} and 1; got {sigma!r}")
    decay = policy.size * policy.mixing_constant(sigma) * sigma ** np.arange(len(weights))
    return np.broadcast_to(decay[:, None], weights.shape[:2])
