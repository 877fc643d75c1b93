"""Data and models of users: what they return is looked at before anything is trained on it."""

import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from collegium.agents import PixelLogistic, SklearnModel
from collegium.errors import DataError, InputFileError, ModelError
from collegium.lab import job as jobs
from collegium.lab import own
from collegium.lab.job import Job
from own_parts import MODELS, write_parts


@pytest.fixture
def parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return write_parts(tmp_path)


def test_data_are_read_once_and_again_when_the_file_was_edited(parts):
    first = own.data("my_data.py:load")
    assert own.data("my_data.py:load")[0] is first[0]
    file = parts / "my_data.py"
    file.write_text(file.read_text().replace("draw(60)", "draw(70)"))
    assert len(own.data("my_data.py:load")[1]) == 70


RETURNS = {"None": "got nothing", "7": "got int", "(1,)": "got 1 things: int", "(1, 2)": "got 2 things: int, int"}


@pytest.mark.parametrize("value", RETURNS)
def test_data_must_be_two_data_sets(parts, value):
    (parts / "mine.py").write_text(f"def load():\n    return {value}\n")
    with pytest.raises(DataError, match=r"mine.py:load must return two Datasets, \(train, test\); " + RETURNS[value]):
        own.data("mine.py:load")


MISTAKES = {
    "[1, 2, 3, 4, 5]": "^mine.py:make: a model must be .*; got 1$",
    "[GaussianNB()]": "^mine.py:make: there are 5 agents but 1 models: give one for all, or one per agent$",
    "GaussianNB": r"^mine.py:make: a model is an object, got the class GaussianNB: write GaussianNB\(…\)$",
}


@pytest.mark.parametrize("value", MISTAKES)
def test_models_must_be_one_for_all_or_one_for_each(parts, value):
    (parts / "mine.py").write_text(
        f"from sklearn.naive_bayes import GaussianNB\n\ndef make(train):\n    return {value}\n"
    )
    train, _ = own.data("my_data.py:load")
    with pytest.raises(ModelError, match=MISTAKES[value]):
        own.models("mine.py:make", train)
    assert [type(model).__name__ for model in own.models("my_models.py:make", train)] == [
        *("Mean", "SklearnModel") * 2,
        "Mean",
    ]


def test_an_oracle_takes_the_model_that_all_agents_share():
    tree = SklearnModel(DecisionTreeClassifier())
    assert own.oracle([tree, tree], None, 3).model is tree
    assert own.oracle([tree, SklearnModel(DecisionTreeClassifier(max_depth=2))], None, 3) is None
    assert own.oracle([PixelLogistic()] * 2, None, 3) is None
    assert own.can_train_jointly([PixelLogistic()] * 2)
    assert not own.can_train_jointly([PixelLogistic(), tree])


def test_a_record_of_own_data_and_models(parts):
    record = jobs.run(Job("my_data.py:load", 40, 0, "", methods=True, models="my_models.py:make"))
    assert record.scores.test.shape == (60, 5)
    assert record.scores.agent_names[0] == "sensor 0"
    assert list(record.methods) == ["AdaBoost"]  # no PyTorch, and models that differ
    again = jobs.run(Job("my_data.py:load", 40, 1, "L", methods=True))
    assert list(again.methods) == ["AdaBoost", "Central oracle"]
    assert not np.array_equal(record.scores.test, again.scores.test)


def test_keys_follow_the_files_not_their_place(parts, monkeypatch):
    def key(folder, models="my_models.py:make"):
        return Job(f"{folder}/my_data.py:load", 40, 0, "", models=models and f"{folder}/{models}").key

    first = key(parts)
    assert first.startswith("my_data.load-n40-my_models.make-r0-")
    (parts / "other").mkdir()
    assert key(write_parts(parts / "other")) == first
    assert len({first, key(parts, "my_models.py:apart"), key(parts, None)}) == 3
    (parts / "my_models.py").write_text(MODELS + "# edited\n")
    assert key(parts) != first
    relative = Job("my_data.py:load", 40, 0, "L")
    monkeypatch.chdir("/")
    assert relative.key == Job(f"{parts}/my_data.py:load", 40, 0, "L").key


def test_what_is_wrong_is_said_before_workers_are_started(parts):
    with pytest.raises(InputFileError, match=r"my_data.py has no 'lode' in it"):
        Job("my_data.py:lode", 40, 0, "L").load_own()
    with pytest.raises(InputFileError, match=r"there is no 'forest' among the models: write FILE.py:NAME"):
        Job("my_data.py:load", 40, 0, "", models="forest").load_own()
    with pytest.raises(
        InputFileError, match="no 'mnist' among the data: choose one of cifar10, modelnet, digits, wall_robot"
    ):
        Job("mnist", 40, 0, "L").load_own()
    with pytest.raises(DataError, match=r"there is no family 'Z' for a layout: choose among A, B, C, M, m, L"):
        jobs.run(Job("my_data.py:load", 40, 0, "Z"))
