"""From records to tables and verdicts, on records that nobody had to train."""

import sys

import numpy as np
import pandas
import pytest

from collegium import collaborate, policy, topology, tuning
from collegium._util.randomness import child
from collegium.cli.study import _sizes
from collegium.errors import CollegiumError, DataError, InputFileError
from collegium.lab import laboratory, report, study_networks, summary
from collegium.lab import table as tables
from collegium.lab.backends import Serial
from collegium.lab.job import Job
from collegium.lab.laboratory import Laboratory
from collegium.lab.records import MethodResult, Record
from collegium.lab.studies import STUDIES, find
from collegium.lab.studies.graphs import MAIN, SPARSE
from collegium.lab.studies.stopping import THRESHOLDS, chosen
from collegium.lab.study import Options
from collegium.lab.table import StudyRow, to_table
from collegium.protocol import DeGroot, Quantised
from helpers import score_record
from own_parts import STUDY, write_parts

OPTIONS = Options(reps=2, n0=(390,), quick=True)
JOB = Job("modelnet", 390, 0, "M")


def record(seed, methods=True):
    scores = score_record(K=12, n=40, seed=seed)
    names = ("AdaBoost", "VFL-JT", "Central oracle") if methods else ()
    return Record(scores, {name: MethodResult(scores.test[:, 0], 1, 1) for name in names})


def evaluated(name, made, options):
    study = STUDIES[name]
    return to_table(study.evaluate(JOB, made, options), study.factors)


def methods_of(table):
    return set(table.loc[table["quantity"] == "error", "method"])


@pytest.fixture
def lab(tmp_path):
    made = Laboratory(tmp_path / "lab")
    for r, job in enumerate(STUDIES["modelnet-main"].jobs(OPTIONS)):
        made.store.put(job.key, record(r).to_bytes())
    return made


def test_only_what_is_there_is_evaluated(lab, monkeypatch):
    """Repetitions that are missing are left out, nothing is trained, and what was asked for before stays the plan."""
    monkeypatch.setattr(laboratory.monte_carlo, "train", None)
    wanted = Options(reps=5, n0=(200, 390), quick=True, available=True)
    with pytest.raises(InputFileError, match=r"no records of cifar-main in .*leave out --available"):
        lab.run(["cifar-main"], wanted, Serial(1))
    names = ["cifar-main", "modelnet-main", "robustness"]
    assert [study.name for study in lab.run(names, wanted, Serial(1))] == names[1:]
    table = lab.table(STUDIES["modelnet-main"])
    assert set(zip(table["n0"], table["repetition"], strict=True)) == {(390, 0), (390, 1)}
    assert not (lab.folder / "plan.json").exists()
    for job in STUDIES["cifar-main"].jobs(Options(reps=1, n0=(500,))):
        lab.store.put(job.key, Record(score_record(K=9, n=40), {}).to_bytes())
    found = lab.run(["cifar-main", "communication-cost"], Options(available=True), Serial(1))
    assert [study.name for study in found] == ["cifar-main"]  # the other needs what VFL-JT sent


def test_boosting_is_one_method_in_all_repetitions():
    """Where it is fitted anew in some repetitions, it is left out of the others, not replaced by something else."""
    rows = {
        (name, methods): methods_of(evaluated(name, record(0, methods), Options()))
        for name in ("modelnet-main", "modelnet-temperature")
        for methods in (True, False)
    }
    assert {"AdaBoost", "VFL-JT", "Central oracle"} <= rows["modelnet-main", True]
    assert {"AdaBoost", "Central oracle"} <= rows["modelnet-temperature", True]
    assert "VFL-JT" not in rows["modelnet-temperature", True]
    assert not any("AdaBoost" in rows[name, False] for name in ("modelnet-main", "modelnet-temperature"))


