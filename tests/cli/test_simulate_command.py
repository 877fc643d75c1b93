import csv
import gzip
import json
import re

import numpy as np
import pandas
import pytest
from pyarrow import parquet, table

from collegium import agents, collaborate, links, policy, protocol, topology
from collegium.cli.rules import EXAMPLES
from collegium.cli.simulate import ATTACKS

X = np.tanh(np.random.default_rng(0).normal(size=(40, 6)) + 0.3)
Y = np.where(np.arange(40) % 2, 1, -1)
RING = policy.uniform(topology.ring(6))
SOCIAL = ["--rule", "social-learning"]


@pytest.fixture
def files(tmp_path):
    np.savetxt(tmp_path / "scores.csv", X, delimiter=",", fmt="%.17g")
    np.save(tmp_path / "scores.npy", X)
    parquet.write_table(table({f"agent {k}": X[:, k] for k in range(6)}), tmp_path / "scores.parquet")
    np.savetxt(tmp_path / "y.csv", Y, fmt="%d")
    names = ["item", *(f"camera {k}" for k in range(6)), "label"]
    with (tmp_path / "named.csv").open("w") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([f"item {i}", *X[i].tolist(), "dog" if Y[i] > 0 else "cat"] for i in range(40))
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "npy", "parquet"])
def test_json_equals_the_library(cli, files, kind):
    facts = json.loads(cli("simulate", files / f"scores.{kind}", "ring:6", "--labels", files / "y.csv", "--json").out)
    run = collaborate(X, RING, rounds=20)
    assert facts["decisions"] == run.decisions().tolist()
    assert facts["errors"] == run.errors(Y).tolist()
    assert facts["transmissions"] == run.transmissions.tolist()
    assert facts["bits"] == run.bits.tolist()
    assert (facts["agents"], facts["items"], facts["rounds"]) == (6, 40, 20)


def test_named_columns(cli, files):
    facts = json.loads(cli("simulate", files / "named.csv", "ring:6", "--rounds", 3, "--json").out)
    assert facts["errors"] == collaborate(X, RING, rounds=3).errors(Y).tolist()  # dog > cat, so dog is +1
    turned = json.loads(
        cli("simulate", files / "named.csv", "ring:6", "--rounds", 3, "--classes", "cat,dog", "--json").out
    )
    assert np.allclose(np.array(turned["errors"]) + facts["errors"], 1.0)  # no statistic here is exactly 0
    assert facts["agent_names"] == [f"camera {k}" for k in range(6)]
    assert set(np.ravel(facts["decisions"])) == {"cat", "dog"}
    assert (np.array(facts["decisions"]) == "dog").tolist() == (np.array(facts["statistics"]) >= 0).tolist()


@pytest.mark.parametrize("command", ["simulate", "certify"])
def test_classes_the_wrong_way_round_are_hinted_at(cli, tmp_path, command):
    rows = np.column_stack([X + Y[:, None], Y > 0])
    np.savetxt(tmp_path / "s.csv", rows, delimiter=",", header="a,b,c,d,e,f,label", comments="")
    words = "right way round"
    assert words not in cli(command, tmp_path / "s.csv", "ring:6", "--rounds", 2).err
    assert words in cli(command, tmp_path / "s.csv", "ring:6", "--rounds", 2, "--classes", "0,1").err


