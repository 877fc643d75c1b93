"""Teams of any number of classes: decisions, probabilities, agents that know only some, files."""

import numpy as np
import pandas
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from collegium import Team, agents, collaborate, policy, protocol, topology
from collegium.errors import DataError, LabelError, ModelError

RING = policy.metropolis(topology.ring(3))
X, Y = load_wine(return_X_y=True)
NAMES = np.array(["barbera", "barolo", "grignolino"])
COLUMNS = [[0, 1, 2, 3], slice(4, 9), [9, 10, 11, 12]]
VIEWS = [X[:, :4], X[:, 4:9], X[:, 9:]]


def members():
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    return [("acids", scaled), ("phenols", GaussianNB()), ("colour", make_pipeline(StandardScaler(), SVC()))]


@pytest.fixture(scope="module")
def team():
    return Team(members(), RING, columns=COLUMNS, random_state=0).fit(X[::2], NAMES[Y[::2]])


def test_decisions_follow_the_largest_entry(team):
    assert team.classes_.tolist() == NAMES.tolist()
    scores = team.scores(X)
    assert scores.shape == (178, 3, 3)
    np.testing.assert_allclose(scores.sum(axis=2), 0, atol=1e-12)
    run = team.run(X)
    assert (run.statistics == collaborate(team.statistics(X), RING, 20).statistics).all()
    final = run.statistics[-1].mean(axis=1)
    np.testing.assert_array_equal(team.decision_function(X), final)
    np.testing.assert_array_equal(team.predict(X), NAMES[final.argmax(axis=1)])
    one = run.statistics[-1][:, 2]
    np.testing.assert_array_equal(team.predict(X, agent="colour"), NAMES[one.argmax(axis=1)])
    np.testing.assert_allclose(team.predict_proba(X), softmax(final / team.pool_temperature_, axis=1), rtol=1e-12)
    np.testing.assert_allclose(team.predict_proba(X).sum(axis=1), 1, rtol=1e-12)
    alone = np.array([model.scores(view) for model, view in zip(team.models_, VIEWS, strict=True)])
    np.testing.assert_allclose(scores, alone.transpose(1, 0, 2), atol=1e-12)
    assert team.score(X[1::2], NAMES[Y[1::2]]) > 0.9


def test_what_enters_is_the_pipeline_of_the_scores(team):
    expected = team.scores(X) / team.temperature_[:, None] - team.center_
    np.testing.assert_allclose(team.statistics(X), expected, atol=1e-12)
    counts = np.bincount(Y[::2])
    np.testing.assert_allclose(team.prior_, np.log(counts) - np.log(counts).mean())


def test_round_0_is_what_agents_do_alone(team):
    own = [clone(model).fit(view[::2], Y[::2]) for (_, model), view in zip(members(), VIEWS, strict=True)]
    expected = [(model.predict(view[1::2]) != Y[1::2]).mean() for model, view in zip(own, VIEWS, strict=True)]
    np.testing.assert_allclose(team.run(X[1::2]).errors(NAMES[Y[1::2]])[0], expected, atol=1 / 89 + 1e-9)


def test_scikit_learn_habits(team):
    plain = Team(members(), RING, columns=COLUMNS, rounds=4)
    assert cross_val_score(plain, X, Y, cv=3).mean() > 0.9
    assert cross_val_score(plain, X, Y, cv=3, scoring="neg_log_loss").mean() > -0.3
    search = GridSearchCV(plain, {"rounds": [0, 4]}, cv=2).fit(X, NAMES[Y])
    assert search.classes_.tolist() == NAMES.tolist()
    same = Team(members(), RING, random_state=0).fit([view[::2] for view in VIEWS], Y[::2])
    np.testing.assert_array_equal(NAMES[same.predict(VIEWS)], team.predict(X))


def test_a_tie_means_the_first_class():
    zero = Team.from_fitted(
        [(name, lambda view: np.zeros((len(view), 3))) for name in "abc"], RING, classes=("no", "perhaps", "yes")
    )
    assert zero.predict([np.zeros(4)] * 3).tolist() == ["no"] * 4
    np.testing.assert_allclose(zero.predict_proba([np.zeros(4)] * 3), 1 / 3)


