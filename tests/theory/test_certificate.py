"""Certificates: estimates that cover, guarantees that hold, and what a certificate says when there is none."""

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from collegium import Team, data, policy, theory, topology
from collegium.errors import AssumptionError
from collegium.plots import certificate_figure
from collegium.protocol import DeGroot, LabelStability, Quantised
from worlds import World

P = policy.metropolis(topology.grid(3, 4))
WORLD = World(np.linspace(0.4, 0.9, 12))


def test_the_parts_by_hand():
    c, y = WORLD.draw(400, np.random.default_rng(0))
    found = theory.certify(c, y, P, 10, beta=1.0)
    aggregate = c @ P.perron
    for interval, sign in ((found.plus, 1), (found.minus, -1)):
        x = aggregate[y == sign]
        low, high = stats.t.interval(0.95, len(x) - 1, x.mean(), stats.sem(x))
        assert (interval.mean - interval.half, interval.mean + interval.half) == pytest.approx((low, high))
    assert found.delta == pytest.approx(min(found.plus.mean - found.plus.half, -found.minus.mean - found.minus.half))
    assert found.items == ((y > 0).sum(), (y < 0).sum())
    np.testing.assert_allclose(found.bound, theory.finite_round(P, found.delta, 1.0, 10).value)
    assert found.limit == pytest.approx(float(theory.sufficient(P, found.delta, 1.0).value))
    for t in (0, 3, 10):
        x = c @ np.linalg.matrix_power(P.A, t)
        np.testing.assert_allclose(found.errors[t], (x * y[:, None] <= 0).mean(axis=0))
    within = np.where(y[:, None] > 0, c - c[y > 0].mean(axis=0), c - c[y < 0].mean(axis=0))
    np.testing.assert_allclose(found.correlations, np.corrcoef(within.T), atol=1e-12)
    assert found.inflation == pytest.approx((within @ P.perron).var() / ((P.perron**2) @ within.var(axis=0)))


def test_the_margin_holds_as_often_as_it_says():
    rng = np.random.default_rng(1)
    true = WORLD.margin(P)
    held = sum(theory.certify(*WORLD.draw(150, rng), P, 1, beta=1.0).delta <= true for _ in range(600))
    assert held >= stats.binom.ppf(0.001, 600, 0.95)


def test_more_confidence_is_less_margin():
    c, y = WORLD.draw(300, np.random.default_rng(2))
    margins = [theory.certify(c, y, P, 1, confidence=level, beta=1.0).delta for level in (0.8, 0.95, 0.999)]
    assert margins[0] > margins[1] > margins[2]


def test_the_guarantee_is_above_the_error_on_fresh_items():
    rng = np.random.default_rng(3)
    found = theory.certify(*WORLD.draw(2000, rng), P, 20, beta=1.0)
    c, y = WORLD.draw(100_000, rng)
    fresh = (c @ np.linalg.matrix_power(P.A, 20) * y[:, None] <= 0).mean(axis=0)
    assert (fresh < found.bound[20]).all()
    assert found.bound[20].max() < 0.5
    assert not found.vacuous


def test_no_margin_no_guarantee():
    rng = np.random.default_rng(4)
    y = np.where(rng.random(100) < 0.5, 1, -1)
    found = theory.certify(rng.normal(size=(100, 12)), y, P, 5)
    assert found.delta < 0
    assert found.vacuous
    assert np.isnan(found.bound).all()
    content = json.loads(found.to_json())
    assert content["bound"][0][0] is None
    assert content["vacuous"] is True


def test_dependence_is_seen():
    c, y = WORLD.draw(2000, np.random.default_rng(5))
    alike = c.copy()
    alike[:, 1:] = alike[:, :1]
    assert theory.certify(c, y, P, 1).inflation == pytest.approx(1, abs=0.15)
    assert theory.certify(alike, y, P, 1).inflation == pytest.approx(12, rel=1e-6)
    assert theory.certify(alike, y, P, 1).to_dict()["largest_correlation"] == pytest.approx(1)