def test_a_table_of_probabilities_is_hinted_at(cli, tmp_path):
    np.save(tmp_path / "p.npy", 1 / (1 + np.exp(-X)))
    assert "log(p / (1 - p))" in cli("simulate", tmp_path / "p.npy", "ring:6").err
    np.save(tmp_path / "x.npy", X)
    assert "lie between" not in cli("simulate", tmp_path / "x.npy", "ring:6").err
    one, rare = np.array(X), 0.4 / (1 + np.exp(-X))
    one[:, 3] = 1 / (1 + np.exp(-X[:, 3]))
    np.savetxt(tmp_path / "one.csv", one, delimiter=",", header="a,b,c,d,e,f", comments="")
    said = cli("simulate", tmp_path / "one.csv", "ring:6").err
    assert "all scores of d lie between 0 and 1, so such an agent" in said.replace("\n", " ")
    np.save(tmp_path / "rare.npy", np.tile(rare, (1 + 50 // len(X), 1)))  # none above a half
    assert "log(p / (1 - p))" in cli("simulate", tmp_path / "rare.npy", "ring:6").err
    np.save(tmp_path / "percent.npy", 100 / (1 + np.exp(-X)))
    assert "log(p / (100 - p))" in cli("simulate", tmp_path / "percent.npy", "ring:6").err


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        (["--rule", "social-learning"], protocol.SocialLearning()),
        (["--rule", "delta-trigger:0.1"], protocol.DeltaTrigger(0.1)),
        (["--rule", "label-stability:2,0.5"], protocol.LabelStability(2, 0.5)),
        (["--bits", 4, "--bound", 2.0], protocol.Quantised(protocol.DeGroot(), 4, 2.0)),
        (["--bits", 6], protocol.Quantised(protocol.DeGroot(), 6, float(np.abs(X).max()))),
    ],
)
def test_every_rule(cli, files, written, rule):
    facts = json.loads(cli("simulate", files / "scores.npy", "ring:6", "--seed", 9, "--json", *written).out)
    run = collaborate(X, RING, 20, rule, rng=9)
    assert facts["statistics"] == run.statistics[-1].tolist()
    assert facts["bits"] == run.bits.tolist()


@pytest.mark.parametrize(
    ("written", "options"),
    [
        (["--links", "lossy:0.3,seed=1"], {"links": links.Lossy(0.3, 1)}),
        (["--links", "delayed:2", "--mailbox", "hold-last:hold"],
         {"links": links.Delayed(2), "mailbox": protocol.HoldLast("hold")}),
        (["--links", "cut:[0,1],2,5", "--mailbox", "renormalise"],
         {"links": links.Cut([0, 1], 2, 5), "mailbox": protocol.Renormalise()}),
    ],
)  # fmt: skip
def test_links_and_mailboxes(cli, files, written, options):
    facts = json.loads(cli("simulate", files / "scores.npy", "ring:6", *written, "--json").out)
    assert facts["statistics"] == collaborate(X, RING, **options).statistics[-1].tolist()


def test_tables_and_files(cli, files):
    shown = cli("simulate", files / "named.csv", "ring:6", "--out", files / "d.csv", "--plot", files / "e.png").out
    assert "mean error" in shown
    assert "agree on" in shown
    assert (files / "e.png").read_bytes().startswith(b"\x89PNG")
    with (files / "d.csv").open() as file:
        rows = list(csv.DictReader(file))
    named = ["dog" if decided > 0 else "cat" for decided in collaborate(X, RING).decisions()[:, 3]]
    assert [row["camera 3"] for row in rows] == named
    assert "(camera " in shown
    assert "positive scores are for dog" in shown
    assert rows[7]["item"] == "item 7"
    assert {row["transmissions"] for row in rows} == {"240"}


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_decisions_in_other_formats(cli, files, kind):
    cli("simulate", files / "scores.csv", "ring:6", "--out", files / f"d.{kind}")
    path = files / f"d.{kind}"
    agent = np.load(path)[:, 1] if kind == "npy" else parquet.read_table(path)["agent 0"].to_numpy()
    assert agent.tolist() == collaborate(X, RING).decisions()[:, 0].tolist()


@pytest.mark.parametrize("separator", [",", ";", "\t", ", "])
def test_csv_with_any_separator(cli, tmp_path, separator):
    (tmp_path / "s.csv").write_text(
        "\ufeff" + separator.join(["1", "-0.5", "2"]) + "\r\n" + separator.join(["-1", "-2", "0.5"])
    )
    facts = json.loads(cli("simulate", tmp_path / "s.csv", "ring:3", "--rounds", 0, "--json").out)
    assert facts["statistics"] == [[1, -0.5, 2], [-1, -2, 0.5]]


def test_a_list_of_words_is_labels_from_its_first_line(cli, tmp_path):
    (tmp_path / "s.csv").write_text("1,1,1\n-1,-1,-1\n")
    (tmp_path / "y.csv").write_text("dog\ncat\n")
    facts = json.loads(cli("simulate", tmp_path / "s.csv", "ring:3", "--labels", tmp_path / "y.csv", "--json").out)
    assert facts["errors"][-1] == [0, 0, 0]
    assert facts["classes"] == ["dog", "cat"]
    (tmp_path / "y.csv").write_text("dog\ncat\ncat\n")
    assert "expected 2" in cli("simulate", tmp_path / "s.csv", "ring:3", "--labels", tmp_path / "y.csv", code=2).err


def test_a_label_column_is_never_a_score(cli, tmp_path):
    (tmp_path / "s.csv").write_text("a,b,c,Label\n-1,-1,-1,1\n1,1,1,0\n")
    (tmp_path / "y.csv").write_text("1\n0\n")
    facts = json.loads(cli("simulate", tmp_path / "s.csv", "ring:3", "--labels", tmp_path / "y.csv", "--json").out)
    assert facts["agents"] == 3


def test_labels_are_joined_by_item(cli, tmp_path):
    (tmp_path / "s.csv").write_text("item,a,b,c\nx,1,1,1\ny,-1,-1,-1\n")
    (tmp_path / "y.csv").write_text("item,label\ny,0\nx,1\n")
    arguments = ("simulate", tmp_path / "s.csv", "ring:3", "--labels", tmp_path / "y.csv")
    facts = json.loads(cli(*arguments, "--json").out)
    assert facts["errors"][-1] == [0, 0, 0]
    assert facts["item_names"] == ["x", "y"]
    (tmp_path / "y.csv").write_text("item,label\ny,0\nz,1\n")
    assert "no label for item 'x'" in cli(*arguments, code=2).err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_index_pandas_writes_names_the_items(cli, tmp_path, kind):
    frame = pandas.DataFrame(X[:2, :3], columns=list("abc"), index=["x", "y"])
    frame.to_csv(tmp_path / "s.csv") if kind == "csv" else frame.to_parquet(tmp_path / "s.parquet")
    facts = json.loads(cli("simulate", tmp_path / f"s.{kind}", "ring:3", "--rounds", 0, "--json").out)
    assert facts["item_names"] == ["x", "y"]
    np.testing.assert_array_equal(facts["statistics"], X[:2, :3])


def test_item_numbers_draw_as_in_the_library(cli, tmp_path):
    (tmp_path / "s.csv").write_text("id,a,b,c\n7,0.1,0.2,0.3\n4,0.3,0.2,0.1\n")
    facts = json.loads(
        cli("simulate", tmp_path / "s.csv", "ring:3", "--bits", 2, "--bound", 1, "--rounds", 3, "--json").out
    )
    rule = protocol.Quantised(protocol.DeGroot(), 2, 1.0)
    run = collaborate([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], policy.uniform(topology.ring(3)), 3, rule, items=[7, 4])
    assert facts["statistics"] == run.statistics[-1].tolist()


def test_few_items_are_printed(cli, tmp_path):
    (tmp_path / "s.csv").write_text("1,-0.5,2\n-1,-2,0.5\n")
    shown = cli("simulate", tmp_path / "s.csv", "ring:3", "--rounds", 1).out
    assert "+1" in shown
    assert "-1" in shown


def test_no_items(cli, tmp_path):
    np.save(tmp_path / "none.npy", np.empty((0, 3)))
    assert "nothing sent" in cli("simulate", tmp_path / "none.npy", "ring:3").out
    assert json.loads(cli("simulate", tmp_path / "none.npy", "ring:3", "--json").out)["decisions"] == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere.csv", "ring:6"], "nowhere.csv: no such file"),
        (["{}/scores.csv", "ring:5"], "6 columns, but the network has 5 agents"),
        (["{}/scores.csv", "ring:6", "--rounds", "-1"], "rounds must be a whole number"),
        (["{}/scores.csv", "ring:6", "--bits", "0"], "bits must be a whole number between 1 and 32"),
        (["{}/scores.csv", "ring:6", "--bits", "4", "--bound", "0.1"], "lie outside"),
        (["{}/scores.csv", "ring:6", "--bound", "1"], "give --bits too"),
        (["{}/scores.csv", "ring:6", "--bits", "2", "--rule", "social-learning"], "too few"),
        (["{}/scores.csv", "ring:6", "--rule", "degrot"], "there is no rule 'degrot'"),
        (["{}/scores.csv", "ring:6", "--rule", "delta-trigger"], "delta-trigger takes threshold; given: none"),
        (["{}/scores.csv", "ring:6", "--rule", "delta-trigger:-1"], "at least 0"),
        (["{}/scores.csv", "ring:6", "--links", "lossy:2"], "the loss of a link must be a finite number"),
        (["{}/scores.csv", "ring:6", "--links", "degroot"], "'degroot' is no links"),
        (["{}/scores.csv", "ring:6", "--mailbox", "x"], "there is no mailbox"),
        (["{}/scores.csv", "ring:6", "--labels", "missing"], "no such file, and no column"),
        (["{}/scores.csv", "ring:6", "--labels", "{}/scores.csv"], "must have one column"),
        (["{}/named.csv", "ring:6", "--labels", "camera 3"], "scores have 5 columns, but the network has 6"),
        (["{}/named.csv", "ring:6", "--classes", "cat"], "two different classes"),
        (["{}/named.csv", "ring:6", "--classes", "cat,cow"], "neither"),
        (["{}/scores.csv", "ring:6", "--plot", "x.png"], "needs labels"),
        (["{}/scores.csv", "ring:6", "--out", "x.docx"], "must end in .csv"),
        (["{}/scores.csv", "ring:6", "--seed", "-4"], "a seed lies between"),
    ],
)
def test_mistakes_get_a_sentence(cli, files, arguments, complaint):
    failed = cli("simulate", *(argument.format(files) for argument in arguments), code=2)
    assert complaint in failed.err
    assert "Traceback" not in failed.err


