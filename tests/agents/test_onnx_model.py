"""ONNX files of several origins give the scores of the models they were made from, and bad ones are refused by name."""

import hashlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from collegium.agents.onnx_model import OnnxModel
from collegium.agents.sklearn_model import SklearnModel
from collegium.errors import BackendError, InputFileError, ModelError

onnx = pytest.importorskip("onnx")
skl2onnx = pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
helper = onnx.helper

RNG = np.random.default_rng(2)
Y = np.where(np.arange(50) % 2, 1, -1)
VIEW = (RNG.normal(size=(50, 4)) + 0.7 * Y[:, None]).astype(np.float32)
WEIGHT = RNG.normal(size=(4, 2)).astype(np.float32)
LOGITS = VIEW.astype(np.float64) @ WEIGHT
FLOAT32 = 64 * float(np.finfo(np.float32).eps)  # a few products of numbers below 10


def export(folder, estimator, **options):
    """A fitted estimator as skl2onnx writes it."""
    path = folder / f"{type(estimator).__name__}.onnx"
    path.write_bytes(
        skl2onnx.to_onnx(
            estimator, VIEW[:1], options={id(estimator): options} if options else None, target_opset=17
        ).SerializeToString()
    )
    return path


def write(folder, nodes, *, shape=("n", 4), outputs=None, kind=onnx.TensorProto.FLOAT, constants=(), more_inputs=()):
    """A graph of these nodes from input `view` to the named outputs (name: (type, shape))."""
    outputs = outputs or {"y": (onnx.TensorProto.FLOAT, None)}
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("view", kind, shape), *more_inputs],
        [helper.make_tensor_value_info(name, *declared) for name, declared in outputs.items()],
        [onnx.numpy_helper.from_array(array, name) for name, array in dict(constants).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "graph.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def linear(folder, weight=WEIGHT, output="y", **declared):
    """A file that computes view @ weight."""
    node = helper.make_node("MatMul", ["view", "w"], [output])
    declared.setdefault("outputs", {output: (onnx.TensorProto.FLOAT, None)})
    return write(folder, [node], constants={"w": weight}, **declared)


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("labels", [Y, np.where(Y > 0, "dog", "cat")], ids=["signs", "words"])
@pytest.mark.parametrize("estimator", [LogisticRegression(), DecisionTreeClassifier(max_depth=2), GaussianNB()])
def test_classifiers_from_skl2onnx(tmp_path, estimator, labels, zipmap):
    fitted = clone(estimator).fit(VIEW, labels)
    scores = OnnxModel(export(tmp_path, fitted, zipmap=zipmap)).scores(VIEW)
    if isinstance(fitted, LogisticRegression):
        expected = fitted.decision_function(VIEW)
    else:
        expected = SklearnModel(fitted).scores(VIEW)
    # the smaller of the two probabilities, at least 1e-6 here, is a float32 computed as 1 minus the other at worst
    tolerance = np.finfo(np.float32).eps * (1 + np.exp(np.abs(expected)))
    assert (np.abs(scores - expected) <= 64 * tolerance).all()
    assert scores.dtype == np.float64


def test_decision_values_in_spite_of_their_name(tmp_path):
    svm = LinearSVC(random_state=0).fit(VIEW, Y)
    path = export(tmp_path, svm)
    with pytest.raises(ModelError, match=r"may be the probability of .* or, in spite of its name, a decision value"):
        OnnxModel(path).scores(VIEW)
    assert OnnxModel(path, kind="score").scores(VIEW) == pytest.approx(svm.decision_function(VIEW), abs=1e-5)

    logistic = LogisticRegression().fit(VIEW, Y)
    path = export(tmp_path, logistic, zipmap=False, raw_scores=True)
    with pytest.raises(ModelError, match=r"kind='probabilities'.*Are they logits|must sum to 1"):
        OnnxModel(path).scores(VIEW)
    assert OnnxModel(path, kind="score").scores(VIEW) == pytest.approx(logistic.decision_function(VIEW), abs=1e-5)
    assert OnnxModel(path, kind="logits").scores(VIEW) == pytest.approx(2 * logistic.decision_function(VIEW), abs=1e-5)


def test_two_logits_one_logit_and_plain_scores(tmp_path):
    path = linear(tmp_path)
    expected = LOGITS[:, 1] - LOGITS[:, 0]
    assert OnnxModel(path).scores(VIEW) == pytest.approx(expected, abs=FLOAT32)
    assert OnnxModel(path, positive=0).scores(VIEW) == pytest.approx(-expected, abs=FLOAT32)
    assert OnnxModel(path, kind="score").scores(VIEW) == pytest.approx(LOGITS[:, 1], abs=FLOAT32)
    assert OnnxModel(linear(tmp_path, WEIGHT[:, :1])).scores(VIEW) == pytest.approx(LOGITS[:, 0], abs=FLOAT32)
    assert OnnxModel(linear(tmp_path, WEIGHT[:, 0])).scores(VIEW) == pytest.approx(LOGITS[:, 0], abs=FLOAT32)


@pytest.mark.parametrize(
    ("operator", "name"),
    [("Softmax", "softmax_7"), ("Softmax", "Probs"), ("LogSoftmax", "log_softmax"), ("LogSoftmax", "log_probs")],
)
def test_the_name_of_the_output_tells_probabilities_from_logits(tmp_path, operator, name):
    nodes = [helper.make_node("MatMul", ["view", "w"], ["z"]), helper.make_node(operator, ["z"], [name], axis=1)]
    path = write(tmp_path, nodes, constants={"w": WEIGHT}, outputs={name: (onnx.TensorProto.FLOAT, None)})
    expected = LOGITS[:, 1] - LOGITS[:, 0]
    assert OnnxModel(path).scores(VIEW) == pytest.approx(expected, abs=1e-4)
    assert OnnxModel(path, positive=0).scores(VIEW) == pytest.approx(-expected, abs=1e-4)


def test_probability_of_one_column_and_its_clip(tmp_path):
    nodes = [helper.make_node("MatMul", ["view", "w"], ["z"]), helper.make_node("Sigmoid", ["z"], ["y"])]
    path = write(tmp_path, nodes, constants={"w": 100 * WEIGHT[:, :1]})
    scores = OnnxModel(path, kind="probabilities", clip=0.01).scores(VIEW)
    assert np.abs(scores).max() == pytest.approx(np.log(99))
    assert (np.sign(scores) == np.sign(LOGITS[:, 0])).all()


@pytest.mark.parametrize(("operator", "columns"), [("Softmax", 2), ("Sigmoid", 1)])
def test_probabilities_under_another_name_are_warned_of(tmp_path, operator, columns):
    nodes = [helper.make_node("MatMul", ["view", "w"], ["z"]), helper.make_node(operator, ["z"], ["y"])]
    path = write(tmp_path, nodes, constants={"w": WEIGHT[:, :columns]})
    with pytest.warns(
        UserWarning, match=r"output 'y' of .* between 0 and 1, but .*OnnxModel.path, kind=\"probabilities"
    ):
        OnnxModel(path).scores(VIEW)
    OnnxModel(path, kind="probabilities").scores(VIEW)
    OnnxModel(path, kind="score").scores(VIEW)  # who says so means it


def test_the_wanted_output_is_found_or_named(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["view", "w"], ["first"]),
        helper.make_node("Neg", ["first"], ["second"]),
        helper.make_node("ArgMax", ["first"], ["label"], axis=1, keepdims=0),
    ]
    real, whole = (onnx.TensorProto.FLOAT, ("n", 2)), (onnx.TensorProto.INT64, ("n",))
    expected = LOGITS[:, 1] - LOGITS[:, 0]
    both = {"first": real, "second": real, "label": whole}
    path = write(tmp_path, nodes, constants={"w": WEIGHT}, outputs=both)
    with pytest.raises(ModelError, match=r"has the outputs first, second, label: name one with output="):
        OnnxModel(path).scores(VIEW)
    with pytest.raises(ModelError, match="has no output 'third'; its outputs are first, second, label"):
        OnnxModel(path, output="third").scores(VIEW)
    assert OnnxModel(path, output="second").scores(VIEW) == pytest.approx(-expected, abs=FLOAT32)
    path = write(tmp_path, nodes, constants={"w": WEIGHT}, outputs={"label": whole, "second": real})
    assert OnnxModel(path).scores(VIEW) == pytest.approx(-expected, abs=FLOAT32)
    named = [*nodes, helper.make_node("Softmax", ["second"], ["probs"], axis=1)]
    path = write(tmp_path, named, constants={"w": WEIGHT}, outputs={"first": real, "probs": real})
    assert OnnxModel(path).scores(VIEW) == pytest.approx(-expected, abs=1e-4)
    path = write(tmp_path, nodes, constants={"w": WEIGHT}, outputs={"label": whole})
    with pytest.raises(ModelError, match=r"'label' of .* holds tensor\(int64\): classes rather than scores"):
        OnnxModel(path).scores(VIEW)
    assert OnnxModel(path, kind="score").scores(VIEW).tolist() == (expected > 0).tolist()


