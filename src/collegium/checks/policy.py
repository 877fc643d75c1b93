"""What everything downstream takes for granted of a policy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from collegium.checks import base
from collegium.checks.base import Check, expect, listed
from collegium.policy import Policy


def check_policy(policy: Policy) -> list[str]:
    """Check what everything downstream takes for granted of a policy; returns what was checked.

    Useful for a matrix that was computed, learned or read from a file.

    >>> from collegium import topology
    >>> from collegium.policy import uniform
    >>> check_policy(uniform(topology.ring(5)))[:2]
    ['columns sum to one', 'perron is fixed']
    """
    return base.run(type(policy).__name__, policy_checks(policy))


@listed
def policy_checks(policy: Policy) -> Iterator[Check]:
    """The checks of `check_policy`, one by one."""
    if not isinstance(policy, Policy):
        complaint = f"{type(policy).__name__} is not a Policy: wrap your matrix as Policy(A)"
        yield from base.one_failure("is a Policy", complaint)
        return
    for name, function in (
        ("columns sum to one", _columns),
        ("perron is fixed", _perron),
        ("rounds converge to the perron average", _converges),
    ):
        yield Check(name, partial(function, policy))
    yield from base.kept_checks(policy, "schedule")


def _columns(policy: Policy) -> None:
    sums = np.asarray(policy.sparse.sum(axis=0)).ravel()
    worst = int(np.abs(sums - 1).argmax())
    expect(abs(sums[worst] - 1) <= 1e-9, f"column {worst} of A sums to {sums[worst]:.12g}, not 1")


def _slack(policy: Policy) -> float:
    """Each entry is a sum of at most K products, each with a relative error of eps."""
    return float(64 * policy.size * np.finfo(float).eps)


def _perron(policy: Policy) -> None:
    pi, slack = policy.perron, _slack(policy)
    expect(bool((pi > 0).all()) and abs(pi.sum() - 1) <= slack, "the Perron vector is not positive with sum 1")
    expect(np.abs(policy.sparse @ pi - pi).sum() <= slack, "A does not keep its Perron vector fixed")


def _converges(policy: Policy) -> None:
    x = np.cos(np.arange(policy.size))
    limit, widest = float(x @ policy.perron), float(np.ptp(x))
    sigma = policy.slem
    enough = 0 if sigma == 0 else min(10_000, math.ceil(math.log(1e-12) / math.log(min(sigma, 1 - 1e-12))))
    for _ in range(enough + policy.size.bit_length()):
        x = policy.sparse.T @ x
    # non-normal matrices lag behind their eigenvalue by a factor that grows with K
    left = widest * max(policy.size**2 * sigma**enough, _slack(policy))
    expect(np.abs(x - limit).max() <= left, "repeated rounds do not lead to the Perron-weighted average")
