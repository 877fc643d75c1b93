"""Several classes, live: what agents in memory and in processes decide is what `collaborate` and `Team` do."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from collegium import Team, policy, protocol, topology
from collegium.errors import CollegiumError, InputFileError
from collegium.live import config, launcher
from collegium.live.answers import ItemResult
from collegium.live.folder import BOUND, NetworkSettings, create
from collegium.live.model import load
from collegium.network import collaborate
from helpers import of_classes
from live_networks import in_memory
from live_processes import ask_all, running, statistics, wait_for

C = 4
CLASSES = ("ahead", "left", "right", "turn")
RULES: list[protocol.Rule] = [
    protocol.DeGroot(),
    protocol.Quantised(protocol.DeGroot(), bits=5, bound=6.0),
    protocol.DeltaTrigger(0.3),
    protocol.LabelStability(2, 0.4),
    protocol.SocialLearning(),
]
TRUSTED = [
    "sklearn.tree._tree.Tree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_ring_of_24_agents_equals_the_simulator(rule: protocol.Rule) -> None:
    over = policy.uniform(topology.ring(24))
    scores = of_classes(12, 24, C, bound=4.0)
    with in_memory(over, rule=rule, rounds=10, seed=5, classes=CLASSES) as agents:
        futures = [agent.submit(list(range(12)), scores[:, k], trace=True) for k, agent in enumerate(agents)]
        answers = [future.result(120) for future in futures]
    run = collaborate(scores, over, 10, rule, rng=5)
    np.testing.assert_array_equal(statistics(answers), run.statistics)
    labels = [[CLASSES.index(one.label) for one in column] for column in answers]
    np.testing.assert_array_equal(np.transpose(labels), run.statistics[-1].argmax(axis=-1))


@pytest.mark.live
@pytest.mark.timeout(240)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_six_processes_equal_the_simulator(rule: protocol.Rule, tmp_path: Path) -> None:
    over = policy.metropolis(topology.ring(6))
    scores = of_classes(60, 6, C, bound=4.0)
    with running(tmp_path / "net", over, rule=rule, seed=5, classes=CLASSES) as network:
        live = statistics(ask_all(network, scores, batch=25))
    np.testing.assert_array_equal(live, collaborate(scores, over, 20, rule, rng=5).statistics)


def robot(n: int, K: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """A made-up robot: four movements, some more frequent; each agent's three sensors tell some of them apart."""
    rng = np.random.default_rng(seed)
    y = rng.choice(C, n, p=[0.4, 0.2, 0.3, 0.1])
    means = np.random.default_rng(7).normal(size=(K, C, 3))
    return [means[k][y] + rng.normal(size=(n, 3)) for k in range(K)], np.array(CLASSES)[y]


MODELS = {
    "logistic": LogisticRegression(),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression()),
    "ridge": RidgeClassifier(),
    "svm-linear": LinearSVC(),
    "svm-pairs": SVC(kernel="linear", decision_function_shape="ovo"),
    "svm-rbf": SVC(),
    "one-vs-rest": SGDClassifier(loss="log_loss", random_state=0),
    "forest": RandomForestClassifier(5, random_state=0),
    "neighbours": KNeighborsClassifier(5, algorithm="kd_tree"),
}
LINEAR = {"logistic", "scaled", "ridge", "svm-linear"}


