"""Any scikit-learn classifier speaks for an agent with exactly its own decision values or clipped log-odds."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from collegium.agents.sklearn_model import SklearnModel
from collegium.errors import LabelError, ModelError

RNG = np.random.default_rng(1)
Y = np.where(np.arange(60) % 2, 1, -1)
VIEW = RNG.normal(size=(60, 4)) + 0.7 * Y[:, None]
LIMIT = np.log((1 - 1e-6) / 1e-6)

WITH_DECISIONS = [
    LogisticRegression(),
    SGDClassifier(random_state=0),
    SVC(),
    HistGradientBoostingClassifier(max_iter=3),
    make_pipeline(StandardScaler(), LogisticRegression()),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
]
WITH_PROBABILITIES = [
    RandomForestClassifier(n_estimators=5, random_state=0),
    DecisionTreeClassifier(random_state=0),
    GaussianNB(),
    KNeighborsClassifier(3),
    make_pipeline(StandardScaler(), KNeighborsClassifier()),
    CalibratedClassifierCV(SVC(), cv=2),
]


def named(estimator):
    return type(getattr(estimator, "steps", [(0, estimator)])[-1][1]).__name__


@pytest.mark.parametrize("estimator", WITH_DECISIONS, ids=named)
def test_decision_values_are_taken_as_they_are(estimator):
    model = SklearnModel(estimator).fit(VIEW, Y)
    own = clone(estimator).fit(VIEW, Y)
    assert model.scores(VIEW).tolist() == own.decision_function(VIEW).tolist()
    assert model.score_kind_ == "decision_function"


@pytest.mark.parametrize("estimator", WITH_PROBABILITIES, ids=named)
def test_probabilities_become_clipped_log_odds(estimator):
    model = SklearnModel(estimator).fit(VIEW, Y)
    p = np.clip(clone(estimator).fit(VIEW, Y).predict_proba(VIEW)[:, 1], 1e-6, 1 - 1e-6)
    assert model.scores(VIEW) == pytest.approx(np.log(p / (1 - p)), abs=1e-9)
    assert model.score_kind_ == "log-odds of predict_proba, clipped to [1e-06, 1 - 1e-06]"


def test_the_clip_is_a_setting():
    tree = SklearnModel(DecisionTreeClassifier(random_state=0), clip=0.01).fit(VIEW, Y)
    assert set(np.abs(tree.scores(VIEW)).round(9)) == {round(np.log(99), 9)}
    assert "clipped to [0.01, 1 - 0.01]" in tree.score_kind_
    assert np.abs(SklearnModel(DecisionTreeClassifier(random_state=0)).fit(VIEW, Y).scores(VIEW)).max() <= LIMIT + 1e-9
    with pytest.raises(ModelError, match="clip must be a finite number"):
        tree.set_params(clip=0.7).scores(VIEW)


@pytest.mark.parametrize("labels", [Y, Y > 0, (Y > 0).astype(int), np.where(Y > 0, "plus", "minus"), (Y + 10).tolist()])
def test_the_larger_label_is_plus_one(labels):
    model = SklearnModel(LogisticRegression()).fit(VIEW, labels)
    assert model.estimator_.classes_.tolist() == [-1, 1]
    assert np.array_equal(model.scores(VIEW), SklearnModel(LogisticRegression()).fit(VIEW, Y).scores(VIEW))
    assert model.scores(VIEW)[Y > 0].mean() > 0 > model.scores(VIEW)[Y < 0].mean()


def test_a_fitted_estimator_is_used_without_fit():
    for labels in (np.where(Y > 0, "dog", "cat"), Y > 0, Y):
        fitted = LogisticRegression().fit(VIEW, labels)
        model = SklearnModel(fitted)
        check_is_fitted(model)
        assert model.scores(VIEW).tolist() == fitted.decision_function(VIEW).tolist()


def test_fit_works_on_a_clone():
    estimator = LogisticRegression()
    model = SklearnModel(estimator)
    assert model.fit(VIEW, Y) is model
    assert not hasattr(estimator, "coef_")
    assert not hasattr(clone(model), "estimator_")


def test_frozen_estimators_keep_what_they_learned():
    fitted = LogisticRegression().fit(VIEW, Y > 0)
    again = clone(SklearnModel(FrozenEstimator(fitted))).fit(VIEW, -Y)
    assert again.scores(VIEW).tolist() == fitted.decision_function(VIEW).tolist()


def test_images_become_rows_and_bytes_become_fractions():
    images = RNG.integers(0, 256, size=(60, 3, 4, 2), dtype=np.uint8)
    images[Y > 0, 0] //= 2
    model = SklearnModel(LogisticRegression()).fit(images, Y)
    own = LogisticRegression().fit(images.reshape(60, 24) / 255, Y)
    assert model.scores(images).tolist() == own.decision_function(images.reshape(60, 24) / 255).tolist()
    floats = images.astype(np.float64)
    own = LogisticRegression(max_iter=5000).fit(floats.reshape(60, 24), Y)
    model = SklearnModel(LogisticRegression(max_iter=5000)).fit(floats, Y)
    assert model.scores(floats).tolist() == own.decision_function(floats.reshape(60, 24)).tolist()


def test_tables_of_bytes_stay_what_they_are():
    table = RNG.integers(0, 3, size=(60, 4), dtype=np.uint8)
    own = LogisticRegression().fit(table, Y)
    assert (
        SklearnModel(LogisticRegression()).fit(table, Y).scores(table).tolist() == own.decision_function(table).tolist()
    )


def test_one_number_per_item_is_one_feature():
    model = SklearnModel(LogisticRegression()).fit(VIEW[:, 0], Y)
    assert model.estimator_.n_features_in_ == 1
    assert model.scores(VIEW[:, 0]).shape == (60,)


def test_texts_tables_and_sparse_views_go_through():
    texts = np.where(Y > 0, "good good", "bad luck")
    assert (
        np.sign(SklearnModel(make_pipeline(CountVectorizer(), LogisticRegression())).fit(texts, Y).scores(texts)) == Y
    ).all()
    frame = pd.DataFrame({"a": VIEW[:, 0], "b": texts})
    columns = make_column_transformer(("passthrough", ["a"]))
    table = SklearnModel(make_pipeline(columns, LogisticRegression())).fit(frame, Y)
    assert table.scores(frame) == pytest.approx(
        SklearnModel(LogisticRegression()).fit(VIEW[:, 0], Y).scores(VIEW[:, 0])
    )
    thin = SklearnModel(LogisticRegression()).fit(sparse.csr_array(VIEW), Y).scores(sparse.csr_array(VIEW))
    assert thin == pytest.approx(SklearnModel(LogisticRegression()).fit(VIEW, Y).scores(VIEW), abs=1e-3)


def test_one_item_and_none():
    model = SklearnModel(LogisticRegression()).fit(VIEW, Y)
    assert model.scores(VIEW[:1]) == pytest.approx(model.scores(VIEW)[:1])
    assert model.scores(VIEW[:0]).shape == (0,)


def test_settings_reach_the_estimator_and_pickling_keeps_what_was_learned():
    model = SklearnModel(LogisticRegression()).set_params(estimator__C=0.01, clip=1e-3)
    assert model.estimator.C == 0.01
    model.fit(VIEW, Y)
    assert pickle.loads(pickle.dumps(model)).scores(VIEW).tolist() == model.scores(VIEW).tolist()


class Blind(LogisticRegression):
    """Gives an impossible answer for the third item."""

    def decision_function(self, X):
        return np.where(np.arange(len(X)) == 2, np.nan, 1.0)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LinearRegression(), "LinearRegression has neither decision_function nor predict_proba"),
        (VotingClassifier([("a", GaussianNB())]), "VotingClassifier has neither"),
        (LogisticRegression, "got the class LogisticRegression: make an object of it"),
        (5, "int has neither"),
        (IsolationForest(n_estimators=2), "SklearnModel of IsolationForest is no classifier"),
        (LogisticRegression(C=-1), "SklearnModel of LogisticRegression cannot be fitted on a view of shape .* 'C'"),
    ],
)
def test_estimators_that_cannot_be_fitted(estimator, message):
    with pytest.raises(ModelError, match=message):
        SklearnModel(estimator).fit(VIEW, Y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LogisticRegression(), "SklearnModel of LogisticRegression is not fitted: call fit first"),
        (make_pipeline(StandardScaler(), GaussianNB()), "SklearnModel of Pipeline is not fitted"),
        (DecisionTreeClassifier().fit(VIEW, np.ones(60)), "must know two classes or more of one kind, it knows 1"),
        (DecisionTreeClassifier().fit(VIEW, np.c_[Y, Y]), "must know two classes"),
        (LinearRegression().fit(VIEW, Y), "LinearRegression has neither"),
        (Blind().fit(VIEW, Y), r"scores of SklearnModel of Blind contain NaN: 1 of 60 items \(first: item 2\)"),
        (LogisticRegression().fit(VIEW[:, :3], Y), r"cannot score a view of shape \(60, 4\): X has 4 features"),
    ],
)
def test_fitted_estimators_that_give_no_scores(estimator, message):
    with pytest.raises(ModelError, match=message):
        SklearnModel(estimator).scores(VIEW)


def test_views_and_labels_that_do_not_fit():
    with pytest.raises(LabelError, match="one per item: expected 60"):
        SklearnModel(LogisticRegression()).fit(VIEW, Y[:59])
    with pytest.raises(LabelError, match="two classes, got 1"):
        SklearnModel(LogisticRegression()).fit(VIEW, np.ones(60))
    with pytest.raises(ModelError, match="first axis is the items"):
        SklearnModel(LogisticRegression()).fit(3.0, Y)
    with pytest.raises(ModelError, match=r"NaN in \d+ of \d+ items .*Fill them by make_pipeline\(SimpleImputer"):
        SklearnModel(LogisticRegression()).fit(np.where(VIEW > 2, np.nan, VIEW), Y)


@pytest.mark.parametrize("learned", [False, True])
def test_numbers_are_no_texts(learned):
    reader = SklearnModel(make_pipeline(CountVectorizer(), LogisticRegression()))
    with pytest.raises(ModelError, match=r"shape \(60, 3\): it wants one text per item.*in the order of the agents"):
        (reader.fit(np.array(["yes", "no"] * 30), [1, 0] * 30).scores if learned else reader.fit)(
            *(np.zeros((60, 3)), [1, 0] * 30)[: 1 if learned else 2]
        )


def test_gaps_are_counted_in_data_frames_too():
    frame = pd.DataFrame({"x": [1.0, None, 3.0, 4.0], "town": ["Oslo", "Rome", None, "Rome"]})
    with pytest.raises(ModelError, match=r"NaN in 1 of 4 items \(first: item 1\), which it does not accept"):
        SklearnModel(LogisticRegression()).fit(frame[["x"]], [0, 1, 0, 1])


def test_weights_reach_the_estimator():
    rng = np.random.default_rng(0)
    x, y, w = rng.normal(size=(60, 3)), rng.choice([-1, 1], 60), rng.random(60)
    weighed = SklearnModel(LogisticRegression()).fit(x, y, sample_weight=w)
    alone = LogisticRegression().fit(x, y, sample_weight=w / w.mean())
    np.testing.assert_allclose(weighed.scores(x), alone.decision_function(x), atol=1e-9)
    assert weighed.weighs_items
    assert not SklearnModel(KNeighborsClassifier()).weighs_items


@pytest.mark.parametrize("routed", [False, True])
def test_weights_reach_the_last_step_of_a_pipeline(routed):
    rng = np.random.default_rng(0)
    x, y, w = rng.normal(size=(60, 3)), rng.choice([-1, 1], 60), rng.random(60)
    alone = LogisticRegression().fit(StandardScaler().fit_transform(x), y, sample_weight=w / w.mean())
    expected = alone.decision_function(StandardScaler().fit_transform(x))
    with sklearn.config_context(enable_metadata_routing=routed):
        first, last = StandardScaler(), LogisticRegression()
        if routed:
            first.set_fit_request(sample_weight=False)
            last.set_fit_request(sample_weight=True)
        inner = make_pipeline(first, last)
        searches = [] if routed else [GridSearchCV(inner, {"logisticregression__C": [1.0]}, cv=2)]
        for estimator in (inner, make_pipeline(inner), *searches):
            weighed = SklearnModel(estimator).fit(x, y, sample_weight=w)
            np.testing.assert_allclose(weighed.scores(x), expected, atol=1e-9)
    for estimator in (KNeighborsClassifier(), GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3]})):
        assert not SklearnModel(make_pipeline(StandardScaler(), estimator)).weighs_items


# More than two classes

FOUR = np.array(["east", "north", "south", "west"])
PLACES = RNG.integers(0, 4, 200)
PLACES[:4] = range(4)
CORNERS = np.array([[1, 0], [0, 1], [0, -1], [-1, 0]])[PLACES] * 1.5 + RNG.normal(size=(200, 2))


def centred(values):
    return values - values.mean(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (LogisticRegression(), "logarithms of predict_log_proba, none below log(1e-06)"),
        (make_pipeline(StandardScaler(), GaussianNB()), "logarithms of predict_log_proba, none below log(1e-06)"),
        (RandomForestClassifier(20, random_state=0), "logarithms of predict_log_proba, none below log(1e-06)"),
        (KNeighborsClassifier(), "logarithms of predict_proba, none below log(1e-06)"),
        (SVC(), "decision_function, taken for logits"),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, str) else "",
)
def test_several_classes_are_centred_log_probabilities(estimator, kind):
    model = SklearnModel(estimator).fit(CORNERS, FOUR[PLACES])
    scores = model.scores(CORNERS)
    assert model.score_kind_ == kind
    fitted = model.estimator_
    if isinstance(estimator, SVC):
        expected = fitted.decision_function(CORNERS)
    else:
        expected = np.log(np.maximum(fitted.predict_proba(CORNERS), 1e-6))
    np.testing.assert_allclose(scores, centred(expected), atol=1e-9)
    np.testing.assert_allclose(scores.sum(axis=1), 0, atol=1e-9)
    assert (FOUR[scores.argmax(axis=1)] == fitted.predict(CORNERS)).mean() > 0.97  # all but the ties of a forest
    assert model.scores(CORNERS[:0]).shape == (0, 4)


@pytest.mark.parametrize("wrap", [lambda svc: svc, lambda svc: make_pipeline(StandardScaler(), svc)])
@pytest.mark.parametrize("C", [3, 4])
def test_margins_of_pairs_become_the_logits_that_fit_them_best(wrap, C):
    svc = wrap(SVC(decision_function_shape="ovo"))
    some = PLACES < C
    model = SklearnModel(svc).fit(CORNERS[some], PLACES[some])
    pairs = model.estimator_.decision_function(CORNERS[some])
    scores = model.scores(CORNERS[some])
    first, second = np.triu_indices(C, 1)
    design = np.eye(C)[first] - np.eye(C)[second]
    best = np.linalg.lstsq(design, pairs.T, rcond=None)[0].T  # the shortest solution sums to zero
    np.testing.assert_allclose(scores, best, atol=1e-9)
    assert (scores.argmax(axis=1) == model.estimator_.predict(CORNERS[some])).mean() > 0.9


def test_three_columns_of_one_against_the_rest_are_not_taken_for_pairs():
    some = PLACES < 3
    rest = SklearnModel(SVC()).fit(CORNERS[some], PLACES[some])
    np.testing.assert_allclose(
        rest.scores(CORNERS[some]), centred(rest.estimator_.decision_function(CORNERS[some])), atol=1e-12
    )


def test_decision_values_of_another_shape():
    class Odd(SVC):
        def decision_function(self, X):
            return super().decision_function(X)[:, :2]

    with pytest.raises(ModelError, match=r"Odd gives decision values of shape \(200, 2\) for 4 classes"):
        SklearnModel(Odd().fit(CORNERS, PLACES)).scores(CORNERS)


class From0(LogisticRegression):
    """Wants classes 0 and 1, as XGBoost does."""

    def fit(self, X, y, sample_weight=None):
        if set(np.unique(y)) != {0, 1}:
            raise ValueError(f"Invalid classes inferred from unique values of `y`: {np.unique(y)}")
        return super().fit(X, y, sample_weight)


def test_an_estimator_that_wants_classes_from_0():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    found, usual = (SklearnModel(one).fit(X, [-1, -1, 1, 1]).scores(X) for one in (From0(), LogisticRegression()))
    np.testing.assert_allclose(found, usual)
    with pytest.raises(ModelError, match="cannot be fitted"):
        SklearnModel(From0()).fit(np.array([[np.nan]] * 4), [-1, -1, 1, 1])
