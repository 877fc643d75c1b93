"""Gains learned by averages alone."""

import numpy as np
import pytest
from scipy.optimize import minimize

import collegium
from collegium import links, policy, protocol, schedule, topology, tuning
from collegium.errors import LabelError, PolicyError, ScoreError
from collegium.tuning.agent import program
from collegium.tuning.gains import learner_of
from collegium.tuning.learner import Candidate, Learner
from collegium.tuning.losses import Logistic, Ridge, minimise


def world(n, seed=0, quality=(1.0, 0.9, 0.7, 0.1, 0.0, -1.0)):
    """Agents of unequal quality, the last the wrong way round, each in units of its own."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    units = np.random.default_rng(99).uniform(0.3, 3, len(quality))
    return (np.array(quality) * y[:, None] + rng.normal(size=(n, len(quality)))) * units, y


def several_classes(n, seed=0, C=4, K=5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % C
    quality = np.array([2.0, 1.5, 1.0, 0.0, -1.5])[:K]
    x = quality[:, None] * np.eye(C)[y][:, None] + rng.normal(size=(n, K, C))
    return x - x.mean(axis=2, keepdims=True), y


def error(statistics, y):
    pooled = statistics.mean(axis=1)
    return float((pooled * y <= 0).mean() if pooled.ndim == 1 else (pooled.argmax(axis=1) != y).mean())


@pytest.mark.parametrize("make", [world, several_classes])
def test_tuned_agents_are_better_than_equal_ones_and_than_the_best(make):
    x, y = make(200)
    fresh, truth = make(4000, seed=1)
    K = x.shape[1]
    tuned = tuning.tune(x, y, schedule.exact(K))
    alone = min(error(fresh[:, k : k + 1], truth) for k in range(K))
    after = error(tuned(fresh), truth)
    assert tuned.kept == "tuned"
    assert after < error(fresh, truth) - 0.03
    assert after < alone
    assert tuned.gains[-1] < 0


def test_a_gain_per_class():
    x, y = several_classes(400)
    tuned = tuning.tune(x, y, schedule.exact(5), per_class=True)
    assert tuned.gains.shape == (5, 4)
    fresh, truth = several_classes(4000, seed=1)
    assert error(tuned(fresh), truth) < error(fresh, truth) - 0.03


def test_equal_agents_lose_little():
    """Where equal gains are right, tuning on 20 items costs less than half a point on average, and never much."""
    K, worse = 8, []
    for seed in range(20):
        x, y = world(20, seed, (0.5,) * K)
        fresh, truth = world(4000, 100 + seed, (0.5,) * K)
        worse.append(error(tuning.tune(x, y, schedule.exact(K))(fresh), truth) - error(fresh, truth))
    assert np.mean(worse) < 0.005
    assert max(worse) < 0.03


def test_the_average_is_all_that_agents_learn_of_others():
    """Whatever the others are, an agent that hears the same says the same: it has no other way to know of them."""
    x, y = world(60)
    learner = learner_of(y, 60, 2, 6)
    one, same = (program(0, x[:, 0], learner) for _ in range(2))
    first = next(one)
    assert np.array_equal(first, next(same))
    heard = np.random.default_rng(0).normal(size=first.shape)
    assert np.array_equal(one.send(heard), same.send(heard))


@pytest.mark.parametrize("make", [world, several_classes])
def test_agents_apart_and_together_have_the_same_gains(make):
    """What is remembered between agents of a simulation changes no bit."""
    x, y = make(60)
    n, K = x.shape[:2]
    together = tuning.tune(x, y, schedule.exact(K))
    learner = learner_of(y, n, 2 if x.ndim == 2 else x.shape[2], K)
    apart = [program(k, x[:, k], learner) for k in range(K)]
    talk = tuning.Conversation(schedule.exact(K))
    from collegium.tuning.gains import run_together

    outcomes = run_together(apart, talk)
    assert np.array_equal(together.gains, [one.gain for one in outcomes])
    assert np.array_equal(together.shifts, [one.shift for one in outcomes])


def test_costs_are_those_of_the_runs():
    x, y = world(60)
    tuned = tuning.tune(x, y, schedule.exact(6))
    assert tuned.transmissions == tuned.rows * 6 * 3  # three rounds, one message per agent
    assert tuned.bits == 64 * tuned.transmissions
    assert tuned.largest_deviation == 0
    assert tuned.conversations == 5
    ring = tuning.tune(x[:30], y[:30], policy.metropolis(topology.ring(6)), rounds=12)
    assert ring.transmissions == ring.rows * 12 * 12
    assert 0 < ring.largest_deviation < 0.1


@pytest.mark.parametrize(
    ("over", "settings"),
    [
        (policy.metropolis(topology.ring(6)), {"rounds": 30}),
        (policy.uniform(topology.star(6)), {"rounds": 12}),  # its limit is no plain average
        (
            policy.metropolis(topology.complete(6)),
            {"rule": protocol.Quantised(protocol.DeGroot(), bits=12, bound=20.0)},
        ),
        (policy.metropolis(topology.complete(6)), {"links": links.Lossy(0.1, seed=1)}),
    ],
    ids=["ring", "star", "12 bits", "lossy"],
)
def test_any_averaging_will_do(over, settings):
    x, y = world(100)
    fresh, truth = world(2000, seed=1)
    tuned = tuning.tune(x, y, over, **settings)
    rounds = settings.get("rounds", 20)
    rule = settings.get("rule", protocol.DeGroot())
    decided = collegium.collaborate(tuned(fresh), over, rounds, rule).errors(truth)[-1].mean()
    equal = collegium.collaborate(fresh, over, rounds, rule).errors(truth)[-1].mean()
    assert tuned.kept == "tuned"
    assert decided < equal - 0.03
    assert tuned.largest_deviation > 0


def test_tuning_goes_on_from_where_it_stands():
    x, y = world(200)
    first = tuning.tune(x, y, schedule.exact(6))
    turned = x.copy()
    turned[:, 0] *= -1  # the best agent is mounted the wrong way round
    again = tuning.tune(turned[:60], y[:60], schedule.exact(6), start=first.gains)
    assert again.kept == "tuned"
    assert np.sign(again.gains[0]) == -np.sign(first.gains[0])
    unchanged = tuning.tune(x, y, schedule.exact(6), start=first.gains)
    fresh, truth = world(3000, seed=2)
    assert error(unchanged(fresh), truth) < error(fresh, truth) - 0.03


def test_where_one_agent_knows_all_it_decides_alone():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.5, 1, -1)
    x = rng.normal(size=(300, 5)) * 10
    x[:, 3] = y * 0.01
    tuned = tuning.tune(x, y, schedule.exact(5))
    fresh = rng.normal(size=(500, 5)) * 10
    truth = np.where(rng.random(500) < 0.5, 1, -1)
    fresh[:, 3] = truth * 0.01
    assert error(tuned(fresh), truth) <= 0.05
    assert tuned.best_agent == 3


def test_all_items_judge_what_was_not_fitted():
    """One fold of many items would be too few to see that an agent makes a quarter of the average's mistakes."""
    n, K = 600, 4
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, 1, -1)
    learner = Learner(y, 2, K, 1)
    s = y[:, None] * 1.0
    for f in range(5):
        s[np.flatnonzero(learner.folds == f)[:4]] *= -1  # 20 mistakes, 4 in each fold
    alone = np.full((K, 5), 0.5)
    alone[1] = 1 / 120  # 5 mistakes
    nothing = [rng.normal(size=(1, n, 1)) * 1e-6]
    choice, _ = learner.choose(s, s, nothing, nothing, alone)
    assert (choice.kept, choice.agent) == ("best agent", 1)
    assert choice.error_best == pytest.approx(1 / 120)