@pytest.mark.parametrize("batch", [1, 3, 50, 64])
def test_a_graph_for_a_fixed_number_of_items(tmp_path, batch):
    model = OnnxModel(linear(tmp_path, shape=(batch, 4)))
    assert model.scores(VIEW) == pytest.approx(LOGITS[:, 1] - LOGITS[:, 0], abs=FLOAT32)
    assert model.scores(VIEW[:1]) == pytest.approx(LOGITS[:1, 1] - LOGITS[:1, 0], abs=FLOAT32)


def test_a_graph_for_one_item_that_drops_its_axis(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["view", "w"], ["z"]),
        helper.make_node("Squeeze", ["z", "axis"], ["y"]),
    ]
    path = write(tmp_path, nodes, shape=(1, 4), constants={"w": WEIGHT, "axis": np.array([0])})
    assert OnnxModel(path).scores(VIEW) == pytest.approx(LOGITS[:, 1] - LOGITS[:, 0], abs=FLOAT32)


def test_many_items_come_in_batches(tmp_path):
    many = np.tile(VIEW, (50, 1))
    scores = OnnxModel(linear(tmp_path)).scores(many)
    assert scores == pytest.approx(np.tile(LOGITS[:, 1] - LOGITS[:, 0], 50), abs=FLOAT32)


