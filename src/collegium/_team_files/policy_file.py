"""The network of a team as a file of plain arrays."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from collegium.errors import InputFileError
from collegium.policy import Policy
from collegium.protocol import registry
from collegium.schedule import Schedule
from collegium.topology import Graph

NAME = "policy.npz"


def to_bytes(policy: Schedule) -> bytes:
    """Who hears whom, the weights and, where there are any, the drawing positions; another schedule as JSON."""
    if type(policy) is not Policy:
        return json.dumps(registry.to_data(policy)).encode()
    graph, buffer = policy.graph, io.BytesIO()
    arrays: dict[str, Any] = {"indptr": graph.indptr, "indices": graph.indices, "weights": policy.weights}
    if graph.positions is not None:
        arrays["positions"] = graph.positions
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def from_bytes(path: Path, data: bytes) -> Schedule:
    """The policy or schedule again, checked like any other."""
    try:
        if data.startswith(b"{"):
            schedule: Schedule = registry.from_data(json.loads(data), "schedule")
            return schedule
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            positions = arrays.get("positions")
            graph = Graph(arrays["indptr"], arrays["indices"], positions)
            return Policy.from_weights(graph, arrays["weights"])
    except Exception as problem:  # zipfile, zlib, numpy and scipy each have their own
        raise InputFileError(f"{path} does not hold a network: {problem}") from None
