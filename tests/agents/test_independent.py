"""Agents trained alone on the same items: the protocol of the paper, the same numbers for any number of workers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_info

from children import interruptible
from collegium.agents import Model, Scores, SklearnModel, temperature, train
from collegium.agents.independent import Task, descend, fit_side_by_side, seed_sequence, seeded
from collegium.data import Dataset
from collegium.errors import DataError, LabelError, ModelError
from helpers import tiny_images

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="module")
def two_threads_asked_for():
    """The environment asks for more threads than one, as a shell may, and as joblib does on larger machines."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            patch.setenv(name, "2")
        yield


def numbered(n, K, first=0):
    """Items whose every view says which item it is, and whose it is: item i of agent k is i + k/8."""
    y = np.where(np.arange(n) % 3 == 0, 1, -1)
    views = [np.column_stack([first + np.arange(n) + k / 8, np.zeros(n)]) for k in range(K)]
    return Dataset(views, y, ("a", "b"), tuple(f"agent-{k}" for k in range(K)), source="numbers")


class Witness(Model):
    """Remembers what it was shown and scores an item with its number."""

    uses_validation = True

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, view, y, validation=None):
        self.seen_, self.y_, self.validation_ = view[:, 0].copy(), np.array(y), validation
        return self

    def scores(self, view):
        return view[:, 0].copy()


class Plain(Witness):
    """Does not ask for a validation set."""

    uses_validation = False

    def fit(self, view, y):
        return super().fit(view, y)


# Which items, and who sees what


def test_a_balanced_sample_the_same_for_all_agents():
    items = numbered(60, 3)
    s = train(items, numbered(9, 3, first=100), Witness(), n0=20, seed=4)
    assert isinstance(s, Scores)
    assert (s.train.shape, s.val.shape, s.test.shape) == ((16, 3), (4, 3), (9, 3))
    for part in (s.train, s.val, s.test):
        assert np.array_equal(part - part[:, :1], np.tile([0, 1 / 8, 2 / 8], (len(part), 1)))
    chosen = np.concatenate([s.train, s.val])[:, 0].astype(int)
    assert len(set(chosen)) == 20
    assert np.array_equal(items.y[chosen], np.concatenate([s.y_train, s.y_val]))
    assert s.y_train.sum() == s.y_val.sum() == 0
    assert s.test[:, 0].tolist() == list(range(100, 109))
    assert s.y_test.tolist() == numbered(9, 3).y.tolist()


def test_each_model_sees_its_own_view_of_the_training_part_only():
    s = train(numbered(60, 3), numbered(9, 3), Witness(), n0=20, seed=4, workers=2)
    for k, model in enumerate(s.models):
        assert np.array_equal(model.seen_, s.train[:, k])
        assert np.array_equal(model.y_, s.y_train)
        assert np.array_equal(model.validation_[0][:, 0], s.val[:, k])
        assert np.array_equal(model.validation_[1], s.y_val)


def test_a_model_that_asks_for_no_validation_gets_none():
    s = train(numbered(60, 2), numbered(9, 2), [Plain(), Witness()], n0=20)
    assert s.models[0].validation_ is None
    assert s.models[1].validation_ is not None


@pytest.mark.parametrize(
    ("n0", "settings", "held"),
    [(20, {}, 4), (40, {"validation": 0.5}, 20), (None, {}, 8), (10, {"validation": 0.31, "stratify": False}, 3)],
)
def test_the_size_of_the_validation_part(n0, settings, held):
    s = train(numbered(60, 1), numbered(9, 1), Witness(), n0=n0, **settings)
    assert (len(s.val), len(s.train)) == (held, (n0 or 40) - held)


