"""The laboratory: evaluating one repetition, and mutual information against plain NumPy."""

import time
from typing import Any

import numpy as np
from scipy.special import digamma

from collegium.agents import Scores
from collegium.diagnostics import mutual_information
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.studies import STUDIES
from collegium.lab.study import Options
from machine import best_of

TARGETS = {"topology": "≤ 1", "stopping": "≤ 2", "robustness": "≤ 1"}


def record() -> Record:
    """Twelve agents, as many items as ModelNet has."""
    rng = np.random.default_rng(0)
    parts, labels = [], []
    for n in (312, 78, 172):
        y = np.where(np.arange(n) % 2, -1, 1)
        parts.append(0.5 * y[:, None] + rng.normal(size=(n, 12)))
        labels.append(y)
    return Record(Scores(*parts, *labels), {})


def brute_force(x: np.ndarray, y: np.ndarray, k: int = 5) -> float:
    """The same estimator as one would write it down."""
    n = len(x)
    dx, dy = (np.abs(one[:, None] - one[None]).max(axis=2) for one in (x, y))
    for d in (dx, dy):
        np.fill_diagonal(d, np.inf)
    radius = np.sort(np.maximum(dx, dy), axis=1)[:, k - 1 : k]
    near = digamma((dx < radius).sum(axis=1) + 1) + digamma((dy < radius).sum(axis=1) + 1)
    return float(digamma(k) + digamma(n) - near.mean())


def measure() -> list[dict[str, Any]]:
    job, made, options = Job("modelnet", 390, 0, "M"), record(), Options()
    figures: list[dict[str, Any]] = []
    for name, target in TARGETS.items():
        study = STUDIES[name]
        seconds = best_of(lambda study=study: list(study.evaluate(job, made, options)), repeat=3)
        figures.append({"figure": f"{name}, one repetition: seconds", "value": seconds, "target": target})
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 20))
    y = 0.5 * x + rng.normal(size=(2000, 20))
    ours = best_of(lambda: mutual_information(x, y), repeat=3)
    begun = time.perf_counter()
    brute_force(x, y)
    figures.append(
        {
            "figure": "mutual information, 2 000 points in 20 + 20 dimensions: times as quick as NumPy",
            "value": (time.perf_counter() - begun) / ours,
            "target": "≥ 5",
        }
    )
    return figures
