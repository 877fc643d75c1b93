"""DeGroot on 10³ … 10⁶ agents with 10 neighbours each: cost per link, against scipy and the memory's own speed."""

from typing import Any

import numpy as np

import collegium
from collegium import policy, topology
from collegium.kernels.threads import threads
from machine import best_of, copy_bandwidth

SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS = 20


def measure() -> list[dict[str, Any]]:
    rows = []
    copy = copy_bandwidth(threads())
    for name, build in [
        ("ring lattice", lambda K: topology.small_world(K, 10, rewire=0.0)),
        ("Erdős–Rényi", lambda K: topology.erdos_renyi(K, links=10 * K, seed=1)),
    ]:
        per_link = {}
        for K in SIZES:
            p = policy.uniform(build(K))
            x = np.random.default_rng(0).normal(size=(1, K))

            def rounds(p: policy.Policy = p, x: np.ndarray = x) -> None:
                collegium.collaborate(x, p, ROUNDS, record="final")

            def validation(p: policy.Policy = p, x: np.ndarray = x) -> None:
                collegium.collaborate(x, p, 0, record="final")

            repeat = max(3, min(200, 3_000_000 // K))
            ours = (best_of(rounds, repeat) - best_of(validation, repeat)) / ROUNDS
            transposed, column = p.sparse.T.tocsr(), x[0].copy()
            scipy = best_of(lambda m=transposed, c=column: m @ c, repeat)
            touched = len(p.weights) * 12 + K * (
                8 + 8 + 8
            )  # weight and index per link; offset, score read, score written
            per_link[K] = ours / len(p.weights)
            rows += [
                {
                    "figure": f"{name}, K = {K}: ns per link and round",
                    "value": per_link[K] * 1e9,
                    "target": "",
                },
                {"figure": f"{name}, K = {K}: ours ÷ scipy", "value": ours / scipy, "target": "≤ 1.2"},
                {
                    "figure": f"{name}, K = {K}: ours ÷ memory copy",
                    "value": ours * copy / touched,
                    "target": "≤ 3",
                },
            ]
            if name == "Erdős–Rényi":
                lines = len(p.weights) * (12 + 64)  # every speaker stands somewhere else: a whole cache line each
                rows.append(
                    {
                        "figure": f"{name}, K = {K}: ours ÷ copy of whole lines",
                        "value": ours * copy / lines,
                        "target": "",
                    }
                )
        spread = max(per_link.values()) / min(per_link.values())
        rows.append({"figure": f"{name}: dearest ÷ cheapest link", "value": spread, "target": "≤ 1.5"})
    return rows
