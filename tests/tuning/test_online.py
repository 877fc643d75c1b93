"""Gains that follow drift, item by item."""

import numpy as np
import pytest

from collegium import tuning
from collegium.errors import ScoreError


def test_an_agent_turned_round_is_turned_back():
    rng = np.random.default_rng(0)
    n, K = 1500, 4
    y = np.where(rng.random(n) < 0.5, 1, -1)
    x = y[:, None] + rng.normal(size=(n, K))
    x[500:, :2] *= -1  # two of four are mounted the wrong way round
    agents, right = [tuning.Online() for _ in range(K)], []
    for i in range(n):
        s = np.mean([agent.gain * x[i, k] for k, agent in enumerate(agents)])
        right.append(s * y[i] > 0)
        agents = [agent.told(x[i, k], s, int(y[i])) for k, agent in enumerate(agents)]
    fixed = (x[1000:].mean(axis=1) * y[1000:] > 0).mean()
    assert np.mean(right[1000:]) > fixed + 0.2
    assert all(agent.gain < 0 for agent in agents[:2])
    assert all(agent.gain > 0 for agent in agents[2:])


def test_several_classes():
    rng = np.random.default_rng(0)
    n, C = 800, 3
    y = rng.integers(0, C, n)
    x = np.stack([2 * np.eye(C)[y], -2 * np.eye(C)[y], np.zeros((n, C))], axis=1) + rng.normal(size=(n, 3, C))
    x -= x.mean(axis=2, keepdims=True)
    agents = [tuning.Online() for _ in range(3)]
    for i in range(n):
        s = np.mean([agent.gain * x[i, k] for k, agent in enumerate(agents)], axis=0)
        agents = [agent.told(x[i, k], s, int(y[i])) for k, agent in enumerate(agents)]
    assert agents[0].gain > 1 > 0 > agents[1].gain
    assert abs(agents[2].gain) < 0.4 * agents[0].gain


def test_labels_and_scores_are_checked():
    with pytest.raises(ScoreError, match=r"\+1 or -1; got 2"):
        tuning.Online().told(1.0, 1.0, 2)
    with pytest.raises(ScoreError, match="from 0 to 2; got 3"):
        tuning.Online().told([1.0, -1.0, 0.0], [1.0, -1.0, 0.0], 3)
    with pytest.raises(ScoreError, match="one form"):
        tuning.Online().told([1.0, -1.0, 0.0], 1.0, 0)


def test_an_agent_without_a_score_stays():
    assert tuning.Online().told(0.0, 1.0, 1).gain == 1
