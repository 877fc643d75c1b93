"""The methods of the comparison: score-level ones together, and an epoch of joint training against independent ones."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from collegium import policy, topology
from collegium.agents import ADAM, SGD, MicroCNN, PatchCNN, Scores
from collegium.data import Dataset
from collegium.fusion import VFLJT, all_methods, evaluate
from machine import best_of
from training import HELD_OUT, OBJECTS, OBJECTS_HELD_OUT, PATCHES, SIZE, TRAIN, our_epoch


def score_methods() -> float:
    """Seconds to fit and to decide, all methods that need only scores, on 2 000 items of 9 agents in every part."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(2000) % 2, -1, 1)
    parts = [y[:, None] * rng.uniform(0.2, 0.6, 9) + rng.normal(size=(2000, 9)) for _ in range(3)]
    scores = Scores(*parts, y, y, y)
    methods = all_methods(policy.uniform(topology.erdos_renyi(9, links=24, seed=7)))
    return best_of(lambda: [evaluate(method, scores) for method in methods], repeat=3, at_least=0)


def joint_epoch(model: Any, views: list[np.ndarray], y: np.ndarray, train: int, workers: int, epochs: int = 4) -> float:
    """Seconds of one more epoch of joint training."""
    K = len(views)
    data = Dataset(views, y, ("a", "b"), tuple(map(str, range(K))))
    rows = np.arange(train), np.arange(train, len(y))
    nothing = [np.zeros((len(part), K)) for part in rows]
    scores = Scores(*nothing, nothing[1], y[rows[0]], y[rows[1]], y[rows[1]], rows_train=rows[0], rows_val=rows[1])

    def run(number: int) -> float:
        settings = replace(model.training, max_epochs=number, patience=number)
        begun = time.perf_counter()
        VFLJT(type(model)(), settings, workers).fit(scores, data)
        return time.perf_counter() - begun

    once = min(run(1) for _ in range(2))
    return (min(run(1 + epochs) for _ in range(2)) - once) / epochs


def measure() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    cores = torch.get_num_threads()
    figures = [
        {"figure": "score-level methods, 2 000 × 9: seconds together", "value": score_methods(), "target": "≤ 2"}
    ]
    for name, model, train, held_out, shapes in (
        ("9 PatchCNN", PatchCNN(training=ADAM), TRAIN, HELD_OUT, PATCHES),
        ("12 MicroCNN", MicroCNN(training=SGD), OBJECTS, OBJECTS_HELD_OUT, [SIZE] * 12),
    ):
        y = np.where(rng.random(train + held_out) < 0.5, 1, -1).astype(np.int8)
        views = [rng.integers(0, 256, (len(y), *shape), np.uint8) for shape in shapes]
        alone = our_epoch(model, views, y, train, cores)
        together = joint_epoch(model, views, y, train, cores)
        figures.append(
            {
                "figure": f"{name}: an epoch of VFL-JT against one of independent training",
                "value": together / alone,
                "target": "≤ 1.5",
            }
        )
        figures.append({"figure": f"{name}: seconds of an epoch of VFL-JT", "value": together, "target": ""})
    return figures