def test_the_methods_that_train_on_views_can_be_fewer():
    main, graphs = STUDIES["modelnet-main"], STUDIES["graphs"]
    options = Options(reps=4, n0=(390,), trained=1)
    assert [job.methods for job in main.jobs(options)] == [True, False, False, False]
    assert not any(job.methods for job in graphs.jobs(Options()))  # they read scores alone
    assert {job.key for job in graphs.jobs(options)} == {job.key for job in main.jobs(options)}


def test_two_hundred_graphs_in_one_record():
    made = record(0)
    table = evaluated("graphs", made, Options())
    s, errors = made.scores, table[table["quantity"] == "error"]
    bounded = s.statistics("test", bounded=True)

    def one(**levels):
        return errors[np.all([errors[name] == level for name, level in levels.items()], axis=0)]["value"].item()

    random = {"weights": "uniform", "graph": 3}
    sparse, main = (policy.uniform(topology.erdos_renyi(12, links=links, seed=3)) for links in (24, 32))
    for t in (1, 20):
        run = collaborate(bounded, sparse, t)
        found = one(topology=SPARSE, method="Ours", round=t, **random)
        assert found == pytest.approx(run.errors(s.y_test)[-1].mean())
    coarse = collaborate(bounded, sparse, 20, Quantised(DeGroot(), 6, 2.0), rng=child(child(0, 0), 0))
    found = one(topology=SPARSE, method="Ours, 6 bits", round=20, **random)
    assert found == pytest.approx(coarse.errors(s.y_test)[-1].mean())
    for name, x in (("Ours", s.statistics("test")), ("Ours (no centering)", s.test)):
        found = one(topology=MAIN, method=name, round=20, **random)
        assert found == pytest.approx(collaborate(x, main, 20).errors(s.y_test)[-1].mean())
    claims = {claim.claim: claim for claim in STUDIES["graphs"].claims(table)}
    assert len(claims) == 19
    assert all("graphs (" in claim.evidence for claim in claims.values())


def test_shares_of_graphs_are_of_the_worst_size():
    """A comparison at every N_0 is judged, graph by graph, where it comes out worst; networks at the largest alone."""
    study, parts = STUDIES["cifar-graphs"], []
    for n0, tilt in ((500, 0.0), (1000, 2.0)):
        s = score_record(K=9, n=60, seed=n0, tilt=tilt)
        methods = {"VFL-JT": MethodResult(s.test[:, 0], 1, 1)}
        parts.append(to_table(study.evaluate(Job("cifar10", n0, 0, "A"), Record(s, methods), Options()), study.factors))
    table = pandas.concat(parts, ignore_index=True)
    assert "Ours, 4 bits" not in set(table["method"])
    said = dict(study._of_main(table))
    errors = table[(table["quantity"] == "error") & (table["weights"] == "uniform") & (table["round"] == 20)]
    ours, raw = (
        errors[errors["method"] == name].pivot_table(index="n0", columns="graph", values="value").to_numpy()
        for name in ("Ours", "Ours (no centering)")
    )
    alone = table[table["quantity"] == "error alone"]["value"].to_numpy()
    expected = (alone[:, None] - ours).min(axis=0)
    np.testing.assert_allclose(said["ours is below non-cooperative at every N_0"], expected)
    similar = said["centred and raw scores give similar errors at every N_0 (within one point)"]
    np.testing.assert_allclose(similar, 0.01 - np.abs(ours - raw).max(axis=0))
    joint = table[table["method"] == "VFL-JT"]["value"].to_numpy()
    np.testing.assert_allclose(
        said["VFL-JT is below ours at every N_0 it is tried at"], (ours - joint[:, None]).min(axis=0)
    )
    assert "ours is below non-cooperative at the largest N_0" not in said  # the paper says it of all
    assert not any("round" in claim for claim in said)  # these are judged at 10 000, which is missing
    assert len(study.draw(table)["cifar-graphs"].axes) == 2
    job = Job("cifar10", 10_000, 0, "A")
    whole = dict(study._of_main(to_table(study.evaluate(job, Record(s, {}), Options()), study.factors)))
    some = [policy.uniform(topology.erdos_renyi(9, links=24, seed=i)) for i in range(3)]
    five, last = (
        np.array([collaborate(s.statistics("test"), over, t).errors(s.y_test)[-1].mean() for over in some])
        for t in (5, 20)
    )
    gain = alone[-1] - last
    few = whole["most of the gain (80 %) is there after five rounds (our question)"]
    np.testing.assert_allclose(few[:3], np.minimum(gain, 0.2 * gain - (five - last)))


