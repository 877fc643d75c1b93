"""`collegium tune`."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from collegium.cli.app import app
from collegium.errors import CollegiumError

run = CliRunner().invoke


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(150) % 2, "cat", "dog")
    signs = np.where(y == "cat", 1, -1)
    x = np.array([1.0, 0.9, 0.0, -1.0]) * signs[:, None] + rng.normal(size=(150, 4))
    path = tmp_path / "scores.csv"
    lines = [",".join([*(f"{v:.6f}" for v in row), label]) for row, label in zip(x, y, strict=True)]
    path.write_text("\n".join(["a,b,c,d,label", *lines]))
    return path


def test_gains_of_a_table(table, tmp_path):
    out, plot = tmp_path / "gains.csv", tmp_path / "gains.png"
    given = ["tune", str(table), "exact", "--classes", "cat,dog", "--json", "--out", str(out), "--plot", str(plot)]
    result = run(app, given, catch_exceptions=False)
    facts = json.loads(result.stdout)
    assert facts["kept"] == "tuned"
    assert facts["gains"][3] < 0 < facts["gains"][0]
    assert facts["held_out_errors"]["tuned"] < facts["held_out_errors"]["equal"]
    assert facts["transmissions"] > 0
    assert out.read_text().splitlines()[0] == "agent,gain,shift"
    assert plot.stat().st_size > 1000


def test_what_it_prints(table):
    result = run(app, ["tune", str(table), "ring:4", "--classes", "cat,dog"], catch_exceptions=False)
    assert "tuned gains" in result.stdout
    assert "best agent, picked by other items (" in result.stdout
    assert "averages off by at most" in result.stdout


def test_scores_without_labels_are_refused(table):
    bare = table.with_name("bare.csv")
    bare.write_text("\n".join(line.rsplit(",", 1)[0] for line in table.read_text().splitlines()))
    result = run(app, ["tune", str(bare), "exact"])
    assert isinstance(result.exception, CollegiumError)
    assert "give --labels" in str(result.exception)


def test_too_few_items_are_refused_with_the_number(table):
    few = table.with_name("few.csv")
    few.write_text("\n".join(table.read_text().splitlines()[:9]))
    result = run(app, ["tune", str(few), "exact", "--classes", "cat,dog"])
    assert "at least 10 labelled items, some of which are held out; got 8" in str(result.exception)


def test_bits_quantise_the_rule_of_the_schedule(table):
    result = run(app, ["tune", str(table), "exact:4", "--classes", "cat,dog", "--bits", "24", "--json"])
    facts = json.loads(result.stdout)
    assert facts["largest_deviation"] < 1e-3  # DeGroot's two rounds over these links would be off by far more
    plain = json.loads(run(app, ["tune", str(table), "exact", "--classes", "cat,dog", "--json"]).stdout)
    apart = facts["gains"][0] / plain["gains"][0]  # made smaller alike, to leave room below the bound
    assert apart in (pytest.approx(1.0, rel=0.01), pytest.approx(0.5, rel=0.01))
    assert facts["gains"] == pytest.approx([apart * gain for gain in plain["gains"]], rel=0.01)


def test_weights_for_an_exact_schedule_are_refused(table):
    result = run(app, ["tune", str(table), "exact", "--policy", "metropolis", "--classes", "cat,dog"])
    assert "has its own weights" in str(result.exception)


def test_agents_who_choose_differently_are_named_as_the_reason(table):
    few = ["tune", str(table), "path:4", "--rounds", "1", "--passes", "1", "--classes", "cat,dog"]
    said = " ".join(run(app, few, catch_exceptions=False).stdout.split())
    assert "gains as they were" in said
    assert "agents did not all choose alike" in said
    assert not json.loads(run(app, [*few, "--json"]).stdout)["agreed"]


def test_lost_messages_and_few_bits_make_figures_approximate(table):
    given = ["tune", str(table), "ring:4", "--classes", "cat,dog"]
    lossy = run(app, [*given, "--links", "lossy:0.2,1", "--json"], catch_exceptions=False)
    facts = json.loads(lossy.stdout)
    assert facts["largest_deviation"] > 1e-3
    assert json.loads(run(app, [*given, "--json"]).stdout)["largest_deviation"] == 0  # a policy's limit, exactly
    coarse = run(app, [*given, "--bits", "6"], catch_exceptions=False).stdout
    assert "by other items (about " in coarse
    assert "about" not in run(app, given).stdout.replace("about to", "")


def test_classes_the_wrong_way_round_are_hinted_at(table):
    fit, turned = (run(app, ["tune", str(table), "exact", "--classes", both]) for both in ("cat,dog", "dog,cat"))
    assert "right way round" not in fit.stderr
    assert "right way round" not in turned.stderr  # one of four agents is of the other opinion, and one of none
    rows = [line.split(",") for line in table.read_text().splitlines()]
    two = table.with_name("two.csv")
    two.write_text("\n".join(",".join([*row[:2], row[4]]) for row in rows))
    assert "right way round" not in run(app, ["tune", str(two), "exact", "--classes", "cat,dog"]).stderr
    assert "right way round" in run(app, ["tune", str(two), "exact", "--classes", "dog,cat"]).stderr
