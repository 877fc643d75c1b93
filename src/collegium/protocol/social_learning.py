"""Social learning with a static observation: evidence is added again every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.protocol.base import Floats, Inbox, Outbox, Rule, completed, message_width
from collegium.protocol.combine import WeightedMean


class Accumulated(NamedTuple):
    score: Floats
    x: Floats


@dataclass(frozen=True)
class SocialLearning(Rule[Accumulated]):
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

    def width(self, d: int) -> int:
        return message_width(d)

    def init(self, seat: Seat, scores: Floats) -> Accumulated:
        score = scores[:, : self.width(scores.shape[1])]
        return Accumulated(score, np.zeros_like(score))

    def emit(self, seat: Seat, state: Accumulated, draws: Draws) -> tuple[Outbox, Accumulated]:
        return Outbox(state.x + state.score), state

    def absorb(self, seat: Seat, state: Accumulated, inbox: Inbox) -> Accumulated:
        return state._replace(x=WeightedMean()(inbox.values, inbox.weights, inbox.own))

    def statistic(self, state: Accumulated) -> Floats:
        return completed(state.x)

    def message_growth(self, rounds: int) -> float:
        return float(max(rounds, 1))
