"""The study of sensors, on records that nobody had to train, and on the real data."""

import numpy as np
import pytest

from collegium._util.measures import mean_interval
from collegium.errors import DataError
from collegium.lab import summary
from collegium.lab.backends import Serial
from collegium.lab.job import DRAWN, Job, load, run
from collegium.lab.laboratory import Laboratory
from collegium.lab.records import MethodResult, Record
from collegium.lab.studies import BEYOND, PAPER, STUDIES, find
from collegium.lab.studies.sensors import BEST, PARTS
from collegium.lab.study import PAIRED, Options
from collegium.lab.table import to_table, values
from helpers import score_record
from tiny_data import real_data

STUDY = STUDIES["sensors-main"]
AGENTS = {"wall_robot": 24, "wall_robot_blocks": 24, "multiple_features": 6, "occupancy": 5}


def made_up(job):
    scores = score_record(K=AGENTS[job.dataset], n=60, seed=job.repetition)
    return Record(scores, {name: MethodResult(scores.test[:, 1], 1, 1) for name in ("AdaBoost", "Central oracle")})


def evaluated(job, record):
    return to_table(STUDY.evaluate(job, record, Options()), STUDY.factors)


def test_it_is_run_only_when_named():
    assert list(STUDIES) == [*PAPER, *BEYOND]
    assert STUDY not in find([])
    assert find(["sensors-main", "topology"]) == [STUDIES["topology"], STUDY]
    with pytest.raises(DataError, match="sensors-main is about data and models of its own"):
        find(["sensors-main"], data="office")


def test_twenty_repetitions_of_every_set():
    jobs = STUDY.jobs(Options())
    assert len(jobs) == len({job.key for job in jobs}) == 80
    assert all(job.methods for job in jobs)
    assert {(job.dataset, job.n0) for job in jobs} == {
        ("wall_robot", 532),
        ("wall_robot_blocks", 532),
        ("occupancy", 3458),
        ("multiple_features", 1400),
    }
    assert {job.n0 for job in STUDY.jobs(Options(n0=(40, 80), reps=1))} == {40, 80}
    assert len(STUDY.jobs(Options(quick=True))) == 8


def test_errors_and_their_differences():
    job = STUDY.jobs(Options())[-21]
    record = made_up(job)
    s, table = record.scores, evaluated(job, record)

    def error(method, quantity="error"):
        return values(table, quantity=quantity, method=method, data="multiple_features").item()

    centred = s.test - s.train.mean(axis=0)
    alone = (np.sign(centred) != s.y_test[:, None]).mean(axis=0)
    chosen = (np.sign(s.val - s.train.mean(axis=0)) != s.y_val[:, None]).mean(axis=0).argmin()
    expected = {
        "Non-cooperative": alone.mean(),
        BEST: alone[chosen],
        "Ours": (np.sign(centred.mean(axis=1)) != s.y_test).mean(),  # the ring's limit is the average
        "Central oracle": (np.sign(s.test[:, 1]) != s.y_test).mean(),
    }
    for method, value in expected.items():
        assert error(method) == pytest.approx(value, abs=1e-12)
        assert error(method, PAIRED) == pytest.approx(value - expected["Ours"], abs=1e-12)
    first = table[(table["quantity"] == "error by round") & (table["round"] == 0)]["value"].item()
    assert first == pytest.approx(expected["Non-cooperative"])
    worst = table[(table["quantity"] == "worst agent by round") & (table["round"] == 0)]["value"].item()
    assert worst == alone.max()
    assert len(set(table.loc[table["quantity"] == "error", "method"])) == 14


def test_from_records_to_figures_claims_and_a_page(tmp_path):
    lab, options = Laboratory(tmp_path / "lab"), Options(reps=3)
    for job in STUDY.jobs(options):
        lab.store.put(job.key, made_up(job).to_bytes())
    assert lab.run(["sensors-main"], options, Serial(1)) == [STUDY]
    assert lab.finished([]) == [STUDY]
    assert {path.name for path in lab.draw([])} == {
        f"sensors-main{more}.{ending}" for more in ("", "-rounds") for ending in ("png", "pdf")
    }
    claims = lab.claims([])
    assert len(claims) == 7
    assert all(PARTS[name].title in claims[0].evidence for name in PARTS)
    text = summary.write(lab, ["sensors-main"], tmp_path / "sensors")[-1].read_text()
    assert "\ncollegium study run sensors-main --reps 3 --out results\n" in text  # --n0 would give each set every size
    assert "\ncollegium study summary sensors sensors-main --out results\n" in text
    head = ", 3 repetitions | ".join(f"{name}, N_0 = {part.n0}" for name, part in PARTS.items())
    assert text.count(f"| method | {head}, 3 repetitions |") == 2
    errors, paired = text.split("Less the error of ours in the same repetition")
    table = lab.table(STUDY)
    for part, quantity in ((errors, "error"), (paired, PAIRED)):
        cells = []
        for name in PARTS:
            found = mean_interval(100 * values(table, quantity=quantity, method=BEST, data=name).to_numpy())
            cells.append(f"{found.mean:.1f} ± {found.half:.1f}")
        assert f"| {BEST} | {' | '.join(cells)} |" in part


def test_what_the_claims_say():
    rows = []
    for r in range(4):
        for i, name in enumerate(PARTS):
            job = Job(name, 40, r, "T")
            errors = {"Ours": 0.1 + i / 10 + r / 1000, "Non-cooperative": 0.5, BEST: 0.15 + r / 1000}
            errors |= {
                "Learned fusion": 0.01 * r,
                "Ours (no centering)": 0.001 * r + 0.3 * (name != "multiple_features"),
            }
            rows += [STUDY.row(job, "error", value, method=method, data=name) for method, value in errors.items()]
    verdicts = {claim.claim: claim.verdict for claim in STUDY.claims(to_table(rows, STUDY.factors))}
    assert list(verdicts.values()) == [
        "holds",
        "does not hold",
        "holds",
        "does not hold",
        "holds",
        "does not hold",
        "holds",
    ]


@pytest.mark.data
def test_another_split_in_every_repetition_where_there_is_no_official_one():
    for name in AGENTS:
        real_data({"wall_robot_blocks": "wall-robot"}.get(name, name.replace("_", "-")))
        first, again, other, seeded = (load(name, None, *at)[1] for at in ((0, 0), (0, 0), (0, 1), (1, 0)))
        assert np.array_equal(first.views[0], again.views[0])
        for changed in (other, seeded):
            assert np.array_equal(first.views[0], changed.views[0]) == (name not in DRAWN)


@pytest.mark.data
@pytest.mark.parametrize("job", STUDY.jobs(Options(quick=True, reps=1)), ids=lambda job: job.dataset)
def test_real_data(job):
    real_data({"wall_robot_blocks": "wall-robot"}.get(job.dataset, job.dataset.replace("_", "-")))
    record = run(job)
    assert record.scores.size == AGENTS[job.dataset]
    assert set(record.methods) == {"AdaBoost", "Central oracle"}
    table = evaluated(job, Record.from_bytes(record.to_bytes(), "made here"))
    errors = table[table["quantity"] == "error"].set_index("method")["value"]
    assert errors["Central oracle"] < errors["Non-cooperative"]
    assert errors["Ours"] < errors["Non-cooperative"]
