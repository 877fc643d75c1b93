"""The Metropolis rule."""

import numpy as np

from collegium.policy.base import Policy, require_graph
from collegium.policy.weights import complete_with_self_weight
from collegium.topology.base import Graph


def metropolis(graph: Graph) -> Policy:
    r"""Weights from the larger of two neighbourhoods; the rest stays with the agent itself.

    $$ a_{\ell k} = \frac{1}{\max\{|\mathcal N_k|, |\mathcal N_\ell|\}}, \quad \ell \in \mathcal N_k \setminus k,
       \qquad a_{kk} = 1 - \sum_{\ell \ne k} a_{\ell k} $$

    $|\mathcal N_k|$ counts the self-loop. Doubly stochastic on undirected graphs, so all agents weigh the same
    in the limit; well defined on directed ones, where it generally is not. [sayed2014; hu2026, App. H.3]

    >>> from collegium.topology import star
    >>> metropolis(star(3)).perron
    array([0.33333333, 0.33333333, 0.33333333])
    """
    require_graph(graph)
    sizes = graph.neighbourhood_sizes
    return complete_with_self_weight(graph, 1.0 / np.maximum(sizes[graph.hearers], sizes[graph.indices]))
