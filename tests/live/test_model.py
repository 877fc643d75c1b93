"""Models on their hosts: whatever a team may hold gives the same scores in an agent's process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from collegium import Team, data, policy, topology
from collegium.errors import InputFileError, ModelError
from collegium.live import config
from collegium.live.folder import NetworkSettings, create
from collegium.live.model import load
from live_processes import running, wait_for

THREE = policy.uniform(topology.complete(3))


def team_of(*models: Any) -> tuple[Team, list[np.ndarray]]:
    """A team on three patches of handwritten digits, and a few digits to decide."""
    train, test = data.digits(classes=(3, 8))
    views = [np.asarray(train.views[k]) for k in (1, 4, 7)]
    team = Team([(f"m{k}", model) for k, model in enumerate(models)], THREE, rounds=3, calibrate=True, workers=1)
    return team.fit(views, train.y), [np.asarray(test.views[k])[:20] for k in (1, 4, 7)]


@pytest.mark.parametrize("tuned", [False, True])
def test_scores_are_those_of_the_team(tmp_path: Path, tuned: bool) -> None:
    forest = RandomForestClassifier(5, random_state=0)
    team, views = team_of(LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression()), forest)
    if tuned:
        team.pipeline_ = replace(team.pipeline_, gain=[0.5, 2.0, -1.0])
    files = create(tmp_path / "net", team.policy, team, NetworkSettings(tls=False, trusted=["sklearn.tree._tree.Tree"]))
    for k, path in enumerate(files):
        score = load(config.read(path).model, path.parent)
        assert score is not None
        np.testing.assert_allclose(score(views[k]), team.statistics(views)[:, k], rtol=1e-12, atol=1e-12)
    alone = Team.load(tmp_path / "net" / "agent-2-model", trusted=["sklearn.tree._tree.Tree"])
    np.testing.assert_allclose(alone.statistics(views[2:])[:, 0], team.statistics(views)[:, 2], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_models_of_named_columns_take_records(tmp_path: Path, classes: int) -> None:
    """Also where only the numbers of a linear model are deployed; the values of a record have no order."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % classes
    table = pandas.DataFrame(rng.normal(size=(60, 3)) + 3 * y[:, None], columns=["age", "height", "weight"])
    models = (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression()), SVC())
    team = Team([(f"m{k}", model) for k, model in enumerate(models)], THREE, rounds=3, workers=1).fit([table] * 3, y)
    files = create(tmp_path / "net", team.policy, team, NetworkSettings(tls=False))
    assert [config.read(path).model.path[-4:] for path in files] == [".npz", ".npz", "odel"]
    records = np.array(table[["weight", "age", "height"]].to_dict("records"), object)
    for k, path in enumerate(files):
        score = load(config.read(path).model, path.parent)
        assert score is not None
        expected = team.statistics([table] * 3)[:, k]
        np.testing.assert_allclose(score(records), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(score(table.to_numpy()), expected, rtol=1e-9, atol=1e-9)
        with pytest.raises(ModelError, match="height"):
            score(np.array([{"age": 1.0, "weight": 2.0}], object))
    score = load(config.read(files[0]).model, files[0].parent)
    assert score is not None
    with pytest.raises(ModelError, match="a number for each of age, height, weight"):
        score(np.array([{"age": "old", "height": 1.0, "weight": 2.0}], object))
    with pytest.raises(ModelError, match="not finite"):
        score(np.array([{"age": float("nan"), "height": 1.0, "weight": 2.0}], object))


@pytest.mark.live
@pytest.mark.timeout(240)
def test_a_torch_model_in_a_process_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from collegium.agents import MicroCNN, Training

    quick = MicroCNN(4, training=Training(max_epochs=1), random_state=0)
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], 40)
    views = [rng.normal(size=(40, 16, 16, 1)).astype(np.float32) + 0.3 * y[:, None, None, None] for _ in range(3)]
    team = Team([(f"m{k}", quick) for k in range(3)], THREE, rounds=3, workers=1).fit(views, y)
    with running(tmp_path / "net", team.policy, team) as network:
        for k, member in enumerate(network):
            with member.client() as client:
                client.give(range(5), views=views[k][:5])
        with network[0].client() as client:
            outcomes = [wait_for(lambda i=i: client.result(i)) for i in range(5)]
    expected = team.run([view[:5] for view in views]).statistics[-1][:, 0]
    np.testing.assert_allclose([one.statistic for one in outcomes], expected, rtol=1e-5, atol=1e-6)


def test_a_model_that_was_not_copied_is_named(tmp_path: Path) -> None:
    team, _ = team_of(LogisticRegression(), LogisticRegression(), LogisticRegression())
    path = create(tmp_path / "net", team.policy, team, NetworkSettings(tls=False))[0]
    (path.parent / "agent-0.npz").unlink()
    with pytest.raises(InputFileError, match="is not there: copy it beside the agent's file"):
        load(config.read(path).model, path.parent)


def test_a_file_without_a_gain_has_gain_one(tmp_path: Path) -> None:
    team, views = team_of(LogisticRegression(), LogisticRegression(), LogisticRegression())
    path = create(tmp_path / "net", team.policy, team, NetworkSettings(tls=False))[0]
    text = path.read_text()
    assert "\ngain = 1.0\n" in text
    path.write_text(text.replace("\ngain = 1.0\n", "\n"))
    score = load(config.read(path).model, path.parent)
    assert score is not None
    np.testing.assert_allclose(score(views[0]), team.statistics(views)[:, 0], rtol=1e-12, atol=1e-12)


def test_an_agent_that_only_applies_a_linear_model_loads_no_scipy() -> None:
    code = "import sys, collegium.live.process; sys.exit(bool({'scipy', 'sklearn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
