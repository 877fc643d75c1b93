"""Social learning with a static observation: evidence is added again every round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from collegium._util.randomness import Draws
from collegium.protocol.base import Rule, weighted_sum
from collegium.rule_settings import Settings


class Accumulated(NamedTuple):
    score: float
    statistic: float


@dataclass(frozen=True)
class SocialLearning(Rule):
    r"""Geometric pooling of beliefs in the log domain, each agent reusing its one observation every round.

    $$ \lambda_{k,t} = \sum_{\ell} a_{\ell k} (\lambda_{\ell,t-1} + c_\ell), \qquad \lambda_{k,0} = 0 $$

    $\lambda_{k,t}/t$ converges to the same limit as DeGroot, so the labels agree in the end; early rounds weigh
    past and present alike. Before the first round nobody has an opinion: the statistic is 0.
    [hu2026, App. F]

    >>> import collegium
    >>> from collegium import policy, topology
    >>> p = policy.uniform(topology.complete(2))
    >>> collegium.collaborate([[1.0, 3.0]], p, rounds=2, rule=SocialLearning()).statistics[:, 0, 0]
    array([0., 2., 4.])
    """

    def init(self, score: float) -> Accumulated:
        return Accumulated(score, 0.0)

    def emit(self, state: Accumulated, rng: Draws) -> tuple[float | None, Accumulated]:
        return state.statistic + state.score, state

    def absorb(self, state: Accumulated, inbox: Sequence[float], weights: Sequence[float]) -> Accumulated:
        return state._replace(statistic=weighted_sum(inbox, weights))

    def statistic(self, state: Accumulated) -> float:
        return state.statistic

    def message_growth(self, rounds: int) -> float:
        return float(max(rounds, 1))

    @property
    def settings(self) -> Settings:
        return Settings(accumulate=True)
