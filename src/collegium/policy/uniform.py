"""Uniform averaging."""

from collegium.policy.base import Policy, require_graph
from collegium.topology.base import Graph


def uniform(graph: Graph) -> Policy:
    r"""Every agent gives the same weight to everybody it hears, itself included.

    $$ a_{\ell k} = 1 / |\mathcal N_k|, \qquad \ell \in \mathcal N_k $$

    On an undirected graph the Perron weight of an agent is proportional to $|\mathcal N_k|$. The paper's choice
    for its main comparisons. [hu2026, App. H.1]

    >>> from collegium.topology import star
    >>> uniform(star(3)).perron
    array([0.42857143, 0.28571429, 0.28571429])
    """
    require_graph(graph)
    return Policy.from_weights(graph, 1.0 / graph.neighbourhood_sizes[graph.hearers])