def test_the_network_of_a_setup_is_that_of_its_table():
    """Kept tables of another network are drawn as they are."""
    study = STUDIES["cifar-setup"]
    other = policy.metropolis(topology.ring(9))
    places = [
        (k, row, column, channel) for k in range(9) for row in (0, 1) for column in (0, 1) for channel in range(3)
    ]
    pixels = [
        study.row(None, "pixel", 1.0, agent=k, item=0, row=row, column=column, channel=channel)
        for k, row, column, channel in places
    ]
    links = zip(other.graph.indices, other.graph.hearers, other.weights, strict=True)
    weights = [study.row(None, "weight", w, agent=int(k), sender=int(l)) for l, k, w in links]
    drawn = study.draw(to_table(pixels + weights, study.factors))["cifar-setup-network"]
    assert any("18 directed links" in axes.get_title() for axes in drawn.axes)


def test_corrupted_agents_tune_themselves():
    made = record(0)
    table = evaluated("robustness", made, Options())
    tuned = table[table["method"] == "Tuned"]
    assert set(tuned["corruption"]) == {"stuck", "bias", "sign flip"}
    s, over = made.scores, study_networks.of(12)
    reported = tuning.tune(-s.statistics("val"), s.y_val, over)(-s.statistics("test"))
    after, clean = (
        collaborate(x, over, 20, record="final").errors(s.y_test)[-1].mean() for x in (reported, s.statistics("test"))
    )
    all_flipped = tuned[(tuned["corruption"] == "sign flip") & (tuned["corrupted"] == 12)]
    assert all_flipped["value"].item() == pytest.approx(after - clean)
    few = table[(table["corruption"] == "sign flip") & (table["corrupted"] == 6) & (table["strength"] == 1)]
    by = few.set_index("method")["value"]
    assert by["Tuned"] < by["Ours"]


def test_gains_of_families_with_and_without_tuning():
    """The gain of tuned agents is counted from the same agents alone, untuned."""
    study, s = STUDIES["cifar-hetero-gain"], score_record(K=9, n=200, tilt=1.0)
    jobs = [Job("cifar10", 200, r, "ABCBCACAB") for r in range(3)]
    tables_of = [to_table(study.evaluate(job, Record(s, {}), Options()), study.factors) for job in jobs]
    found = tables_of[0].pivot_table(index="agent", columns="method", values="value")
    alone = collaborate(s.statistics("test"), study_networks.of(9), 1).errors(s.y_test)[0]
    over = study_networks.of(9)
    entering = tuning.tune(s.val, s.y_val, over)(s.test)
    after = collaborate(entering, over, 15, record="final").errors(s.y_test)[-1]
    assert found["Tuned"].to_numpy() == pytest.approx(100 * (alone - after) / alone)
    assert found["Tuned"].mean() > found["Ours"].mean()
    assert any("tuned themselves" in one.claim for one in study.claims(pandas.concat(tables_of)))


def test_what_is_kept_follows_the_code_of_the_studies(lab, monkeypatch):
    (study,) = lab.run(["robustness"], OPTIONS, Serial(1))
    before = lab.table(study)
    monkeypatch.setattr("collegium.lab.studies.robustness.NOISE", (8.0,))
    monkeypatch.setattr(laboratory, "_code", lambda kind: "changed")
    lab.run(["robustness"], OPTIONS, Serial(1))
    assert 8.0 in set(lab.table(study)["strength"]) - set(before["strength"])


