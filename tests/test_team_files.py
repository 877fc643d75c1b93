"""A team that was saved and loaded decides exactly as before; a folder that was touched in between is refused."""

import contextlib
import errno
import io
import json
import math
import os
import pickle
import re
import shutil
import stat
import sys
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from collegium import Team, policy, topology
from collegium._team_files.folder import manifest_text
from collegium._team_files.values import Malformed, decode, encode
from collegium.agents import (
    CallableModel,
    MicroCNN,
    OnnxModel,
    PatchCNN,
    PixelLogistic,
    SklearnModel,
    SmallResNet,
    TorchModel,
    Training,
)
from collegium.errors import BackendError, CollegiumError, DataError, InputFileError, ModelError, PolicyError
from collegium.protocol import DeGroot, LabelStability, Quantised
from helpers import RULES, Stubborn

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("safetensors")

RNG = np.random.default_rng(5)
SIGNS = np.where(np.arange(40) % 2, 1, -1)
TABLE = RNG.normal(size=(40, 6)) + 0.5 * SIGNS[:, None]
IMAGES = (RNG.random((40, 8, 8, 3)) * 200 + 20 * (SIGNS > 0)[:, None, None, None]).astype(np.uint8)
ONCE = Training(max_epochs=1, batch_size=16)
TREE = "sklearn.tree._tree.Tree"


class Own(torch.nn.Module):
    """A module of somebody else's, with a tied weight and a buffer."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.first = torch.nn.Linear(width, 2)
        self.again = torch.nn.Linear(width, 2)
        self.again.weight = self.first.weight
        self.register_buffer("steps", torch.arange(3))

    def forward(self, x):
        return self.first(x) + self.again(x).relu()


class Tossed(ClassifierMixin, BaseEstimator):
    """An estimator that skops has never heard of."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] * 0.5


class Duck:
    def fit(self, view, y):
        return self

    def scores(self, view):
        return view[:, 0]


class OwnFamily(PatchCNN):
    pass


def ring(K):
    return policy.uniform(topology.ring(K))


def onnx_file(folder, name="graph.onnx", width=6):
    weight = np.random.default_rng(1).normal(size=(width, 2)).astype(np.float32)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["view", "w"], ["y"])],
        "test",
        [onnx.helper.make_tensor_value_info("view", onnx.TensorProto.FLOAT, ("n", width))],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ("n", 2))],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    (folder / name).write_bytes(model.SerializeToString())
    return folder / name


def tables(folder):
    labels = np.where(SIGNS > 0, "yes", "no")
    agents = [
        ("plain", LogisticRegression()),
        ("pipe/line", make_pipeline(StandardScaler(), FunctionTransformer(np.abs), LogisticRegression(C=0.3))),
        ("forest", SklearnModel(RandomForestClassifier(7), clip=1e-4)),
    ]
    team = Team(
        agents,
        policy.Policy([[0.5, 0.1, 0.2], [0.3, 0.6, 0.2], [0.2, 0.3, 0.6]], graph=topology.complete(3)),
        rounds=7,
        rule=Quantised(LabelStability(2, 0.1), 8, 40.0),
        calibrate=True,
        columns=[[0, 1], slice(2, 4), np.array([4, 5])],
        random_state=3,
    )
    return team.fit(TABLE, labels), TABLE, {"trusted": [TREE]}


def families(folder):
    models = [PatchCNN((4, 5), hidden=6), PixelLogistic(), SmallResNet((8, 10)), MicroCNN(5, dropout=0.1)]
    agents = [(type(model).__name__, model.set_params(training=ONCE)) for model in models]
    team = Team(agents, ring(4), bounded=True, workers=1, random_state=1).fit([IMAGES] * 4, SIGNS > 0)
    return team, [IMAGES] * 4, {}


def gray(folder):
    """Images without channels, which scikit-learn's models see scaled to 0…1."""
    view = IMAGES[..., 0]
    agents = [("a", PatchCNN(training=ONCE)), ("b", LogisticRegression())]
    team = Team(agents, ring(2), workers=1, random_state=1).fit([view, view], SIGNS)
    return team, [view, view], {}


def doubled(view):
    return torch.tensor(view, dtype=torch.float32) * 2


def own_modules(folder):
    agents = [("factory", TorchModel(Own, training=ONCE)), ("turned", TorchModel(Own(), doubled, ONCE))]
    team = Team(agents, ring(2), workers=1, random_state=2).fit([TABLE] * 2, SIGNS)
    return team, [TABLE] * 2, {"modules": {"factory": Own, "turned": TorchModel(Own(), doubled)}}


def mixed(folder):
    """Every kind of file, none of them fitted by us."""
    cnn = PatchCNN((2, 3), hidden=4, training=ONCE, random_state=1).fit(IMAGES, SIGNS)
    agents = [
        ("skops", LogisticRegression().fit(TABLE, np.where(SIGNS > 0, "dog", "cat"))),
        ("family", cnn),
        ("module", Own()),
        ("file", str(onnx_file(folder))),
        ("settings", OnnxModel(onnx_file(folder, "b.onnx"), kind="score", positive=0)),
    ]
    views = [TABLE, IMAGES, TABLE, TABLE, TABLE]
    team = Team.from_fitted(agents, policy.metropolis(topology.path(5)), train_views=views, classes=["cat", "dog"])
    return team, views, {"modules": {"module": Own()}}


