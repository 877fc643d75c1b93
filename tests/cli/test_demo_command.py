import json
import subprocess
import sys

import numpy as np

from collegium.cli import demo


def test_demo_prints_the_table_and_draws(cli, tmp_path):
    shown = cli("demo", "--reps", 3, "--plot", tmp_path / "demo.png").out
    for row in (
        "agent 0 alone",
        "agent 8 alone",
        "vote",
        "average",
        "after 1 round",
        "after 2 rounds",
        "after 5 rounds",
    ):
        assert row in shown
    assert str(20 * 24 * 64) in shown  # bits of 20 rounds
    rows = {line.split("│")[1].strip(): line.split("│")[2:] for line in shown.splitlines() if line.count("│") == 5}
    exact, average = rows["any two linked: exact average, 4 rounds"], rows["average of all nine, at a centre"]
    assert exact[0] == average[0]
    assert [int(rows[f"the same, messages of {bits} bits"][2]) for bits in (8, 4)] == [4 * 9 * 8, 4 * 9 * 4]
    assert "the same, tuned by 40 labelled items" in rows
    for command in demo.NEXT:
        assert command in shown
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_its_scores_are_read_by_the_other_commands(cli, tmp_path):
    scores, plot = tmp_path / "new" / "scores.csv", tmp_path / "other" / "demo.png"
    facts = json.loads(cli("demo", "--reps", 1, "--plot", plot, "--scores", scores, "--json").out)
    assert plot.exists()
    assert facts["scores"] == str(scores)
    alone = [row["error"] for row in facts["rows"] if "alone" in row["who"]]
    assert len(alone) == 9
    assert all(row["half"] is None for row in facts["rows"])
    run = json.loads(cli("simulate", scores, "grid:3x3", "--json").out)
    np.testing.assert_allclose(100 * np.array(run["errors"][0]), alone)
    assert run["classes"] == ["8", "3"]


def test_the_report_stands_alone_and_tells_the_same(cli, tmp_path):
    shown = cli("demo", "--reps", 2, "--plot", tmp_path / "demo.png").out
    page = (tmp_path / "demo.html").read_text()
    assert str(tmp_path / "demo.html") in shown
    assert "<!doctype html>" in page
    for outside in ("http://", "https://", "<script", "<link", "url("):
        assert outside not in page
    last = next(line for line in shown.splitlines() if "after 20 rounds" in line).split("│")
    assert f"<td class='number'>{last[2].strip()}</td>" in page  # the error of the table printed
    assert page.count("a handwritten") >= 6
    assert "were put right by the others" in page
    assert "round 20: 9 of 9 right" in page
    for command in demo.NEXT:
        assert f"<code>{command}</code>" in page


def test_followed_items_are_as_they_are_said_to_be():
    """Counted by hand: what is said of an item is what its statistics say."""
    from collegium import policy, topology
    from collegium.cli import demo_report

    network = policy.metropolis(topology.grid(3, 3))
    _, run, test = demo._repeat(network, np.random.default_rng(0))
    chosen = demo_report._followed(demo_report.Story([], run, test, None, 1, 0, 0.0))
    assert len({i for i, _ in chosen}) == len(chosen) >= 3
    for i, why in chosen:
        before, after = ((run.statistics[t, i] * test.y[i] <= 0).sum() for t in (0, -1))
        assert f"{before} of 9" in why
        assert (after == 0) != why.startswith("Messages do not always help")


def test_places_that_cannot_be_written_are_refused_before_the_work(cli, tmp_path):
    (tmp_path / "folder.png").mkdir()
    assert "it is a folder" in cli("demo", "--plot", tmp_path / "folder.png", code=2).err
    refused = cli("demo", "--plot", tmp_path / "demo.png", "--report", tmp_path / "demo.txt", code=2)
    assert "must end in .html" in refused.err
    assert not refused.out


def test_talking_helps():
    """After 20 rounds the mean agent beats the best agent alone: the point of it all."""
    from collegium import policy, topology

    network = policy.metropolis(topology.grid(3, 3))
    repetition, _, _ = demo._repeat(network, np.random.default_rng(0))
    assert repetition.rounds[20].mean() < repetition.rounds[0].min()


def test_demo_needs_no_torch(tmp_path):
    code = """
import sys
from collegium.cli.app import main
sys.argv[1:] = ["demo", "--reps", "1", "--plot", sys.argv[1]]
try:
    main()
finally:
    assert "torch" not in sys.modules, "torch was loaded"
"""
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "d.png")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_module_is_the_command(tmp_path):
    shown = subprocess.run([sys.executable, "-m", "collegium", "demo", "--help"], capture_output=True, text=True)
    assert shown.returncode == 0
    assert "--reps" in shown.stdout


def test_version_and_unknown_command(cli):
    assert cli("--version").out.startswith("collegium 0.")
    assert "No such command" in cli("demmo", code=2).err
