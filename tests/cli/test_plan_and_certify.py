"""`collegium plan` and `collegium certify` as a user meets them."""

import json

import numpy as np
import pytest

from collegium.planner.network_file import NetworkFile, write_network
from collegium.policy import uniform
from collegium.protocol import SocialLearning
from collegium.topology import ring
from helpers import score_record


@pytest.fixture
def table(tmp_path):
    """A table of scores with a column of labels."""
    record = score_record(K=6, n=200, seed=3)
    path = tmp_path / "scores.csv"
    c = record.statistics("test")
    names = np.where(record.y_test > 0, "cat", "dog")
    lines = ["a0,a1,a2,a3,a4,a5,label"]
    lines += [",".join([*map(repr, row), name]) for row, name in zip(c.tolist(), names, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_plan_from_scores_to_network_file(cli, table, tmp_path):
    answer = cli(
        "plan", "--scores", table, "--classes", "cat,dog", "--budget-bits", 150, "--rounds", 6, "--save",
        tmp_path / "net.json", "--plot", tmp_path / "plan.png",
    )  # fmt: skip
    assert "recommended: " in answer.out
    assert "on the other half" in answer.out
    assert "★" in answer.out
    assert "guaranteed %" in answer.out
    assert (tmp_path / "plan.png").stat().st_size > 10_000
    seen = json.loads(cli("network", tmp_path / "net.json", "--json").out)
    assert seen["agents"] == 6
    plan = json.loads((tmp_path / "net.json").read_text())
    run = json.loads(cli("simulate", table, tmp_path / "net.json", "--json").out)
    assert run["rounds"] == plan["rounds"]  # not 20
    bits = plan["rule"]["Quantised"]["bits"]
    assert [b == bits * t for b, t in zip(run["bits"], run["transmissions"], strict=True)] == [True] * 200
    other = json.loads(cli("simulate", table, tmp_path / "net.json", "--json", "--rounds", 1, "--rule", "degroot").out)
    assert (other["rounds"], other["bits"][0]) == (1, 64 * other["transmissions"][0])
    certified = json.loads(cli("certify", table, tmp_path / "net.json", "--classes", "cat,dog", "--json").out)
    assert (certified["bits"], len(certified["errors"])) == (bits, plan["rounds"] + 1)


def test_plan_as_json(cli, table):
    words = ("plan", "--scores", table, "--classes", "cat,dog", "--target-error", 0.3, "--rounds", 6, "--json")
    found = json.loads(cli(*words).out)
    assert found["met"] is True
    assert found["recommended"]["chosen_error"] <= 0.3
    assert set(found) == {"met", "recommended", "reasons", "alone", "front", "certificate", "searched", "seconds"}
    assert found["searched"] > 1000
    again = json.loads(cli(*words).out)
    assert again["recommended"] == found["recommended"]


def test_plan_says_what_cannot_be_had(cli, table):
    answer = cli("plan", "--scores", table, "--classes", "cat,dog", "--budget-bits", 1, "--rounds", 3)
    assert "not possible; nearest: " in answer.out
    assert "no plan with any messages costs at most 1 bits" in " ".join(answer.out.split())


def test_a_score_record_will_do(cli, tmp_path):
    score_record(K=4).save(tmp_path / "s.npz")
    found = json.loads(cli("plan", "--scores", tmp_path / "s.npz", "--budget-bits", 99, "--rounds", 3, "--json").out)
    assert found["alone"]["error"] > found["recommended"]["error"]
    certified = json.loads(cli("certify", tmp_path / "s.npz", "ring:4", "--json", "--rounds", 3).out)
    assert certified["delta"] > 0
    assert len(certified["errors"]) == 4


def test_certify_prints_draws_and_says_json(cli, table, tmp_path):
    words = ("certify", table, "ring:6", "--classes", "cat,dog", "--rounds", 12)
    answer = cli(*words, "--plot", tmp_path / "c.png")
    assert "margin δ = " in answer.out
    assert "the largest seen, which a new item may exceed" in " ".join(answer.out.split())
    assert (tmp_path / "c.png").stat().st_size > 5000
    found = json.loads(cli(*words, "--json", "--bits", 4, "--tau", 2, "--beta", 20).out)
    assert (found["bits"], found["tau"], found["beta"]) == (4, 2.0, 20.0)
    full = json.loads(cli(*words, "--json").out)
    assert np.array(found["errors"])[-1].mean() > np.array(full["errors"])[-1].mean()  # rounding within ±40 harms
    assert found["limit"]["bound"] is None
    assert np.array(found["errors"]).shape == (13, 6)


def test_no_margin_is_said(cli, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "s.npy", rng.normal(size=(60, 3)))
    np.save(tmp_path / "y.npy", rng.choice([-1, 1], 60))
    answer = cli("certify", tmp_path / "s.npy", "ring:3", "--labels", tmp_path / "y.npy")
    assert "no guarantee" in answer.out


MISTAKES = {
    "no labels": (["certify", "plain.csv", "ring:2"], "has no column named label"),
    "no file": (["plan", "--scores", "none.csv"], "no such file"),
    "network": (["certify", "good.csv", "ring:3"], "2 columns"),
    "beta": (["certify", "good.csv", "ring:2", "--beta", "0.01"], "leave the range"),
    "confidence": (["certify", "good.csv", "ring:2", "--confidence", "2"], "confidence must lie"),
    "tau": (["certify", "good.csv", "ring:2", "--tau", "0"], "at least 1"),
    "bits": (["certify", "good.csv", "ring:2", "--bits", "0"], "bits must be a whole number between 1 and 32"),
    "target": (["plan", "--scores", "good.csv", "--target-error", "7"], "target error"),
    "budget": (["plan", "--scores", "good.csv", "--budget-bits", "-7"], "budget"),
    "save": (["plan", "--scores", "good.csv", "--save", "net.csv"], "must end in .json"),
    "picture": (["plan", "--scores", "good.csv", "--plot", "x.doc"], "cannot draw"),
    "classes": (["plan", "--scores", "good.csv", "--classes", "a,b"], "must be numbers"),
    "few": (["plan", "--scores", "few.csv"], "four of each class"),
    "record": (["plan", "--scores", "r.npz", "--labels", "y"], "has its own labels"),
    "json": (["network", "net.json"], "is not a network file"),
    "rule": (["certify", "good.csv", "social.json"], "but none for social-learning, the rule of social.json"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_get_a_sentence(cli, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{a},{b}" for a, b in rng.normal(size=(20, 2))]
    (tmp_path / "plain.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    (tmp_path / "good.csv").write_text("a,b,label\n" + "\n".join(f"{row},{i % 2}" for i, row in enumerate(rows)) + "\n")
    (tmp_path / "few.csv").write_text("a,b,label\n1,2,0\n2,1,1\n")
    (tmp_path / "net.json").write_text("[]")
    score_record(K=3).save(tmp_path / "r.npz")
    write_network(tmp_path / "social.json", NetworkFile(uniform(ring(2)), SocialLearning(), 5))
    words, sentence = MISTAKES[name]
    assert sentence in " ".join(cli(*words, code=2).err.split())
