"""The Laplacian rule: one constant weight for every link."""

import numpy as np

from collegium._util.arguments import real_number
from collegium.errors import PolicyError
from collegium.policy.base import Policy, require_graph
from collegium.policy.weights import complete_with_self_weight
from collegium.topology.base import Graph


def laplacian(graph: Graph, weight: float | None = None) -> Policy:
    r"""Every link between different agents has the same weight; the rest stays with the agent itself.

    $$ A = I - \epsilon L, \qquad a_{\ell k} = \epsilon, \quad \ell \in \mathcal N_k \setminus k $$

    Without a weight, $\epsilon = 1/\max_k |\mathcal N_k|$, which leaves everyone a positive weight for itself.
    Doubly stochastic on undirected graphs. [sayed2014]

    >>> from collegium.topology import path
    >>> laplacian(path(3)).A
    array([[0.66666667, 0.33333333, 0.        ],
           [0.33333333, 0.33333333, 0.33333333],
           [0.        , 0.33333333, 0.66666667]])
    """
    require_graph(graph)
    most = int(graph.neighbourhood_sizes.max())
    what = f"the edge weight, where an agent hears {most - 1} others,"
    weight = 1.0 / most if weight is None else weight
    weight = real_number(weight, what, PolicyError, above=0, at_most=1 / max(most - 1, 1))
    return complete_with_self_weight(graph, np.full(len(graph.indices), weight))