@pytest.mark.parametrize("first", ["1,x,", "1,x,3", "a,2,3"])
def test_a_slip_in_the_first_row_is_not_taken_for_a_header(cli, tmp_path, first):
    (tmp_path / "s.csv").write_text(f"{first}\n3,4,5\n")
    assert "row 0 of the data, is not a number" in cli("simulate", tmp_path / "s.csv", "ring:3", code=2).err


def test_numbered_columns_are_a_header_beside_a_known_name(cli, tmp_path):
    (tmp_path / "s.csv").write_text("item,0,1,2\nx,3,4,5\n")
    assert json.loads(cli("simulate", tmp_path / "s.csv", "ring:3", "--rounds", 0, "--json").out)["statistics"] == [
        [3, 4, 5]
    ]


def test_names_without_scores_are_refused(cli, tmp_path):
    (tmp_path / "s.csv").write_text("'1','2','3'\n")
    assert "but no scores" in cli("simulate", tmp_path / "s.csv", "ring:3", code=2).err


def statistics(cli, path, *options, network="ring:3"):
    """What enters the network, and what was said about the file."""
    done = cli("simulate", path, network, "--rounds", 0, "--json", *options)
    return json.loads(done.out)["statistics"], done.err


@pytest.mark.parametrize("gap", ["", "NA", "nan", "NaN", "null", "n/a", "?"])
def test_a_missing_score_is_a_missing_view(cli, tmp_path, gap):
    (tmp_path / "s.csv").write_text(f"left,mid,right,label\n1,{gap},3,a\n-1,2,{gap},b\n{gap},{gap},{gap},b\n")
    found, said = statistics(cli, tmp_path / "s.csv")
    assert found == [[1, 0, 3], [-1, 2, 0], [0, 0, 0]]
    assert "5 of 9 scores are missing (left: 1, mid: 2, right: 2): there an agent starts from 0" in said
    assert "1 items have no score at all" in said


