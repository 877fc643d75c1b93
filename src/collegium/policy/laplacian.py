"""The Laplacian rule: one constant weight for every link."""

import math

import numpy as np

from collegium.errors import PolicyError
from collegium.policy.base import Policy
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
    most = int(graph.neighbourhood_sizes.max())
    weight = 1.0 / most if weight is None else weight
    if not (math.isfinite(weight) and weight > 0 and weight * (most - 1) <= 1):
        raise PolicyError(
            f"the edge weight must lie between 0 and {1 / max(most - 1, 1):.4g} here, "
            f"where an agent hears {most - 1} others; got {weight}"
        )
    return complete_with_self_weight(graph, np.full(len(graph.indices), float(weight)))
