"""Methods on scores, each against a computation that shares no code with it."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from collegium import collaborate, fusion, policy, protocol, topology
from collegium.agents import Scores
from collegium.agents.calibration import temperatures
from collegium.errors import ModelError, PolicyError, ScoreError
from collegium.fusion import (
    AdaBoost,
    AvgStat,
    LearnedFusion,
    LogOddsSum,
    NonCooperative,
    Ours,
    SimplexFusion,
    Stacking,
    Vote,
)
from helpers import score_record

RING = policy.uniform(topology.ring(5))
DIRECTED = policy.uniform(topology.erdos_renyi(5, links=9, seed=3))
METHODS = [
    NonCooperative(),
    AvgStat(),
    Vote(),
    LearnedFusion(),
    SimplexFusion(),
    AdaBoost(),
    Ours(DIRECTED),
    Ours(DIRECTED, center=False),
    Ours(DIRECTED, rule=protocol.SocialLearning()),
    LogOddsSum(),
    Stacking(),
]
PREPARED = [method for method in METHODS if hasattr(method, "center") and method.name != "Log-odds sum"]


def centred(record, part="test"):
    return getattr(record, part) - record.train.mean(axis=0)


# One interface


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_fits_decides_and_says_what_it_cost(method, record):
    fitted = clone(method).fit(record)
    decision = fitted.decide(record.test)
    deciders = 5 if method.name.startswith(("Non", "Ours", "Social")) else 1
    assert decision.statistics.shape == (400, deciders)
    assert decision.transmissions.shape == decision.bits.shape == (400,)
    labels = fitted.predict(record.test)
    assert labels.shape == ((400,) if deciders == 1 else (400, 5))
    assert set(np.unique(labels)) == {-1, 1}
    by_hand = np.mean([[s * y <= 0 for s in row] for row, y in zip(decision.statistics, record.y_test, strict=True)])
    assert decision.error(record.y_test) == pytest.approx(by_hand, abs=1e-15)
    assert decision.error(record.y_test) < 0.4
    assert isinstance(fitted.coordination, fusion.Coordination)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_mistakes_are_answered_with_a_sentence(method, record):
    with pytest.raises(ModelError, match="not fitted"):
        clone(method).decide(record.test)
    with pytest.raises(ScoreError, match="3 columns"):
        clone(method).fit(record).decide(record.test[:, :3])
    with pytest.raises(ScoreError, match="score record"):
        clone(method).fit(record.train)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_test_items_are_not_looked_at(method, record):
    other = Scores(record.train, record.val, -record.test[:9], record.y_train, record.y_val, record.y_test[:9])
    one, two = (clone(method).fit(given).decide(record.test).statistics for given in (record, other))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("method", PREPARED, ids=lambda method: method.name)
@pytest.mark.parametrize("settings", [(True, False), (False, True), (True, True)], ids=str)
def test_statistics_are_those_of_the_record(method, settings, record):
    calibrate, bounded = settings
    fitted = clone(method).set_params(calibrate=calibrate, bounded=bounded).fit(record)
    expected = record.statistics("test", fitted.center, calibrate, bounded)
    np.testing.assert_array_equal(fitted.statistics(record.test), expected)


# The proposed scheme, and its limit


@pytest.mark.parametrize(
    "network",
    [
        RING,
        policy.metropolis(topology.star(5)),
        policy.Policy(np.full((5, 5), 0.1) + 0.5 * np.roll(np.eye(5), 1, axis=0)),
    ],
    ids=["ring", "star", "directed"],
)
def test_the_average_is_our_limit_where_the_policy_is_doubly_stochastic(network, record):
    assert network.is_doubly_stochastic
    together = Ours(network, rounds=500).fit(record).decide(record.test).statistics
    average = AvgStat().fit(record).decide(record.test).statistics
    np.testing.assert_allclose(together, np.broadcast_to(average, together.shape), rtol=0, atol=1e-12)


def test_the_average_is_not_our_limit_elsewhere(record):
    assert not DIRECTED.is_doubly_stochastic
    together = Ours(DIRECTED, rounds=500).fit(record).decide(record.test).statistics
    average = AvgStat().fit(record).decide(record.test).statistics
    assert np.abs(together - average).max() > 0.1
    A = DIRECTED.A
    eigenvalues, vectors = np.linalg.eig(A)
    pi = np.real(vectors[:, np.argmax(np.real(eigenvalues))])
    np.testing.assert_allclose(together, np.tile(centred(record) @ (pi / pi.sum()), (5, 1)).T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_rounds_are_powers_of_the_policy_and_messages_are_counted(rounds, record):
    decision = Ours(DIRECTED, rounds=rounds).fit(record).decide(record.test)
    expected = centred(record) @ np.linalg.matrix_power(DIRECTED.A, rounds)
    np.testing.assert_allclose(decision.statistics, expected, rtol=0, atol=1e-12)
    links = np.count_nonzero(DIRECTED.A) - np.count_nonzero(np.diag(DIRECTED.A))
    assert (decision.transmissions == rounds * links).all()
    assert (decision.bits == 64 * rounds * links).all()


def test_no_centering_is_raw_scores_and_nothing_else(record):
    raw = Ours(DIRECTED, 3, center=False).fit(record)
    np.testing.assert_allclose(
        raw.decide(record.test).statistics, record.test @ np.linalg.matrix_power(DIRECTED.A, 3), rtol=0, atol=1e-12
    )
    assert (raw.name, raw.training_transmissions_) == ("Ours (no centering)", 0)


def test_social_learning_adds_the_same_evidence_every_round(record):
    method = Ours(DIRECTED, 4, protocol.SocialLearning()).fit(record)
    A = DIRECTED.A
    expected = centred(record) @ sum(np.linalg.matrix_power(A, i) for i in range(1, 5))
    got = method.decide(record.test).statistics
    reference = collaborate(centred(record), DIRECTED, 4, protocol.SocialLearning()).statistics[-1]
    np.testing.assert_array_equal(got, reference)
    assert (np.sign(got) == np.sign(expected)).all()
    assert method.name == "Social learning"


def test_quantised_messages_are_smaller(record):
    rule = protocol.Quantised(protocol.DeGroot(), bits=4, bound=40.0)
    decision = Ours(DIRECTED, 2, rule).fit(record).decide(record.test)
    assert (decision.bits == 4 * decision.transmissions).all()
    again, other = (Ours(DIRECTED, 2, rule, rng=rng).fit(record).decide(record.test).statistics for rng in (0, 1))
    np.testing.assert_array_equal(decision.statistics, again)
    assert (again != other).any()
    quiet = protocol.Quantised(protocol.SocialLearning(), bits=8, bound=400.0)
    assert Ours(DIRECTED, rule=quiet).name == "Social learning"


def test_a_network_of_another_size_is_refused(record):
    with pytest.raises(PolicyError, match="6 agents, the score record 5"):
        Ours(policy.uniform(topology.ring(6))).fit(record)
    with pytest.raises(PolicyError, match="must be a collegium Policy"):
        Ours(np.eye(5)).fit(record)


# At a centre


def test_vote_counts_heads_and_the_chair_breaks_ties():
    labels = np.array(list(product([-1.0, 0.0, 1.0], repeat=4)))
    train = np.array([[1.0, 1, 1, 1], [-1, -1, -1, -1]])
    record = Scores(train, train, train, [1, -1], [1, -1], [1, -1])
    for chair in range(4):
        got = Vote(chair=chair).fit(record).decide(labels).statistics[:, 0]
        for row, statistic in zip(labels, got, strict=True):
            votes = Counter(row)
            lead = votes[1.0] - votes[-1.0]
            assert np.sign(statistic) == (np.sign(lead) if lead else row[chair])


def test_a_vote_is_one_bit_per_agent(record):
    decision = Vote().fit(record).decide(record.test)
    assert (decision.transmissions == 5).all()
    assert (decision.bits == 5).all()


def test_there_is_no_sixth_chair(record):
    with pytest.raises(ModelError, match="casting vote"):
        Vote(chair=5).fit(record)


def test_alone_is_each_agents_own_sign(record):
    decision = NonCooperative().fit(record).decide(record.test)
    np.testing.assert_array_equal(decision.statistics, centred(record))
    assert not decision.transmissions.any()
    assert not decision.bits.any()


def planted(n, K=4, seed=0):
    """Statistics whose class follows log-odds w·c + b; the training mean is exactly 0."""
    rng = np.random.default_rng(seed)
    w, b = rng.normal(size=K), 0.7
    c = rng.normal(size=(n, K)) * rng.uniform(0.5, 3, K)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-(c @ w + b))), 1, -1)
    return Scores(np.vstack([c, -c]), c, c, np.r_[y, y], y, y), w, b


def test_learned_fusion_recovers_a_planted_affine_rule():
    record, w, b = planted(40_000)
    fitted = LearnedFusion().fit(record)
    features = np.column_stack([record.val, np.ones(len(record.val))])
    p = 1 / (1 + np.exp(-(record.val @ w + b)))
    spread = np.sqrt(np.diag(np.linalg.inv((features.T * (p * (1 - p))) @ features)))  # of the estimate, by Fisher
    away = np.abs(np.r_[fitted.weights_, fitted.bias_] - np.r_[w, b])
    assert (away < stats.norm.ppf(1 - 0.0005 / 5) * spread).all()  # five estimates, 99.9 % together
    np.testing.assert_allclose(
        fitted.decide(record.test).statistics[:, 0], record.test @ fitted.weights_ + fitted.bias_, rtol=1e-12
    )


@pytest.mark.parametrize("ridge", [0.1, 1.0, 50.0])
def test_learned_fusion_minimises_what_it_says(ridge, record):
    c, y = centred(record, "val"), record.y_val
    spread = c.std(axis=0)

    def objective(wb):
        return np.logaddexp(0, -y * (c @ wb[:-1] + wb[-1])).sum() + ridge / 2 * ((spread * wb[:-1]) ** 2).sum()

    best = optimize.minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-7})
    fitted = LearnedFusion(ridge=ridge).fit(record)
    assert objective(np.r_[fitted.weights_, fitted.bias_]) <= best.fun + 1e-9
    np.testing.assert_allclose(np.r_[fitted.weights_, fitted.bias_], best.x, atol=1e-4)


def scaled(record, factor):
    """The same record in other units."""
    parts = (getattr(record, part) * factor for part in ("train", "val", "test"))
    return Scores(*parts, record.y_train, record.y_val, record.y_test)


@pytest.mark.parametrize("method", [LearnedFusion(), Stacking()], ids=lambda method: method.name)
def test_units_do_not_matter_to_learned_rules(method, record):
    other = scaled(record, np.array([1e-3, 1.0, 50.0, 1.0, 1.0]))
    one = clone(method).fit(record).decide(record.test).statistics
    two = clone(method).fit(other).decide(other.test).statistics
    np.testing.assert_allclose(one, two, atol=1e-5)


@pytest.mark.parametrize("method", [LearnedFusion(), SimplexFusion(), Stacking()], ids=lambda method: method.name)
def test_rules_are_learned_from_validation_items(method, record):
    """With the labels of all training items changed nothing changes; with those of the validation items, much."""
    same = Scores(record.train, record.val, record.test, -record.y_train, record.y_val, record.y_test)
    other = Scores(record.train, record.val, record.test, record.y_train, -record.y_val, record.y_test)
    first, second, third = (clone(method).fit(one).decide(record.test).statistics for one in (record, same, other))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - third).max() > 0.1


@pytest.mark.parametrize("method", [LearnedFusion(), SimplexFusion(), Stacking()], ids=lambda method: method.name)
def test_absurd_scores_are_refused(method, record):
    with pytest.raises(ScoreError, match="beyond"):
        clone(method).fit(scaled(record, 1e200))


def test_a_failed_fit_leaves_nothing_behind(record):
    method = LearnedFusion().fit(record)
    ones = Scores(record.train, record.val, record.test, record.y_train, np.ones(200), record.y_test, np.ones(5))
    with pytest.raises(ScoreError, match="200 of \\+1 and 0 of -1"):
        method.fit(ones)
    with pytest.raises(ModelError, match="not fitted"):
        method.decide(record.test)


def test_zero_is_plus_one_in_labels_and_wrong_in_errors():
    decision = fusion.Decision(np.zeros((2, 1)), np.zeros(2, int), np.zeros(2, int))
    assert decision.labels.tolist() == [[1], [1]]
    assert decision.error([1, -1]) == 1
    with pytest.raises(ScoreError, match="no items"):
        fusion.Decision(np.zeros((0, 1)), np.zeros(0, int), np.zeros(0, int)).error([])


@pytest.mark.parametrize("method", [LearnedFusion(), SimplexFusion(), Stacking()], ids=lambda method: method.name)
def test_a_rule_cannot_be_learned_from_one_class(method, record):
    ones = Scores(record.train, record.val, record.test, record.y_train, np.ones(200), record.y_test, np.ones(5))
    with pytest.raises(ScoreError, match="both classes"):
        method.fit(ones)
    assert method.fit(record).training_transmissions_ == 5 * 200


@pytest.mark.parametrize("seed", range(4))
def test_simplex_fusion_matches_a_grid(seed):
    record = score_record(K=3, seed=seed)
    margins = (record.val - record.train.mean(axis=0)) * record.y_val[:, None]
    steps = 400
    grid = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    losses = np.array([np.logaddexp(0, -margins @ w).mean() for w in grid])
    fitted = SimplexFusion().fit(record)
    w = fitted.weights_
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert np.logaddexp(0, -margins @ w).mean() <= losses.min() + 1e-9
    assert np.abs(w - grid[losses.argmin()]).max() < 0.05  # the loss is flat: 1/400 in w is far less than 1e-5 in loss
    np.testing.assert_allclose(
        fitted.decide(record.test).statistics[:, 0], (record.test - record.train.mean(axis=0)) @ w, rtol=1e-12
    )


@pytest.mark.parametrize("K", [1, 2, 9, 60])
def test_simplex_fusion_satisfies_the_optimality_conditions(K):
    record = score_record(K=K, seed=K)
    fitted = SimplexFusion().fit(record)
    margins = (record.val - record.train.mean(axis=0)) * record.y_val[:, None]
    slope = -(margins / (1 + np.exp(margins @ fitted.weights_))[:, None]).mean(axis=0)
    used = fitted.weights_ > 1e-6
    assert np.ptp(slope[used]) < 1e-4  # all agents that count pull alike
    assert (slope[~used] >= slope[used].min() - 1e-6).all()  # and no other would do better
    assert 0 <= fitted.gap_ <= 1e-8 * np.abs(margins).mean(axis=0).max()


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 100.0, np.array([1.0, 1e4, 1.0])], ids=str)
def test_simplex_fusion_finds_the_minimum_at_any_scale(scale):
    record = scaled(score_record(K=3, seed=1), scale)
    margins = (record.val - record.train.mean(axis=0)) * record.y_val[:, None]
    fitted = SimplexFusion().fit(record)
    corners = [np.logaddexp(0, -margins @ w).mean() for w in (*np.eye(3), np.full(3, 1 / 3))]
    assert np.logaddexp(0, -margins @ fitted.weights_).mean() <= min(corners)
    if np.ndim(scale) == 0 and scale < 1e-6:  # all but linear: one agent has it all
        assert sorted(fitted.weights_) == [0, 0, 1]
    assert fitted.iterations_ < 5000


def test_simplex_fusion_says_when_it_did_not_converge(record):
    with pytest.raises(ModelError, match="did not converge in 2 iterations"):
        SimplexFusion(max_iterations=2).fit(record)
    with pytest.raises(ModelError, match="tolerance"):
        SimplexFusion(tolerance=0).fit(record)


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_sum_of_log_odds_is_bayes_for_independent_agents(share):
    """Gaussian views, independent given the class: the joint posterior is known in closed form."""
    rng = np.random.default_rng(1)
    K, N = 4, 100_000
    mu = rng.uniform(0.2, 1.0, K)
    y = np.where(rng.random(N) < share, 1, -1)
    x = y[:, None] * mu + rng.normal(size=(N, K))
    prior = np.log(share / (1 - share))
    f = 2 * mu * x + prior  # each agent's own log-odds
    record = Scores(f, f, f, y, y, y)
    joint = stats.norm.logpdf(x, mu).sum(axis=1) - stats.norm.logpdf(x, -mu).sum(axis=1) + prior
    got = LogOddsSum(calibrate=False).fit(record).decide(f).statistics[:, 0]
    off = (K - 1) * 4 / np.sqrt(N * share * (1 - share))  # four standard errors of the prior, K-1 times
    assert np.abs(got - joint).max() < off
    warm = LogOddsSum().fit(record)
    np.testing.assert_allclose(
        warm.decide(f).statistics[:, 0], (f / temperatures(f, y)).sum(axis=1) - (K - 1) * warm.prior_, rtol=1e-12
    )


def test_one_class_in_training_is_no_certainty(record):
    ones = Scores(record.train, record.val, record.test, np.ones(300), record.y_val, record.y_test)
    fitted = LogOddsSum().fit(ones)
    assert fitted.prior_ == pytest.approx(np.log(301))  # rule of succession
    assert np.isfinite(fitted.decide(record.test).statistics).all()


def test_stacking_learns_what_no_affine_rule_can():
    rng = np.random.default_rng(0)
    c = rng.choice([-1.0, 1.0], (900, 2)) + rng.normal(0, 0.2, (900, 2))
    y = np.where(c[:, 0] * c[:, 1] > 0, 1, -1)
    record = Scores(c[:300], c[300:600], c[600:], y[:300], y[300:600], y[600:])
    assert LearnedFusion().fit(record).decide(record.test).error(record.y_test) > 0.35
    assert Stacking().fit(record).decide(record.test).error(record.y_test) < 0.05
    forest = Stacking(RandomForestClassifier(random_state=0)).fit(record)
    assert forest.decide(record.test).error(record.y_test) < 0.05
    with pytest.raises(ModelError, match="neither decision_function nor predict_proba"):
        Stacking(estimator=object()).fit(record)