def test_an_agent_that_never_saw_anything(cli, tmp_path):
    (tmp_path / "s.csv").write_text("a,b,c\n1,,3\n-1,,2\n")
    assert statistics(cli, tmp_path / "s.csv")[0] == [[1, 0, 3], [-1, 0, 2]]


PLAIN = [[0.5, -1.25, 3.0], [-2.0, 0.1, 1e-3]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.tsv", "a\tb\tc\n0.5\t-1.25\t3\n-2\t0.1\t1e-3\n"),
        ("commas.csv", "a;b;c\n0,5;-1,25;3\n-2;0,1;1,0e-3\n"),
        ("bare.csv", "0,5;-1,25;3\n-2,0;0,1;0,001\n"),
        ("commas.tsv", "0,5\t-1,25\t3,0\n-2,0\t0,1\t0,001\n"),
        ("r.csv", "a,b,c\nfirst,0.5,-1.25,3\nsecond,-2,0.1,0.001\n"),
        ("patients.csv", "patient,a,b,c\nAnna,0.5,-1.25,3\nBert,-2,0.1,0.001\n"),
        ("names.csv", "Anna,0.5,-1.25,3\nBert,-2,0.1,0.001\n"),
        ("wide.csv", "\ufeffa\tb\tc\n0,5\t-1,25\t3\n-2\t0,1\t0,001\n"),
        ("long.csv", "item,agent,score\n1,a,0.5\n1,b,-1.25\n1,c,3\n2,c,0.001\n2,a,-2\n2,b,0.1\n"),
    ],
)
def test_files_people_have(cli, tmp_path, name, text):
    # Excel's "Unicode text" is UTF-16
    (tmp_path / name).write_bytes(text.encode("utf-16-le" if text.startswith("\ufeff") else "utf-8"))
    assert statistics(cli, tmp_path / name)[0] == PLAIN
    with gzip.open(tmp_path / f"{name}.gz", "wt") as file:
        file.write(text)
    assert statistics(cli, tmp_path / f"{name}.gz")[0] == PLAIN