def test_a_constant_agent_is_named_and_does_no_harm():
    x, y = world(100)
    x[:, 2] = 3.0
    tuned = tuning.tune(x, y, schedule.exact(6))
    assert tuned.constant == (2,)
    assert np.isfinite(tuned.gains).all()
    assert error(tuned(x), y) < error(x, y)


@pytest.mark.parametrize(
    ("labels", "n", "said"),
    [
        (np.ones(40), 40, "of at least two classes; all 40 are of one"),
        (np.array([1, -1] * 4), 8, "at least 10 labelled items, some of which are held out; got 8"),
        (np.array([1] * 39 + [-1]), 40, "at least 2 items of each class; one of the two has 1 of 40"),
    ],
)
def test_labels_that_teach_nothing_are_refused(labels, n, said):
    x, _ = world(n)
    with pytest.raises(LabelError, match=said):
        tuning.tune(x, labels, schedule.exact(6))


def test_settings_that_make_no_sense_are_refused():
    x, y = world(40)
    with pytest.raises(ScoreError, match="loss must be one of logistic, ridge; got 'hinge'"):
        tuning.tune(x, y, schedule.exact(6), loss="hinge")
    with pytest.raises(ScoreError, match="start must be 6 finite gains"):
        tuning.tune(x, y, schedule.exact(6), start=[1.0, 2.0])
    with pytest.raises(ScoreError, match="conversations"):
        tuning.tune(x, y, schedule.exact(6), conversations=0)


