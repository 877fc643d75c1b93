"""`check_model` must find what it is for: each broken model fails with a sentence that names the fault."""

import contextlib
import subprocess
import sys
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from collegium.agents.base import Model
from collegium.agents.callable_model import CallableModel
from collegium.agents.sklearn_model import SklearnModel
from collegium.checks import check_model, model_checks
from collegium.errors import CheckError, LabelError, ModelError

EVERYTHING = [
    "clones",
    "fits",
    "gives one finite number per item",
    "gives the same scores twice",
    "scores each item by itself",
    "scores one item and none",
    "learns the same again",
    "score is larger for +1",
]
Y = np.where(np.arange(20) % 2, 1, -1)
VIEW = np.random.default_rng(0).normal(size=(20, 3)) + Y[:, None]


class Means(Model):
    """A sound model: the distance from the mean of -1 less that from the mean of +1."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def fit(self, view, y, validation=None):
        view = view.reshape(len(view), -1).astype(float)
        self.means_ = [view[y < 0].mean(axis=0), view[y > 0].mean(axis=0)]
        return self

    def scores(self, view):
        view = np.asarray(view).reshape(len(view), self.means_[0].size).astype(float)
        near = [np.linalg.norm(view - mean, axis=1) for mean in self.means_]
        return self.scale * (near[0] - near[1])


class NoSettings:
    fit, scores = Means.fit, Means.scores
    scale = 1.0


class HalfSettings(NoSettings):
    def get_params(self, deep=True):
        return {}


class ForgetsSettings(Means):
    def __init__(self, scale=1.0):
        pass


class ChangesSettings(Means):
    def __init__(self, scale=1.0):
        self.scale = [scale]


class ClonesToItself(Means):
    def __sklearn_clone__(self):
        return self


class ClonesToAnother(Means):
    def __sklearn_clone__(self):
        return Means()


class CannotFit(Means):
    def fit(self, view, y, validation=None):
        raise RuntimeError("out of luck")


class ReturnsNothing(Means):
    def fit(self, view, y, validation=None):
        super().fit(view, y)


class ChangesView(Means):
    def fit(self, view, y, validation=None):
        view -= view.mean()
        return super().fit(view, y)


class ChangesLabels(Means):
    def fit(self, view, y, validation=None):
        super().fit(view, y)
        y[y < 0] = 0
        return self


class ChangesViewLater(Means):
    def scores(self, view):
        view += 1
        return super().scores(view - 1)


class Crashes(Means):
    def scores(self, view):
        return self.missing


class Answers(Means):
    """Whatever `change` makes of sound scores."""

    def __init__(self, change=None):
        self.change = change
        self.scale = 1.0

    def scores(self, view):
        return self.change(super().scores(view))


class DropsOut(Means):
    def scores(self, view):
        return super().scores(view) * np.random.default_rng().uniform(0.5, 1.0, len(view))


class NormalisesTheBatch(Means):
    def scores(self, view):
        return super().scores(view) - (super().scores(view).mean() if len(view) else 0)


class ActsOddlyAlone(Means):
    def scores(self, view):
        scores = super().scores(view)
        return scores + 1 if len(view) == 1 else scores


class Squeezes(Means):
    def scores(self, view):
        return super().scores(view)[:, None].squeeze()


class NeedsAnItem(Means):
    def scores(self, view):
        if not len(view):
            raise ValueError("need at least one item")
        return super().scores(view)


class ForgetsNothing(Means):
    def scores(self, view):
        return super().scores(view) if len(view) else np.zeros((0, 1))


class Random(Means):
    def fit(self, view, y, validation=None):
        super().fit(view, y)
        self.means_[0] = self.means_[0] + np.random.default_rng().normal()
        return self


class Remembers(Means):
    """Another answer when the same object is fitted twice: no fault, for teams fit clones."""

    def fit(self, view, y, validation=None):
        self.scale_ = getattr(self, "scale_", 0) + 1
        return super().fit(view, y)

    def scores(self, view):
        return super().scores(view) * self.scale_


class Draws(Means):
    """Random, but only as its random_state says, even if that is a generator."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    scale = 1.0

    def fit(self, view, y, validation=None):
        super().fit(view, y)
        self.means_[0] = self.means_[0] + check_random_state(self.random_state).normal()
        return self