MIXED_FILES = [
    "manifest.json",
    "policy.npz",
    "00-skops.skops",
    "01-family.safetensors",
    "02-module.safetensors",
    "03-file.onnx",
    "04-settings.onnx",
]
BUILDERS = [tables, families, gray, own_modules, mixed]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Each team built and saved once: (team, views, what its loading needs, folder)."""
    known = {}

    def make(builder):
        if builder not in known:
            folder = tmp_path_factory.mktemp(builder.__name__)
            team, views, trust = builder(folder)
            team.save(folder / "saved")
            known[builder] = team, views, trust, folder / "saved"
        return known[builder]

    return make


@pytest.fixture
def copied(made, tmp_path):
    """The mixed team's folder, to be spoiled, and how to load it."""
    _, _, trust, folder = made(mixed)
    shutil.copytree(folder, tmp_path / "saved")
    return tmp_path / "saved", lambda: Team.load(tmp_path / "saved", **trust)


@pytest.fixture
def quick():
    """The smallest team there is."""
    return Team([("a", LogisticRegression())], ring(1), rounds=2).fit([TABLE], SIGNS)


def forge(folder, change):
    """Edit the manifest as somebody would who knows how its checksum is made."""
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    del content["checksum"]
    change(content)
    path.write_bytes(manifest_text(content))


# Round trips


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_loaded_team_decides_bit_for_bit_as_before(made, builder):
    team, views, trust, folder = made(builder)
    loaded = Team.load(str(folder), **trust)
    assert np.array_equal(loaded.scores(views), team.scores(views))
    assert np.array_equal(loaded.run(views, rng=9).statistics, team.run(views, rng=9).statistics)
    assert np.array_equal(loaded.predict(views), team.predict(views))
    assert loaded.classes_.dtype == team.classes_.dtype
    for name in ("classes_", "temperature_", "center_", "gains_"):
        assert np.array_equal(getattr(loaded, name), getattr(team, name))
    assert loaded.policy == team.policy
    assert np.array_equal(loaded.policy.graph.positions, team.policy.graph.positions)
    assert [type(model) for model in loaded.models_] == [type(model) for model in team.models_]


def test_gains_come_back_and_are_one_in_a_folder_from_before_there_were_any(quick, tmp_path):
    plain = quick.statistics([TABLE])
    quick.pipeline_ = replace(quick.pipeline_, gain=[0.3])
    quick.save(tmp_path / "t")
    loaded = Team.load(tmp_path / "t")
    assert loaded.gains_.tolist() == [0.3]
    assert np.array_equal(loaded.statistics([TABLE]), quick.statistics([TABLE]))
    assert not np.array_equal(loaded.statistics([TABLE]), plain)
    forge(tmp_path / "t", at("learned", "gains_", ...))
    old = Team.load(tmp_path / "t")
    assert old.gains_.tolist() == [1]
    assert np.array_equal(old.statistics([TABLE]), plain)


@pytest.mark.parametrize("builder", BUILDERS)
def test_settings_and_the_kinds_of_agents_come_back(made, builder):
    team, _, trust, folder = made(builder)
    loaded = Team.load(folder, **trust)
    simple = [name for name in team.get_params(deep=False) if name not in ("agents", "policy", "columns")]
    assert {name: getattr(loaded, name) for name in simple} == {name: getattr(team, name) for name in simple}
    assert [(name, type(thing)) for name, thing in loaded.agents if not isinstance(thing, Path)] == [
        (name, type(thing)) for name, thing in team.agents if not str(thing).endswith(".onnx")
    ]
    assert set(loaded.get_params()) == set(team.get_params())


def test_a_loaded_team_can_be_fitted_cloned_and_saved_again(made, tmp_path):
    team, views, trust, folder = made(tables)
    loaded = Team.load(folder, **trust)
    loaded.save(tmp_path / "again")
    assert np.array_equal(Team.load(tmp_path / "again", **trust).scores(views), team.scores(views))
    y = team.predict(views)
    assert np.array_equal(clone(loaded).fit(views, y).scores(views), clone(team).fit(views, y).scores(views))
    with pytest.raises(NotFittedError):
        clone(loaded).save(tmp_path / "unfitted")


def test_what_torch_models_learned_comes_back(made):
    for builder in (families, own_modules):
        team, _, trust, folder = made(builder)
        for before, after in zip(team.models_, Team.load(folder, **trust).models_, strict=True):
            assert after.history_ == before.history_
            assert after.input_shape_ == before.input_shape_
            assert np.array_equal(after.classes_, before.classes_)
            assert after.training == before.training
            assert not after.module_.training


def test_a_prefit_module_stays_prefit_and_the_one_given_is_left_alone(made):
    team, _, _, folder = made(mixed)
    given = Own()
    before = given.first.weight.detach().clone()
    loaded = Team.load(folder, modules={"module": given})
    assert torch.equal(given.first.weight, before)
    assert not hasattr(loaded.models_[2], "module_")
    assert np.array_equal(loaded.models_[2].scores(TABLE), team.models_[2].scores(TABLE))


