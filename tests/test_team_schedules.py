"""Teams, comparisons, network files and commands over schedules that change from round to round."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from collegium import Team, data, fusion, policy, protocol, schedule, topology
from collegium.cli.app import app
from collegium.errors import PolicyError
from collegium.planner import NetworkFile, read_network, write_network
from helpers import score_record, scores

RUN = CliRunner()


def team(network, **settings):
    agents = [(f"agent {k}", LogisticRegression()) for k in range(9)]
    return Team(agents, network, center="mean", calibrate=False, workers=1, **settings)


@pytest.fixture(scope="module")
def digits():
    return data.digits(classes=(3, 8))


def test_a_team_decides_by_the_plain_average(digits, tmp_path):
    train, test = digits
    exact = team(schedule.exact(9)).fit(train.views, train.y)
    run = exact.run(test.views)
    assert (run.rounds, set(run.transmissions)) == (4, {36})
    mean = exact.statistics(test.views).mean(axis=1)
    np.testing.assert_allclose(run.statistics[-1], np.repeat(mean[:, None], 9, axis=1), atol=1e-12)
    assert (exact.predict(test.views) == exact.classes_[(mean > 0).astype(int)]).all()
    exact.save(tmp_path / "team")
    again = Team.load(tmp_path / "team")
    assert again.policy == schedule.exact(9)
    assert (again.decision_function(test.views) == exact.decision_function(test.views)).all()


def test_rounds_and_rule_may_be_given(digits):
    train, test = digits
    rule = protocol.Quantised(protocol.Ceca(), 8, 200.0)
    rounded = team(schedule.exact(9), rounds=6, rule=rule).fit(train.views, train.y)
    assert set(rounded.run(test.views).bits) == {36 * 8}


def test_what_is_no_schedule_is_refused(digits):
    train, _ = digits
    with pytest.raises(PolicyError, match=r"policy must be a collegium Policy, .* or another Schedule; got 3"):
        team(3).fit(train.views, train.y)


def test_ours_over_an_exact_schedule_decides_as_avg_stat():
    record = score_record(K=12)
    ours, average = fusion.Ours(schedule.exact(12)).fit(record), fusion.AvgStat().fit(record)
    centre = average.decide(record.test).statistics
    np.testing.assert_allclose(ours.decide(record.test).statistics, np.broadcast_to(centre, (400, 12)), atol=1e-12)
    named = [method.name for method in fusion.all_methods(schedule.exact(12))]
    assert "Ours" in named
    assert "Social learning" not in named


@pytest.mark.parametrize(
    "network", [schedule.exact(12), schedule.pairwise(topology.ring(5), 3), policy.uniform(topology.ring(5))], ids=repr
)
def test_network_files(network, tmp_path):
    kept = NetworkFile(network, schedule.own_rule(network), 7, "for people")
    write_network(tmp_path / "net.json", kept)
    assert read_network(tmp_path / "net.json") == kept


def test_commands(tmp_path):
    x = scores(6, 9)
    np.save(tmp_path / "x.npy", x)
    for network, rounds, sent in (
        ("exact:9", 4, 36), ("one-peer-exponential:9", 20, 180), ("pairwise:ring:9", 20, 40),
        ("alternating:ring:9+grid:3x3", 20, 420),
    ):  # fmt: skip
        found = json.loads(RUN.invoke(app, ["simulate", str(tmp_path / "x.npy"), network, "--json"]).stdout)
        assert (found["rounds"], set(found["transmissions"])) == (rounds, {sent})
    final = np.array(
        json.loads(RUN.invoke(app, ["simulate", str(tmp_path / "x.npy"), "exact:9", "--json"]).stdout)["statistics"]
    )
    np.testing.assert_allclose(final, np.repeat(x.mean(axis=1, keepdims=True), 9, axis=1), atol=1e-12)
    rounded = RUN.invoke(app, ["simulate", str(tmp_path / "x.npy"), "exact:9", "--bits", "6", "--json"])
    assert set(json.loads(rounded.stdout)["bits"]) == {36 * 6}


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        (["exact:twelve"], "cannot read the number of agents in 'exact:twelve': write exact:12"),
        (["exact:9", "--policy", "uniform"], "exact:9 has its own weights: leave out --policy uniform"),
        (["pairwise:ring:9", "--policy", "uniform"], "pairwise:ring:9 has its own weights"),
        (["pairwise:exact:9"], "exact:9 changes from round to round"),
        (["nothing:9"], "'nothing:9' is neither a topology nor a file"),
    ],
)
def test_mistakes_on_the_command_line(network, sentence, tmp_path):
    np.save(tmp_path / "x.npy", scores(6, 9))
    found = RUN.invoke(app, ["simulate", str(tmp_path / "x.npy"), *network])
    assert found.exit_code != 0
    assert sentence in str(found.exception) + found.output
