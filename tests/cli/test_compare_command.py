"""`collegium compare` as a user meets it."""

import csv
import json

import numpy as np
import pytest

from collegium.agents import Scores
from helpers import score_record
from own_parts import install
from tiny_data import real_data

SCORE_METHODS = [
    "Non-cooperative",
    "Avg-stat",
    "Vote",
    "Learned fusion",
    "Learned simplex fusion",
    "AdaBoost",
    "Ours",
    "Ours (no centering)",
    "Social learning",
    "Tuned",
    "Log-odds sum",
    "Stacking",
]


@pytest.fixture
def record(tmp_path):
    path = tmp_path / "scores.npz"
    score_record().save(path)
    return path


def test_json_is_a_list_of_methods_with_what_they_cost(cli, record):
    rows = json.loads(cli("compare", "--data", record, "--json").out)
    assert [row["method"] for row in rows] == SCORE_METHODS
    assert all(list(row) == ["method", "error", "ci95", "transmissions", "bits", "seconds"] for row in rows)
    by_name = {row["method"]: row for row in rows}
    scores = Scores.load(record)
    wrong = (scores.statistics("test").mean(axis=1) * scores.y_test <= 0).mean()
    assert by_name["Avg-stat"]["error"] == wrong
    assert by_name["Ours"]["transmissions"] == 20 * 13  # 8·5 // 3 links
    assert by_name["Vote"]["bits"] == 5


def test_records_are_repetitions(cli, tmp_path):
    paths = [tmp_path / f"{seed}.npz" for seed in range(3)]
    for seed, path in enumerate(paths):
        score_record(seed=seed).save(path)
    arguments = [word for path in paths for word in ("--data", path)]
    (row,) = json.loads(cli("compare", *arguments, "--methods", "vote", "--json").out)
    errors = [
        json.loads(cli("compare", "--data", path, "--methods", "vote", "--json").out)[0]["error"] for path in paths
    ]
    assert row["error"] == pytest.approx(np.mean(errors))
    assert row["ci95"] == pytest.approx(4.3027 * np.std(errors, ddof=1) / np.sqrt(3), rel=1e-4)


