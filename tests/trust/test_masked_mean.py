"""Masks as a rule: what a neighbour sees hides the score, what all have together is the exact mean, or nothing is."""

import numpy as np
import pytest
from tests import helpers

import collegium
from collegium import check_rule, policy, topology
from collegium._util.randomness import Draws
from collegium.errors import CollegiumError, RuleError
from collegium.links import Lossy
from collegium.protocol import Flood, Quantised, registry
from collegium.trust import Liars, MaskedMean, attacks
from collegium.trust.masks import MODULUS

TORUS = policy.metropolis(topology.torus(3, 3))
RULE = MaskedMean(9)


def test_everybody_ends_with_the_exact_mean():
    for scores in (helpers.scores(200, 9), helpers.of_classes(50, 9, 4)):
        run = collegium.collaborate(scores, TORUS, 4, MaskedMean())
        wanted = np.broadcast_to(scores.mean(axis=1, keepdims=True), scores.shape)
        np.testing.assert_allclose(run.statistics[-1], wanted, rtol=0, atol=1e-9)
        np.testing.assert_allclose(run.statistics[0], scores, rtol=0, atol=1e-15)


def test_what_a_neighbour_sees_in_round_1_tells_nothing_of_the_score():
    n, seat = 4000, TORUS.at(1)[4]
    scores = np.tanh(np.random.default_rng(0).normal(size=(n, 1)))
    draws = Draws(0, np.arange(n, dtype=np.uint64), 4, 1)
    sent = RULE.emit(seat, RULE.init(seat, scores), draws)[0].values
    seen = sent[:, 4] / MODULUS
    covariance = np.cov(seen, scores[:, 0])[0, 1]
    assert abs(covariance) < 3.9 * seen.std() * scores.std() / np.sqrt(n)  # 99.99 % of independent draws
    assert np.delete(sent[:, :9], 4, axis=1).any() == 0
    moved = RULE.emit(seat, RULE.init(seat, scores + 0.5), draws)[0].values[:, 4]
    assert (moved != sent[:, 4]).all()
    counts = np.histogram(seen, np.linspace(0, 1, 17))[0]
    assert ((counts - n / 16) ** 2 / (n / 16)).sum() < 44.3  # chi-squared, 15 degrees, 1e-4


def test_where_one_is_missing_the_mean_is_refused():
    scores = helpers.scores(40, 9)
    run = collegium.collaborate(scores, TORUS, 2, MaskedMean(), links=Lossy(0.3, seed=2))
    mean = np.isclose(run.statistics[-1], scores.mean(axis=1, keepdims=True), rtol=0, atol=1e-9)
    alone = run.statistics[-1] == scores
    assert (mean | alone).all()  # and never a sum under masks that do not cancel
    assert 0.05 < mean.mean() < 0.95


def test_it_is_a_rule_as_any_other():
    assert registry.from_text("masked-mean") == MaskedMean()
    assert registry.from_text(registry.to_text(RULE)) == RULE
    held = check_rule(MaskedMean(), policy.uniform(topology.complete(4)))
    assert any("live network equals simulator" in one and "skipped" not in one for one in held)


def test_a_false_score_goes_unseen_and_other_lies_are_refused():
    scores = helpers.scores(20, 9)
    run = collegium.collaborate(scores, TORUS, 4, MaskedMean(), liars=Liars([4], attacks.AtStart("sign-flip", 3.0)))
    false = scores * np.where(np.arange(9) == 4, -3.0, 1.0)
    wanted = np.broadcast_to(false.mean(axis=1, keepdims=True), (20, 9))
    np.testing.assert_allclose(run.statistics[-1], wanted, rtol=0, atol=1e-9)
    for rule in (MaskedMean(), Flood()):
        with pytest.raises(RuleError, match="lie about their own score, by at-start"):
            collegium.collaborate(scores, TORUS, 4, rule, liars=Liars([4], attacks.Stubborn(2.0)))


def test_mistakes_are_named():
    with pytest.raises(RuleError, match="gives each agent the other's"):
        collegium.collaborate(helpers.scores(2, 2), policy.uniform(topology.complete(2)), 2, MaskedMean())
    with pytest.raises(RuleError, match="cannot be rounded"):
        collegium.collaborate(helpers.scores(2, 9), TORUS, 4, Quantised(RULE, 8, 2.0))
    with pytest.raises(RuleError, match="is for 9 agents"):
        collegium.collaborate(helpers.scores(2, 4), policy.uniform(topology.complete(4)), 2, RULE)
    with pytest.raises(CollegiumError, match=r"910\.222|must be below|too large|largest"):
        collegium.collaborate(np.full((1, 9), 1000.0), TORUS, 4, RULE)
