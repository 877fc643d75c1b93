"""How quickly running sums come to the average where messages are lost at random."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import real_number
from collegium.errors import PolicyError, RuleError
from collegium.policy import Policy

Doubles = NDArray[np.float64]
MOST = 400
"""Agents and links up to which the rate is computed."""
_ROUNDS = 600


def running_sums_rate(policy: Policy, loss: float = 0.0) -> float:
    r"""By which factor a round of `protocol.RunningSums` shrinks the distance from the average, in mean square.

    policy: who hears whom; its weights play no part. loss: the probability that a message is lost, each by itself, as
        with `links.Lossy(loss)`; below 1. At most 400 agents and links together.

    What an agent holds is a ratio of two sums, $z^{(1)}_k / z^{(2)}_k$. Its numerator lacks
    $e_k = z^{(1)}_k - \bar c\, z^{(2)}_k$, and so does what waits on every link. All of these sum to zero, and a round
    is a random matrix $M$ of independent deliveries that is applied to them, so that the matrix P of their mean
    products follows exactly:

    $$ P_t = \mathbb E[M P_{t-1} M^\top] = \bar D Q \bar D^\top
       + p (1 - p) \sum_{\ell \to k} Q_{\ell k, \ell k}\, g_{\ell k} g_{\ell k}^\top, \qquad Q = S P_{t-1} S^\top $$

    where $S$ gives every link its share, $\bar D$ delivers the part $1 - p$ of what waits on it, and $g_{\ell k}$ takes
    one from the link and gives it to agent k. The rate is $\lim (\operatorname{tr} P_t)^{1/2t}$, to three digits;
    t rounds leave about its t-th power of the distance. Below 1 on every strongly connected network.
    [vaidya2011, hadjicostis2016]

    >>> from collegium import policy, topology
    >>> ring = policy.uniform(topology.ring(12))
    >>> [round(running_sums_rate(ring, loss), 3) for loss in (0, 0.1, 0.3, 0.5)]
    [0.911, 0.917, 0.93, 0.946]
    """
    if not isinstance(policy, Policy):
        raise PolicyError(f"the rate of running sums is that of a Policy, got {type(policy).__name__}")
    if policy.size + policy.links > MOST:
        raise PolicyError(
            f"the rate of running sums is computed for at most {MOST} agents and links, and here are {policy.size} "
            f"agents and {policy.links} links"
        )
    loss = real_number(loss, "the loss of a link", RuleError, at_least=0)
    if not loss < 1:
        raise RuleError(f"where every message is lost nothing is averaged: the loss must be below 1, got {loss:g}")
    if policy.size == 1:
        return 0.0
    logs = [np.log(left) for left, _ in zip(_shrinking(policy, loss), range(_ROUNDS), strict=False)]
    # The first half is only there to be forgotten; a mean, because complex eigenvalues make single rounds differ.
    return float(np.exp(np.mean(logs[_ROUNDS // 2 :]) / 2))


def _shrinking(policy: Policy, loss: float) -> Iterator[float]:
    """tr P_t / tr P_{t-1} for t = 1, 2, …, beginning with independent scores of the same variance."""
    graph = policy.graph
    other = graph.indices != graph.hearers
    sender, receiver = graph.indices[other].astype(np.int64), graph.hearers[other].astype(np.int64)
    K, E = policy.size, len(sender)
    link = K + np.arange(E)
    shares = 1.0 / (1 + graph.audience_sizes)
    S, D = np.eye(K + E), np.eye(K + E)
    S[np.arange(K), np.arange(K)] = shares
    S[link, sender] = shares[sender]
    D[link, link], D[receiver, link] = loss, 1 - loss
    moved = np.zeros((K + E, E))
    moved[receiver, np.arange(E)], moved[link, np.arange(E)] = 1.0, -1.0
    P = np.zeros((K + E, K + E))
    P[:K, :K] = np.eye(K) - 1 / K
    P /= np.trace(P)
    whole = D @ S
    while True:
        waiting = ((S[link] @ P) * S[link]).sum(axis=1)
        P = whole @ P @ whole.T + loss * (1 - loss) * (moved * waiting) @ moved.T
        P -= P.mean(axis=0)  # sums are zero but for rounding, which would stay while all else shrinks
        P -= P.mean(axis=1, keepdims=True)
        left = float(np.trace(P))
        yield max(left, 1e-300)
        P = P / left if left > 0 else P