def test_centers_and_temperatures_come_from_the_right_parts():
    images = tiny_images(80, 2)
    s = train(images, tiny_images(10, 2, seed=1), LogisticRegression(C=0.01), n0=60, seed=1)
    assert s.center == pytest.approx([column.sum() / 48 for column in s.train.T], rel=1e-12)
    assert s.statistics() == pytest.approx(s.test - s.center, abs=1e-12)
    assert s.temperature.tolist() == [temperature(s.val[:, k], s.y_val) for k in range(2)]
    for k, model in enumerate(s.models):
        flat = tiny_images(10, 2, seed=1).views[k].reshape(10, 64) / 255
        assert s.test[:, k] == pytest.approx(model.estimator_.decision_function(flat), abs=1e-12)


def test_the_record_says_what_it_is():
    s = train(numbered(60, 2), numbered(9, 2), [Witness(), Plain()], n0=20, seed=9)
    assert s.agent_names == ("agent-0", "agent-1")
    assert s.class_names == ("a", "b")
    assert s.epochs.tolist() == [0, 0]
    for word in ("1 × Witness()", "1 × Plain()", "numbers"):
        assert word in s.description
    assert s.seed == "9"
    assert len(s.rows_train) + len(s.rows_val) == 20
    whole = numbered(60, 2)
    assert np.array_equal(whole.y[s.rows_train], s.y_train)
    assert np.array_equal(whole.y[s.rows_val], s.y_val)
    assert np.array_equal(s.train[:, 0], Witness().scores(whole.views[0][s.rows_train]))
    assert "2 × Witness()" in train(numbered(60, 2), numbered(9, 2), Witness(), n0=20).description


def test_a_list_of_different_models():
    images = tiny_images(60, 3)
    recipes = [LogisticRegression(), RandomForestClassifier(5), SklearnModel(GaussianNB())]
    s = train(images, tiny_images(100, 3, seed=1), recipes)
    assert [type(model.estimator_).__name__ for model in s.models] == [
        "LogisticRegression",
        "RandomForestClassifier",
        "GaussianNB",
    ]
    assert not hasattr(recipes[0], "coef_")
    assert not hasattr(recipes[2], "estimator_")
    # 65 of 100 right by chance: three standard deviations
    assert (np.mean(np.sign(s.test) == s.y_test[:, None], axis=0) > 0.65).all()


# Seeds


def numbers(s):
    return [part.tobytes() for part in (s.train, s.val, s.test, s.y_train, s.y_val, s.temperature)]


def test_the_same_seed_gives_the_same_scores_for_one_and_two_workers_with_scikit_learn():
    images, test = tiny_images(60, 3), tiny_images(20, 3, seed=1)
    recipes = [RandomForestClassifier(5), LogisticRegression(), RandomForestClassifier(5)]
    one = train(images, test, recipes, n0=40, seed=3, workers=1)
    assert numbers(train(images, test, recipes, n0=40, seed=3, workers=2)) == numbers(one)
    assert numbers(train(images, test, recipes, n0=40, seed=4, workers=1)) != numbers(one)
    assert one.models[0].estimator_.random_state != one.models[2].estimator_.random_state


def test_the_same_seed_gives_the_same_scores_for_one_and_two_workers_with_torch():
    pytest.importorskip("torch")
    from collegium.agents import MicroCNN, PatchCNN, SmallResNet, Training

    brief = Training(learning_rate=0.01, batch_size=16, max_epochs=2)
    recipes = [
        PatchCNN((4, 8), 8, dropout=0.2, training=brief),
        MicroCNN(8, dropout=0.2, training=brief),
        SmallResNet((8, 8), training=brief),
        RandomForestClassifier(5),
    ]
    images, test = tiny_images(60, 4), tiny_images(20, 4, seed=1)
    one = train(images, test, recipes, n0=40, seed=3, workers=1)
    two = train(images, test, recipes, n0=40, seed=3, workers=2)
    assert numbers(two) == numbers(one)
    assert two.epochs.tolist() == [2, 2, 2, 0]
    assert two.models[0].scores(test.views[0]).tobytes() == two.test[:, 0].tobytes()
    assert numbers(train(images, test, recipes, n0=40, seed=4, workers=2)) != numbers(one)


