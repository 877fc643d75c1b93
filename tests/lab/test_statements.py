"""The paper's statements: each is judged by some claim, and each claim of the paper's is some statement's."""

import pytest

from collegium.lab import report
from collegium.lab.backends import Serial
from collegium.lab.claims import Claim
from collegium.lab.laboratory import Laboratory
from collegium.lab.records import MethodResult, Record
from collegium.lab.statements import STATEMENTS, judged, overall, table
from collegium.lab.studies import PAPER
from collegium.lab.study import Options
from helpers import score_record

SIZES = {9: (500, 1000, 2000), 12: (50, 100, 390)}
TRAINED = ("AdaBoost", "VFL-JT", "Central oracle")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Of all studies that read records, from made-up ones, and of the bounds; those of the data need the data."""
    lab = Laboratory(tmp_path_factory.mktemp("lab"))
    found = {9: [], 12: []}
    for name, study in PAPER.items():
        if jobs := study.jobs(Options()):
            found[9 if jobs[0].dataset == "cifar10" else 12].append(name)
    for K, names in found.items():
        options = Options(reps=2, n0=SIZES[K], available=True)
        for job in {job.key: job for name in names for job in PAPER[name].jobs(options)}.values():
            scores = score_record(K=K, n=20, seed=job.repetition)
            methods = {one: MethodResult(scores.test[:, 0], 1, 1) for one in TRAINED}
            lab.store.put(job.key, Record(scores, methods, job.key).to_bytes())
        lab.run(names, options, Serial(1))
    lab.run(["bounds"], Options(), Serial(1))
    return lab


@pytest.fixture(scope="module")
def claims(lab):
    return lab.claims([])


def test_every_statement_is_judged(claims):
    there = {claim.study for claim in claims}
    assert len(there) == 14
    lacking = [one for one in STATEMENTS if one.study in there and len(judged(one, claims)) < len(one.claims)]
    assert lacking == []


def test_every_claim_of_the_papers_is_a_statement(claims):
    used = {(claim.study, claim.claim) for one in STATEMENTS for claim in judged(one, claims)}
    left = [
        claim
        for claim in claims
        if (claim.study, claim.claim) not in used and not claim.claim.endswith("our question)")
    ]
    assert left == []


def test_verdicts_of_every_kind_are_reported(claims):
    assert "depends on the graph" in {claim.verdict for claim in claims}
    assert " depend on the graph." in report._claims(claims)


def test_the_tables_of_the_paper(lab):
    first, last = (PAPER[name].tabulate(lab.table(PAPER[name])) for name in ("cifar-main", "communication-cost"))
    names = [row["Method"] for row in first]
    assert names[0] == "Non-cooperative"
    assert {"Avg-stat", "AdaBoost", "Ours", "VFL-JT", "Central oracle"} <= set(names)
    assert [row["Method"] for row in last] == ["VFL-JT", "Ours"]
    assert [row["Training"] for row in last] == ["K E (2 N_tr + N_val)", "0"]
    assert [row["per sample, t = 20"] for row in last] == ["9", str(20 * 24)]


def test_statements_are_of_our_studies():
    assert {one.study for one in STATEMENTS} <= set(PAPER)


def test_the_table():
    claims = [
        Claim("robustness", "it grows from every severity to the next (m = 6)", "holds", "x"),
        Claim("topology", "the error", "holds", "x"),
    ]
    assert table(claims)[2:] == ["| Fig. 12 | and with the severity | holds | [robustness](robustness.png) |"]
    assert table([]) == []
    mixed = [Claim("", "", verdict, "") for verdict in ("holds", "undecided", "holds")]
    assert overall(mixed) == "holds (2 of 3), undecided (1 of 3)"
    assert overall(mixed[:1]) == "holds"