@pytest.mark.parametrize("center", [False, True, "midpoint", "auto"])
@pytest.mark.parametrize("calibrate", [False, True, "vector"])
@pytest.mark.parametrize("bounded", [False, True])
def test_every_preparation_sums_to_zero_and_to_one(center, calibrate, bounded):
    settings = {"center": center, "calibrate": calibrate, "bounded": bounded}
    team = Team(members(), RING, columns=COLUMNS, random_state=0, rounds=3, **settings).fit(X[::2], Y[::2])
    statistics = team.statistics(X)
    np.testing.assert_allclose(statistics.sum(axis=2), 0, atol=1e-9)
    np.testing.assert_allclose(team.predict_proba(X).sum(axis=1), 1)
    if bounded:
        spread = statistics.max(axis=2) - statistics.min(axis=2)
        apart = np.ptp(team.center_, axis=1)
        assert (spread <= 1 + apart + 1e-9).all()  # margins are differences of probabilities, less that of the center
    if center is True:
        own = agents.ScorePipeline(team.temperature_, np.zeros((3, 3)), bounded=bounded, classes=3)
        mean = own(np.stack([m.scores(v[::2]) for m, v in zip(team.models_, VIEWS, strict=True)], axis=1)).mean(axis=0)
        if not calibrate:  # else a part of the items was held out
            np.testing.assert_allclose(team.center_, mean, atol=1e-9)
    assert team.score(X[1::2], Y[1::2]) > 0.8


def test_rules_of_the_core_apply():
    rule = protocol.Quantised(protocol.DeGroot(), bits=8, bound=2.0)
    team = Team(members(), RING, rounds=6, rule=rule, bounded=True, columns=COLUMNS).fit(X[::2], Y[::2])
    run = team.run(X[:20], rng=7)
    assert (run.bits == 6 * RING.links * 8 * rule.width(3)).all()


def test_a_missing_view_has_no_evidence(team):
    holes = [view.copy() for view in VIEWS]
    holes[0][:5] = np.nan
    listed = Team(members(), RING, random_state=0).fit([view[::2] for view in VIEWS], Y[::2])
    run = listed.run(holes)
    assert (run.statistics[0][:5, 0] == 0).all()
    assert run.missing[:5, 0].all()
    assert np.isnan(listed.scores(holes)[:5, 0]).all()
    np.testing.assert_allclose(run.statistics[0][5:], listed.run(VIEWS).statistics[0][5:], rtol=1e-9, atol=1e-9)


# Agents that know only some of the classes


def partial_team(**settings):
    """Three agents who know two classes each."""
    fitted = []
    for k, view in enumerate(VIEWS):
        some = np.isin(Y, [k, (k + 1) % 3]) & (np.arange(len(Y)) % 2 == 0)
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(view[some], NAMES[Y[some]])
        fitted.append((f"agent-{k}", model))
    return Team.from_fitted(fitted, RING, classes=NAMES, **settings), fitted


