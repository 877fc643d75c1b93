"""Scores of several classes on the command line: long tables, a file per agent, arrays, records."""

import csv
import json

import numpy as np
import pytest
from pyarrow import parquet, table

from collegium import collaborate, planner, policy, theory, topology
from collegium.agents import Scores
from collegium.cli.score_tables import read_scores

CLASSES = ("cat", "dog", "owl")
AGENTS = ("left", "right", "top", "under")
RING = policy.uniform(topology.ring(4))
_RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
LOGS = _RNG.normal(size=(60, 4, 3)) + 1.2 * np.eye(3)[Y][:, None] - 5.0
X = LOGS - LOGS.mean(axis=2, keepdims=True)


def long_rows(parts=False, classes=CLASSES, logs=LOGS):
    """Rows in no particular order: nothing may depend on it but the order of items and agents."""
    for i in range(len(logs)):
        for k, agent in enumerate(AGENTS):
            for c in np.roll(np.arange(len(classes)), i + k):
                row = [f"item {i}", agent, classes[c], repr(float(logs[i, k, c])), classes[Y[i] % len(classes)]]
                yield [*row, ("train", "val", "test")[i // 3 % 3]] if parts else row


def write_csv(path, names, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


@pytest.fixture
def long(tmp_path):
    return write_csv(tmp_path / "long.csv", ["item", "agent", "class", "score", "label"], long_rows())


@pytest.fixture
def folder(tmp_path):
    """One file per agent, with columns in different orders; agent 10 comes after agent 9."""
    folder = tmp_path / "agents"
    folder.mkdir()
    for k, name in enumerate(("agent 1", "agent 2", "agent 9", "agent 10")):
        order = np.roll(np.arange(3), k)
        rows = ([f"item {i}", *map(repr, LOGS[i, k, order].tolist())] for i in range(60))
        write_csv(folder / f"{name}.csv", ["item", *(CLASSES[c] for c in order)], rows)
    write_csv(folder / "labels.csv", ["item", "label"], ((f"item {i}", CLASSES[Y[i]]) for i in reversed(range(60))))
    return folder


def facts(cli, *words):
    return json.loads(cli(*words, "--json").out)


def test_every_form_gives_the_librarys_numbers(cli, long, folder, tmp_path):
    np.save(tmp_path / "cube.npy", LOGS)
    np.save(tmp_path / "y.npy", Y)
    columns = dict(zip(("item", "agent", "class", "score", "label"), zip(*long_rows(), strict=True), strict=True))
    parquet.write_table(table(columns | {"score": [float(one) for one in columns["score"]]}), tmp_path / "long.parquet")
    run = collaborate(X, RING, 5, items=[f"item {i}" for i in range(60)])
    named = np.array(CLASSES)[run.decisions()].tolist()
    for path in (long, tmp_path / "long.parquet", folder):
        found = facts(cli, "simulate", path, "ring:4", "--rounds", 5)
        np.testing.assert_allclose(found["statistics"], run.statistics[-1], atol=1e-12)
        assert found["classes"] == list(CLASSES)
        assert found["decisions"] == named
        assert found["errors"] == run.errors(Y).tolist()
        assert found["bits"] == run.bits.tolist()
        assert found["item_names"][7] == "item 7"
    cube = facts(cli, "simulate", tmp_path / "cube.npy", "ring:4", "--rounds", 5, "--labels", tmp_path / "y.npy")
    assert cube["errors"] == run.errors(Y).tolist()
    assert cube["decisions"] == np.array(["0", "1", "2"])[run.decisions()].tolist()
    words = ("simulate", tmp_path / "cube.npy", "ring:4", "--rounds", 5, "--classes", "cat,dog,owl")
    assert facts(cli, *words)["decisions"] == named


def test_two_classes_of_a_long_table_are_log_odds(cli, tmp_path):
    rows = long_rows(classes=CLASSES[:2], logs=LOGS[:, :, :2])
    path = write_csv(tmp_path / "two.csv", ["item", "agent", "class", "score", "label"], rows)
    dog = facts(cli, "simulate", path, "ring:4", "--rounds", 3)  # the larger name is +1
    np.testing.assert_allclose(dog["statistics"], collaborate(LOGS[:, :, 1] - LOGS[:, :, 0], RING, 3).statistics[-1])
    assert dog["classes"] == ["dog", "cat"]
    cat = facts(cli, "simulate", path, "ring:4", "--rounds", 3, "--classes", "cat,dog")
    np.testing.assert_allclose(np.add(dog["statistics"], cat["statistics"]), 0, atol=1e-12)
    assert cat["errors"] == dog["errors"]


def test_what_people_see(cli, long, tmp_path):
    answer = cli("simulate", long, "ring:4", "--plot", tmp_path / "e.png", "--out", tmp_path / "d.csv")
    assert "their mean over the classes is taken off" in answer.err
    assert "3 classes: cat, dog, owl" in answer.out
    assert (tmp_path / "e.png").stat().st_size > 10_000
    with (tmp_path / "d.csv").open() as file:
        rows = list(csv.DictReader(file))
    decisions = collaborate(X, RING).decisions()
    assert [row[AGENTS[2]] for row in rows] == [CLASSES[c] for c in decisions[:, 2]]
    cli("simulate", long, "ring:4", "--plot", tmp_path / "i.png", "--item", "item 7")
    assert (tmp_path / "i.png").stat().st_size > 10_000
    assert "no item 'item 99'" in cli("simulate", long, "ring:4", "--plot", "i.png", "--item", "item 99", code=2).err
    assert "give --plot too" in cli("simulate", long, "ring:4", "--item", "item 7", code=2).err
    assert "owl" in cli("simulate", long, "ring:4").out  # 240 decisions fit into a table
    cli("simulate", long, "ring:4", "--out", tmp_path / "d.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy")[:, 1:5], decisions)


def test_classes_in_another_order_change_the_order_of_entries_alone(cli, long):
    given = facts(cli, "simulate", long, "ring:4")
    turned = facts(cli, "simulate", long, "ring:4", "--classes", "owl,cat,dog")
    np.testing.assert_allclose(np.array(turned["statistics"])[:, :, [1, 2, 0]], given["statistics"], atol=1e-12)
    assert (turned["decisions"], turned["errors"]) == (given["decisions"], given["errors"])


def test_certify_and_plan(cli, long, tmp_path):
    certified = facts(cli, "certify", long, "ring:4", "--rounds", 4)
    expected = theory.certify(X, Y, RING, 4).to_dict()
    assert certified["items"] == [20, 20, 20]
    np.testing.assert_allclose(certified["errors"], expected["errors"])
    assert certified["delta"] == pytest.approx(expected["delta"])
    rounded = facts(cli, "certify", long, "ring:4", "--rounds", 4, "--bits", 6)
    assert rounded["bits"] == 6
    shown = cli("certify", long, "ring:4", "--rounds", 4, "--plot", tmp_path / "c.png").out
    assert "cat (20): " in shown
    assert " before " in shown
    assert (
        "no guarantee by range: the margin is 0.15 of β, for which the bound, summed over 2 rivals, stays"
        in " ".join(shown.split())
    )
    planned = facts(cli, "plan", "--scores", long, "--rounds", 3, "--save", tmp_path / "net.json")
    answer = planner.plan(X, Y, rounds=3)
    assert planned["recommended"]["error"] == pytest.approx(answer.recommended.error.mean)
    assert planned["recommended"]["bits"] == pytest.approx(answer.recommended.bits.mean)
    assert planned["recommended"]["message_bits"] == answer.recommended.rule.message_bits(3)
    # the network that was saved does what the plan says, on the other half
    assert facts(cli, "simulate", long, tmp_path / "net.json")["rounds"] == answer.recommended.rounds
    assert "owl (" in cli("plan", "--scores", long, "--rounds", 3).out


def test_compare_takes_records_and_tables_with_parts(cli, tmp_path):
    names = ["item", "agent", "class", "score", "label", "part"]
    path = write_csv(tmp_path / "long.csv", names, long_rows(parts=True))
    part = np.arange(60) // 3 % 3
    record = Scores(*(X[part == p] for p in range(3)), *(Y[part == p] for p in range(3)), class_names=CLASSES)
    record.save(tmp_path / "record.npz")
    tables, records = (facts(cli, "compare", "--data", one) for one in (path, tmp_path / "record.npz"))
    assert [row["method"] for row in tables] == [row["method"] for row in records]
    np.testing.assert_allclose([row["error"] for row in tables], [row["error"] for row in records])
    by_name = {row["method"]: row for row in tables}
    y = Y[part == 2]
    assert by_name["Avg-stat"]["error"] == (record.statistics("test").mean(axis=1).argmax(axis=1) != y).mean()
    assert by_name["Ours"]["bits"] == 20 * 10 * 2 * 64  # two of three numbers travel over 8·4 // 3 links
    assert "Learned fusion" in cli("compare", "--data", path).out


def test_ten_digits_from_training_to_errors(cli):
    words = ("--classes", "all", "--reps", 1, "--workers", 1, "--methods", "ours,avg-stat,non-cooperative")
    ours, average, alone = facts(cli, "compare", "--data", "digits", "--network", "grid:3x3", *words)
    assert average["error"] < 0.25 < alone["error"]
    assert abs(ours["error"] - average["error"]) < 0.02


MISTAKES = {
    "missing": ("item,agent,class,score\na,l,x,1\na,l,y,2\na,l,z,0\nb,l,x,1\nb,l,y,2\n", "no score of class z"),
    "twice": ("item,agent,class,score\na,l,x,1\na,l,x,2\n", "a, agent l has 2 scores of class x"),
    "text": ("item,agent,class,score\na,l,x,1\na,l,y,much\na,l,z,0\n", "'much' in column 'score'"),
    "infinite": ("item,agent,class,score\na,l,x,1\na,l,y,-inf\na,l,z,0\n", "agent l, class y has -inf"),
    "probabilities": ("item,agent,class,score\na,l,x,.5\na,l,y,.25\na,l,z,.25\n", "scores are their logarithms"),
    "labels": ("item,agent,class,score,label\na,l,x,1\na,l,y,0,y\n", "line 2 has 4 cells"),
    "two labels": ("item,agent,class,score,label\na,l,x,1,x\na,l,y,0,y\n", "item a has different labels"),
    "unknown label": ("item,agent,class,score,label\na,l,x,2,w\na,l,y,0,w\na,l,z,0,w\n", "label 'w' of item 0 is none"),
    "wide": ("a,b,label\n1,2,x\n2,1,y\n0,1,z\n", "of more, every class has its own"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_get_a_sentence(cli, name, tmp_path):
    text, sentence = MISTAKES[name]
    (tmp_path / "s.csv").write_text(text)
    network = "ring:2" if name == "wide" else "ring:1"
    assert sentence in " ".join(cli("simulate", tmp_path / "s.csv", network, code=2).err.split())


def test_mistakes_in_a_folder(cli, folder, long):
    def refused(path, *words):
        return " ".join(cli("simulate", path, "ring:4", *words, code=2).err.split())

    assert "has scores of 3 classes, cat, dog, owl" in refused(long, "--classes", "cat,dog")
    text = (folder / "agent 9.csv").read_text()
    (folder / "agent 9.csv").write_text(text.replace("cat", "cow"))
    assert "agent 9.csv has the columns" in refused(folder)
    (folder / "agent 9.csv").write_text("\n".join(text.splitlines()[:-1]))
    assert "agent 9.csv and agent 1.csv must have the same items, row by row" in refused(folder)


def test_an_agent_that_knows_only_some_classes_has_no_evidence_for_the_others(tmp_path, cli):
    """In a long table it has no rows of them, in a folder no column; rows may come in any order."""
    rng = np.random.default_rng(0)
    scores, names = rng.normal(size=(12, 3, 3)), ("ant", "bee", "cat")
    rows = [
        f"{i},{agent},{one},{float(scores[i, k, c])!r}"
        for i in range(12) for k, agent in enumerate(("x", "y", "z")) for c, one in enumerate(names)
        if (agent, one) != ("y", "cat")
    ]  # fmt: skip
    rng.shuffle(rows)
    (tmp_path / "long.csv").write_text("\n".join(["item,agent,class,score", *rows]) + "\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    for k, agent in enumerate(("x", "y", "z")):
        known = range(2 if agent == "y" else 3)
        lines = [",".join(repr(float(scores[i, k, c])) for c in known) for i in range(12)]
        (folder / f"{agent}.csv").write_text("\n".join([",".join(names[c] for c in known), *lines]) + "\n")
    expected = scores - scores.mean(axis=2, keepdims=True)
    expected[:, 1, :2] = scores[:, 1, :2] - scores[:, 1, :2].mean(axis=1, keepdims=True)
    expected[:, 1, 2] = 0.0
    for path in (tmp_path / "long.csv", folder):
        found = read_scores(path)
        order = np.argsort(np.arange(12) if found.items is None else np.array(found.items))
        np.testing.assert_allclose(found.values[order], expected, atol=1e-15)
        assert found.agents == ("x", "y", "z")
        assert "agent y has no scores of cat" in " ".join(cli("simulate", path, "ring:3").err.split())