def test_items_are_flattened_only_for_a_graph_of_rank_two(tmp_path):
    path = linear(tmp_path)
    expected = LOGITS[:, 1] - LOGITS[:, 0]
    assert OnnxModel(path).scores(VIEW.reshape(50, 2, 2, 1)) == pytest.approx(expected, abs=FLOAT32)
    mean = write(
        tmp_path, [helper.make_node("ReduceMean", ["view"], ["y"], axes=[1, 2], keepdims=0)], shape=("n", 2, 2)
    )
    assert OnnxModel(mean).scores(VIEW.reshape(50, 2, 2)) == pytest.approx(VIEW.mean(axis=1), abs=FLOAT32)
    with pytest.raises(ModelError, match=r"expects \(n, 2, 2\) of tensor\(float\), got a view of shape \(50, 4\)\."):
        OnnxModel(mean).scores(VIEW)
    single = linear(tmp_path, np.array([[-1.0, 1.0]], np.float32), shape=("n", 1))
    assert OnnxModel(single).scores(VIEW[:, 0]) == pytest.approx(2 * VIEW[:, 0])


def test_no_items(tmp_path):
    for shape in (("n", 4), (1, 4)):
        assert OnnxModel(linear(tmp_path, shape=shape)).scores(VIEW[:0]).shape == (0,)


@pytest.mark.parametrize("given", [np.float64, np.float16, np.int32, np.uint8, bool])
def test_views_are_cast_and_not_scaled(tmp_path, given):
    view = np.arange(8).reshape(2, 4).astype(given)
    expected = view.astype(np.float64) @ WEIGHT @ [-1, 1]
    assert OnnxModel(linear(tmp_path)).scores(view) == pytest.approx(expected, abs=FLOAT32)


