"""What people have at hand becomes a model of the right kind; what cannot is told what could."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from collegium.agents.adapt import as_model
from collegium.agents.base import Model
from collegium.agents.callable_model import CallableModel
from collegium.agents.onnx_model import OnnxModel
from collegium.agents.sklearn_model import SklearnModel
from collegium.errors import ModelError


class Own(BaseEstimator):
    def fit(self, view, y, validation=None):
        return self

    def scores(self, view):
        return np.zeros(len(view))


class OnlyScores:
    def scores(self, view):
        return view[:, 0]


class OnlyFit:
    def fit(self, view, y):
        return self


class Prefit:
    """Like a classifier of another library, without fit."""

    classes_ = (0, 1)

    def predict_proba(self, view):
        return np.full((len(view), 2), 0.5)


@pytest.mark.parametrize("thing", [Model(), SklearnModel(LogisticRegression()), Own()])
def test_models_stay_themselves(thing):
    assert as_model(thing) is thing


@pytest.mark.parametrize(
    "thing",
    [LogisticRegression(), DecisionTreeClassifier(), make_pipeline(StandardScaler(), LogisticRegression()), Prefit()],
)
def test_classifiers(thing):
    model = as_model(thing)
    assert type(model) is SklearnModel
    assert model.estimator is thing


def test_a_classifier_without_fit_scores():
    assert as_model(Prefit()).scores(np.zeros((3, 2))).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", ["some/model.onnx", Path("MODEL.ONNX")])
def test_onnx_files(name):
    model = as_model(name)
    assert type(model) is OnnxModel
    assert model.path == name


def test_functions_and_objects_with_scores_only():
    view = np.array([[1.0, 2.0], [3.0, 4.0]])
    for thing in (lambda v: v[:, 0], OnlyScores()):
        model = as_model(thing)
        assert type(model) is CallableModel
        assert model.scores(view).tolist() == [1.0, 3.0]


def test_torch_modules():
    torch = pytest.importorskip("torch")
    torch_model = pytest.importorskip("collegium.agents.torch_model")
    module = torch.nn.Linear(2, 2)
    model = as_model(module)
    assert type(model) is torch_model.TorchModel
    assert model.module is module


def test_torch_is_not_loaded_to_find_out():
    code = "from collegium.agents.adapt import as_model; as_model(len); import sys; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (LogisticRegression, r"got the class LogisticRegression: write LogisticRegression\(…\)"),
        ("model.pkl", r"'model\.pkl' does not end in \.onnx"),
        (Path("model"), "does not end in"),
        (LinearRegression(), "LinearRegression has neither decision_function nor predict_proba"),
        (KMeans(), "KMeans has neither"),
        (PCA(), r"must be a Model, .* or an object with fit\(view, y\) and scores\(view\); PCA has fit but no scores"),
        (OnlyFit(), "OnlyFit has fit but no scores"),
        (None, "a scikit-learn classifier or pipeline, .*; got None"),
        (np.zeros((2, 2)), "got array"),
    ],
)
def test_refusals(thing, message):
    with pytest.raises(ModelError, match=message):
        as_model(thing)