def test_what_is_kept_follows_the_methods_of_a_record(lab):
    for r, job in enumerate(STUDIES["modelnet-main"].jobs(OPTIONS)):
        lab.store.put(job.key, record(r, methods=False).to_bytes())
    study = STUDIES["modelnet-main"]
    assert "VFL-JT" not in methods_of(lab._evaluate(study, OPTIONS))
    for r, job in enumerate(study.jobs(OPTIONS)):
        lab.store.put(job.key, record(r).to_bytes())
    assert "VFL-JT" in methods_of(lab._evaluate(study, OPTIONS))


def test_the_seed_is_for_the_quantiser_too():
    one, two, again = (evaluated("topology", record(0), Options(seed=seed)) for seed in (0, 1, 0))
    coarse = one["precision"] == 4
    assert not np.array_equal(one.loc[coarse, "value"], two.loc[coarse, "value"])
    pandas.testing.assert_frame_equal(one, again)


def test_more_rules_do_not_make_a_family_better():
    """Rules that differ by luck alone: the one chosen in the other repetitions is no better than any."""
    rng = np.random.default_rng(0)
    rows = [
        StudyRow("stopping", 390, r, quantity, "Ours", -1, 20, value, {"family": "many", "threshold": float(x)})
        for r in range(40)
        for x in range(100)
        for quantity, value in (("error", 0.3 + 0.02 * rng.normal()), ("transmissions", 10.0 + x))
    ]
    factors = STUDIES["stopping"].factors
    error, cost = chosen(to_table(rows, factors), limit=60)
    assert abs(error.mean() - 0.3) < 3.3 * 0.02 / np.sqrt(40)
    assert cost.max() <= 60
    assert len(chosen(to_table(rows[:200], factors))[0]) == 0  # a single repetition leaves nothing to choose by


def test_a_loss_is_no_early_gain(lab):
    study = STUDIES["modelnet-main"]
    (_,) = lab.run([study.name], OPTIONS, Serial(1))
    table = lab.table(study)
    rounds = table["quantity"] == "error by round"
    table.loc[rounds, "value"] = 0.3 + 0.01 * table.loc[rounds, "round"].clip(upper=6) + 1e-4 * table["repetition"]
    verdicts = {claim.claim: claim.verdict for claim in study.claims(table)}
    assert verdicts["most of the gain (80 %) is there after five rounds"] == "does not hold"


def test_every_study_of_records_is_drawn_and_judged(lab):
    names = ["modelnet-main", "modelnet-temperature", "modelnet-correlation", "topology", "stopping", "robustness"]
    lab.run(names, OPTIONS, Serial(1))
    assert {claim.study for claim in lab.claims(names)} == set(names)
    drawn = {path.stem for path in lab.draw(["topology"])}
    assert {"topology", "topology-by-rule", "topology-ring", "topology-grid", "topology-random"} <= drawn


FACTORS = {
    "modelnet-main": {"label": "Int64"},
    "modelnet-correlation": {"amplitude": "float64", "strength": "float64"},
    "topology": {"topology": "string", "weights": "string", "precision": "Int64"},
    "stopping": {"family": "string", "threshold": "float64", "patience": "Int64", "confidence": "float64"},
    "robustness": {"corruption": "string", "strength": "float64", "corrupted": "Int64"},
}


def test_every_factor_is_a_column_that_tells_the_numbers_apart(lab):
    """What is in no column cannot be found again: a number has one place, given by its columns."""
    for study in lab.run(list(FACTORS), OPTIONS, Serial(1)):
        table = lab.table(study)
        assert {name: str(table[name].dtype) for name in study.factors} == FACTORS[study.name]
        places = [name for name in table.columns if name != "value"]
        assert not table.duplicated(places).any()
    thresholds = lab.table(STUDIES["stopping"]).groupby("family")["threshold"].unique()
    np.testing.assert_array_equal(thresholds["Δ-trigger"], THRESHOLDS)
    assert np.isnan(thresholds["label stability"]).all()