@pytest.mark.parametrize("loss", [Logistic, Ridge])
@pytest.mark.parametrize("d", [1, 3])
def test_the_least_loss_is_found(loss, d):
    """Newton's steps end where SciPy's general minimiser ends."""
    rng = np.random.default_rng(0)
    B = rng.normal(size=(3, 40, d))
    if d > 1:
        B -= B.mean(axis=2, keepdims=True)
    y = rng.integers(0, max(d, 2), 40)
    target = (y > 0).astype(float)[:, None] if d == 1 else np.eye(d)[y]
    weight, penalty, one = rng.random(40), np.diag([0.1, 1.0, 3.0]), loss(target)
    found = minimise(one, B, penalty, weight, np.zeros(3))

    def cost(c):
        f = np.tensordot(c, B, axes=(0, 0))
        return (weight * one.values(f)).sum() + 0.5 * c @ penalty @ c

    expected = minimize(cost, np.zeros(3), tol=1e-12).x
    assert np.abs(found - expected).max() < 1e-4


def test_conjugate_directions_reach_the_ridge_solution():
    """With as many directions as agents the gains are those of the regression that sees all scores."""
    x, y = world(80)
    n, K = x.shape
    learner = Learner(y, 2, K, K, "ridge")
    z = x - x.mean(axis=0)
    z = z / np.sqrt((z**2).mean(axis=0))
    s, P, B = x.mean(axis=1)[:, None], [], []
    for _ in range(K):
        p = learner.directions(s, P, B)
        P.append(p)
        B.append(np.array([(z @ (z.T @ one[:, 0]) / K)[:, None] for one in p]))
    from collegium.tuning.learner import _Model

    model = _Model(learner, s, [p[0] for p in P], [b[0] for b in B], np.ones(n, bool))
    pull, threshold = 3.0, 10.0
    f = model.sums(model.fit(Candidate(K, pull, threshold)))[:, 0]
    # The same problem in the gains themselves: v_k = w_k / K, penalty pull Σ v².
    columns = np.column_stack([s[:, 0] / np.sqrt((s**2).mean()), np.ones(n), z])
    penalty = np.diag([0.01, threshold, *[pull] * K])
    c = np.linalg.solve(columns.T @ columns + penalty, columns.T @ y)
    assert np.abs(f - columns @ c).max() < 1e-3


def test_what_is_no_network_is_refused():
    x, y = world(40)
    with pytest.raises(PolicyError, match="schedule must be a Policy or another Schedule, got int"):
        tuning.tune(x, y, 6)


@pytest.mark.parametrize("bits", [4, 8, 12])
def test_rounded_messages_do_little_harm_and_mend_where_they_can(bits):
    """New gains are tried by the network as it is before they are used."""
    harm = []
    for seed in range(6):
        x, y = world(300, seed)
        rule = protocol.Quantised(protocol.DeGroot(), bits, 12.0)
        ring = policy.metropolis(topology.ring(6))
        tuned = tuning.tune(x[:100], y[:100], ring, 20, rule)
        before, after = (
            collegium.collaborate(np.clip(part, -12, 12), ring, 20, rule, record="final").errors(y[100:])[-1].mean()
            for part in (x[100:], tuned(x[100:]))
        )
        harm.append(after - before)
    assert max(harm) < 0.1
    assert bits == 4 or np.mean(harm) < -0.05


def test_agents_who_choose_differently_keep_what_they_had_and_say_so():
    x, y = world(200)
    tuned = tuning.tune(x, y, policy.uniform(topology.path(6)), 1, passes=1)
    assert not tuned.agreed
    assert tuned.kept == "as it was"
    assert (tuned.gains == 1).all()
    assert tuning.tune(x, y, schedule.exact(6)).agreed