@pytest.mark.filterwarnings("ignore:on [0-9]+ held-out items this team is wrong")
@pytest.mark.parametrize(
    "settings", [{}, {"center": "mean", "calibrate": "vector"}, {"bounded": True}], ids=["default", "vector", "bounded"]
)
@pytest.mark.parametrize("classes", [2, C])
def test_every_model_has_the_scores_of_its_team(tmp_path: Path, settings: dict[str, Any], classes: int) -> None:
    if classes == 2 and "calibrate" in settings:
        settings = {"center": "mean", "calibrate": True}
    X, y = robot(300, len(MODELS), 1)
    new, _ = robot(40, len(MODELS), 2)
    chosen = np.isin(y, CLASSES[:classes])
    team = Team(list(MODELS.items()), policy.uniform(topology.ring(len(MODELS))), rounds=3, workers=1, **settings)
    team.fit([view[chosen] for view in X], y[chosen])
    files = create(tmp_path / "net", team.policy, team, NetworkSettings(tls=False, trusted=TRUSTED))
    expected = team.statistics(new)
    for k, (name, path) in enumerate(zip(MODELS, files, strict=True)):
        file = config.read(path)
        score = load(file.model, path.parent)
        assert score is not None
        np.testing.assert_allclose(score(new[k]), expected[:, k], rtol=1e-9, atol=1e-9, err_msg=name)
        assert classes == 2 or (file.model.path.endswith(".npz") == (name in LINEAR)), name
        if file.model.path.endswith(".npz"):  # an item sent again, in other company, is the same item
            np.testing.assert_array_equal(np.concatenate([score(new[k][[i]]) for i in range(40)]), score(new[k]))


def test_a_log_probability_has_the_least_it_has_in_the_team(tmp_path: Path) -> None:
    """Views far outside: probabilities below `clip` are cut."""
    X, y = robot(300, 1, 1)
    team = Team([("far", LogisticRegression())], policy.Policy(np.ones((1, 1))), workers=1).fit(X, y)
    (path,) = create(tmp_path / "net", team.policy, team, NetworkSettings(tls=False))
    score = load(config.read(path).model, path.parent)
    assert score is not None
    assert (tmp_path / "net" / "agent-0.npz").exists()
    assert np.ptp(team.scores([50 * X[0]]), axis=-1).max() < 14.1
    np.testing.assert_allclose(score(50 * X[0]), team.statistics([50 * X[0]])[:, 0], rtol=1e-9, atol=1e-9)


def test_an_agent_that_knows_some_classes(tmp_path: Path) -> None:
    X, y = robot(400, 3, 1)
    new, _ = robot(40, 3, 2)
    some = [np.isin(y, CLASSES[:2]), np.isin(y, CLASSES[1:]), np.isin(y, [CLASSES[0], CLASSES[3], CLASSES[2]])]
    kinds = [LogisticRegression(), LogisticRegression(), LinearSVC()]
    agents = [(f"m{k}", kinds[k].fit(X[k][some[k]], y[some[k]])) for k in range(3)]
    team = Team.from_fitted(
        agents, policy.uniform(topology.complete(3)), classes=CLASSES, validation_views=X, validation_y=y
    )
    files = create(tmp_path / "net", team.policy, team, NetworkSettings(tls=False))
    for k, path in enumerate(files):
        model = config.read(path).model
        score = load(model, path.parent)
        assert score is not None
        assert model.path.endswith(".npz")
        np.testing.assert_allclose(score(new[k]), team.statistics(new)[:, k], rtol=1e-9, atol=1e-9)


@pytest.mark.live
@pytest.mark.timeout(240)
def test_a_team_of_four_classes_in_processes(tmp_path: Path) -> None:
    """Trained, saved, put on a network, asked over HTTP with views: Team's labels, at every agent."""
    models = [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression()), SVC(), LinearSVC()]
    names = [f"sensor-{k}" for k in range(4)]
    X, y = robot(300, 4, 1)
    new, truth = robot(80, 4, 2)
    team = Team(list(zip(names, models, strict=True)), policy.uniform(topology.ring(4)), rounds=10, workers=1)
    team.fit(X, y).save(tmp_path / "team")
    made = [sys.executable, "-m", "collegium", "live", "init", "--team", tmp_path / "team", "--out", tmp_path / "net"]
    made += ["--port", "0", "--http-port", "0", "--deadline", "30", "--view-deadline", "30"]
    done = subprocess.run(made, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    try:
        network = launcher.up(tmp_path / "net", wait=120)

        def ask(k: int) -> list[ItemResult]:
            with network[k].client(90) as client:
                return client.decide(range(80), views=new[k])

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(ask, range(4)))
        command = [sys.executable, "-m", "collegium", "live", "status", tmp_path / "net"]
        wait_for(lambda: subprocess.run(command).returncode == 0)  # an agent may be too busy to answer at once
    finally:
        launcher.down(tmp_path / "net")
    for k, name in enumerate(names):
        assert [one.label for one in answers[k]] == team.predict(new, name).tolist()
    final = np.array([[one.statistic for one in column] for column in answers])
    np.testing.assert_allclose(final.mean(axis=0), team.decision_function(new), rtol=1e-9, atol=1e-9)
    assert np.array(CLASSES)[final.mean(axis=0).argmax(axis=1)].tolist() == team.predict(new).tolist()
    assert team.score(new, truth) > 0.6