def test_row_names_are_the_items(cli, tmp_path):
    (tmp_path / "s.csv").write_text("patient,a,b,c\nAnna,1,2,3\nBert,-1,-2,-3\n")
    cli("simulate", tmp_path / "s.csv", "ring:3", "--out", tmp_path / "out.csv")
    assert [line.split(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]] == ["Anna", "Bert"]


def test_a_long_table_lacks_what_an_agent_did_not_see(cli, tmp_path):
    rows = ["1,a,x,2", "1,a,y,0", "1,b,x,1", "1,b,y,3", "2,a,x,4", "2,a,y,1"]
    (tmp_path / "s.csv").write_text("\n".join(["item,agent,class,score", *rows]) + "\n")
    found, said = statistics(cli, tmp_path / "s.csv", network="complete:2")
    assert found == [[-2, 2], [-3, 0]]  # y is +1
    assert "1 of 4 scores are missing (b: 1)" in said
    (tmp_path / "s.csv").write_text("\n".join(["item,agent,class,score", *rows, "2,b,x,1"]) + "\n")
    assert "item 2, agent b has no score of class y" in cli("simulate", tmp_path / "s.csv", "complete:2", code=2).err
    (tmp_path / "s.csv").write_text("item,agent,score\n1,a,2\n1,a,3\n1,b,1\n")
    assert "item 1, agent a has 2 scores; it needs one" in cli("simulate", tmp_path / "s.csv", "complete:2", code=2).err


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("s.csv.gz", b"a,b,c\n1,2,3\n", "is not a whole file packed by gzip"),
        ("cut.csv.gz", gzip.compress(b"a,b,c\n1,2,3\n", mtime=0)[:-9], "is not a whole file packed by gzip"),
        ("s.npy.gz", b"", "cannot read .gz; use .csv, .tsv"),
        ("s.xlsx", b"PK", "cannot read .xlsx; use .csv, .tsv"),
        ("thousands.csv", b'"1,234",2,3\n', "'1,234' in column 0, row 0 of the data, is not a number"),
        (
            "latin.csv",
            "a,b,Größe\n1,2,3\n".encode("latin-1"),
            "latin.csv: line 1 is not in UTF-8. Save it as CSV UTF-8",
        ),
        ("binary.csv", b"\x89PNG\r\n\x1a\n\0\0", "binary.csv is not a text file"),
        ("twice.csv", b"a,b,a\n1,2,3\n", "twice.csv has scores of two agents named 'a'"),
        ("huge.csv", b"item,a,b,c\nAnna,1,2,inf\n", "item Anna, agent c has inf; scores are finite"),
        ("gap.csv", b"a,b,c,label\n1,2,3,x\n1,2,4,y\n1,2,5,\n", "1 of 3 items have no label (first: item 2)"),
        ("gaps.csv", b"item,a,b,c,label\nu,1,2,3,0\nv,1,2,4,1\nw,1,2,5,NA\n", "no label (first: item w)"),
        ("one.csv", b"a,b,c,label\n1,2,3,x\n1,2,4,x\n", "all items are x: say which two classes there are, --classes"),
    ],
)
def test_other_files_get_a_sentence(cli, tmp_path, name, content, complaint):
    (tmp_path / name).write_bytes(content)
    assert complaint in cli("simulate", tmp_path / name, "ring:3", code=2).err.replace("\n", " ")


