"""The Hastings rule: any chosen Perron vector on an undirected graph."""

import numpy as np
from numpy.typing import ArrayLike

from collegium.errors import PolicyError
from collegium.policy.base import Policy, require_graph
from collegium.policy.weights import complete_with_self_weight, require_undirected
from collegium.topology.base import Graph


def hastings(graph: Graph, perron: ArrayLike) -> Policy:
    r"""The policy on `graph` whose Perron vector is `perron` (any positive weights, scaled to sum to one).

    $$ a_{\ell k} = \min\Bigl\{ \frac{1}{|\mathcal N_k|}, \frac{\pi_\ell}{\pi_k |\mathcal N_\ell|} \Bigr\},
       \quad \ell \in \mathcal N_k \setminus k, \qquad a_{kk} = 1 - \sum_{\ell \ne k} a_{\ell k} $$

    Since $a_{\ell k}\pi_k = a_{k\ell}\pi_\ell$, that holds exactly. With equal weights it is the
    Metropolis rule. Choose it to give better agents more weight. [sayed2014]

    >>> from collegium.topology import ring
    >>> hastings(ring(4), [4, 3, 2, 1]).perron
    array([0.4, 0.3, 0.2, 0.1])
    """
    require_graph(graph)
    require_undirected(graph, "hastings")
    try:
        wanted = np.asarray(perron, np.float64)
    except (TypeError, ValueError):
        raise PolicyError("perron must be numbers, one weight per agent") from None
    if wanted.shape != (graph.size,):
        raise PolicyError(f"perron must give one weight per agent: expected {graph.size}, got shape {wanted.shape}")
    if not (np.isfinite(wanted).all() and (wanted > 0).all()):
        bad = int(np.flatnonzero(~(np.isfinite(wanted) & (wanted > 0)))[0])
        raise PolicyError(f"every agent's Perron weight must be positive and finite: agent {bad} has {wanted[bad]}")
    wanted = wanted / wanted.max()
    share = wanted / wanted.sum() / graph.neighbourhood_sizes
    k, l = graph.hearers, graph.indices
    given = np.minimum(share[k], share[l]) / (share[k] * graph.neighbourhood_sizes[k])
    return complete_with_self_weight(graph, given)