@pytest.mark.parametrize("kind", ["UINT8", "INT64", "DOUBLE", "FLOAT16"])
def test_the_graph_declares_its_type(tmp_path, kind):
    view = np.arange(8.0).reshape(2, 4)
    nodes = [
        helper.make_node("Cast", ["view"], ["x"], to=onnx.TensorProto.FLOAT),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    path = write(tmp_path, nodes, constants={"w": WEIGHT}, kind=getattr(onnx.TensorProto, kind))
    assert OnnxModel(path).scores(view) == pytest.approx(view @ WEIGHT @ [-1, 1], abs=1e-5)
    if kind == "UINT8":
        for bad in (view + 0.5, view - 1, view + 250):
            with pytest.raises(ModelError, match=r"of tensor\(uint8\), got float64 values that do not fit into it"):
                OnnxModel(path).scores(bad)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (VIEW[:, :3], r"expects \(n, 4\) of tensor\(float\), got a view of shape \(50, 3\)\.$"),
        (VIEW.reshape(25, 2, 2, 2), r"expects \(n, 4\) .*, got a view of shape \(25, 2, 2, 2\)"),
        (np.float32(3), r"got a view of shape \(\)"),
        (np.full((3, 4), "x"), "got a view of type <U1"),
        (np.full((3, 4), np.nan), "output 'y' of .* contain NaN: 3 of 3 items"),
    ],
)
def test_views_that_do_not_fit(tmp_path, view, message):
    with pytest.raises(ModelError, match=message):
        OnnxModel(linear(tmp_path)).scores(view)


def test_channels_in_the_wrong_place(tmp_path):
    node = helper.make_node("ReduceMean", ["view"], ["y"], axes=[1, 2, 3], keepdims=0)
    path = write(tmp_path, [node], shape=("n", 3, 8, 8))
    with pytest.raises(ModelError, match=r"shape \(5, 8, 8, 3\)\. Its axes are in another order"):
        OnnxModel(path).scores(np.zeros((5, 8, 8, 3)))


@pytest.mark.parametrize("zipmap", [True, False])
def test_three_classes_as_skl2onnx_writes_them(tmp_path, zipmap):
    three = LogisticRegression().fit(VIEW, np.arange(50) % 3)
    logs = np.log(three.predict_proba(VIEW))
    scores = OnnxModel(export(tmp_path, three, zipmap=zipmap), classes=[0, 1, 2]).scores(VIEW)
    np.testing.assert_allclose(scores, logs - logs.mean(axis=1, keepdims=True), atol=1e-4)


@pytest.mark.parametrize("kind", ["auto", "logits", "score"])
def test_three_columns_are_logits(tmp_path, kind):
    weight = RNG.normal(size=(4, 3)).astype(np.float32)
    logits = VIEW.astype(np.float64) @ weight
    scores = OnnxModel(linear(tmp_path, weight), kind=kind).scores(VIEW)
    np.testing.assert_allclose(scores, logits - logits.mean(axis=1, keepdims=True), atol=FLOAT32 * 10)


def test_graphs_that_are_no_models(tmp_path):
    mean = write(tmp_path, [helper.make_node("ReduceMean", ["view"], ["y"], keepdims=0)])
    with pytest.raises(ModelError, match=r"must have one row per item; for 50 items it has shape \(\)"):
        OnnxModel(mean).scores(VIEW)
    pair = [helper.make_tensor_value_info("mask", onnx.TensorProto.FLOAT, ("n", 4))]
    two = write(tmp_path, [helper.make_node("Mul", ["view", "mask"], ["y"])], more_inputs=pair)
    with pytest.raises(ModelError, match=r"has the inputs view, mask, so its view is a dictionary .* got one array"):
        OnnxModel(two).scores(VIEW)
    text = write(
        tmp_path,
        [helper.make_node("Identity", ["view"], ["y"])],
        kind=onnx.TensorProto.STRING,
        outputs={"y": (onnx.TensorProto.STRING, None)},
    )
    with pytest.raises(ModelError, match=r"expects \(n, 4\) of tensor\(string\), got a view of type float32"):
        OnnxModel(text, kind="score").scores(VIEW)


