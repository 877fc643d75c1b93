"""Whatever fits a team is saved, comes back, goes live and answers over HTTP: one row of docs/models.md for each."""

import http.client
import io
import json
import warnings
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from collegium import Team, policy
from collegium.errors import ModelError
from collegium.live import config
from collegium.live.folder import NetworkSettings, create
from collegium.live.model import load
from live_networks import in_memory, served

pytestmark = pytest.mark.live

ALONE = policy.Policy(np.ones((1, 1)))
RNG = np.random.default_rng(0)
N = 90
Y = np.array(["no", "yes"])[np.arange(N) % 2]
X = RNG.normal(size=(N, 4)) + 0.8 * (Y == "yes")[:, None]
TABLE = pd.DataFrame({"age": X[:, 0], "height": X[:, 1], "town": np.where(X[:, 2] > 0.4, "Oslo", "Rome")})
IMAGES = np.concatenate([X] * 4, axis=1).reshape(N, 4, 4, 1).astype(np.float32)
NUMBERS = pd.DataFrame(X, columns=["a", "b", "c", "d"])
TEXTS = np.array([f"{'good fine' if y == 'yes' else 'bad poor'} {RNG.choice(['day', 'night'])}" for y in Y], object)


def by_name(numeric, named=()):
    """A pipeline that picks its columns by their names."""
    parts = [("numbers", StandardScaler(), list(numeric))]
    parts += [("names", OneHotEncoder(), list(named))] if named else []
    return make_pipeline(ColumnTransformer(parts), LogisticRegression())


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=5, verbose=-1, min_child_samples=5, n_jobs=1)


def xgboost():
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=5, n_jobs=1)


def torch_pixels():
    pytest.importorskip("torch")
    from collegium.agents import PixelLogistic, Training

    return PixelLogistic(training=Training(max_epochs=150), random_state=0)


ESTIMATORS = {
    "LogisticRegression": (LogisticRegression, X),
    "SVC": (SVC, X),
    "random forest": (lambda: RandomForestClassifier(5, random_state=0), X),
    "gradient boosting": (lambda: GradientBoostingClassifier(n_estimators=5, random_state=0), X),
    "histogram boosting": (lambda: HistGradientBoostingClassifier(max_iter=5, random_state=0), X),
    "nearest neighbours": (KNeighborsClassifier, X),
    "naive Bayes": (GaussianNB, X),
    "MLP": (lambda: MLPClassifier((4,), max_iter=50, random_state=0), X),
    "columns by name, rows": (lambda: by_name("abcd"), NUMBERS),
    "columns by name, records": (lambda: by_name(["age", "height"], ["town"]), TABLE),
    "text": (lambda: make_pipeline(TfidfVectorizer(), LogisticRegression()), TEXTS),
    "LightGBM": (lightgbm, X),
    "XGBoost": (xgboost, X),
    "torch": (torch_pixels, IMAGES),
}


def exported(path: Path) -> Path:
    """A fitted regression as an ONNX file."""
    skl2onnx = pytest.importorskip("skl2onnx")
    fitted = LogisticRegression().fit(X, Y == "yes")
    kind = [("X", skl2onnx.common.data_types.FloatTensorType([None, 4]))]
    graph = skl2onnx.convert_sklearn(fitted, initial_types=kind, options={"zipmap": False})
    path.write_bytes(graph.SerializeToString())
    return path


