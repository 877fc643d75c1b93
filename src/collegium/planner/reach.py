"""How many rounds each way to average needs on a network until next to nothing of the disagreement is left."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.sparse import csgraph

from collegium import schedule
from collegium.errors import CollegiumError, PolicyError
from collegium.network import collaborate
from collegium.policy import Policy
from collegium.protocol import Chebyshev, DeGroot, Flood, PushSum, Rule
from collegium.schedule import Schedule, own_rounds

MOST_AGENTS = 100
_MOST_ROUNDS = 20_000
_PAIRWISE = "pairwise (a pair a round)"


class Reach(NamedTuple):
    """What one way to average takes on a network."""

    method: str
    rounds: int | None
    """Until at most a given share of the disagreement is left, whatever the scores; None: not within 20 000 rounds."""
    transmissions: int | None
    """Per item, in so many rounds."""
    numbers: int
    """In a message of two classes."""
    limit: str
    """What it tends to: the weighted mean of the network, or the plain mean of all agents."""


def rounds_to(policy: Policy, share: float = 0.01) -> list[Reach]:
    r"""Rounds and transmissions of every way to average that the network allows.

    Counted with the scores for which it takes longest: until $\max_k \sum_l |w_{lk} - w_l|$ is at most `share` of what
    it was, where $w_{lk}$ is the weight of agent l's score in agent k's statistic and $w_l$ that in the limit.
    """
    K = policy.size
    if K > MOST_AGENTS:
        raise PolicyError(f"rounds are counted for at most {MOST_AGENTS} agents, and here are {K}")
    equal = np.full(K, 1 / K)
    found = [_counted("degroot", policy, DeGroot(), policy.perron, share, "weighted")]
    found.append(_counted("push-sum, running-sums", policy, PushSum(), equal, share, "plain"))
    with suppress(CollegiumError):  # on a directed network
        found.append(_counted("chebyshev", policy, Chebyshev(), policy.perron, share, "weighted"))
    with suppress(CollegiumError):  # where rounding would spoil it
        steps = schedule.eigenvalue_steps(policy)
        found.append(_counted("eigenvalue-steps", steps, steps.rule, policy.perron, share, "weighted"))
    with suppress(CollegiumError):  # on a directed network
        found.append(_pairs(schedule.pairwise(policy.graph), share))
    wide = width(policy)
    sent = collaborate(np.zeros((1, K)), policy, wide + 1, Flood(K)).transmissions_by_round[:wide].sum()
    found.append(Reach("flood", wide, int(sent), Flood(K).width(1), "any"))
    peers = schedule.one_peer_exponential(K)
    found.append(_counted("one-peer (links between any two)", peers, DeGroot(), equal, share, "plain"))
    exact = schedule.exact(K)
    found.append(Reach("exact (links between any two)", exact.rounds, K * exact.rounds if K > 1 else 0, 1, "plain"))
    return found


def _pairs(over: schedule.Pairwise, share: float) -> Reach:
    """Gossip with the pairs of its seed, one a round: two columns of weights become their mean."""
    K = over.size
    weights = np.eye(K)
    enough = share * 2 * (1 - 1 / K) + 1e-12
    for t in range(_MOST_ROUNDS + 1):
        if np.abs(weights - 1 / K).sum(axis=0).max() <= enough:
            return Reach(_PAIRWISE, t, 2 * t, 1, "plain")
        pair = over.pair(t + 1)
        weights[:, pair] = weights[:, pair].mean(axis=1, keepdims=True)
    return Reach(_PAIRWISE, None, None, 1, "plain")


def width(policy: Policy) -> int:
    """How many rounds a score takes at most from one agent to another."""
    links = policy.graph.columns(np.ones(len(policy.weights))).tocsr()
    return int(csgraph.shortest_path(links, unweighted=True).max())


def _counted(name: str, over: Schedule, rule: Rule, limit: np.ndarray, share: float, kind: str) -> Reach:
    eye = np.eye(over.size)

    def left(rounds: int) -> float:
        weights = collaborate(eye, over, rounds, rule, record="final").statistics[-1]
        return float(np.abs(weights - limit[:, None]).sum(axis=0).max())

    most = own_rounds(over, _MOST_ROUNDS)
    enough, low, high = share * left(0) + 1e-12, -1, min(1, most)
    while left(high) > enough:
        if high >= most:
            return Reach(name, None, None, rule.width(1), kind)
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if left(middle) <= enough else (middle, high)
    sent = int(collaborate(eye[:1], over, high, rule, record="final").transmissions[0])
    return Reach(name, high, sent, rule.width(1), kind)
