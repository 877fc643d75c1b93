"""Certificates: estimates that cover, guarantees that hold, and what a certificate says when there is none."""

import json
from dataclasses import replace

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
    some = np.full((21, 12), 0.25)
    full = theory.certify(c, y, P, 20, beta=1.0)
    coarse = theory.certify(c, y, P, 20, beta=1.0, bits=2, errors=some)
    assert (coarse.bound[20] > full.bound[20]).all()
    assert np.isnan(coarse.limit)  # rounding errors pile up: there is no limit to speak of
    assert json.loads(coarse.to_json())["limit"]["bound"] is None
    np.testing.assert_array_equal(coarse.errors, some)
    raw = theory.certify(c, y, P, 20, raw=True)
    assert raw.beta == 1.0
    np.testing.assert_allclose(raw.bound, theory.finite_round(P, raw.delta, 1.0, 20, raw=True).value)


def test_every_setting_reaches_the_formulas():
    c, y = WORLD.draw(3000, np.random.default_rng(10))
    some = np.zeros((31, 12))
    both = {"tau": 2.0, "sigma": 0.95, "raw": True}
    plain = theory.certify(c, y, P, 30, **both)
    np.testing.assert_allclose(plain.bound, theory.finite_round(P, plain.delta, 1.0, 30, **both).value)
    assert plain.limit == pytest.approx(float(theory.sufficient(P, plain.delta, 1.0, tau=2.0).value))
    few = theory.certify(c, y, P, 30, bits=3, errors=some, coarseness=1.5, **both)
    np.testing.assert_allclose(few.bound, theory.finite_precision(P, few.delta, 1.5, 30, 3, **both).value)
    assert (few.beta, few.beta_is_given) == (1.5, False)


def test_offsets_that_were_not_taken_away_make_beta_larger():
    """Scores of range 2 that sit 30 above and below 0: |c| ≤ 2β needs β = 15.5, or the bound would be false."""
    p = policy.metropolis(topology.ring(16))
    rng = np.random.default_rng(11)
    y = np.where(rng.random(4000) < 0.5, 1, -1)
    c = np.tanh(0.8 * y[:, None] + rng.normal(size=(4000, 16))) + np.where(np.arange(16) < 8, 30.0, -30.0)
    found = theory.certify(c, y, p, 60)
    assert found.beta == pytest.approx(np.abs(c).max() / 2)
    known = ~np.isnan(found.bound)
    assert (found.errors[known] <= found.bound[known]).all()
    with pytest.raises(AssumptionError, match="leave the range"):
        theory.certify(c, y, p, 60, beta=1.0)


def test_an_exact_margin_holds_for_few_items_too():
    """Scores ±1, three in a hundred wrong, ten items a class: Student is too sure of itself, Hoeffding is not."""
    world, rng = World(np.full(12, 0.94)), np.random.default_rng(12)
    one = World(np.array([0.94]))
    held = {True: 0, False: 0}
    for _ in range(300):
        once, y = one.draw(20, rng)
        if min((y > 0).sum(), (y < 0).sum()) < 2:
            continue
        c = np.repeat(once, 12, axis=1)
        for exact in held:
            held[exact] += theory.certify(c, y, P, 1, beta=1.0, exact=exact).delta <= world.margin(P)
    assert held[True] == 300
    assert held[False] < 250


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_absurd_sizes_are_refused(scale):
    c, y = WORLD.draw(50, np.random.default_rng(13))
    with pytest.raises(AssumptionError, match="too small or too large"):
        theory.certify(c * scale, y, P, 3)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"beta": 0.5}, "leave the range"),
        ({"confidence": 1.0}, "confidence must lie strictly"),
        ({"tau": 0.9}, "at least 1"),
        ({"errors": [[0.1]]}, "rounds by agents"),
        ({"errors": "x"}, "errors must be a number"),
        ({"errors": np.full((4, 12), np.nan)}, "finite"),
        ({"bits": 4}, "give errors="),
        ({"bits": [4, 6], "errors": np.zeros((4, 12))}, "one bits"),
        ({"bits": 0, "errors": np.zeros((4, 12))}, "between 1 and 64"),
        ({"tau": [1.0, 2.0]}, "one τ"),
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
    train, test = data.digits(classes=(3, 8))
    grid = policy.metropolis(topology.grid(3, 3))
    names = [(name, LogisticRegression()) for name in train.agent_names]
    return train, test, grid, names


