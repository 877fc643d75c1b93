"""The network of a team as a file of plain arrays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from collegium.errors import InputFileError
from collegium.policy import Policy
from collegium.topology import Graph

NAME = "policy.npz"


def to_bytes(policy: Policy) -> bytes:
    """Who hears whom, the weights and, where there are any, the drawing positions."""
    graph, buffer = policy.graph, io.BytesIO()
    arrays: dict[str, Any] = {"indptr": graph.indptr, "indices": graph.indices, "weights": policy.weights}
    if graph.positions is not None:
        arrays["positions"] = graph.positions
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def from_bytes(path: Path, data: bytes) -> Policy:
    """The policy again, checked like any other."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            positions = arrays.get("positions")
            graph = Graph(arrays["indptr"], arrays["indices"], positions)
            return Policy.from_weights(graph, arrays["weights"])
    except Exception as problem:  # zipfile, zlib, numpy and scipy each have their own
        raise InputFileError(f"{path} does not hold a network: {problem}") from None
