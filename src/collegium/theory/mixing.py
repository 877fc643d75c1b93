"""How far the agents' weights are from the Perron vector, round by round: what the finite-round bounds are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collegium._util.arguments import whole_number
from collegium.errors import AssumptionError
from collegium.policy import Policy

Doubles = NDArray[np.float64]
MOST = 1024
"""Agents for which every pair is looked at."""


def powers(policy: Policy, rounds: int) -> Doubles:
    """A to the powers 0, …, rounds: shape (rounds+1, K, K)."""
    rounds = whole_number(rounds, "rounds", AssumptionError)
    if policy.size > MOST:
        raise AssumptionError(f"the bound looks at every pair of agents: at most {MOST}, and here are {policy.size}")
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
