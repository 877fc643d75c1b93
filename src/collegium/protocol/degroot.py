"""The DeGroot rule: keep replacing your statistic by the weighted average of your neighbours'."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.protocol.averaging import FixedParts


@dataclass(frozen=True)
class DeGroot(FixedParts):
    r"""Weighted averaging of the neighbours' statistics.

    $$ \lambda_{k,t} = \sum_{\ell} a_{\ell k} \lambda_{\ell,t-1}, \qquad \lambda_{k,0} = c_k(h_k) $$

    All agents converge to $\sum_k \pi_k c_k(h_k)$, the disagreement shrinking like $\sigma_A^t$. The default: exact,
    with one message per link and round. [degroot1974; hu2026, Sec. II-B]

    >>> import collegium
    >>> from collegium import policy, topology
    >>> p = policy.uniform(topology.path(3))
    >>> collegium.collaborate([[1.0, 0.0, -2.0]], p, rounds=1, rule=DeGroot()).statistics[-1]
    array([[ 0.5       , -0.33333333, -1.        ]])
    """