def test_an_agent_that_knows_two_of_three_classes_has_no_evidence_for_the_third():
    team, fitted = partial_team()
    scores = team.scores(VIEWS)
    for k, (_, model) in enumerate(fitted):
        unknown = (k + 2) % 3
        assert (scores[:, k, unknown] == 0).all()
        first, second = sorted({0, 1, 2} - {unknown})
        np.testing.assert_allclose(scores[:, k, second] - scores[:, k, first], model.decision_function(VIEWS[k]))
        np.testing.assert_allclose(scores[:, k].sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize(
    "settings", [{}, {"validation_views": [view[::4] for view in VIEWS], "validation_y": NAMES[Y[::4]]}]
)
def test_agents_that_know_some_classes_decide_about_all(settings):
    team, fitted = partial_team(**settings)
    test = np.arange(len(Y)) % 2 == 1
    together = (team.predict([view[test] for view in VIEWS]) == NAMES[Y[test]]).mean()
    alone = [
        (model.predict(view[test]) == NAMES[Y[test]]).mean() for (_, model), view in zip(fitted, VIEWS, strict=True)
    ]
    assert together > max(alone) + 0.2  # none can be right about more than the classes it knows


def test_who_knows_something_else_is_refused():
    _, fitted = partial_team()
    with pytest.raises(ModelError, match=r"agent 'agent-1' knows the classes .* Fit them alike, or give classes= with"):
        Team.from_fitted(fitted, RING)
    whole = [(name, LogisticRegression(max_iter=3000).fit(VIEWS[2], NAMES[Y])) for name in "bc"]
    with pytest.raises(ModelError, match=r"agent 'b' knows the classes .*'barolo'\]: give classes= with all of them"):
        Team.from_fitted([fitted[0], *whole], RING)
    with pytest.raises(ModelError, match=r"agent 'agent-0': its classes are \['barbera', 'barolo'\], but the team's"):
        Team.from_fitted(fitted, RING, classes=("barbera", "grignolino", "merlot"))
    wide = [(name, lambda view: np.full((len(view), 4), 2.0)) for name in "abc"]
    with pytest.raises(ModelError, match="agent 'a': it gives 4 numbers per item, for 4 classes; it should be 3"):
        Team.from_fitted(wide, RING, classes=NAMES).predict(VIEWS)
    named = [
        (name, agents.CallableModel(lambda view: 2 * np.eye(3)[[2] * len(view)], classes=NAMES[::-1])) for name in "abc"
    ]
    assert Team.from_fitted(named, RING, classes=NAMES).predict(VIEWS)[0] == "barbera"


# Every kind of model, and files


def test_torch_onnx_scikit_learn_and_a_function_decide_together(tmp_path):
    torch = pytest.importorskip("torch")
    skl2onnx = pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    X4, y4 = load_iris(return_X_y=True)
    X4 = X4.astype(np.float32)
    logistic = LogisticRegression(max_iter=500).fit(X4, y4)
    path = tmp_path / "iris.onnx"
    path.write_bytes(skl2onnx.to_onnx(logistic, X4[:1], target_opset=17).SerializeToString())
    module = torch.nn.Linear(4, 3)
    weights = logistic.coef_.T
    mixed = [
        ("torch", module),
        ("onnx", str(path)),
        ("forest", RandomForestClassifier(10, random_state=0).fit(X4, y4)),
        ("function", lambda view: view @ weights + logistic.intercept_),
    ]
    four = policy.uniform(topology.ring(4))
    team = Team.from_fitted(mixed, four, classes=(0, 1, 2))
    scores = team.scores([X4] * 4)
    logs = np.log(np.maximum(softmax(scores[:, 3], axis=1), 1e-6))  # the file holds probabilities, which are clipped
    np.testing.assert_allclose(scores[:, 1], logs - logs.mean(axis=1, keepdims=True), atol=1e-3)
    with torch.no_grad():
        logits = module(torch.from_numpy(X4)).double().numpy()
    np.testing.assert_allclose(scores[:, 0], logits - logits.mean(axis=1, keepdims=True), atol=1e-5)


def test_trained_networks_of_three_classes(tmp_path):
    torch = pytest.importorskip("torch")
    settings = agents.Training(learning_rate=0.05, batch_size=16, max_epochs=30)
    table = StandardScaler().fit_transform(X).astype(np.float32)
    views = [table[:, :4], table[:, 4:9], table[:, 9:]]
    team = Team(
        [
            ("a", agents.TorchModel(torch.nn.Linear(4, 3), training=settings)),
            ("b", GaussianNB()),
            ("c", agents.TorchModel(torch.nn.Linear(4, 3), training=settings)),
        ],
        RING,
        random_state=0,
        workers=1,
    ).fit([view[::2] for view in views], NAMES[Y[::2]])
    assert team.score([view[1::2] for view in views], NAMES[Y[1::2]]) > 0.9
    team.save(tmp_path / "team")
    again = Team.load(tmp_path / "team", modules={"a": torch.nn.Linear(4, 3), "c": torch.nn.Linear(4, 3)})
    assert (again.run(views).statistics == team.run(views).statistics).all()
    np.testing.assert_array_equal(again.predict_proba(views), team.predict_proba(views))


@pytest.mark.parametrize("calibrate", ["auto", "vector"])
def test_saved_and_loaded(tmp_path, calibrate):
    team = Team(members()[:2], policy.uniform(topology.path(2)), columns=COLUMNS[:2], calibrate=calibrate)
    team.fit(X[::2], NAMES[Y[::2]]).save(tmp_path / "team")
    again = Team.load(tmp_path / "team")
    assert (again.run(X).statistics == team.run(X).statistics).all()
    assert (again.predict(X) == team.predict(X)).all()
    np.testing.assert_array_equal(again.predict_proba(X), team.predict_proba(X))
    np.testing.assert_array_equal(again.prior_, team.prior_)
    assert again.pipeline_.to_dict() == team.pipeline_.to_dict()


def test_families_of_the_paper_are_saved_with_an_output_per_class(tmp_path):
    pytest.importorskip("torch")
    images, digits = load_digits(return_X_y=True)
    views = [images[:60].reshape(-1, 8, 8)] * 2
    recipe = agents.PixelLogistic(training=agents.Training(max_epochs=2, batch_size=20))
    team = Team([("a", recipe), ("b", recipe)], policy.uniform(topology.path(2)), random_state=0, workers=1)
    team.fit(views, digits[:60]).save(tmp_path / "team")
    assert (Team.load(tmp_path / "team").run(views).statistics == team.run(views).statistics).all()
    assert team.scores(views).shape == (60, 2, 10)


def test_mistakes(team):
    with pytest.raises(LabelError, match="none of 'barbera', 'barolo', 'grignolino'"):
        partial_team(validation_views=VIEWS, validation_y=["merlot"] * len(Y))
    with pytest.raises(DataError, match="temperatures need validation_views="):
        partial_team(calibrate="vector")
    with pytest.raises(ModelError, match="center must be one of auto, midpoint, mean, none; got 'median'"):
        clone(team).set_params(center="median").fit(X, Y)
    with pytest.raises(ModelError, match="calibrate must be True, False, 'auto' or 'vector'; got 'platt'"):
        clone(team).set_params(calibrate="platt").fit(X, Y)


def test_a_run_goes_by_names(team):
    run = team.run(X[:4])
    np.testing.assert_array_equal(run.labels()[:, 0], team.predict(X[:4], agent=team.agents[0][0]))
    frame = run.to_frame()
    assert set(frame["agent"]) == {name for name, _ in team.agents}
    assert set(frame["class"]) == set(team.classes_)
    assert set(frame["decision"]) <= set(team.classes_)
    with pytest.raises(LabelError, match="is none of"):
        run.errors(Y[:4])
    np.testing.assert_array_equal(run.errors(NAMES[Y[:4]], team.classes_[::-1]), run.errors(NAMES[Y[:4]]))
    with pytest.raises(LabelError, match="classes are"):
        run.errors(NAMES[Y[:4]], ("a", "b", "c"))


def test_the_order_of_two_classes_cannot_swap_errors():
    two = Y < 2
    names = NAMES[Y[two]]
    team = Team(
        [(name, LogisticRegression(max_iter=500)) for name in "ab"],
        policy.metropolis(topology.complete(2)),
        columns=[[0, 1], [6, 7]],
    )
    run = team.fit(X[two], names).run(X[two])
    right = run.errors(names)
    assert right[-1].mean() < 0.3
    np.testing.assert_array_equal(run.errors(names, team.classes_), right)
    np.testing.assert_array_equal(run.errors(names, team.classes_[::-1]), right)
    np.testing.assert_array_equal(run.labels(), np.stack([team.predict(X[two], agent=name) for name in "ab"], axis=1))


def test_labels_of_another_coding_do_not_give_an_error_in_silence():
    two = Y < 2
    columns = [[0, 1], [6, 7]]
    members = [(name, LogisticRegression(max_iter=500)) for name in "ab"]
    team = Team(members, policy.metropolis(topology.complete(2)), columns=columns).fit(X[two], Y[two])
    right = team.score(X[two], Y[two])
    for other, strange in ((2 * Y[two] - 1, -1), (Y[two] + 1, 2)):  # both share one class with the team's
        with pytest.warns(UserWarning, match=rf"{(other == strange).sum()} of 130 labels, such as {strange}, are none"):
            assert team.score(X[two], other) < right
    scores = team.statistics(X[two])
    run = collaborate(scores, team.policy)  # which does not know the classes
    assert run.errors(Y[two])[-1].mean() == pytest.approx(1 - right, abs=0.02)
    for swapped in (lambda: run.errors(Y[two], team.classes_), lambda: run.wrong(1 - Y[two])):
        with pytest.warns(UserWarning, match="are the classes the right way round"):
            swapped()
    with pytest.warns(UserWarning, match="more often than by guessing") as said:
        run.errors(1 - Y[two])
    assert said[0].filename == __file__


def test_classes_in_another_order_are_noticed():
    scores = np.eye(3)[np.arange(300) % 3][:, None, :].repeat(3, axis=1) - 1 / 3
    run = collaborate(scores, RING)
    assert not run.errors(np.arange(300) % 3).any()
    with pytest.warns(UserWarning, match="classes= lists them in the order of the entries"):
        run.errors(np.arange(300) % 3, classes=(1, 2, 0))
    with pytest.raises(LabelError, match=r"none of 0, 1, 2\. Of classes with names, give classes="):
        run.errors(np.array(["a", "b", "c"])[np.arange(300) % 3])


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.where(Y == 1, np.nan, Y), "71 of 178 items have no label .first: item 59.: leave them out"),
        (np.array([None, *Y[1:]], object), "1 of 178 items have no label"),
        (np.eye(3)[Y], r"got shape \(178, 3\).*argmax"),
    ],
    ids=["nan", "none", "one column per class"],
)
def test_labels_with_gaps_or_several_columns(y, sentence):
    with pytest.raises(LabelError, match=sentence):
        Team(members(), RING, columns=COLUMNS).fit(X, y)


