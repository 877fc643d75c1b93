"""`collegium study` as a user meets it: from data to claims, stopped and resumed on the way."""

import json
import re

import pandas
import pytest

from collegium.cli.study import NAMES
from collegium.lab.studies import BEYOND
from own_parts import install
from tiny_data import real_data

STUDIES = ["modelnet-main", "modelnet-temperature", "modelnet-correlation", "topology", "stopping", "robustness"]


@pytest.mark.data
@pytest.mark.timeout(1800)
def test_the_modelnet_studies_from_one_set_of_records(cli, tmp_path):
    root = real_data("modelnet-views")
    out = ("--out", tmp_path / "lab")
    words = ("study", "run", *STUDIES, "--quick", "--n0", "20", "--data", root, *out, "--backend", "serial")
    answer = cli(*words)
    assert "undecided" in answer.out
    records = sorted((tmp_path / "lab" / "records").glob("*.npz"))
    assert len(records) == 2  # all six studies read the same two
    tables = {path.name: path.read_bytes() for path in (tmp_path / "lab" / "tables").iterdir()}
    assert set(tables) == {f"{name}.parquet" for name in STUDIES}
    for name in (*STUDIES, "topology-by-rule", "modelnet-temperature-diagnostics"):
        for ending in ("png", "pdf"):
            assert (tmp_path / "lab" / "figures" / f"{name}.{ending}").stat().st_size > 5000

    claims = json.loads(cli("study", "check", *out, "--json").out)
    assert all(list(claim) == ["study", "claim", "verdict", "evidence"] for claim in claims)
    assert {claim["verdict"] for claim in claims} <= {"holds", "does not hold", "undecided"}
    by_claim = {claim["claim"]: claim["verdict"] for claim in claims if claim["study"] == "topology"}
    assert by_claim["on the ring both rules give one matrix"] == "holds"
    assert by_claim["σ_A: ring above grid above random, for both rules"] == "holds"

    page = (tmp_path / "lab" / "report.html") if cli("study", "report", *out) else None
    text = page.read_text()
    assert text.count("data:image/png;base64,") >= 10
    assert not re.search(r"(src|href)=['\"]https?:", text)  # nothing from elsewhere

    kept = cli("study", "summary", tmp_path / "kept", *out).out.split()
    assert str(tmp_path / "kept" / "topology.csv") in kept
    page = (tmp_path / "kept" / "README.md").read_text()
    assert "| topology | on the ring both rules give one matrix | holds |" in page
    assert "N_0 = 20: 2" in page
    table = pandas.read_csv(tmp_path / "kept" / "modelnet-main.csv")
    full = pandas.read_parquet(tmp_path / "lab" / "tables" / "modelnet-main.parquet")
    ours = full[(full["quantity"] == "error") & (full["method"] == "Ours")]["value"]
    found = table[(table["quantity"] == "error") & (table["method"] == "Ours")]
    assert found["mean"].item() == pytest.approx(ours.mean(), rel=1e-5)
    assert found["repetitions"].item() == 2
    assert sum(path.stat().st_size for path in (tmp_path / "kept").iterdir()) < 3_000_000

    # One record lost, one damaged, all parts gone: resuming makes the same tables, bit for bit.
    records[0].unlink()
    records[1].write_bytes(records[1].read_bytes()[:1000])
    for part in (tmp_path / "lab" / "parts").rglob("*.parquet"):
        part.unlink()
    with pytest.warns(UserWarning, match="set aside"):
        cli("study", "resume", *out, "--backend", "serial")
    assert {path.name: path.read_bytes() for path in (tmp_path / "lab" / "tables").iterdir()} == tables


@pytest.mark.data
def test_studies_of_the_data_themselves(cli, tmp_path):
    root = real_data("cifar-10-batches-bin")
    out = ("--out", tmp_path / "lab")
    words = ("study", "run", "cifar-setup", "cifar-cmi", "--quick", "--data", root, *out, "--backend", "serial")
    cli(*words, "--dimensions", 10, "--neighbours", 3)
    claims = json.loads(cli("study", "check", *out, "--json").out)
    assert [claim["verdict"] for claim in claims] == ["holds"] * 4
    for name in ("cifar-setup-patches", "cifar-setup-network", "cifar-setup-local", "cifar-cmi"):
        assert (tmp_path / "lab" / "figures" / f"{name}.png").stat().st_size > 5000
    table = pandas.read_parquet(tmp_path / "lab" / "tables" / "cifar-cmi.parquet")
    assert set(table["dimensions"]) == {10}
    assert set(table["neighbours"]) == {3}
    assert table["split"].value_counts().to_dict() == {"train": 36, "test": 36}