def test_what_onnxruntime_refuses_while_running(tmp_path):
    path = linear(tmp_path, shape=("n", "features"))
    with pytest.raises(ModelError, match=r"expects \(n, features\) .*, failed on \(50, 3\): "):
        OnnxModel(path).scores(VIEW[:, :3])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "probability"}, "kind must be one of auto, logits, probabilities, score; got 'probability'"),
        ({"positive": 2}, "positive.* between 0 and 1; got 2"),
        ({"path": 5}, "from the name of a file, got int"),
        ({"kind": "probabilities", "clip": 0}, "clip must be"),
    ],
)
def test_impossible_settings(tmp_path, settings, message):
    with pytest.raises(ModelError, match=message):
        OnnxModel(**{"path": linear(tmp_path), **settings}).scores(VIEW)


def test_files_are_refused_by_name(tmp_path):
    whole = linear(tmp_path).read_bytes()
    for name, content in {"foreign": b"name,score\na,1\n", "empty": b"", "cut": whole[: len(whole) * 2 // 3]}.items():
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(content)
        with pytest.raises(InputFileError, match=rf"{name}\.onnx is not a whole ONNX file"):
            OnnxModel(path).scores(VIEW)
    for use in (lambda model: model.scores(VIEW), lambda model: model.digest):
        with pytest.raises(InputFileError, match=r"absent\.onnx: no such file"):
            use(OnnxModel(tmp_path / "absent.onnx"))
        with pytest.raises(InputFileError, match="not a file"):
            use(OnnxModel(tmp_path))


def test_nothing_is_written_to_the_terminal_for_a_bad_file(tmp_path, capfd):
    path = tmp_path / "bad.onnx"
    path.write_bytes(b"nothing")
    with pytest.raises(InputFileError):
        OnnxModel(path).scores(VIEW)
    with pytest.raises(ModelError):
        OnnxModel(linear(tmp_path, shape=("n", "features"))).scores(VIEW[:, :3])
    assert capfd.readouterr() == ("", "")


def test_without_onnxruntime(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(BackendError, match=r"needs the extra: pip install 'collegium\[onnx\]'"):
        OnnxModel(linear(tmp_path)).scores(VIEW)


def test_it_is_imported_when_needed():
    code = "import collegium.agents.onnx_model as m, sys; m.OnnxModel('a'); print('onnxruntime' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_copies_open_the_file_anew_and_give_the_same(tmp_path):
    model = OnnxModel(linear(tmp_path), positive=0)
    expected = model.scores(VIEW)
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert "_graph" not in vars(copy)
        assert copy.get_params() == model.get_params()
        assert copy.scores(VIEW).tolist() == expected.tolist()


def test_another_path_is_another_graph(tmp_path):
    model = OnnxModel(linear(tmp_path))
    before = model.scores(VIEW)
    (tmp_path / "other").mkdir()
    model.set_params(path=linear(tmp_path / "other", -WEIGHT))
    assert model.scores(VIEW).tolist() == (-before).tolist()


def test_digest(tmp_path):
    path = linear(tmp_path)
    assert OnnxModel(path).digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_it_was_fitted_elsewhere(tmp_path):
    model = OnnxModel(linear(tmp_path))
    check_is_fitted(model)
    with pytest.raises(ModelError, match="OnnxModel was fitted elsewhere"):
        model.fit(VIEW, Y)


@pytest.mark.filterwarnings("ignore:You are using the legacy TorchScript-based ONNX export:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The feature will be removed:DeprecationWarning")
def test_a_convolutional_network_from_torch(tmp_path):
    torch = pytest.importorskip("torch")
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2)
    )
    network.eval()
    torch.onnx.export(network, (torch.zeros(1, 3, 8, 8),), tmp_path / "cnn.onnx", dynamo=False)
    images = RNG.normal(size=(5, 3, 8, 8))
    with torch.no_grad():
        logits = network(torch.tensor(images, dtype=torch.float32)).double().numpy()
    assert OnnxModel(tmp_path / "cnn.onnx").scores(images) == pytest.approx(logits[:, 1] - logits[:, 0], abs=1e-5)