def test_columns_come_back_in_every_form(quick, tmp_path):
    forms = [
        [0, 1, 2],
        (3, 4),
        slice(None, -1, 2),
        range(1, 4),
        2,
        np.array([True] * 3 + [False] * 3),
        np.array([5, 0], np.uint8),
    ]
    X = TABLE
    agents = [(f"a{k}", LogisticRegression()) for k in range(len(forms))]
    team = Team(agents, ring(len(forms)), columns=forms).fit(X, SIGNS)
    team.save(tmp_path / "t")
    loaded = Team.load(tmp_path / "t")
    assert np.array_equal(loaded.scores(X), team.scores(X))
    assert list(map(repr, loaded.columns)) == list(map(repr, forms))
    with pytest.raises(DataError, match="7 features"):
        loaded.scores(np.ones((3, 7)))


def test_columns_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(TABLE, columns=list("abcdef"))
    forms = [["a", "c"], slice("b", "d"), "f"]
    given = [pandas.Index(["a", "c"]), *forms[1:]]  # names as X.columns[…] gives them are kept as a list
    team = Team([(name, LogisticRegression()) for name in "xyz"], ring(3), columns=given).fit(X, SIGNS)
    team.save(tmp_path / "t")
    loaded = Team.load(tmp_path / "t")
    assert loaded.columns == forms
    assert np.array_equal(loaded.scores(X), team.scores(X))
    assert loaded.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(DataError, match="feature names"):
        loaded.scores(X[list("fedcba")])


@pytest.mark.parametrize(
    "classes",
    [
        np.array([0, 1]),
        np.array([3, 8], np.uint8),
        np.array([False, True]),
        np.array([0.1, 0.30000000000000004]),
        np.array([0.1, 0.2], np.float32),
        np.array(["cat", "größer\n"]),
        np.array(["a", "b"], object),
        np.array([1, 2], ">i4"),
    ],
    ids=lambda classes: str(classes.dtype),
)
def test_labels_keep_type_and_value(classes, tmp_path):
    y = classes[(SIGNS > 0).astype(int)]
    team = Team([("a", LogisticRegression())], ring(1)).fit([TABLE], y)
    team.save(tmp_path / "t")
    loaded = Team.load(tmp_path / "t")
    assert loaded.classes_.dtype == team.classes_.dtype
    assert loaded.classes_.tolist() == team.classes_.tolist()
    assert loaded.predict([TABLE]).dtype == team.predict([TABLE]).dtype


def test_numbers_of_numpy_as_settings(quick, tmp_path):
    quick.set_params(
        rounds=np.int64(3), bounded=np.bool_(quick.bounded), validation=np.float32(0.1), random_state=np.uint32(7)
    )
    quick.save(tmp_path / "t")
    loaded = Team.load(tmp_path / "t")
    for name in ("rounds", "bounded", "validation", "random_state"):
        assert getattr(loaded, name) == getattr(quick, name)
        assert type(getattr(loaded, name)) is type(getattr(quick, name))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_rule_has_a_form(rule):
    assert decode(json.loads(json.dumps(encode(rule, "rule")))) == rule


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
ENDS = st.none() | st.integers() | st.text()


NESTED = st.recursive(
    PLAIN | st.builds(slice, ENDS, ENDS, ENDS), lambda some: st.lists(some, max_size=3) | st.tuples(some), max_leaves=6
)


@given(NESTED)
def test_values_come_back_as_they_were(value):
    assert repr(decode(json.loads(json.dumps(encode(value, "it"))))) == repr(value)  # repr tells 1, 1.0 and True apart


def test_the_manifest_is_strict_json_and_always_the_same(made, tmp_path):
    team, _, _, folder = made(families)
    team.save(tmp_path / "again")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()
    }

    def refuse(constant):
        raise AssertionError(constant)

    content = json.loads((folder / "manifest.json").read_text(), parse_constant=refuse)
    assert list(content) == sorted(content)
    assert set(content["versions"]) == {"collegium", "numpy", "python", "safetensors", "torch"}
    assert set(content["files"]) | {"manifest.json", "local.sig"} == {path.name for path in folder.iterdir()}


def test_loading_leaves_random_numbers_alone(made):
    saved = [made(builder)[2:] for builder in (families, own_modules)]
    before = torch.random.get_rng_state()
    for trust, folder in saved:
        Team.load(folder, **trust)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_onnx_models_do_not_depend_on_the_working_directory(made, monkeypatch, tmp_path):
    team, _, trust, folder = made(mixed)
    monkeypatch.chdir(folder.parent)
    model = Team.load("saved", **trust).models_[3]
    monkeypatch.chdir(tmp_path)
    assert np.array_equal(clone(model).scores(TABLE), team.models_[3].scores(TABLE))


