"""Quantised DeGroot, the topology study's load: 12 agents × 172 items × 20 rounds × 30 realisations."""

from typing import Any

import numpy as np

import collegium
from collegium import policy, protocol, topology
from machine import best_of

AGENTS, ITEMS, ROUNDS, REALISATIONS, BITS, BOUND = 12, 172, 20, 30, 4, 2.0


def numpy_loop(scores: np.ndarray, A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All items of a batch at once, round by round; returns the statistics of every round."""
    step = 2 * BOUND / (2**BITS - 1)
    x = scores
    rounds = [x]
    for _ in range(ROUNDS):
        place = (x + BOUND) / step
        below = np.minimum(np.floor(place), 2**BITS - 2)
        index = below + (rng.random(x.shape) < place - below)
        x = (index * step - BOUND) @ A
        rounds.append(x)
    return np.stack(rounds)


def measure() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    scores = rng.uniform(-1, 1, (ITEMS, AGENTS))
    y = np.where(rng.random(ITEMS) < 0.5, 1, -1)
    rows = []
    for graph, name in [(topology.ring(12), "ring"), (topology.grid(3, 4), "grid")]:
        p = policy.metropolis(graph)
        rule = protocol.Quantised(protocol.DeGroot(), bits=BITS, bound=BOUND)

        def one_by_one(A: np.ndarray = p.A) -> None:
            for _ in range(REALISATIONS):
                (numpy_loop(scores, A, rng) * y[None, :, None] <= 0).mean(axis=1)

        def batched(A: np.ndarray = p.A) -> None:
            statistics = numpy_loop(np.tile(scores, (REALISATIONS, 1)), A, rng)
            (statistics * np.tile(y, REALISATIONS)[None, :, None] <= 0).mean(axis=1)

        def ours(p: policy.Policy = p, rule: protocol.Rule = rule) -> None:
            collegium.sweep(scores, p, [rule], y, ROUNDS, realisations=REALISATIONS)

        loop, batch, fast = best_of(one_by_one), best_of(batched), best_of(ours, 20)
        updates = AGENTS * ITEMS * ROUNDS * REALISATIONS
        rows += [
            {"figure": f"quantised, {name}: NumPy loop ÷ ours", "value": loop / fast, "target": "≥ 10"},
            {
                "figure": f"quantised, {name}: NumPy, realisations batched ÷ ours",
                "value": batch / fast,
                "target": "",
            },
            {
                "figure": f"quantised, {name}: element-updates per second",
                "value": updates / fast,
                "target": "",
            },
        ]
    return rows
