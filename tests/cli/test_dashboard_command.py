"""`collegium dashboard`: mistakes are answered by a sentence before anything is served."""

import socket

import numpy as np
import pytest

from helpers import score_record


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("a,b,c\n1,-1,0.5\n-1,2,0.25\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--live", "nowhere"], "nowhere: no such folder"),
        (["nowhere.npz"], "there is no file nowhere.npz"),
        (["--scores", "nowhere.csv"], "nowhere.csv: no such file"),
        (["record.npz", "--live", "net"], "choose one source"),
        (["--live", "net", "--network", "ring:9"], "has its own topology"),
        (["--data", "mnist"], "there is no data set 'mnist'"),
        (["--data", "cifar10", "--root", "nowhere"], "nowhere"),
        (["--labels", "y.csv"], "go with --scores"),
        (["--host", "no such host"], "not an address"),
        (["--network", "ring:5"], "the network has 5 agents, but there are 9"),
        (["--rounds", "1000"], "1 to 200 rounds"),
    ],
)
def test_mistakes(cli, arguments, sentence):
    answer = cli("dashboard", "--no-open", "--port", "0", *arguments, code=2)
    assert sentence in answer.err
    assert answer.err.startswith("collegium: ")
    assert answer.err.count("\n") == 1


def test_scores_that_do_not_fit(cli, scores):
    few = cli("dashboard", "--no-open", "--port", 0, "--scores", scores, "--network", "ring:4", code=2)
    assert "the network has 4 agents, but there are 3" in few.err
    views = cli("dashboard", "--no-open", "--port", 0, "--scores", scores, "--data", "digits", code=2)
    assert "9 views an item, but there are 3 agents" in views.err


def test_classes_the_wrong_way_round_are_hinted_at(cli, tmp_path):
    rows = ["a,b,c,label", *["1,2,0.5,no", "-1,-2,-0.25,yes"] * 20]
    (tmp_path / "s.csv").write_text("\n".join(rows))
    source = ("dashboard", "--no-open", "--port", 0, "--network", "ring:4", "--scores", tmp_path / "s.csv")
    assert "right way round" in cli(*source, code=2).err
    assert "right way round" not in cli(*source, "--classes", "no,yes", code=2).err


def test_views_of_other_items_are_refused(cli, tmp_path):
    """Scores of nine agents whose labels are not those of the digits; with those of the digits they get their names."""
    from collegium.dashboard import server
    from collegium.data import digits

    y = digits(classes=(3, 8))[1].y
    np.save(tmp_path / "scores.npy", np.outer(y, np.arange(1.0, 10.0)))
    np.save(tmp_path / "wrong.npy", -y)
    np.save(tmp_path / "right.npy", y)
    source = ("dashboard", "--no-open", "--port", 0, "--scores", tmp_path / "scores.npy", "--data", "digits")
    other = cli(*source, "--labels", tmp_path / "wrong.npy", code=2)
    assert "not those of the test items of digits" in other.err
    served = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server, "serve", lambda feed, *_: served.append(feed))
        cli(*source, "--labels", tmp_path / "right.npy")
        cli(*source)  # the data set has labels of its own
    for feed in served:
        assert (feed.about.classes, feed.about.agents[4], feed.about.has_truth) == (("3", "8"), "row 1, column 1", True)


def test_a_folder_that_is_no_network(cli, tmp_path):
    assert "has no agent-*.toml" in cli("dashboard", "--port", 0, "--live", tmp_path, code=2).err


def test_a_taken_port(cli):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = cli("dashboard", "--no-open", "--port", port, code=2)
    assert f"cannot listen on 127.0.0.1, port {port}" in answer.err
    assert "--port 0 takes a free one" in answer.err


def test_a_record_is_served(cli, tmp_path, monkeypatch):
    """The feed that would be served holds the record's centred test statistics."""
    from collegium.dashboard import server

    record = score_record(n=30)
    record.save(tmp_path / "record.npz")
    served = []
    monkeypatch.setattr(server, "serve", lambda feed, *_: served.append(feed))
    cli("dashboard", "--no-open", "--port", 0, tmp_path / "record.npz", "--rule", "delta-trigger:0.2", "--bits", 8)
    world, i = served[0].world("29")
    np.testing.assert_array_equal(world.scores, record.statistics("test"))
    np.testing.assert_array_equal(world.y, record.y_test)
    assert i == 29
    assert served[0].about.rule.startswith("delta-trigger:0.2, 8 bits")
    assert len(served[0].about.network.links) == 10  # five is no grid: a ring
