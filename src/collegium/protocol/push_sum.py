"""Push-sum: the plain average on directed networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.protocol.base import RECEIVED, Floats, Inbox, Outbox, Rule, completed, message_width

MOST_AGENTS = 2.0**31
LEAST = 1e-100
"""An agent that counts for less keeps what it has: halved on and on, it would vanish, and its statistic be 0."""


class Mass(NamedTuple):
    z: Floats
    """The agent's part of the sum of all scores and, last, of the number of agents, shape (n, w + 1)."""


@dataclass(frozen=True)
class PushSum(Rule[Mass]):
    r"""Everybody divides what it has among itself and its receivers; a second number counts along.

    $$ z_{k,t} = \sum_{\ell \to k} \frac{z_{\ell,t-1}}{1 + r_\ell}, \qquad z_{k,0} = (c_k, 1), \qquad
       \lambda_{k,t} = \frac{z^{(1)}_{k,t}}{z^{(2)}_{k,t}} $$

    where $r_\ell$ is how many hear agent $\ell$. Nothing is lost or added, so the sums over all agents stay and the
    ratio tends to the plain average on every strongly connected network, directed or not, changing or not. The
    network's weights play no part: use it where a directed network would weigh agents by accident.

    A message has one number more than a score. A lost message takes its mass with it: the statistics settle on an
    average with random weights. Over links that lose messages use `RunningSums`. Messages grow with the number of
    agents, which an agent need not know: they cannot be quantised. [kempe2003]

    >>> import collegium
    >>> from collegium import policy, topology
    >>> directed = policy.uniform(topology.erdos_renyi(5, links=9, seed=1))
    >>> collegium.collaborate([[1.0, 2.0, 3.0, 4.0, 5.0]], directed, rounds=60, rule=PushSum()).statistics[-1].round(6)
    array([[3., 3., 3., 3., 3.]])
    """

    def width(self, d: int) -> int:
        return message_width(d) + 1

    def init(self, seat: Seat, scores: Floats) -> Mass:
        return Mass(with_count(scores))

    def emit(self, seat: Seat, state: Mass, draws: Draws) -> tuple[Outbox, Mass]:
        share, kept = shared(state.z, len(seat.receivers))
        return Outbox(share), Mass(kept)

    def absorb(self, seat: Seat, state: Mass, inbox: Inbox) -> Mass:
        z = state.z
        for value, status in zip(inbox.values, inbox.status, strict=True):
            z = z + value * (status == RECEIVED)[:, None]
        return Mass(z)

    def statistic(self, state: Mass) -> Floats:
        return ratio(state.z)

    def message_growth(self, rounds: int) -> float:
        return MOST_AGENTS


def with_count(scores: Floats) -> Floats:
    """The numbers of the scores that travel, and a 1, shape (n, w + 1)."""
    x = scores[:, : message_width(scores.shape[1])]
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def shared(z: Floats, receivers: int) -> tuple[Floats, Floats]:
    """What an agent gives to each of its receivers, and what it keeps, each (n, w + 1)."""
    share = z / (1 + receivers)
    little = z[:, -1:] < LEAST
    return np.where(little, 0.0, share), np.where(little, z, share)


def ratio(z: Floats) -> Floats:
    """The statistic (n, d) from sums of scores and a count, shape (n, w + 1)."""
    return completed(z[:, :-1] / np.maximum(z[:, -1:], 1e-300))