def test_liars(cli, files):
    from collegium import corruption, trust
    from collegium.trust.attacks import Stubborn

    at = ("simulate", files / "scores.csv", "complete:6", "--labels", files / "y.csv", "--rounds", 3)
    rule = protocol.Robust(protocol.combine.TrimmedMean(1))
    lie = ("--attack", "stubborn:2.0", "--rule", "robust:(trimmed-mean:1)")
    full = policy.uniform(topology.complete(6))
    facts = json.loads(cli(*at, *lie, "--liars", "2,", "--liars-know", "--json").out)
    run = collaborate(X, full, 3, rule, liars=trust.Liars([2], Stubborn(2.0), Y))
    assert facts["errors"] == run.errors(Y).tolist()
    assert facts["liars"] == [2]
    facts = json.loads(cli(*at, *lie, "--liars", 2, "--json").out)
    assert facts["liars"] == corruption.draw_agents(6, 2, 0).tolist()
    by_name = ("simulate", files / "named.csv", *at[2:3], *at[5:], *lie)
    assert json.loads(cli(*by_name, "--liars", "camera 2, camera 4", "--json").out)["liars"] == [2, 4]
    assert json.loads(cli(*by_name, "--liars", "camera 2", "--json").out)["liars"] == [2]
    assert "their numbers or names" in cli(*by_name, "--liars", "camera 9", code=2).err
    star = (*at[:2], "star:6", "--attack", "mimic", "--liars", "cut:1", "--json")
    assert json.loads(cli(*star).out)["liars"] == [0]
    shown = cli(*at, *lie, "--liars", "2,").out
    assert "liars: 2; what follows is of the 5 others" in shown
    for arguments, complaint in (
        (("--liars", "1"), "give both"),
        (("--attack", "mimic", "--liars", "x"), "a number of agents"),
        (("--attack", "mimicry", "--liars", "1"), "mimicry"),
        (("--attack", "split:far", "--liars", "1"), "must be a number, as in split:2.0"),
    ):
        assert complaint in cli(*at, *arguments, code=2).err.replace("\n", " ")


