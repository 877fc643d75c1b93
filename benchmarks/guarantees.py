"""What held-out items guarantee, over 200 random splits of real test items: coverage of sets, and exact bounds.

    COLLEGIUM_DATA=… python benchmarks/guarantees.py

It reads score records (`records/` in the data folder) and trains nothing but digits.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from collegium import agents, collaborate, data, policy, theory, topology

SPLITS, HELD_OUT, ROUNDS = 200, 200, 20


def of_digits() -> tuple[Any, Any]:
    """Raw statistics of nine logistic regressions, and labels."""
    train, test = data.digits()
    s = agents.train(train, test, LogisticRegression(max_iter=500), seed=0, workers=1)
    return s.test - s.test.mean(axis=2, keepdims=True), s.y_test


def of_record(name: str) -> tuple[Any, Any]:
    """Statistics of a kept record: centred where there are two classes."""
    with np.load(Path(os.environ["COLLEGIUM_DATA"]) / "records" / f"{name}-0.npz") as file:
        test, y, train = file["test"].astype(float), file["y_test"], file["train"].astype(float)
    return (test - train.mean(axis=0), y) if test.ndim == 2 else (test, y)


def main() -> None:
    """A row per data set."""
    print("data, items, coverage of 90 % sets, of 80 % sets, bound over error of the worst agent: mean, largest")
    for name in ("modelnet", "cifar10", "wall-robot", "digits"):
        c, y = of_digits() if name == "digits" else of_record(name)
        two, rng = c.ndim == 2, np.random.default_rng(0)
        x = collaborate(c, policy.metropolis(topology.ring(c.shape[1])), ROUNDS, record="final").statistics[-1]
        places = np.where(y > 0, 0, 1) if two else y.astype(np.intp)
        wrong = x * y[:, None] <= 0 if two else x.argmax(axis=2) != places[:, None]
        covered: dict[float, list[float]] = {0.1: [], 0.2: []}
        ratios = []
        for _ in range(SPLITS):
            order = rng.permutation(len(y))
            known, new = np.split(order, [min(len(y) // 2, 500)])
            sets = theory.conformal(x[known], y[known], classes=(1, -1) if two else c.shape[2])
            for alpha, found in covered.items():
                inside = sets.sets(x[new], alpha)
                found.append(np.take_along_axis(inside, places[new][:, None, None], axis=2).mean())
            held = wrong[order[:HELD_OUT]]
            ratios.append((theory.held_out(held).value / np.maximum(held.mean(axis=0), 1 / len(held))).max())
        shown = (f"{100 * np.mean(found):.1f}" for found in covered.values())
        print(f"{name}, {len(y)}, {', '.join(shown)}, {np.mean(ratios):.2f}, {np.max(ratios):.2f}")


if __name__ == "__main__":
    main()