def test_neighbours_know_how_large_training_scores_were(tmp_path: Path) -> None:
    X, y = robot(300, 3, 1)
    ring = policy.uniform(topology.ring(3))
    agents = [(f"m{k}", LogisticRegression()) for k in range(3)]
    for settings in ({}, {"center": "mean"}, {"center": "none"}):
        team = Team(agents, ring, workers=1, **settings).fit(X, y)
        assert team.largest_scores_.shape == (3,)
        seen = np.abs(team.statistics(X)).max(axis=(0, 2))
        if settings:  # what agents say of the very items they were fitted on
            np.testing.assert_allclose(team.largest_scores_, seen, rtol=1e-12)
        else:  # what those say who were fitted without the item
            assert (team.largest_scores_ < 2 * seen).all()
            assert (team.largest_scores_ > seen / 2).all()
    team.save(tmp_path / "team")
    again = Team.load(tmp_path / "team")
    np.testing.assert_array_equal(again.largest_scores_, team.largest_scores_)
    files = create(tmp_path / "net", ring, again, NetworkSettings(tls=False))
    bounds = {heard.number: heard.bound for path in files for heard in config.read(path).hears}
    np.testing.assert_allclose([bounds[k] for k in range(3)], 4 * team.largest_scores_)
    (first, *_) = create(tmp_path / "wide", ring, again, NetworkSettings(tls=False, bound=77.0))
    assert config.read(first).talk.bound == 77.0
    unseen = Team.from_fitted([(f"m{k}", team.models_[k]) for k in range(3)], ring, classes=CLASSES)
    (first, *_) = create(tmp_path / "unseen", ring, unseen, NetworkSettings(tls=False))
    assert config.read(first).talk.bound == BOUND


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("temperature = 1.0", "temperature = [1.0, 2.0]", "temperature must be one number, or 4, one for each class"),
        ("center = 0.0", "center = [0.0, 0.0, 0.0]", "center must be one number, or 4"),
        ("temperature = 1.0", "temperature = [1.0, 2.0, 0.0, 1.0]", "temperature.* must be positive"),
        ('"left"', '"right"', "must be different ones"),
    ],
)
def test_mistakes_in_a_file_of_four_classes(tmp_path: Path, old: str, new: str, says: str) -> None:
    ring = policy.uniform(topology.ring(3))
    (path, *_) = create(tmp_path / "net", ring, None, NetworkSettings(tls=False, classes=CLASSES))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputFileError, match=says):
        config.read(path)


def test_two_classes_have_one_number_each(tmp_path: Path) -> None:
    (path, *_) = create(tmp_path / "net", policy.uniform(topology.ring(3)), None, NetworkSettings(tls=False))
    path.write_text(path.read_text().replace("center = 0.0", "center = [0.0, 0.0]"))
    with pytest.raises(InputFileError, match=r"model.center must be one number; got 2 numbers"):
        config.read(path)


def test_a_model_of_other_classes_is_refused(tmp_path: Path) -> None:
    X, y = robot(200, 3, 1)
    team = Team([("a", LogisticRegression()), ("b", LogisticRegression()), ("c", SVC())],
                policy.uniform(topology.ring(3)), workers=1).fit(X, y)  # fmt: skip
    files = create(tmp_path / "net", team.policy, team, NetworkSettings(tls=False))
    for path in (files[0], files[2]):
        model = config.read(path).model
        model.classes, model.center = ["x", "y"], 0.0
        with pytest.raises(CollegiumError, match="classes"):
            load(model, path.parent)