@pytest.mark.parametrize("bounded", [False, True])
def test_a_team_certifies_itself(digits, bounded):
    train, test, grid, names = digits
    team = Team(names, grid, bounded=bounded, center="mean").fit(train.views, train.y)
    found = team.certify(test.views, test.y)
    run = team.run(test.views)
    np.testing.assert_array_equal(found.errors, run.errors(test.y))
    reference = theory.certify(team.statistics(test.views), test.y, grid, 20, beta=1.0 if bounded else None)
    np.testing.assert_allclose(found.bound, reference.bound)
    assert found.beta_is_given == bounded
    assert found.delta > 0
    assert found.bound[-1].max() > found.errors[-1].max()


def test_gains_widen_the_range_that_bounded_scores_are_known_to_have(digits):
    train, test, grid, names = digits
    team = Team(names, grid, bounded=True).fit(train.views, train.y)
    team.pipeline_ = replace(team.pipeline_, gain=[0.5] * 8 + [-3.0])
    assert team.certify(test.views, test.y).beta == 3


def test_labels_are_the_teams_own(digits):
    train, test, grid, names = digits
    words = np.where(train.y > 0, "eight", "three")
    found = Team(names, grid).fit(train.views, words).certify(test.views, np.where(test.y > 0, "eight", "three"))
    other = Team(names, grid).fit(train.views, words).certify(test.views, np.where(test.y > 0, "three", "eight"))
    assert found.delta > 0 > other.delta


def test_a_quantised_team_counts_its_rounding(digits):
    train, test, grid, names = digits
    rule = Quantised(DeGroot(), bits=4, bound=12.0)
    team = Team(names, grid, rule=rule, center="mean").fit(train.views, train.y)
    found = team.certify(test.views, test.y)
    assert found.bits == 4
    assert found.beta >= 6.0  # the range of the quantiser, not only of the scores
    assert not found.beta_is_given
    raw = Team(names, grid, rule=rule, center=False).fit(train.views, train.y).certify(test.views, test.y)
    assert raw.beta >= 12.0
    np.testing.assert_array_equal(found.errors, team.run(test.views).errors(test.y))


@pytest.mark.parametrize("center", [False, "auto"])
def test_a_team_without_centers_has_the_raw_guarantee(digits, center):
    train, test, grid, names = digits
    team = Team(names, grid, center=center).fit(train.views, train.y)
    assert not team.center_.any()
    found = team.certify(test.views, test.y, tau=2.0, sigma=0.95)
    both = {"tau": 2.0, "sigma": 0.95, "raw": True}
    np.testing.assert_allclose(found.bound, theory.finite_round(grid, found.delta, found.beta, 20, **both).value)
    assert not found.exact
    assert team.certify(test.views, test.y, exact=True).delta < found.delta


@pytest.mark.parametrize("rule", [LabelStability(1, 0.1), Quantised(LabelStability(1, 0.1), bits=6, bound=12.0)])
def test_a_rule_without_a_theorem_has_what_held_out_items_say(digits, rule):
    train, test, grid, names = digits
    team = Team(names, grid, rule=rule).fit(train.views, train.y)
    found, run = team.certify(test.views, test.y), team.run(test.views)
    said = theory.evidence(run.statistics, np.where(test.y == 1, 1, -1), classes=(1, -1))
    np.testing.assert_array_equal(found.errors, run.errors(test.y))
    np.testing.assert_array_equal(found.evidence.at_most, said.at_most)
    assert np.isnan(found.bound).all()
    assert np.isnan(found.limit)
    assert "label-stability" in found.no_theorem
    with pytest.raises(AssumptionError, match="give statistics="):
        theory.certify(run.statistics[0], test.y, grid, rule=rule)


@pytest.mark.parametrize("rule", [DeGroot(), Quantised(DeGroot(), bits=6, bound=0.9)], ids=["exact", "few bits"])
def test_a_team_of_ten_classes_certifies_itself(rule):
    train, test = data.digits()
    grid = policy.metropolis(topology.grid(3, 3))
    names = [(name, LogisticRegression(max_iter=1000)) for name in train.agent_names]
    team = Team(names, grid, rule=rule, bounded=True, center=False).fit(train.views, train.y)
    found = team.certify(test.views, test.y)
    assert found.items == tuple(np.bincount(test.y))
    assert found.beta == pytest.approx(1.0)  # probabilities differ by at most 1; entries lie in ±9/10
    np.testing.assert_array_equal(found.errors, team.run(test.views).errors(test.y))
    assert found.delta == pytest.approx(theory.margins.estimate(team.statistics(test.views), test.y, grid).delta)
    assert found.delta > 0
    known = ~np.isnan(found.bound)
    assert (found.bound[known] >= found.errors[known]).all()
