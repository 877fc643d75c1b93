"""The page that is kept: errors of every method at every N_0, and the commands that make it."""

from pathlib import Path

import numpy as np
import pytest

from collegium._util import machine
from collegium._util.measures import mean_interval
from collegium.errors import InputFileError
from collegium.lab import summary
from collegium.lab.backends import Serial
from collegium.lab.laboratory import Laboratory
from collegium.lab.records import MethodResult, Record
from collegium.lab.studies import STUDIES
from collegium.lab.study import Options
from collegium.lab.table import StudyRow, to_table
from helpers import score_record


def rows(study, repetitions, methods):
    """Errors for the repetitions (by N_0) of the methods, which take part in so many of them."""
    rng = np.random.default_rng(0)
    return [
        StudyRow(study, n0, r, "error", method, -1, -1, float(rng.random()))
        for n0, count in repetitions.items()
        for r in range(count)
        for method, most in methods.items()
        if r < most
    ]


def test_errors_of_every_method_at_every_size():
    table = to_table(
        [
            *rows("modelnet-main", {50: 1, 390: 4}, {"Ours": 9, "VFL-JT": 2}),
            StudyRow("modelnet-main", 390, 0, "error", "Stacking", -1, -1, 0.5),
            StudyRow(
                "modelnet-main", 390, 0, "error", "ring", -1, 20, 0.5
            ),  # after a certain round: not the error of a method
        ]
    )

    def cell(method, n0):
        part = table[(table["method"] == method) & (table["n0"] == n0)]
        return mean_interval(100 * part["value"].to_numpy())

    ours, joint = cell("Ours", 390), cell("VFL-JT", 390)
    assert summary._errors(table) == [
        "| method | N_0 = 50, 1 repetition | N_0 = 390, 4 repetitions |",
        "|---|---|---|",
        f"| Ours | {cell('Ours', 50).mean:.1f} | {ours.mean:.1f} ± {ours.half:.1f} |",
        f"| VFL-JT | {cell('VFL-JT', 50).mean:.1f} | {joint.mean:.1f} ± {joint.half:.1f} (2) |",
        "| Stacking | – | 50.0 (1) |",
    ]
    assert summary._errors(table[table["round"] == 20]) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(), ""),
        (Options(n0=(390,)), " --n0 390"),
        (Options(n0=(50, 100)), " --n0 50,100"),
        (Options(n0=(50, 390), reps=3), " --n0 50,390 --reps 3"),
        (Options(n0=(390,), reps=3, trained=0), " --n0 390 --reps 3 --trained 0"),
    ],
)
def test_commands_ask_for_what_is_there(options, words):
    study = STUDIES["modelnet-main"]
    jobs = study.jobs(options)
    table = to_table(
        StudyRow(study.name, job.n0, job.repetition, "error", method, -1, -1, 0.1)
        for job in jobs
        for method in (("Ours", "AdaBoost") if job.methods else ("Ours",))
    )
    assert summary._asked(study, table) == words


def test_the_page_begins_with_how_it_was_made(tmp_path):
    lab, options, names = Laboratory(tmp_path / "lab"), Options(reps=2, n0=(390,)), ["modelnet-main", "robustness"]
    for job in STUDIES["modelnet-main"].jobs(options):
        scores = score_record(K=12, n=40, seed=job.repetition)
        trained = ("AdaBoost", "VFL-JT", "Central oracle")
        methods = {name: MethodResult(scores.test[:, 0], 1, 1) for name in trained}
        lab.store.put(job.key, Record(scores, methods).to_bytes())
    lab.run(names, options, Serial(1))
    text = summary.write(lab, [], tmp_path / "kept")[-1].read_text()
    begin, errors, claims = (text.index(f"\n## {word}") for word in ("Errors", "Claims", "ModelNet views: margins"))
    assert f"cores: {machine.cores()}, " in text[:begin]
    assert "; Python 3." in text[:begin]
    assert "\ncollegium study run modelnet-main robustness --n0 390 --reps 2 --out results\n" in text[:begin]
    assert (
        "### modelnet-main\n\n| method | N_0 = 390, 2 repetitions |\n|---|---|\n| Non-cooperative | " in text[:errors]
    )
    assert "### robustness" not in text  # it has no errors of methods
    assert "| modelnet-main | ours is below non-cooperative at every N_0 (our question) |" in text[errors:claims]


def test_kept_records_need_no_training(tmp_path, monkeypatch):
    lab, options = Laboratory(tmp_path / "lab"), Options(reps=2, n0=(390,), available=True)
    for job in STUDIES["robustness"].jobs(options):
        lab.store.put(job.key, Record(score_record(K=12, n=40, seed=job.repetition), {}).to_bytes())
    lab.run(["robustness"], options, Serial(1))
    monkeypatch.chdir(tmp_path)
    page = Path("kept") / "some"
    begin = "\n```console\ncollegium study "
    assert f"{begin}run robustness --n0 390 --reps 2" in summary.write(lab, [], page)[-1].read_text()
    for place in (Path("kept/records"), Path("kept/some/records")):
        place.mkdir(parents=True)
        text = summary.write(lab, [], page)[-1].read_text()
        assert f"{begin}import {place} --out results\ncollegium study run robustness --available --out" in text


def test_pictures_are_drawn_again_from_what_is_kept(tmp_path, monkeypatch):
    lab, options, kept = Laboratory(tmp_path / "lab"), Options(reps=2, n0=(390,), available=True), tmp_path / "kept"
    for job in STUDIES["robustness"].jobs(options):
        lab.store.put(job.key, Record(score_record(K=12, n=40, seed=job.repetition), {}).to_bytes())
    names = ["robustness", "modelnet-temperature"]
    lab.run(names, options, Serial(1))
    summary.write(lab, names, kept)
    of_every_repetition = kept / "modelnet-temperature-diagnostics.png"  # means do not tell it: it stays as it is
    as_it_was = of_every_repetition.read_bytes()
    before = {path: path.read_bytes() for path in kept.glob("*.png") if path != of_every_repetition}
    for path in before:
        path.write_bytes(b"an old picture")
    assert set(summary.redraw(kept, [])) == set(before)
    assert of_every_repetition.read_bytes() == as_it_was
    again = kept / "robustness.png"
    assert again.read_bytes() == before[again]  # curves of means: the same to the last dot
    again.write_bytes(b"an old picture")
    assert summary.redraw(kept, ["robustness"]) == [again]
    with pytest.raises(InputFileError, match="nothing to draw again"):
        summary.redraw(tmp_path / "lab", [])
