"""A team's prediction sets and abstention: coverage on fresh items, for the team and each agent, by their own names."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from collegium import Team, policy, theory, topology
from collegium.errors import AssumptionError, ModelError
from collegium.protocol import LabelStability

RING = policy.metropolis(topology.ring(3))


def items(n, C, rng):
    y = rng.integers(C, size=n)
    means = np.random.default_rng(9).normal(size=(3, C, 2))
    return [means[k][y] + rng.normal(size=(n, 2)) for k in range(3)], np.array(["a", "b", "c", "d"])[y]


@pytest.fixture(scope="module", params=[2, 4], ids=["two classes", "four classes"])
def team(request):
    views, y = items(400, request.param, np.random.default_rng(0))
    agents = [(f"agent {k}", LogisticRegression()) for k in range(3)]
    team = Team(agents, RING, center="none", calibrate=False, rule=LabelStability(2, 0.5), random_state=0)
    return request.param, team.fit(views, y)


@pytest.mark.parametrize("agent", [None, "agent 1"])
def test_coverage_on_fresh_items(team, agent):
    C, fitted = team
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(60):
        fitted.conformalize(*items(199, C, rng))
        views, y = items(200, C, rng)
        sets = fitted.predict_set(views, 0.1, agent)
        assert sets.shape == (200, C)
        covered.append(sets[np.arange(200), np.searchsorted(fitted.classes_, y)].mean())
    assert np.mean(covered) == pytest.approx(0.9, abs=max(0.01, 4 * stats.sem(covered)))


def test_a_set_with_one_class_has_the_decision(team):
    C, fitted = team
    rng = np.random.default_rng(2)
    views, y = items(300, C, rng)
    fitted.conformalize(views, y)
    sets = fitted.predict_set(views, 0.1)
    one = sets.sum(axis=1) == 1
    assert one.any()
    np.testing.assert_array_equal(fitted.classes_[sets[one].argmax(axis=1)], fitted.predict(views)[one])


def test_the_error_among_decided_items(team):
    C, fitted = team
    rng = np.random.default_rng(3)
    fitted.conformalize(*items(4000, C, rng))
    views, y = items(20_000, C, rng)
    wanted = 0.6 * (fitted.predict(views) != y).mean()  # fewer errors than if all were decided
    chosen, sure = fitted.predict_or_abstain(views, error=wanted)
    np.testing.assert_array_equal(chosen, fitted.predict(views))
    assert sure.mean() > 0.2
    assert (chosen != y)[sure].mean() < wanted < (chosen != y)[~sure].mean()


def test_each_class_by_itself(team):
    C, fitted = team
    rng = np.random.default_rng(4)
    fitted.conformalize(*items(4000, C, rng), per_class=True)
    views, y = items(8000, C, rng)
    sets = fitted.predict_set(views, 0.2)
    for place, name in enumerate(fitted.classes_):
        assert sets[y == name, place].mean() == pytest.approx(0.8, abs=0.04)


def test_what_is_missing_is_said():
    views, y = items(30, 2, np.random.default_rng(5))
    fresh = Team([(f"agent {k}", LogisticRegression()) for k in range(3)], RING).fit(views, y)
    with pytest.raises(ModelError, match="call conformalize first"):
        fresh.predict_set(views)
    with pytest.raises(ModelError, match="there is no agent 'x'"):
        fresh.conformalize(views, y).predict_set(views, 0.1, "x")
    with pytest.raises(AssumptionError, match="strictly between 0 and 1"):
        fresh.predict_set(views, 1.5)


def test_fitting_again_forgets_the_sets():
    views, y = items(60, 2, np.random.default_rng(6))
    team = Team([(f"agent {k}", LogisticRegression()) for k in range(3)], RING).fit(views, y).conformalize(views, y)
    with pytest.raises(ModelError, match="call conformalize first"):
        team.fit(views, y).predict_set(views)


def test_evidence_of_a_rule_that_has_no_certificate(team):
    C, fitted = team
    views, y = items(200, C, np.random.default_rng(7))
    run = fitted.run(views)
    classes = fitted.classes_[::-1] if C == 2 else fitted.classes_
    found = theory.evidence(run.statistics, y, classes=tuple(classes))
    np.testing.assert_allclose(found.errors, run.errors(y, tuple(classes)))
    assert found.lead.shape == (200, 3)
    assert (found.at_most > found.errors).all()