@pytest.mark.data
def test_joint_training_is_counted_in_its_study(cli, tmp_path):
    root = real_data("cifar-10-batches-bin")
    words = ("--quick", "--n0", "100", "--reps", 1, "--data", root, "--out", tmp_path / "lab", "--backend", "serial")
    cli("study", "run", "communication-cost", "cifar-main", *words)
    claims = json.loads(cli("study", "check", "communication-cost", "--out", tmp_path / "lab", "--json").out)
    by = {claim["claim"]: claim["verdict"] for claim in claims}
    assert [by[claim] for claim in by if "tenth" not in claim] == ["holds"] * 3
    assert "tuning by the exact average sends at most a tenth of VFL-JT (our question)" in by
    table = pandas.read_parquet(tmp_path / "lab" / "tables" / "communication-cost.parquet")
    counted = table[table["source"] == "counted"].set_index(["method", "quantity"])["value"]
    for method in ("Tuned", "Tuned (exact average)"):
        assert counted[method, "bits in training"] == 64 * counted[method, "in training"] > 0
    main = pandas.read_parquet(tmp_path / "lab" / "tables" / "cifar-main.parquet")
    assert {"Tuned", "Tuned models"} <= set(main.loc[main["quantity"] == "error", "method"])


def test_studies_are_listed(cli):
    rows = json.loads(cli("study", "list", "--json").out)
    assert [row["study"] for row in rows] == [
        "bounds",
        "cifar-setup",
        "cifar-main",
        "cifar-graphs",
        "cifar-cmi",
        "cifar-hetero-gain",
        "cifar-hetero-main",
        "cifar-temperature",
        "modelnet-setup",
        "modelnet-main",
        "modelnet-temperature",
        "modelnet-correlation",
        "topology",
        "graphs",
        "stopping",
        "robustness",
        "communication-cost",
        *BEYOND,
    ]
    assert [row["group"] for row in rows] == ["paper"] * 17 + ["beyond the paper"] * len(BEYOND)
    assert tuple(row["study"] for row in rows) == NAMES
    shown = cli("study", "list").out
    assert "Fig. 11" in shown
    assert shown.index("communication-cost") < shown.index("sensors-main") < shown.index("beyond the paper")


# Your own


def test_a_study_of_your_own_from_run_to_report(cli, parts):
    answer = cli("study", "run", "my_study.py:Thrift", "--out", "lab", "--backend", "process", "--workers", 1)
    assert "a threshold saves transmissions" in answer.out
    (claim,) = json.loads(cli("study", "check", "thrift", "--out", "lab", "--json").out)
    assert (claim["study"], claim["verdict"]) == ("thrift", "holds")
    assert cli("study", "figures", "my_study.py:Thrift", "--out", "lab").out.split()[0] == "lab/figures/thrift.png"
    cli("study", "report", "--out", "lab")
    assert "Transmissions at two thresholds" in (parts / "lab" / "report.html").read_text()
    facts = json.loads(cli("study", "resume", "--out", "lab", "--backend", "serial", "--json").out)
    assert facts["studies"] == ["thrift"]
    assert facts["claims"] == [claim]
    assert facts["figures"][0] == "lab/figures/thrift.png"


def test_records_trained_elsewhere_are_taken_over(cli, parts):
    run = ("study", "run", "my_study.py:Thrift", "--backend", "serial", "--workers", 1)
    cli(*run, "--out", "lab")
    made = len(list((parts / "lab" / "records").glob("*.npz")))
    assert cli("study", "export", "kept", "--out", "lab").out == f"{made} new records in kept\n"
    assert cli("study", "export", "kept", "--only", "nothing", "--out", "lab").out == "0 new records in kept\n"
    cli("study", "import", "kept", "--out", "other")
    assert "saves transmissions" in cli(*run, "--available", "--out", "other").out
    tables = [(parts / where / "tables" / "thrift.parquet").read_bytes() for where in ("lab", "other")]
    assert tables[0] == tables[1]
    assert "no folder nowhere" in cli("study", "import", "nowhere", "--out", "lab", code=2).err


def test_your_data_and_models_in_a_study_of_the_paper(cli, parts):
    words = ("--data", "my_data.py:load", "--models", "my_models.py:make", "--n0", 40, "--reps", 2, "--out", "lab")
    cli("study", "run", "modelnet-main", *words, "--backend", "serial", "--workers", 1)
    name = "my_data.load-my_models.make-main"
    table = pandas.read_parquet(parts / "lab" / "tables" / f"{name}.parquet")
    assert set(table.loc[table["quantity"] == "error by round", "agent"]) == set(range(5))
    assert {claim["study"] for claim in json.loads(cli("study", "check", name, "--out", "lab", "--json").out)} == {name}