def tokens(path: Path) -> Path:
    """A small model of Hugging Face's shape: the mean embedding of the tokens that the mask admits, then two logits."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    weights = {
        "table": np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32),
        "w": np.array([[1, -1], [0.5, 2], [-1, 0.3]], np.float32),
        "last": np.array([2], np.int64),
        "words": np.array([1], np.int64),
    }
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["embedded"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        helper.make_node("Mul", ["embedded", "wide"], ["seen"]),
        helper.make_node("ReduceSum", ["seen", "words"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["wide", "words"], ["count"], keepdims=0),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("MatMul", ["mean", "w"], ["logits"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ("batch", "words"))
        for name in ("input_ids", "attention_mask")
    ]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ("batch", 2))
    held = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "tokens", inputs, [logits], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    table, w = weights["table"].astype(float), weights["w"].astype(float)
    mask = MASK[:, :, None]
    expected = ((table[IDS] * mask).sum(axis=1) / mask.sum(axis=1)) @ w
    np.save(path.with_suffix(".npy"), expected[:, 1] - expected[:, 0])
    return path


IDS = np.random.default_rng(2).integers(0, 6, (N, 5))
MASK = (np.arange(5) < np.random.default_rng(3).integers(1, 6, (N, 1))).astype(np.int64)


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore")
def test_onnx_with_several_inputs(tmp_path: Path) -> None:
    path = tokens(tmp_path / "model.onnx")
    expected = np.load(tmp_path / "model.npy")
    view = {"attention_mask": MASK, "input_ids": IDS}
    team = Team.from_fitted([("only", path)], ALONE, rounds=1, classes=("no", "yes"))
    np.testing.assert_allclose(team.scores([view])[:, 0], expected, rtol=1e-5, atol=1e-5)
    team.save(tmp_path / "team")
    loaded = Team.load(tmp_path / "team")
    (file,) = create(tmp_path / "net", ALONE, loaded, NetworkSettings(tls=False))
    score = load(config.read(file).model, file.parent)
    with in_memory(ALONE, rounds=1, score=score) as (agent,), served(agent) as server:
        records = [{"input_ids": IDS[i].tolist(), "attention_mask": MASK[i].tolist()} for i in range(4)]
        status, answer = ask(server.url, {"ids": [0, 1, 2, 3], "views": records, "trace": True})
        assert status == 200, answer
        found = [one["trace"][0] for one in answer["items"]]
        body = npz(input_ids=IDS[4:9], attention_mask=MASK[4:9])
        status, answer = ask(server.url + "/v1/items?first=4&trace=1", body, "application/x-npz")
        assert status == 200, answer
        found += [one["trace"][0] for one in answer["items"]]
        np.testing.assert_allclose(found, expected[:9], rtol=1e-5, atol=1e-5)
        wrong = {
            "parts input_ids, mask": npz(input_ids=IDS, mask=MASK),
            "same items": npz(input_ids=IDS, attention_mask=MASK[:5]),
            "got one array": npz(input_ids=IDS),
            "not an NPZ file": body[:-30],
            "scores": body,
        }
        for k, (sentence, sent) in enumerate(wrong.items()):
            options = f"first={100 * (k + 1)}" + ("&scores=1" if sent is body else "")
            status, answer = ask(f"{server.url}/v1/items?{options}", sent, "application/x-npz")
            assert status in (400, 422), sentence
            assert (sentence if sent is not body else "a score is one number") in json.dumps(answer)
        large = npz(input_ids=np.zeros((2, 1 << 20)), attention_mask=MASK[:2])  # 16 MB in a few kB
        assert len(large) < 100_000
        assert ask(f"{server.url}/v1/items?first=1000", large, "application/x-npz")[0] == 413
        status, answer = ask(server.url, {"ids": [7777], "views": [{"input_ids": [1, 2], "attention_mask": [1]}]})
        assert status == 422
        assert "axis words twice, but here it is 2 and 1 long" in json.dumps(answer)


@pytest.mark.filterwarnings("ignore")
def test_onnx_providers_and_threads(tmp_path: Path) -> None:
    from collegium.agents import OnnxModel

    path = exported(tmp_path / "model.onnx")
    one = OnnxModel(path, threads=2, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(
        one.scores(X.astype(np.float32)), OnnxModel(path).scores(X.astype(np.float32)), rtol=1e-5, atol=1e-5
    )
    Team.from_fitted([("only", one)], ALONE, classes=("no", "yes")).save(tmp_path / "team")
    assert Team.load(tmp_path / "team").models_[0].threads == 2
    with pytest.raises(ModelError, match="no provider 'CUDA' on this machine; it has"):
        OnnxModel(path, providers=["CUDA"]).scores(X)
    with pytest.raises(ModelError, match="threads must be"):
        OnnxModel(path, threads=0).scores(X)


def as_json(view):
    """A view as somebody would send it."""
    if isinstance(view, pd.DataFrame) and "town" in view:
        return view.to_dict("records")
    return np.asarray(view).tolist()


def ask(url, body, kind="application/json"):
    place = urlsplit(url)
    where = f"{place.path}?{place.query}" if place.query else "/v1/items"
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    try:
        sent = body if isinstance(body, bytes) else json.dumps(body)
        connection.request("POST", where, sent, {"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.filterwarnings("ignore")  # of estimators' own making: convergence, feature names
@pytest.mark.parametrize("name", ESTIMATORS)
def test_fit_save_load_live_http(tmp_path: Path, name: str) -> None:
    make, view = ESTIMATORS[name]
    team = Team([("only", make())], ALONE, rounds=1, workers=1).fit([view], Y)
    check(team, view, tmp_path)


def own_module():
    torch = pytest.importorskip("torch")
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


@pytest.mark.filterwarnings("ignore")
def test_a_torch_module_of_ones_own(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from collegium.agents import TorchModel, Training

    model = TorchModel(own_module, training=Training(learning_rate=0.01, max_epochs=40), random_state=0)
    team = Team([("only", model)], ALONE, rounds=1, workers=1).fit([IMAGES], Y)
    check(team, IMAGES, tmp_path, onnx=True)
    prefit = Team.from_fitted([("only", team.models_[0].module_)], ALONE, classes=("no", "yes"))
    with pytest.raises(ModelError, match="agent 'only': the shape of its views is not known yet"):
        prefit.save(tmp_path / "prefit", onnx=True)
    prefit.predict([IMAGES])
    prefit.save(tmp_path / "prefit", onnx=True)
    assert (Team.load(tmp_path / "prefit").predict([IMAGES]) == prefit.predict([IMAGES])).all()
    prefit.save(tmp_path / "code")  # only the weights: the module has to be brought along
    with pytest.raises(ModelError, match="are your own"):
        Team.load(tmp_path / "code")


@pytest.mark.filterwarnings("ignore")
def test_modules_that_onnx_cannot_speak_for(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from collegium.agents import TorchModel

    class Crowd(torch.nn.Module):
        def forward(self, x):
            return x[:, :1] - x[:, :1].mean()  # other items count too

    for module, sentence in ((Crowd(), "gives other scores"), (TorchModel(own_module(), transform=len), "a transform")):
        team = Team.from_fitted([("only", module)], ALONE, classes=("no", "yes"))
        if isinstance(module, Crowd):
            team.predict([X])
        with pytest.raises(ModelError, match=f"agent 'only': .*{sentence}"):
            team.save(tmp_path / "team", onnx=True)
        assert not (tmp_path / "team").exists()


@pytest.mark.filterwarnings("ignore")
def test_onnx_save_load_live_http(tmp_path: Path) -> None:
    model = exported(tmp_path / "model.onnx")
    check(Team.from_fitted([("only", model)], ALONE, rounds=1, classes=("no", "yes")), X.astype(np.float32), tmp_path)


def check(team: Team, view, tmp_path: Path, **saving) -> None:
    """Decides, is saved, comes back, goes live and answers over HTTP, always with the same statistics."""
    tolerance = (
        {"rtol": 1e-9, "atol": 1e-9}
        if isinstance(view, pd.DataFrame) or view.dtype != np.float32
        else {"rtol": 1e-5, "atol": 1e-5}
    )
    expected = team.statistics([view])[:, 0]
    assert np.mean(team.predict([view]) == Y) > 0.6
    team.save(tmp_path / "team", **saving)
    loaded = Team.load(tmp_path / "team")
    np.testing.assert_allclose(loaded.statistics([view])[:, 0], expected, **tolerance)
    (path,) = create(tmp_path / "net", ALONE, loaded, NetworkSettings(tls=False))
    score = load(config.read(path).model, path.parent)
    with in_memory(ALONE, rounds=1, score=score) as (agent,), served(agent) as server:
        status, answer = ask(server.url, {"ids": list(range(8)), "views": as_json(view[:8]), "trace": True})
        assert status == 200, answer
        found = [one["trace"][0] for one in answer["items"]]
        np.testing.assert_allclose(found, expected[:8], **tolerance)
        items = [{"id": 100 + i, "view": one} for i, one in enumerate(as_json(view[8:10]))]
        status, answer = ask(server.url, {"items": items, "trace": True})
        assert status == 200, answer
        np.testing.assert_allclose([one["trace"][0] for one in answer["items"]], expected[8:10], **tolerance)


@pytest.mark.filterwarnings("ignore")
def test_views_of_another_kind_are_refused_in_a_sentence(tmp_path: Path) -> None:
    views = {"text": ["good", "bad"], "records": [{"age": 1, "height": 2, "town": "Oslo"}], "numbers": [[1, 2, 3, 4]]}
    takes = {"text": "text", "columns by name, records": "records", "LogisticRegression": "numbers", "SVC": "numbers"}
    for name, right in takes.items():
        make, view = ESTIMATORS[name]
        team = Team([("only", make())], ALONE, rounds=1, workers=1).fit([view], Y)
        (path,) = create(tmp_path / name, ALONE, team, NetworkSettings(tls=False))
        score = load(config.read(path).model, path.parent)
        with in_memory(ALONE, rounds=1, score=score) as (agent,), served(agent) as server:
            for kind, sent in views.items():
                status, answer = ask(server.url, {"ids": list(range(len(sent))), "views": sent})
                assert status == (200 if kind == right else 422), (name, kind, answer)
            status, answer = ask(server.url, {"items": [{"id": 7, "view": "a"}, {"id": 8, "view": [1.0]}]})
            assert status == 422
            assert "same shape: item 0 has a text" in json.dumps(answer)


def test_functions_are_not_saved(tmp_path: Path) -> None:
    """What docs/models.md says of functions: they fit and decide, and have no file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        team = Team.from_fitted([("only", lambda view: view[:, 0])], ALONE, classes=("no", "yes"))
    assert np.mean(team.predict([X]) == Y) > 0.5
    with pytest.raises(ModelError, match=r"a function cannot be saved.*\.onnx"):
        team.save(tmp_path / "team")