class Swapped(Means):
    def scores(self, view):
        return -super().scores(view)


class Slow(Means):
    """Learns in the right direction, but starts so wrong that it does not get there."""

    start, step = -1.0, 0.1

    def fit(self, view, y, validation=None):
        slope = np.sign((view * y[:, None]).sum())
        self.means_, self.weight_ = [np.zeros(6)], self.start + self.step * slope
        return self

    def scores(self, view):
        return view.mean(axis=1) * self.weight_


class SwappedInSilence(Slow):
    """Swapped, and lucky where it started."""

    start, step = 0.5, -0.1


class Constant(Means):
    def scores(self, view):
        return np.zeros(len(view))


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (NoSettings(), None),  # Team copies it as it is
        (HalfSettings(), "HalfSettings has get_params alone: derive it from collegium.agents.Model"),
        (ForgetsSettings(), "clones: AttributeError"),
        (ChangesSettings(), "clones: RuntimeError: .* modifies parameter scale"),
        (ClonesToItself(), "a clone of ClonesToItself must be another object"),
        (ClonesToAnother(), "a clone of ClonesToAnother is a Means"),
        (
            CannotFit(),
            r"CannotFit cannot be fitted on a view of shape \(64, 6\), type float64: RuntimeError: out of luck",
        ),
        (ReturnsNothing(), "ReturnsNothing.fit must return self, it returned NoneType"),
        (ChangesView(), "ChangesView.fit changes the view"),
        (ChangesLabels(), "ChangesLabels.fit changes the labels"),
        (ChangesViewLater(), "ChangesViewLater.scores changes the view"),
        (Crashes(), "gives one finite number per item: AttributeError"),
        (Answers(lambda s: s.tolist()), "must return a NumPy array of floats, it returned list"),
        (Answers(np.sign), None),
        (
            Answers(lambda s: np.sign(s).astype(int)),
            "must return a NumPy array of floats, it returned an array of int64",
        ),
        (Answers(lambda s: s[:, None]), r"must have shape \(64,\) for 64 items, it has \(64, 1\)"),
        (Answers(lambda s: np.where(s == s.max(initial=0), np.nan, s)), r"finite: 1 of 64 are not \(first: item \d+\)"),
        (Answers(lambda s: np.where(s > 0, np.inf, s)), "finite: 3. of 64 are not"),
        (DropsOut(), "gives other scores when asked twice"),
        (NormalisesTheBatch(), "scores an item by the rest of the batch too"),
        (ActsOddlyAlone(), "scores an item differently when it comes alone"),
        (Squeezes(), r"must have shape \(1,\) for one item, it has \(\)"),
        (NeedsAnItem(), "scores one item and none: ValueError: need at least one item"),
        (ForgetsNothing(), r"must have shape \(0,\) for zero items, it has \(0, 1\)"),
        (Random(), "gives other scores when fitted again on the same: draw only from random_state"),
        (
            Swapped(),
            r"Swapped for \+1 exceeds that for -1 by -\d.*, and by \d.* opposite labels: .* outputs swapped",
        ),
        (SwappedInSilence(), r"exceeds that for -1 by 0\.\d.*, and by 1\.\d.* opposite labels: .* swapped"),
        (Constant(), r"Constant for \+1 exceeds that for -1 by 0, and by 0 when .* Does it learn from its labels"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Means) else None,
)
def test_each_fault_is_named(model, complaint):
    if complaint is None:
        assert check_model(model) == EVERYTHING
    else:
        with pytest.raises(CheckError, match=complaint):
            check_model(model)