def test_entry_points_are_listed_and_run(cli, parts, monkeypatch):
    entries = {"thrift": "my_study:Thrift", "broken": "my_study:Nothing"}
    install(parts, monkeypatch, studies=entries, data={"office": "my_data:load"})
    rows = json.loads(cli("study", "list", "--json").out)
    title = "Transmissions at two thresholds"
    assert rows[-1] == {"study": "thrift", "figures": "", "title": title, "group": "yours"}
    assert rows[-2]["study"] == "broken"
    assert "cannot be loaded" in rows[-2]["title"]
    cli("study", "run", "thrift", "--reps", 2, "--out", "lab", "--backend", "serial")
    words = ("--data", "office", "--n0", 40, "--reps", 2, "--out", "lab", "--backend", "process", "--workers", 1)
    cli("study", "run", "cifar-main", *words)
    assert {path.stem for path in (parts / "lab" / "tables").glob("*.parquet")} == {"thrift", "office-main"}


def test_help_says_how_to_bring_your_own(cli):
    said = " ".join(cli("study", "run", "--help").out.split())
    for words in ("DIR|FILE.py:NAME", "collegium.data", "collegium.models", "collegium.studies"):
        assert words in said


MISTAKES = {
    "own study": (["run", "missing.py:Mine"], "there is no file "),
    "own data": (["run", "topology", "--data", "missing.py:load"], "there is no file "),
    "own data, no name": (["run", "topology", "--data", "my_data.py"], "write FILE.py:NAME"),
    "own models": (["run", "topology", "--models", "forest"], "there is no 'forest' among the models"),
    "no such place": (
        ["run", "cifar-cmi", "--data", "my_data.py:load"],
        "cifar-cmi is about data and models of its own",
    ),
    "study": (["run", "magic"], "there is no 'magic' among the studies: choose one of bounds, cifar-setup, "),
    "backend": (["run", "topology", "--backend", "cloud"], "there is no backend 'cloud'"),
    "address": (["run", "topology", "--address", "x:1"], "--address is of a Ray cluster"),
    "sizes": (["run", "topology", "--n0", "few"], "write whole numbers"),
    "no data": (["run", "modelnet-main", "--data", "/nowhere", "--backend", "serial", "--quick"], "/nowhere"),
    "nothing to resume": (["resume"], "nothing to resume"),
    "nothing to check": (["check"], "there are no results"),
    "nothing to draw": (["figures", "topology"], "there are no results"),
    "nothing to report": (["report"], "there are no results"),
    "nothing to draw again": (["redraw", "."], "it has no CSV and PNG of one study"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_get_a_sentence(cli, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, sentence = MISTAKES[name]
    assert sentence in " ".join(cli("study", *words, code=2).err.split())


def test_results_do_not_go_into_a_file(cli, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "is a file" in cli("study", "check", "--out", tmp_path / "file", code=2).err
    assert (tmp_path / "file").read_text() == "mine"


BROKEN = """
from collegium.lab.job import Job
from collegium.lab.study import Study


class Fine(Study):
    name, title = "fine", "nothing wrong"

    def jobs(self, options):
        return [Job("digits", 60, 0, "L", options.seed)]

    def evaluate(self, job, record, options):
        yield self.row(job, "error", 0.5)

    def draw(self, table):
        return {}


class Fails(Fine):
    name = "fails"

    def evaluate(self, job, record, options):
        return 1 / 0


class Three(Fine):
    name = "three"

    def evaluate(self, job, record, options):
        yield 3


class Jobless(Fine):
    name = "jobless"

    def jobs(self, options):
        return [3]


class Undrawn(Fine):
    name = "undrawn"

    def draw(self, table):
        return 3
"""


@pytest.mark.parametrize(
    ("study", "sentence"),
    [
        ("Fails", "the study fails failed, line 23: ZeroDivisionError: division by zero"),
        ("Three", "a study's rows are made by self.row(…), got 3"),
        ("Jobless", "jobs of jobless must return a list of Job, which holds 3"),
        ("Undrawn", "draw of undrawn must return figures by name, got int"),
    ],
)
def test_mistakes_of_a_users_study_get_a_sentence(cli, tmp_path, study, sentence):
    (tmp_path / "mine.py").write_text(BROKEN)
    words = (
        "study",
        "run",
        f"{tmp_path / 'mine.py'}:{study}",
        "--reps",
        1,
        "--out",
        tmp_path / "lab",
        "--backend",
        "serial",
    )
    assert sentence in " ".join(cli(*words, code=2).err.split())