def test_few_channels_leave_the_memory_whole():
    """In processes that may die of it: PyTorch's strided 1×1 convolution writes beyond its array there."""
    pytest.importorskip("torch")
    from collegium.agents import SmallResNet, Training

    brief = Training(learning_rate=0.02, batch_size=8, max_epochs=3)
    recipes = [SmallResNet(channels, training=brief) for channels in ((4, 6), (3, 5), (4, 4), (1, 4, 8))]
    s = train(tiny_images(300, 4), tiny_images(20, 4, seed=1), recipes, workers=2)
    assert np.isfinite(s.test).all()


def test_a_seed_sequence_is_a_seed_and_is_left_as_it_was():
    images, test = tiny_images(40, 2), tiny_images(10, 2, seed=1)
    root = np.random.SeedSequence(3)
    first = train(images, test, RandomForestClassifier(3), seed=root)
    assert root.n_children_spawned == 0
    assert numbers(train(images, test, RandomForestClassifier(3), seed=root)) == numbers(first)
    assert numbers(train(images, test, RandomForestClassifier(3), seed=3)) == numbers(first)
    children = [train(images, test, RandomForestClassifier(3), seed=child) for child in root.spawn(2)]
    assert len({b"".join(numbers(s)) for s in (first, *children)}) == 3


def test_adding_an_agent_changes_nothing_for_the_others():
    few, many = tiny_images(40, 2), tiny_images(40, 3)
    many = Dataset([*few.views, many.views[2]], few.y, few.class_names, many.agent_names)
    two = train(few, few, RandomForestClassifier(3), n0=20)
    three = train(many, many, RandomForestClassifier(3), n0=20)
    assert np.array_equal(three.test[:, :2], two.test)


def test_every_open_random_state_is_drawn_and_no_other():
    drawn = [seeded(Witness(), descend(seed_sequence(0, "seed"), k)).random_state for k in (0, 1, 0)]
    assert drawn[0] == drawn[2] != drawn[1]
    assert seeded(Witness(random_state=5), seed_sequence(0, "seed")).random_state == 5
    forest = seeded(RandomForestClassifier(), seed_sequence(0, "seed"))
    assert isinstance(forest.estimator.random_state, int)
    original = Witness()
    assert seeded(original, seed_sequence(0, "seed")) is not original
    assert original.random_state is None


def test_seeds_of_every_kind():
    def scores(seed):
        return train(numbered(60, 1), numbered(9, 1), Witness(), n0=20, seed=seed).rows_train.tolist()

    assert scores(np.random.default_rng(4)) == scores(np.random.default_rng(4))
    assert scores(np.random.RandomState(4)) == scores(np.random.RandomState(4)) != scores(np.random.RandomState(5))
    assert scores(None) != scores(None)  # one chance in more than a billion billion


@pytest.mark.parametrize("seed", [-1, 1.5, "one", True])
def test_seeds_that_are_none(seed):
    with pytest.raises(ModelError, match="seed must be a whole number, at least 0"):
        train(numbered(60, 1), numbered(9, 1), Witness(), seed=seed)


def test_linear_algebra_uses_one_thread_whatever_the_workers():
    class Counting(Model):  # defined here, so that it travels to another process whole
        needs_process = True

        def fit(self, view, y, validation=None):
            self.threads_ = max(pool["num_threads"] for pool in threadpool_info())
            return self

        def scores(self, view):
            return np.full(len(view), float(self.threads_))

    for workers in (1, 2):
        assert set(train(numbered(60, 2), numbered(9, 2), Counting(), workers=workers).test.ravel()) == {1.0}


# Progress