def test_digits_from_training_to_table_picture_and_files(cli, tmp_path):
    answer = cli(
        "compare", "--data", "digits", "--reps", 2, "--epochs", 3, "--workers", 1, "--network", "grid:3x3", "--policy",
        "metropolis", "--rounds", 5, "--plot", tmp_path / "bars.png", "--out", tmp_path / "all.csv", "--save",
        tmp_path / "records",
    )  # fmt: skip
    for name in (*SCORE_METHODS, "VFL-JT", "Tuned models", "Central oracle"):
        assert name in answer.out
    assert "2 repetitions, 5 rounds over grid:3x3" in answer.out
    assert (tmp_path / "bars.png").stat().st_size > 10_000
    with (tmp_path / "all.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * (len(SCORE_METHODS) + 3)
    by_repetition = [[row["error"] for row in rows if row["repetition"] == str(r)] for r in range(2)]
    assert by_repetition[0] != by_repetition[1]  # a new sample each time
    joint = next(row for row in rows if row["method"] == "VFL-JT")
    assert int(joint["training_transmissions"]) == 9 * 3 * (2 * 140 + 34)
    ours = next(row for row in rows if row["method"] == "Ours")
    assert float(ours["transmissions"]) == 5 * 24
    kept = sorted((tmp_path / "records").iterdir())
    again = json.loads(
        cli(
            "compare", "--data", kept[0], "--methods", "ours", "--network", "grid:3x3", "--policy", "metropolis",
            "--rounds", 5, "--json",
        ).out
    )  # fmt: skip
    assert again[0]["error"] == float(ours["error"])


def test_the_same_seed_gives_the_same_numbers(cli):
    def numbers(seed):
        words = ("--data", "digits", "--reps", 2, "--methods", "ours,adaboost,central-oracle", "--seed", seed)
        rows = json.loads(cli("compare", *words, "--json").out)
        return [(row["error"], row["ci95"]) for row in rows]

    assert numbers(1) == numbers(1)
    assert numbers(1) != numbers(2)


def test_calibration_changes_what_is_exchanged(cli, record):
    plain, warm = (
        json.loads(cli("compare", "--data", record, "--methods", "avg-stat", "--json", *more).out)[0]["error"]
        for more in ((), ("--calibrate",))
    )
    scores = Scores.load(record)
    assert warm == (scores.statistics("test", calibrate=True).mean(axis=1) * scores.y_test <= 0).mean()
    assert warm != plain


def test_coordination_prints_the_papers_table(cli):
    answer = cli("compare", "--data", "digits", "--coordination")
    assert "Joint training on aligned labeled samples" in answer.out
    rows = json.loads(cli("compare", "--data", "digits", "--coordination", "--json", "--methods", "ours,vote").out)
    assert [row["Method"] for row in rows] == ["Ours", "Vote"]
    assert rows[0]["Inference coordination"] == "Iterative peer-to-peer scalar exchange"


# Your own


def test_your_own_data(cli, parts):
    words = ("compare", "--data", "my_data.py:load", "--reps", 2)
    rows = json.loads(cli(*words, "--json").out)
    assert [row["method"] for row in rows] == [*SCORE_METHODS[:10], "Central oracle", *SCORE_METHODS[10:]]
    answer = cli(*words)
    assert "my_data.py:load, logistic: 2 repetitions" in answer.out
    assert "VFL-JT trains PyTorch models only: left out" in answer.out


def test_your_own_models_fit_for_your_own_data(cli, parts):
    words = ("compare", "--data", "my_data.py:load", "--models", "my_models.py:make", "--reps", 1)
    answer = cli(*words, "--save", "kept")
    assert "my_data.py:load, my_models.py:make: one repetition" in answer.out
    assert "The central oracle needs one scikit-learn model for all agents: left out" in answer.out
    description = Scores.load(parts / "kept" / "scores-0.npz").description
    assert description.startswith("3 × Mean(), 2 × SklearnModel(estimator=GaussianNB()); made up")


def test_your_own_models_in_processes_of_their_own(cli, parts):
    """Which cannot import the file."""
    words = ("compare", "--data", "my_data.py:load", "--models", "my_models.py:apart", "--methods", "ours", "--reps", 1)
    one, two = (json.loads(cli(*words, "--workers", n, "--json").out)[0]["error"] for n in (1, 2))
    assert one == two


def test_your_own_as_entry_points(cli, parts, monkeypatch):
    install(parts, monkeypatch, data={"office": "my_data:load"}, models={"mean": "my_models:make"})
    by_name, by_file = (
        json.loads(cli("compare", "--data", data, "--model", model, "--methods", "ours", "--json").out)[0]["error"]
        for data, model in (("office", "mean"), ("my_data.py:load", "my_models.py:make"))
    )
    assert by_name == by_file
    assert (
        "(digits, cifar10, modelnet, wall_robot, multiple_features, occupancy, office, FILE.py:NAME)"
        in cli("compare", "--data", "mnist", code=2).err
    )


OWN_MISTAKES = {
    "file": (["--data", "missing.py:load"], "there is no file missing.py"),
    "name": (["--data", "my_data.py:lode"], "my_data.py has no 'lode' in it"),
    "no name": (["--data", "my_data.py"], "write FILE.py:NAME"),
    "raises": (["--data", "bad.py:raises"], "bad.py:raises failed, line 2: ZeroDivisionError: division by zero"),
    "returns": (
        ["--data", "bad.py:returns"],
        "bad.py:returns must return two Datasets, (train, test); got 3 things: int",
    ),
    "models": (["--data", "my_data.py:load", "--models", "bad.py:models"], "bad.py:models: there are 5 agents but 2"),
    "classes": (["--data", "my_data.py:load", "--classes", "a,b"], "--classes is for digits, cifar10, modelnet"),
    "two": (["--data", "my_data.py:load", "--data", "digits"], "one data set at a time"),
    "learner": (
        ["--data", "my_data.py:load", "--models", "bad.py:lazy"],
        "CallableModel was fitted elsewhere: use it in Team.from_fitted",
    ),
}


@pytest.mark.parametrize("name", OWN_MISTAKES)
def test_mistakes_in_your_own_get_a_sentence(cli, parts, name):
    (parts / "bad.py").write_text(
        "def raises():\n    return 1 / 0\n\ndef returns():\n    return [1, 2, 3]\n\n"
        "def models(train):\n    return [len, len]\n\ndef lazy(train):\n    return lambda view: view[:, 0]\n"
    )
    words, sentence = OWN_MISTAKES[name]
    answer = cli("compare", *words, code=2)
    assert sentence in " ".join(answer.err.split())
    assert "Traceback" not in answer.err


MISTAKES = {
    "no such data": (["--data", "mnist"], "neither a data set"),
    "no such file": (["--data", "missing.npz"], "there is no file"),
    "a table": (["--data", "scores.txt"], "an .npz file as --save"),
    "no parts": (["--data", "plain.csv"], "has no column label: methods that learn need to know"),
    "two sets": (["--data", "digits", "--data", "cifar10"], "one data set at a time"),
    "method": (["--data", "digits", "--methods", "magic"], "there is no method 'magic' here: choose among non-coop"),
    "no method": (["--data", "digits", "--methods", ","], "--methods is empty"),
    "model": (["--data", "digits", "--model", "gpt"], "there is no 'gpt' among the models: choose one of logistic, "),
    "slow model": (["--data", "modelnet", "--model", "logistic"], "take pixel-logistic"),
    "classes": (["--data", "digits", "--classes", "3"], "name two classes"),
    "class": (["--data", "digits", "--classes", "3,x"], "x"),
    "root": (["--data", "digits", "--root", "."], "leave out --root"),
    "no data": (["--data", "cifar10", "--root", "/nowhere"], "/nowhere"),
    "size": (["--data", "digits", "--n0", "7"], "even number"),
    "network": (["--data", "digits", "--network", "ring:5"], "5 agents, but there are 9"),
    "picture": (["--data", "digits", "--plot", "bars.doc"], "cannot draw into bars.doc"),
    "table out": (["--data", "digits", "--out", "all.npy"], "must end in .csv, .parquet"),
    "folder": (["--data", "digits", "--methods", "vote", "--save", "/proc/x"], "cannot write /proc/x"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_get_a_sentence_and_an_exit_code(cli, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.csv").write_text("1,2\n-1,3\n")
    words, sentence = MISTAKES[name]
    answer = cli("compare", *words, code=2)
    assert sentence in " ".join(answer.err.split())
    assert "Traceback" not in answer.err


def test_a_table_is_read_once_and_learned_from_all_its_classes(cli, tmp_path):
    rows = [
        f"{i % 3 - 1},{'' if i == 5 else i % 5 - 2},{'no' if i % 2 else 'yes'},{'train' if i < 40 else 'val'}"
        for i in range(60)
    ]
    rows += [f"1,-1,{'no' if i % 2 else 'yes'},test" for i in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,label,part", *rows]))
    words = ("compare", "--data", tmp_path / "t.csv", "--network", "path:2", "--methods", "vote")
    assert cli(*words).err.count("scores are missing") == 1
    (tmp_path / "t.csv").write_text(
        "\n".join(["a,b,label,part", *(row.replace("yes,train", "no,train") for row in rows)])
    )
    assert "t.csv has no items of yes in the part train: methods learn from all classes" in cli(*words, code=2).err


def test_options_of_training_mean_nothing_to_a_record(cli, record):
    for option in (("--n0", 10), ("--reps", 3), ("--model", "patch-cnn")):
        assert f"{option[0]} is about training" in cli("compare", "--data", record, *option, code=2).err
    assert "VFL-JT and the central oracle are trained on views" in cli("compare", "--data", record).out
    assert "no method 'vfl-jt' here" in cli("compare", "--data", record, "--methods", "vfl-jt", code=2).err


def test_stopping_keeps_what_is_finished(cli, tmp_path, monkeypatch):
    from collegium.cli.cases import Recorded

    paths = [tmp_path / f"{seed}.npz" for seed in range(3)]
    for seed, path in enumerate(paths):
        score_record(seed=seed).save(path)
    read = Recorded.case

    def stopped(self, r):
        if r == 2:
            raise KeyboardInterrupt
        return read(self, r)

    monkeypatch.setattr(Recorded, "case", stopped)
    answer = cli("compare", *(word for path in paths for word in ("--data", path)), code=130)
    assert "2 of 3 repetitions are finished" in answer.err
    assert "2 repetitions" in answer.out


def test_a_mistake_inside_a_method_names_the_method(cli, tmp_path):
    s = score_record()
    one_class = Scores(s.train, s.val, s.test, s.y_train, np.ones(200), s.y_test, np.ones(5))
    one_class.save(tmp_path / "s.npz")
    err = cli("compare", "--data", tmp_path / "s.npz", code=2).err
    assert (
        err
        == "collegium: Learned fusion learns from validation items of both classes; there are 200 of +1 and 0 of -1\n"
    )


def test_a_later_mistake_keeps_what_is_finished(cli, tmp_path):
    s = score_record()
    s.save(tmp_path / "good.npz")
    bad = Scores(s.train, s.val, s.test, s.y_train, np.ones(200), s.y_test, np.ones(5))
    bad.save(tmp_path / "bad.npz")
    words = ("--data", tmp_path / "good.npz", "--data", tmp_path / "bad.npz", "--out", tmp_path / "all.csv")
    answer = cli("compare", *words, code=2)
    assert "one repetition" in answer.out
    assert "only 1 of 2 repetitions are finished" in answer.err
    assert "of both classes" in answer.err
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + len(SCORE_METHODS)


def test_records_of_different_networks_are_not_averaged(cli, tmp_path):
    score_record(K=4).save(tmp_path / "4.npz")
    score_record(K=5).save(tmp_path / "5.npz")
    err = cli("compare", "--data", tmp_path / "4.npz", "--data", tmp_path / "5.npz", code=2).err
    assert "different numbers of agents" in err


def test_outputs_are_tried_before_the_work(cli, monkeypatch):
    from collegium.cli.cases import Trained

    monkeypatch.setattr(Trained, "case", lambda self, r: pytest.fail("trained in vain"))
    for option in ("--out", "--plot"):
        ending = {"--out": "csv", "--plot": "png"}[option]
        assert "cannot write" in cli("compare", "--data", "digits", option, f"/proc/nowhere/x.{ending}", code=2).err


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "folder", "n0"), [("cifar10", "cifar-10-batches-bin", 60), ("modelnet", "modelnet-views", 20)]
)
def test_real_data(cli, name, folder, n0):
    root = real_data(folder)
    words = ("--data", name, "--root", root, "--reps", 1, "--n0", n0, "--epochs", 2, "--json")
    rows = json.loads(cli("compare", *words).out)
    assert len(rows) == len(SCORE_METHODS) + 3
    assert all(0 < row["error"] < 0.7 for row in rows)
