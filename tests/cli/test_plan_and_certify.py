"""`collegium plan` and `collegium certify` as a user meets them."""

import json
import re

import numpy as np
import pytest

from collegium import collaborate
from collegium.planner.network_file import NetworkFile, write_network
from collegium.policy import uniform
from collegium.protocol import DeGroot, DeltaTrigger, RunningSums
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
    assert "held-out items, confidence 95 %" in answer.out
    assert (tmp_path / "plan.png").stat().st_size > 10_000
    seen = json.loads(cli("network", tmp_path / "net.json", "--json").out)
    assert seen["agents"] == 6
    plan = json.loads((tmp_path / "net.json").read_text())
    run = json.loads(cli("simulate", table, tmp_path / "net.json", "--json").out)
    assert run["rounds"] == plan["rounds"]  # not 20
    bits = plan["rule"]["quantised"]["bits"]
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
    assert found.keys() == {
        "agents", "classes", "met", "recommended", "reasons", "alone", "front", "certificate", "searched", "seconds"
    }  # fmt: skip
    assert found["searched"] > 1000
    assert found["classes"] == ["cat", "dog"]
    again = json.loads(cli(*words).out)
    assert again["recommended"] == found["recommended"]


def test_plan_says_what_cannot_be_had(cli, table):
    answer = cli("plan", "--scores", table, "--classes", "cat,dog", "--budget-bits", 1, "--rounds", 3, code=1)
    assert "not met; nearest: " in answer.out
    assert "no plan with any messages costs at most 1 bits" in " ".join(answer.out.split())


def test_a_score_record_will_do(cli, tmp_path):
    score_record(K=4).save(tmp_path / "s.npz")
    found = json.loads(cli("plan", "--scores", tmp_path / "s.npz", "--budget-bits", 99, "--rounds", 3, "--json").out)
    assert found["alone"]["error"] > found["recommended"]["error"]
    certified = json.loads(cli("certify", tmp_path / "s.npz", "ring:4", "--json", "--rounds", 3).out)
    assert certified["delta"] > 0
    assert len(certified["errors"]) == 4


def test_certify_leads_with_what_held_out_items_say(cli, table):
    words = ("certify", table, "ring:6", "--classes", "cat,dog", "--rounds", 12)
    shown = cli(*words, "--alpha", 0.2, "--error", 0.3).out
    lines = shown.splitlines()
    assert re.search(r"the worst agent \(a[0-5]\) errs in at most", " ".join(lines[:2]))
    assert re.search(r"they gain from \S+ \(a[0-5]\) to \S+ points \(a[0-5], at least", " ".join(shown.split()))
    assert shown.index("better than alone") < shown.index("prediction sets") < shown.index("if normal")
    assert shown.index("errors among decided items at most 30 %") < shown.index("margin δ")
    found = json.loads(cli(*words, "--alpha", 0.2, "--error", 0.3, "--json").out)
    said = found["held_out"]
    assert found["agents"] == [f"a{k}" for k in range(6)]
    assert found["classes"] == ["cat", "dog"]  # in the order of `items` and the means
    assert np.shape(said["error_at_most"]) == (13, 6)
    assert (np.array(said["error_at_most"]) > found["errors"]).all()
    assert said["sets"]["coverage"] >= 0.8
    assert len(said["sets"]["threshold"]) == len(said["abstention"]["threshold"]) == 6
    assert "sets" not in json.loads(cli(*words, "--json").out)["held_out"]
    none = cli(*words, "--error", 0.0001).out
    assert "nothing can be decided so" in none


@pytest.mark.parametrize(("network", "rounds"), {"exact:6": 3, "eigenvalue-steps:ring:6": 3}.items())
def test_certify_takes_schedules_with_their_rules_and_rounds(cli, table, network, rounds):
    words = ("certify", table, network, "--classes", "cat,dog", "--json")
    found = json.loads(cli(*words).out)
    assert len(found["bound"]) == rounds + 1
    assert found["errors"][rounds] == pytest.approx([found["limit"]["error"]] * 6, abs=1e-12)
    if found["limit"]["bound"] is not None and found["limit"]["bound"] < 1:
        assert found["bound"][rounds] == pytest.approx([found["limit"]["bound"]] * 6, rel=1e-9)
    rounded = json.loads(cli(*words, "--bits", 12).out)
    assert rounded["bits"] == 12
    assert rounded["limit"]["bound"] is None


def test_certify_says_what_held_out_items_say_of_any_rule(cli, table, tmp_path):
    file = tmp_path / "sums.json"
    write_network(file, NetworkFile(uniform(ring(6)), RunningSums(), 5))
    words = ("certify", table, file, "--classes", "cat,dog", "--alpha", 0.2)
    shown = " ".join(cli(*words, "--plot", tmp_path / "sums.png").out.split())
    assert "no theorem covers running-sums" in shown
    assert "prediction sets" in shown
    assert "margin" not in shown
    found = json.loads(cli(*words, "--json").out)
    assert found["no_theorem"] == "running-sums"
    assert (np.shape(found["errors"]), found["limit"]["bound"]) == ((6, 6), None)
    # What was sent under a trigger counts, not what DeGroot would have made of it.
    over, rule = uniform(ring(6)), DeltaTrigger(1.0)
    write_network(tmp_path / "delta.json", NetworkFile(over, rule, 8))
    found = json.loads(cli("certify", table, tmp_path / "delta.json", "--classes", "cat,dog", "--json").out)
    record = score_record(K=6, n=200, seed=3)
    errors = [collaborate(record.statistics("test"), over, 8, one).errors(record.y_test) for one in (rule, DeGroot())]
    np.testing.assert_allclose(found["errors"], errors[0], atol=1e-12)
    assert not np.allclose(errors[0], errors[1])


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
    words, sentence = MISTAKES[name]
    assert sentence in " ".join(cli(*words, code=2).err.split())
