"""Prediction sets and abstention: coverage as promised, on made-up and on real scores, for every agent by itself."""

import numpy as np
import pytest
from scipy import stats

from collegium import collaborate, policy, theory, topology
from collegium.errors import AssumptionError
from collegium.protocol import DeGroot, Quantised
from collegium.theory.conformal import behind


def normal(n, rng, K=4):
    y = np.where(rng.random(n) < 0.4, 1, -1)
    return 0.6 * y[:, None] + rng.normal(size=(n, K)), y


def test_by_hand():
    x, y = np.array([3.0, 1.0, -0.5, 0.5, -2.0, 2.0, 0.1, -0.2, -1.0]), np.array([1, 1, 1, 1, -1, 1, -1, -1, 1])
    found = theory.conformal(x, y)
    scores = np.sort(-x * y)  # how far the true class is behind the other
    assert float(found.threshold(0.2)) == scores[7]  # the ⌈10 · 0.8⌉-th of nine
    assert float(found.threshold(0.05)) == np.inf  # nine items are too few
    np.testing.assert_array_equal(found.sets([0.3, -0.3, 9.0], 0.2), [[1, 1], [1, 1], [1, 0]])
    assert found.sets([0.3, -0.3], 0.05).all()


@pytest.mark.parametrize("alpha", [0.1, 0.25])
@pytest.mark.parametrize("rule", [DeGroot(), Quantised(DeGroot(), 6, 8.0)], ids=["full", "6 bits"])
def test_coverage_for_every_agent(alpha, rule):
    p = policy.uniform(topology.ring(4))
    rng = np.random.default_rng(0)
    covered = []
    for i in range(400):
        c, y = normal(160, rng)
        s = collaborate(c.clip(-8, 8), p, 3, rule, rng=i).statistics[-1]
        sets = theory.conformal(s[:99], y[:99]).sets(s[99:], alpha)
        covered.append(np.take_along_axis(sets, np.where(y[99:] > 0, 0, 1)[:, None, None], axis=2)[..., 0].mean(axis=0))
    mean, error = np.mean(covered, axis=0), stats.sem(covered, axis=0)
    assert (mean > 1 - alpha - 4 * error).all()
    if rule == DeGroot():  # equal scores, which few bits make, are covered together
        assert (mean < 1 - alpha + 0.01 + 4 * error).all()


def test_several_classes_and_each_class_by_itself():
    """A rare class that is hard: on the whole it may be left out, by itself it may not."""
    rng = np.random.default_rng(1)
    C, alpha, covered = 3, 0.1, {False: [], True: []}
    for _ in range(300):
        y = rng.choice(C, 500, p=[0.1, 0.45, 0.45])
        x = np.eye(C)[y] * np.where(y == 0, 0.5, 3.0)[:, None] + rng.normal(size=(500, C))
        x -= x.mean(axis=1, keepdims=True)
        for per_class, found in covered.items():
            sets = theory.conformal(x[:300], y[:300], classes=C, per_class=per_class).sets(x[300:], alpha)
            right = sets[np.arange(200), y[300:]]
            found.append([right.mean(), right[y[300:] == 0].mean()])
    plain, own = np.mean(covered[False], axis=0), np.mean(covered[True], axis=0)
    noise = stats.sem(covered[True], axis=0)
    assert plain[0] == pytest.approx(0.9, abs=0.01)
    assert plain[1] < 0.8
    assert own[1] > 0.9 - 4 * noise[1]


def test_the_labels_names():
    rng = np.random.default_rng(2)
    c, y = normal(200, rng)
    names = np.where(y > 0, "cat", "dog")
    found = theory.conformal(c, names, classes=("cat", "dog"))
    np.testing.assert_array_equal(found.sets(c, 0.1), theory.conformal(c, y).sets(c, 0.1))
    assert found.coverage(0.1) == (181 / 201, 181 / 201)


def test_equal_entries_are_equally_far_behind():
    np.testing.assert_array_equal(behind(np.array([[1.0, 1.0, -2.0], [2.0, 0.0, -2.0]])), [[0, 0, 3], [-2, 2, 4]])


@pytest.mark.parametrize("tail", [False, True], ids=["easy", "the far ones are the wrong ones"])
def test_the_error_among_decided_items_is_as_promised(tail):
    """With the second law large leads are wrong more often, so that no order of thresholds can be relied on."""
    rng = np.random.default_rng(3)
    broken = decided = 0
    for _ in range(600):
        lead = rng.exponential(size=400)
        p_wrong = np.where(lead > 2, 0.4, 0.05) if tail else 0.3 * np.exp(-1.5 * lead)
        found = theory.abstention(lead, rng.random(400) < p_wrong, error=0.1, confidence=0.9)
        if np.isfinite(found.threshold) or found.share > 0:
            decided += 1
            x = rng.exponential(size=4000)
            x = x[found.decides(x)]
            truth = (np.where(x > 2, 0.4, 0.05) if tail else 0.3 * np.exp(-1.5 * x)).mean()
            broken += truth > 0.1 + 0.002
    assert broken <= stats.binom.ppf(0.999, 600, 0.1)
    assert decided > 100 or tail


def test_abstention_decides_more_where_more_is_allowed():
    rng = np.random.default_rng(4)
    y = np.where(rng.random(1000) < 0.5, 1, -1)
    x = 1.2 * y[:, None] + rng.normal(size=(1000, 3))
    shares = [theory.abstention(abs(x), x * y[:, None] <= 0, error).share for error in (0.02, 0.05, 0.2)]
    assert (shares[0] < shares[1]).all()
    assert (shares[2] == 1).all()
    nobody = theory.abstention(abs(x[:20]), x[:20] * y[:20, None] <= 0, 0.01)
    assert not nobody.decides(abs(x)).any()
    assert np.isnan(nobody.bound).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: theory.conformal(np.empty((0, 2)), []), "there are none"),
        (lambda: theory.conformal([[0.0, 1.0]], [0], classes=3), "3 entries"),
        (lambda: theory.conformal([1.0, -1.0], [1, -1]).sets([0.0], 0.0), "strictly between"),
        (lambda: theory.conformal([[1.0], [-1.0]], [1, -1]).sets([[0.0, 1.0]], 0.1), "agents"),
        (lambda: theory.abstention([1.0], [True, False]), "same items"),
    ],
)
def test_mistakes_are_named(call, said):
    with pytest.raises(AssumptionError, match=said):
        call()