def test_another_version_of_scikit_learn_is_a_warning(quick, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("sklearn.base.__version__", "1.0")
        quick.save(tmp_path / "t")
    with pytest.warns(InconsistentVersionWarning):
        assert np.array_equal(Team.load(tmp_path / "t").scores([TABLE]), quick.scores([TABLE]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InconsistentVersionWarning):
            Team.load(tmp_path / "t")


# No pickle


@contextlib.contextmanager
def no_pickle():
    """Within, whoever pickles or unpickles fails: in Python by name, and in C wherever a pickle names a class."""

    class Refused:
        def __new__(cls, *args, **more):
            raise AssertionError("pickle was used")

        def __init_subclass__(cls):
            raise AssertionError("pickle was used")

    names = ("load", "loads", "dump", "dumps", "Pickler", "Unpickler", "_Pickler", "_Unpickler")
    with pytest.MonkeyPatch.context() as patch:
        for module in (pickle, sys.modules["_pickle"]):
            for name in names:
                if hasattr(module, name):
                    patch.setattr(module, name, Refused)
        _watched.append(True)
        try:
            yield
        finally:
            _watched.pop()


_watched: list[bool] = []


def _listen(event, args):
    if _watched and event == "pickle.find_class":
        raise AssertionError("pickle was read")


sys.addaudithook(_listen)


def test_the_guard_sees_pickles_of_all_kinds(tmp_path):
    import joblib

    dumped = pickle.dumps(LogisticRegression())
    unpickler = pickle.Unpickler(io.BytesIO(dumped))
    torch.save({"a": torch.ones(1)}, tmp_path / "t.pt")
    np.save(tmp_path / "n.npy", np.array([LogisticRegression()]), allow_pickle=True)
    joblib.dump(LogisticRegression(), tmp_path / "j.joblib")
    for use in (
        lambda: pickle.loads(dumped),
        lambda: unpickler.load(),  # made before the guard: only the audit sees it
        lambda: pickle.dumps(1),
        lambda: torch.load(tmp_path / "t.pt", weights_only=False),
        lambda: np.load(tmp_path / "n.npy", allow_pickle=True),
        lambda: joblib.load(tmp_path / "j.joblib"),
    ):
        with pytest.raises(AssertionError, match=r"pickle was (used|read)"), no_pickle():
            use()


@pytest.mark.parametrize("builder", BUILDERS)
def test_neither_saving_nor_loading_pickles(made, builder, tmp_path):
    team, views, trust, _ = made(builder)
    with no_pickle():
        team.save(tmp_path / "t")
        loaded = Team.load(tmp_path / "t", **trust)
    assert np.array_equal(loaded.scores(views), team.scores(views))
    for path in (tmp_path / "t").iterdir():
        contents = [path.read_bytes()]
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                contents += [archive.read(name) for name in archive.namelist()]
        for content in contents:
            assert not re.match(rb"\x80[\x02-\x05]", content)  # how a pickle begins
            assert not re.match(rb"\x93NUMPY.{4,8}\{'descr': '\|O'", content, re.DOTALL)  # an array of pickles


# What cannot be saved is refused before anything is written


def assert_refused(team, folder, error, match, late=False):
    """Neither the folder is made nor, unless it turns out late, the one it would be in."""
    with pytest.raises(error, match=match):
        team.save(folder / "t" if late else folder / "new" / "t")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (lambda view: view[:, 0], "agent 'odd': a function cannot be saved"),
        (CallableModel(abs), "agent 'odd': a function cannot be saved"),
        (Duck(), r"agent 'odd': a model of your own \(Duck\)"),
        (OwnFamily(), r"agent 'odd': a model of your own \(OwnFamily\)"),
        (PatchCNN(), "agent 'odd': PatchCNN is not fitted"),
        (SklearnModel(LogisticRegression()), "agent 'odd': .* is not fitted"),
        (TorchModel(Own(), random_state=np.random), "agent 'odd': random_state cannot be saved"),
    ],
    ids=["lambda", "callable", "duck", "subclass", "unfitted family", "unfitted estimator", "setting"],
)
def test_models_without_a_file(model, match, tmp_path):
    fitted = LogisticRegression().fit(TABLE, SIGNS)
    team = Team.from_fitted([("fine", fitted), ("odd", model)], ring(2), center=False)
    assert_refused(team, tmp_path, ModelError, match)


def test_an_estimator_with_a_lambda(tmp_path):
    pipeline = make_pipeline(FunctionTransformer(lambda X: X * 2), LogisticRegression())
    team = Team([("odd", pipeline)], ring(1)).fit([TABLE], SIGNS)
    assert_refused(team, tmp_path, ModelError, "agent 'odd': Pipeline cannot be written by skops .*lambda", late=True)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (
            {"rule": Stubborn(0.5)},
            r"rule cannot be saved: Stubborn has no name to write it by: list it in the entry-point group",
        ),
        ({"rule": Quantised(Stubborn(0.5), 4, 2.0)}, "rule cannot be saved: Stubborn has no name"),
        ({"columns": [lambda X: [0]]}, r"columns\[0\] cannot be saved: a function \(<lambda>\)"),
        ({"columns": [np.array(["2020-01-01"], "M8[D]")]}, r"columns\[0\] .* type datetime64"),
        ({"random_state": np.random.default_rng(0)}, "random_state cannot be saved: Generator has no form"),
        ({"validation": math.nan}, "validation is nan"),
        ({"bounded": True}, "bounded was changed since the team was fitted"),
        ({"agents": [("a", Tossed()), ("b", Tossed())], "policy": ring(2)}, "fitted with 1 agents and has 2 now"),
    ],
)
def test_settings_without_a_form(quick, settings, match, tmp_path):
    assert_refused(quick.set_params(**settings), tmp_path, ModelError, match)