def test_nothing_to_learn_from():
    with pytest.raises(LabelError, match="there are no items"):
        Team(members(), RING).fit([view[:0] for view in VIEWS], Y[:0])


def test_classes_of_fitted_models_that_do_not_say_theirs():
    agents_ = [(name, lambda view: view[:, 0] - view[:, 0].mean()) for name in "abc"]
    two = Y < 2
    views = [view[two] for view in VIEWS]
    with pytest.raises(LabelError, match=r"label 0 of item 0 is neither 1 nor -1. Say which classes .* classes=\["):
        Team.from_fitted(agents_, RING, validation_views=views, validation_y=Y[two])


@pytest.mark.parametrize("count", [2, 3])
def test_fitted_models_with_classes_in_another_order_are_noticed(count):
    rows = count > Y
    views = [view[rows] for view in VIEWS]
    fitted = [LogisticRegression(max_iter=5000).fit(view, Y[rows]) for view in views]

    def logits(model):
        return lambda view: np.log(model.predict_proba(view))

    members = [(name, logits(model)) for name, model in zip("abc", fitted, strict=True)]
    right = Team.from_fitted(
        members, RING, classes=list(range(count)), validation_views=views, validation_y=Y[rows]
    ).held_out_
    assert right.alone.mean() < 0.3
    with pytest.warns(
        UserWarning, match="are the classes the right way round. classes= lists (those|all of them)"
    ) as said:
        Team.from_fitted(members, RING, classes=[*range(1, count), 0], validation_views=views, validation_y=Y[rows])
    assert said[0].filename == __file__


def test_columns_by_name_need_a_table_with_names():
    with pytest.raises(
        DataError, match="columns of agent 1 cannot be picked: 'hue' is a name, but the table is an arr"
    ):
        Team(members(), RING, columns=[[0], ["hue"], [2]]).fit(X, Y)
    frame = pandas.DataFrame(X, columns=[f"c{k}" for k in range(13)])
    for chosen in (["hue", "c1"], slice("c1", "hue")):
        with pytest.raises(
            DataError, match=r"agent 1 cannot be picked: the table has no column 'hue'; it has c0, c1, .* …"
        ):
            Team(members(), RING, columns=[["c0"], chosen, ["c2"]]).fit(frame, Y)