def test_bits_and_raw_scores():
    c, y = WORLD.draw(2000, np.random.default_rng(6))
    full, coarse = theory.certify(c, y, P, 20, beta=1.0), theory.certify(c, y, P, 20, beta=1.0, bits=2)
    assert (coarse.bound[20] > full.bound[20]).all()
    raw = theory.certify(c, y, P, 20, raw=True)
    assert raw.beta == 1.0
    np.testing.assert_allclose(raw.bound, theory.finite_round(P, raw.delta, 1.0, 20, raw=True).value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"beta": 0.5}, "leave the range"),
        ({"confidence": 1.0}, "confidence must lie strictly"),
        ({"tau": 0.9}, "at least 1"),
        ({"errors": [[0.1]]}, "rounds by agents"),
        ({"sigma": 0.1}, "σ must lie between"),
    ],
)
def test_mistakes(change, sentence):
    c, y = WORLD.draw(300, np.random.default_rng(7))
    with pytest.raises(AssumptionError, match=sentence):
        theory.certify(c, y, P, 3, **change)


def test_one_class_is_not_enough():
    c, _ = WORLD.draw(50, np.random.default_rng(8))
    with pytest.raises(AssumptionError, match="two items of each class; there are 49 and 1"):
        theory.certify(c, [1] * 49 + [-1], P, 3)


def test_a_figure_is_drawn(tmp_path):
    c, y = WORLD.draw(300, np.random.default_rng(9))
    for found in (theory.certify(c, y, P, 20, beta=1.0), theory.certify(0 * c + 0.01, y, P, 20)):
        certificate_figure(found, "a certificate").savefig(tmp_path / "c.png")
        assert (tmp_path / "c.png").stat().st_size > 5000


# A team's certificate


@pytest.fixture(scope="module")
def digits():
    train, test = data.digits()
    grid = policy.metropolis(topology.grid(3, 3))
    names = [(name, LogisticRegression()) for name in train.agent_names]
    return train, test, grid, names


@pytest.mark.parametrize("bounded", [False, True])
def test_a_team_certifies_itself(digits, bounded):
    train, test, grid, names = digits
    team = Team(names, grid, bounded=bounded).fit(train.views, train.y)
    found = team.certify(test.views, test.y)
    run = team.run(test.views)
    np.testing.assert_array_equal(found.errors, run.errors(test.y))
    reference = theory.certify(team.statistics(test.views), test.y, grid, 20, beta=1.0 if bounded else None)
    np.testing.assert_allclose(found.bound, reference.bound)
    assert found.beta_is_given == bounded
    assert found.delta > 0
    assert found.bound[-1].max() > found.errors[-1].max()


def test_labels_are_the_teams_own(digits):
    train, test, grid, names = digits
    words = np.where(train.y > 0, "eight", "three")
    found = Team(names, grid).fit(train.views, words).certify(test.views, np.where(test.y > 0, "eight", "three"))
    other = Team(names, grid).fit(train.views, words).certify(test.views, np.where(test.y > 0, "three", "eight"))
    assert found.delta > 0 > other.delta


def test_a_quantised_team_counts_its_rounding(digits):
    train, test, grid, names = digits
    rule = Quantised(DeGroot(), bits=4, bound=12.0)
    team = Team(names, grid, rule=rule).fit(train.views, train.y)
    found = team.certify(test.views, test.y)
    assert found.bits == 4
    assert found.beta >= 6.0  # the range of the quantiser, not only of the scores
    np.testing.assert_array_equal(found.errors, team.run(test.views).errors(test.y))


def test_rules_without_a_guarantee_are_refused(digits):
    train, test, grid, names = digits
    team = Team(names, grid, rule=LabelStability(1, 0.1)).fit(train.views, train.y)
    with pytest.raises(AssumptionError, match="none for LabelStability"):
        team.certify(test.views, test.y)