def test_a_policy_of_another_size(quick, tmp_path):
    assert_refused(quick.set_params(policy=ring(2)), tmp_path, PolicyError, "there are 1 agents, but the network has 2")


def test_numbers_that_json_has_not(quick, tmp_path):
    quick.classes_ = np.array([0.0, math.inf])
    assert_refused(quick, tmp_path, ModelError, "classes_ holds NaN or infinity")


def test_an_onnx_file_that_is_gone_or_not_alone(tmp_path):
    outside = tmp_path / "models"
    outside.mkdir()
    path = onnx_file(outside)
    team = Team.from_fitted([("a", path)], ring(1), train_views=[TABLE])
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert np.isfinite(OnnxModel(path).scores(TABLE)).all()
    (tmp_path / "to").mkdir()
    assert_refused(
        team, tmp_path / "to", ModelError, "agent 'a': .*graph.onnx does not run from another folder", late=True
    )
    path.unlink()
    assert_refused(team, tmp_path / "to", InputFileError, "agent 'a': .*graph.onnx: No such file", late=True)


# Whole or not at all


def test_a_folder_in_use_is_refused_and_an_empty_one_is_taken(quick, tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "letter").write_text("dear")
    (tmp_path / "file").write_text("dear")
    for name in ("used", "file"):
        with pytest.raises(InputFileError, match=f"{name} exists already"):
            quick.save(tmp_path / name)
    assert (tmp_path / "used" / "letter").read_text() == (tmp_path / "file").read_text() == "dear"
    (tmp_path / "empty").mkdir()
    quick.save(tmp_path / "empty")
    quick.save(tmp_path / "new" / "deep")
    for path in (tmp_path / "empty", tmp_path / "new" / "deep"):
        assert np.array_equal(Team.load(path).scores([TABLE]), quick.scores([TABLE]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "new", "used"]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_the_folder_has_the_usual_permissions(quick, tmp_path):
    (tmp_path / "usual").mkdir()
    quick.save(tmp_path / "t")
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


@pytest.mark.parametrize("moment", ["os.replace", "os.fsync", "collegium._team_files.models.write"])
@pytest.mark.parametrize("problem", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_an_interrupted_save_leaves_nothing(quick, tmp_path, monkeypatch, moment, problem):
    def fail(*args):
        raise problem

    monkeypatch.setattr(moment, fail)
    expected = KeyboardInterrupt if isinstance(problem, KeyboardInterrupt) else InputFileError
    with pytest.raises(expected, match="No space left" if expected is InputFileError else None):
        quick.save(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_is_written_last(quick, tmp_path, monkeypatch):
    names = []
    write = Path.open

    def noted(path, mode="r", *more, **others):
        if "x" in mode:
            names.append(path.name)
        return write(path, mode, *more, **others)

    monkeypatch.setattr(Path, "open", noted)
    quick.save(tmp_path / "t")
    assert names == ["policy.npz", "00-a.skops", "manifest.json"]


# Damage


def test_the_list_of_files_is_complete(made):
    _, _, _, folder = made(mixed)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*MIXED_FILES, "local.sig"])


@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("name", MIXED_FILES)
def test_one_changed_byte(copied, name, place):
    folder, load = copied
    data = bytearray((folder / name).read_bytes())
    data[round(place * (len(data) - 1))] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(InputFileError, match=name):
        load()


@pytest.mark.parametrize("name", MIXED_FILES)
def test_files_that_are_cut_off_longer_or_missing(copied, name):
    folder, load = copied
    whole = (folder / name).read_bytes()
    for data in (b"", whole[:-1], whole + b"\n", whole[: len(whole) // 2]):
        (folder / name).write_bytes(data)
        with pytest.raises(InputFileError, match=name):
            load()
    (folder / name).unlink()
    with pytest.raises(InputFileError, match=name):
        load()
    (folder / name).mkdir()
    with pytest.raises(InputFileError, match=f"{name}: not a file"):
        load()


def test_folders_that_are_no_teams(tmp_path):
    with pytest.raises(InputFileError, match="nowhere: no such folder"):
        Team.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputFileError, match="file: not a folder"):
        Team.load(tmp_path / "file")
    with pytest.raises(InputFileError, match=r"is not a saved team: it has no manifest\.json"):
        Team.load(tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"rounds": null', b'"rounds": 21'),
        (b'"rounds": null', b'"rounds":  null'),
        (b'"center": "auto"', b'"center": "none"'),
    ],
)
def test_an_edited_manifest(copied, before, after):
    folder, load = copied
    text = (folder / "manifest.json").read_bytes()
    assert before in text
    (folder / "manifest.json").write_bytes(text.replace(before, after))
    with pytest.raises(InputFileError, match=r"manifest\.json was changed since it was written"):
        load()


@pytest.mark.parametrize(
    "text",
    [b"[]", b"null", b"{", b"\xff\xfe", b'{"format": 1}', b"[" * 100_000, b'{"format": 1, "a": ' + b"[" * 100_000],
    ids=["list", "null", "half", "no text", "empty", "deep list", "deep"],
)
def test_manifests_that_are_none(copied, text):
    folder, load = copied
    (folder / "manifest.json").write_bytes(text)
    with pytest.raises(InputFileError, match=r"manifest\.json"):
        load()


def test_a_manifest_of_absurd_size_is_not_read(copied):
    folder, load = copied
    with (folder / "manifest.json").open("r+b") as file:
        file.truncate(1 << 33)  # a hole, not bytes
    with pytest.raises(InputFileError, match=r"manifest\.json is larger than any manifest: 8589934592 bytes"):
        load()


def test_a_format_of_the_future(copied):
    folder, load = copied
    forge(folder, lambda content: content.update(format=2))
    with pytest.raises(InputFileError, match=r"manifest\.json has format 2, and this version .* reads format 1"):
        load()


# Forgery: a manifest with a right checksum and hostile content


@pytest.mark.parametrize(
    "name", ["../outside.skops", "/etc/hostname", "..", ".", "", "a/b", "C:x", "x\0y", 7, None, []]
)
def test_paths_out_of_the_folder(copied, name):
    folder, load = copied
    data = (folder / "00-skops.skops").read_bytes()
    (folder.parent / "outside.skops").write_bytes(data)

    def change(content):
        content["agents"][0]["file"] = name
        if isinstance(name, str):
            content["files"][name] = content["files"]["00-skops.skops"]

    forge(folder, change)
    with pytest.raises(InputFileError, match=r"manifest\.json names a file outside its folder"):
        load()


@pytest.mark.parametrize("name", MIXED_FILES)
def test_links_out_of_the_folder(copied, name):
    folder, load = copied
    (folder / name).rename(folder / "moved")
    (folder / name).symlink_to("moved")
    load()  # a link inside harms nobody
    (folder / "moved").rename(folder.parent / "moved")
    (folder / name).unlink()
    (folder / name).symlink_to("../moved")
    with pytest.raises(InputFileError, match=f"{name} is a link that leads out of its folder"):
        load()
    (folder / name).unlink()
    (folder / name).symlink_to(name)
    with pytest.raises(InputFileError, match=name):
        load()


def at(*path):
    """A change that puts a value at a place in the manifest; `...` removes it."""
    *way, last, value = path

    def change(content):
        for step in way:
            content = content[step]
        if value is ...:
            del content[last]
        else:
            content[last] = value

    return change


ARRAY = {"array": [1.0] * 5, "dtype": "<f8"}


@pytest.mark.parametrize(
    "change",
    [
        at("agents", ...),
        at("agents", {}),
        at("agents", []),
        at("agents", [7]),
        at("agents", 0, "name", 7),
        at("agents", 0, "name", "family"),
        at("agents", 0, "kind", "Popen"),
        at("agents", 0, "kind", ["SklearnModel"]),
        at("agents", 0, "kind", "PatchCNN"),
        at("agents", 0, "settings", None),
        at("agents", 0, "settings", "estimator", 1),
        at("agents", 0, "settings", "clip", "x"),
        at("agents", 0, "settings", "nonsense", 1),
        at("agents", 0, "file", "04-settings.onnx"),
        at("agents", 1, "settings", "channels", "wide"),
        at("agents", 1, "settings", "channels", {"tuple": [10**9, 10**9]}),
        at("agents", 1, "settings", "hidden", -1),
        at("agents", 1, "settings", "training", {"tuple": []}),
        at("agents", 1, "settings", "training", {"Training": {"batch_size": 0}}),
        at("agents", 1, "settings", "training", {"Training": {"x": 0}}),
        at("agents", 1, "learned", {}),
        at("agents", 1, "learned", []),
        at("agents", 1, "learned", "input_shape_", {"tuple": [10**6, 10**6, 3]}),
        at("agents", 1, "learned", "input_shape_", {"tuple": ["x", None]}),
        at("agents", 1, "learned", "input_shape_", [8, 8, 3]),
        at("agents", 1, "learned", "module_", 1),
        at("agents", 1, "file", "02-module.safetensors"),
        at("agents", 1, "file", "policy.npz"),
        at("agents", 2, "settings", "module", 7),
        at("agents", 3, "settings", "path", "elsewhere.onnx"),
        at("agents", 3, "settings", "nonsense", 1),
        at("agents", 3, "file", "policy.npz"),
        at("files", ...),
        at("files", []),
        at("files", "policy.npz", ...),
        at("files", "policy.npz", 7),
        at("settings", ...),
        at("settings", "rounds", "many"),
        at("settings", "rounds", 1.5),
        at("settings", "rule", "DeGroot"),
        at("settings", "rule", {"Popen": {"args": "x"}}),
        at("settings", "rule", {"DeGroot": []}),
        at("settings", "rule", {"Training": {}}),
        at("settings", "rule", {"Quantised": {"rule": 3, "bits": 4, "bound": 2.0}}),
        at("settings", "rule", {"Quantised": {"rule": {"DeGroot": {}}, "bits": "4", "bound": 2.0}}),
        at("settings", "center", 1),
        at("settings", "center", "middle"),
        at("settings", "calibrate", "warm"),
        at("learned", "pool_temperature_", 0.0),
        at("learned", "prior_", [1.0, 2.0]),
        at("settings", "columns", [0]),
        at("settings", "columns", 5),
        at("settings", "columns", [{"slice": [1]}] * 5),
        at("settings", "columns", [{"range": [1, 2, 0]}] * 5),
        at("settings", "columns", [{"array": [1], "dtype": "|O8; import os"}] * 5),
        at("settings", "columns", [{"array": [[1], [2, 3]], "dtype": "<i8"}] * 5),
        at("settings", "columns", [{"array": ["x"], "dtype": "<i8"}] * 5),
        at("settings", "columns", [{"array": [1e300], "dtype": "<f4"}] * 5),
        at("settings", "columns", [{}] * 5),
        at("settings", "agents", []),
        at("settings", "nonsense", 1),
        at("learned", ...),
        at("learned", "center_", ...),
        at("learned", "center_", [0.0] * 5),
        at("learned", "center_", {"array": [0.0] * 4, "dtype": "<f8"}),
        at("learned", "center_", {"array": [0.0] * 5, "dtype": "<f4"}),
        at("learned", "center_", {"array": [None] * 5, "dtype": "<f8"}),
        at("learned", "gains_", {"array": [1.0] * 4, "dtype": "<f8"}),
        at("learned", "gains_", {"array": [1] * 5, "dtype": "<i8"}),
        at("learned", "temperature_", {"array": [1.0, 1.0, 1.0, 1.0, 0.0], "dtype": "<f8"}),
        at("learned", "classes_", ARRAY),
        at("learned", "n_features_in_", "x"),
        at("learned", "feature_names_in_", ARRAY),
        at("learned", "more_", ARRAY),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_hostile_content_gets_a_sentence(copied, change):
    folder, load = copied
    load()
    forge(folder, change)
    with pytest.raises(InputFileError) as caught:
        load()
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def spoil(folder, name, data):
    """Replace a file by a forged one with a right checksum."""
    import hashlib

    (folder / name).write_bytes(data)
    forge(folder, at("files", name, hashlib.sha256(data).hexdigest()))


def zipped(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize("name", MIXED_FILES[1:])
@pytest.mark.parametrize(
    "data",
    [b"", b"nonsense", pickle.dumps(LogisticRegression()), zipped(a=np.ones(2)), zipped(a=np.array([{}]))],
    ids=["empty", "nonsense", "pickle", "arrays", "array of objects"],
)
def test_forged_files_of_another_kind(copied, name, data):
    folder, load = copied
    spoil(folder, name, data)
    with pytest.raises(CollegiumError, match=name):
        load()


@pytest.mark.parametrize(
    "arrays",
    [
        {"indptr": [0, 1], "indices": [0], "weights": [1.0]},  # of another team
        {"indptr": [0, 1], "indices": [0], "weights": [2.0]},
        {"indptr": [0, 1], "indices": [7], "weights": [1.0]},
        {"indptr": [[0, 1]], "indices": [0], "weights": [1.0]},
        {"indptr": [], "indices": [], "weights": []},
        {"indptr": ["x"], "indices": [0], "weights": [1.0]},
        {"indptr": [0, 1], "indices": [0], "weights": np.array([{}])},
    ],
)
def test_forged_networks(copied, arrays):
    folder, load = copied
    spoil(folder, "policy.npz", zipped(**arrays))
    with pytest.raises(InputFileError, match=r"policy\.npz|there are 5 agents, but the network has 1"):
        load()


def test_a_network_of_pickles_is_not_read(copied):
    folder, load = copied
    with np.load(folder / "policy.npz") as arrays:
        objects = {name: array.astype(object) for name, array in arrays.items()}
    spoil(folder, "policy.npz", zipped(**objects))
    with pytest.raises(InputFileError, match=r"policy\.npz does not hold a network: .*allow_pickle=False"):
        load()


def test_weights_of_another_precision_are_not_converted(copied):
    from safetensors.torch import load_file
    from safetensors.torch import save as to_bytes

    folder, load = copied
    tensors = load_file(folder / "01-family.safetensors")
    spoil(folder, "01-family.safetensors", to_bytes({name: value.double() for name, value in tensors.items()}))
    with pytest.raises(
        InputFileError, match=r"does not fit the PatchCNN .* torch.float64 in the file and .* torch.float32 in the"
    ):
        load()


def test_a_forged_estimator_is_not_made(copied, tmp_path):
    import skops.io

    folder, load = copied
    for thing in (7, {}, {"estimator": 7}, {"estimator": LogisticRegression()}, {"estimator": LogisticRegression}):
        spoil(folder, "00-skops.skops", skops.io.dumps(thing))
        with pytest.raises(InputFileError, match=r"agent 'skops': .*00-skops\.skops"):
            load()
    spoil(folder, "00-skops.skops", skops.io.dumps({"estimator": os.system}))
    with pytest.raises(InputFileError, match=r"types that may do harm .*: posix\.system|nt\.system"):
        load()


# What the user has to bring


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Another user, or another machine: one with another key."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))


def test_ones_own_folders_need_no_list(made, tmp_path, monkeypatch):
    team, views, _, folder = made(tables)
    assert np.array_equal(Team.load(folder).scores(views), team.scores(views))
    shutil.copytree(folder, tmp_path / "copy")
    assert np.array_equal(Team.load(tmp_path / "copy").scores(views), team.scores(views))
    (tmp_path / "copy" / "local.sig").write_text("0" * 64 + "\n")
    with pytest.raises(InputFileError, match="types that may do harm"):
        Team.load(tmp_path / "copy")
    (tmp_path / "copy" / "local.sig").unlink()
    with pytest.raises(InputFileError, match="types that may do harm"):
        Team.load(tmp_path / "copy")


def test_a_key_that_others_can_read_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    team = Team([("forest", RandomForestClassifier(2, random_state=0))], ring(1)).fit([TABLE], SIGNS)
    team.save(tmp_path / "t")
    Team.load(tmp_path / "t")
    key = tmp_path / "collegium" / "local.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    with pytest.raises(InputFileError, match="types that may do harm"):
        Team.load(tmp_path / "t")


def test_types_that_must_be_trusted(made, elsewhere):
    team, views, _, folder = made(tables)
    with pytest.raises(InputFileError, match=rf"agent 'forest': .*02-forest\.skops holds types .*: {TREE}\.") as caught:
        Team.load(folder)
    assert str(caught.value).endswith(f"Team.load(folder, trusted=['{TREE}'])")
    with pytest.raises(InputFileError, match=TREE):
        Team.load(folder, trusted=["sklearn.tree._tree.Trees"])
    from sklearn.tree._tree import Tree

    assert np.array_equal(Team.load(folder, trusted={Tree}).scores(views), team.scores(views))


def test_an_estimator_of_the_users_own(tmp_path, monkeypatch):
    team = Team([("own", Tossed())], ring(1)).fit([TABLE], SIGNS)
    team.save(tmp_path / "t")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    with pytest.raises(InputFileError, match=rf"holds types .*: {Tossed.__module__}\.Tossed\."):
        Team.load(tmp_path / "t")
    assert np.array_equal(Team.load(tmp_path / "t", trusted=[Tossed]).scores([TABLE]), team.scores([TABLE]))


@pytest.mark.parametrize("trusted", [True, TREE, [7], 3])
def test_trust_in_the_wrong_form(made, trusted):
    with pytest.raises(ModelError, match="trusted must be a list of types or of their names"):
        Team.load(made(tables)[3], trusted=trusted)


@pytest.mark.parametrize(
    ("modules", "match"),
    [
        (None, r"the modules of 'factory', 'turned' are your own.*modules=\{'factory': module, 'turned': module\}"),
        ({"factory": Own}, r"the modules of 'turned' are your own"),
        ({"factory": Own, "tuned": Own}, "modules names 'tuned', but those who need one are factory, turned"),
        ([Own, Own], "modules must be a dictionary"),
        ({"factory": Own, "turned": Own}, r"agent 'turned': it was saved with a transform: give .*transform="),
        ({"factory": TorchModel(Own, doubled), "turned": Own}, "agent 'factory': it was saved without a transform"),
        (
            {"factory": lambda: Own(7), "turned": Own},
            r"agent 'factory': .*: again.weight is \(2, 6\) of torch.float32 in the file and \(2, 7\) of torch.float32",
        ),
        ({"factory": lambda: Own().double(), "turned": Own}, r"in the file and .* of torch.float64 in the network"),
        ({"factory": torch.nn.Linear(6, 2), "turned": Own}, r"again.bias is .* in the file and nothing in the network"),
        ({"factory": 7, "turned": Own}, "agent 'factory': the module you gave does not fit"),
        ({"factory": lambda: 7, "turned": Own}, "agent 'factory': the module you gave does not fit"),
    ],
)
def test_modules_in_the_wrong_form(made, modules, match):
    with pytest.raises(ModelError, match=match):
        Team.load(made(own_modules)[3], modules=modules)


@pytest.mark.parametrize(
    ("missing", "builder", "match"),
    [
        ("torch", families, r"agent 'PatchCNN': .*collegium\[torch\]"),
        ("safetensors.torch", families, r"agent 'PatchCNN': .*collegium\[torch\]"),
        ("onnxruntime", mixed, r"agent 'file': .*collegium\[onnx\]"),
    ],
)
def test_extras_that_are_not_installed(made, missing, builder, match, tmp_path, monkeypatch):
    team, _, trust, folder = made(builder)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(BackendError, match=match):
        Team.load(folder, **trust)
    with pytest.raises(BackendError, match=match):
        team.save(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_forms_of_no_value():
    arrays = [{"array": ["1"], "dtype": dtype} for dtype in (7, "O", "<M8[D]", "<U1000000", "i8,i8")]
    for form in (*arrays, {"a": 1, "b": 2}, {"tuple": 3}, {"slice": [1, 2, 3, 4]}, math.inf, b""):
        with pytest.raises(Malformed):
            decode(form)
    assert decode({"DeGroot": {}}) == DeGroot()


def test_a_loaded_team_knows_no_errors_on_held_out_items(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.tile(["a", "b"], 30)
    team = Team(
        [(name, LogisticRegression()) for name in "pq"], policy.uniform(topology.complete(2)), columns=[[0], [1]]
    )
    team.fit(X, y).save(tmp_path / "team")
    assert team.held_out_ is not None
    assert Team.load(tmp_path / "team").held_out_ is None
