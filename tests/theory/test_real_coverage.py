"""Prediction sets and exact bounds on real scores: 200 splits of the held-out items of each data set."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from collegium import agents, collaborate, data, policy, theory, topology

SPLITS = 200
ALPHA = 0.1


def splits(statistics, places, C, rng):
    """Mean coverage of all agents' sets over random halves, and how often the exact bound of 200 items is broken."""
    covered, n = [], len(places)
    labels = np.where(places == 0, 1, -1) if C == 2 else places
    for _ in range(SPLITS):
        order = rng.permutation(n)
        known, new = order[: n // 2], order[n // 2 :]
        sets = theory.conformal(statistics[known], labels[known], classes=(1, -1) if C == 2 else C)
        inside = sets.sets(statistics[new], ALPHA)
        covered.append(np.take_along_axis(inside, places[new][:, None, None], axis=2).mean())
    return float(np.mean(covered))


def of_digits():
    train, test = data.digits()
    s = agents.train(train, test, LogisticRegression(max_iter=500), seed=0, workers=1)
    return s.test - s.test.mean(axis=2, keepdims=True), s.y_test, s.test.shape[2]


def of_record(name):
    root = os.environ.get("COLLEGIUM_DATA")
    path = Path(root or ".") / "records" / f"{name}-0.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there: set COLLEGIUM_DATA to a folder with records")
    with np.load(path) as file:
        test, y, train = file["test"].astype(float), file["y_test"], file["train"].astype(float)
    if test.ndim == 2:
        return test - train.mean(axis=0), np.where(y > 0, 0, 1), 2
    return test, y, test.shape[2]


@pytest.mark.parametrize(
    "name",
    ["digits", *(pytest.param(one, marks=pytest.mark.data) for one in ("modelnet", "cifar10", "wall-robot"))],
)
def test_coverage_is_within_a_point_of_nominal(name):
    c, places, C = of_digits() if name == "digits" else of_record(name)
    places = np.asarray(places, np.intp)
    rng = np.random.default_rng(0)
    if len(c) > 1200:
        chosen = rng.permutation(len(c))[:1200]
        c, places = c[chosen], places[chosen]
    run = collaborate(c, policy.metropolis(topology.ring(c.shape[1])), 20, record="final")
    assert splits(run.statistics[-1], places, C, rng) == pytest.approx(1 - ALPHA, abs=0.01)
    labels = np.where(places == 0, 1, -1) if C == 2 else places
    some = rng.permutation(len(c))[:200]
    found = theory.evidence(run.statistics[:, some], labels[some])
    assert (
        found.at_most[-1] <= 1.5 * np.maximum(found.errors[-1], 0.07)
    ).all()  # exact bounds of rare errors are wider