@pytest.mark.parametrize(
    "model",
    [
        Means(),
        Remembers(),
        Draws(),
        Draws(np.random.RandomState(0)),
        LogisticRegression(),
        SklearnModel(SVC()),
        RandomForestClassifier(n_estimators=5),
        MLPClassifier((4,), max_iter=5000, random_state=np.random.RandomState(0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_sound_models_pass(model):
    assert check_model(model) == EVERYTHING


@pytest.mark.parametrize(
    "form", [np.zeros((3, 8, 8, 1), np.uint8), np.zeros((1, 5), np.float32), np.zeros(2), np.zeros((1, 4), np.int8)]
)
def test_an_easy_problem_is_made_of_the_form_of_the_view(form):
    seen, gaps = [], []

    class Watches(Means):
        def fit(self, view, y, validation=None):
            seen.append((view.shape[1:], view.dtype))
            gaps.append((view[y > 0].mean() - view[y < 0].mean()) / view.std())
            return super().fit(view, y)

    assert check_model(Watches(), form) == EVERYTHING
    assert set(seen) == {(form.shape[1:], form.dtype)}
    assert gaps[0] > 1  # of the first fit; a later one is on the opposite labels


def test_a_view_with_labels_is_used_as_it_is():
    seen = []

    class Watches(Means):
        def fit(self, view, y, validation=None):
            seen.append(view.copy())
            assert set(y.tolist()) == {-1, 1}
            return super().fit(view, y)

    assert check_model(Watches(), VIEW, Y > 0) == EVERYTHING
    assert all(np.array_equal(view, VIEW) for view in seen)
    assert check_model(LogisticRegression(), VIEW.tolist(), Y.tolist()) == EVERYTHING
    with pytest.raises(CheckError, match=r"mean score of SklearnModel for .* swapped"):
        check_model(SwappedClassifier(), VIEW, Y)


class SwappedClassifier(LogisticRegression):
    def decision_function(self, X):
        return -super().decision_function(X)


def test_a_slow_learner_is_told_from_a_swapped_one():
    assert check_model(Slow())[-1] == "score moves towards +1, too slowly to get there"


def test_a_frozen_classifier_need_only_be_right():
    right = FrozenEstimator(LogisticRegression().fit(VIEW, Y))
    assert check_model(right, VIEW, Y) == EVERYTHING
    with pytest.raises(CheckError, match="Does it learn from its labels"):
        check_model(right, VIEW, -Y)


def test_every_fault_is_in_the_one_error():
    with pytest.raises(CheckError) as refusal:
        check_model(Answers(lambda s: -np.arange(len(s))))
    first, *lines = str(refusal.value).splitlines()
    assert first == "Answers fails 3 of 8 checks"
    assert [line.split(":")[0].strip() for line in lines] == [EVERYTHING[2], EVERYTHING[4], EVERYTHING[7]]


def test_what_needs_a_fitted_model_is_skipped_where_there_is_none():
    checks = {str(check): check for check in model_checks(CannotFit())}
    with pytest.raises(CheckError, match="out of luck"):
        checks["fits"]()
    for name in EVERYTHING[2:]:
        with pytest.raises(SkipTest, match="cannot be fitted as it must be"):
            checks[name]()


def test_a_broken_model_leaves_the_view_as_it_was():
    view = VIEW.copy()
    for check in model_checks(ChangesViewLater(), view, Y):
        with contextlib.suppress(CheckError):
            check()
    np.testing.assert_array_equal(view, VIEW)


def test_the_model_itself_is_left_unfitted():
    model = Means()
    check_model(model)
    assert vars(model) == {"scale": 1.0}


def test_models_fitted_elsewhere():
    fitted = CallableModel(lambda view: view[:, 0])
    assert check_model(fitted, VIEW) == [EVERYTHING[0], *EVERYTHING[2:6]]
    assert check_model(lambda view: view[:, 0], VIEW, Y) == [EVERYTHING[0], *EVERYTHING[2:6], EVERYTHING[7]]
    with pytest.raises(CheckError, match="CallableModel was fitted elsewhere: pass a view"):
        check_model(fitted)
    with pytest.raises(CheckError, match="Are its two outputs swapped"):
        check_model(lambda view: -view[:, 0], VIEW, Y)


@pytest.mark.parametrize(
    ("arguments", "error", "complaint"),
    [
        ((LogisticRegression,), ModelError, "got the class LogisticRegression"),
        ((None,), ModelError, "a model must be a Model, .* got None"),
        ((Means(), None, Y), CheckError, "labels are of use only with a view: pass a view"),
        ((Means(), 3.0), CheckError, "first axis is the items"),
        ((Means(), np.array(["a", "b"])), CheckError, "no easy problem can be made of type <U1: pass the labels y too"),
        ((Means(), VIEW[:3], Y[:3]), CheckError, "at least four items are needed .* has 3"),
        ((Means(), VIEW, Y[:3]), LabelError, "one per item: expected 20"),
    ],
)
def test_impossible_questions(arguments, error, complaint):
    with pytest.raises(error, match=complaint):
        check_model(*arguments)


def test_the_rounding_of_float32_is_allowed():
    """Sums of a thousand float32 products in the order of the batch, as in a network, are no fault."""

    class Network(Means):
        def scores(self, view):
            weights = np.random.default_rng(0).normal(size=(view.shape[1], 1000)).astype(np.float32)
            hidden = np.maximum(view.astype(np.float32) @ weights, 0)
            order = np.random.default_rng(len(view)).permutation(1000)  # another batch, another order
            return super().scores(view) + hidden[:, order].sum(axis=1) * 1e-3

    assert check_model(Network()) == EVERYTHING


def test_importing_the_checks_loads_nothing_heavy():
    code = "import collegium.checks, sys; print(*{'sklearn', 'torch', 'onnxruntime'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


# More than two classes

THREE = np.arange(90) % 3
CORNERS = np.eye(3)[THREE] * 3 + np.random.default_rng(0).normal(size=(90, 3))


class Nearest(Model):
    """Minus the squared distance to the mean of each class, less its mean; flaws on request."""

    def __init__(self, flaw=""):
        self.flaw = flaw

    def fit(self, view, y, validation=None):
        self.classes_ = np.unique(y)
        self.means_ = np.array([view[y == c].mean(axis=0) for c in self.classes_])
        return self

    def scores(self, view):
        means = np.roll(self.means_, 1, axis=0) if self.flaw == "rolled" else self.means_
        f = -((view[:, None] - means) ** 2).sum(axis=2)
        if self.flaw == "one column":
            return f[:, 0]
        return f if self.flaw == "not centred" else f - f.mean(axis=1, keepdims=True)


def test_three_classes_are_checked():
    from sklearn.linear_model import LogisticRegression

    for model in (Nearest(), LogisticRegression()):
        held = check_model(model, CORNERS, np.array(["a", "b", "c"])[THREE])
        assert held[-1] == "score is largest for the true class"
        assert "gives one finite number per item and class" in held
    fitted = CallableModel(lambda view: view * 2)
    assert check_model(fitted, CORNERS, THREE)[-1] == "score is largest for the true class"


@pytest.mark.parametrize(
    ("flaw", "message"),
    [
        ("rolled", "must be the larger one, and positive. Are its outputs in the order of the classes"),
        ("one column", r"must have shape \(90, 3\) for 90 items, it has \(90,\)"),
        ("not centred", "of 3 classes must sum to 0 for each item"),
    ],
)
def test_flaws_of_several_classes(flaw, message):
    with pytest.raises(CheckError, match=message):
        check_model(Nearest(flaw), CORNERS, THREE)