def test_workers_tell_how_far_they_are(monkeypatch):
    from collegium.agents import independent

    told = []

    class Reporting(Model):
        needs_process = True
        reports_progress = True

        def fit(self, view, y, validation=None, progress=None):
            progress(0.5)
            return self

        def scores(self, view):
            return np.zeros(len(view))

    watched = independent._watched

    def watch(done):
        told.append(done)
        return watched(done)

    monkeypatch.setattr(independent, "_watched", watch)
    train(numbered(60, 2), numbered(9, 2), Reporting(), workers=2)
    assert told[0].tolist() == [1.0, 1.0]


# Mistakes


def test_sizes_that_cannot_be_had_name_the_largest():
    for n0 in (42, 21):
        with pytest.raises(DataError, match=rf"even number, at most 40: .* 20 and 40 items; got {n0}"):
            train(numbered(60, 1), numbered(9, 1), Witness(), n0=n0)


def test_as_many_models_as_agents():
    with pytest.raises(ModelError, match="3 agents but 2 models: give one for all, or one per agent"):
        train(numbered(60, 3), numbered(9, 3), [Witness(), Witness()])


def test_training_and_test_data_belong_together():
    with pytest.raises(DataError, match=r"the same agents and classes: Dataset\(60 items.* and Dataset\(9 items"):
        train(numbered(60, 3), numbered(9, 2), Witness())
    other = numbered(9, 3)
    other = Dataset(other.views, other.y, ("b", "a"), other.agent_names)
    with pytest.raises(DataError, match="the same agents and classes"):
        train(numbered(60, 3), other, Witness())


@pytest.mark.parametrize("workers", [0, -1, 1.5, "two", True])
def test_workers_that_are_none(workers):
    with pytest.raises(ModelError, match="workers must be a whole number, at least 1"):
        train(numbered(60, 1), numbered(9, 1), Witness(), workers=workers)


def test_things_that_are_no_models():
    with pytest.raises(ModelError, match="a model must be"):
        train(numbered(60, 1), numbered(9, 1), 5)


@pytest.mark.parametrize("processes", [False, True])
def test_the_agent_of_a_failing_model_is_named(processes):
    class Failing(Model):
        needs_process = processes

        def fit(self, view, y, validation=None):
            raise LabelError("this model is tired")

    with pytest.raises(LabelError, match=r"^agent 'agent-1': this model is tired$"):
        train(numbered(60, 3), numbered(9, 3), [LogisticRegression(), Failing(), LogisticRegression()], workers=2)


def test_the_agent_of_a_model_that_fails_in_its_own_words_is_named():
    class Broken(Model):
        def fit(self, view, y, validation=None):
            raise RuntimeError("out of memory")

    with pytest.raises(Exception, match="out of memory") as caught:
        train(numbered(60, 2), numbered(9, 2), [Witness(), Broken()], workers=1)
    assert "agent-1" in " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def test_a_model_of_the_wrong_kind_names_its_agent():
    nan = numbered(60, 2)
    views = [nan.views[0], np.full((60, 2), np.nan)]
    with pytest.raises(ModelError, match=r"^agent 'agent-1': .*NaN"):
        train(Dataset(views, nan.y, nan.class_names, nan.agent_names), nan, LogisticRegression())