def test_a_table_of_another_version_gets_a_sentence(lab):
    (study,) = lab.run(["topology"], OPTIONS, Serial(1))
    table = lab.table(study)
    path = lab.folder / "tables" / "topology.parquet"
    tables.write(table[(table["precision"] != 6).fillna(True)], path)
    with pytest.raises(InputFileError, match=r"the table of topology has nothing of .*precision 6.*another version"):
        lab.claims(["topology"])
    tables.write(table.drop(columns="weights"), path)
    with pytest.raises(InputFileError, match=r"the table of topology has nothing of 'weights'.*another version"):
        lab.claims(["topology"])


# Studies, data and models of users


@pytest.fixture
def parts(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "parts").mkdir()
    return write_parts(tmp_path / "parts")


def test_a_study_of_a_users_own(parts, tmp_path, monkeypatch):
    lab = Laboratory(tmp_path / "lab")
    monkeypatch.chdir(parts)
    (study,) = lab.run(["my_study.py:Thrift"], Options(), Serial(1))
    assert study.name == "thrift"
    table = lab.table(study)
    assert list(table["threshold"]) == [0.0, 2.0] * 3
    assert table["value"].iloc[0] == 5 * 13  # 8·5 // 3 links
    assert [path.name for path in lab.draw(["thrift"])] == ["thrift.png", "thrift.pdf"]
    monkeypatch.chdir(tmp_path)
    for names in ([], ["thrift"], ["parts/my_study.py:Thrift"]):  # the folder knows where it came from
        assert [claim[:3] for claim in lab.claims(names)] == [("thrift", "a threshold saves transmissions", "holds")]
    page = summary.write(lab, [], tmp_path / "kept")[-1].read_text()
    assert "\ncollegium study run my_study.py:Thrift --out results\n" in page
    assert "\nRepetitions: N_0 = 40: 3.\n" in page
    report.write(lab, [], tmp_path / "report.html")
    assert "THRESHOLDS" in (tmp_path / "report.html").read_text()  # its constants


def test_what_is_kept_follows_the_code_of_a_users_study(parts, tmp_path):
    lab, file = Laboratory(tmp_path / "lab"), parts / "my_study.py"
    lab.run([f"{file}:Thrift"], Options(), Serial(1))
    records = {path: path.stat().st_mtime_ns for path in lab.store.folder.glob("*.npz")}
    file.write_text(file.read_text().replace("(0.0, 2.0)", "(0.0, 2.0, 4.0)"))
    (study,) = lab.resume(Serial(1))
    assert set(lab.table(study)["threshold"]) == {0.0, 2.0, 4.0}
    assert {path: path.stat().st_mtime_ns for path in lab.store.folder.glob("*.npz")} == records


def test_a_users_study_that_is_gone_is_named(parts, tmp_path):
    lab = Laboratory(tmp_path / "lab")
    lab.run([f"{parts}/my_study.py:Thrift"], Options(), Serial(1))
    (parts / "my_study.py").unlink()
    with pytest.raises(
        InputFileError, match=r"^the study thrift cannot be loaded again: there is no file .*my_study.py$"
    ):
        lab.claims([])
    (lab.folder / "tables" / "thrift.json").write_text("{}")
    with pytest.raises(InputFileError, match=r"thrift.json is damaged: run the study thrift again$"):
        lab.claims(["thrift"])


WRONG_STUDIES = {
    "Thrift = 7": "my.py:Thrift must be a collegium.lab.study.Study; got int",
    "class Thrift: pass": "must be a collegium.lab.study.Study; got the class Thrift",
    "from collegium.lab.study import Study as Thrift": "my.py:Thrift lacks draw, evaluate, jobs: a study defines",
    "Thrift.name = 'topology'": "my.py:Thrift cannot be called 'topology'",
    "Thrift.name = '../x'": "cannot be called '../x': take letters, digits",
    "del Thrift.title": 'my.py:Thrift has no title: write title = "…" in the class',
    "Thrift.factors = {'agent': int}": "a factor cannot be called 'agent'",
    "Thrift.__init__ = lambda self: 1 / 0": f"Thrift failed, line {len(STUDY.splitlines()) + 2}: ZeroDivisionError",
}


