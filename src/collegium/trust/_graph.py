"""What is asked of a graph must be asked of a graph."""

from typing import Any

from collegium.errors import GraphError
from collegium.topology import Graph


def require_graph(graph: Any, what: str) -> None:
    """Refuse what is no graph; `what` it is for, up to "of a Graph"."""
    if not isinstance(graph, Graph):
        raise GraphError(f"{what} of a Graph such as topology.ring(12), got {type(graph).__name__}")
