"""An agent's status as it could be, for tests of those who read it."""

from __future__ import annotations

from typing import Any

from collegium.live.answers import ByteCounts, Histogram, ItemCounts, NeighbourStatus, Quantiles, Status


def neighbour(number: int, state: str, reason: str = "", rejected: int = 0, over_budget: int = 0) -> NeighbourStatus:
    """A neighbour in a state."""
    return NeighbourStatus(f"agent-{number}", number, "both", state, reason, None, 250.0, 0, rejected, over_budget)


def items(**counts: int) -> ItemCounts:
    """Counts of items, 0 where none is given."""
    return ItemCounts(**{**dict.fromkeys(ItemCounts.__struct_fields__, 0), **counts})


def report(number: int, *neighbours: NeighbourStatus, rounds: int = 0, **fields: Any) -> Status:
    """The status of an agent that has done so many rounds."""
    usual = {
        "name": f"agent-{number}", "number": number, "network": "c0ffee", "ready": True, "not_ready_reason": None,
        "rule": "degroot", "rounds": 20, "agents": [f"agent-{k}" for k in range(4)], "classes": [-1, 1],
        "neighbours": list(neighbours), "refused_peers": {"a peer was refused": 1}, "rounds_done": rounds,
        "items": items(pending=1, most=100, done=3), "re_requested": 0, "overloaded_s": 0.0,
        "bytes": ByteCounts(10 * rounds, 7), "latency_ms": Quantiles(1.0, 2.5), "latency": Histogram([], [3], 0.1),
        "up_s": 1.0,
    }  # fmt: skip
    return Status(**{**usual, **fields})