@pytest.mark.parametrize(("written", "size"), [("split", 2.0), ("split:3", 3.0), ("dissension:0.5", 0.5)])
def test_attacks_that_need_the_network_take_it(cli, files, written, size):
    from collegium import trust

    grid = policy.uniform(topology.grid(2, 3))
    at = ("simulate", files / "scores.csv", "grid:2x3", "--labels", files / "y.csv", "--rounds", 3, "--json")
    facts = json.loads(cli(*at, "--attack", written, "--liars", "cut:2").out)
    liars = trust.placement.on_cut(grid.graph, 2)
    if written.startswith("split"):
        attack = trust.attacks.Split.of(grid.graph, liars, size)
    else:
        attack = trust.attacks.Dissension.along(grid, size)
    assert facts["liars"] == liars.tolist()
    assert facts["errors"] == collaborate(X, grid, 3, liars=trust.Liars(liars, attack)).errors(Y).tolist()
    said = cli(*at[:2], "exact:6", "--attack", written, "--liars", "2", code=2).err
    assert "a schedule changes from round to round" in said.replace("\n", " ")


@pytest.mark.parametrize("names", [("dog", "cat"), ()])
def test_a_score_record_is_simulated_on_its_test_items(cli, tmp_path, names):
    record = agents.Scores(X[:10], X[10:20], X[20:], Y[:10], Y[10:20], Y[20:], class_names=names)
    record.save(tmp_path / "record.npz")
    facts = json.loads(cli("simulate", tmp_path / "record.npz", "ring:6", "--json").out)
    run = collaborate(record.statistics("test"), RING, rounds=20)
    assert facts["errors"] == run.errors(Y[20:]).tolist()
    named = run.decisions() if not names else np.where(run.decisions() == 1, "dog", "cat")
    assert facts["decisions"] == named.tolist()
    refused = cli("simulate", tmp_path / "record.npz", "ring:6", "--classes", "dog,cat", code=2)
    assert "has its own labels: leave out --labels and --classes" in refused.err


@pytest.mark.parametrize(
    ("network", "options", "bits"),
    [("ring:6", ["--rule", "chebyshev"], 16), ("eigenvalue-steps:ring:6", [], 16), ("ring:6", SOCIAL, 7)],
)
def test_bits_alone_make_a_bound_for_rules_whose_messages_grow(cli, files, network, options, bits):
    """Every score just fits, and messages are nearly those of full precision."""
    at = ("simulate", files / "scores.csv", network, *options, "--rounds", 3, "--json")
    rounded, full = (json.loads(cli(*at, *more).out) for more in (["--bits", bits], []))
    assert rounded["bits"] == [bits / 64 * one for one in full["bits"]]
    if bits == 16:
        assert np.abs(np.array(rounded["statistics"]) - full["statistics"]).max() < 1e-2


def test_too_few_bits_say_how_many_would_do(cli, files):
    at = ("simulate", files / "scores.csv", "eigenvalue-steps:ring:6", "--rounds", 3, "--bits")
    said = cli(*at, 2, code=2).err.replace("\n", " ")
    enough = int(re.search(r"take ([0-9]+) bits", said)[1])
    assert 2 < enough < 12
    cli(*at, enough)
    never = cli("simulate", files / "scores.csv", "ring:6", "--rule", "push-sum", "--bits", 20, code=2).err
    assert "messages of push-sum can become too large" in never.replace("\n", " ")


@pytest.mark.parametrize("written", [*EXAMPLES, *(f"attack {one}" for one in ATTACKS)])
def test_what_the_help_offers_runs(cli, files, written):
    kind, _, attack = written.partition(" ")
    lying = ["--attack", attack, "--liars", 1] if kind == "attack" else ["--rule", written]
    assert "% of the items" in cli("simulate", files / "scores.csv", "complete:6", "--rounds", 3, *lying).out
