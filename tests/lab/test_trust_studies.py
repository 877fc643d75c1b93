"""The studies of liars and privacy, on records that nobody had to train, and what is missing is named."""

import numpy as np
import pytest

from collegium.errors import DataError
from collegium.lab.studies import BEYOND
from collegium.lab.studies import trust as studies
from collegium.lab.study import Options
from collegium.lab.table import to_table, values


@pytest.fixture
def root(tmp_path, monkeypatch):
    (tmp_path / "records").mkdir()
    monkeypatch.setattr(studies, "DATA", {"modelnet": 1, "cifar10": 1})
    monkeypatch.setattr(studies, "ROUNDS", 3)
    monkeypatch.setattr(studies, "ATTACKS", {name: studies.ATTACKS[name] for name in ("silent", "stubborn")})
    rng = np.random.default_rng(0)
    for name, K in (("modelnet", 12), ("cifar10", 9)):
        arrays = {}
        for part, n in (("train", 60), ("val", 40), ("test", 50)):
            y = np.where(np.arange(n) % 2, -1, 1)
            arrays |= {part: (2 * y[:, None] + 2 * rng.normal(size=(n, K))).astype(np.float32), f"y_{part}": y}
        np.savez(tmp_path / "records" / f"{name}-0.npz", **arrays)
    return tmp_path


def test_liars(root):
    study = BEYOND["liars"]
    table = to_table(study.examine(Options(root=str(root))), study.factors)
    at = {
        "data": "modelnet",
        "network": "complete",
        "gains": "equal",
        "liars": 2,
        "knows": "label",
        "attack": "stubborn",
    }
    assert values(table, method="mean", **at).item() > 0.8
    assert values(table, method="trimmed mean", **at).item() < 0.4
    assert values(table, method="flood, clipped, evidence", **at).item() < 0.1
    assert set(table["liars"]) == {0, 1, 2, 3}
    assert set(study.draw(table)) == {"liars", "liars-counts"}
    assert len(study.claims(table)) == 54  # nine methods, three cases, with and without gains


def test_privacy(root, monkeypatch):
    rng, arrays = np.random.default_rng(1), {}
    for part, n in (("train", 60), ("val", 40), ("test", 50)):
        y = np.arange(n) % 4
        scores = 2.0 * np.eye(4)[y][:, None] + rng.normal(size=(n, 24, 4))
        arrays |= {part: (scores - scores.mean(axis=2, keepdims=True)).astype(np.float32), f"y_{part}": y}
    np.savez(root / "records" / "wall-robot-0.npz", **arrays)
    monkeypatch.setattr(studies, "DATA", {**studies.DATA, "wall-robot": 1})
    study = BEYOND["privacy"]
    table = to_table(study.examine(Options(root=str(root))), study.factors)
    noisy = [values(table, data="modelnet", method="noise once", epsilon=one).item() for one in (0.5, 32.0)]
    assert noisy[0] > 0.2 > 0.1 > noisy[1]
    for one in studies.EPSILONS:
        seen, wanted = (values(table, data="cifar10", method=m, epsilon=one).item() for m in ("noise once", "theory"))
        assert abs(seen - wanted) < 3.9 * np.sqrt(0.25 / 1000) + 0.02  # 20 draws of 50 items; normal for Laplace
    robot = [values(table, data="wall-robot", method="noise once", epsilon=one).item() for one in (0.5, 32.0)]
    assert robot[0] > 0.5 > 0.2 > robot[1]
    assert set(table["data"][table["method"] == "theory"]) == {"modelnet", "cifar10"}  # it is of two classes
    assert set(study.draw(table)) == {"privacy"}


def test_missing_records_are_named(tmp_path):
    with pytest.raises(DataError, match="put score records there"):
        list(BEYOND["liars"].examine(Options(root=str(tmp_path))))