def test_no_tasks_and_no_leftovers(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    train(numbered(60, 2), numbered(9, 2), Witness(), workers=2)
    assert list(tmp_path.iterdir()) == []


# Ctrl-C

ENDLESS = """
import sys
sys.path.insert(0, "tests")
from helpers import tiny_images
from collegium import agents

endless = agents.Training(learning_rate=1e-6, max_epochs=10**9, patience=10**9)
images = tiny_images(40, 3)
agents.train(images, images, agents.PatchCNN(training=endless), workers=2)
"""


def descendants(pid):
    """Processes that run below this one; those that ended and wait for their parent do not count."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(entry.parent.name)] = int(parent)
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.fixture
def endless(tmp_path):
    """A training that would never end, with its workers."""
    pytest.importorskip("torch")
    if not Path("/proc/self/stat").exists():
        pytest.skip("looks for processes in /proc")
    places = {"TMPDIR": str(tmp_path), "JOBLIB_TEMP_FOLDER": str(tmp_path)}
    with interruptible(
        [sys.executable, "-c", ENDLESS],
        cwd=ROOT,
        env=os.environ | places,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:

        def begun():
            assert process.poll() is None, process.stderr.read()
            done = [np.fromfile(path) for path in tmp_path.glob("collegium-*/done")]
            return bool(done) and np.count_nonzero(done[0]) >= 2

        until(begun, 200, "training did not begin")
        workers = descendants(process.pid)
        assert len(workers) >= 2
        yield process, workers


def test_an_interrupt_ends_everything_promptly(endless, tmp_path):
    process, workers = endless
    process.send_signal(signal.SIGINT)  # the parent alone: it has to end its workers
    _, words = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in words
    until(lambda: not any(map(alive, workers)), 120, "worker processes are left")
    left = [path.name for path in tmp_path.iterdir()]
    assert not [name for name in left if name.startswith(("collegium-", "joblib"))]


def test_workers_of_a_killed_training_end(endless):
    process, workers = endless
    process.kill()
    until(lambda: not any(map(alive, workers)), 120, "worker processes are left")


def test_tasks_can_be_fitted_without_anything_held_out():
    from collegium.agents.independent import Task

    items = numbered(6, 1)
    task = Task("one", Witness(), items.views[0], items.y, np.arange(6), np.empty(0, np.int64))
    (fit,) = fit_side_by_side([task], 1)
    assert fit.train.tolist() == list(range(6))
    assert (fit.val.shape, fit.test.shape) == ((0,), (0,))
    assert fit.model.validation_ is None


# More than two classes


def four_corners(n, seed):
    """Two views of four classes; any data set with these fields will do."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    views = [np.array([[1, 0], [0, 1], [0, -1], [-1, 0]])[y] * 2.0 + rng.normal(size=(n, 2)) for _ in range(2)]
    return SimpleNamespace(
        views=views, y=y, class_names=tuple("abcd"), agent_names=("left", "right"), size=2, source="corners"
    )


def test_agents_of_four_classes():
    sides, later = four_corners(120, 0), four_corners(60, 1)
    scores = train(sides, later, LogisticRegression(), n0=80, seed=3)
    assert scores.train.shape == (64, 2, 4)
    assert scores.val.shape == (16, 2, 4)
    assert np.bincount(scores.y_train).tolist() == [16] * 4
    own = LogisticRegression().fit(sides.views[1][scores.rows_train], sides.y[scores.rows_train])
    logs = np.maximum(own.predict_log_proba(later.views[1]), np.log(1e-6))
    np.testing.assert_allclose(scores.test[:, 1], logs - logs.mean(axis=1, keepdims=True), atol=1e-9)
    both = scores.statistics("test").mean(axis=1).argmax(axis=1)
    alone = scores.test.argmax(axis=2)
    assert (both == later.y).mean() > (alone == later.y[:, None]).mean()


def test_a_class_that_was_not_learned_has_no_evidence():
    """Fitted on three of four places, an agent says nothing of the fourth."""
    sides = four_corners(40, 0)
    some = np.flatnonzero(sides.y != 2)
    task = Task("left", SklearnModel(LogisticRegression()), sides.views[0], sides.y, some, np.arange(40), classes=4)
    (fit,) = fit_side_by_side([task], 1)
    assert (fit.val[:, 2] == 0).all()
    np.testing.assert_allclose(fit.val.sum(axis=1), 0, atol=1e-12)
    own = LogisticRegression().fit(sides.views[0][some], sides.y[some]).predict_log_proba(sides.views[0])
    own = np.maximum(own, np.log(1e-6))
    np.testing.assert_allclose(fit.val[:, [0, 1, 3]], own - own.mean(axis=1, keepdims=True), atol=1e-9)