@pytest.mark.parametrize("text", WRONG_STUDIES)
def test_what_is_no_study_gets_a_sentence(parts, text):
    (parts / "my.py").write_text(f"{STUDY}\n{text}\n")
    with pytest.raises(CollegiumError) as refusal:
        find([f"{parts}/my.py:Thrift"])
    assert WRONG_STUDIES[text] in str(refusal.value)


MOVABLE = ["main", "temperature", "correlation", "topology", "graphs", "stopping", "robustness"]


def test_the_papers_studies_of_a_users_data(parts, tmp_path):
    """Every study that means something there, once, over networks of five agents."""
    lab = Laboratory(tmp_path / "lab")
    done = lab.run([], Options(reps=2, quick=True, data=f"{parts}/my_data.py:load"), Serial(1))
    assert [study.name for study in done] == [f"my_data.load-{kind}" for kind in MOVABLE]
    assert set(lab.table(done[0])["n0"]) == {20}  # a quarter of 80; an eighth would be too few
    drawn = {path.stem for path in lab.draw([])}
    assert {"my_data.load-topology-ring", "my_data.load-stopping"} <= drawn
    assert {claim.study for claim in lab.claims([])} == {study.name for study in done}
    assert lab.table(done[-1])["corrupted"].max() == 5
    page = summary.write(lab, [], tmp_path / "kept")[-1].read_text()
    names = "modelnet-correlation graphs cifar-main robustness stopping cifar-temperature topology"
    assert f"\ncollegium study run {names} --data my_data.py:load --n0 20 --reps 2 --out results\n" in page


def test_a_study_derived_from_one_of_the_papers(parts):
    (parts / "mine.py").write_text(
        "from collegium.lab.studies.main import MainStudy\n\n"
        "class Mine(MainStudy):\n    name, title = 'mine', 'Mine'\n"
        f"    dataset, models = '{parts}/my_data.py:load', '{parts}/my_models.py:make'\n\n"
        "class Sized(Mine):\n    usual_sizes, reps, reps_at_largest = (30, 50), 2, 3\n"
    )
    (mine,), (sized,) = (find([f"{parts}/mine.py:{name}"]) for name in ("Mine", "Sized"))
    assert {job.n0 for job in mine.jobs(Options())} == {20, 40, 80}  # an eighth would be too few
    assert [(job.n0, job.repetition) for job in sized.jobs(Options())] == [(30, 0), (30, 1), (50, 0), (50, 1), (50, 2)]


def test_a_users_models_on_the_papers_data_and_on_their_own(parts):
    models = f"{parts}/my_models.py:make"
    (main,) = find(["cifar-main"], None, models)
    assert main.name == "cifar10-my_models.make-main"
    assert {(job.dataset, job.models) for job in main.jobs(Options(n0=(500,)))} == {("cifar10", models)}
    (both,) = find(["stopping"], f"{parts}/my_data.py:load", models)
    assert both.name == "my_data.load-my_models.make-stopping"
    assert {(job.n0, job.models) for job in both.jobs(Options())} == {(80, models)}
    with pytest.raises(DataError, match="cifar-cmi is about data and models of its own: leave out --data and --models"):
        find(["cifar-cmi"], None, models)
    assert STUDIES["cifar-main"].name == "cifar-main"  # as it was


def test_a_folder_that_cannot_be_made_gets_a_sentence():
    with pytest.raises(InputFileError, match=r"cannot write /proc/nowhere/plan\.json"):
        Laboratory("/proc/nowhere").run(["topology"], OPTIONS, Serial(1))


@pytest.mark.parametrize("written", [",", "", "few", "1.5", "100,,200"])
def test_sizes_are_whole_numbers(written):
    with pytest.raises(DataError, match="write whole numbers"):
        _sizes(written)
